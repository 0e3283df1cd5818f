"""The loops of a program that is being compiled: each is captured and run as one operation, and its names are bound.

Python runs a loop that cannot be captured, step by step; one warning names the line and the reason.
"""

import ast
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from effgrad.arrays.layout import without_axes
from effgrad.arrays.traced import as_pythons
from effgrad.arrays.value import Tracer
from effgrad.arrays.written import read
from effgrad.errors import StagingWarning, may_be_caught, user_place, warn
from effgrad.program import used_up
from effgrad.program.control import Loop
from effgrad.program.operations import setitem
from effgrad.stage.loop.affine import Affine, Declined, NotCaptured
from effgrad.stage.loop.after import results_of
from effgrad.stage.loop.buffers import Buffer
from effgrad.stage.loop.capture import Capture
from effgrad.stage.loop.carried import Unknown
from effgrad.stage.loop.containers import like, parts_of
from effgrad.stage.loop.derivatives import Derivative, Pullback
from effgrad.stage.loop.doubtful import has_single
from effgrad.stage.loop.frames import FactFound, Facts, Frame, Function
from effgrad.stage.loop.functions import Rows
from effgrad.stage.loop.improve import improved
from effgrad.stage.loop.ir import Region, writes_in
from effgrad.stage.loop.iteration import RUNS
from effgrad.stage.loop.names import bound, writes_after
from effgrad.stage.loop.objects import released
from effgrad.stage.loop.operands import (
    Complex,
    Counted,
    Growing,
    Iterated,
    Lazy,
    Masked,
    Method,
    OneOf,
    Plane,
    Value,
    View,
    is_pythons,
    may_be_in_place,
    views_in,
)
from effgrad.stage.loop.places import PLACES
from effgrad.stage.loop.program import ROOM, Program, part, run_region
from effgrad.stage.loop.same_arrays import is_whole
from effgrad.stage.loop.sharing import Shared, Watch, watched
from effgrad.stage.loop.signature import signature
from effgrad.stage.loop.source import Source

LOGGER = logging.getLogger("effgrad.stage")

# A loop of fewer steps, counting those of inner loops, is better unrolled to straight-line code; the limit is lower for
# a loop that writes to arrays.
FEWEST, FEWEST_OF_WRITES = 32, 6
# The most times that a loop inside one that Python runs is captured.
MOST_CAPTURED = FEWEST


class Loops:
    """The loops of one staged program."""

    def __init__(self, make: Callable[..., Any] | None, limits: Sequence[int] = (), reason: str = "") -> None:
        # The memory limits in bytes; derivatives taken in the program add theirs.
        self.limits = list(limits)
        # The class that makes a region executable; None if all loops are unrolled, for the reason given.
        self.executable, self.reason, self.captured = make, reason, 0
        self.refused: set[Loop] = set()
        # For the captured loops: their numbers of steps, and arrays that may have another name after them.
        self.watches: list[tuple[Loop, int | None, Watch]] = []
        # The line and the reason of each long loop that Python runs.
        self.unrolled: list[str] = []
        # If all loops are unrolled, the messages and lines of those whose number of steps is not known.
        self.uncounted: list[tuple[str, tuple[str, int]]] = []
        self.programs: dict[Value, Program] = {}
        self.asked: dict[Loop, int] = {}

    def make(self, region: Region) -> Value:
        """Make a region executable, with a limit on the memory of its record."""
        assert self.executable is not None
        return self.executable(region, limit=min(self.limits, default=None))

    def room(self) -> int:
        """The bytes that the reverse of a loop may save before it reruns steps: an equal share of half the limit."""
        return max(min(self.limits) // (2 * self.captured), 1) if self.limits else ROOM

    def __call__(self, loop: Loop, names: Mapping[str, Value], outside: Mapping[str, Value]) -> dict[str, Any] | None:
        """Run a loop as one operation. Return the names that it has bound, or None if Python has to run it."""
        self.asked[loop] = self.asked.get(loop, 0) + 1
        if loop in self.refused or self.asked[loop] > MOST_CAPTURED:
            return None
        try:
            capture, results, shared = captured_loop(loop, names, outside)
            if capture.steps is not None and capture.steps < (FEWEST if not writes(capture) else FEWEST_OF_WRITES):
                return None
            LOGGER.debug("%s:%d: the loop is captured", loop.file, loop.statement.lineno)
            found = self.performed(capture, results)
            if capture.prints:
                warn(f"the loop in {loop.function.name!r} runs in machine code, which prints nothing", StagingWarning,
                     (loop.file, loop.statement.lineno))
            for generator in capture.consumed:
                generator.close()
            for table in (capture.inputs, capture.lifted):  # an array that only the capture knows is not in use
                table.clear()
            # A `while` that takes no step binds nothing.
            self.watches += [(loop, capture.length, watch) for watch in (watched(shared, found) if found else ())]
            return found
        except Declined:
            return None
        except NotCaptured as reason:
            self.refused.add(loop)
            at = loop.file, reason.line or loop.statement.lineno
            if loop.file != used_up.__file__:  # else the generator's own loops say so
                self.unroll(unrolled_because(loop, reason), at, reason.steps)
            return None

    def mistaken(self) -> dict[Loop, int | None]:
        """The loops that were captured although the program wrote, after them, to an array that had another name."""
        return {loop: steps for loop, steps, watch in self.watches if watch.finds_writes()}

    def begin_again(self, mistaken: Mapping[Loop, int | None]) -> None:
        """Forget what was captured, as the program is staged again; Python runs some of its loops."""
        for loop, steps in mistaken.items():
            reason = "an array that has two names after the loop, and is written to"
            self.unroll(unrolled_because(loop, reason), (loop.file, loop.place[1]), steps)
        self.refused |= mistaken.keys()
        self.watches, self.programs, self.asked, self.captured = [], {}, {}, 0

    def unroll(self, message: str, at: tuple[str, int], steps: int | None) -> None:
        """Warn that a loop is unrolled, if it is long."""
        if steps is None and self.executable is None:
            self.uncounted.append((message, at))
        elif steps is None or not 0 <= steps < FEWEST:  # a shorter loop is better unrolled
            self.warn(message, at)

    def check_guards(self, guards: int) -> None:
        """Warn of unrolled loops of unknown length if the program has many guards, as each of their steps adds one."""
        for message, at in dict.fromkeys(self.uncounted) if guards >= FEWEST else ():
            self.warn(message, at)

    def warn(self, message: str, at: tuple[str, int]) -> None:
        """Warn that a loop is unrolled, and note it for the report."""
        self.unrolled.append(f"{at[0]}:{at[1]}: {message}")
        warn(message, StagingWarning, at)

    def of_functions(
        self, loop: Loop, names: Mapping[str, Value], rows: Rows | None, memory: int | None
    ) -> dict[str, Any] | None:
        """Run a loop of `effgrad.loop`, however short. Return its names, or None if Python has to run it.

        `memory` is the number of carries that the reverse may keep. The results of the steps are under the name "rows".
        """
        try:
            capture, results, _ = captured_loop(loop, names, {})  # each step returns values
            results |= {"rows": [] if rows is None else list(rows.views)}
            states = [v.buffer for v in views_in(results["carry"])]
            room = None if memory is None else memory * sum([8 * b.size for b in states])
            return self.performed(capture, results, room)
        except NotCaptured as reason:
            self.unroll(f"a loop of effgrad.loop is unrolled, because of {reason}", user_place(), reason.steps)
            return None

    def performed(self, capture: Capture, results: dict[str, Value], room: int | None = None) -> dict[str, Value]:
        """Run the captured loop, write to the arrays that it changes, and return the values of the names."""
        if self.executable is None:
            refused = NotCaptured(self.reason)
            refused.steps = capture.steps
            raise refused
        changed = writes_in(capture.block)
        values = {b: value for value, b in capture.inputs}
        check_memory(values, changed, [array for array, _ in capture.constants.values()])
        found = {name: self.stored(capture, value, values) for name, value in results.items()}
        bound = [v.buffer for v in views_in(found) if v.buffer not in values]
        counter = [] if capture.counter is None else [capture.counter]
        outputs = list(dict.fromkeys([*(b for b in values if b in changed), *bound, *counter]))
        parts = self.run(capture, outputs, room) if outputs else {}
        if counter and not parts[counter[0]] > 0:
            return {}
        parts |= {b: form(parts[b]) for b, form in capture.forms.items()}
        write_arrays(values, changed, parts)
        write_planes(values, changed, parts)
        return capture.places.put_back({name: _outside(value, parts, values) for name, value in found.items()})

    def run(self, capture: Capture, outputs: list[Buffer], room: int | None = None) -> dict[Buffer, Value]:
        """Run the region and return the values of its outputs; its reverse may save `room` bytes."""
        block = improved(capture.block, outputs)
        used = set(Region([], outputs, block).buffers())
        inputs = [(value, b) for value, b in capture.inputs if b in used]
        region = Region([b for _, b in inputs], outputs, block)
        # Equal loops share one program, so a loop that is run twice on equal arguments runs once.
        key = signature(region), room
        if key not in self.programs:
            self.programs[key] = Program(region, self.make, self.room if room is None else lambda: room)
            self.captured += 1
        program = self.programs[key]
        values = [(input_now(value), b.narrow) for value, b in inputs]
        packed = run_region(*[v.astype(np.int64) if narrow else v for v, narrow in values], program=program)
        return {b: alone(part(packed, program, k)) for k, b in enumerate(outputs)}

    def stored(self, capture: Capture, value: Value, inputs: Mapping[Buffer, Value]) -> Value:
        """The value of a name after the loop, with each array as a whole buffer."""
        if isinstance(value, Complex):
            return Complex(*[self.stored(capture, v, inputs) for v in value])
        if (items := parts_of(value)) is not None:
            return like(value, [self.stored(capture, v, inputs) for v in items])
        if isinstance(value, View) and value.axes:
            if is_whole(value):
                return value
            if value.buffer in inputs or not value.own:
                raise NotCaptured("a view of an array, made in the loop and used after it")
            return capture.store(value)
        if isinstance(value, View | Lazy | Affine):
            return stored_number(capture, value)
        if isinstance(value, Growing):
            return self.stored(capture, capture.seen(value), inputs)
        if isinstance(value, Masked | Function | Method | OneOf | Counted | Iterated | Unknown | Derivative | Pullback):
            raise NotCaptured("a function, or a selection of elements, made in the loop and used after it")
        return value


def alone(value: Value) -> Value:
    """Return a part of the vector of all results as an array with a memory of its own, as it is in the program."""
    if hasattr(value, "handle"):
        del value.handle
    return value


def unrolled_because(loop: Loop, reason: object) -> str:
    """The warning that Python runs a loop."""
    return f"the loop in {loop.function.name!r} is unrolled, because of {reason}"


def stored_number(capture: Capture, value: View | Lazy | Affine) -> Value:
    """A number or an array that a loop has computed, in a buffer; an integer that is known remains one."""
    if isinstance(value, Affine) and not value.terms:
        return value.constant
    is_array, value = may_be_in_place(value), capture.settled(value)
    view = capture.store(value)
    if is_array:
        capture.forms[view.buffer] = without_axes
    elif is_pythons(value):
        capture.forms[view.buffer] = _pythons
    return view


def _pythons(value: Value) -> Value:
    """A number as Python's, which adopts the precision of the arrays that it meets."""
    return as_pythons(value) if isinstance(value, Tracer) else value.item()


def input_now(value: Value) -> Value:
    """The current value of an input of a region."""
    if not isinstance(value, Plane):
        return read(value)
    now = read(value.value)
    return np.imag(now) if value.imaginary else np.real(now)


def write_arrays(values: Mapping[Buffer, Value], changed: set[Buffer], parts: dict[Buffer, Value]) -> None:
    """Write back the arrays of real numbers that a loop has changed."""
    for b, value in values.items():
        if b in changed and b.shape and not isinstance(value, Plane):
            setitem(parts[b], value, ...)
            parts[b] = value


def write_planes(values: Mapping[Buffer, Value], changed: set[Buffer], parts: dict[Buffer, Value]) -> None:
    """Write back the complex arrays that a loop has changed in one or both planes."""
    arrays = {id(p.value): p.value for b, p in values.items() if isinstance(p, Plane) and b in changed and b.shape}
    for array in arrays.values():
        own = {p.imaginary: b for b, p in values.items() if isinstance(p, Plane) and p.value is array}
        now = [parts[own[k]] if k in own and own[k] in changed else input_now(Plane(array, k)) for k in (False, True)]
        setitem(now[0] + 1j * now[1], array, ...)
        for k, b in own.items():
            parts[b] = Plane(array, k)


def check_memory(values: Mapping[Buffer, Value], changed: set[Buffer], tables: Sequence[np.ndarray]) -> None:
    """Raise if an array that a loop writes to shares memory with another array that it uses, or with a constant."""
    inputs = [(b, v.value if isinstance(v, Plane) else v, isinstance(v, Plane)) for b, v in values.items()]
    arrays = [found for found in inputs if isinstance(found[1], np.ndarray)]
    for number, (b, value, plane) in enumerate(arrays):
        if b in changed and any(_share(value, table) for table in tables):
            raise NotCaptured("an array of constants in it shares memory with one that is written to")
        for other, another, another_plane in arrays[:number]:
            if plane and another_plane and value is another:
                continue
            if (b in changed or other in changed) and _share(value, another):
                raise NotCaptured("two arrays in it share memory, and one is written to")


def _share(a: Value, b: Value) -> bool:
    if hasattr(a, "handle") and hasattr(b, "handle"):
        return np.shares_memory(a, b)
    return type(a) is type(b) is np.ndarray and np.may_share_memory(a, b)


def writes(capture: Capture) -> bool:
    """Whether a loop writes to arrays from outside it."""
    changed = writes_in(capture.block)
    return any(b in changed and b.shape for _, b in capture.inputs)


def captured_loop(
    loop: Loop, names: Mapping[str, Value], outside: Mapping[str, Value]
) -> tuple[Capture, dict[str, Value], list[Shared]]:
    """Capture a loop. Return the capture, the bound names that are read later, and which may share memory."""
    check_statement(loop)
    facts: Facts = {}
    function, statement = loop.function, loop.statement
    while True:
        capture, frame = begun(loop, names, outside, facts)
        places = capture.places
        try:
            with places.hidden():
                frame.own.update(places.initial)
                capture.loop(statement, frame)
                results, shared = results_of(loop, names, capture, frame)
            if not places.is_new:
                if shared and may_take_no_step(loop, capture, facts) and writes_after(function.body, statement):
                    raise NotCaptured("an array that may have two names after the loop, and be written to")
                return capture, results, shared
        except FactFound as again:
            facts[again.key] = again.fact
            continue
        except Exception as error:
            known = isinstance(error, NotCaptured)
            if places.is_new:
                continue
            if known and may_take_no_step(loop, capture, facts):
                facts = {(statement, RUNS): True, PLACES: places}
                continue
            # Python raises another error again, with the right line, when it runs the loop.
            is_deep = isinstance(error, RecursionError)
            reason = "functions that call themselves" if is_deep else f"{type(error).__name__}: {error}"
            refused = error if isinstance(error, NotCaptured) else NotCaptured(reason)
            refused.line, refused.steps = capture.line, capture.length
            raise refused from (None if known else error)


def begun(
    loop: Loop, names: Mapping[str, Value], outside: Mapping[str, Value], facts: Facts
) -> tuple[Capture, Frame]:
    """Begin the capture of a loop; return it with the frame of the names."""
    capture, function = Capture(facts), loop.function
    capture.rebound, capture.file = frozenset(loop.bound), loop.file
    capture.around = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    capture.caught = may_be_caught()
    capture.named = set(map(id, (*names.values(), *outside.values())))
    capture.has_single = has_single(function, names, outside)
    frame = Frame(Source(function, function.body, {}, dict(outside)), dict(names))
    capture.frames.append(frame)
    return capture, frame


def may_take_no_step(loop: Loop, capture: Capture, facts: Facts) -> bool:
    """Whether a `while` may be captured again as one that takes a step: if it takes none, its names are unchanged."""
    s = loop.statement
    if not isinstance(s, ast.While) or capture.caught or (s, RUNS) in facts:
        return False
    return not s.orelse and not bound([s.test])


def check_statement(loop: Loop) -> None:
    """Raise if a loop contains something that no region can express."""
    function, statement = loop.function, loop.statement
    outside = {n for x in ast.walk(function) if isinstance(x, ast.Global | ast.Nonlocal) for n in x.names}
    if not outside.isdisjoint(loop.bound):
        raise NotCaptured("a name from outside the function that it binds")
    if any(isinstance(x, ast.Yield | ast.YieldFrom) for x in ast.walk(statement)):
        raise NotCaptured("a `yield` inside the loop")


def _outside(value: Value, parts: Mapping[Buffer, Value], inputs: Mapping[Buffer, Value]) -> Value:
    """Turn a value of the capture into a value of the surrounding program."""
    if isinstance(value, Complex):
        real, imag = (_outside(v, parts, inputs) for v in value)
        if isinstance(real, Plane) and isinstance(imag, Plane) and real.value is imag.value:
            return real.value
        real, imag = (input_now(v) if isinstance(v, Plane) else v for v in (real, imag))
        return real + 1j * imag
    if (items := parts_of(value)) is not None:
        return released(like(value, [_outside(v, parts, inputs) for v in items]))
    if isinstance(value, View):
        return parts[value.buffer] if value.buffer in parts else inputs[value.buffer]
    return value

