"""The values of functions in compiled programs and in batches, where their definitions may stand for them.

A derivative outside of these has the library's value. A compiled `scipy.signal.correlate2d` of complex arrays was its
conjugate, because a staged definition was not compared with it. The calls are those of `benchmarks.fuzz_calls`, their
traced argument in several dtypes and layouts; the oracle is the library itself.
"""

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
from benchmarks import fuzz_calls
from functions.test_every_row import PATHS
from row_table import check_calls

from effgrad import EffgradError, NoRule, compile, grad, jvp, vmap
from effgrad.primitives.given import as_computed

pytestmark = pytest.mark.filterwarnings("ignore")
# SciPy's `resample_poly` ends the process for some arrays without elements, and a cumulant of too few numbers is a
# rounding error over 0. Cubic interpolation ends SciPy's iterations at a tolerance.
ASIDE = "scipy.signal.resample_poly", "scipy.stats.kstat"
INEXACT = "scipy.interpolate.interpn", "scipy.interpolate.griddata", "scipy.interpolate.RegularGridInterpolator()"


def forms(x, rng):
    """The argument in other dtypes and layouts, and with one element."""
    x = np.asarray(x)
    yield x[()]
    if x.dtype.kind not in "fc":
        return
    real, imaginary = np.real(x).astype(float), x + 1j * rng.uniform(-1, 1, x.shape)
    yield real[()]
    yield real.astype(np.float32)[()]
    yield imaginary[()]
    if x.ndim:
        yield np.repeat(real, 2, axis=-1)[..., ::2]
        yield np.repeat(imaginary, 2, axis=0)[::-2]
        yield real[(slice(0, 1),) * x.ndim]
        yield imaginary[(slice(0, 1),) * x.ndim]
        yield np.asfortranarray(real)


def alike(found, wanted, program, x, path):
    """Whether results are equal up to rounding, which counts relative to the argument as well."""
    single = program.single or np.asarray(x).dtype.char in "fF"
    if fuzz_calls.alike(found, wanted, single):
        return True
    a, b = ([np.asarray(leaf) for leaf in fuzz_calls.leaves(y)] for y in (found, wanted))
    near = 1e-3 if path in INEXACT else 1e-5 if single else 1e-10
    return len(a) == len(b) and all(
        p.dtype == q.dtype and p.shape == q.shape
        and np.allclose(p, q, rtol=near, atol=near * np.max(np.abs(x), initial=0.0), equal_nan=True)
        for p, q in zip(a, b, strict=True)
    )  # fmt: skip


def members(program, x):
    """A stack of arguments, and what the library gives for each, if it gives results of one form."""
    stack = np.stack([x, x * 0.97, x])
    wanted = [list(fuzz_calls.leaves(program(member))) for member in stack]
    shapes = [[(np.shape(leaf), np.result_type(leaf)) for leaf in leaves] for leaves in wanted]
    return (stack, wanted) if shapes[0] == shapes[1] else (stack, [])


def check_batch(program, x, path):
    try:
        stack, wanted = members(program, x)
    except Exception:  # the library rejects one of them
        return
    try:
        found = list(fuzz_calls.leaves(vmap(program)(stack)))
    except EffgradError:
        return
    for place, leaves in enumerate(wanted):
        own = [np.asarray(leaf)[place] if np.ndim(leaf) else leaf for leaf in found]
        assert alike(own, leaves, program, stack[place], path), "vmap"


def check(program, x, path):
    try:
        value = program(x)
    except Exception:  # the library rejects this form
        return
    if program.unset:
        return
    u = np.ones_like(x)
    for run in (program, lambda x: jvp(program, (x,), (u,))[0]):
        try:
            found = compile(run, "numpy")(x)
        except EffgradError:
            continue
        assert alike(found, value, program, x, path), "compiled"
    check_batch(program, x, path)


@pytest.mark.thinned(60)
@pytest.mark.parametrize("path", [path for path in PATHS if path not in ASIDE])
def test_values_are_the_librarys_or_refused(path):
    def check_forms(program, given, text, rng):
        for x in forms(given, rng):
            check(program, x, path)

    check_calls(check_forms, path, range(2), 77)


# What these calls have found.


WAYS = {
    "eager": lambda f, x: grad(f)(x),
    "compiled": lambda f, x: compile(grad(f))(x),
    "batched": lambda f, x: vmap(f)(np.stack([x, x])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.complex128, np.float32, np.float64])
def test_a_definition_with_another_value_is_refused(way, dtype):
    """As where SciPy takes a conjugate in some cases only."""
    rule = as_computed(np.cumsum, lambda a: np.cumsum(-np.conj(a)))
    weights = np.array([1, 2j]).astype(dtype) if dtype is np.complex128 else np.array([1, 2], dtype)
    f = lambda x: np.real(np.sum(rule(x * weights)))  # noqa: E731
    with pytest.raises(NoRule, match="its definition has another value"):
        WAYS[way](f, np.array([0.5, 1.5], np.float32 if dtype is np.float32 else float))


def test_a_definition_without_the_librarys_nan_is_refused():
    rule = as_computed(lambda a: a * np.nan, lambda a: 2 * a)
    with pytest.raises(NoRule, match="its definition has another value"):
        compile(rule)(np.array([0.5, 1.5]))
    assert np.isnan(jvp(rule, (1.0,), (1.0,))[0])


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("f", [
    scipy.linalg.eig, scipy.linalg.svd, lambda a: scipy.linalg.svd(a[:3], full_matrices=False),
], ids=["eig", "svd", "thin svd"])  # fmt: skip
def test_vectors_in_single_precision_have_scipys_signs(f, dtype):
    """NumPy's differ from them in most matrices with five rows."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        a = (rng.normal(size=(5, 5)) + 1j * rng.normal(size=(5, 5))).astype(dtype)
        for found in (jvp(f, (a,), (a,))[0], compile(f, "numpy")(a), [y[0] for y in vmap(f)(a[None])]):
            for ours, theirs in zip(found, f(a), strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("order", "AKCF")
@pytest.mark.parametrize("layout", [np.array, np.asfortranarray, np.stack])
def test_members_of_a_batch_keep_the_order_of_their_axes(layout, order):
    """Members of a stack of Fortran arrays were in C order, in which "A" and "K" read other elements first."""
    stack = layout([np.asfortranarray(np.arange(6.0).reshape(2, 3) + k) for k in range(2)])
    doubled = [] if layout is np.asfortranarray and order == "A" else [lambda a: np.ravel(a * 2, order=order)]
    for f in (lambda a: np.ravel(a, order=order), *doubled):
        np.testing.assert_array_equal(vmap(f)(stack), [f(member) for member in stack])


def test_writes_to_a_member_in_single_precision_keep_its_dtype():
    def f(x):
        y = x * np.complex64(1j)
        y[:1] *= 2.0
        y[2:] = 0.0
        return y

    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(vmap(f)(x), f(x[0])[None].repeat(2, axis=0))
    assert vmap(f)(x).dtype == np.complex64 == vmap(scipy.signal.hilbert2)(np.ones((1, 3, 4), np.float32)).dtype


def test_a_number_of_python_is_put_into_single_precision():
    def f(x):
        y = x * np.float32(2)
        np.putmask(y, [True, False], 2.5)
        return y

    np.testing.assert_array_equal(jvp(f, (np.ones(2, np.float32),), (np.ones(2, np.float32),)), [[2.5, 2], [0, 2]])


def test_numpy_rejects_a_complex_number_that_a_compiled_program_inserts():
    """It was a RecursionError."""
    with pytest.raises(TypeError, match="complex"):
        compile(lambda v: np.insert(np.arange(3.0), 1, v), "numpy")(1 + 2j)


def test_a_signal_shorter_than_the_divisor_has_scipys_list():
    assert vmap(lambda s: scipy.signal.deconvolve(s, np.array([1.0, 2.0])))(np.array([[1.0]]))[0] == []
