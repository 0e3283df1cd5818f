"""The steps of a derivative, as data and as text: a list of steps, each with the activation that took it.

An `Explanation` is independent of how the steps were observed (`effgrad.api.listening`). All values in it are strings,
shapes and names. So `data()` can be written as JSON, from which a page that steps through the derivative is made.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from effgrad.api.boxes import Box, draw
from effgrad.vocabulary import Shape, Value

_FILLS = {True: "#dbeafe", False: "#fef3c7"}  # colours of the explained derivative, and of those inside the program


@dataclass(frozen=True)
class Shown:
    """A value: its first digits and elements as text, its shape, and its dtype ("" for a Python number)."""

    text: str
    shape: Shape = ()
    dtype: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.dtype}{list(self.shape)}" if self.shape else self.text


@dataclass(frozen=True)
class Argument:
    """An argument of an operation: its name (None for a constant), and its value."""

    name: str | None
    value: Shown

    def __str__(self) -> str:
        return self.name or str(self.value)


@dataclass(frozen=True)
class Share:
    """The share of a cotangent that goes to the value `name`: the argument's number, the share, and the sum so far.

    In a rerun of a checkpoint, a result receives the cotangent of the first run's result; then `argument` is 0.
    """

    argument: int
    name: str | None
    part: Shown
    total: Shown


@dataclass
class Step:
    """One step of a derivative.

    Attributes:
        number: its index in the list.
        kind: "begin" and "end" of an activation; "input", an input value of the activation; "apply", an operation
            that it handles; "part" and "part ends", a run of a checkpoint; "seed", the start of a reverse pass with the
            cotangent of a value; "pull", a cotangent propagated to the arguments of an operation.
        activation: the number of the activation whose handler takes the step.
        parent: the number of the step that contains this one, as a clause's step contains the operations that the
            clause performs; or None.
        phase: "forward", or "reverse" once the reverse pass of the explained derivative has begun.
        line: the file and the line of the program, if known.
        name: the name of the value that the step is about.
        operation: the name of the primitive.
        arguments, parameters: those of the operation.
        value: the value itself.
        record, content: the record that the mode keeps with the value (a tangent, a cell, a tape entry, a term): its
            kind or name, and its content.
        cotangent: the cotangent of the value, for "seed" and "pull".
        shares: the shares of the cotangent that the arguments receive.
        pairs: the second derivatives that edge pushing holds after the step, by pairs of names.
        run: for a part, the number of times that it has begun.
    """

    number: int
    kind: str
    activation: int
    parent: int | None
    phase: str
    line: tuple[str, int] | None = None
    name: str | None = None
    operation: str | None = None
    arguments: list[Argument] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    value: Shown | None = None
    record: str = ""
    content: str = ""
    cotangent: Shown | None = None
    shares: list[Share] = field(default_factory=list)
    pairs: dict[str, str] = field(default_factory=dict)
    run: int = 0

    def call(self, values: bool = False) -> str:
        """The operation with its arguments as text, by name or by value."""
        given = [a.value.text if values else str(a) for a in self.arguments]
        named = [f"{name}={value}" for name, value in self.parameters.items()]
        return f"{self.operation}({', '.join(given + named)})"

    @property
    def kept(self) -> str:
        """The record that the mode keeps with the value, with its content."""
        return f"{self.record} {self.content}".rstrip()


@dataclass(frozen=True)
class Activation:
    """An activation of a handler: its number, its name, its mode, and whether a clause made it for its own work."""

    number: int
    name: str
    mode: str
    internal: bool


@dataclass(frozen=True)
class Source:
    """Consecutive lines of a file of the program, starting at line `first`."""

    file: str
    first: int
    lines: list[str]


@dataclass
class Explanation:
    """The steps that a mode took on a program.

    Attributes:
        mode: the name of the mode.
        function: the name of the function.
        below: the number of the activation that evaluates for all others, or None.
        chosen: the number of the activation of the mode that is explained.
        activations: all activations.
        steps: all steps, in the order in which they began.
        value: the leaves of the function's value.
        derivatives: the derivatives that the mode computed, by name.
        sources: the functions and lines of the program that the steps are in.
    """

    mode: str
    function: str
    chosen: int
    below: int | None
    activations: list[Activation]
    steps: list[Step]
    value: list[Shown]
    derivatives: dict[str, Shown]
    sources: list[Source]

    def data(self) -> dict[str, Value]:
        """The explanation as nested dictionaries and lists of strings and numbers, for `json.dumps`."""
        return {"version": 1, **dataclasses.asdict(self)}

    def text(self) -> str:
        """The explanation as text: the forward pass, the reverse pass, and the derivatives."""
        shown = list(self._lines())
        phases = {phase: [line for of, line in shown if of == phase] for phase in ("forward", "reverse")}
        results = [f"  {name} = {value}" for name, value in self.derivatives.items()] or [f"  {self.value[0]}"]
        sections = {f"{phase} pass": lines for phase, lines in phases.items() if lines}
        sections["derivatives" if self.derivatives else "value"] = results
        return "\n".join(line for title, lines in sections.items() for line in (title, *lines))

    def graph(self) -> str:
        """A drawing (SVG) of the program's values, each with its operation, and its cotangent or record.

        The values of a derivative inside the program have another colour, and a dashed line from the values that they
        stand for.
        """
        last = {share.name: share.total for step in self.steps for share in step.shares}
        last |= {step.name: step.cotangent for step in self.steps if step.cotangent is not None}
        boxes: list[Box] = []
        place: dict[str | None, int] = {}
        for step in self.steps:
            if step.kind not in ("input", "apply") or step.name is None or self.is_internal(step):
                continue
            place[step.name] = len(boxes)
            below = [child.name for child in self.steps if child.parent == step.number]
            sources = [argument.name for argument in step.arguments]
            inputs, aliases = (sources, below) if step.kind == "apply" else ([], sources)
            kept = f"cotangent {last[step.name]}" if step.name in last else step.kept
            boxes.append(Box(
                [f"{step.name} {step.operation or step.kind}", str(step.value), kept],
                _FILLS[step.activation == self.chosen],
                *([place[name] for name in names if name in place] for names in (inputs, aliases)),
            ))  # fmt: skip
        return draw(boxes)

    def _repr_svg_(self) -> str:
        return self.graph()

    def __repr__(self) -> str:
        return f"<explanation of {self.function} by {self.mode}: {len(self.steps)} steps>"

    def children(self) -> dict[int | None, list[Step]]:
        """The steps by the number of the step that contains them."""
        found: dict[int | None, list[Step]] = {}
        for step in self.steps:
            found.setdefault(step.parent, []).append(step)
        return found

    def is_internal(self, step: Step) -> bool:
        """Whether a step is internal to a clause: an evaluation, or a step of a derivative that the clause takes."""
        if step.activation == self.below or self.activations[step.activation].internal:
            return True
        return step.parent is not None and self.steps[step.parent].activation == step.activation

    def _lines(self) -> Iterator[tuple[str, str]]:
        children, depth = self.children(), dict[int, int]()
        for step in self.steps:
            above = step.parent
            depth[step.number] = 0 if above is None else depth[above] + (not self.is_internal(self.steps[above]))
            if not self.is_internal(step):
                for line in _WRITERS[step.kind](self, step, children):
                    yield step.phase, "  " * (depth[step.number] + 1) + line

    def by(self, step: Step) -> str:
        """The name of the activation that takes a step."""
        return self.activations[step.activation].name

    def of_another(self, step: Step) -> str:
        """Text that names the activation which takes a step, if it is not that of the explained mode."""
        return "" if step.activation == self.chosen else f"  by {self.by(step)}"

    def performed(self, step: Step, children: dict[int | None, list[Step]]) -> list[tuple[str, str]]:
        """The operations that the clause of a step performs, with the names of the activations that handle them."""
        found = []
        for child in children.get(step.number, ()):
            if child.kind == "apply":
                internal = self.is_internal(child) and child.activation != self.below
                found += self.performed(child, children) if internal else [(child.call(True), self.by(child))]
        return found


Children = dict[int | None, list[Step]]


def _apply_line(explained: Explanation, step: Step, children: Children) -> list[str]:
    performed: dict[str, list[str]] = {}
    for call, by in explained.performed(step, children):
        performed.setdefault(by, []).append(call)
    others = "; ".join(f"{', '.join(calls)}: by {by}" for by, calls in performed.items()) or "nothing"
    turn = f", which performs {others}" if explained.below is not None else ""
    own = f"{step.name} = {step.call()}"
    return [f"{own:32} = {step.value!s:12} {step.kept:16} by {explained.by(step)}{turn}"]


def _input_line(explained: Explanation, step: Step, _: Children) -> list[str]:
    primal = f" = {step.arguments[0].name}" if step.arguments[0].name else ""
    own = f"{step.name}{primal}"
    return [f"{own:32} = {step.value!s:12} {step.kept:16} by {explained.by(step)}"]


def _pull_lines(explained: Explanation, step: Step, _: Children) -> list[str]:
    lines = []
    for share in step.shares:
        rule = f"<{share.name}> := <{share.name}> + d{share.argument} {step.call(True)} * <{step.name}>"
        at = f"  at {step.record}" if step.content or step.record[-1:].isdigit() else ""
        lines.append(f"{rule:60} now {share.total}{at}{explained.of_another(step)}")
    if step.pairs:
        lines.append("pairs: " + ", ".join(f"{pair} {value}" for pair, value in step.pairs.items()))
    return lines


def _seed_line(explained: Explanation, step: Step, _: Children) -> list[str]:
    return [f"<{step.name}> := {step.cotangent}{explained.of_another(step)}"]


def _part_line(explained: Explanation, step: Step, _: Children) -> list[str]:
    again = "runs" if step.run == 1 else "runs again"
    return [f"{step.name} {again}{step.record and f', {step.record}'}{explained.of_another(step)}"]


def _part_end_line(explained: Explanation, step: Step, _: Children) -> list[str]:
    taken = [f"<{share.name}> := {share.part}, the cotangent from the first run" for share in step.shares]
    return [f"{step.name} ends{explained.of_another(step)}", *taken]


def _bounds_line(explained: Explanation, step: Step, _: Children) -> list[str]:
    return [] if step.activation == explained.chosen else [f"{explained.by(step)} {step.kind}s"]


_WRITERS = {
    "begin": _bounds_line, "end": _bounds_line, "input": _input_line, "apply": _apply_line, "part": _part_line,
    "part ends": _part_end_line, "seed": _seed_line, "pull": _pull_lines,
}  # fmt: skip
