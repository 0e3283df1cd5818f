"""The symbolic values of capture: views of buffers, lazy arrays, and symbolic forms of Python's containers.

A `View` is like NumPy's view: it shares its elements with a buffer, and can be written through. A `Lazy` is an array or
a number that has not been computed yet; it is held as an expression of its indices.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from effgrad.stage.loop.affine import Affine, NotCaptured, affine, as_constant, known_range, new_point, variable
from effgrad.stage.loop.buffers import INT, Buffer, Element, buffers_in, index, integer, load
from effgrad.stage.loop.containers import is_made, parts_of
from effgrad.stage.loop.element import MULTIPLY, element, narrowed
from effgrad.stage.loop.number_classes import Classes, Doubt, Memory, NumberClass
from effgrad.vocabulary import DType

Extent = int | Affine


class Axis(NamedTuple):
    """An axis of a view: the buffer's axis that it moves along (None for an inserted axis), its step and its extent."""

    axis: int | None
    step: Extent
    extent: Extent


def times(a: Extent, b: Extent) -> Affine:
    """The product of two integers, both of which may change."""
    return integer(element(MULTIPLY, index(a), index(b)))


def place_in(dims: Sequence[tuple[str, Affine]]) -> Affine:
    """The position of the point of an index box in row-major order."""
    place, stride = Affine(), Affine(1)
    for number, (name, n) in enumerate(reversed(dims), 1):
        place = place + times(variable(name), stride)
        stride = times(stride, n) if number < len(dims) else stride
    return place


class View:
    """A strided view of a buffer: the indices of its first element, and its axes."""

    def __init__(self, buffer: Buffer, base: Sequence[Affine], axes: Sequence[Axis]) -> None:
        self.buffer, self.base, self.axes = buffer, list(base), list(axes)
        # Whether the expression that returned this view has just allocated its memory, so that nothing else refers to
        # it.
        self.own = False

    @property
    def memory(self) -> Memory:
        """The memory of a view without axes, which is no number."""
        return Memory.NONE if self.axes else Memory.OWN if self.own else Memory.SHARED

    @property
    def shape(self) -> tuple[Extent, ...]:
        return tuple([as_constant(a.extent) for a in self.axes])

    @property
    def dtype(self) -> DType:
        return self.buffer.narrow or self.buffer.dtype

    @property
    def is_turned(self) -> bool:
        """Whether the axes come in another order than those of the buffer."""
        axes = [a.axis for a in self.axes if a.axis is not None]
        return axes != sorted(axes)

    @property
    def is_dense(self) -> bool:
        """Whether the elements of a vector lie one after the other in the program, if its array lies in C order."""
        last = self.axes[0].axis == len(self.buffer.shape) - 1 and self.axes[0].step == 1
        return last and self.buffer.order != "F"

    def at(self, point: Sequence[Extent]) -> tuple[Affine, ...]:
        """The indices into the buffer of the view's element at a point."""
        place = list(self.base)
        for (axis, step, _), i in zip(self.axes, point, strict=True):
            if axis is not None:
                place[axis] = place[axis] + times(i, step)
        return tuple(place)

    def element(self, point: Sequence[Extent]) -> Element:
        return read(self.buffer, self.at(point))


class Lazy:
    """An array given as an expression of its indices, whose variables are `names`.

    A `weak` number is a Python number: an array keeps its own type when combined with it. A number may have a `doubt`,
    if it has one of several classes; its value is then in the widest type. One that has `memory` is an array without
    axes.
    """

    def __init__(
        self, names: Sequence[str], shape: Sequence[Extent], value: Element, weak: bool = False,
        doubt: Doubt | None = None,
    ) -> None:  # fmt: skip
        self.names, self.value, self.is_weak, self.doubt = tuple(names), value, weak, doubt
        self.shape: tuple[Extent, ...] = tuple([as_constant(n) for n in shape])
        self.memory = Memory.NONE

    @property
    def dtype(self) -> DType:
        return self.value.dtype if self.doubt is None else self.doubt.shared(lambda c: c.dtype)

    @property
    def weak(self) -> bool:
        return self.is_weak if self.doubt is None else self.doubt.shared(lambda c: c.weak)

    def element(self, point: Sequence[Extent]) -> Element:
        return self.value.substitute(dict(zip(self.names, point, strict=True))) if self.names else self.value

    def reads(self) -> set[Buffer]:
        return buffers_in([self.value])


def read(buffer: Buffer, place: Sequence[Extent]) -> Element:
    """An element of a buffer in the type that it has in the user's program."""
    e = load(buffer, place)
    return e if buffer.narrow is None else narrowed(e, buffer.narrow)


SYMBOLIC = (View, Lazy, Affine)
NUMERIC = (*SYMBOLIC, int, float, np.generic)
# A value of the captured program: a symbolic value, an ordinary Python object, or a container of both.
Value = Any


def whole_view(buffer: Buffer, shape: Sequence[Extent] | None = None) -> View:
    """A view of a whole buffer, or of its leading corner of the given shape."""
    extents = buffer.shape if shape is None else shape
    return View(buffer, [Affine()] * len(buffer.shape), [Axis(k, 1, n) for k, n in enumerate(extents)])


def axes_of(axis: Value, rank: int) -> tuple[int, ...]:
    """The axes that an argument `axis` means, in order and counted from the first; those it lacks are an error."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    found = sorted({k % rank for k in given if -rank <= k < rank})
    if len(found) != len(given):
        raise NotCaptured(f"the axis {axis} of an array of {rank} axes")
    return tuple(found)


def axis_of(axis: Value, rank: int) -> int:
    """The one axis that an argument `axis` means, counted from the first."""
    if not isinstance(axis, int | np.integer):
        raise NotCaptured(f"the axis {axis}")
    return axes_of(axis, rank)[0]


def same_extent(a: Extent, b: Extent) -> bool:
    return affine(a) == affine(b)


def broadcast_shape(shapes: Sequence[Sequence[Extent]]) -> list[Extent]:
    """The shape of several arrays together."""
    shape: list[Extent] = []
    for k in range(1, max(map(len, shapes), default=0) + 1):
        extents = [s[-k] for s in shapes if len(s) >= k]
        shape.insert(0, next((n for n in extents if not same_extent(n, 1)), extents[0]))
    return shape


def broadcast(value: Lazy, shape: Sequence[Extent]) -> Lazy:
    """Broadcast a value to a shape."""
    added = len(shape) - len(value.shape)
    if added < 0:
        raise NotCaptured(f"shapes {value.shape} and {tuple(shape)} do not fit")
    names, whole = new_point(shape)
    point: list[Extent] = []
    for n, m, i in zip(value.shape, shape[added:], whole[added:], strict=True):
        if not same_extent(n, m) and not same_extent(n, 1):
            raise NotCaptured(f"shapes {value.shape} and {tuple(shape)} do not fit")
        point.append(i if same_extent(n, m) else 0)
    return Lazy(names, shape, value.element(point), value.is_weak, value.doubt)


class Complex(NamedTuple):
    """A complex number or array as its two planes, which are real numbers or arrays of the same shape."""

    real: Any
    imag: Any


class Plane(NamedTuple):
    """The real or the imaginary plane of a complex input of a region."""

    value: Value
    imaginary: bool


class Counted:
    """A symbolic iterable: `item(i)` is its item for each `i` in `range(start, stop, step)`."""

    def __init__(self, start: Value, stop: Value, step: int, item: Callable[[Value], Value]) -> None:
        self.start, self.stop, self.step, self.item = affine(start), affine(stop), step, item

    @property
    def steps(self) -> range | None:
        """The numbers of the items, or None if they are not known."""
        return known_range(self.start, self.stop, self.step)

    def items(self) -> Iterator[Value]:
        """The items, if their number is known."""
        if self.steps is None:
            raise NotCaptured("an iterable whose length changes, or is not known")
        return map(self.item, self.steps)


class Iterated:
    """An iterator of the captured program, such as `zip` returns. Its items are used up once, each as it is asked for.

    `items` is a `Counted` or an iterator of Python's. It may be used up in the `block` alone that makes it: by another
    one the program may come more than once, or not at all.
    """

    def __init__(self, items: Counted | Iterator[Any], block: list[Any]) -> None:
        self.items, self.block, self.is_used = items, block, False


class Masked:
    """`x[mask]`, whose length is not known. It may be assigned or combined only under the same mask.

    The mask is one of the first `rank` axes of `value`, and has an axis of length 1 for each other one.
    """

    def __init__(self, value: Value, mask: Lazy, rank: int) -> None:
        self.value, self.mask, self.rank = value, mask, rank


class Growing:
    """A list that a loop appends to, as rows of an array: `count` rows are filled, and each step appends `each` more.

    The view is None until the kind of the items is known. `named` holds functions that return the appended items that
    have other names too.
    """

    def __init__(self, key: tuple[Value, str], view: View | None, count: Affine, each: int) -> None:
        self.key, self.view, self.count, self.each = key, view, count, each
        self.first = count
        self.named: list[Callable[[], Value]] = []


class OneOf:
    """One of several functions, chosen by an integer of the loop."""

    def __init__(self, functions: Sequence[Value], number: Affine) -> None:
        self.functions, self.number = functions, number


class Method:
    """A bound method of a symbolic array, such as `x.sum`."""

    def __init__(self, value: Value, name: str) -> None:
        self.value, self.name = value, name


def symbolic(values: Value) -> bool:
    """Whether a value, or anything inside its containers, is symbolic, or an object that a capture has made."""
    if is_made(values):
        return True
    if (parts := parts_of(values)) is not None:
        return any(map(symbolic, parts))
    if isinstance(values, slice):
        return symbolic([values.start, values.stop, values.step])
    return isinstance(values, View | Lazy | Affine | Masked | Iterated)


def flat(value: Value) -> list[Value]:
    """The leaves of nested containers."""
    parts = parts_of(value)
    return [value] if parts is None else [x for v in parts for x in flat(v)]


def views_in(value: Value) -> list[View]:
    """All views among the leaves of a value."""
    return [v for v in flat(value) if isinstance(v, View)]


def common_type(lazies: Sequence[Lazy]) -> DType:
    """The common type of the values that a name has in two branches; a Python number adapts to the other type."""
    if all(x.weak for x in lazies):
        return max((x.dtype for x in lazies), key=lambda d: "bif".index(d.kind))
    strong = [x.dtype for x in lazies if not x.weak]
    return np.result_type(*strong, *[{"b": False, "i": 0, "f": 0.0}[x.dtype.kind] for x in lazies if x.weak])


def is_number(value: Value) -> bool:
    """Whether a value is a real number, known or symbolic."""
    if isinstance(value, Lazy):
        return not value.shape
    return isinstance(value, Affine | bool | int | float | np.bool_ | np.integer | np.floating)


def classes_of(value: Value) -> Classes:
    """The classes that a number may have."""
    if isinstance(value, Lazy) and value.doubt is not None:
        return value.doubt.classes
    if isinstance(value, Affine):
        return frozenset([NumberClass(INT, True)])
    dtype = value.dtype if isinstance(value, Lazy | View) else np.result_type(value)
    return frozenset([NumberClass(dtype, is_pythons(value), getattr(value, "memory", Memory.NONE))])


def without_axes(value: Value, memory: Memory = Memory.SHARED) -> Value:
    """Return the result of a function that returns an array: if it has no axes, it is still no number."""
    if isinstance(value, Complex):
        return Complex(*[without_axes(plane, memory) for plane in value])
    if not isinstance(value, Lazy) or value.shape:
        return value
    found = Lazy((), (), value.value, doubt=value.doubt)
    if value.doubt is not None:
        found.doubt = Doubt(frozenset(c._replace(memory=memory) for c in value.doubt.classes), value.doubt.refuse)
    found.memory = memory
    return found


def with_memory(value: Lazy, memory: Memory) -> Lazy:
    """Return a new value without axes, which is an array if it has memory."""
    value.memory = memory
    return value


def as_array_of(found: Value, value: Value) -> Value:
    """Return the symbolic value of an array or number from outside the loop; an array without axes is no number."""
    return without_axes(found) if isinstance(value, np.ndarray) else found


def may_be_in_place(value: Value) -> bool:
    """Whether a number may be an array without axes."""
    if isinstance(value, np.ndarray):
        return not value.ndim
    lazies = value if isinstance(value, Complex) else (value,)
    return any(c.memory != Memory.NONE for x in lazies if isinstance(x, View | Lazy) for c in classes_of(x))


def is_pythons(value: Value) -> bool:
    """Whether a value is a number of Python's class, and not of NumPy's."""
    if isinstance(value, Lazy):
        return value.weak
    return isinstance(value, Affine | int | float | complex) and not isinstance(value, np.generic)
