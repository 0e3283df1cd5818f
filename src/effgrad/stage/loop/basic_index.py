"""Basic indexing, transposition and reshape of symbolic values."""

import math
from collections.abc import Sequence

import numpy as np

from effgrad.arrays.layout import index_parts
from effgrad.primitives.indices import without_ellipsis
from effgrad.stage.loop.affine import Affine, NotCaptured, affine, as_constant
from effgrad.stage.loop.buffers import INT, Element, constant, index, integer
from effgrad.stage.loop.element import (
    ADD,
    AND,
    FLOOR_DIVIDE,
    GREATER_EQUAL,
    LESS,
    MAXIMUM,
    MINIMUM,
    NOT_EQUAL,
    WHERE,
    ZERO,
    cast,
    element,
    seen,
    widened,
)
from effgrad.stage.loop.operands import Axis, Extent, Lazy, Value, View, times, whole_view, without_axes
from effgrad.stage.loop.values import Statements


class Indexed(Statements):
    """Indexing and the operations that move elements."""

    def index(self, value: View | Lazy, key: Value) -> View | Lazy:
        """`value[key]` for a basic index of Python integers and affine integers; a number is returned as lazy."""
        picks, axes = self._picked(value.shape, key)
        if isinstance(value, View):
            base, out = list(value.base), []
            if axes and not value.axes:
                raise NotCaptured("a view with axes of an array without axes")
            for (start, _, _), (axis, step, _) in zip(picks, value.axes, strict=True):
                if axis is not None:
                    base[axis] = base[axis] + times(start, step)
            for source, extent in axes:
                if source is None:
                    out.append(Axis(None, 1, extent))
                else:
                    axis, step, _ = value.axes[source]
                    out.append(Axis(axis, as_constant(times(step, picks[source][1])), extent))
            view = View(value.buffer, base, out)
            return view if out else _of_index(self.number(view.element(())), key)

        def at(point: list[Affine]) -> Element:
            return value.element([i if k is None else times(point[k], step) + i for i, step, k in picks])

        return _of_index(self.view_of(self.lazy_at([n for _, n in axes], at), value, mark=seen), key)

    def _picked(self, shape: Sequence[Extent], key: Value) -> tuple[list[Value], list[tuple[int | None, Extent]]]:
        """The start, step and position in the result of each axis; for each axis of the result its source, extent."""
        picks: list[Value] = []
        axes: list[tuple[int | None, Extent]] = []
        for k in full_key(key, len(shape)):
            if k is None:
                axes.append((None, 1))
                continue
            source, n = len(picks), shape[len(picks)]
            if isinstance(k, slice):
                start, step, extent = self.slice_of(k, n)
                picks.append((start, step, len(axes)))
                axes.append((source, extent))
            else:
                picks.append((self.inside_axis(k, n), 0, None))
        return picks, axes

    def inside_axis(self, k: Value, n: Extent) -> Affine:
        """Return an index counted from the beginning; the program checks it unless its bounds show that it is valid."""
        i, place, low, room = self.located(k, n)
        if place is i and isinstance(n, int) and low is not None and low >= n:
            raise IndexError(f"index {i} is out of bounds for axis with size {n}")
        return place if low is not None and low >= 0 and room is not None and room >= 1 else self.checked(i, n)

    def located(self, k: Value, n: Extent) -> tuple[Affine, Affine, int | None, int | None]:
        """Return an index, its place on an axis if its sign is known, and the least distances to both ends."""
        i = self.as_index(k)
        place = affine(n) + i if self.is_negative(i) else i
        return i, place, self.ranges.lower(place), self.ranges.lower(affine(n) - place)

    def is_negative(self, i: Affine) -> bool:
        """Whether an integer is certainly negative."""
        high = self.ranges.upper(i)
        return high is not None and high < 0

    def checked(self, i: Affine, n: Extent) -> Affine:
        """Return an index counted from the beginning, which the program checks as NumPy does."""
        reach = 0, max(self.ranges.most(n) - 1, 0)
        cell = self.kept_integer(self.from_beginning(i, n), reach, ("index", i, affine(n)))
        if ("checked", cell) not in self.known:
            flag = element(AND, element(GREATER_EQUAL, cell, ZERO), element(LESS, cell, index(affine(n))))
            where = f"{self.place()}: an index is out of bounds for axis with size {n}"
            self.check(flag, where)
            self.known["checked", cell] = cell
        return integer(cell)

    def from_beginning(self, i: Affine, n: Extent) -> Element:
        """Return an index that may be negative as one counted from the beginning."""
        e = index(i)
        low = self.ranges.lower(i)
        if low is not None and low >= 0:
            return e
        return index(i + n) if self.is_negative(i) else element(WHERE, element(LESS, e, ZERO), index(i + n), e)

    def as_index(self, k: Value) -> Affine:
        """Return an integer of the program as an index."""
        if isinstance(k, Affine):
            return k
        if isinstance(k, int | np.integer) and not isinstance(k, bool):
            return Affine(int(k))
        if isinstance(k, Lazy) and not k.shape and k.dtype.kind in "iu":
            return self.snapshot(k)
        raise NotCaptured(f"an index of type {type(k).__name__}")

    def snapshot(self, value: Lazy) -> Affine:
        """Return an integer that is read from memory, copied so that later writes do not change it."""
        if not value.reads():
            return integer(cast(value.value, INT))
        return self.stored_integer(cast(value.value, INT), self.bounds_of(value.value))

    def bounds_of(self, e: Element) -> tuple[int, int] | None:
        """The bounds of an integer that is loaded from a constant array, or None."""
        e = widened(e)
        array = e.args[0].data if e.op == "load" else None
        if array is not None and array.size:
            return int(array.min()), int(array.max())
        return None

    def slice_of(self, k: slice, n: Extent) -> tuple[Affine, Extent, Extent]:
        """The start, the step and the number of elements of a slice of an axis."""
        step = 1 if k.step is None else as_constant(self.as_index(k.step))
        if step == 0:
            raise ValueError("slice step cannot be zero")
        if all(isinstance(p, int | np.integer | None) for p in (k.start, k.stop, step, n)):
            places = range(n)[k]  # type: ignore[arg-type]
            return Affine(places.start if len(places) else 0), step, len(places)
        if step not in (1, -1):
            return self._strided_slice(k, n, step)
        if step == 1:
            first, end = self._bound(k.start, n, 0), self._bound(k.stop, n, n)
        else:  # the elements after `stop`, and up to `start`
            first, end = self._bound(k.stop, n, 0, past=1), self._bound(k.start, n, n, past=1)
        extent = end - first
        high = self.ranges.upper(extent)
        if high is not None and high <= 0:
            return Affine(), step, 0
        return first if step == 1 else end - 1, step, as_constant(self.at_least_zero(extent, n))

    def _strided_slice(self, k: slice, n: Extent, step: Extent) -> tuple[Affine, Extent, Extent]:
        """The start, step and extent of a slice whose bounds or step change, in either direction."""
        back, end = element(LESS, index(self.sign(step)), ZERO), index(affine(n))
        least = either(back, constant(-1), ZERO)
        most = element(ADD, end, least)
        start, stop = (
            self.inside(default if given is None else self.from_beginning(self.as_index(given), n), least, most, n)
            for given, default in ((k.start, either(back, most, ZERO)), (k.stop, either(back, least, end)))
        )
        return start, step, as_constant(self.steps_between(start, stop, step))

    def inside(self, place: Element, least: Element, most: Element, n: Extent) -> Affine:
        """A bound of a slice of an axis, clipped."""
        clipped = element(MINIMUM, element(MAXIMUM, place, least), most)
        return integer(self.kept_integer(clipped, (-1, self.ranges.most(n)), ("end", clipped)))

    def steps_between(self, start: Affine, stop: Affine, step: Extent) -> Affine:
        """The number of integers from `start` to `stop` by a step that may change; a step of zero raises an error."""
        gap = stop - start + step - self.sign(step)
        if isinstance(step, int) and not any(k % step for _, k in gap.terms):
            return self.at_least_zero(Affine(gap.constant // step, [(atom, k // step) for atom, k in gap.terms]))
        last = element(FLOOR_DIVIDE, index(gap), index(affine(step)))
        forward, back = self.ranges.upper(stop - start), self.ranges.upper(start - stop)
        reach = None if forward is None or back is None else (0, max(forward, back))
        return integer(self.kept_integer(element(MAXIMUM, last, ZERO), reach, ("steps", start, stop, affine(step))))

    def sign(self, step: Extent) -> Affine:
        """The sign of a step; a step of zero raises an error."""
        least, most = self.ranges.lower(step), self.ranges.upper(step)
        if least is not None and least > 0:
            return affine(1)
        if most is not None and most < 0:
            return affine(-1)
        changing = index(affine(step))
        if ("nonzero", changing) not in self.known:
            flag = element(NOT_EQUAL, changing, ZERO)
            self.check(flag, f"{self.place()}: a step of zero", ValueError)
            self.known["nonzero", changing] = changing
        sign = element(WHERE, element(LESS, changing, ZERO), constant(-1), constant(1))
        return integer(self.kept_integer(sign, (-1, 1), ("sign", changing)))

    def at_least_zero(self, extent: Affine, most: Extent | None = None) -> Affine:
        """An extent, or 0 where it would be negative; it is at most `most`, if that is given."""
        low = self.ranges.lower(extent)
        if low is not None and low >= 0:
            return extent
        longest = element(MAXIMUM, index(extent), ZERO)
        reach = 0, self.ranges.most(extent if most is None else most)
        return integer(self.kept_integer(longest, reach, ("extent", extent)))

    def _bound(self, k: Value, n: Extent, default: Extent, past: int = 0) -> Affine:
        """A bound of a slice of an axis, clipped; if `past` is 1, the place after it."""
        if k is None:
            return affine(default)
        i, place, low, room = self.located(k, n)
        beyond = self.ranges.upper(affine(n) - place)
        if low is not None and low >= 0 and room is not None and room >= past:
            return place + past
        if low is not None and low >= 0 and beyond is not None and beyond <= past:
            return affine(n)
        at = element(ADD, self.from_beginning(i, n), constant(past)) if past else self.from_beginning(i, n)
        inside = element(MINIMUM, element(MAXIMUM, at, ZERO), index(affine(n)))
        return integer(self.kept_integer(inside, (0, self.ranges.most(n)), ("bound", i, affine(n), past)))

    def transpose(self, value: View | Lazy, axes: Sequence[int] | None = None) -> View | Lazy:
        """Return the value with its axes permuted."""
        order = list(axes) if axes is not None else list(reversed(range(len(value.shape))))
        if isinstance(value, View):
            return View(value.buffer, value.base, [value.axes[a] for a in order])
        names = [value.names[a] for a in order]
        return self.view_of(self.new_lazy(names, [value.shape[a] for a in order], value.value), value)

    def reshape(self, value: View | Lazy, shape: Sequence[int]) -> View:
        """Return a copy of the elements in another shape, written along the common factors of both shapes."""
        if not all(isinstance(n, int) for n in value.shape):
            raise NotCaptured("reshape of an array whose shape changes")
        old = [n for n in value.shape if isinstance(n, int)]
        shape = [n if n >= 0 else math.prod(old) // max(1, -math.prod(shape)) for n in shape]
        factors = _common_factors(old, shape)
        value = self.lazy(value)
        view = whole_view(self.buffer("reshaped", shape, value.dtype))
        source = value.element
        self.write_at(factors, view, lambda p: _merged(factors, p, shape), lambda p: source(_merged(factors, p, old)))
        view.own = True
        return view


def either(flag: Element, a: Element, b: Element) -> Element:
    """One of two integers, by a flag that may be known."""
    return element(WHERE, flag, a, b) if flag.op != "constant" else a if flag.args[0] else b


def full_key(key: Value, rank: int) -> list[Value]:
    """Expand an index so that it has one entry for each axis, besides those for new axes."""
    keys = without_ellipsis(index_parts(key), rank)
    if sum(k is not None for k in keys) > rank:
        raise NotCaptured("too many indices")
    return keys


def _common_factors(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The coarsest extents such that each axis of both shapes is a product of neighbouring ones."""
    cuts = sorted({*_products(a), *_products(b)})
    factors = []
    for low, high in zip(cuts, cuts[1:], strict=False):
        if high % low:
            raise NotCaptured(f"reshape from {tuple(a)} to {tuple(b)}")
        factors.append(high // low)
    return factors[::-1]


def _products(shape: Sequence[int]) -> list[int]:
    found = [1]
    for n in reversed(shape):
        found.append(found[-1] * n)
    return found


def _merged(factors: Sequence[int], point: Sequence[Affine], shape: Sequence[int]) -> list[Affine]:
    """The indices into a shape, given a point in the shape of its factors."""
    indices: list[Affine] = []
    left = list(zip(factors, point, strict=True))
    for n in reversed(shape):
        i, stride = Affine(), 1
        while stride < n:
            factor, p = left.pop()
            i, stride = i + p * stride, stride * factor
        indices.insert(0, i)
    return indices


def _of_index(value: View | Lazy, key: Value) -> View | Lazy:
    """Return the elements at an index; with an ellipsis, also a single one is an array."""
    keys = key if isinstance(key, tuple) else (key,)
    return without_axes(value) if any(k is Ellipsis for k in keys) else value
