"""Random programs of effects mean the same to the library and to the papers' semantics; a broken engine is caught."""

import importlib
import pathlib
import random
import signal
import sys

import pytest

from effgrad import effects
from effgrad.papers.handlers import to_python
from effgrad.papers.handlers.comparison import agree, compare, disagreement, meanings, shrink
from effgrad.papers.handlers.generation import program
from effgrad.papers.handlers.terms import (
    Clause,
    Handle,
    Num,
    Perform,
    Plus,
    Var,
    in_eff,
    in_hh,
)

PROGRAMS = 400


@pytest.fixture(scope="module")
def programs():
    terms = [program(f"3/{number}", 14) for number in range(PROGRAMS)]
    pairs = [(term, meanings(term)) for term in terms]
    return [(term, found) for term, found in pairs if found and all(end != "too long" for end, _, _ in found.values())]


def test_the_library_agrees_with_the_papers(programs):
    for term, expected in programs:
        assert not disagreement(term, expected), to_python.source(term)


def test_the_semantics_agree_with_each_other(programs):
    both = 0
    for _, expected in programs:
        if len(expected) == 2:
            both += 1
            assert agree(*expected.values())
    assert both > PROGRAMS // 10


def test_the_programs_have_all_that_effects_can_do(programs):
    report = compare(0, 60, seed=1)
    for kind in ("tail", "around", "once", "final", "control", "multi"):
        assert report.parts[f"{kind} clause"] > 5
    assert min(report.parts[part] for part in ("mask", "move", "raise", "resume", "handler around a resumption")) > 1
    assert report.parts["handler around a yield"] > 1
    assert len(report.ends) > 2 and not report.failures
    assert {(in_hh(term), in_eff(term)) for term, _ in programs} == {(True, True), (True, False), (False, True)}


def test_a_known_program():
    """102: the return clause performs at the handler outside."""
    same = Clause("a", "tail", "p1", Var("p1"))
    inner = Handle(0, (same,), Perform(0, "a", Num(2)), "v1", Perform(0, "a", Var("v1")))
    term = Handle(0, (Clause("a", "tail", "p2", Plus(Var("p2"), Num(100))),), inner)
    assert to_python.run(term) == ("value", 102, [])
    assert meanings(term) == {"HH": ("value", 102, []), "EFF": ("value", 102, [])}


# One change of the source each, which must be seen.
MUTANTS = {
    "a resumption keeps the handlers of the first place": (
        "continuations", "= below = frames.get()", "= below = self.frame.below or frames.get()",
    ),
    "the return clause runs inside its handler": (
        "handler", "result = activation.return_(result)",
        "frames.set(frame); result = activation.return_(result); frames.set(frame.below)",
    ),
    "a clause runs inside its own handler": (
        "effect",
        "frames.set(below)\n                return",
        "return",
    ),
    "a masked operation is not skipped": ("effect", "self.masks += 1", "pass"),
    "a mask is never used up": ("effect", "self.masks -= 1", "pass"),
    "an operation without a clause is not passed on": (
        "effect", "if clause is not None:\n                return self.call(clause, frame)",
        "if clause is not None or self.partial is not None:\n                return self.call(clause, frame)",
    ),
    "pending clauses finish first to last": ("clauses", "pending.pop()", "pending.pop(0)"),
    "a pending clause does not see an error": ("clauses", "generator.throw(error)", "return None, error"),
    "the result of a once clause is lost": ("clauses", "(stop.value, None) if", "(result, None) if"),
    "a shallow handler is deep": ("handler", "frame.names = ()", "pass"),
    "a shallow handler keeps its return clause": ("continuations", "(), True", "(), False"),
    "a one-shot continuation for two calls": (
        "continuations", "            self.run = None\n            self._shrink()\n", "",
    ),
    "operations are performed again in a replay": ("continuations", "ask() if log is None else", "ask() if True else"),
    "a replay goes one operation too far": ("replay", "self.answers[:place]", "self.answers[: place - 1]"),
    "a spent program is grafted without its handler": (
        "continuations", "self.frame.names, self\n", "(), self\n",
    ),
    "a handler around a yield is for the clause alone": ("clauses", "install(self, below, installed)", "pass"),
    "a captured program forgets the handler around a yield": (
        "continuations", "if self.frame.below is not below:", "if False:",
    ),
    "a handler is left in place by an abort": ("handler", "abort.activation is not activation", "False"),
}  # fmt: skip


def mutated(file, text, instead):
    """The sources of the library with one change, and a name for it as a package of its own."""
    folder, name = pathlib.Path(effects.__file__).parent, f"mutant_{random.getrandbits(32):x}"
    sources = {path.stem: path.read_text() for path in folder.glob("*.py")}
    assert text in sources[file], "the mutant no longer fits the source"
    sources[file] = sources[file].replace(text, instead, 1)
    return sources, name


@pytest.fixture
def mutant(request, tmp_path, monkeypatch):
    sources, name = mutated(*MUTANTS[request.param])
    (tmp_path / name).mkdir()
    for stem, text in sources.items():
        (tmp_path / name / f"{stem}.py").write_text(text.replace("effgrad.effects", name))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(name)
    for module in [module for module in sys.modules if module.split(".")[0] == name]:
        del sys.modules[module]


class Endless(Exception):
    """A mutant that does not finish."""


@pytest.fixture
def alarm():
    """Ends what does not finish."""

    def ring(*_):
        raise Endless

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 3.0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mutant", MUTANTS, indirect=True)
def test_a_mutant_of_the_engine_is_caught(mutant, programs, alarm):
    for term, expected in programs:
        alarm()
        if disagreement(term, expected, mutant):
            return
    pytest.fail("no program differs")


@pytest.mark.parametrize("mutant", ["the return clause runs inside its handler"], indirect=True)
def test_a_failing_program_is_made_small(mutant, programs):
    def fails(term):
        return disagreement(term, meanings(term), mutant)

    term = shrink(next(term for term, _ in programs if fails(term)), fails)
    assert fails(term) and len(to_python.source(term)) - len(to_python.PRELUDE) < 500
