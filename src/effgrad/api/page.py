"""A web page that steps through a derivative, made from its explanations: one self-contained file."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import PurePath

from effgrad.api.explanation import Explanation, Step
from effgrad.vocabulary import Value

LONGEST = 2000  # the largest number of steps of a mode on a page


def page(explanations: Sequence[Explanation], title: str = "") -> str:
    """Return a page (HTML) for the explanations of one function by several modes."""
    parts = files("effgrad.api") / "stepper"
    data = json.dumps([steps_of(explanation) for explanation in explanations], separators=(",", ":"))
    fields = {
        "title": escape(title or f"{explanations[0].function}, step by step"),
        "css": (parts / "page.css").read_text(encoding="utf-8"), "js": (parts / "page.js").read_text(encoding="utf-8"),
        "data": data.replace("<", "\\u003c"),  # so that no string of the program can close the script element
    }  # fmt: skip
    text = (parts / "page.html").read_text(encoding="utf-8")
    for name, value in fields.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def steps_of(explanation: Explanation) -> dict[str, Value]:
    """The data of a page for one mode: the steps that are not internal to a clause, each with its sentences."""
    children = explanation.children()
    running: list[int] = []
    revived: list[str | None] = []  # checkpoints that run again after their handler has ended
    steps: list[dict[str, Value]] = []
    for step in explanation.steps:
        if step.kind == "begin":
            running.insert(0, step.activation)
        if step.kind == "part" and step.activation not in running:
            running.insert(0, step.activation)
            revived.append(step.name)
        if not explanation.is_internal(step):
            made = _step(explanation, step, explanation.performed(step, children)) | {"handlers": list(running)}
            steps.append({name: value for name, value in made.items() if value not in (None, "", [], {})})
        again = step.kind == "part ends" and step.name in revived
        if again:
            revived.remove(step.name)
        if step.kind == "end" or again:
            running.remove(step.activation)
    if len(steps) > LONGEST:
        steps = steps[:LONGEST]
        steps[-1]["say"] = f"The page ends here, after {LONGEST} steps."
    sources = [{"file": PurePath(s.file).name, "first": s.first, "lines": s.lines} for s in explanation.sources]
    results = [f"{name} = {value}" for name, value in explanation.derivatives.items()]
    return {
        "mode": explanation.mode, "activations": [a.name for a in explanation.activations], "sources": sources,
        "results": [f"value {', '.join(map(str, explanation.value))}", *results], "steps": steps,
    }  # fmt: skip


def _step(explanation: Explanation, step: Step, performed: list[tuple[str, str]]) -> dict[str, Value]:
    places = [
        place for place, source in enumerate(explanation.sources)
        if step.line and step.line[0] == source.file and 0 <= step.line[1] - source.first < len(source.lines)
    ]  # fmt: skip
    return {
        "kind": step.kind, "by": step.activation, "phase": step.phase, "name": step.name,
        "line": [places[0], step.line[1]] if places and step.line else None,
        "call": step.call() if step.operation else None, "value": step.value and str(step.value), "keeps": step.kept,
        "from": [a.name for a in step.arguments if a.name], "cotangent": step.cotangent and str(step.cotangent),
        "shares": [{"to": share.name, "total": str(share.total)} for share in step.shares], "pairs": step.pairs,
        "say": _SENTENCES[step.kind](step, explanation.by(step), step.activation == explanation.chosen),
        "details": [*_shares(step), *(f"performs {call}, which {by} takes" for call, by in performed)],
    }  # fmt: skip


def _shares(step: Step) -> list[str]:
    """Return a sentence for each share of a step's cotangent."""
    if step.kind == "part ends":
        return [f"{s.name} is that result again: ⟨{s.name}⟩ becomes {s.total}" for s in step.shares]
    return [
        f"⟨{s.name}⟩ gets d{s.argument} {step.call(True)} · ⟨{step.name}⟩ = {s.part}, and is {s.total} now"
        for s in step.shares
    ]


def _keeps(step: Step, by: str) -> str:
    if step.record == "cell":
        return f" {by} keeps a cell for its cotangent."
    return f" {by} keeps with it: {step.kept}." if step.kept else ""


def _begin(step: Step, by: str, chosen: bool) -> str:
    return f"The handler {by} begins" + ("." if chosen else ": a derivative inside the program.")


def _input(step: Step, by: str, chosen: bool) -> str:
    primal = f", which stands for {step.arguments[0].name}" if step.arguments[0].name else ""
    return f"{step.name} is an input of {by}{primal}: {step.value}.{_keeps(step, by)}"


def _apply(step: Step, by: str, chosen: bool) -> str:
    own = _keeps(step, by) if step.kept != "not recorded" else " It is not recorded."
    return f"{by} answers {step.call()}: {step.name} is {step.value}.{own}"


def _part(step: Step, by: str, chosen: bool) -> str:
    again = "begins" if step.run == 1 else "runs again, for the reverse pass has come to it"
    return f"{step.name} {again}.".capitalize() + (" Nothing is recorded in it." if step.record else "")


def _part_ends(step: Step, by: str, chosen: bool) -> str:
    return f"{step.name} ends.".capitalize()


def _seed(step: Step, by: str, chosen: bool) -> str:
    whose = "" if chosen else f" of {by}"
    return f"The reverse pass{whose} begins: ⟨{step.name}⟩, the cotangent of {step.name}, is {step.cotangent}."


def _pull(step: Step, by: str, chosen: bool) -> str:
    record = f" ({step.record})" if step.content or step.record[-1:].isdigit() else ""
    return f"{by} takes ⟨{step.name}⟩ = {step.cotangent} back through {step.name} = {step.call()}{record}."


def _end(step: Step, by: str, chosen: bool) -> str:
    return f"The handler {by} ends."


_SENTENCES = {
    "begin": _begin, "input": _input, "apply": _apply, "part": _part, "part ends": _part_ends, "seed": _seed,
    "pull": _pull, "end": _end,
}  # fmt: skip
