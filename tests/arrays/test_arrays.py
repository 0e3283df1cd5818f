"""Programs over arrays of other libraries run there, derivatives and all, and give what they give over NumPy.

array-api-strict stands for any library that follows the array API standard: its arrays are here on a device that NumPy
cannot read. PyTorch, JAX and CuPy are tested where they are installed, and on a GPU where there is one.
"""

import contextlib
import operator
import sys
from unittest import mock

import laws
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy_cases import CASES, X
from random_programs import random_program
from scipy_cases import CASES as SCIPY

import effgrad
from effgrad import Detached, grad, hessian, hvp, jacobian, jvp, second_order, taylor, value_and_grad, vjp
from effgrad.api import directional, gradient, matrices
from effgrad.arrays import written
from effgrad.arrays.library_array import NUMBERS, LibraryArray
from effgrad.arrays.namespace import Library
from effgrad.fast import REVERSE


class Strict:
    """Arrays of array-api-strict on a device that is not NumPy's."""

    def __init__(self):
        self.xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        self.device = self.xp.Device("device1")

    def array(self, value):
        return self.xp.asarray(np.array(value), device=self.device)

    def numpy(self, array):
        assert type(array) is type(self.array(0.0)) and array.device == self.device
        return np.from_dlpack(array, device="cpu")


class Torch:
    def __init__(self):
        self.xp = pytest.importorskip("torch", reason="PyTorch is not installed")

    def array(self, value):
        return self.xp.tensor(np.array(value).tolist(), dtype=getattr(self.xp, np.asarray(value).dtype.name))

    def numpy(self, array):
        assert type(array) is self.xp.Tensor
        return np.from_dlpack(array)


class TorchCuda(Torch):
    """Tensors of PyTorch on a GPU."""

    def __init__(self):
        super().__init__()
        if not self.xp.cuda.is_available():
            pytest.skip("no GPU for PyTorch")

    def array(self, value):
        return super().array(value).cuda()

    def numpy(self, array):
        assert array.is_cuda
        return super().numpy(array.cpu())


class Cupy:
    def __init__(self):
        self.xp = pytest.importorskip("cupy", reason="CuPy is not installed")
        if not self.xp.is_available():
            pytest.skip("no GPU for CuPy")

    def array(self, value):
        return self.xp.asarray(np.array(value))

    def numpy(self, array):
        assert type(array) is self.xp.ndarray
        return array.get()


class Jax:
    def __init__(self):
        jax = pytest.importorskip("jax", reason="JAX is not installed")
        jax.config.update("jax_enable_x64", True)
        self.jax, self.xp = jax, jax.numpy

    def array(self, value):
        return self.xp.asarray(np.array(value))  # on a GPU where JAX has one

    def numpy(self, array):
        assert isinstance(array, self.jax.Array) and array.devices() == self.array(0.0).devices()
        return np.from_dlpack(self.jax.device_put(array, self.jax.devices("cpu")[0]))


LIBRARIES = {"strict": Strict, "torch": Torch, "torch-cuda": TorchCuda, "jax": Jax, "cupy": Cupy}
EACH_CASE = ["strict", "torch", "torch-cuda", "cupy"]  # JAX compiles each operation for each shape


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]()


@pytest.fixture(autouse=True)
def numbers_stay_where_they_are(monkeypatch):
    """No array of floating point numbers becomes one of NumPy's on the way; integers may, as addresses of writes."""

    def refused(*args, **kwargs):
        raise AssertionError("an array became one of NumPy's")

    original = Library.numpy
    monkeypatch.setattr(Library, "numpy", lambda self, a: refused() if a.dtype in self.floats() else original(self, a))
    monkeypatch.setattr(
        Library, "floats", lambda self: [self.xp.float32, self.xp.float64, self.xp.complex128], raising=False
    )
    numbers_of = written.numbers_of

    def written_back(value):  # NumPy's own memory, which a program wrote to, holds plain numbers at the end
        with mock.patch.object(Library, "numpy", original):
            return numbers_of(value)

    monkeypatch.setattr(written, "numbers_of", written_back)
    if "torch" in sys.modules:
        for name in ("numpy", "__array__"):
            monkeypatch.setattr(sys.modules["torch"].Tensor, name, refused)


# What has no counterpart, and says so: cases of the table.
UNKNOWN = {"frombuffer", "i0", "kaiser", "quantile q", "unwrap", "frexp", "intersect1d", "histogram_bin_edges"}
# Singular vectors have a sign, which is the library's choice.
SIGNED = {
    "svd u", "svd v", "svd u tall", "svd v tall", "eigh v", "eigh U", "linalg.svd square", "linalg.svd u",
    "linalg.svd v",
}  # fmt: skip
TABLE = [*((name, case) for name in EACH_CASE for case in CASES), *(("jax", case) for case in list(CASES)[::17])]


def unsigned(case, f):
    return (lambda x: f(x) ** 2) if case in SIGNED else f


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name, case", TABLE)
def test_functions_give_what_they_give_over_numpy(name, case):
    library, f = LIBRARIES[name](), CASES[case]
    if case in UNKNOWN:
        with pytest.raises((effgrad.NoCounterpart, effgrad.Detached), match=r"\[E(3|10)\]\n  at "):
            hvp(laws.scalar(f), library.array(X), library.array(laws.U))
        return
    f = unsigned(case, f)
    h = laws.scalar(f)
    for derivative in (
        lambda x, u: jvp(f, (x,), (u,)),
        lambda x, u: (grad(h)(x), hvp(h, x, u)),
    ):
        for ours, expected in zip(
            derivative(library.array(X), library.array(laws.U)), derivative(X, laws.U), strict=True
        ):
            ours = library.numpy(ours)
            assert ours.dtype == np.asarray(expected).dtype and ours.shape == np.shape(expected)
            np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", EACH_CASE)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=65)
@example(seed=1672)
@settings(max_examples=25, deadline=None)
def test_random_programs_give_what_they_give_over_numpy(name, seed):
    library, f = LIBRARIES[name](), random_program(seed)
    x = np.random.default_rng(seed).uniform(-1, 1, (3, 3))
    u = np.sin(np.arange(9.0)).reshape(3, 3)
    np.testing.assert_allclose(library.numpy(grad(f)(library.array(x))), grad(f)(x), rtol=1e-7, atol=1e-9)
    ours = library.numpy(hvp(f, library.array(x), library.array(u)))
    with contextlib.ExitStack() as stack:
        if np.isnan(ours).any():  # limits at singular points (of `hypot` at padding, say) are of NumPy alone
            for module in directional, gradient, matrices:
                stack.enter_context(mock.patch.object(module, "completed", lambda derivative, *_: derivative))
        np.testing.assert_allclose(ours, hvp(f, x, u), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", [
    lambda y: np.sum(y[np.argsort(y[:, 0])][:2]), lambda y: np.sum(np.sort(y, axis=0)[1:]), lambda y: np.median(y),
])  # fmt: skip
def test_elements_left_out_by_an_index_that_was_computed_are_structural_zeros(f):
    """The mask of elements at an index in the other library counted all of them, also those that a slice leaves out.

    Then the second derivative of a kink in elements without influence, which is NaN, was multiplied by 0.
    """
    library, x = Strict(), np.random.default_rng(1).uniform(-1, 1, (3, 3))
    with mock.patch.object(directional, "completed", lambda derivative, *_: derivative):
        ours, expected = (hvp(lambda x: f(np.minimum(x, x)), y, y) for y in (library.array(x), x))
    assert 0 < np.isnan(expected).sum() < 9
    np.testing.assert_array_equal(library.numpy(ours), expected)


def an_element_overwritten(x):
    y = 1 / x
    y[0] = 0.0
    return np.sum(y)


def elements_overwritten_by_others(x):
    y = np.log(x)
    y[np.array([0])] = x[1:2]
    return np.sum(y)


def a_diagonal_overwritten(x):
    y = np.diag(1 / x)
    np.fill_diagonal(y, 1.0)
    return np.sum(y)


@pytest.mark.parametrize("name", EACH_CASE)
@pytest.mark.parametrize("f", [an_element_overwritten, elements_overwritten_by_others, a_diagonal_overwritten])
def test_infinite_elements_that_are_overwritten_do_not_count(name, f):
    """The arrays of other libraries were taken for finite, so that the derivative was 0 times infinity."""
    library, x = LIBRARIES[name](), np.array([0.0, 2.0, 3.0])
    expected = {an_element_overwritten: [0, -1 / 4, -1 / 9], elements_overwritten_by_others: [0, 1.5, 1 / 3]}
    found = library.numpy(grad(f)(library.array(x)))
    np.testing.assert_allclose(found, expected.get(f, [0, 0, 0]), rtol=1e-15)


# SciPy's Python makes arrays of NumPy of its arguments, or asks a function for what the other library has not.
OF_NUMPY = {"signal.ss2tf", "signal.ss2zpk", "stats.mode"}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", EACH_CASE)
@pytest.mark.parametrize("namespace", sorted({case.partition(".")[0] for case in SCIPY}))
def test_functions_of_scipy_agree_or_have_no_counterpart(name, namespace):
    library, agreeing = LIBRARIES[name](), 0
    for case, f in SCIPY.items():
        if case.partition(".")[0] == namespace:
            derivative = grad(laws.scalar(unsigned(case, f)))
            try:
                ours = library.numpy(derivative(library.array(X)))
            except effgrad.NoCounterpart:
                continue
            except effgrad.NoRule:
                assert case in OF_NUMPY
                continue
            np.testing.assert_allclose(ours, derivative(X), rtol=1e-7, atol=1e-9, err_msg=case)
            agreeing += 1
    assert agreeing or namespace in ("sparse", "distance")


def network(w, x):
    return np.mean(np.tanh(x @ w["in"] + w["bias"]) @ w["out"]) + np.sum(np.maximum(w["out"], 0.1) ** 2)


def weights(make):
    values = np.sin(np.arange(17.0))
    return {"in": make(values[:8].reshape(4, 2)), "bias": make(values[8:10]), "out": make(values[10:16].reshape(2, 3))}


@pytest.mark.parametrize("mode", REVERSE)
def test_every_reverse_mode(library, mode):
    ours, data = grad(network, (0, 1), mode=mode)(weights(library.array), library.array(X))
    expected, expected_data = grad(network, (0, 1))(weights(np.array), X)
    np.testing.assert_allclose(library.numpy(data), expected_data, rtol=1e-12)
    for name in expected:
        np.testing.assert_allclose(library.numpy(ours[name]), expected[name], rtol=1e-12)


def test_every_kind_of_derivative(library):
    def f(x):
        return np.sin(x[0]) * np.exp(x[1]) / (1 + x[2] ** 2)

    def h(x):
        return np.sum(f(x)) ** 2

    x, u = library.array(X), library.array(laws.U)

    def numbers(tree):
        return [library.numpy(leaf) if not isinstance(leaf, np.ndarray | np.generic) else leaf for leaf in tree]

    for ours, expected in (
        ([jacobian(f)(x)], [jacobian(f)(X)]),
        ([jacobian(f, mode="forward")(x)], [jacobian(f, mode="forward")(X)]),
        ([hessian(h)(x)], [hessian(h)(X)]),
        ([hessian(h, mode="hessian")(x)], [hessian(h, mode="hessian")(X)]),
        (second_order(h, x, u), second_order(h, X, laws.U)),
        (taylor(h, [x, u], 3), taylor(h, [X, laws.U], 3)),
        (vjp(f, x)[1](x[0, ...]), vjp(f, X)[1](X[0])),
        ([effgrad.debug_nans(grad(h))(x)], [grad(h)(X)]),
        ([grad(lambda x: effgrad.checkpoint(h, x))(x)], [grad(h)(X)]),
        ([grad(lambda x: np.sum(effgrad.fuse(f)(x)))(x)], [grad(lambda x: np.sum(f(x)))(X)]),
        ([jacobian(lambda x: f(x) * 1j)(x)], [jacobian(lambda x: f(x) * 1j)(X)]),
    ):
        for a, b in zip(numbers(ours), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_values_and_auxiliary_outputs_are_arrays_of_the_library(library):
    (value, extra), derivative = value_and_grad(lambda x: (np.sum(x), {"twice": 2 * x}), has_aux=True)(library.array(X))
    assert library.numpy(value) == np.sum(X) and library.numpy(extra["twice"])[0, 0] == 2 * X[0, 0]
    np.testing.assert_array_equal(library.numpy(derivative), np.ones_like(X))


def test_single_precision_stays_and_numbers_take_the_dtype_of_the_arrays(library):
    x = library.array(X.astype(np.float32))

    def f(x):
        assert x.dtype == np.float32 and (2.0 * x).dtype == np.float32 and (x / np.sqrt(2.0)).dtype == np.float32
        assert (np.where(x > 0.5, 0.1, 1.0) * x).dtype == (x * (x > 0.5).mean()).dtype == np.float32
        assert (x + np.ones(4)).dtype == np.float64 and (x > 0.5).dtype == bool and np.argmax(x).dtype == np.int64
        return np.sum(np.sin(x * 0.5) ** 2)

    for ours in (grad(f)(x), jvp(f, (x,), (x,))[1], hessian(f)(x)):
        assert library.numpy(ours).dtype == np.float32


def test_no_operation_of_a_derivative_leaves_single_precision(library, monkeypatch):
    kinds, performed = set(), Library.performed

    def watched(self, *args):
        result = performed(self, *args)
        if type(result) is LibraryArray and result.shadow is not NUMBERS:
            kinds.add(result.dtype)
        return result

    monkeypatch.setattr(Library, "performed", watched)
    x = library.array(X.astype(np.float32))
    hvp(lambda x: np.sum(np.maximum(x, 0.5) ** 2) + np.max(np.abs(x) * np.clip(x, 0.3, 0.6)) + np.std(x[x > 0.4]), x, x)
    assert np.dtype(np.float32) in kinds and np.dtype(np.float64) not in kinds


def test_means_of_integers_and_truth_values_are_no_integers(library):
    def f(x):
        share, mean = np.mean(x > 0.5), np.mean(np.argsort(x, axis=1) * 3, axis=0)
        return np.sum(x * share) + np.sum(x * mean) + np.sum(x * np.var(x > 0.5))

    np.testing.assert_allclose(library.numpy(grad(f)(library.array(X))), grad(f)(X))


def test_constants_of_numpy_join_the_library(library):
    def f(x):
        return np.sum(np.where(X > 0.5, x @ np.ones((4, 4)), X) * np.arange(4))

    np.testing.assert_allclose(library.numpy(grad(f)(library.array(X))), grad(f)(X))


def test_an_input_of_numpy_has_a_gradient_of_numpy(library, monkeypatch):
    monkeypatch.undo()  # the gradient is asked for as NumPy's
    c = library.array(X)
    value, derivative = value_and_grad(lambda x: np.sum(np.sin(x) * c))(X)
    assert type(derivative) is np.ndarray and library.numpy(value).shape == ()
    np.testing.assert_allclose(derivative, np.cos(X) * X)
    assert type(grad(lambda x: np.sum(x * c))(2.0)) is float


@pytest.mark.parametrize("name", EACH_CASE)
@pytest.mark.parametrize(
    "f",
    [
        lambda c, x: np.cross(c[:, :3], x[:, :3]),
        lambda c, x: np.kron(c, x),
        lambda c, x: np.convolve(c[0, ...], x[0]),
        lambda c, x: np.dot(c, x.T),
        lambda c, x: np.einsum("ij,kj->ik", c, x),
        lambda c, x: np.interp(x, np.linspace(0, 1, 4), c[0, ...]),
        lambda c, x: np.where(c > 0.5, c, x),
        lambda c, x: np.append(c, x),
        lambda c, x: np.linalg.solve(c[:, :3], x),
        lambda c, x: np.searchsorted(x[0], c[1, ...]) * x[0],
        lambda c, x: np.outer(c, x),
    ],
)
def test_functions_take_arrays_from_around_the_function(name, f):
    library = LIBRARIES[name]()
    c = library.array(X)
    ours = grad(laws.scalar(lambda x: f(c, x)))(library.array(X))
    np.testing.assert_allclose(library.numpy(ours), grad(laws.scalar(lambda x: f(X, x)))(X), rtol=1e-10)


def test_arrays_of_the_library_on_the_left(library):
    if not isinstance(library, Torch):
        pytest.skip("only PyTorch's operators leave what they do not know to the other operand: write x * c")
    c = library.array(X)
    ours = grad(lambda x: np.sum(c * x - c / x + (c - x)))(library.array(X))
    np.testing.assert_allclose(library.numpy(ours), grad(lambda x: np.sum(X * x - X / x + (X - x)))(X))


def test_programs_written_for_the_array_api(library):
    def f(x):
        xp = x.__array_namespace__()
        return xp.sum(xp.linalg.matrix_transpose(x) @ x) + xp.mean(xp.concat([x, xp.exp(x)], axis=1))

    np.testing.assert_allclose(library.numpy(grad(f)(library.array(X))), grad(f)(X))


def test_functions_of_plain_values_inside(library):
    def f(x):
        c = effgrad.stop_gradient(x)
        values, first, inverse, counts = np.unique(np.round(c, 1), True, True, True)
        assert (int(counts.sum()), first.shape, inverse.shape) == (12, values.shape, (12,))
        assert np.all(np.linalg.eigh(c @ c.T).eigenvalues >= -1e-12) and np.linalg.svd(c).S.shape == (3,)
        assert np.allclose(c, x) and not np.any(np.logical_not(c)) and np.count_nonzero(c) == 12
        assert np.array_equal(np.sort(c, axis=1), np.sort(X, axis=1)) and not np.isnan(np.fmax(c, np.nan)).any()
        return np.sum(x * c)

    np.testing.assert_array_equal(library.numpy(grad(f)(library.array(X))), X)


def test_what_python_asks_of_a_value(library):
    def f(x):
        assert bool(x[0, 0] > 0) and len(x) == 3 and x.shape == (3, 4) and x.size == 12
        assert f"{x[0, 0]:.2f}" == f"{X[0, 0]:.2f}" and repr(x) == repr(library.array(X))
        rows = sorted(range(3), key=lambda i: float(effgrad.stop_gradient(x[i, 0])))
        return sum(np.sum(row) for row in x) * (2.0 if x[rows[0], 0] < x[rows[-1], 0] else 1.0) + float(x[0, 0])

    expected = np.full((3, 4), 2.0)
    expected[0, 0] = 3.0
    np.testing.assert_array_equal(library.numpy(grad(f)(library.array(X))), expected)


def test_writes(library):
    def f(x):
        x[0] = np.sin(x[1])  # x belongs to the program
        x[x > 0.6] *= 2.0
        x[1:, ::-2] += x[0, :2]
        np.add.at(x, np.array([0, 0, 2]), x[0])
        filled = np.zeros(4)
        for i in range(4):
            filled[i] = np.sum(x[:, i]) ** 2
        row = x[2]
        row[np.argsort(row)[:2]] = 1.0  # a view of x
        return np.sum(filled) + np.sum(x**2)

    x = library.array(X)
    np.testing.assert_allclose(library.numpy(grad(f)(x)), grad(f)(X.copy()))
    np.testing.assert_array_equal(library.numpy(x), X)


INDICES = st.one_of(
    st.integers(-3, 2),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-5, 5))] * 2, st.sampled_from([None, 1, 2, -1, -2])),
    st.just(None),
    st.just(Ellipsis),
    st.lists(st.integers(-3, 2), max_size=4).map(lambda places: np.array(places, int)),
    st.lists(st.booleans(), min_size=3, max_size=3).map(np.array),
)


@pytest.mark.parametrize("name", EACH_CASE)
@given(index=st.lists(INDICES, max_size=4).map(tuple))
@settings(max_examples=150, deadline=None)
def test_any_index_selects_and_writes_as_in_numpy(name, index):
    library, a = LIBRARIES[name](), np.arange(27.0).reshape(3, 3, 3) / 10
    try:
        shape = a[index].shape
    except IndexError:
        return

    def f(x):
        y = x * 2.0
        y[index] = np.cos(x[index])
        return np.sum(y**2) + np.sum(np.sin(x[index]) * np.arange(1.0, 1 + np.prod(shape)).reshape(shape))

    np.testing.assert_allclose(library.numpy(grad(f)(library.array(a))), grad(f)(a), rtol=1e-12, atol=1e-14)


def test_indices_made_of_the_librarys_arrays(library):
    places, mask = library.array(np.array([2, 0, 2])), library.array(X > 0.5)

    def f(places, mask):
        def g(x):
            y = x * 1.0
            y[mask] *= 2.0
            return np.sum(x[places] ** 2) + np.sum(x[places, np.array([0, 1, 1])] * y[0, 0]) + np.sum(y[mask] ** 2)

        return g

    expected = grad(f(np.array([2, 0, 2]), X > 0.5))(X)
    np.testing.assert_allclose(library.numpy(grad(f(places, mask))(library.array(X))), expected)


def test_arrays_around_the_function_may_change(library):
    if type(library) is Jax:
        pytest.skip("arrays of JAX never change")
    c = library.array(X)

    def f(x):
        first = np.sum(x * c)
        c[...] = 100.0
        return first + np.sum(x * c)

    for mode in REVERSE:
        c = library.array(X)
        np.testing.assert_allclose(library.numpy(grad(f, mode=mode)(library.array(X))), X + 100.0)


def test_gradients_share_no_memory(library):
    if type(library) is Jax:
        pytest.skip("arrays of JAX never change")
    first, second = grad(lambda x, y: np.sum(x + y), (0, 1))(library.array(X), library.array(X))
    first[...] = 5.0
    np.testing.assert_array_equal(library.numpy(second), np.ones_like(X))
    first, second, third = grad(lambda x, y, z: np.sum(np.reshape(x, (3, 4)) + y + z[0]), (0, 1, 2))(
        library.array(X.ravel()), library.array(X), library.array(X)
    )
    second[...] = 5.0
    np.testing.assert_array_equal(library.numpy(first), np.ones(12))
    np.testing.assert_array_equal(library.numpy(third)[0], np.full(4, 3.0))
    value, pull = vjp(np.exp, library.array(X))
    cotangent = library.array(np.ones_like(X))
    first = pull(cotangent)[0]
    for array in (value, first, cotangent):
        array[...] = 0.0
    np.testing.assert_allclose(library.numpy(pull(library.array(np.ones_like(X)))[0]), np.exp(X))


def test_nested_derivatives_keep_apart_with_arrays_around_them(library):
    w = library.array(X)

    def f(x):
        inner = grad(lambda v: np.sum(v**2 * x * w))(w)  # 2 w * x * w
        return np.sum(inner * x)

    np.testing.assert_allclose(library.numpy(grad(f)(library.array(X))), 4 * X**3)


def test_nothing_of_ours_is_left_when_a_derivative_has_ended(library):
    x = library.array(X)
    results = [
        *value_and_grad(np.sum)(x), *jvp(np.sin, (x,), (x,)), hessian(np.sum)(x), hessian(np.sum, mode="hessian")(x),
        vjp(np.sin, x)[0], *vjp(np.sin, x)[1](x), *second_order(np.sin, x, x), *taylor(np.sin, [x, x]),
        grad(lambda y: x[0, 0])(x),
    ]  # fmt: skip
    for result in results:
        assert not isinstance(result, LibraryArray)
        library.numpy(result)


def test_what_stays_numpys_says_so(library):
    x = library.array(X)
    with pytest.raises(effgrad.NotStaged):
        effgrad.compile(grad(np.sum))(x)
    with pytest.raises(effgrad.NotStaged, match="closes over an array of"):
        effgrad.compile(grad(lambda y: np.sum(y * x)))(X)
    with pytest.raises(effgrad.NotDifferentiable, match="sparse=True"):
        hessian(np.sum, sparse=True)(x)
    with pytest.raises(effgrad.NotDifferentiable, match="NumPy arrays"):
        effgrad.check_grad(np.sum, x)
    with pytest.raises(effgrad.NotDifferentiable, match="NumPy arrays"):
        effgrad.compare(np.sum, x)
    with pytest.raises(effgrad.NoCounterpart, match="expm is not known for arrays of"):
        import scipy.linalg

        grad(lambda x: np.sum(scipy.linalg.expm(x[:, :3])))(x)


@pytest.mark.parametrize("name", EACH_CASE)
def test_arrays_of_numpy_that_are_written_to_hold_the_numbers_afterwards(name, monkeypatch):
    monkeypatch.undo()  # these numbers do become NumPy's
    library = LIBRARIES[name]()
    plain = np.ones(4)

    def f(x):
        plain[1:] = np.sin(x[0, 1:])
        return np.sum(plain[:3] ** 2)

    expected = np.zeros((3, 4))
    expected[0, 1:3] = np.sin(2 * X[0, 1:3])
    np.testing.assert_allclose(library.numpy(grad(f)(library.array(X))), expected, rtol=1e-12)
    np.testing.assert_allclose(plain, [1.0, *np.sin(X[0, 1:])])


def test_the_package_that_is_missing_is_named(monkeypatch):
    x = Strict().array(X)
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    monkeypatch.setattr("effgrad.arrays.namespace._libraries", {})
    with pytest.raises(effgrad.EffgradError, match=r"pip install 'effgrad\[arrays\]'"):
        grad(np.sum)(x)


def test_tensors_in_pytorchs_own_graph_are_refused():
    library = Torch()
    x = library.array(X).requires_grad_()
    with pytest.raises(effgrad.Detached, match="requires_grad"):
        grad(np.sum)(x)
    with library.xp.no_grad():
        assert not grad(np.sum)(x).requires_grad


TORCH = {
    "sin": lambda torch, x: torch.sin(x).sum(),
    "operators": lambda torch, x: torch.sum(c(torch) * x + c(torch) / x - c(torch) @ torch.transpose(x, 0, 1) @ x),
    "softmax": lambda torch, x: torch.sum(torch.softmax(x, dim=1) ** 2),
    "relu": lambda torch, x: torch.mean(torch.nn.functional.relu(x - 0.5)),
    "linear": lambda torch, x: torch.sum(torch.nn.functional.linear(x, c(torch)[:2], torch.ones(2)) ** 2),
    "log_softmax": lambda torch, x: torch.sum(torch.nn.functional.log_softmax(x, dim=-1)[:, 0]),
    "cat": lambda torch, x: torch.sum(torch.cat([x, c(torch)], dim=1) ** 2),
    "where": lambda torch, x: torch.sum(torch.where(x > 0.5, x, c(torch) * 0)),
    "clamp": lambda torch, x: torch.sum(torch.clamp(x, min=0.3, max=0.7) ** 2),
    "einsum": lambda torch, x: torch.sum(torch.einsum("ij,kj->ik", x, c(torch)) ** 2),
    "solve": lambda torch, x: torch.sum(torch.linalg.solve(x[:, :3] + 2 * torch.eye(3), c(torch)[:, 0])),
    "logsumexp": lambda torch, x: torch.sum(torch.logsumexp(x, 1) * torch.mean(torch.sigmoid(x), 0)[:3]),
}


def c(torch):
    return torch.tensor((X[::-1] * 0.7).tolist(), dtype=torch.float64)


@pytest.mark.parametrize("name", TORCH)
def test_functions_of_pytorch_mean_the_same(name):
    library = Torch()
    torch = library.xp
    monkeypatched = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        x = library.array(X).requires_grad_()
        TORCH[name](torch, x).backward()
        torch.testing.assert_close(grad(lambda x: TORCH[name](torch, x))(library.array(X)), x.grad)
    finally:
        torch.set_default_dtype(monkeypatched)


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x: torch.std(x),  # divides by n - 1, and np.std by n
        lambda torch, x: torch.max(x, 1)[0],
        lambda torch, x: torch.sum(x, 0, True),
        lambda torch, x: torch.ones(3, 4).mul_(x),
        lambda torch, x: torch.sin(x, out=torch.ones(3, 4)),
        lambda torch, x: torch.nn.functional.relu(x, inplace=True),
        lambda torch, x: torch.ones(3, 4).__setitem__(0, x[0]),
    ],
)
def test_functions_of_pytorch_that_mean_something_else_are_refused(call):
    library = Torch()
    with pytest.raises(effgrad.NoCounterpart, match="as called here"):
        grad(lambda x: np.sum(call(library.xp, x)))(library.array(X))


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "truediv", "pow", "matmul", "lt"])
def test_an_array_on_the_left_of_a_traced_one(name, operation):
    library = LIBRARIES[name]()
    c, x = library.array(np.array([1.0, 2.0, 3.0])), np.array([0.5, 1.5, 4.0])

    def f(c):
        return lambda x: np.sum(np.where(getattr(operator, operation)(c, x), getattr(operator, operation)(c, x) * x, x))

    expected = grad(f(np.array([1.0, 2.0, 3.0])))(x)
    if name in ("strict", "cupy"):  # whose operators raise for what they do not know, and do not leave it to the other
        with pytest.raises(Detached, match="takes plain numbers"):
            grad(f(c))(library.array(x))
        return
    np.testing.assert_allclose(library.numpy(grad(f(c))(library.array(x))), expected, rtol=1e-12)


def test_a_function_of_jax_says_what_it_was_given():
    library = Jax()
    with pytest.raises(Detached, match=r"takes plain numbers(.|\n)*test_arrays\.py"):
        grad(lambda x: library.xp.sum(library.xp.sin(x)))(np.ones(3))


def test_a_rule_of_the_user_names_the_library_that_it_does_not_know(library):
    """The call of a rule on such an array performed itself, over and over, until Python's stack was full."""

    @effgrad.rule(vjp=lambda g, y, x: (2.0 * g,))
    def doubled(x):
        return 2.0 * x

    with pytest.raises(effgrad.NoCounterpart, match="is not known for arrays of"):
        grad(lambda x: np.sum(doubled(x)))(library.array([1.0, 2.0]))
