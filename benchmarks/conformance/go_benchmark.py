"""SciPy's functions for global optimisation, at their optima, where many have kinks and singular points.

The checkout is one of SciPy, whose `benchmarks/benchmarks/go_benchmark_functions` are imported. At each optimum the
gradient (reverse and forward) and the Hessian have to agree with differences in extended precision, extrapolated to
step 0, or to be NaN where the differences do not settle. A gradient at a kink is the mean of both sides.
"""

import collections
import contextlib
import importlib
import pathlib
import sys
import types
import warnings
from typing import Any

import numpy as np
from differences import directional

from effgrad import grad, hessian, jvp
from effgrad.errors import EffgradError


def functions(checkout: pathlib.Path) -> Any:
    """The benchmarks, each with its optima."""
    folder = checkout / "benchmarks" / "benchmarks"
    package, common = types.ModuleType("scipys"), types.ModuleType("scipys.common")
    package.__path__ = [str(folder)]
    vars(common)["safe_import"] = contextlib.nullcontext
    sys.modules.update({"scipys": package, "scipys.common": common})
    module = importlib.import_module("scipys.go_benchmark_functions")
    for name, value in sorted(vars(module).items()):
        if isinstance(value, type) and issubclass(value, module.Benchmark) and value is not module.Benchmark:
            with contextlib.suppress(TypeError):  # a base class without a function
                benchmark = value()
                if np.size(benchmark.global_optimum) >= benchmark.N:  # some optima are not known
                    yield name, benchmark


def extended(x: Any) -> Any:
    return np.asarray(x, np.longdouble)


def extrapolated(quotient: Any, shrink: float) -> tuple[float, float]:
    """The limit of a quotient of differences for small steps, and its estimated error, from the best first step.

    Each extrapolation takes away a power of `shrink` more (Richardson).
    """
    best = (np.nan, np.inf)
    for first in (1e-2, 1e-4, 1e-6):
        rows: list[Any] = []
        for step in np.longdouble(first) / 2.0 ** np.arange(7):
            new = [quotient(step)]
            for k, old in enumerate(rows[-1] if rows else []):
                new.append(new[-1] + (new[-1] - old) / (shrink ** (k + 1) - 1))
            rows.append(new)
        found = float(rows[-1][3])
        error = abs(found - float(rows[-2][3])) + abs(found - float(rows[-1][2]))
        best = min(best, (found, error), key=lambda pair: pair[1] if np.isfinite(pair[1]) else np.inf)
    return best


def sides(f: Any, x: Any, u: Any) -> list[tuple[float, float]]:
    """The derivatives of f along u from ahead and from behind, with their errors."""
    return [extrapolated(lambda h, s=sign: (f(x + s * h * u) - f(x)) / (s * h), 2.0) for sign in (1, -1)]


def second_difference(f: Any, x: Any, u: Any) -> tuple[float, float]:
    """The second derivative of f along u, and its error."""
    return extrapolated(lambda h: (f(x + h * u) - 2 * f(x) + f(x - h * u)) / (h * h), 4.0)


def one_sided(f: Any, x: Any, gradient: Any) -> bool:
    """Whether each element of a gradient is the derivative on one side, along its coordinate."""
    for u, found in zip(np.eye(len(x)), gradient, strict=True):
        if not any(abs(found - at) <= 1e-3 * (1 + abs(at)) for at, _ in sides(f, extended(x), extended(u))):
            return False
    return True


def worst(words: set[str]) -> str:
    """What is said of several directions: the worst, by the alphabet among equals."""
    return max(sorted(words), key=lambda word: (word[:5] == "WRONG", word == "NaN", word != "right"))


def of_gradient(f: Any, x: Any, rng: Any) -> str:
    gradient = grad(f)(x)
    words = set()
    for _ in range(3):
        u = rng.normal(size=x.shape)
        found = float(gradient @ u)
        along = float(jvp(f, (x,), (u,))[1])
        size = 1e-6 * (1 + abs(found))
        if not (np.isnan(found) and np.isnan(along)) and not abs(found - along) <= size:
            return "WRONG: the modes differ"
        (ahead, error), (behind, other) = sides(f, extended(x), extended(u))
        expected, loose = directional(f, extended(x), extended(u), step=1e-3)
        if max(error, other) > 1e-4 * (1 + abs(ahead)) or not np.isfinite(ahead + behind):
            words.add("no derivative")
        elif abs(ahead - behind) > 1e-3 * (1 + abs(ahead)):
            mean = (ahead + behind) / 2
            near = [abs(found - at) <= 1e-3 * (1 + abs(mean)) for at in (mean, ahead, behind)]
            said = "the mean at a kink" if near[0] else "right on one side of a kink nearby"
            if not any(near) and one_sided(f, x, gradient):
                words.add("one side in each coordinate, by a branch of Python")
                continue
            words.add(said if any(near) else f"WRONG: {found}, {ahead} and {behind} by differences")
        elif loose < 1e-6 * (1 + abs(expected)) and not abs(found - expected) <= 1e-5 * (1 + abs(expected)):
            words.add("NaN" if np.isnan(found) else f"WRONG: {found}, {expected} by differences")
        else:
            words.add("right")
    return worst(words)


def of_hessian(f: Any, x: Any, rng: Any) -> str:
    matrix = hessian(f)(x)
    words = set()
    for _ in range(3):
        u, v = rng.normal(size=(2, *x.shape))
        found = float(u @ matrix @ u)
        expected, error = second_difference(f, extended(x), extended(u))
        law = [second_difference(f, extended(x), extended(w))[0] for w in (u + v, u - v, v)]
        bent = abs(law[0] + law[1] - 2 * law[2] - 2 * expected) > 1e-3 * (1 + sum(map(abs, law)))
        if bent or not error < 1e-4 * (1 + abs(expected)):  # of a quadratic form the law of parallelograms holds
            words.add("no second derivative" if not np.isfinite(found) else "not settled")
        elif abs(found - expected) <= 1e-3 * (1 + abs(expected)):
            words.add("right")
        else:
            words.add("NaN" if np.isnan(found) else f"WRONG: {found}, {expected} by differences")
    return worst(words)


def judged(what: Any, f: Any, x: Any, rng: Any) -> str:
    try:
        return str(what(f, x, rng))
    except EffgradError as error:
        return f"refused: {str(error).splitlines()[0][:90]}"


def run(checkout: pathlib.Path) -> None:
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list[str]]] = {"gradient": {}, "Hessian": {}}
    with np.errstate(all="ignore"):
        for name, benchmark in functions(checkout):
            for place, optimum in enumerate(np.atleast_2d(benchmark.global_optimum)):
                x = np.array(optimum, float)
                label = name if place == 0 else f"{name} ({place + 1})"
                for what, judge in (("gradient", of_gradient), ("Hessian", of_hessian)):
                    rng = np.random.default_rng(place)
                    if not np.isfinite(float(benchmark.fun(x))):
                        word = "the value is not finite"
                    else:
                        word = judged(judge, benchmark.fun, x, rng)
                    found[what].setdefault(word, []).append(label)
    kinds: dict[str, collections.Counter[str]] = {
        what: collections.Counter({w.partition(":")[0]: 0 for w in words}) for what, words in found.items()
    }
    for what, words in found.items():
        for word, labels in words.items():
            kinds[what][word.partition(":")[0]] += len(labels)
    print("| outcome | gradients | Hessians |\n|---|---|---|")
    for kind in sorted({kind for counts in kinds.values() for kind in counts}, key=lambda k: (k != "right", k)):
        print(f"| {kind} | {kinds['gradient'][kind]} | {kinds['Hessian'][kind]} |")
    for what, words in found.items():
        for word, labels in sorted(words.items()):
            if word != "right":
                print(f"\n* {what}, {word}: {', '.join(labels)}")
