"""Compiled functions that catch errors: an error, or none, ends the path on which there was none, or one."""

import numpy as np
import pytest
import scipy.linalg

from effgrad import compile, grad

DEFINITE = np.array([[2.0, 1.0], [1.0, 3.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
SINGULAR = np.ones((2, 2))
X = np.arange(3.0)


def log_density(a):
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return -np.inf
    return -np.sum(np.log(np.diag(factor)))


def inverse(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.full_like(a, np.nan)


def factor_of_scipy(a):
    try:
        return scipy.linalg.cho_factor(a)[0]
    except np.linalg.LinAlgError:
        return a * 0


def slope(a):
    def loss(a):
        try:
            return np.sum(np.log(np.diag(np.linalg.cholesky(a))))
        except np.linalg.LinAlgError:
            return np.sum(a * a)

    return grad(loss)(a)


def element(x, i):
    try:
        return x[i]
    except IndexError:
        return -np.sum(x)


def written(x, i):
    try:
        y = x.copy()
        y[i] = 7.0
        return y
    except IndexError:
        return -x


def largest(x):
    try:
        return np.max(x[x > 1])
    except ValueError:
        return -1.0


def power(x, n):
    try:
        return x**n
    except ValueError:
        return x * 0


PROGRAMS = [
    (log_density, [(DEFINITE,), (INDEFINITE,), (2 * DEFINITE,), (INDEFINITE,)]),
    (inverse, [(DEFINITE,), (SINGULAR,), (INDEFINITE,), (SINGULAR,)]),
    (factor_of_scipy, [(DEFINITE,), (INDEFINITE,), (2 * DEFINITE,), (INDEFINITE,)]),
    (slope, [(DEFINITE,), (INDEFINITE,), (2 * DEFINITE,)]),
    (element, [(X, 1), (X, 5), (X, 2), (X, -4), (X, 0)]),
    (element, [(X, np.int64(1)), (X, np.int64(5)), (X, np.int64(2))]),
    (element, [(X, np.array(1)), (X, np.array(5)), (X, np.array(2))]),
    (written, [(X, np.array([0, 1])), (X, np.array([0, 3])), (X, np.array([-1, 1]))]),
    (largest, [(X,), (-X,), (X + 1,), (-X,)]),
    (power, [(np.array([1, 2]), np.array([1, 2])), (np.array([1, 2]), np.array([-1, 2])), (np.array([3, 2]),) * 2]),
]


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("f, calls", [(f, c) for f, calls in PROGRAMS for c in (calls, calls[1:] + calls)])
def test_a_caught_error_begins_another_path(f, calls, backend):
    """A Cholesky factor that failed in the first call failed in all: the program of the `except` ran for all matrices.

    One that failed in a later call raised its error, which the program would have caught.
    """
    compiled = compile(f, backend=backend)
    for args in calls:
        np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-13)


def test_paths_with_and_without_an_error_are_kept():
    compiled = compile(log_density)
    for _ in range(3):
        compiled(DEFINITE)
        compiled(INDEFINITE)
    assert "2 programs" in repr(compiled)


def test_errors_that_are_not_caught_reach_the_caller_each_time():
    compiled = compile(lambda a: np.linalg.inv(a) * 2)
    for _ in range(2):
        np.testing.assert_allclose(compiled(DEFINITE), np.linalg.inv(DEFINITE) * 2)
        with pytest.raises(np.linalg.LinAlgError):
            compiled(SINGULAR)
    assert "1 programs" in repr(compiled)


@pytest.mark.parametrize("f", [scipy.linalg.sqrtm, scipy.linalg.logm])
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_root_that_becomes_complex_begins_another_path(f, backend):
    """The root of a negative matrix was the real part of it, where the first matrix was positive."""
    calls = [DEFINITE, -DEFINITE, 2 * DEFINITE]
    for order in (calls, calls[::-1], calls[1:]):
        compiled = compile(lambda a: f(a) * 2, backend=backend)
        for a in order:
            expected = f(a) * 2
            found = compiled(a)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_caught_index_errors_as_source():
    """The source of an attempt to take an index wrote a slice as an argument, `index=::-1`."""

    def last(x, n):
        try:
            return np.asarray(n)[::-1]
        except IndexError:
            return x

    np.testing.assert_array_equal(compile(last, backend="numpy")(X, 2.0), X)


class Held:
    pass


def caught_by_the_caller(x):
    o, y = Held(), x * 1.0
    o.z, o.n = x[0] * 1.0, 0

    def grow():
        for _ in range(40):
            y[0] = y[0] * 1.05
            o.z = o.z * 1.04
            o.n += 1
            if y[0] > 2.0:
                raise ValueError("too large")

    try:
        grow()
    except ValueError:
        pass
    return np.sum(y) * o.z * o.n


def index_caught_by_the_caller(x):
    y, places = x * 1.0, np.array([0, 1, 2, 5])

    def fill():
        for k in range(40):
            y[places[k % 4]] = y[0] * 1.05

    try:
        fill()
    except IndexError:
        pass
    return np.sum(y)


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("f", [caught_by_the_caller, index_caught_by_the_caller], ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [(0.1, 0.7), (0.7, 0.1)])
def test_the_caller_of_a_loop_that_raises_sees_how_far_it_came(f, values):
    """The steps before the error were lost, if the first call raised it; later calls raised it where it is caught."""
    value_of, slope_of = compile(f), compile(grad(f))
    for value in values * 2:
        x = np.array([value, 0.3, 0.5])
        assert value_of(x) == pytest.approx(f(x), rel=1e-13)
        np.testing.assert_allclose(slope_of(x), grad(f)(x), rtol=1e-12)
