"""Derivatives in an argument at the value where SciPy's Python takes a shortcut, against differences.

The shortcut leaves out a division by 1, say.
"""

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.stats
from differences import parts

from effgrad import NoRule, compile, grad, jvp

X = np.array([1.0, 2.0, 4.0, 7.0])
SYSTEM = [1.0, 2.0], [1.0, 0.5, 0.2]
NODES = np.arange(5.0)
VALUES = np.sin(NODES) + NODES**2
THROUGH = {
    name: getattr(scipy.interpolate, name)
    for name in ("BarycentricInterpolator", "KroghInterpolator", "FloaterHormannInterpolator", "AAA", "lagrange")
    if hasattr(scipy.interpolate, name)
}
SHORTCUTS = {
    "iqr": (lambda s: scipy.stats.iqr(X, scale=s), 1.0),
    "lfiltic": (lambda a: scipy.signal.lfiltic([1.0, 2.0], a, [0.3, 0.4], [0.1, 0.2]), [1.0, 0.5, 0.2]),
    "lp2hp": (lambda w: scipy.signal.lp2hp(*SYSTEM, w), 1.0),
    "lp2lp": (lambda w: scipy.signal.lp2lp(*SYSTEM, w), 1.0),
    "lsim": (lambda u: scipy.signal.lsim(SYSTEM, u, np.arange(4.0))[1:], np.zeros(4)),
    "lsim from a state": (lambda u: scipy.signal.lsim(SYSTEM, u, np.arange(4.0), [0.3, 1.0])[1:], np.zeros(4)),
    "lsim, steps": (lambda u: scipy.signal.lsim(SYSTEM, u, np.arange(4.0), interp=False)[1:], np.zeros(4)),
    "yeojohnson at 0": (lambda c: scipy.stats.yeojohnson([1.0, 2.0, -4.0], c), 0.0),
    "yeojohnson at 2": (lambda c: scipy.stats.yeojohnson([1.0, 2.0, -4.0], c), 2.0),
    "yeojohnson_llf": (lambda c: scipy.stats.yeojohnson_llf(c, np.array([1.0, 2.0, -4.0])), 0.0),
    "boxcox": (lambda c: scipy.stats.boxcox(X, c), 0.0),
    "boxcox_llf of a list": (lambda c: scipy.stats.boxcox_llf(c, [1.0, 2.0, 5.0]), 0.0),
    "filters": (lambda a: scipy.signal.lfilter([1.0, 2.0], a, X), [1.0, 0.5, 0.2]),
    "zi": (lambda a: scipy.signal.lfilter_zi([1.0, 2.0], a), [1.0, 0.5, 0.2]),
    "filtfilt": (lambda a: scipy.signal.filtfilt([1.0, 2.0], a, np.arange(20.0)), [1.0, 0.5, 0.2]),
    "normalize": (lambda a: scipy.signal.normalize([1.0, 2.0], a), [1.0, 0.5, 0.2]),
    "tf2ss": (lambda a: scipy.signal.tf2ss([1.0, 2.0], a), [1.0, 0.5, 0.2]),
    "moment": (lambda c: scipy.stats.moment(X, 3, center=c), 0.0),
    "chirp": (lambda f: scipy.signal.chirp(np.array([0.3, 0.8]), f, 1.0, 1.0, method="log"), 1.0),
    "chirp to": (lambda f: scipy.signal.chirp(np.array([0.3, 0.8]), 1.0, 1.0, f, method="log"), 1.0),
    **{f"{name} at nodes": (lambda t, make=make: make(NODES, VALUES)(t), [1.0, 2.0, 2.3])
       for name, make in THROUGH.items()},
    **{f"nodes of {name}": (lambda x, make=make: make(x, VALUES)(np.array([2.0, 2.3])), NODES)
       for name, make in THROUGH.items()},
    "a derivative at nodes": (lambda t: scipy.interpolate.BarycentricInterpolator(NODES, VALUES).derivative(t), [2.0]),
    "barycentric_interpolate": (lambda t: scipy.interpolate.barycentric_interpolate(NODES, VALUES, t), 2.0),
    "fiedler_companion": (lambda a: scipy.linalg.fiedler_companion(a), [1.0, 2.0, 3.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORTCUTS)
def test_no_derivative_is_lost_at_the_value_of_a_shortcut(name):
    f, x = SHORTCUTS[name][0], np.asarray(SHORTCUTS[name][1])
    u = np.cos(1 + np.arange(x.size)).reshape(x.shape)
    at = lambda step: parts(f(x + step * u))  # noqa: E731
    expected = (8 * (at(1e-3) - at(-1e-3)) - at(2e-3) + at(-2e-3)) / 12e-3
    assert np.max(np.abs(expected)) > 0.01
    value, found = jvp(f, (x,), (u,))
    np.testing.assert_array_equal(parts(value), parts(f(x)))
    np.testing.assert_allclose(parts(found), expected, rtol=1e-6, atol=1e-8)
    slope = lambda step: parts(jvp(f, (x + step * u,), (u,))[1])  # noqa: E731
    second = (8 * (slope(1e-3) - slope(-1e-3)) - slope(2e-3) + slope(-2e-3)) / 12e-3
    np.testing.assert_allclose(parts(jvp(lambda x: jvp(f, (x,), (u,))[1], (x,), (u,))[1]), second, rtol=1e-5, atol=1e-6)
    weights = np.cos(np.arange(expected.size))
    total = lambda x: sum(np.sum(w * y) for w, y in zip(weights, np.split(flat(f(x)), len(weights)), strict=True))  # noqa: E731
    np.testing.assert_allclose(np.sum(grad(total)(x) * u), weights @ expected, rtol=1e-6)
    np.testing.assert_allclose(np.sum(compile(grad(total))(x) * u), weights @ expected, rtol=1e-6)


def flat(result):
    return np.concatenate([flat(r) for r in result]) if isinstance(result, tuple) else np.ravel(result)


@pytest.mark.parametrize("value", [-1.0, 0.0, 1.0])
def test_a_power_of_a_divergence_that_has_its_own_formula_is_refused(value):
    with pytest.raises(NoRule, match="lambda_ beside"):
        grad(lambda c: scipy.stats.power_divergence(X, X[::-1].copy(), lambda_=c)[0])(value)
    f = lambda c: scipy.stats.power_divergence(X, X[::-1].copy(), lambda_=c)[0]  # noqa: E731
    np.testing.assert_allclose(grad(f)(value + 0.3), (f(value + 0.3 + 1e-6) - f(value + 0.3 - 1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("test", [scipy.stats.skewtest, scipy.stats.normaltest])
def test_symmetric_data_whose_skewness_is_replaced_are_refused(test):
    """Their derivative was 0; SciPy takes another statistic where the skewness is 0 than beside it."""
    f = lambda x: test(x).statistic  # noqa: E731
    x = np.array([1.0, 2.0, 3.5, 4.0, 5.0, 7.0, 8.0, 9.0, 12.0])
    for derivative in (grad(f), compile(grad(f))):
        with pytest.raises(NoRule, match="not symmetric"):
            derivative(np.arange(1.0, 10.0))
        np.testing.assert_allclose(derivative(x) @ x, (f(x + 1e-6 * x) - f(x - 1e-6 * x)) / 2e-6, atol=1e-7)
