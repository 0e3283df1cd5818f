"""Results share memory with their arguments, and lie in memory, as NumPy's own do.

Each function of NumPy's namespaces and each method of arrays is called in many ways on an array of the program's; then
the array is written to and the result is read, or the result is written to and the array is read. NumPy itself says
what is seen.
"""

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.signal

import effgrad
from effgrad import compile, grad, value_and_grad

X = np.array([1.3, -0.7, 2.1, 0.4, 0.9, 1.1, -0.3, 0.25, 0.6])
WEIGHTS = np.arange(1.0, 10.0).reshape(3, 3)
SPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft, "np.lib.stride_tricks": np.lib.stride_tricks}
# Elements that nobody has chosen; files; tests; NumPy drops `out=` in hfft and irfft2.
LEFT_OUT = {
    "empty_like", "save", "savez", "savez_compressed", "savetxt", "tofile", "dump", "dumps", "setflags", "test",
    "hfft", "irfft2",
}  # fmt: skip
WAYS = {
    "a": lambda f, a: f(a), "a, 0": lambda f, a: f(a, 0), "a, 1": lambda f, a: f(a, 1), "a, 2": lambda f, a: f(a, 2),
    "a, -1": lambda f, a: f(a, -1), "a, 0, 1": lambda f, a: f(a, 0, 1), "[a]": lambda f, a: f([a]),
    "a, shape": lambda f, a: f(a, a.shape), "a, [0, 1]": lambda f, a: f(a, [0, 1]),
    "a, (1, 0)": lambda f, a: f(a, (1, 0)), "a, float": lambda f, a: f(a, float), "a, b": lambda f, a: f(a, WEIGHTS),
    "a, a": lambda f, a: f(a, a), "a[0]": lambda f, a: f(a[0]), "copy=False": lambda f, a: f(a, copy=False),
    "copy=None": lambda f, a: f(a, copy=None), "dtype": lambda f, a: f(a, dtype=float),
    "order=F": lambda f, a: f(a, order="F"), "order=K": lambda f, a: f(a, order="K"), "out": lambda f, a: f(a, out=a),
    "axis=0": lambda f, a: f(a, axis=0), "a[:2]": lambda f, a: f(a[:2]), "a.T": lambda f, a: f(a.T),
}  # fmt: skip


def functions():
    for space, module in SPACES.items():
        for name in dir(module):
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type) and not name.startswith("_"):
                yield f"{space}.{name}", function
    for name in dir(np.ndarray):
        if not name.startswith("_"):
            called = callable(getattr(np.ndarray, name))
            yield (
                f"ndarray.{name}",
                lambda a, *args, name=name, called=called, **options: (
                    getattr(a, name)(*args, **options) if called else getattr(a, name)
                ),
            )


FUNCTIONS = {name: f for name, f in functions() if name.rpartition(".")[2] not in LEFT_OUT}


def first_array(result):
    """The first array of floats among results."""
    if isinstance(result, list | tuple):
        return next((found for part in result if (found := first_array(part)) is not None), None)
    return result if np.shape(result) and np.result_type(result) == np.float64 else None


def array_in(order):
    """A function that makes an array in an order of memory, by a write."""

    def make(x):
        a = np.zeros((3, 3), order=order)
        a[...] = x.reshape(3, 3)
        return a

    return make


def programs(f, way, make):
    """The array is written to and the result read, and the other way round."""

    def made(x):
        a = make(x)
        result = first_array(way(f, a))
        if result is None:
            raise TypeError("no array")
        return a, result

    def through_the_array(x):
        a, result = made(x)
        a[...] = 0.5 * a + 0.1 * x[0]
        return np.sum(np.sin(result))

    def through_the_result(x):
        a, result = made(x)
        result[...] = 0.5 * result + 0.1 * x[0]
        return np.sum(np.sin(a) * WEIGHTS.ravel()[: a.size].reshape(a.shape))

    return through_the_array, through_the_result


@pytest.mark.thinned(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_share_memory_as_numpys_do(name):
    for way in WAYS.values():
        for order in "CF":
            check_sharing(FUNCTIONS[name], way, array_in(order))


# Arrays that were computed and never written to, and ways that give the argument itself for some of them.
COMPUTED = {
    "vector": lambda x: x * 1.0, "number": lambda x: x[:1] * 1.0, "matrix of one": lambda x: x[:1, None] * 1.0,
    "matrices of one": lambda x: x[:, None, None] * 1.0,
}  # fmt: skip
OF_COMPUTED = {name: WAYS[name] for name in ("a", "a, 0", "a, 1", "a, b", "a[:2]")} | {
    "a, ()": lambda f, a: f(a, ()), "axis=()": lambda f, a: f(a, axis=()), "a, [1, 0]": lambda f, a: f(a, [1.0, 0.5]),
}  # fmt: skip
OF_SCIPY = {
    "scipy.fft.fftn": scipy.fft.fftn, "scipy.linalg.det": lambda a: scipy.linalg.det(a),
    "scipy.linalg.fractional_matrix_power": scipy.linalg.fractional_matrix_power,
    "scipy.signal.deconvolve": scipy.signal.deconvolve,
}  # fmt: skip


@pytest.mark.thinned(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*FUNCTIONS, *OF_SCIPY} - {"ndarray.base"}))
def test_results_share_memory_of_computed_arrays_as_numpys_do(name):
    """`np.trim_zeros` of a computed vector was a copy of it, and so was `np.fft.fftn` along no axes."""
    for way in OF_COMPUTED.values():
        for make in COMPUTED.values():
            check_sharing((FUNCTIONS | OF_SCIPY)[name], way, make)


def check_sharing(f, way, make):
    for program in programs(f, way, make):
        try:
            expected = program(X)
        except Exception:  # NumPy's own, of whatever class: the function is not called like this
            continue
        if np.isrealobj(expected):
            try:
                found = value_and_grad(program)(X)[0]
            except effgrad.EffgradError:
                continue
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


LAID_OUT = {
    **{f"{name} {order}": lambda x, f=f, order=order: f(x, order=order) for order in "CFKA" for name, f in {
        "asarray": np.asarray, "asanyarray": np.asanyarray, "array": np.array, "copy": np.copy,
        "array without a copy": lambda x, order: np.array(x, order=order, copy=None),
        "method copy": lambda x, order: x.copy(order), "astype": lambda x, order: x.astype(float, order),
        "astype without a copy": lambda x, order: x.astype(float, order=order, copy=False),
        "sum": lambda x, order: np.add(x, 1, order=order), "parts": lambda x, order: np.modf(x + 0.25, order=order)[0],
        "zeros_like": lambda x, order: np.zeros_like(x, order=order) + 0 * x,
        "full_like": lambda x, order: np.full_like(x, x[0, 0], order=order),
        "asarray_chkfinite": np.asarray_chkfinite,
    }.items()},
    **{f"require {flags}": lambda x, flags=flags: np.require(x, float, flags) for flags in (
        "C", "F", ["C_CONTIGUOUS", "W"], ["fortran", "owndata"], [], None)},
    "full": lambda x: np.full((2, 3), x[0, 0], order="F"), "vectorize": lambda x: np.vectorize(lambda t: 2 * t)(x),
    "block of one": lambda x: np.block(x), "block": lambda x: np.block([[x, x]]),
}  # fmt: skip


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name", LAID_OUT)
def test_elements_lie_in_memory_as_numpys_do(name, order):
    x, strides = np.arange(1.0, 7.0).reshape(2, 3, order=order).copy(order), []

    def f(x):
        result = LAID_OUT[name](x)
        strides.append(result.strides)
        return np.sum(np.ravel(result, "K") * np.arange(1, result.size + 1))

    value, derivative = value_and_grad(f)(x)
    assert strides == [LAID_OUT[name](x).strides]
    assert value == f(x)
    np.testing.assert_allclose(np.sum(derivative), (f(x + 0.05) - f(x - 0.05)) / 0.1, rtol=1e-6)


def test_what_the_flat_elements_are_is_a_copy():
    def f(x):
        y = x * 1.0
        taken = y.flat[1:]
        y[0] = 5 * x[0]
        y[2] = 0.0
        taken[0] = 3 * x[2]
        return np.sum(taken) + np.sum(y)

    for way in (grad(f), compile(grad(f))):
        np.testing.assert_array_equal(way(np.array([1.0, 2.0, 4.0])), [5, 1, 4])


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_elements_that_are_not_finite_are_refused_as_numpy_does(wrong):
    with pytest.raises(ValueError, match="infs or NaNs"):
        grad(lambda x: np.sum(np.asarray_chkfinite(x)))(np.array([1.0, wrong]))


def to_both(x):
    left, right = np.zeros(4), np.zeros(4)
    np.modf(x, left, right)
    return np.sum(left**2 + right * x)


def to_one(x):
    left = np.zeros(4)
    return np.sum(np.modf(x, left)[1] * x + left**2)


def in_place(x):
    a = np.zeros(4)
    a[:] = x
    a.cumsum(out=a)
    a.clip(-0.5, 1.5, a)
    return np.sum(a**2)


def without_nans(x):
    a = np.array([x[0], np.nan * x[1], np.inf, x[3]])
    return np.sum(np.nan_to_num(a, copy=False, posinf=2.0) ** 2) + np.sum(a)


def at(function, *shape):
    """A program that gives a function an array of a shape to write to."""

    def program(x):
        out = np.zeros(shape)
        function(x, np.tile(x, (4, 1)), out)
        return np.sum(out**2 * (1 + x[: shape[-1]])) if shape else out * x[0]

    return program


# Programs of four numbers that give the array to write to by its place or by its name.
WRITTEN = {
    "two results": to_both, "one of two results": to_one, "in place": in_place, "without NaNs": without_nans,
    "x.clip": at(lambda x, a, out: x.clip(-0.5, 1.5, out), 4), "x.cumsum": at(lambda x, a, out: x.cumsum(out=out), 4),
    "a.sum": at(lambda x, a, out: a.sum(0, None, out), 4), "a.dot": at(lambda x, a, out: a.dot(x, out=out), 4),
    "np.dot": at(lambda x, a, out: np.dot(a, x, out), 4), "a.take": at(lambda x, a, out: a.take([0, 2], 1, out), 4, 2),
    "a.round": at(lambda x, a, out: a[0].round(0, out=out), 4),
    "np.round": at(lambda x, a, out: np.round(x, 0, out), 4),
    "np.fix": at(lambda x, a, out: np.fix(x, out), 4), "a.mean": at(lambda x, a, out: a.mean(0, out=out), 4),
    "a.max": at(lambda x, a, out: a.max(0, out), 4), "a.std": at(lambda x, a, out: (a.T * x).std(1, out=out), 4),
    "a.trace": at(lambda x, a, out: a.trace(out=out)), "np.ptp": at(lambda x, a, out: np.ptp(a.T * x, 0, out), 4),
    "np.outer": at(lambda x, a, out: np.outer(x, x, out), 4, 4),
    "np.matmul": at(lambda x, a, out: np.matmul(a, a.T, out), 4, 4),
    "np.quantile": at(lambda x, a, out: np.quantile(a.T * x, 0.3, 0, out), 4),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_results_are_written_to_the_array_that_is_given(name):
    f, x = WRITTEN[name], X[:4]
    differences = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    for way in (value_and_grad(f), compile(value_and_grad(f))):
        value, derivative = way(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-14)
        np.testing.assert_allclose(derivative, differences, rtol=1e-6, atol=1e-8)
