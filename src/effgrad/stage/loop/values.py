"""The statements captured so far, and the operations on symbolic values that add statements.

A lazy value is stored just before a buffer that it reads is written, and before a new block begins. Until then it is
inlined into the statements that use it.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from effgrad.living import LivingSet
from effgrad.primitives.primitive import Primitive
from effgrad.stage.loop.affine import Affine, NotCaptured, Ranges, affine, fresh, new_point
from effgrad.stage.loop.buffers import (
    BOOL,
    INT,
    Buffer,
    Element,
    buffers_in,
    constant,
    index,
    integer,
    load,
    loads,
    topological,
)
from effgrad.stage.loop.doubtful import Numbers
from effgrad.stage.loop.element import TYPES, WHERE, cast, element, result_dtype, turned
from effgrad.stage.loop.frames import FactFound, Facts
from effgrad.stage.loop.ir import Block, Check, Dims, Map, Store
from effgrad.stage.loop.operands import (
    Complex,
    Extent,
    Lazy,
    Value,
    View,
    broadcast,
    broadcast_shape,
    read,
    same_extent,
    whole_view,
    with_memory,
)
from effgrad.stage.loop.orders import alternatives, may_be_view
from effgrad.stage.loop.twins import Twins, arrays_in
from effgrad.vocabulary import DType, DTypeLike

T = TypeVar("T")
# A lazy value of more operations than this is stored rather than computed at each use.
LONGEST = 60
# The fact about a value, together with the place that binds it, that each use computes it again; the most such values;
# and the fact that this holds for all values.
RECOMPUTED, MOST_CHOICES = "recomputed", 8
ALL_RECOMPUTED = None, "all recomputed"
# The fact about an array of integers or truth values, by its identity, that the loop writes to it: it is an input.
WRITTEN = "written"


class Statements(Numbers):
    """The statements captured so far, and the operations on symbolic values that add statements."""

    place: Callable[[], str]

    def __init__(self, facts: Facts) -> None:
        self.block: Block = []
        self.ranges = Ranges()
        self.lazies: LivingSet[Lazy] = LivingSet()
        self.constants: dict[Value, tuple[np.ndarray, Buffer]] = {}
        # What makes the results of the loop that are numbers of Python's, or arrays without axes, from their elements.
        self.forms: dict[Buffer, Callable[[Value], Value]] = {}
        # The identities of the values that the program's names have when the loop begins.
        self.named: set[int] = set()
        # Buffers that are not written inside inner blocks: stored lazy values, and numbers that loops carry.
        self.private: set[Buffer] = set()
        # Those private buffers whose values several statements read, and where the program binds these values.
        self.reused: dict[Buffer, Value] = {}
        self.facts = facts  # found by earlier attempts at capture
        # All buffers.
        self.memory: set[Buffer] = set()
        # Buffers that must not be written any more, and the reason.
        self.frozen: dict[Buffer, str] = {}
        # The elementwise functions without machine code, and the line that first calls each.
        self.called: dict[Primitive, str] = {}
        # Integers that this block, or a block around it, has stored in cells or checked.
        self.known: dict[Value, Element] = {}
        # Classes of buffers that may hold copies of the same array of the program.
        self.classes: dict[Buffer, set[Buffer]] = {}
        # Arrays whose elements the program has assigned to, and their buffers.
        self.touched: set[Value] = set()
        # For the memory of an array that a loop makes longer, its views before and after a step; and the array that the
        # current statement may extend in place.
        self.growing: dict[Buffer, tuple[View, View]] = {}
        self.extending: View | None = None
        # Arrays that share memory in the program, but are two buffers in the region.
        self.twins = Twins()
        # The cells of open loops whose arrays have, or may have, other names before the loop: the cells are copies.
        self.aliased: set[Buffer] = set()
        # For a buffer that a branch fills with one of two arrays, the buffers of these arrays.
        self.either: dict[Buffer, set[Buffer]] = {}
        # Whether the program may catch what the loop raises, so that Python must raise it.
        self.caught = False

    # Statements

    def check(self, flag: Element, message: str, error: type[Exception] = IndexError) -> None:
        """Raise an error in a step in which a flag is false."""
        if self.caught:
            raise NotCaptured(f"{error.__name__}, which it may raise inside a `try`")
        self.block.append(Check(flag, message, error))

    def lasting(self) -> dict[Value, Element]:
        """The known integers that stay valid in an inner block, which may run again after its own writes."""
        return {k: v for k, v in self.known.items() if k[0] != "integer" or all(
            b.data is not None for b in buffers_in([k[1]]))}  # fmt: skip

    def class_of(self, buffer: Buffer) -> set[Buffer]:
        """The buffers that may stand for the same array of the program as this one."""
        return self.classes.get(buffer, {buffer})

    def unite(self, a: Buffer, b: Buffer) -> None:
        """Note that two buffers may stand for one array of the program."""
        joint = self.class_of(a) | self.class_of(b)
        self.classes.update(dict.fromkeys(joint, joint))

    def buffer(self, name: str, shape: Sequence[Extent], dtype: Any, narrow: bool = False) -> Buffer:
        """Make a buffer as large as the shape can become; if it may be `narrow`, it can have other integer types."""
        dtype = np.dtype(dtype)
        extents = tuple([self.ranges.most(n) for n in shape])
        if dtype in TYPES:
            made = Buffer(fresh(f"{name}_"), extents, dtype)
        elif not narrow or dtype.kind not in "iu" or dtype == np.dtype(np.uint64):
            raise NotCaptured(f"an array of {dtype}")
        else:
            made = Buffer(fresh(f"{name}_"), extents, INT, narrow=dtype)
        self.memory.add(made)
        return made

    def new(self, shape: Sequence[Extent], dtype: DTypeLike, like: Lazy | None = None) -> View:
        """Make an array in C order, or in that of another one."""
        view = whole_view(self.buffer("new", shape, dtype), shape)
        view.buffer.order, view.buffer.like = "C" if like is None else "K", like
        return view

    def map(self, dims: Dims, stores: list[Store]) -> None:
        """Add a Map. Its line is that of a call without machine code in it, if there is one."""
        ops = [e.op for e in topological([t.value for t in stores])] if self.called else []
        place = next((self.called[op] for op in ops if op in self.called), self.place())
        self.block.append(Map(dims, stores, place))

    def emit(self, dims: Sequence[tuple[str, Extent]], stores: list[Store]) -> None:
        for s in stores:
            self.before_write(s.buffer)
        self.map(tuple((name, affine(n)) for name, n in dims), stores)

    def before_write(self, buffer: Buffer) -> None:
        """Store the lazy values that read a buffer about to be written, and forget integers computed from it."""
        if buffer.data is not None:
            self.take_as_input(buffer)
        if buffer.data is not None or buffer in self.frozen:
            raise NotCaptured(self.frozen.get(buffer, "an array from outside the function is written to"))
        self.twins.write(buffer)
        for lazy in [x for x in self.lazies if buffer in x.reads()]:
            self.materialize(lazy)
        for key in [k for k in self.known if k[0] == "integer" and buffer in buffers_in([k[1]])]:
            del self.known[key]

    def take_as_input(self, table: Buffer) -> None:
        """Capture again with a constant array as an input, if it is an array of the program that a name refers to."""
        for key, (array, buffer) in self.constants.items():
            if buffer is table and key in self.named:
                raise FactFound((key, WRITTEN), array)

    def materialize(self, lazy: Lazy) -> None:
        """Store a lazy value. All references to it then load the stored elements."""
        buffer = self.buffer("t", lazy.shape, lazy.value.dtype, narrow=True)
        buffer.order = "A" if any(map(may_be_view, alternatives(lazy.value))) else "K"
        self.private.add(buffer)
        names, point = new_point(lazy.names)
        value = lazy.element(point)
        lazy.names, lazy.value = tuple(names), read(buffer, point)
        dims = tuple((n, affine(m)) for n, m in zip(names, lazy.shape, strict=True))
        self.map(dims, [Store(buffer, tuple(point), cast(value, buffer.dtype))])

    def keep(self, lazy: Lazy, at: Value) -> None:
        """Store a lazy value that several statements read, so that it is computed once, unless one of them chooses.

        What a choice excludes must contribute nothing to derivatives, however singular, and this works only within one
        expression. `at` is the place where the program binds the value.
        """
        if ALL_RECOMPUTED not in self.facts and (at, RECOMPUTED) not in self.facts:
            self.materialize(lazy)
            self.reused.update(dict.fromkeys(lazy.reads(), at))

    def check_choice(self, elements: Sequence[Element]) -> None:
        """Capture again without keeping a value, if a choice has it as its condition or an operand."""
        found = [self.reused[e.args[0]] for e in loads(elements) if e.args[0] in self.reused]
        if found:
            some = sum(what == RECOMPUTED for _, what in self.facts) < MOST_CHOICES
            raise FactFound((found[0], RECOMPUTED) if some else ALL_RECOMPUTED, None)

    def materialize_all(self) -> None:
        """Store all lazy values in the current block, before an inner block begins."""
        for lazy in list(self.lazies):
            if lazy.reads() and not self._is_load(lazy):
                self.materialize(lazy)

    def _is_load(self, lazy: Lazy) -> bool:
        """Whether a lazy value is just a load from a private buffer."""
        return lazy.value.op == "load" and lazy.value.args[0] in self.private

    def store(self, value: Value, name: str = "a", order: str = "A") -> View:
        """Store a value in a new buffer."""
        value = self.lazy(value)
        view = whole_view(self.buffer(name, value.shape, value.dtype, narrow=True), value.shape)
        view.own, view.buffer.order = True, order
        self.assign(view, value)
        return view

    def assign(self, view: View, value: Value, adds: bool = False) -> None:
        """Write a value through a view."""
        operand = self.operand_of(value)
        whole = broadcast(Lazy((), (), operand.value) if operand.doubt else operand, view.shape)
        self.write_at(view.shape, view, lambda point: point, whole.element, adds)

    def write_at(
        self, shape: Sequence[Extent], view: View, place: Callable[[list[Affine]], Sequence[Extent]],
        element: Callable[[list[Affine]], Element], adds: bool = False,
    ) -> None:  # fmt: skip
        """Write one element of a view for each point of an index box of this shape: its place, and what it becomes."""
        names, point = new_point(shape)
        e = self.converted(element(point), view.dtype)
        self.emit(list(zip(names, shape, strict=True)), [Store(view.buffer, view.at(place(point)), e, adds)])

    def converted(self, e: Element, dtype: DType) -> Element:
        if e.dtype.kind == "f" and dtype.kind in "iub":
            raise NotCaptured(f"floats are written to an array of {dtype}")
        if dtype in TYPES:
            return cast(e, dtype)
        if e.dtype != dtype:
            raise NotCaptured(f"numbers of {e.dtype} are written to an array of {dtype}")
        return cast(e, INT)

    def cast_like(self, value: Value, old: Lazy) -> Lazy:
        """A value converted to the type of the array that it is assigned to in place."""
        lazy = self.lazy(value)
        return self.new_lazy(lazy.names, lazy.shape, self.converted(lazy.value, old.dtype))

    def copy(self, value: View | Lazy, order: str = "K") -> View:
        """A copy in a new buffer."""
        return self.store(value, "copy", order)

    def lazy_at(self, shape: Sequence[Extent], element: Callable[[list[Affine]], Element], weak: bool = False) -> Lazy:
        """Make a lazy array of this shape, given its element at a point."""
        names, point = new_point(shape)
        return self.new_lazy(names, shape, element(point), weak)

    def new_lazy(self, names: Sequence[str], shape: Sequence[Extent], value: Element, weak: bool = False) -> Lazy:
        """Make a lazy value; a long expression is stored at once."""
        lazy = Lazy(names, shape, value, weak)
        self.lazies.add(lazy)
        if names and sum(not isinstance(e.op, str) for e in topological([value])) > LONGEST:
            self.materialize(lazy)
        return lazy

    def view_of(self, value: T, *of: Value, mark: Callable[[Element], Element] = turned) -> T:
        """Return a value, and note that in NumPy it is, or may be, a view of the other values; `mark` its elements."""
        for new in arrays_in(value):
            if isinstance(new, Lazy) and new.shape and not any(new is old for old in arrays_in(of)):
                new.value = mark(new.value)
            for old in arrays_in(of):
                if new.shape and not old.shape:  # a step may carry a copy of the one, and not of the other
                    raise NotCaptured("a view with axes of an array without axes")
                self.twins.link(new, old)
                if isinstance(new, View) and isinstance(old, View) and new.buffer is not old.buffer:
                    self.unite(new.buffer, old.buffer)
                    new.own = False
                elif isinstance(new, View) and isinstance(old, Lazy) and not new.shape:
                    new.own = False
        return value

    def in_memory_once(self, value: Value) -> Lazy:
        """Return an array whose elements are read several times: one that is an expression is computed and stored."""
        value = self.lazy(value)
        return value if value.value.op == "load" else self.lazy(self.store(value))

    def lazy(self, value: Value) -> Lazy:
        """Return a number or an array as a lazy value."""
        if isinstance(value, Lazy):
            return value
        if isinstance(value, View):
            return with_memory(self.lazy_at(value.shape, value.element), value.memory)
        if isinstance(value, Affine):
            return self.new_lazy((), (), index(value), True)  # it reads cells that a step may overwrite
        if isinstance(value, bool | int | float | np.generic) and not isinstance(value, np.complexfloating):
            weak = not isinstance(value, np.generic)
            return Lazy((), (), constant(value, np.result_type(value)), weak)
        if isinstance(value, np.ndarray):
            return self.lazy(self.table_view(value))
        if isinstance(value, Complex | complex | np.complexfloating):
            raise NotCaptured("complex numbers where real ones are expected")
        if isinstance(value, list | tuple):
            return self.lazy(self.stacked(value))
        raise NotCaptured(f"a value of type {type(value).__name__} in an expression")

    def operand_of(self, value: Value) -> Lazy:
        """Return a value as lazy, an integer of Python's as one that fits into 64 bits."""
        return self.lazy(self.within_range(value) if isinstance(value, Affine) else value)

    def within_range(self, value: Affine) -> Affine:
        """Return an integer of Python's; the program checks that it fits into 64 bits if that is not known."""
        if any(abs(n) >= 2**63 for n in (value.constant, *[k for _, k in value.terms])):
            raise NotCaptured("an integer that exceeds 64 bits")
        return value if self.ranges.fits(value) else self.stored_integer(index(value))

    def stored_integer(self, e: Element, reach: tuple[int, int] | None = None) -> Affine:
        """Return an integer stored in a cell, where its range is checked."""
        return integer(self.kept_integer(e, reach, ("integer", e)))

    def kept_integer(self, e: Element, reach: tuple[int, int] | None, key: Hashable) -> Element:
        """Return an integer stored in a cell. The key's cell is reused while nothing that the integer reads changes."""
        if key not in self.known:
            cell = self.buffer("at", (), INT)
            cell.reach = reach
            self.private.add(cell)
            self.emit([], [Store(cell, (), e)])
            self.known[key] = load(cell, ())
        return self.known[key]

    def table_view(self, array: np.ndarray) -> View:
        """A view of a NumPy array that is known at capture, as a constant."""
        if id(array) not in self.constants:
            buffer = self.buffer("k", array.shape, array.dtype, narrow=True)
            buffer.data = array.astype(buffer.dtype)
            buffer.order = "C" if array.flags.c_contiguous else "F"
            self.constants[id(array)] = array, buffer
        return whole_view(self.constants[id(array)][1])

    def plane_table(self, array: np.ndarray, imaginary: bool) -> View:
        """A view of one plane of a complex NumPy array that is known at capture, as a constant."""
        key = id(array), imaginary
        if key not in self.constants:
            view = self.table_view((array.imag if imaginary else array.real).copy())
            self.constants[key] = array, view.buffer
        return whole_view(self.constants[key][1])

    def stacked(self, items: Sequence[Value], axis: int = 0) -> View:
        """Stack values of one shape along a new axis of a new array; the axis is counted from the first."""
        rows = [self.operand_of(x) for x in items]
        if not rows:
            raise NotCaptured("an array of nothing")
        shape: list[Extent] = list(rows[0].shape)
        if not all(len(r.shape) == len(shape) and all(map(same_extent, r.shape, shape)) for r in rows):
            raise NotCaptured("arrays of different shapes are stacked")
        dtype = np.result_type(*[r.dtype for r in rows])
        view = whole_view(self.buffer("stack", [*shape[:axis], len(rows), *shape[axis:]], dtype),
                          [*shape[:axis], len(rows), *shape[axis:]])  # fmt: skip
        for number, row in enumerate(rows):
            self.assign(_row(view, axis, number), row)
        view.own, view.buffer.order = True, "K"
        return view

    def elementwise(self, primitive: Primitive, *args: Value) -> Lazy:
        """Apply a primitive element by element."""
        if primitive.code is None and primitive.native is None:
            self.called.setdefault(primitive, self.place())
        parts = [self.operand_of(a) for a in args]
        if any(p.doubt for p in parts):
            return self.elementwise_of_doubtful(primitive, parts)
        shape = broadcast_shape([p.shape for p in parts])
        whole, weak = [broadcast(p, shape) for p in parts], [p.weak for p in parts]
        return self.lazy_at(shape, lambda at: self.typed(primitive, [p.element(at) for p in whole], weak), all(weak))

    def typed(self, primitive: Primitive, elements: list[Element], weak: list[bool]) -> Element:
        """Apply a primitive with NumPy's type promotion: weak numbers adapt to the types of other operands."""
        if primitive.selects and self.reused:
            self.check_choice(elements)
        chosen = elements[1:] if primitive is WHERE else elements
        samples = [_sample(e, w) for e, w in zip(chosen, weak[-len(chosen) :], strict=True)]
        common = np.result_type(*samples) if len(samples) > 1 else chosen[0].dtype
        if common not in TYPES:
            raise NotCaptured(f"{primitive.name} of an array of {common}")
        result = result_dtype(primitive, *[BOOL] * (len(elements) - len(chosen)), *[common] * len(chosen))
        target = result if result.kind == "f" else common
        typed = [cast(e, target) for e in chosen]
        return element(primitive, *elements[: len(elements) - len(chosen)], *typed)


def _row(view: View, axis: int, number: int) -> View:
    """One row, along an axis, of a view of a whole buffer."""
    base = list(view.base)
    base[axis] = affine(number)
    return View(view.buffer, base, [a for k, a in enumerate(view.axes) if k != axis])


def _sample(e: Element, weak: bool) -> float | DType:
    """A type or a Python number that stands for an operand in NumPy's type promotion."""
    if not weak:
        return e.dtype
    return {"b": False, "i": 0, "f": 0.0}[e.dtype.kind]
