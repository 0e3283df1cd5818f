"""The arrays that compiled functions return lie in memory with their axes in the order of NumPy's result.

The oracle is the program in plain NumPy. What a caller does with a result depends on its layout: in which order a sum
adds, and whether a `ravel` is a view.
"""

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.stats
from random_programs import random_program
from row_table import PATHS, check_calls

from effgrad import EffgradError, compile, jvp, value_and_grad, vmap

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).uniform(0.2, 0.8, (3, 4))


def arrays(result):
    """The arrays in a nested result."""
    if isinstance(result, tuple | list):
        return [array for part in result for array in arrays(part)]
    return [result] if isinstance(result, np.ndarray) else []


def order(array):
    """The axes of two elements and more, from the smallest stride to the largest, each with the sign of its stride.

    Axes along which elements repeat have the place that NumPy gives them in a result.
    """
    array = array == array if 0 in array.strides else array
    axes = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
    return [(axis, np.sign(array.strides[axis])) for axis in sorted(axes, key=lambda axis: abs(array.strides[axis]))]


def check_layouts(f, x, compiled):
    expected, found = arrays(f(x)), arrays(compiled(x))
    for one, other in zip(expected, found, strict=True):
        assert order(other) == order(one), (one.strides, other.strides)
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
        assert other.flags.writeable


FORMS = {
    "in C order": lambda x: x, "in column order": np.asfortranarray, "reversed": lambda x: x[:, ::-1],
    "with gaps": lambda x: np.repeat(x, 2, 1)[:, ::2], "transposed": lambda x: x.T,
}  # fmt: skip

PROGRAMS = {
    "the argument": lambda x: x,
    "transpose": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-1],
    "one axis reversed": lambda x: np.sin(x)[:, ::-1].T,
    "computed from a transpose": lambda x: np.exp(x.T) * 2,
    "column order": lambda x: np.asfortranarray(x) + 1,
    "sums": lambda x: (np.sum(x, 0), np.sum(x[None] * x[:, None], 1), np.sum(x.T[None] * np.ones((2, 1, 1)), 0)),
    "products": lambda x: (x.T @ x, x @ x.T, np.einsum("ij,kj->ik", x, x), np.einsum("ij->ji", x)),
    "stacks": lambda x: (np.stack([x.T, x.T]), np.concatenate([x.T, x.T]), np.stack([x, x], -1)),
    "axes moved": lambda x: (np.moveaxis(np.stack([x, x]), 0, 2), np.swapaxes(x[None] * x[:, None], 0, 2)),
    "a written array": lambda x: written(x, "F"),
    "a constant": lambda x: (x, np.arange(6.0).reshape(2, 3).T),
    "repeated": lambda x: (np.broadcast_to(x, (2, *x.shape)).T * 1.0, np.repeat(x, 2).reshape(-1, 2).T),
    "numbers": lambda x: (x.T.astype(np.float32), x.T > 0.5, x.T * 1j),
    "sorted": lambda x: (np.sort(x.T, 0), np.cumsum(x.T, 1), np.where(x.T > 0.5, x.T, 0.0)),
    "a vector": lambda x: np.ravel(x)[::-1],
    "reshaped in column order": lambda x: in_memory(np.reshape(x, x.shape[::-1], order="F")),
    "gathered by a transpose": lambda x: in_memory(np.ravel(x)[np.arange(12).reshape(3, 4).T]),
    "gathered by repeated places": lambda x: in_memory(np.ravel(x)[np.broadcast_to([[5], [1]], (2, 3))]),
    "a distribution": lambda x: in_memory(scipy.stats.norm.cdf(x)),
    "a transform": lambda x: in_memory(scipy.fft.fft2(x.T)),
    "eigenvectors": lambda x: in_memory(np.abs(scipy.linalg.eigh(x @ x.T)[1])),
}


def in_memory(y):
    return y, np.ravel(y, order="K")


def written(x, form):
    a = np.zeros(x.shape, order=form)
    a[1] = x[0]
    return a, a.T, a[:, 1:].T


@pytest.mark.thinned(4)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_lie_as_numpys(name, form, backend):
    f, x = PROGRAMS[name], FORMS[form](X)
    compiled = compile(f, backend)
    for _ in range(2):  # staged, and run
        check_layouts(f, x, compiled)
    check_layouts(f, x, compile(lambda x: jvp(f, (x,), (x,))[0], backend))


@pytest.mark.parametrize("form", ["in C order", "reversed", "with gaps"])
def test_members_are_reshaped_in_column_order_as_numpy_does(form):
    f, x = PROGRAMS["reshaped in column order"], np.stack([FORMS[form](X), FORMS[form](X)])
    for one, member in zip(f(x[0]), vmap(f)(x), strict=True):
        np.testing.assert_array_equal(member[0], one)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_values_of_large_arrays_lie_as_numpys(seed):
    f, x = random_program(seed), np.asfortranarray(np.random.default_rng(seed).uniform(-1, 1, (160, 120)))
    compiled = compile(lambda x: (f(x), x.T * 2, np.sum(x[:, :, None] * x[0], 0)))
    check_layouts(compiled.__wrapped__, x, compiled)


def test_a_loop_leaves_its_arrays_as_numpy_does():
    def f(x):
        a, b = np.zeros((4, 3)), x.T * 1.0
        for i in range(3):
            a = a + np.sin(x.T) * i
            b[i] = a[i]
        return a, b, a.T, b[::-1]

    check_layouts(f, X, compile(f))


def test_a_loop_and_its_reverse_leave_their_arrays_as_numpy_does():
    def f(x):
        a = np.zeros((4, 3))
        for i in range(40):
            a = a * 0.9 + np.sin(x.T) * i / 40 * np.tanh(a)
            a[i % 4] = a[i % 4] * 1.1 + x[:, 0]
        return np.sum(a**2), (a.T * 1.0, x.T)

    compiled = compile(value_and_grad(f, has_aux=True))
    check_layouts(f, X, lambda x: compiled(x)[0])
    assert any(node.primitive.name == "run_backward" for node in compiled.path(X).graph)


def test_each_type_of_argument_has_its_own_layout():
    compiled = compile(np.sin)
    for form in FORMS.values():
        check_layouts(np.sin, form(X), compiled)


def test_a_result_may_be_a_gradient():
    def f(w):
        return np.sum(np.tanh(X.T @ w.T))

    compiled, w = compile(value_and_grad(f)), np.ones((2, 3))
    check_layouts(value_and_grad(f), w, compiled)


def check_row(program, x, text, rng):
    for name in FORMS if np.ndim(x) == 2 else ["in C order"]:
        form = FORMS[name](x)
        try:
            expected = program(form)
        except Exception:  # the library rejects the form
            continue
        try:
            found = compile(program, "numpy")(form)
        except (EffgradError, ValueError, np.linalg.LinAlgError):
            continue
        for one, other in zip(arrays(expected), arrays(found), strict=True):
            if one.size and np.ndim(one) > 1:
                assert order(other) == order(one), (text, name, one.strides, other.strides)


@pytest.mark.sweep
@pytest.mark.parametrize("path", PATHS)
def test_results_of_every_row_lie_as_the_librarys(path):
    check_calls(check_row, path, range(2))
