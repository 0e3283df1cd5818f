"""Sums, extremes and products of symbolic values."""

import math
from collections.abc import Sequence

import numpy as np

from effgrad.primitives import elementwise as rows
from effgrad.stage.loop.affine import Affine, NotCaptured, affine, new_point
from effgrad.stage.loop.basic_index import Indexed
from effgrad.stage.loop.buffers import BOOL, INT, constant, index, load
from effgrad.stage.loop.element import (
    ADD,
    AND,
    DIVIDE,
    EQUAL,
    GREATER,
    LESS,
    MULTIPLY,
    NOT_EQUAL,
    OR,
    SUBTRACT,
    WHERE,
    cast,
    element,
)
from effgrad.stage.loop.ir import Block, Map, Repeat, Store
from effgrad.stage.loop.operands import (
    Axis,
    Extent,
    Lazy,
    Value,
    View,
    axes_of,
    broadcast_shape,
    place_in,
    same_extent,
    whole_view,
)
from effgrad.stage.staged_value import constant_primitive

_FINITE = constant_primitive(np.isfinite)
_EXP, _LOG = rows.UNARY[np.exp], rows.UNARY[np.log]


class Values(Indexed):
    """All operations on symbolic values: reductions and products, besides those of `Indexed`."""

    def reduce(self, value: Value, axis: Value = None, keepdims: bool = False, name: str = "sum") -> View | Lazy:
        """The sum over axes, accumulated in a new buffer."""
        value = self.lazy(value)
        axes = axes_of(axis, len(value.shape))
        if name == "sum" and value.dtype.kind in "bi":
            value = self.new_lazy(value.names, value.shape, cast(value.value, INT))
        if value.dtype == BOOL:
            raise NotCaptured("a product of truth values")
        kept = [k for k in range(len(value.shape)) if k not in axes]
        shape = [value.shape[k] for k in kept]
        total = whole_view(self.buffer(name, shape, value.dtype), shape)
        self.assign(total, 0)
        self.write_at(value.shape, total, lambda point: [point[k] for k in kept], value.element, adds=True)
        return self.reduced(total, axes, len(value.shape), keepdims)

    def reduced(self, total: View, axes: Sequence[int], rank: int, keepdims: bool) -> View | Lazy:
        """The result of a reduction: a number, or an array without the axes, or with them as axes of length 1."""
        total.own, total.buffer.order = True, "K"
        if keepdims:
            axes_left = iter(total.axes)
            return View(total.buffer, total.base, [Axis(None, 1, 1) if k in axes else next(axes_left)
                                                   for k in range(rank)])  # fmt: skip
        return total if total.axes else self.number(total.element(()))

    def extreme(self, value: Value, ufunc: np.ufunc, axis: Value, keepdims: bool) -> View | Lazy:
        """The largest or smallest element along axes. Its derivative is the mean over the elements that attain it."""
        value = self.in_memory_once(value)
        axes = axes_of(axis, len(value.shape))
        best, _ = self._carried(value, ufunc, axes)
        kept = self.reduced(best, axes, len(value.shape), bool(best.axes) or keepdims)
        there = self.elementwise(EQUAL, value, kept)
        count = self.reduce(self.elementwise(WHERE, there, 1.0, 0.0), axes, keepdims)
        off = self.reduce(self.elementwise(WHERE, there, self.elementwise(SUBTRACT, value, kept), 0.0), axes, keepdims)
        result = self.reduced(best, axes, len(value.shape), keepdims)
        if value.dtype.kind != "f":
            return result
        smooth = self.elementwise(ADD, result, self.elementwise(DIVIDE, off, count))
        return self.elementwise(WHERE, self.elementwise(_FINITE, result), smooth, result)

    def log_sum_exp(self, value: Value, axis: Value, keepdims: bool) -> View | Lazy:
        """The logarithm of a sum of exponentials. To avoid overflow, the largest element is subtracted first.

        The result does not depend on the number that is subtracted, so that has no derivative.
        """
        value = self.in_memory_once(value)
        axes, rank = axes_of(axis, len(value.shape)), len(value.shape)
        most, _ = self._carried(value, np.maximum, axes)
        finite = self.elementwise(WHERE, self.elementwise(_FINITE, most), most, 0.0)
        most = self.store(finite)
        off = self.elementwise(SUBTRACT, value, self.reduced(most, axes, rank, True))
        total = self.reduce(self.elementwise(_EXP, off), axis, keepdims)
        return self.elementwise(ADD, self.elementwise(_LOG, total), self.reduced(most, axes, rank, keepdims))

    def place_of_extreme(self, value: Value, ufunc: np.ufunc, axis: Value, keepdims: bool) -> View | Lazy:
        """The position of the first of the largest or smallest elements along an axis, or in the flattened array."""
        value = self.in_memory_once(value)
        axes = axes_of(axis, len(value.shape))
        return self.reduced(self._carried(value, ufunc, axes, placed=True)[1], axes, len(value.shape), keepdims)

    def _carried(
        self, value: Lazy, ufunc: np.ufunc, axes: Sequence[int], placed: bool = False
    ) -> tuple[View, View]:  # fmt: skip
        """Fold elements over axes by the maximum or minimum of two, in a loop that carries the result.

        Return the results and, if `placed`, where their first elements are in row-major order. NumPy lets a NaN win.
        """
        self._check_elements(value, axes, ufunc)
        kept = [k for k in range(len(value.shape)) if k not in axes]
        shape = [value.shape[k] for k in kept]
        best = whole_view(self.buffer("most", shape, value.dtype), shape)
        place = whole_view(self.buffer("place", shape, INT), shape) if placed else best
        names, point = new_point(value.shape)
        dims = tuple((names[k], affine(value.shape[k])) for k in kept)
        here, x = best.at([point[k] for k in kept]), value.element(point)
        old = load(best.buffer, here)
        stores = [Store(best.buffer, here, element(constant_primitive(ufunc), old, x))]
        begin = [Store(best.buffer, here, x.substitute({names[k]: 0 for k in axes}))]
        if placed:
            larger = element(GREATER if ufunc is np.maximum else LESS, x, old)
            if value.dtype.kind == "f":
                larger = element(OR, larger, element(AND, element(NOT_EQUAL, x, x), element(EQUAL, old, old)))
            number = index(place_in([(names[k], affine(value.shape[k])) for k in axes]))
            stores.append(Store(place.buffer, here, element(WHERE, larger, number, load(place.buffer, here))))
            begin.append(Store(place.buffer, here, constant(0, INT)))
            place.buffer.reach = 0, math.prod([self.ranges.most(value.shape[k]) for k in axes]) - 1
        body: Block = [Map(dims, stores)]
        self.block.append(Map(dims, begin))
        for k in reversed(axes):
            body = [Repeat(names[k], Affine(), affine(value.shape[k]), 1, body)]
        self.block += body
        return best, place

    def _check_elements(self, value: Lazy, axes: Sequence[int], ufunc: np.ufunc) -> None:
        """Raise, or let the program check, that an extreme has elements to choose from."""
        for k in axes:
            n = affine(value.shape[k])
            if n == 0:
                raise NotCaptured(f"the {ufunc.__name__} of no elements")
            least = self.ranges.lower(n)
            if least is None or least < 1:
                flag = element(GREATER, index(n), constant(0, INT))
                self.check(flag, f"{self.place()}: the {ufunc.__name__} of no elements", ValueError)

    def matmul(self, a: Value, b: Value) -> View | Lazy:
        """The product of vectors, of matrices or of batches of them."""
        a, b = self.lazy(a), self.lazy(b)
        if not a.shape or not b.shape:
            raise NotCaptured("a matrix product of numbers")
        rows, columns = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
        if not same_extent(a.shape[-1], b.shape[-2] if len(b.shape) > 1 else b.shape[0]):
            raise NotCaptured(f"shapes {a.shape} and {b.shape} do not fit in a product")
        a, b = (self.in_memory_once(x) if n and not same_extent(n[0], 1) else x for x, n in ((a, columns), (b, rows)))
        batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
        shape = [*batch, *rows, *columns, a.shape[-1]]
        names, point = new_point(shape)
        outer, row, inner = point[: len(batch)], point[len(batch) : len(batch) + len(rows)], point[-1]
        column = point[len(batch) + len(rows) : -1]

        def batched(x: Lazy) -> list[Extent]:
            extents = x.shape[:-2]
            return [0 if same_extent(n, 1) else p
                    for n, p in zip(extents, outer[len(outer) - len(extents) :], strict=True)]  # fmt: skip

        left = a.element([*(batched(a) if len(a.shape) > 1 else []), *row, inner])
        right = b.element([*(batched(b) if len(b.shape) > 1 else []), inner, *column])
        value = self.typed(MULTIPLY, [left, right], [False, False])
        return self.reduce(Lazy(names, shape, value), len(shape) - 1, name="product")
