"""SciPy's functions take lists of traced numbers for the arrays that they are, as they take lists of numbers."""

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy_cases
from scipy import linalg, ndimage, signal, special, stats
from scipy.spatial import distance

from effgrad import compile, grad
from effgrad.program.listed import OF_TUPLES

MODULES = ("fft", "interpolate", "linalg", "ndimage", "signal", "sparse", "special", "stats", "distance")


def lists(value: Any, kind: type = list) -> Any:
    """An array as nested lists of its elements, or tuples; arrays in lists and tuples likewise."""
    if type(value) in (list, tuple):
        return type(value)(lists(item, kind) for item in value)
    if getattr(value, "ndim", 0) == 0 or value.dtype.kind not in "fc":
        return value
    return kind(lists(value[i]) for i in range(len(value)))


class Listing:
    """A module whose functions are given lists, the first time only where they then compute the same.

    `running` has the call that runs: functions that it calls back are given what it gives them.
    """

    def __init__(
        self, module: types.ModuleType, kind: type, plan: list[bool], told: list[bool], running: list[Any]
    ) -> None:
        self.module, self.plan, self.told, self.running = module, plan, told, running
        self.lists = functools.partial(lists, kind=kind)

    def __getattr__(self, name: str) -> Any:
        f = getattr(self.module, name)
        return functools.partial(self.called, f) if isinstance(f, types.FunctionType) else f

    def called(self, f: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self.running:
            return f(*args, **options)
        self.running.append(f)
        try:
            return self.called_first(f, *args, **options)
        finally:
            self.running.pop()

    def called_first(self, f: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self.told:
            return f(*map(self.lists, args), **options) if self.told.pop(0) else f(*args, **options)
        result = f(*args, **options)
        try:
            same = equal(f(*map(self.lists, args), **options), result)
        except Exception:  # which has no lists for arrays
            same = False
        self.plan.append(same)
        return result


def equal(a: Any, b: Any) -> bool:
    if isinstance(b, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return isinstance(b, np.ndarray | float) and np.shape(a) == np.shape(b) and np.allclose(a, b, equal_nan=True)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("name", sorted(scipy_cases.CASES))
def test_lists_have_the_derivatives_of_arrays(name, kind, monkeypatch):
    case, plan, told, running = scipy_cases.CASES[name], [], [], []
    plainly = case(scipy_cases.X.copy())
    weights = np.random.default_rng(0).normal(size=np.shape(plainly))

    def weighted(x):
        return np.sum(np.real(case(x)) * weights)

    wanted = grad(weighted)(scipy_cases.X.copy())
    for module in MODULES:
        monkeypatch.setattr(scipy_cases, module, Listing(getattr(scipy_cases, module), kind, plan, told, running))
    case(scipy_cases.X.copy())
    if not any(plan) or name == "interpolate.splev":  # whose curves are in a list of arrays
        return
    if kind is tuple and name.split(" ")[0].removeprefix("linalg.") in OF_TUPLES:
        return
    told += plan
    np.testing.assert_allclose(grad(weighted)(scipy_cases.X.copy()), wanted, 1e-8, 1e-9)


C = np.linspace(0.1, 1, 4)
M = np.arange(9.0).reshape(3, 3) / 9
FORMS = {
    "expm": lambda s: linalg.expm([[0.0, s], [-s, 0.1]])[0, 1],
    "det of rows": lambda s: linalg.det([s * np.ones(2), np.array([1.0, s])]),
    "solve": lambda s: linalg.solve([[s, 1.0], [0.5, 2.0]], [1.0, s])[0],
    "cho_solve": lambda s: linalg.cho_solve(([[s, 0.0], [0.2, s]], True), [1.0, 2.0])[1],
    "eigh": lambda s: linalg.eigh([[s, 1.0], [1.0, 2.0]], eigvals_only=True)[0],
    "lfilter": lambda s: signal.lfilter([1.0], [1.0, -s], C)[-1],
    "sosfilt": lambda s: signal.sosfilt([[1.0, 0.0, 0.0, 1.0, 0.2, 0.1]], C * s)[-1],
    "gaussian_filter1d": lambda s: ndimage.gaussian_filter1d([1.0, s, s * s, 2.0], 1.0)[1],
    "cdist": lambda s: distance.cdist([[0.0, s]], [[1.0, 2.0], [s, s]])[0, 1],
    "multivariate_normal": lambda s: stats.multivariate_normal.logpdf([s, 1.0], [0.0, s], [[2.0, s], [s, 3.0]]),
    "a tuple of tuples": lambda s: linalg.inv(((s, 1.0), (0.5, 2.0)))[0, 1],
    "a tuple": lambda s: linalg.solve(M + np.eye(3), (s, 1.0, s * s))[2],
    "gammaln": lambda s: special.gammaln([s, 2.0])[0],
}


@pytest.mark.parametrize("name", FORMS)
def test_a_list_is_the_array_that_it_is(name):
    f = FORMS[name]
    slope = grad(f)(0.7)
    near, far = ((f(0.7 + h) - f(0.7 - h)) / (2 * h) for h in (1e-4, 2e-4))
    np.testing.assert_allclose(slope, (4 * near - far) / 3, rtol=1e-8)
    np.testing.assert_allclose(compile(grad(f))(0.7), slope, rtol=1e-10)


BACK = {
    "vectorize": lambda s: np.vectorize(lambda e: e * s + s)(C),
    "vectorize of two": lambda s: np.vectorize(lambda e: (e * s, e + s))(C)[1],
    "apply_along_axis": lambda s: np.apply_along_axis(lambda r: r * s, 0, M),
    "apply_along_axis of lists": lambda s: np.apply_along_axis(lambda r: [r[0], s, 3], 0, M),
    "piecewise": lambda s: np.piecewise(C, [C < 0.4, C >= 0.4], [lambda e: e * s, lambda e: e * s * s]),
    "piecewise of numbers": lambda s: np.piecewise(C, [C < 0.4, C >= 0.4], [s, s * s]),
    "fromfunction": lambda s: np.fromfunction(lambda i, j: i * s + j, (3, 3)),
}


@pytest.mark.parametrize("name", BACK)
def test_functions_that_are_called_back_bring_traced_values(name):
    """All arrays that NumPy is given are plain."""
    f = BACK[name]
    found = grad(lambda s: np.sum(np.sin(f(s))))(0.7)
    np.testing.assert_allclose(found, np.sum(np.cos(f(0.7)) * (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6), rtol=1e-8)


@pytest.mark.parametrize("x", [C, np.array([0.5, 0.1, 0.9])])
def test_results_have_the_dtype_of_the_first(x):
    """NumPy makes integers of all where the first is one: values of a vectorised function were others than NumPy's."""

    def doubled(x):
        return np.vectorize(lambda e: 0 if e < 0.3 else 2.5 * e)(x)

    np.testing.assert_array_equal(grad(lambda x: np.sum(x * doubled(x)))(x), doubled(x) + (x[0] >= 0.3) * 2.5 * x * (
        x >= 0.3))  # fmt: skip
