"""`verify`, which differentiates many programs by every mean; its report, and the message about a disagreement."""

import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from effgrad.papers.lam.terms import Term
from effgrad.papers.runs import Results, each_chunk
from effgrad.papers.syntax import deep
from effgrad.papers.verify.methods import METHODS, PUBLIC, Case, Expected, Method, Skip, arity, expected, outcomes
from effgrad.papers.verify.programs import program, smaller
from effgrad.papers.verify.python import source


class _Largest(dict[str, float]):
    """A map from names to numbers; the sum of two maps has the larger number for each name."""

    def __add__(self, other: "_Largest") -> "_Largest":
        return _Largest({name: max(self.get(name, 0.0), other.get(name, 0.0)) for name in self | other})


@dataclass
class Report(Results):
    """The outcomes of the programs of a run."""

    exact: int = 0
    skipped: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    too_long: Counter[str] = field(default_factory=Counter)
    furthest: _Largest = field(default_factory=_Largest)
    seconds: float = 0.0

    def lines(self) -> Iterator[str]:
        """Yield the lines of a page of Markdown."""
        floats = self.programs - self.exact - self.skipped
        yield f"- programs: {self.programs}: {self.exact} over fractions, {floats} over floats, {self.skipped} skipped"
        yield f"- comparisons: {sum(self.compared.values())}"
        yield f"- disagreements: {len(self.failures)}"
        yield f"- seconds: {self.seconds:.0f}"
        yield ""
        yield "| mean | compared | too many steps | furthest, in tolerances |"
        yield "|---|---|---|---|"
        for name, count in self.compared.items():
            yield f"| {name} | {count} | {self.too_long[name]} | {self.furthest.get(name, 0.0):.1e} |"

    def as_json(self) -> str:
        numbers = {name: getattr(self, name) for name in ("programs", "exact", "skipped", "seconds")}
        methods = {
            name: {"compared": count, "too_long": self.too_long[name], "furthest": self.furthest.get(name, 0.0)}
            for name, count in self.compared.items()
        }
        return json.dumps({**numbers, "disagreements": [str(f) for f in self.failures], "means": methods}, indent=1)


@dataclass(frozen=True)
class Failure:
    """A disagreement: a mean whose result differs from the symbolic derivative."""

    seed: str
    case: Case
    mean: str
    quantity: str
    found: str
    wanted: str

    def __str__(self) -> str:
        point, direction = (", ".join(map(str, row)) for row in (self.case.point, self.case.direction))
        return (
            f"{self.mean} does not agree with the symbolic derivative (program {self.seed})\n\n"
            f"{self.case.program}\n\nat       {point}\nalong    {direction}\n"
            f"{self.quantity:8} {self.wanted}\nfound    {self.found}\n\nIn Python:\n\n{source(self.case.program)}"
        )


def case_of(seed: str, exact: bool, size: int) -> Case:
    """Return the program of a seed, with a point and a direction."""
    chosen = program(seed, exact, size)
    source_ = random.Random(f"point {seed}")
    point = [Fraction(source_.randint(-16, 16), 8) for _ in range(arity(chosen))]
    direction = [Fraction(source_.choice([-2, -1, 1, 2, 3]), 2) for _ in point]
    if exact:
        return Case(chosen, point, direction, exact)
    return Case(chosen, [float(x) + source_.random() / 8 for x in point], [float(v) for v in direction], exact)


@deep()
def examine(seed: str, case: Case, methods: dict[str, Method], report: Report) -> None:
    """Compare the results of the methods on one program with the expected ones, and add the outcomes to a report."""
    report.programs += 1
    wanted = _expected(case)
    if wanted is None:
        report.skipped += 1
        return
    report.exact += case.exact
    for name, quantity, found in outcomes(case, methods):
        if found is None:
            report.too_long[name] += 1
            continue
        report.compared[name] += 1
        if isinstance(found, Exception) or wanted.wrong(quantity, found):
            text = ", ".join(map(str, wanted.results[quantity]))
            report.failures.append(Failure(seed, case, name, quantity, _shown(found), text))
        elif not case.exact:
            report.furthest += _Largest({name: wanted.distance(quantity, found)})


def _shown(found: list[object] | Exception) -> str:
    return repr(found) if isinstance(found, Exception) else ", ".join(map(str, found))


def _expected(case: Case) -> Expected | None:
    try:
        wanted = expected(case)
    except (Skip, OverflowError, ZeroDivisionError):
        return None
    # Fractions with thousands of digits test no more than fractions with ten, and take long.
    sizes = [x.denominator for row in wanted.results.values() for x in row if isinstance(x, Fraction)]
    return None if any(math.log2(size) > 4096 for size in sizes) else wanted


def shrunk(failure: Failure, methods: dict[str, Method]) -> Failure:
    """Return a failure of the same mean on a program that is as small as can be found."""
    found = failure

    def fails(candidate: Term) -> bool:
        nonlocal found
        report = Report()
        examine(failure.seed, replace(failure.case, program=candidate), {failure.mean: methods[failure.mean]}, report)
        if report.failures:
            found = report.failures[0]
        return bool(report.failures)

    smaller(failure.case.program, fails)
    return found


def _chunk(first: int, last: int, seed: int, size: int) -> Report:
    report = Report()
    for i in range(first, last):
        case = case_of(f"{seed}/{i}", i % 2 == 0, size)
        examine(f"{seed}/{i}", case, methods_for(case), report)
    return report


def methods_for(case: Case) -> dict[str, Method]:
    """The methods that can run a program: those of `PUBLIC` make arrays or floats, which excludes fractions."""
    return METHODS if case.exact else METHODS | PUBLIC


def verify(programs: int, seed: int = 0, jobs: int = 1, size: int = 12,
           progress: Callable[[Report], None] = lambda report: None) -> Report:  # fmt: skip
    """Examine programs, half of them over fractions, half over floats, and stop soon after a disagreement.

    Arguments:
        programs: the number of programs.
        seed: generates the programs; program i of a seed is always the same.
        jobs: the number of processes that share the work.
        size: the size of the programs.
        progress: is called with the report so far, after each chunk of programs.

    >>> report = verify(10)
    >>> report.programs, report.failures
    (10, [])
    """
    start = time.perf_counter()
    total = Report()
    for report in each_chunk(_chunk, programs, jobs, seed, size):
        total.add(report)
        total.seconds = time.perf_counter() - start
        progress(total)
        if total.failures:
            break
    return total
