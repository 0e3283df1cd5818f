"""Capture of loops: `for`, `while`, their jumps and their `else`."""

import ast
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import GeneratorType

import numpy as np

from effgrad.program.own_lists import is_item, replaces
from effgrad.stage.loop import generators
from effgrad.stage.loop.affine import Affine, Declined, NotCaptured, affine, as_constant, fresh, variable
from effgrad.stage.loop.branches import Branches
from effgrad.stage.loop.buffers import BOOL, INT, Buffer, Element, constant, index, load
from effgrad.stage.loop.carried import Unknown
from effgrad.stage.loop.cells import PEELED, Cells
from effgrad.stage.loop.desugar import (
    LEFT,
    RESULT,
    Loop,
    exchanged,
    jumps,
    label,
    leaves,
    nested,
    origin,
    skip,
    stop,
    unless,
    with_test_inside,
    without_jumps,
    without_returns,
)
from effgrad.stage.loop.frames import Facts, Frame
from effgrad.stage.loop.generators import Generator
from effgrad.stage.loop.ir import Branch, Repeat, Store, While
from effgrad.stage.loop.lists import Lists
from effgrad.stage.loop.names import bound, exposed, read_after, reads, written_arrays
from effgrad.stage.loop.operands import Complex, Counted, Lazy, Value, View, flat

# The fact about a `while` that it takes a step, which the surrounding program asks after the loop.
RUNS = "takes a step"
# The largest number of steps of a loop over the items of lists that is written out because some are replaced.
MOST_REPLACED = 16


class Iteration(Branches):
    """The loops of a program; `Capture` adds the other statements."""

    statement: Callable[[ast.stmt, Frame], None]
    begun: Callable[[Value, ast.For], Generator]

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.calls = 0
        # The product of the steps of all loops so far; None if it is not known.
        self.steps: int | None = 0
        # For an outermost `while` that is known to take a step, the buffer that holds the number of its steps.
        self.counter: Buffer | None = None
        # The number of steps of the outermost loop; None if it is not known, and -1 before the loop is read.
        self.length: int | None = -1

    def loop(self, s: Loop, frame: Frame) -> None:
        """Capture a loop. If it may return, the names `LEFT` and `RESULT` then hold whether it has, and what."""
        if leaves(s):
            before, s = without_returns(s)
            self.begin_result(origin(s), frame)
            self.body(before, frame)
        self.statement(s, frame)

    def begin_result(self, s: ast.stmt, frame: Frame) -> None:
        """Bind `RESULT`, before a loop that may return, to a blank value of the kind that it returns."""
        key = s, "kind of the result"
        frame.own[RESULT] = self.blank(self.facts[key]) if key in self.facts else Unknown(key)

    def for_(self, s: ast.For, frame: Frame) -> None:
        factors = self.factors(s.iter, frame)
        if factors is not None:
            self.combined(s, factors, frame)
            self.body(s.orelse, frame)
            return
        items = self.expression(s.iter, frame)
        if isinstance(items, Generator | GeneratorType):
            generators.run(self, s, items if isinstance(items, Generator) else self.begun(items, s), frame)
            return
        counted = written_out(s, self.each(items))
        if self.length == -1:
            steps = counted.steps if isinstance(counted, Counted) else None
            self.length = None if steps is None else len(steps)
        if not isinstance(counted, Counted):
            if not self.block and not self.depth and not self.calls:
                raise Declined("a loop over a list")
            with frame.followed_by([*s.body, *s.orelse, *frame.rest]):
                (self.unrolled_until if jumps(s.body, ast.Break) else self.unrolled)(s, counted, frame)
        else:
            with frame.followed_by(()):
                (self.for_until if jumps(s.body, ast.Break) else self.repeat)(s, counted, frame)
        if s.orelse and not jumps(s.body, ast.Break):
            self.body(s.orelse, frame)

    def combined(self, s: ast.For, factors: list[Value], frame: Frame) -> None:
        """Capture a loop over all combinations of items of some iterables; of none there is one, the empty tuple."""
        if jumps(s.body, ast.Break):
            raise NotCaptured("`break` in a loop over combinations")
        if not factors:
            self.unrolled(s, [()], frame)
            return
        names = [f"$factor{label(s)}_{k}" for k in range(len(factors))]
        frame.own.update(zip(names, factors, strict=True))
        self.for_(nested(s, names), frame)
        for name in names:
            frame.own.pop(name, None)

    def factors(self, e: ast.expr, frame: Frame) -> list[Value] | None:
        """The iterables that `itertools.product` or `np.ndindex` combines; None if the loop is over anything else."""
        if not isinstance(e, ast.Call) or e.keywords or not e.args:
            return None
        f = self.expression(e.func, frame)
        if f is not itertools.product and f is not np.ndindex:
            return None
        given = [self.expression(a, frame) for a in e.args]
        given = list(given[0]) if f is np.ndindex and isinstance(given[0], tuple) else given
        return given if f is itertools.product else [self.call(range, [n], {}) for n in given]

    def unrolled_until(self, s: ast.For, items: Iterator[Value], frame: Frame) -> None:
        """Write out a loop with `break` over known items: each step runs if none before it has ended the loop."""
        name = f"$item{label(s)}"
        item = ast.copy_location(ast.Name(name, ast.Load()), s)
        step = unless(stop(s), [ast.copy_location(ast.Assign([s.target], item), s), *without_jumps(s)], s)
        frame.own[stop(s)] = False
        for frame.own[name] in self.without_statements(items):
            self.body([step], frame)
        self.body([unless(stop(s), s.orelse, s)] if s.orelse else [], frame)
        for own in (name, stop(s), skip(s)):
            frame.own.pop(own, None)

    def without_statements(self, items: Iterator[Value]) -> Iterator[Value]:
        """The items of an iterator, also those that Python may not ask for; raises if one of them is computed."""
        nothing = object()
        while True:
            with self.new_block() as block:
                item = next(items, nothing)
            if block:
                raise NotCaptured("`break` in a loop over items that are computed")
            if item is nothing:
                return
            yield item

    def unrolled(self, s: ast.For, items: Iterable[Value], frame: Frame) -> None:
        body = without_jumps(s)
        for item in items:
            self.bind(s.target, item, frame)
            self.body(body, frame)

    def repeat(self, s: ast.For, counted: Counted, frame: Frame) -> None:
        start, stop, step = counted.start, counted.stop, counted.step
        steps = counted.steps
        if steps is not None and len(steps) <= 1:
            for i in steps:
                self.bind(s.target, counted.item(i), frame)
                self.body(without_jumps(s), frame)
            return
        peeled, grown = self.first_steps(s, counted, frame)
        start, steps = start + step * peeled, steps and steps[peeled:]
        if steps is not None and not (grown and grown.grown) and (kept := self.kept_arrays(s, steps, frame)):
            self.exchanging(s, counted, steps, kept, frame)
            return
        name = fresh("i")
        low, high = span_of(start, stop, step, steps)
        span = self.ranges.lower(stop - start if step > 0 else start - stop) or 0
        grown = grown or Lists(self, s, frame, steps)
        cells = self.carried(s, without_jumps(s), frame, bound([s.target]), least=-(-span // abs(step)),
                             progress=None if steps is None else (name, steps))  # fmt: skip
        before = self.twins.begin([*self.memory, *self.lazies])
        with self.new_block(repeated=True) as block:
            self.ranges.bounds[name] = low, high
            grown.begin(variable(name))
            self.bind(s.target, counted.item(variable(name)), frame)
            self.body(without_jumps(s), frame)
            cells.update(frame)
            del self.ranges.bounds[name]
        self.twins.check_loop(before, block)
        self.block.append(Repeat(name, start, stop, step, block))
        self.count(0 if steps is None else len(steps))
        cells.after(frame)
        grown.end()

    def first_steps(self, s: ast.For, counted: Counted, frame: Frame) -> tuple[int, Lists | None]:
        """Capture the steps of a loop that are peeled off before it. Return their number, and the loop's lists."""
        steps, peeled = counted.steps, self.facts.get((origin(s), PEELED), 0)
        if steps is None or not peeled:
            return 0, None
        grown = Lists(self, s, frame, steps)
        for i in steps[:peeled]:
            self.bind(s.target, counted.item(i), frame)
            with frame.followed_by([*s.body, *frame.rest]):
                self.body(without_jumps(s), frame)
        return peeled, grown

    def kept_arrays(self, s: ast.For, steps: range, frame: Frame) -> set[str]:
        """The names of arrays that a loop exchanges in each step and binds nowhere else.

        After two steps, or for n names after at most lcm(1, ..., n), each name is bound to its own array again. So no
        array needs to be copied.
        """
        names = exchanged(s.body) if len(steps) > 3 else None
        if names is None or jumps(s.body, ast.Continue) or not frame.own.keys() >= set(names):
            return set()
        values = [self.lift(frame.own[n]) for n in names]
        if not all(isinstance(p, View | Lazy) and p.shape for p in flat(values)):
            return set()
        for value in values:
            view = self.in_memory(value)
            for n, v in frame.own.items():
                if v is value or n in names and self.lift(v) is value:
                    frame.own[n] = view
        return set(names)

    def in_memory(self, value: Value) -> Value:
        """Return an array as memory that can be written to."""
        if isinstance(value, Complex):
            return Complex(*map(self.in_memory, value))
        return self.store(value) if isinstance(value, Lazy) else value

    def exchanging(self, s: ast.For, counted: Counted, steps: range, kept: set[str], frame: Frame) -> None:
        """Capture a loop that exchanges arrays, unrolled by as many steps as bring all names back to their arrays."""
        together = math.lcm(*range(1, len(kept) + 1))
        name, least = fresh("i"), len(steps) // together
        cells = self.carried(s, s.body, frame, bound([s.target]), least=least, kept=kept)
        before = self.twins.begin([*self.memory, *self.lazies])
        with self.new_block(repeated=True) as block:
            self.ranges.bounds[name] = Affine(), Affine(least - 1)
            for k in range(together):
                at = variable(name) * (together * steps.step) + steps.start + k * steps.step
                self.bind(s.target, counted.item(at), frame)
                self.body(s.body, frame)
            cells.update(frame)
            del self.ranges.bounds[name]
        self.twins.check_loop(before, block)
        self.block.append(Repeat(name, Affine(), Affine(least), 1, block))
        self.count(len(steps))
        cells.after(frame)
        for i in steps[least * together :]:
            self.bind(s.target, counted.item(i), frame)
            self.body(s.body, frame)

    def count(self, steps: int) -> None:
        """Multiply the number of steps so far by those of a loop; 0 means that they are not known."""
        inner = self.steps
        self.steps = None if inner is None or not steps else max(inner, 1) * steps

    def for_until(self, s: ast.For, counted: Counted, frame: Frame) -> None:
        """Capture a `for` with `break` as a `while` that counts."""
        steps = counted.steps
        if steps is not None and not steps:
            self.body(s.orelse, frame)
            return
        step, last = counted.step, self.copied_bound(counted.stop)
        number = f"$number{label(s)}"
        frame.own[number], frame.own[stop(s)] = as_constant(counted.start), False
        low, high = (counted.start, last - 1) if step > 0 else (last + 1, counted.start)
        reach = self.ranges.lower(low), self.ranges.upper(high)
        if None in reach:
            raise NotCaptured("`break` in a loop whose length is not known")

        def more() -> Value:
            return self.compare(ast.Lt() if step > 0 else ast.Gt(), frame.own[number], as_constant(last))

        def begin() -> None:
            at = frame.own[number]
            self.ranges.cells[at.terms[0][0]] = reach  # type: ignore[assignment]
            self.bind(s.target, counted.item(at), frame)
            frame.own[number] = at + step

        extra, span = frozenset((number,)), self.ranges.upper(high - low)
        most = None if span is None else max(span // abs(step) + 1, 0)
        self.until(s, frame, bound([s.target]), extra, more, begin, 1 if steps else 0, most)
        frame.own.pop(number)

    def copied_bound(self, bound: Affine) -> Affine:
        """Copy a bound that a loop reads again in each step, so that writes in the loop do not change it."""
        if all(type(atom) is str for atom, _ in bound.terms):
            return bound
        cell = self.buffer("bound", (), INT)
        self.emit([], [Store(cell, (), index(bound))])
        self.private.add(cell)
        atom = load(cell, ())
        low, high = self.ranges.lower(bound), self.ranges.upper(bound)
        if low is not None and high is not None:
            self.ranges.cells[atom] = low, high
        return variable(atom)

    def while_(self, s: ast.While, frame: Frame) -> None:
        self.length = None if self.length == -1 else self.length
        if bound([s.test]):
            s = with_test_inside(s)
        with frame.followed_by(()):
            self.until(s, frame, set(), frozenset(), lambda: self.condition(s.test, frame), lambda: None)

    def until(
        self, s: ast.For | ast.While, frame: Frame, targets: set[str], extra: frozenset[str],
        test: Callable[[], Value], begin: Callable[[], None], least: int = 0, most: int | None = None,
    ) -> None:  # fmt: skip
        """Capture a loop that runs while a test holds, for `least` to `most` steps; `begin` begins each step."""
        stops = jumps(s.body, ast.Break)
        if stops:
            frame.own[stop(s)] = False
            extra |= {stop(s)}
        body = without_jumps(s)
        runs = (origin(s), RUNS) in self.facts
        cells = self.carried(s, body, frame, targets, extra, 1 if runs else least)
        before = self.twins.begin([*self.memory, *self.lazies])
        count = self.buffer("count", (), INT)
        count.reach = None if most is None else (0, most)
        self.counter = count if runs else self.counter
        with self.new_block(repeated=True) as tested, self.places.unchanged():
            flag = self.going(s, frame, test) if stops else self.flag(self.tested(test))
        with self.new_block(repeated=True) as block:
            begin()
            self.body(body, frame)
            cells.update(frame)
        self.twins.check_loop(before, [*tested, *block])
        self.block.append(While(count, tested, flag, block))
        self.steps = None
        cells.after(frame)
        stopped = frame.own.pop(stop(s), None)
        if s.orelse and stopped is None:
            self.body(s.orelse, frame)
        elif s.orelse:
            names = sorted(bound(s.orelse))
            self.merge(stopped.value, lambda: None, lambda: self.body(s.orelse, frame), names, frame)

    def going(self, s: ast.For | ast.While, frame: Frame, test: Callable[[], Value]) -> Element:
        """A flag for whether a loop that may `break` goes on. The test does not run after the `break`."""
        cell = self.buffer("flag", (), BOOL)
        self.emit([], [Store(cell, (), constant(False, BOOL))])
        with self.new_block() as block:
            self.emit([], [Store(cell, (), self.tested(test))])
        self.block.append(Branch(frame.own[stop(s)].value, [], block))
        return load(cell, ())

    def carried(
        self, s: ast.For | ast.While, body: Sequence[ast.stmt], frame: Frame, targets: set[str],
        extra: frozenset[str] = frozenset(), least: int = 0, kept: Collection[str] = (),
        progress: tuple[str, range] | None = None,
    ) -> "Cells":  # fmt: skip
        """Make the cells of the names that a loop carries from step to step.

        Each step binds the `targets` first. The loop has at least `least` steps. Each name of `kept` is bound to the
        same array after every step of the region, so it needs no cell.
        """
        self.materialize_all()
        test: list[ast.stmt] = [ast.Expr(s.test)] if isinstance(s, ast.While) else []
        body = [*test, *body]
        for name in written_arrays(body):
            if isinstance(value := frame.own.get(name), Lazy) and value.shape:
                self.as_memory(value)
        inner, outer = self.places.of_loop.get(origin(s), set()) & frame.own.keys(), set()
        names = bound(body) | targets | extra
        kept = self.written_in_place(body, frame).union(kept)
        for name in names - {skip(s)} - kept:
            read_first, sure = exposed(body, name, name in targets)
            before = name in frame.own and not (least and sure and not read_first)
            after = name in extra or name in (LEFT, RESULT) or read_after(frame.source.body, origin(s), name)
            if name in extra or (before and (read_first or after)):
                inner.add(name)
            elif after:
                outer.add(name)
        return Cells(self, s, frame, inner, outer, (names | inner) - kept, least, progress)

    def written_in_place(self, body: Sequence[ast.stmt], frame: Frame) -> set[str]:
        """Names of arrays or lists of them that a loop changes only by `a += b`, which writes to the array in place."""
        nodes = [x for s in body for x in ast.walk(s)]
        targets = [x.target for x in nodes if isinstance(x, ast.AugAssign)]
        augmented = {t.id for t in targets if isinstance(t, ast.Name)}
        items = {t.value.id for t in targets if replaces(t) and not replaces(t, others=True)}  # type: ignore[union-attr]
        others = {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and x not in targets}
        values = {name: self.lift(frame.own[name]) for name in (augmented | items) - others if name in frame.own}
        return {name for name, value in values.items() if (parts := flat([value])) and all(
            isinstance(part, View) for part in parts)}  # fmt: skip


def written_out(s: ast.For, counted: Counted | Iterator[Value]) -> Counted | Iterator[Value]:
    """The items of a short loop whose counter says which items of a list are meant, some of which are replaced."""
    if not isinstance(counted, Counted) or jumps(s.body, ast.Break):
        return counted
    if (steps := counted.steps) is None or len(steps) > MOST_REPLACED:
        return counted
    items = [x for b in s.body for x in ast.walk(b) if isinstance(x, ast.Subscript) and is_item(x)]
    counts = any(reads(x.slice, name) for x in items for name in bound([s.target]))
    return map(counted.item, steps) if counts else counted


def span_of(start: Affine, stop: Affine, step: int, steps: range | None) -> tuple[Affine, Affine]:
    """The bounds of a loop's variable."""
    if steps is not None:
        return affine(min(steps[0], steps[-1])), affine(max(steps[0], steps[-1]))
    return (start, stop - 1) if step > 0 else (stop + 1, start)
