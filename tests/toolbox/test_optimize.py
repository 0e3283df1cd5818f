"""Optimisers with derivatives supplied find what SciPy finds, for pytrees too, and say what they did."""

import sys
import types

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, rosen, rosen_der, rosen_hess

import effgrad
from effgrad import optimize
from effgrad.toolbox import evaluations

START = np.array([-1.2, 1.0, 0.7, 1.3])
METHODS = {
    **dict.fromkeys(["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"], "the gradient, in one run with the value"),
    **dict.fromkeys(["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"], "and products with the Hessian"),
    **dict.fromkeys(["dogleg", "trust-exact"], "and the Hessian"),
}


def valley(p):
    return valley_of_vector(np.concatenate([p["head"], [p["tail"]]]))


def valley_of_vector(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_minimum_in_a_pytree(method):
    result = optimize.minimize(valley, {"head": np.full(3, 1.02), "tail": 1.05}, method=method)
    np.testing.assert_allclose(np.append(result.x["head"], result.x["tail"]), np.ones(4), atol=2e-3)
    assert METHODS[method] in result.supplied and result.supplied.startswith(method)
    assert len(result.history) == result.nfev and min(result.history) == pytest.approx(result.fun, abs=1e-12)


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-exact"])
def test_the_same_steps_as_with_derivatives_by_hand(method):
    by_hand = {"Newton-CG": {"hess": rosen_hess}, "trust-exact": {"hess": rosen_hess}}.get(method, {})
    expected = scipy.optimize.minimize(rosen, START, jac=rosen_der, method=method, **by_hand)
    result = optimize.minimize(valley_of_vector, START, method=method)
    assert result.nit == pytest.approx(expected.nit, abs=2)
    np.testing.assert_allclose(result.x, expected.x, atol=1e-5)


def test_methods_without_derivatives_get_none():
    result = optimize.minimize(lambda x: np.sum((x - 1) ** 2), np.zeros(2), method="Nelder-Mead")
    assert "uses no derivatives" in result.supplied
    np.testing.assert_allclose(result.x, 1.0, atol=1e-3)


def test_bounds_constraints_and_further_arguments():
    def f(x, a):
        return np.sum((x - a) ** 2)

    bounded = optimize.minimize(f, np.zeros(2), (np.array([2.0, 3.0]),), bounds=[(0, 1), (0, 5)])
    np.testing.assert_allclose(bounded.x, [1.0, 3.0], atol=1e-5)
    assert bounded.supplied.startswith("L-BFGS-B")
    circle = {"type": "eq", "fun": lambda x: np.sum(x**2) - 1.0}
    for method, constraint in [
        (None, circle), ("trust-constr", NonlinearConstraint(lambda x: [np.sum(x**2)], 1.0, 1.0)),
    ]:  # fmt: skip
        result = optimize.minimize(f, np.array([1.0, 0.2]), (3.0,), method, constraints=constraint)
        np.testing.assert_allclose(result.x, [0.5**0.5] * 2, atol=1e-4)
        assert result.supplied.endswith("; the Jacobians of the constraints")


@pytest.mark.parametrize("bounds", [
    {"a": (0, 1), "b": (-1.0, [0.5, 9.0])},
    {"a": (None, 1), "b": [(None, 0.5), (-1.0, None)]},
    [(None, 1), (None, 0.5), (None, None)],
], ids=["of leaves", "of elements", "of the vector"])  # fmt: skip
def test_bounds_like_the_start(bounds):
    def f(p):
        return (p["a"] - 2.0) ** 2 + np.sum((p["b"] - 3.0) ** 2)

    start = {"a": 0.3, "b": np.zeros(2)}
    found = optimize.minimize(f, start, bounds=bounds).x
    np.testing.assert_allclose([found["a"], *found["b"]], [1.0, 0.5, 3.0], atol=1e-6)
    if isinstance(bounds, dict):
        fitted = optimize.least_squares(lambda p: [p["a"] - 2.0, p["b"] - 3.0], start, bounds=bounds).x
        np.testing.assert_allclose([fitted["a"], *fitted["b"]], [1.0, 0.5, 3.0], atol=1e-6)


def test_a_fit_of_parameters_in_a_dictionary():
    def model(t, p):
        return p["size"] * np.exp(-p["rates"][0] * t) + p["rates"][1]

    y = model(T, {"size": 2.0, "rates": np.array([1.3, 0.5])})
    found, covariance = optimize.curve_fit(model, T, y, {"size": 1.0, "rates": np.ones(2)})
    np.testing.assert_allclose([found["size"], *found["rates"]], [2.0, 1.3, 0.5], rtol=1e-8)
    assert covariance.shape == (3, 3)


def residuals(p, t, y):
    return p["scale"] * np.exp(-p["rates"][0] * t) + p["rates"][1] - y


def test_least_squares_and_curve_fit():
    t = np.linspace(0, 3, 40)
    y = 2.5 * np.exp(-1.3 * t) + 0.4
    start = {"scale": 1.0, "rates": np.array([1.0, 0.0])}
    result = optimize.least_squares(residuals, start, args=(t, y))
    np.testing.assert_allclose([result.x["scale"], *result.x["rates"]], [2.5, 1.3, 0.4], rtol=1e-6)
    assert result.supplied == "trf: the Jacobian" and result.nfev < 30
    noisy = y + 0.01 * np.random.default_rng(0).normal(size=40)
    found, covariance = optimize.curve_fit(lambda t, a, b, c: a * np.exp(-b * t) + c, t, noisy, (1.0, 1.0, 0.0))
    expected = scipy.optimize.curve_fit(lambda t, a, b, c: a * np.exp(-b * t) + c, t, noisy, (1.0, 1.0, 0.0))
    np.testing.assert_allclose(found, expected[0], rtol=1e-6)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-4)


@pytest.mark.parametrize("n, kind", [(80, "Jacobian"), (1200, "sparse Jacobian")])
def test_large_least_squares_have_jacobians_from_few_products(n, kind):
    def broyden(x):
        wide = np.pad(x, 1)
        return (3 - 2 * x) * x - wide[:-2] - 2 * wide[2:] + 1

    result = optimize.least_squares(broyden, -np.ones(n))
    assert result.supplied == f"trf: the {kind}, from 3 products" and result.cost < 1e-10 and result.nfev < 12


def test_roots():
    def f(p, c):
        return {"sum": p["u"] + p["v"] - 3, "product": p["u"] * p["v"] - c}

    result = optimize.root(f, {"u": 5.0, "v": 0.0}, (2.0,))
    np.testing.assert_allclose([result.x["u"], result.x["v"]], [2.0, 1.0], rtol=1e-9)
    assert result.supplied == "hybr: the Jacobian"
    assert "uses no derivatives" in optimize.root(lambda x: np.cos(x) - x, np.array([0.5]), method="krylov").supplied


def bowl(x):
    return np.sum((x - np.array([1.0, 2.0])) ** 2)


CONSTRAINTS = {
    "a dictionary": {"type": "ineq", "fun": lambda x: 2 - x[0] - x[1]},
    "a list of a vector": [{"type": "ineq", "fun": lambda x: np.array([2 - x[0] - x[1]])}],
    "with arguments": {"type": "ineq", "fun": lambda x, b: b - x[0] - x[1], "args": (2.0,)},
    "with its Jacobian": {"type": "ineq", "fun": lambda x: 2 - x[0] - x[1], "jac": lambda x: -np.ones(2)},
    "linear": LinearConstraint([[1, 1]], -np.inf, 2),
    "not linear": NonlinearConstraint(lambda x: x[0] + x[1], -np.inf, 2),
    "two kinds": [LinearConstraint([[1, 1]], -np.inf, 2), NonlinearConstraint(lambda x: x[0] ** 2, -np.inf, 9)],
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("method", ["COBYLA", "SLSQP", "trust-constr"])
def test_every_kind_of_constraint(name, method):
    result = optimize.minimize(bowl, np.zeros(2), method=method, constraints=CONSTRAINTS[name])
    np.testing.assert_allclose(result.x, [0.5, 1.5], atol=2e-3)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "L-BFGS-B", "TNC", "COBYLA", "SLSQP", "trust-constr"])
def test_bounds_of_every_method_that_has_them(method):
    result = optimize.minimize(bowl, np.full(2, 0.1), method=method, bounds=Bounds([0, 0], [0.5, 5]))
    np.testing.assert_allclose(result.x, [0.5, 2.0], atol=2e-3)


def linked(x):
    return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_every_method_and_loss_of_least_squares(method, loss):
    if method == "lm" and loss != "linear":
        pytest.skip("SciPy's lm has the linear loss alone")
    result = optimize.least_squares(linked, np.array([-1.2, 1.0]), method=method, loss=loss)
    np.testing.assert_allclose(result.x, np.ones(2), atol=1e-3)
    if method != "lm":
        bounded = optimize.least_squares(linked, np.full(2, 0.1), ([0, 0], [0.5, 5]), method, loss=loss)
        np.testing.assert_allclose(bounded.x, [0.5, 0.25], atol=1e-3)


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "broyden2", "anderson", "krylov", "df-sane"])
def test_every_method_of_root(method):
    def f(x):
        return np.array([2 * x[0] + 0.3 * np.sin(x[1]) - 1, 2 * x[1] + 0.2 * x[0] ** 2 - 1])

    found = optimize.root(f, np.full(2, 0.3), method=method)
    np.testing.assert_allclose(f(found.x), 0, atol=1e-4)
    assert ("the Jacobian" in found.supplied) == (method in ("hybr", "lm"))


T = np.linspace(0, 3, 30)
Y = 2 * np.exp(-1.3 * T) + 0.01 * np.cos(50 * T)


def decay(t, a, b):
    return a * np.exp(-b * t)


FITS = {
    "no start": {}, "a start": {"p0": (1, 1)}, "bounds": {"bounds": (0, [1.5, 3])}, "lists": {"xdata": list(T)},
    "deviations": {"sigma": 0.1 + T, "absolute_sigma": True}, "a covariance": {"sigma": np.diag(0.1 + T)},
    "trf": {"method": "trf"}, "dogbox": {"method": "dogbox"}, "without NaN": {"nan_policy": "omit"},
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_every_form_of_curve_fit(name):
    options = {"xdata": T, **FITS[name]}
    y = np.where(T > 2, np.nan, Y) if name == "without NaN" else Y
    found, covariance = optimize.curve_fit(decay, ydata=y, **options)
    expected = scipy.optimize.curve_fit(decay, ydata=y, **options)
    np.testing.assert_allclose(found, expected[0], rtol=1e-5)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-3)


def test_forms_of_starts_and_arguments():
    assert optimize.minimize(lambda x: (x - 1) ** 2, 0.0).x == pytest.approx(1.0, abs=1e-6)
    assert optimize.minimize(lambda x: np.sum((x - 1) ** 2), np.zeros((2, 2))).x.shape == (2, 2)
    assert type(optimize.minimize(lambda p: (p[0] - 1) ** 2 + p[1] ** 2, [0.0, 3.0]).x) is list
    for args in (3.0, (3.0,)):  # SciPy takes one argument without a tuple
        np.testing.assert_allclose(optimize.minimize(lambda x, a: np.sum((x - a) ** 2), np.zeros(2), args).x, 3.0)
        np.testing.assert_allclose(optimize.root(lambda x, a: x - a, np.zeros(2), args).x, 3.0)
    found = optimize.least_squares(lambda x, a, b=0.0: x - a - b, np.zeros(2), args=(1.0,), kwargs={"b": 2.0})
    np.testing.assert_allclose(found.x, 3.0)
    seen = []
    optimize.minimize(bowl, np.zeros(2), callback=lambda intermediate_result: seen.append(intermediate_result.fun))
    assert seen and seen[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("bounds", [
    ({"a": 0.0, "b": -1.0}, {"a": 0.5, "b": [4.0, 1.0]}),
    (-1.0, {"a": 0.5, "b": [4.0, 1.0]}),
    ([0.0, -1.0, -1.0], [0.5, 4.0, 1.0]),
    Bounds([0.0, -1.0, -1.0], [0.5, 4.0, 1.0]),
])  # fmt: skip
def test_bounds_of_least_squares_like_the_start(bounds):
    def residuals(p):
        return {"first": p["a"] - 2.0, "second": p["b"] - 3.0}

    found = optimize.least_squares(residuals, {"a": 0.1, "b": np.zeros(2)}, bounds).x
    assert found["a"] == pytest.approx(0.5)
    np.testing.assert_allclose(found["b"], [3.0, 1.0], rtol=1e-6)
    with pytest.raises(effgrad.NotDifferentiable, match="do not fit the start"):
        optimize.least_squares(residuals, {"a": 0.1, "b": np.zeros(2)}, ({"a": 0.0}, 1.0))


def after(count, f):
    """A function that is interrupted at one of its calls."""
    calls = []

    def g(*args):
        calls.append(0)
        if len(calls) == count:
            raise KeyboardInterrupt
        return f(*args)

    return g


def test_every_function_gives_the_best_point_when_interrupted():
    for run in (
        lambda: optimize.least_squares(after(5, linked), np.array([-1.2, 1.0])),
        lambda: optimize.root(after(5, linked), np.array([-1.2, 1.0])),
        lambda: optimize.minimize(after(5, bowl), np.zeros(2), method="Nelder-Mead"),
        lambda: optimize.minimize(after(3, bowl), np.zeros(2), method="trust-exact"),
        lambda: optimize.minimize(bowl, np.zeros(2), callback=after(1, print)),
    ):
        result = run()
        assert not result.success and "interrupted" in result.message
    stopped = optimize.least_squares(after(5, linked), np.array([-1.2, 1.0]))
    assert stopped.cost == min(stopped.history) == 0.5 * np.sum(np.square(linked(stopped.x)))
    np.testing.assert_array_equal(stopped.fun, linked(stopped.x))
    with pytest.warns(scipy.optimize.OptimizeWarning, match="best parameters so far"):
        found, covariance = optimize.curve_fit(
            after(7, lambda t, a, b: decay(t, a, b)), T, Y, (1.0, 1.0), sigma=0.1 + T)  # fmt: skip
    assert np.sum((decay(T, *found) - Y) ** 2) < np.sum((decay(T, 1.0, 1.0) - Y) ** 2) and np.all(np.isinf(covariance))


def test_an_interrupt_returns_the_best_point_so_far(monkeypatch):
    monkeypatch.setattr(evaluations, "STAGED", np.inf)  # on a busy machine, staging would be a call more
    calls = []

    def f(x):
        calls.append(0)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return valley_of_vector(x)

    result = optimize.minimize(f, START)
    assert not result.success and "interrupted" in result.message and result.nfev == 5
    assert result.fun == min(result.history) and rosen(result.x) == pytest.approx(result.fun, rel=1e-12)


def test_a_slow_program_is_compiled_where_that_gives_the_same(monkeypatch):
    monkeypatch.setattr(evaluations, "PATIENCE", 0.0)
    result = optimize.minimize(lambda x: np.sum((x - np.arange(4.0)) ** 4), np.ones(4))
    assert result.supplied.endswith("(compiled)")
    np.testing.assert_allclose(result.x, np.arange(4.0), atol=0.05)
    counter = iter(range(1000))
    result = optimize.minimize(lambda x: np.sum((x - 1) ** 2) + 1e-3 * next(counter), np.zeros(2))
    assert not result.supplied.endswith("(compiled)")


def test_slow_derivatives_are_compiled(monkeypatch):
    monkeypatch.setattr(evaluations, "PATIENCE", 0.0)
    for method in ("Newton-CG", "trust-exact"):
        result = optimize.minimize(valley_of_vector, np.full(4, 1.1), method=method)
        assert result.supplied.endswith("(compiled)")
        np.testing.assert_allclose(result.x, np.ones(4), atol=1e-4)
    for n in (3, 80, 1200):
        result = optimize.least_squares(lambda x: np.append(x[1:] * x[:-1] - 1.0, x[0] - 1.0), np.full(n, 1.1))
        assert result.supplied.endswith("(compiled)")
        np.testing.assert_allclose(result.x, np.ones(n), rtol=1e-6)
    result = optimize.root(lambda x: x**3 - np.array([1.0, 8.0]), np.ones(2) * 1.5)
    assert result.supplied == "hybr: the Jacobian (compiled)" and result.x == pytest.approx([1.0, 2.0])


def test_a_plot_and_a_progress_bar():
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("rich")
    matplotlib.use("Agg")
    result = optimize.minimize(lambda x: np.sum((x - 1) ** 4), np.zeros(2), progress=True)
    axes = result.plot()
    assert len(axes.lines[0].get_xdata()) == result.nfev


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setitem(sys.modules, "rich", types.ModuleType("rich"))
    with pytest.raises(effgrad.EffgradError, match=r"effgrad\[optimize\]"):
        optimize.minimize(lambda x: np.sum(x**2), np.ones(2), progress=True)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: optimize.minimize(lambda x: x, np.ones(2)), "one real number"),
        (lambda: optimize.minimize(lambda x: 0.0, {}), "no leaves"),
        (lambda: optimize.minimize(lambda x: 0.0, np.zeros(0)), "nothing to optimise"),
        (lambda: optimize.root(lambda x: x[:1], np.ones(2)), "2 unknowns and 1 equations"),
        (lambda: optimize.minimize(bowl, np.zeros(2, complex)), "the start is complex"),
        (lambda: optimize.minimize(lambda p: p["a"] ** 2, {"a": 1.0}, bounds={"b": (0, 1)}), r"a tuple \(low, high\)"),
        (lambda: optimize.minimize(lambda p: p["a"] ** 2, {"a": 1.0}, bounds={"a": 3}), r"a tuple \(low, high\)"),
    ],
)
def test_bad_problems_say_what_is_wrong(call, said):
    with pytest.raises(effgrad.EffgradError, match=said):
        call()


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: optimize.minimize(bowl, np.zeros(2), method="best"), "Unknown solver best"),
        (lambda: optimize.least_squares(linked, np.zeros(2), method="best"), "must be 'trf'"),
        (lambda: optimize.least_squares(linked, np.full(2, 5.0), ([0, 0], [1, 1])), "outside of provided bounds"),
        (lambda: optimize.least_squares(lambda x: x[:1], np.zeros(2), method="lm"), "number of residuals is less"),
        (lambda: optimize.curve_fit(decay, T, Y[:5]), "could not be broadcast"),
        (lambda: optimize.curve_fit(decay, T, np.where(T > 2, np.nan, Y)), "infs or NaNs"),
        (lambda: optimize.curve_fit(lambda t, *p: p[0] * t, T, Y), "number of fit parameters"),
        (lambda: optimize.least_squares(linked, np.zeros(2), jac="3-point"), "least_squares supplies jac"),
        (lambda: optimize.root(linked, np.zeros(2), jac=False), "root supplies jac"),
        (lambda: optimize.minimize(bowl, np.zeros(2), jac=True), "minimize supplies jac"),
        (lambda: optimize.minimize(bowl, np.zeros(2), hess="2-point"), "minimize supplies hess"),
    ],
)
def test_what_scipy_refuses_is_refused_in_its_words(call, said):
    with pytest.raises(ValueError, match=said):
        call()
