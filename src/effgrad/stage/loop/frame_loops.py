"""Loops of a program that is being compiled: each is captured, performed as one operation, and its names bound.

What cannot be captured is run by Python, step by step; a warning names the line and the reason once.
"""

import ast
import warnings
from collections.abc import Mapping
from typing import Any

from effgrad.program.control import Loop
from effgrad.stage.loop.activity import loop_writes, without_dead
from effgrad.stage.loop.affine import Affine, NotCaptured
from effgrad.stage.loop.capture import Capture
from effgrad.stage.loop.frames import Frame, Retyped
from effgrad.stage.loop.ir import Buffer, Region
from effgrad.stage.loop.names import read_after
from effgrad.stage.loop.program import ROOM, Program, part, run_region
from effgrad.stage.loop.source import Source
from effgrad.stage.loop.values import Lazy, View

# Loops of fewer steps, with those inside, are better as straight-line code.
FEWEST = 32


class Loops:
    """The loops of one staged program."""

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.refused: set[Loop] = set()

    def __call__(self, loop: Loop, names: Mapping[str, Any], outside: Mapping[str, Any]) -> dict[str, Any] | None:
        """Run a loop as one operation: the names that it has bound, or None if Python has to run it."""
        if loop in self.refused:
            return None
        capture: Capture | None = None
        try:
            if any(isinstance(x, ast.Return | ast.Yield | ast.YieldFrom) for x in ast.walk(loop.statement)):
                raise NotCaptured("a `return` inside the loop")
            capture, frame, results = captured_loop(loop, names, outside)
            steps = capture.steps
            if steps is not None and steps < FEWEST:
                return None
            return self.performed(capture, frame, results, loop)
        except NotCaptured as reason:
            self.refused.add(loop)
            line = reason.line or loop.statement.lineno
            warnings.warn(
                f"{loop.file}:{line}: the loop in {loop.function.name!r} is unrolled, because of {reason}",
                stacklevel=4,
            )
            return None

    def performed(
        self, capture: Capture, frame: Frame, results: dict[str, Any], loop: Loop
    ) -> dict[str, Any]:  # fmt: skip
        """The captured loop performed, arrays written to, and the values of names."""
        changed = {b for s in capture.block for b in loop_writes(s)}
        values = {b: value for value, b in capture.inputs}
        outputs: dict[Buffer, None] = {b: None for _, b in capture.inputs if b in changed}
        found = {name: self.stored(capture, value, values) for name, value in results.items()}
        for value in found.values():
            outputs.update(dict.fromkeys(_buffers(value)))
        kept = [b for b in outputs if b not in values or b in changed]
        block = without_dead(capture.block, kept)
        used = Region([], kept, block).buffers()
        inputs = [(value, b) for value, b in capture.inputs if b in used]
        program = Program(Region([b for _, b in inputs], kept, block), self.room)
        packed = run_region(*[value for value, _ in inputs], program=program) if kept else None
        parts = {b: part(packed, program, k) for k, b in enumerate(kept)}
        for value, b in capture.inputs:
            if b in changed and b.shape:
                value[...] = parts[b]
                parts[b] = value
        return {name: _outside(value, parts, values) for name, value in found.items()}

    def stored(self, capture: Capture, value: Any, inputs: Mapping[Buffer, Any]) -> Any:
        """The value of a name after the loop, in whole buffers."""
        if isinstance(value, tuple | list):
            return type(value)(self.stored(capture, v, inputs) for v in value)
        if isinstance(value, View):
            if _is_whole(value):
                return value
            if value.buffer in inputs or not value.own:
                raise NotCaptured("a view of an array, made in the loop and used after it")
            return capture.store(value)
        if isinstance(value, Lazy | Affine):
            return capture.store(value)
        return value


def captured_loop(
    loop: Loop, names: Mapping[str, Any], outside: Mapping[str, Any]
) -> tuple[Capture, Frame, dict[str, Any]]:
    """The capture of a loop, the frame after it, and the values of the names that it binds and that are read later."""
    retyped: dict[Any, Any] = {}
    function, statement = loop.function, loop.statement
    while True:
        capture = Capture(retyped)
        frame = Frame(Source(function, function.body, {}, dict(outside)), dict(names))
        try:
            capture.statement(statement, frame)
        except Retyped as again:
            retyped[again.key] = again.dtype
            continue
        except NotCaptured as reason:
            reason.line = capture.line
            raise
        live = [n for n in loop.bound if n in frame.own and (n in names or read_after(function.body, statement, n))]
        return capture, frame, {n: frame.own[n] for n in live if frame.own[n] is not names.get(n)}


def _is_whole(view: View) -> bool:
    whole = [a.axis for a in view.axes] == list(range(len(view.buffer.shape))) and view.shape == view.buffer.shape
    return whole and all(a.step == 1 for a in view.axes) and all(i == 0 for i in view.base)


def _buffers(value: Any) -> list[Buffer]:
    if isinstance(value, tuple | list):
        return [b for v in value for b in _buffers(v)]
    return [value.buffer] if isinstance(value, View) else []


def _outside(value: Any, parts: Mapping[Buffer, Any], inputs: Mapping[Buffer, Any]) -> Any:
    """A value of the program around, for one of the capture."""
    if isinstance(value, tuple | list):
        return type(value)(_outside(v, parts, inputs) for v in value)
    if isinstance(value, View):
        return parts[value.buffer] if value.buffer in parts else inputs[value.buffer]
    return value

