"""The lines that `effgrad calculus run|type|trace FILE` prints; the file's ending names its language."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from effgrad.papers import hh, lam
from effgrad.papers.eff import reading as eff_reading
from effgrad.papers.eff import semantics as eff_semantics
from effgrad.papers.eff.types import check
from effgrad.papers.hh.semantics import shown as shown_value
from effgrad.papers.lam import delta
from effgrad.papers.lam.primitives import Left, Right
from effgrad.papers.lam.terms import App
from effgrad.papers.lam.translations import TRANSLATIONS as WRAPPERS
from effgrad.papers.syntax import CalculusError, deep
from effgrad.vocabulary import Object

LANGUAGES = (".lam", ".eff", ".hh")
ACTIONS = ("run", "type", "trace")
TRANSLATIONS = ("forward", "reverse1", "reverse2", "reverse")
Write = Callable[[str], None]


class Request(NamedTuple):
    """A program and the action to perform on it."""

    action: str
    language: str
    text: str
    argument: str | None = None
    translations: tuple[str, ...] = ()
    steps: int = 10**6


@deep()
def execute(request: Request, write: Write) -> None:
    """Carry out a request and write the lines of the answer; raise `CalculusError` for a mistake in the program."""
    if request.language != ".lam" and (request.argument or request.translations):
        raise CalculusError("an argument and a translation are for programs in .lam")
    {".lam": _lam, ".eff": _eff, ".hh": _hh}[request.language](request, write)


def language_of(path: Path) -> str:
    """Return the ending of a file's name; raise `CalculusError` if no language has it."""
    if path.suffix not in LANGUAGES:
        raise CalculusError(f"{path} ends in none of {', '.join(LANGUAGES)}")
    return path.suffix


class _Trace:
    """Counts the steps of a run, and writes each of them if the action is `trace`."""

    def __init__(self, request: Request, write: Write) -> None:
        self.wanted, self.write = request.action == "trace", write
        self.count = 0

    def step(self, rule: str, detail: Callable[[], str]) -> None:
        self.count += 1
        if self.wanted:
            self.write(f"{self.count:6}  {rule:10} {detail()}".rstrip())


def _lam(request: Request, write: Write) -> None:
    program = lam.parse(request.text)
    type_ = lam.typeof(program)
    for translation in request.translations:
        program = WRAPPERS[translation](program)
        type_ = lam.typeof(program)
    if request.argument is not None:
        program = App(program, lam.parse(request.argument))
        type_ = lam.typeof(program)
    if request.action == "type":
        return write(str(type_))
    trace = _Trace(request, write)

    # A step without a rule visits one leaf of a value, in a polytypic operation.
    def tell(rule: str, subject: object) -> None:
        trace.step(rule or "leaf", lambda: "" if subject is None else shown(subject))

    value = lam.Interpreter(limit=request.steps, tell=tell).run(program)
    write(f"{shown(value)} : {type_}")
    write(f"{trace.count} steps")


def _eff(request: Request, write: Write) -> None:
    program, type_ = check(eff_reading.parse(request.text))
    if request.action == "type":
        return write(str(type_))
    trace = _Trace(request, write)
    if trace.wanted:
        write(f"{'':18} {program.body}")

    def tell(rule: str, machine: Object) -> None:
        trace.step(rule, lambda: str(machine.whole()))

    value = eff_semantics.evaluate(program, steps=request.steps, tell=tell)
    write(f"{shown(value)} : {type_}")
    write(f"{trace.count} steps")


def _hh(request: Request, write: Write) -> None:
    if request.action == "type":
        raise CalculusError("HH has no types")
    trace = _Trace(request, write)
    heap: dict[Object, Object] = {}
    printed = 0

    def tell(rule: str, machine: Object) -> None:
        nonlocal printed
        changed = [f"{key} = {shown_value(new)}" for key, new in machine.heap.items() if heap.get(key) is not new]
        heap.update(machine.heap)
        value = [shown_value(machine.value)] if machine.term is None else []
        trace.step(rule, lambda: "; ".join(value + changed))
        for item in machine.printed[printed:]:
            write(f"{'printed ' if trace.wanted else ''}{shown_value(item)}")
        printed = len(machine.printed)

    value = hh.evaluate(hh.parse(request.text), steps=request.steps, tell=tell)
    write(shown_value(value))
    write(f"{trace.count} steps")


def shown(value: Object) -> str:
    """The text of a value of `lam` or EFF."""
    match value:
        case Left(content):
            return f"inl {shown(content)}"
        case Right(content):
            return f"inr {shown(content)}"
        case str(label), content:
            return f"{label} {shown(content)}"
        case tuple() if value:
            return f"({', '.join(map(shown, _flat(value)))})"
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case delta.Zero() | delta.OneHot() | delta.Scale() | delta.Add() | delta.Var() | delta.Let():
            parts = [shown(getattr(value, name)) for name in value.__slots__]
            return " ".join([type(value).__name__, *(f"({p})" if " " in p and p[0] != "(" else p for p in parts)])
    return "a function" if callable(value) else str(value)


def _flat(pair: Object) -> list[Object]:
    """The items of pairs nested to the right, since (a, (b, c)) is written (a, b, c)."""
    first, second = pair
    is_pair = isinstance(second, tuple) and len(second) == 2 and not isinstance(second[0], str)
    return [first, *(_flat(second) if is_pair else [second])]
