"""MyGrad's test suite: for each example that it draws, our derivative of the NumPy function it is compared with.

MyGrad's tests draw arrays and arguments, and compare its backpropagation with numerical derivatives of a NumPy function
(`backprop_test_factory`). MyGrad runs as it is, from the checkout. Where its tests ask for the numerical derivative,
ours is computed as well and compared with that. An example is equal, refused by an error of ours, different, or an
error that is not ours.
"""

import collections
import importlib
import os
import pathlib
import sys
import warnings
from typing import Any

import hypothesis
import numpy as np
import pytest

from effgrad import vjp
from effgrad.errors import EffgradError

EXAMPLES = 30  # of each test


class Judge:
    """Counts how our derivatives compare, by test file."""

    def __init__(self) -> None:
        self.counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.shown: dict[tuple[str, str], str] = {}

    def beside(self, numerical: Any) -> Any:
        """A numerical derivative of MyGrad's tests that has ours compared with it."""

        def function(f: Any, *arrays: Any, back_grad: Any, kwargs: Any = None, **options: Any) -> Any:
            wanted = numerical(f, *arrays, back_grad=back_grad, kwargs=kwargs, **options)
            test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
            outcome, said = self.outcome(f, arrays, back_grad, kwargs or {}, wanted)
            self.counts[test.partition("::")[0]][outcome] += 1
            if outcome != "equal":
                self.shown.setdefault((test, outcome), said)
            return wanted

        return function

    @staticmethod
    def outcome(f: Any, arrays: Any, cotangent: Any, kwargs: Any, wanted: Any) -> tuple[str, str]:
        try:
            value, pullback = vjp(lambda *x: f(*x, **kwargs), *[a.copy() for a in arrays])
            found = pullback(np.broadcast_to(cotangent, np.shape(value)))
        except EffgradError as error:
            return "refused", str(error).splitlines()[0][:100]
        except Exception as error:
            return "another error", f"{type(error).__name__}: {str(error)[:80]}"
        for ours, theirs in zip(found, wanted, strict=True):
            size = 1e-6 * (1 + np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs)))
            if not np.allclose(ours, theirs, rtol=1e-5, atol=size, equal_nan=True):
                return "different", f"{ours!r}"[:60] + f" for {theirs!r}"[:60]
        return "equal", ""


def run(checkout: pathlib.Path) -> None:
    sys.path[:0] = [str(checkout / "src"), str(checkout)]
    hypothesis.settings.register_profile("judge", max_examples=EXAMPLES, deadline=None, database=None, derandomize=True)
    uber, judge = importlib.import_module("tests.wrappers.uber"), Judge()
    hypothesis.settings.load_profile("judge")
    for name in ("numerical_gradient", "numerical_gradient_full", "finite_difference"):
        setattr(uber, name, judge.beside(getattr(uber, name)))
    paths = sorted((checkout / "tests").rglob("test_*.py"))
    files = [str(path) for path in paths if "backprop_test_factory" in path.read_text()]
    quiet = "-q --no-header --continue-on-collection-errors -p no:cacheprovider --tb=no -W ignore --noconftest".split()
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        pytest.main([*quiet, "-c", "/dev/null", f"--rootdir={checkout}", *files])
    kinds = ("equal", "refused", "different", "another error")
    print("\n| file | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds))
    for name, counts in sorted(judge.counts.items()):
        print(f"| {pathlib.PurePath(name).name} | " + " | ".join(str(counts[kind]) for kind in kinds) + " |")
    total = sum(judge.counts.values(), collections.Counter())
    print("| all | " + " | ".join(str(total[kind]) for kind in kinds) + " |\n")
    print("\n".join(f"* {test}, {outcome}: {said}" for (test, outcome), said in sorted(judge.shown.items())))
