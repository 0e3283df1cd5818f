"""Masked arrays: what is masked does not contribute, and `numpy.ma`'s own code says what is. Oracle: differences."""

import numpy as np
import pytest

from effgrad import check_grad, compile, grad, jvp, value_and_grad

X = np.array([1.0, 2.0, 3.0, 4.0])
MASKED = np.ma.array(X, mask=[0, 1, 0, 0])
BARE = np.ma.array(X)


def array(a, mask=(0, 1, 0, 0)):
    return np.ma.array(X * a, mask=mask)


def written(a):
    w = np.ma.zeros(4)
    for i in range(4):
        w[i] = a * i if i != 2 else np.ma.masked
    return (w**2).sum()


def unmasked(a):
    w = array(a)
    w.mask[1] = False
    return w.sum()


def masked_later(a):
    w = np.ma.array(X * a)
    w[1:3] = np.ma.masked
    return w.sum() * w.count()


def outside_a_domain(a):
    w = np.log(array(a) - 2.0)
    return w.sum() * w.count()


def filter_of_measurements(a):
    """The likelihood of a random walk, some of whose measurements are missing: Kalman's filter."""
    mean, variance, total = 0.0, 1.0, 0.0
    for z in np.ma.array(np.arange(6.0), mask=[0, 0, 1, 0, 0, 0]):
        variance = variance + a
        if z is not np.ma.masked:
            total += -((z - mean) ** 2) / (variance + 0.5) - np.log(variance + 0.5)
            gain = variance / (variance + 0.5)
            mean, variance = mean + gain * (z - mean), (1 - gain) * variance
    return total


def anomalies(a):
    field = np.cos(np.arange(24.0)).reshape(4, 6)
    field[0, 1] = np.nan
    known = np.ma.masked_invalid(field)
    away = known * a - known.mean(axis=1, keepdims=True) * a**2
    return np.ma.average(away**2, axis=1, weights=np.arange(1.0, 7.0)).std()


PROGRAMS = {
    "a constant without a mask": lambda a: (BARE - a * X).sum(),
    "a constant on the right": lambda a: (a * X - BARE).sum(),
    "a constant with a mask": lambda a: (MASKED * a**2).mean(),
    "made of traced values": lambda a: array(a).mean(),
    "filled": lambda a: array(a).filled(a**2).sum(),
    "data": lambda a: array(a).data.sum() + np.ma.getdata(array(a)).max(),
    "compressed": lambda a: array(a).compressed() @ np.arange(3.0),
    "np.sum": lambda a: np.sum(array(a)) * np.prod(array(a)),
    "np.mean": lambda a: np.mean(array(a)) * np.std(array(a)),
    "np.median": lambda a: np.median(array(a, (0, 0, 0, 1))) + np.ma.median(array(a)),
    "ties under the mask": lambda a: np.max(np.ma.array([a**2, a**2], mask=[1, 0])),
    "a method": lambda a: array(a).cumsum().sum() + array(a).var() + array(a).max() - array(a).min(),
    "np.sort": lambda a: np.sort(array(-a)).sum() + np.ma.sort(array(a))[0],
    "a ufunc": lambda a: np.sin(array(a)).sum() + np.maximum(array(a), 2.0).sum(),
    "outside a domain": outside_a_domain,
    "a function of np.ma": lambda a: np.ma.log(np.ma.array(X * a - 2.0)).sum(),
    "a quotient by zero": lambda a: (np.ma.array([1.0, 2.0]) / np.ma.array([0.0, a])).sum(),
    "a condition on values": lambda a: np.ma.masked_greater(X * a, 3.0).sum(),
    "masked_where": lambda a: np.ma.masked_where(X > 3, array(a)).sum(),
    "invalid": lambda a: np.ma.masked_invalid(np.array([np.nan, 1.0, 2.0]) * a).sum(),
    "a mask as an index": lambda a: (lambda w: w[w > 2.0].sum())(array(a)),
    "by columns": lambda a: np.ma.array(np.outer(X, X) * a, mask=np.eye(4)).mean(axis=0).filled(-1) @ X,
    "joined": lambda a: np.ma.concatenate([array(a), array(a**2)]).sum() + np.ma.vstack([array(a), MASKED]).mean(),
    "correlated": lambda a: np.ma.corrcoef(array(a) ** 2 + X, np.ma.array(X[::-1] ** 1.5))[0, 1],
    "differences": lambda a: np.ma.ediff1d(array(a)).sum() + np.diff(array(a, 0)).sum(),
    "products": lambda a: np.ma.dot(array(a), X) + (np.eye(4) * a) @ BARE @ X,
    "linear algebra": lambda a: np.linalg.solve(np.eye(4) * a + 1, BARE * a) @ X + np.linalg.norm(array(a)),
    "flat": lambda a: sum(item for item in array(a).flat if item is not np.ma.masked),
    "reshaped": lambda a: array(a).reshape(2, 2).T.sum(axis=0)[1],
    "in place": lambda a: (lambda w: w.__imul__(a).sum())(array(a)),
    "range": lambda a: np.ptp(array(a)) + np.ma.polyfit(X, array(a), 1)[0],
    "written": written, "unmasked": unmasked, "masked later": masked_later, "anomalies": anomalies,
    "filter of measurements": filter_of_measurements,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_derivatives(name):
    f, a, step = PROGRAMS[name], 1.3, 1e-4
    value, slope = value_and_grad(f)(a)
    assert value == f(a)
    check_grad(f, a)
    assert jvp(f, (a,), (1.0,))[1] == pytest.approx(slope, rel=1e-12, abs=1e-12)
    second = (8 * (grad(f)(a + step) - grad(f)(a - step)) - grad(f)(a + 2 * step) + grad(f)(a - 2 * step)) / (12 * step)
    assert grad(grad(f))(a) == pytest.approx(second, rel=1e-7, abs=1e-7)


BY_VALUES = {
    "a condition on values", "a mask as an index", "outside a domain", "a function of np.ma", "a quotient by zero",
    "correlated",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - BY_VALUES))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_compiled(name):
    f = PROGRAMS[name]
    compiled = compile(grad(f))
    for a in (1.3, 1.4):
        assert compiled(a) == pytest.approx(grad(f)(a), rel=1e-12)


class Named(np.ndarray):
    def __array_finalize__(self, other):
        self.name = getattr(other, "name", None)


@pytest.mark.parametrize("copy", [True, None, False])
def test_a_copy_keeps_its_class(copy):
    """`np.array(x, subok=True)` of an array that holds traced values was an error of ours."""

    def f(a):
        first = (X * a).view(Named)
        first.name = "speed"
        second = np.array(first, copy=copy, subok=True)
        second[0] = 5.0
        assert type(second) is Named and second.name == "speed"
        return second.sum() + first[0]

    assert grad(f)(2.0) == (10.0 if copy else 9.0)
    np.testing.assert_array_equal(value_and_grad(f)(2.0)[0], f(2.0))
