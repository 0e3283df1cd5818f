"""The cells of a loop: memory for the names that it carries from step to step, written at the end of each step."""

import ast
from typing import Any, NoReturn

import numpy as np

from effgrad.living import LivingSet
from effgrad.stage.loop import objects, planes
from effgrad.stage.loop.affine import NotCaptured, affine, as_constant, variable
from effgrad.stage.loop.buffers import Buffer, load
from effgrad.stage.loop.carried import Cell, Growth, Unknown, exchanged_in
from effgrad.stage.loop.containers import like, parts_of, same_structure
from effgrad.stage.loop.desugar import origin
from effgrad.stage.loop.evaluator import Evaluator
from effgrad.stage.loop.frames import FactFound, Frame
from effgrad.stage.loop.ir import Apply, Block, Map, walk, writes_in, written
from effgrad.stage.loop.number_classes import are_floats, widest
from effgrad.stage.loop.operands import (
    NUMERIC,
    SYMBOLIC,
    Complex,
    Lazy,
    Masked,
    Value,
    View,
    classes_of,
    flat,
    views_in,
    whole_view,
    without_axes,
)
from effgrad.stage.loop.same_arrays import array_after, check_shapes, is_whole

UNBOUND: Any = object()
# The key in `facts` for the number of first steps of a loop that must be peeled, that is, captured before the loop: the
# first step writes to an array that a name has before the loop, and the name has other arrays in later steps, or a
# number has another class before the loop than after each step. At most so many steps are peeled.
PEELED, MOST_PEELED = "first steps apart", 2


class Cells:
    """The cells of a loop: the names that it carries (`inner`), and the names that are only read after it (`outer`)."""

    def __init__(
        self, capture: Evaluator, loop: ast.stmt, frame: Frame, inner: set[str], outer: set[str], names: set[str],
        least: int, progress: tuple[str, range] | None = None,
    ) -> None:  # fmt: skip
        self.capture, self.loop, self.outer, self.names = capture, loop, sorted(outer), names
        # The loop variable and its values, if these are known.
        self.progress = progress
        # A lower bound of the number of steps.
        self.least = least
        self.inner: dict[str, Value] = {}
        # The arrays from before the loop, and those of the names at the end of a step.
        self.existing: LivingSet[Buffer | Lazy] = LivingSet([*capture.memory, *capture.lazies])
        self.ends: dict[str, Value] = {}
        # The arrays of the names that no step rebinds or writes to, by their cells.
        self.kept: dict[Buffer, Value] = {}
        before = {n: objects.adopted(capture.current(frame.own[n]), n, self) for n in sorted(inner)}
        self.initial = {name: self.first(value) for name, value in before.items()}
        # The names of arrays that have another name too.
        self.shared = {
            name
            for name, v in self.initial.items()
            if any(capture.is_shared(x, frame, name) or capture.is_copy(x) for x in views_in(v))
        }
        for name, value in self.initial.items():
            self.inner[name] = self.cells(value, name)
            frame.own[name] = self.symbols(self.inner[name], name)
        self.aliased = {v.buffer for name in self.shared for v in views_in(frame.own[name])} - capture.aliased
        capture.aliased |= self.aliased
        self.out: dict[str, Value] = {}

    def first(self, value: Value) -> Value:
        """The value of a name before the loop."""
        if isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "fiub":
            return without_axes(self.capture.lazy(value[()]))
        return planes.as_planes(self.capture, value) if planes.is_complex(value) else value

    def cells(self, value: Value, name: str, is_plane: bool = False) -> Value:
        """Make the cell for a value, or cells for the items of a tuple or list; other values are returned unchanged."""
        capture = self.capture
        if (parts := parts_of(value)) is not None:
            return like(value, (self.cells(v, f"{name}_{k}", planes.is_complex(value)) for k, v in enumerate(parts)))
        if not isinstance(value, NUMERIC):
            return value
        lazy, first = capture.lazy(value), classes_of(value)
        growth = capture.facts.get((origin(self.loop), f"{name} grows"))
        if growth is not None:
            return self.growing(lazy, name, growth)
        later = capture.facts.get(self.key_of_classes(name), first)
        is_other = is_plane and first != later and (capture.has_single or not are_floats(first | later))
        if widest(first | later) != widest(later) or is_other:
            self.peel(name, "begins as a number of another class")
        first = later if is_plane else first
        view = whole_view(capture.buffer(name.strip("$"), lazy.shape, widest(later)), lazy.shape)
        capture.assign(view, lazy)
        if not view.axes:
            capture.private.add(view.buffer)
        return Cell(view, first, later)

    def key_of_classes(self, name: str) -> Any:
        """The key in `facts` for the classes that a name has after a step."""
        return origin(self.loop), f"{name} after {self.peeled}"

    @property
    def peeled(self) -> int:
        """The number of steps that are peeled."""
        return int(self.capture.facts.get((origin(self.loop), PEELED), 0))

    def growing(self, value: Lazy, name: str, growth: Growth) -> Cell:
        """Make the cell of an array that grows: memory for its final size, of which each step uses a leading part."""
        assert self.progress is not None
        capture, (variable_name, steps) = self.capture, self.progress
        done = (variable(variable_name) - steps.start) * steps.step
        shapes = []
        for count in (affine(0), done, done + 1, affine(len(steps))):
            shape = list(value.shape)
            shape[growth.axis] = as_constant(count * growth.by + shape[growth.axis])
            shapes.append(shape)
        buffer = capture.buffer(name.strip("$"), shapes[3], value.dtype)
        buffer.order = "K"
        first, view, grown, last = (whole_view(buffer, shape) for shape in shapes)
        capture.assign(first, value)
        capture.growing[buffer] = view, grown
        return Cell(view, classes_of(value), classes_of(value), grown, last)

    def symbols(self, cell: Value, name: str) -> Value:
        """The symbolic value that a cell holds."""
        if (parts := parts_of(cell)) is not None:
            return like(cell, [self.symbols(c, name) for c in parts])
        if not isinstance(cell, Cell):
            return cell
        helps = not cell.first <= cell.later

        def refuse() -> NoReturn:
            if helps:
                self.peel(name, "has another class in the first step")
            raise NotCaptured(f"{name!r} is a number whose class depends on values")

        return cell.view if cell.view.axes else self.capture.symbol(load(cell.view.buffer, ()), cell.classes, refuse)

    def update(self, frame: Frame) -> None:
        """At the end of a step, write the values of the names into their cells."""
        current = self.capture.twins.current
        objects.check_names({name: frame.own.get(name) for name in {**self.inner, **dict.fromkeys(self.outer)}})
        for name, cell in self.inner.items():
            objects.check_replaced(cell, frame.own.get(name), name, origin(self.loop))
        values = [(name, cell, current(frame.own.get(name, UNBOUND))) for name, cell in self.inner.items()]
        found = [x for name, cell, v in values for x in _cells_in(name, cell, self.initial[name], v)]
        self.check_aliases(found)
        self.note_first(found)
        self.copy_outer(frame, self.made_inside() | self.passed_on(found))
        self.note_ends([(name, v) for name, _, v in values] + [(name, frame.own[name]) for name in self.outer])
        self.kept = kept_in(self.capture.block, found)
        pairs = [p for name, cell, value in values for p in self.pairs(cell, value, name)]
        # All values are read before the first cell is written.
        lazies = [(name, cell, self.capture.lazy(value)) for name, cell, value in pairs]
        for name in self.names:
            frame.own.pop(name, None)
        del pairs, values
        while lazies:
            name, cell, value = lazies.pop(0)
            self.assign(cell, value, name)

    def copy_outer(self, frame: Frame, made: set[Buffer]) -> None:
        """Copy the values of the names that are only read after the loop."""
        for name in self.outer:
            if name not in frame.own:
                raise NotCaptured(f"{name!r} is bound in some steps only")
        values = {name: self.capture.twins.current(frame.own[name]) for name in self.outer}
        self.out = {name: self.copied(value, name) for name, value in values.items()}
        pairs = [x for name, v in self.out.items() for x in zip(flat(v), flat(values[name]), strict=True)]
        self.note_copies([(view.buffer, value) for view, value in pairs if isinstance(view, View)], made)

    def note_ends(self, values: list[tuple[str, Value]]) -> None:
        """Note the arrays of the names at the end of a step; of a lazy one, which may die then, the identity."""
        for name, value in values:
            if isinstance(value, View | Lazy) and value.shape:
                self.ends[name] = value if isinstance(value, View) or value in self.existing else id(value)

    def as_complex_as(self, cell: Value, value: Value, name: str) -> Value:
        """Return a value as planes if its cell is complex; capture again if the value is complex and the cell real."""
        if isinstance(cell, Cell) and planes.is_complex(value):
            self.peel(name, "is a real number before the loop, and complex in it")
        if isinstance(cell, Complex) and isinstance(value, NUMERIC):
            self.peel(name, "is complex before the loop, and a real number in it")
        return value

    def pairs(self, cell: Value, value: Value, name: str) -> list[tuple[str, "Cell", Value]]:
        value = self.as_complex_as(cell, value, name)
        if (parts := parts_of(cell)) is not None:
            if not same_structure(cell, value):
                raise NotCaptured(f"{name!r} changes its structure")
            numbered = enumerate(zip(parts, parts_of(value) or (), strict=True))
            return [p for k, (c, v) in numbered for p in self.pairs(c, v, f"{name}_{k}")]
        if value is cell or (isinstance(cell, Cell) and cell.holds(value)):
            if isinstance(cell, Cell) and not cell.view.axes:
                self.check_classes(cell, value, name)
            return []
        self.check_cell(cell, value, name)
        return [(name, cell, value)]

    def check_cell(self, cell: Value, value: Value, name: str) -> None:
        """Raise, or capture again, if there is no cell that can hold a value."""
        if isinstance(cell, Unknown):
            raise FactFound(cell.key, self.capture.kind(value))
        if cell is None and value is not UNBOUND:
            self.peel(name, "is None before the loop, and something else in it")
        if not isinstance(cell, Cell) or value is UNBOUND:
            raise NotCaptured(f"{name!r} is bound to something else in each step")
        if not isinstance(value, NUMERIC):
            raise NotCaptured(f"{name!r} becomes a {type(value).__name__}")

    def assign(self, cell: "Cell", value: Lazy, name: str) -> None:
        capture, view = self.capture, cell.grown or cell.view
        if value.shape != view.shape:
            self.grow(cell, value, name)
        if view.axes and value.dtype != view.dtype:
            self.peel(name, f"changes its type from {view.dtype} to {value.dtype}")
        elif not view.axes:
            self.check_classes(cell, value, name)
        capture.assign(view, value)

    def check_classes(self, cell: "Cell", value: Value, name: str) -> None:
        """Capture again if a step gives a number a class that its cell does not expect."""
        if (found := classes_of(value)) <= cell.later:
            return
        key = self.key_of_classes(name)
        raise FactFound(key, self.capture.facts.get(key, frozenset()) | found)

    def grow(self, cell: "Cell", value: Lazy, name: str) -> None:
        """Capture again, with memory for an array that each step makes longer."""
        old, new = cell.view.shape, value.shape
        added = [as_constant(affine(m) - n) for n, m in zip(old, new, strict=True)] if len(old) == len(new) else []
        axes = [k for k, n in enumerate(added) if n != 0]
        by = added[axes[0]] if len(axes) == 1 else None
        key = origin(self.loop), f"{name} grows"
        is_known = self.progress is not None and abs(self.progress[1].step) == 1 and key not in self.capture.facts
        if not is_known or not isinstance(by, int) or by < 0:
            self.peel(name, f"changes its shape from {old} to {new}")
        raise FactFound(key, Growth(axes[0], by))

    def copied(self, value: Value, name: str) -> Value:
        """Copy in each step the value of a name that is only read after the loop."""
        if (parts := parts_of(value)) is not None:
            return like(value, [self.copied(v, name) for v in parts])
        if isinstance(value, Masked):
            raise NotCaptured(f"{name!r}, elements that a mask selects, is read after the loop")
        if not isinstance(value, SYMBOLIC):
            return value
        lazy = self.capture.lazy(value)
        view = self.capture.store(lazy, name.strip("$"))
        return view if view.axes else self.capture.symbol(load(view.buffer, ()), classes_of(value))

    def check_aliases(self, found: list[tuple[str, "Cell", Value, Value]]) -> None:
        """Raise if a name shares memory that is written: its cell is a copy, in which the write would not be seen."""
        capture = self.capture
        writes = writes_in(capture.block)
        made = self.made_inside()
        self.check_first(found, writes)
        for name, cell, _, value in found:
            own = cell.view.buffer
            if not cell.view.axes or value is cell.view:
                self.check_bound_to_itself(name, own in writes and value is cell.view)
                continue
            if own in writes and name in self.shared:
                self.peel(name, "is bound to a new array in each step, and written to before")
            if isinstance(value, View):
                kept = {own} if value.buffer not in made else set()
                if not writes.isdisjoint(kept | (capture.class_of(value.buffer) - made)):
                    raise NotCaptured(f"{name!r} is bound to an array that has another name and is written to")
                if own in writes and _has(found, value.buffer, name):
                    raise NotCaptured(f"{name!r} and another name are bound to one array that is written to")
        self.note_copies([(cell.view.buffer, value) for _, cell, _, value in found], made | self.passed_on(found))

    def made_inside(self) -> set[Buffer]:
        """The buffers that a step makes, and writes before anything else does, so that it uses no earlier value."""
        seen: set[Buffer] = set()
        made: set[Buffer] = set()
        for s in walk(self.capture.block):
            for b in written(s):
                if b not in seen and (isinstance(s, Apply) or (isinstance(s, Map) and not s.stores[0].adds)):
                    made.add(b)
                seen.add(b)
        return {b for b in made if b not in self.existing}.difference([b for _, b in self.capture.inputs])

    def check_bound_to_itself(self, name: str, is_written: bool) -> None:
        """Raise if a loop writes to an array that a name keeps and that has another name: the cell is a copy."""
        if is_written and name in self.shared:
            raise NotCaptured(f"{name!r} is bound to itself, an array that may have another name and is written to")

    def peel(self, name: str, reason: str) -> NoReturn:
        """Capture again, with one more step peeled off before the loop; raise if that cannot be done."""
        if self.least > 1 and self.peeled < MOST_PEELED:
            raise FactFound((origin(self.loop), PEELED), self.peeled + 1)
        raise NotCaptured(f"{name!r} {reason}")

    def check_first(self, found: list[tuple[str, "Cell", Value, Value]], writes: set[Buffer]) -> None:
        """Raise if the loop writes, under another name, to the array that a name has before the loop."""
        for name, _, first, _ in found:
            if isinstance(first, View) and name in self.shared and writes & self.capture.class_of(first.buffer):
                raise NotCaptured(f"{name!r} has another name before the loop, under which the loop writes to it")

    def note_first(self, found: list[tuple[str, "Cell", Value, Value]]) -> None:
        """Note which cells may hold, after the loop, a copy of the array that their name had before it."""
        either, turning = self.capture.either, exchanged_in(found)
        is_shared = not turning.isdisjoint([cell for name, cell, _, _ in found if name in self.shared])
        for name, cell, first, value in found:
            kept = not self.least or cell.holds(value)
            if isinstance(first, View) and cell in turning and is_shared:
                self.capture.unite(cell.view.buffer, first.buffer)
            if isinstance(value, View):  # the name may keep its array on one side of a branch
                kept = kept or cell.view.buffer in either.get(value.buffer, ())
            if isinstance(first, View) and kept:
                either[cell.view.buffer] = {first.buffer}.union(either.get(first.buffer, ()))
            if isinstance(first, View) and name in self.shared and kept:
                self.capture.unite(cell.view.buffer, first.buffer)

    def passed_on(self, found: list[tuple[str, "Cell", Value, Value]]) -> set[Buffer]:
        """The cells of names that each step rebinds, if the loop has more steps than cells.

        A name that takes over the array of such a name then has it alone, as the other name is rebound. In the first
        steps it may be an array from before the loop.
        """
        if self.least <= len(found):
            return set()
        return {cell.view.buffer for _, cell, _, value in found if not cell.holds(value)}

    def note_copies(self, copies: list[tuple[Buffer, Value]], made: set[Buffer]) -> None:
        """Note which cells hold copies of one array: of an array from before the loop, or of one that has two names."""
        capture, first = self.capture, dict[int, Buffer]()
        for own, value in copies:
            if not isinstance(value, View | Lazy) or not value.shape:
                continue
            arrays = capture.twins.of(value)
            own.viewing |= len(arrays) > 1
            for array in arrays:
                if isinstance(array, Buffer) and (array not in made or len(capture.class_of(array)) > 1):
                    capture.unite(own, array)
                capture.unite(own, first.setdefault(id(array), own))

    def after(self, frame: Frame) -> None:
        """After the loop, bind carried names to their cells, and remove the names that are not read later."""
        for name in self.names:
            if name not in self.inner:
                frame.own.pop(name, None)
        check_shapes(self.out, self.capture.ranges)
        frame.own.update(self.out)
        for cell in flat(list(self.inner.values())):
            if isinstance(cell, Cell) and cell.last is not None:
                cell.view = cell.last
            if isinstance(cell, Cell) and self.least:
                cell.first = cell.later
        frame.own.update({name: self.symbols(cell, name) for name, cell in self.inner.items()})
        self.share_arrays(frame)
        self.capture.aliased -= self.aliased
        for name in (*self.inner, *self.out):
            for view in views_in(frame.own[name]):
                if self.capture.is_copy(view):
                    self.capture.frozen[view.buffer] = f"an array is written to that {name!r} may be, after a loop"
                if self.capture.is_shared(view, frame, name, copied=True):
                    for b in self.capture.class_of(view.buffer):
                        self.capture.frozen.setdefault(b, f"an array is written to that {name!r} may be, after a loop")

    def share_arrays(self, frame: Frame) -> None:
        """Bind names to the arrays that the last step certainly gives them, where their cells hold copies of these."""
        arrays: dict[int, View] = {}
        existing = LivingSet([*self.existing, *[b for _, b in self.capture.inputs]])
        for name, end in self.ends.items():
            end = self.kept.get(end.buffer, end) if isinstance(end, View) and is_whole(end) else end
            if self.least or end is self.initial.get(name):
                frame.own[name] = array_after(end, frame.own[name], existing, arrays)


def kept_in(block: Block, found: list[tuple[str, Cell, Value, Value]]) -> dict[Buffer, Value]:
    """The arrays of the names that no step rebinds or writes to, by their cells."""
    changed = writes_in(block)
    return {cell.view.buffer: first for _, cell, first, value in found
            if value is cell.view and cell.view.buffer not in changed}  # fmt: skip


def _has(found: list[tuple[str, Cell, Value, Value]], buffer: Buffer, name: str) -> bool:
    """Whether a name other than `name` is bound to an array in the buffer."""
    return any(isinstance(v, View) and v.buffer is buffer and other != name for other, _, _, v in found)


def _cells_in(name: str, cell: Value, first: Value, value: Value) -> list[tuple[str, Cell, Value, Value]]:
    """The cells of a name, also those inside tuples, each with its value before the loop and after a step."""
    if same_structure(cell, value):
        parts = map(parts_of, (cell, first, value))
        return [x for part in zip(*parts, strict=True) for x in _cells_in(name, *part)]
    return [(name, cell, first, value)] if isinstance(cell, Cell) else []
