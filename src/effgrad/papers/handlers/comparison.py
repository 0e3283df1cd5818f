"""Many programs, each run by the library and by the semantics that can run it: `effgrad verify --effects N`."""

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
        """Return a page of Markdown."""
        yield f"- programs of effects: {self.programs}, of which {self.too_long} had too many steps"
        yield f"- compared with HH: {self.compared['HH']}; with EFF: {self.compared['EFF']}"
        yield f"- disagreements: {len(self.failures)}"
        yield f"- ends: {', '.join(f'{name} {count}' for name, count in sorted(self.ends.items()))}"
        yield f"- parts: {', '.join(f'{name} {count}' for name, count in sorted(self.parts.items()))}"


def meanings(term: Term) -> dict[str, Outcome]:
    """The outcomes of a program by the semantics that can run it."""
    found = {}
    if in_hh(term):
        found["HH"] = to_hh.run(term, STEPS)
    if in_eff(term):
        found["EFF"] = to_eff.run(term, STEPS)
    return found


def agree(found: Outcome, meaning: Outcome) -> bool:
    """Whether two outcomes are the same; EFF does not tell what was written before an operation without a handler."""
    return found[:2] == meaning[:2] and (meaning[2] is None or found[2] == meaning[2])


def disagreement(term: Term, expected: dict[str, Outcome], library: ModuleType = effects) -> bool:
    """Whether the library ends a program in another way than a semantics.

    A multi-shot continuation may hold the rest of a one-shot one. To resume that again is an error in the library, and
    not in EFF, where all continuations are for any number of calls.
    """
    found = run_library(term, library)
    if found[0] == "resumed twice" and not in_hh(term):
        return False
    return not all(agree(found, meaning) for meaning in expected.values())


def run_library(term: Term, library: ModuleType) -> Outcome:
    """The outcome of a program by the library; an error that none should end with is one of its own."""
    try:
        return to_python.run(term, library)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"{type(error).__name__}: {error}", None, None


def differs(term: Term, library: ModuleType = effects) -> bool:
    """Whether the library disagrees with a semantics on a program."""
    expected = meanings(term)
    if any(end == "too long" for end, _, _ in expected.values()):
        return False
    return disagreement(term, expected, library)


def compare(first: int, last: int, seed: int, size: int = 14, library: ModuleType = effects) -> EffectsReport:
    """Run the programs from one number up to another, and compare."""
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
    """A program that still fails, none of whose smaller ones does."""
    while True:
        for candidate in smaller(term):
            try:
                if closed(candidate) and fails(candidate):
                    term = candidate
                    break
            except (Stuck, SyntaxError, AssertionError):  # a name out of its scope
                continue
        else:
            return term


def shown(term: Term) -> str:
    """A program that fails, as Python, with its outcomes."""
    found = {"effgrad.effects": run_library(term, effects), **meanings(term)}
    return to_python.source(term) + "".join(f"\n# {name}: {outcome}" for name, outcome in found.items()) + "\n"
