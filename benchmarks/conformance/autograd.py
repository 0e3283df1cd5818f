"""HIPS autograd's test suite, with modules of ours in the place of its own.

`autograd.numpy` is NumPy itself, and `check_grads` compares our derivatives with Ridders differences. The outcomes are
tests that pass, calls that are refused by an error of ours, tests of autograd's own parts (its boxes, vector spaces and
tracer, `OWN_TESTS`), and those that fail, with their names below the table.
"""

import collections
import importlib
import itertools
import pathlib
import sys
import types
from typing import Any

import numpy as np
import optree
import pytest
from differences import directional, parts

import effgrad
from effgrad.errors import EffgradError


def real_parts(result: Any) -> Any:
    """A result as one vector of real numbers."""
    if isinstance(result, dict):
        result = [result[key] for key in sorted(result)]
    if isinstance(result, tuple | list):
        return np.concatenate([real_parts(item) for item in result] or [np.zeros(0)])
    flat = np.ravel(result)
    return np.concatenate([np.real(flat), np.imag(flat)]) if np.iscomplexobj(result) else flat * 1.0


def check_grads(fun: Any, argnum: Any = 0, modes: Any = ("fwd", "rev"), order: int = 2) -> Any:
    """autograd's check of derivatives, by ours and Ridders differences."""

    def check(*args: Any, **kwargs: Any) -> None:
        for place in argnum if isinstance(argnum, tuple | list) else [argnum]:
            check_one(lambda x, place=place: fun(*args[:place], x, *args[place + 1 :], **kwargs), args[place], order)

    return check


def check_one(f: Any, x: Any, order: int) -> None:
    """Compare derivatives in one argument, an array or a container of arrays, with differences along a direction."""
    leaves, tree = optree.tree_flatten(x)
    arrays = [np.asarray(leaf, np.result_type(leaf, np.float64))[()] for leaf in leaves]
    rng = np.random.default_rng(0)
    directions = [
        rng.normal(size=a.shape) + (1j * rng.normal(size=a.shape) if np.iscomplexobj(a) else 0) for a in arrays
    ]
    weights = rng.normal(size=np.size(parts(real_parts(f(x)))))

    def scalar(t: Any) -> Any:
        """The function along the direction."""
        y = f(optree.tree_unflatten(tree, [a + t * u for a, u in zip(arrays, directions, strict=True)]))
        return np.sum(weights * real_parts(y))

    compare(effgrad.grad(scalar), lambda t: effgrad.jvp(scalar, (t,), (1.0,))[1], scalar, 1e-5)
    if order > 1:
        slope = effgrad.grad(scalar)
        compare(effgrad.grad(slope), lambda t: effgrad.jvp(slope, (t,), (1.0,))[1], slope, 1e-4)


def compare(reverse: Any, forward: Any, f: Any, tolerance: float) -> None:
    expected, error = directional(f, 0.0, 1.0, step=1e-3)
    if error < tolerance * (1 + abs(expected)):  # not next to a jump
        np.testing.assert_allclose([reverse(0.0), forward(0.0)], [expected] * 2, rtol=10 * tolerance, atol=tolerance)


def combo_check(fun: Any, *args: Any, **kwargs: Any) -> Any:
    """autograd's check over all combinations of arguments."""

    def check(*arg_sets: Any, **kwarg_sets: Any) -> None:
        names = list(kwarg_sets)
        for values in itertools.product(*arg_sets):
            for options in itertools.product(*kwarg_sets.values()):
                check_grads(fun, *args, **kwargs)(*values, **dict(zip(names, options, strict=True)))

    return check


def scalar_close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) < 1e-6 * (1 + abs(a) + abs(b)))


def check_equivalent(x: Any, y: Any) -> None:
    np.testing.assert_allclose(parts(x), parts(y), rtol=1e-6, atol=1e-6)


def as_number(f: Any) -> Any:
    """A function whose result of one element is a number, for which autograd takes it."""

    def function(*args: Any, **kwargs: Any) -> Any:
        y = f(*args, **kwargs)
        return y.reshape(-1)[0] if getattr(y, "shape", ()) and np.size(y) == 1 else y

    return function


class OwnPart(Exception):
    """A test asks for a part of autograd itself."""


class Missing(types.ModuleType):
    """A module of autograd's own, whose parts are none of ours."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*args: Any, **_: Any) -> Any:
            if len(args) == 1 and callable(args[0]):  # as a decorator
                return missing
            raise OwnPart(name)

        return missing


def put_in_place() -> None:
    """Give the suite our functions by autograd's names."""
    ours = {
        "grad": lambda f, argnum=0: effgrad.grad(as_number(f), argnum), "jacobian": effgrad.jacobian, 
        "value_and_grad": lambda f, argnum=0: effgrad.value_and_grad(as_number(f), argnum),
        "hessian": effgrad.hessian, "checkpoint": effgrad.checkpoint, "isinstance": isinstance,
        "elementwise_grad": lambda f, argnum=0: effgrad.grad(lambda *a, **k: np.sum(f(*a, **k)), argnum),
        "deriv": lambda f: lambda x: effgrad.jvp(f, (x,), (np.ones_like(x),))[1],
        "holomorphic_grad": lambda f, argnum=0: effgrad.grad(f, argnum, holomorphic=True),
        "tuple": tuple, "list": list, "dict": dict,
    }  # fmt: skip
    modules: dict[str, Any] = {"autograd": Missing("autograd"), "autograd.numpy": np, "autograd.test_util": None}
    vars(modules["autograd"]).update(ours, __path__=[], numpy=np)
    modules["autograd.test_util"] = types.ModuleType("autograd.test_util")
    vars(modules["autograd.test_util"]).update(
        check_grads=check_grads, combo_check=combo_check, scalar_close=scalar_close, check_equivalent=check_equivalent,
        nd=lambda f, x: effgrad.grad(f)(x),
    )  # fmt: skip
    for name in ("core", "extend", "tracer", "wrap_util", "misc", "builtins", "differential_operators"):
        modules[f"autograd.{name}"] = Missing(f"autograd.{name}")
    vars(modules["autograd.builtins"]).update(isinstance=isinstance, list=list, dict=dict, tuple=tuple)
    for name in ("random", "linalg", "fft"):
        modules[f"autograd.numpy.{name}"] = getattr(np, name)
    for name in ("", ".stats", ".special", ".signal", ".linalg", ".integrate"):
        modules[f"autograd.scipy{name}"] = importlib.import_module(f"scipy{name}")
    for name in ("multivariate_normal", "norm", "t", "beta", "gamma", "poisson", "chi2", "dirichlet", "multivariate_t"):
        modules[f"autograd.scipy.stats.{name}"] = getattr(modules["autograd.scipy.stats"], name)
    vars(modules["autograd"])["scipy"] = modules["autograd.scipy"]
    sys.modules.update(modules)


class Outcomes:
    """A plugin of pytest that sorts the outcomes."""

    def __init__(self) -> None:
        self.counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.failed: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = (yield).get_result()
        if report.when == "call" and not report.skipped:
            error = call.excinfo.value if call.excinfo is not None else None
            own = item.name.partition("[")[0] in OWN_TESTS
            kind = "pass" if error is None else "autograd's own part" if own else self.kind(error)
            self.counts[item.path.name][kind] += 1
            if kind == "fail":
                said = f"{type(error).__name__}: {str(error).strip()[:90]!r}"
                self.failed.append(f"{item.path.name}::{item.name}: {said}")

    @staticmethod
    def kind(error: BaseException) -> str:
        while error is not None:
            if isinstance(error, OwnPart):
                return "autograd's own part"
            if isinstance(error, EffgradError):
                return "refused"
            error = error.__cause__  # type: ignore[assignment]
        return "fail"


# Tests of autograd's own functions, and of what autograd refuses and we do not.
OWN_TESTS = {
    "test_rfftn_odd_not_implemented": "autograd has no rule for odd lengths",
    "test_assignment_raises_error": "autograd has no assignment",
    "test_pinv": "it calls a private function of autograd.numpy",
    "test_unimplemented_falseyness": "it takes a rule out of autograd's table",
    "test_make_diagonal": "autograd's make_diagonal", "test_diagonal": "autograd's make_diagonal",
    **dict.fromkeys(("test_convolve_generalization", "test_convolve_ignore", "test_convolve_ignore_dot"),
                    "autograd's convolve with dot_axes"),
    **dict.fromkeys(("test_deprecated_defgrad_wrapper", "test_deprecated_defvjp_wrapper",
                     "test_deprecated_defvjp_is_zero_wrapper", "test_deprecated_quick_grad_check_wrapper",
                     "test_wrapped_name_and_docs"), "autograd's functions of these names"),
    **dict.fromkeys(("test_custom_where", "test_custom_where_dtypes"), "autograd's where, with other arguments"),
}  # fmt: skip
KINDS = ("pass", "refused", "autograd's own part", "fail")


def run(checkout: pathlib.Path) -> None:
    put_in_place()
    outcomes = Outcomes()
    tests = checkout / "tests"
    sys.path.insert(0, str(tests))
    quiet = "-q --no-header --continue-on-collection-errors -p no:cacheprovider --tb=no -W ignore --noconftest".split()
    pytest.main([*quiet, "-c", "/dev/null", f"--rootdir={tests}", str(tests)], plugins=[outcomes])  # fmt: skip
    print("\n| file | " + " | ".join(KINDS) + " |\n|---|" + "---|" * len(KINDS))
    for name, counts in sorted(outcomes.counts.items()):
        print(f"| {name} | " + " | ".join(str(counts[kind]) for kind in KINDS) + " |")
    total = sum(outcomes.counts.values(), collections.Counter())
    print("| all | " + " | ".join(str(total[kind]) for kind in KINDS) + " |\n")
    print("\n".join(f"* {line}" for line in outcomes.failed))
