"""Each row of a function: what the library says of a call holds under derivatives, or the call is refused by name.

The calls are those of `benchmarks.fuzz_calls`: several shapes, layouts and dtypes, options by position or by name.
Their judge compares values with the library's to the bit, and derivatives, first and second, with differences.
"""

import inspect

import numpy as np
import pytest
import scipy.special as sp
from benchmarks import fuzz_calls
from differences import directional, parts
from row_table import PATHS as ALL_PATHS
from row_table import TABLE, check_calls, generator
from runs import exhaustive
from scipy.interpolate import LinearNDInterpolator, griddata
from scipy.special import logsumexp

from effgrad import EffgradError, grad, jvp

pytestmark = pytest.mark.filterwarnings("ignore")
# The points are taken in an order that is drawn; left of 0, the imaginary part of SciPy's value is not the integral's;
# the inverse in a noncentrality is right to 1e-7.
UNDEFINED = "arycentric modfresnel ncfdtrinc".split()
PATHS = [path for path in ALL_PATHS if not any(name in path for name in UNDEFINED)]


def wrong(outcome):
    return outcome[:3] in ("WRO", "RAW")


def check(program, x, text, rng):
    outcome = fuzz_calls.outcome(program, x, rng)
    assert not wrong(outcome), f"{outcome}: {text}"


@pytest.mark.parametrize("name, n, axis, unset", [
    ("irfft", 5, -1, True), ("hfft", 2, 1, True), ("irfft", None, -1, False), ("irfft", 5, 0, False),
    ("rfft", 5, -1, False),
])  # fmt: skip
def test_the_judge_tells_results_that_are_unset_memory(name, n, axis, unset):
    """The transform of an empty view shows what lies in the memory behind it."""
    arguments = {"a": np.full((2, 8), 3 + 0j)[:, :0], "n": n, "axis": axis}
    assert fuzz_calls.reads_unset_memory(f"numpy.fft.{name}", arguments) is unset
    if (name, unset) == ("irfft", True):
        assert np.fft.irfft(**arguments)[0, 0] == 3


@pytest.mark.thinned(40)
@pytest.mark.parametrize("path", PATHS)
def test_calls_are_right_or_refused(path):
    check_calls(check, path, range(5 if exhaustive() else 1))


OF_MATRICES = [path for path in PATHS if ".linalg." in path]


@pytest.mark.parametrize("path", [path for path in OF_MATRICES if "linalg.lu" in path] + OF_MATRICES[::10])
def test_a_compiled_decomposition_has_the_shapes_and_dtypes_of_the_librarys(path):
    """Those of a complex matrix of one element were real in `scipy.linalg.lu`: SciPy's permutation is complex there."""
    rng = generator(path)
    required, _ = TABLE[path]
    drawn = {name: draw(rng, {}) for name, draw in list(required.items())[:1]}
    for dtype in (np.float64, np.complex128, np.complex64):
        for n in (1, 3):
            x = (np.eye(n) * 2 + rng.uniform(0, 0.1, (n, n)) * (1 + 0.5j if dtype != np.float64 else 1)).astype(dtype)
            if np.ndim(next(iter(drawn.values()))) < 2 or len(required) > 1:
                continue
            program = fuzz_calls.function_of(path)
            try:
                value = program(x)
            except (TypeError, ValueError, NotImplementedError):
                continue
            assert not fuzz_calls.of_compiled_value(program, x, x, value), (path, dtype, n)


@pytest.mark.sweep
@pytest.mark.parametrize("path", PATHS)
def test_a_compiled_call_has_the_shape_and_dtype_of_the_librarys(path):
    def check(program, x, text, rng):
        try:
            value = program(x)
        except Exception:
            return
        assert not fuzz_calls.of_compiled_value(program, x, np.ones_like(x), value), text

    check_calls(check, path, range(10, 13))


def undrawn(path):
    """The parameters of a function that the table does not draw, with values of the kinds that they may have."""
    required, options = TABLE[path]
    try:
        parameters = inspect.signature(fuzz_calls.function_of(path)).parameters.values()
    except ValueError:
        return
    for p in parameters:
        known = p.name in required or p.name in options or p.name in ("out", "plot", "callback", "tol")
        if known or p.name.startswith("overwrite") or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
            continue
        if isinstance(p.default, bool):
            yield p.name, not p.default
        elif isinstance(p.default, int):
            yield p.name, p.default + 1
        elif isinstance(p.default, float):
            yield p.name, p.default + 0.25
        elif p.default is None:
            yield from ((p.name, value) for value in (0.5, True, 2, np.array([0.3, 0.6])))


def check_undrawn(path, name, value):
    required, _ = TABLE[path]
    rng, values = generator(path), {}
    for key, draw in required.items():
        values[key] = draw(rng, values)
    values[name] = value
    for traced in [key for key, given in values.items() if fuzz_calls.is_float(given)]:

        def program(x, traced=traced):
            return fuzz_calls.function_of(path)(**{**values, traced: x})

        arrays = [given for given in values.values() if isinstance(given, np.ndarray)]
        program.single = any(array.dtype.char in "fF" for array in arrays)
        with np.errstate(all="ignore"):
            outcome = fuzz_calls.outcome(program, values[traced], rng)
        # NumPy and SciPy reject some values by their type alone.
        assert outcome.startswith("WRONG: accepted") or not wrong(outcome), f"{outcome}: {path} {name}={value!r}"


FUNCTIONS = [path for path in PATHS if next(undrawn(path), None) and not (
    path.startswith("scipy.stats.") and path.count(".") > 2)]  # fmt: skip


@pytest.mark.thinned(25)
@pytest.mark.parametrize("path", FUNCTIONS)
def test_an_argument_that_is_not_declared_is_right_or_refused(path):
    for name, value in undrawn(path):
        check_undrawn(path, name, value)


# What these calls have found.

RNG = np.random.default_rng(5)
A, COLUMN = RNG.normal(size=(4, 3)), RNG.normal(size=4)
C = A + 1j * RNG.normal(size=A.shape)
SYMMETRIC = A[:3] + A[:3].T
TWICE = np.diag([3.0, 3.0, 1.0])
POINTS, HEIGHTS = RNG.uniform(0, 1, (9, 2)), RNG.normal(size=9)
AT = np.array([[0.4, 0.5], [3.0, 0.6]])
LEAVING_OUT = {
    "pinv": (lambda a: np.linalg.pinv(a, rcond=0.5), A),
    "pinv of a wide matrix": (lambda a: np.linalg.pinv(a, rtol=0.5), A.T),
    "complex pinv": (lambda a: np.linalg.pinv(a, rcond=0.6), C),
    "a batch": (lambda a: np.linalg.pinv(a, rcond=np.array([0.1, 0.6])), np.stack([A, 2 * A[::-1]])),
    "equal values": (lambda a: np.linalg.pinv(a, rcond=0.5), TWICE),
    "Hermitian pinv": (lambda a: np.linalg.pinv(a, rcond=0.6, hermitian=True), SYMMETRIC),
    "lstsq": (lambda a: np.linalg.lstsq(a, COLUMN, rcond=0.5)[0], A),
    "lstsq, a limit of 1": (lambda a: np.linalg.lstsq(a, COLUMN, rcond=1)[0], A),
    "polyfit": (lambda y: np.polyfit(y, COLUMN, 2, rcond=0.5), COLUMN[::-1]),
    "the sign of a complex sum": (lambda a: logsumexp(a, axis=0, return_sign=True)[1], C),
    "full_like by name": (lambda t: np.full_like(A, fill_value=t, subok=False), 0.5),
    "griddata beyond": (lambda t: griddata(POINTS, HEIGHTS, AT, fill_value=t), 0.5),
    "triangles beyond": (lambda t: LinearNDInterpolator(POINTS, HEIGHTS, fill_value=t)(AT), 0.5),
    "the slope of a spherical Bessel function": (lambda z: sp.spherical_jn(2, z, derivative=True), 1.9),
    "a mean of a list's choice": (lambda a: np.nanmean(a, axis=0, where=[[True], [False], [1], [1]]), A),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", LEAVING_OUT)
def test_first_and_second_derivatives(name):
    f, x = LEAVING_OUT[name]
    u = RNG.normal(size=np.shape(x)) + (1j * RNG.normal(size=np.shape(x)) if np.iscomplexobj(x) else 0)
    weights = RNG.normal(size=np.size(parts(f(x))))

    def scalar(x):
        return np.sum(weights * fuzz_calls.real_parts(f(x)))

    def slope(x):
        return np.real(np.sum(np.conj(grad(scalar)(x)) * u))

    for g in (scalar, slope):
        wanted = directional(g, x, u, step=1e-3)[0]
        np.testing.assert_allclose(jvp(g, (x,), (u,))[1], wanted, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(slope(x), jvp(scalar, (x,), (u,))[1], rtol=1e-10, atol=1e-12)


def test_an_elliptic_integral_beside_two_zeros_is_a_root():
    assert jvp(lambda z: sp.elliprg(0.0, z, 0.0), (1.7,), (1.0,))[1] == pytest.approx(0.25 / 1.7**0.5, rel=1e-14)
    assert jvp(lambda z: sp.elliprg(z, 1.7, 0.0), (0.0,), (1.0,))[1] == np.inf


def test_an_inverse_that_ends_at_0_is_constant():
    for f in (lambda p: sp.chndtrinc(0.28, 2.75, p), lambda p: sp.ncfdtrinc(2.0, 3.0, p, 0.1)):
        value, slope = jvp(f, (0.43,), (1.0,))
        assert 0 <= value < 1e-300
        assert slope == 0
    assert jvp(lambda p: sp.chndtrinc(9.0, 2.75, p), (0.43,), (1.0,))[1] < -1


def test_a_choice_of_elements_is_of_booleans():
    for where in (np.array([1, 0, 1, 1])[:, None], np.array([0.5])):
        with pytest.raises(TypeError, match="Cannot cast"):
            grad(lambda a, where=where: np.sum(a, where=where))(A)
    with pytest.raises(EffgradError, match="where"):
        grad(lambda t: np.sum(A, where=t))(0.5)
    np.testing.assert_array_equal(grad(lambda a: np.sum(a, where=None))(A), 0 * A)
