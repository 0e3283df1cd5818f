"""Comparisons of the library with the semantics of HH and EFF on many programs: `effgrad verify --effects N`."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType

from effgrad import effects
from effgrad.papers.handlers import to_eff, to_hh, to_python
from effgrad.papers.handlers.generation import closed, program, smaller
from effgrad.papers.handlers.terms import Clause, Handle, Mask, Move, Perform, Raise, Resume, Term, in_eff, in_hh
from effgrad.papers.runs import Results, each_chunk
from effgrad.papers.syntax import Stuck

STEPS = 20_000
Outcome = tuple[str, int | None, list[int] | None]


@dataclass
class EffectsReport(Results):
    """The results of a run of programs."""

    too_long: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """Yield the lines of a page of Markdown."""
        yield f"- programs of effects: {self.programs}, of which {self.too_long} had too many steps"
        yield f"- compared with HH: {self.compared['HH']}; with EFF: {self.compared['EFF']}"
        yield f"- disagreements: {len(self.failures)}"
        yield f"- ends: {', '.join(f'{name} {count}' for name, count in sorted(self.ends.items()))}"
        yield f"- parts: {', '.join(f'{name} {count}' for name, count in sorted(self.parts.items()))}"


def meanings(term: Term) -> dict[str, Outcome]:
    """Run a program by the semantics that can run it, and return the outcomes."""
    found = {}
    if in_hh(term):
        found["HH"] = to_hh.run(term, STEPS)
    if in_eff(term):
        found["EFF"] = to_eff.run(term, STEPS)
    return found


def agree(found: Outcome, meaning: Outcome) -> bool:
    """Whether two outcomes are the same. The output is compared only if the semantics reports it.

    EFF does not report the output of a program that ends at an unhandled operation.
    """
    return found[:2] == meaning[:2] and (meaning[2] is None or found[2] == meaning[2])


def disagreement(term: Term, expected: dict[str, Outcome], library: ModuleType = effects) -> bool:
    """Whether the library's outcome of a program differs from that of a semantics.

    A multi-shot continuation may hold the rest of a one-shot one. To resume this again is an error in the library, but
    not in EFF, where all continuations are multi-shot. Such an error does not count as a disagreement.
    """
    found = run_library(term, library)
    if found[0] == "resumed twice" and not in_hh(term):
        return False
    return not all(agree(found, meaning) for meaning in expected.values())


def run_library(term: Term, library: ModuleType) -> Outcome:
    """Run a program by the library, and return the outcome; an unexpected exception is an outcome too."""
    try:
        return to_python.run(term, library)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"{type(error).__name__}: {error}", None, None


def differs(term: Term, library: ModuleType = effects) -> bool:
    """Whether the library disagrees with a semantics on a program that does not take too many steps."""
    expected = meanings(term)
    if any(end == "too long" for end, _, _ in expected.values()):
        return False
    return disagreement(term, expected, library)


def compare(first: int, last: int, seed: int, size: int = 14, library: ModuleType = effects) -> EffectsReport:
    """Compare the library with the semantics on the programs with the numbers from `first` up to `last`."""
    report = EffectsReport()
    for number in range(first, last):
        term = program(f"{seed}/{number}", size)
        expected = meanings(term)
        report.programs += 1
        if not expected or any(end == "too long" for end, _, _ in expected.values()):
            report.too_long += 1
            continue
        report.compared.update(expected.keys())
        report.ends[next(iter(expected.values()))[0]] += 1
        report.parts.update(_kinds(term))
        if disagreement(term, expected, library):
            report.failures.append(term)
    return report


def compare_many(
    programs: int, seed: int, jobs: int, size: int, tell: Callable[[EffectsReport], None] = lambda report: None
) -> EffectsReport:
    """Compare many programs, in several processes; `tell` is called with the report so far.

    >>> compare_many(5, seed=0, jobs=1, size=8).failures
    []
    """
    report = EffectsReport()
    for part in each_chunk(compare, programs, jobs, seed, size):
        report.add(part)
        tell(report)
    return report


def _kinds(term: Term) -> Iterator[str]:
    for part in term.all():
        if isinstance(part, Clause):
            yield f"{part.kind} clause"
            if part.around is not None:
                yield "handler around a yield"
        elif isinstance(part, Handle) and isinstance(part.body, Resume | Move):
            yield "handler around a resumption"
        elif isinstance(part, Handle | Mask | Perform | Raise | Move | Resume):
            yield type(part).__name__.lower()


def shrink(term: Term, fails: Callable[[Term], bool] = differs) -> Term:
    """Shrink a program that fails, until none of its smaller variants fails."""
    while True:
        for candidate in smaller(term):
            try:
                if closed(candidate) and fails(candidate):
                    term = candidate
                    break
            except (Stuck, SyntaxError, AssertionError):  # the variant uses a name outside its scope
                continue
        else:
            return term


def shown(term: Term) -> str:
    """The text of a failing program as Python, with its outcomes as comments."""
    found = {"effgrad.effects": run_library(term, effects), **meanings(term)}
    return to_python.source(term) + "".join(f"\n# {name}: {outcome}" for name, outcome in found.items()) + "\n"
