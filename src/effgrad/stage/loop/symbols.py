"""Symbolic values where Python needs a truth value, an integer, or something to iterate over."""

import ast
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView
from typing import Any

import numpy as np

from effgrad.program.used_up import list_of_a_generator
from effgrad.stage.loop.affine import Affine, NotCaptured, variable
from effgrad.stage.loop.buffers import BOOL, INT, Element, constant, integer
from effgrad.stage.loop.element import AND, NOT_EQUAL, OR, cast, element
from effgrad.stage.loop.frames import Function as DefinedFunction
from effgrad.stage.loop.generators import Generator
from effgrad.stage.loop.number_classes import Classes, NumberClass, Refuse, refuse_class
from effgrad.stage.loop.operands import (
    Complex,
    Counted,
    Iterated,
    Lazy,
    OneOf,
    Value,
    View,
    classes_of,
    is_number,
    views_in,
)
from effgrad.stage.loop.reductions import Values
from effgrad.stage.loop.special_methods import run_by_python
from effgrad.vocabulary import Function, Params

# A loop over at most this many Python objects is unrolled.
MOST_UNROLLED = 64
# A list of at most this many arrays is stacked into one array.
MOST_STACKED = 512


class Symbols(Values):
    """Conversions of symbolic values to truth values, integers and iterables.

    `Operators` adds the operators, and `Capture` the calls of functions and of the user's functions, by their source.
    """

    call: Callable[[Value, list[Value], Params], Value]
    applied: Callable[[Value, list[Value], Params], Value]
    inline: Callable[[Function, Sequence[Value], Params], Value]
    as_memory: Callable[[Value], View]
    binary: Callable[[ast.operator, Value, Value], Value]
    compare: Callable[[ast.cmpop, Value, Value], Value]

    def iterator(self, items: Counted | Iterator[Value]) -> Iterated:
        return Iterated(items, self.block)

    def each(self, value: Value) -> Counted | Iterator[Value]:
        """The items that a loop goes through, each read when the loop asks for it. An iterator is used up by it."""
        if isinstance(value, Iterated):
            if value.is_used or value.block is not self.block:
                raise NotCaptured("an iterator that is used twice, or in another block than the one that makes it")
            value.is_used = True
            return value.items
        if isinstance(value, Complex):
            return Counted(0, value.real.shape[0], 1, lambda i: Complex(*[self.index(p, i) for p in value]))
        if isinstance(value, Counted):
            return value
        if isinstance(value, range):
            return Counted(value.start, value.stop, value.step, lambda i: i)
        if isinstance(value, np.ndarray) and value.ndim:
            value = self.lazy(value)
        run_by_python(value, "__iter__")
        if isinstance(value, View | Lazy):
            if not value.shape:
                raise NotCaptured("a loop over a number")
            return Counted(0, value.shape[0], 1, lambda i: self.index(value, i))
        if not isinstance(value, list | tuple | dict | set | frozenset | str | KeysView | ValuesView | ItemsView):
            raise NotCaptured(f"a loop over a {type(value).__name__}")
        items = list(value)
        if len(items) > MOST_UNROLLED:
            column = self.column(items)
            if column is not None:
                return Counted(0, len(items), 1, column)
            raise NotCaptured(f"a loop over {len(items)} things that are not an array or a range")
        return iter(items)

    def every(self, value: Value) -> Iterator[Value]:
        """The items of an iterable whose length is known and short, each read when it is asked for."""
        found = self.each(value)
        if isinstance(found, Counted) and found.steps is not None and len(found.steps) > MOST_UNROLLED:
            raise NotCaptured("a long iterable that is taken apart")
        return found.items() if isinstance(found, Counted) else found

    def column(self, items: list[Value]) -> Callable[[Any], Any] | None:
        """Return a function from a symbolic position to the item there, or None if the items do not fit in arrays.

        The items must be numbers, arrays of one type and shape, or tuples or lists of these.
        """
        first = items[0]
        if type(first) in (tuple, list) and all(type(x) is type(first) and len(x) == len(first) for x in items):
            found = [self.column(list(column)) for column in zip(*items, strict=True)]
            return (lambda i: type(first)(f(i) for f in found if f)) if all(found) else None
        return self.column_of_leaves(items)

    def column_of_leaves(self, items: list[Value]) -> Callable[[Any], Any] | None:
        """`column` for items that are no tuples or lists."""
        if len({type(x) for x in items}) == 1 and type(items[0]) in (bool, int, float):
            view = self.table_view(np.array(items))
            return lambda i: self.python_number(self.weakened(self.index(view, i)))
        if len(items) <= MOST_STACKED and all(is_number(x) for x in items):
            numbers = self.stacked(items)
            classes = frozenset().union(*map(classes_of, items))
            return lambda i: self.python_number(self.one_of(self.lazy(self.index(numbers, i)).value, classes))
        if all(isinstance(x, View | Lazy) for x in items) and len({(x.shape, x.dtype) for x in items}) == 1:
            if len(items) > MOST_STACKED:
                return None
            rows = self.stacked(items)
            self.frozen[rows.buffer] = "an array of a list is written to"
            for array in views_in(items):
                self.frozen[array.buffer] = self.frozen[rows.buffer]
                self.unite(array.buffer, rows.buffer)
            return lambda i: self.index(rows, i)
        return None

    def item_at(self, items: Value, k: Value) -> Value:
        """Return `items[k]`, where `k` is a number of the loop."""
        if isinstance(items, dict) and self.is_below(k, len(items)) and all(n in items for n in range(len(items))):
            items = [items[n] for n in range(len(items))]
        if isinstance(items, tuple | list) and all(callable(x) or isinstance(x, DefinedFunction) for x in items):
            return self.one_of_functions(items, k)
        column = self.column(list(items)) if isinstance(items, tuple | list) and items else None
        if column is None or isinstance(k, slice | tuple):
            raise NotCaptured(f"a {type(items).__name__} that is indexed by a number of the loop")
        return column(self.as_index(k))

    def one_of_functions(self, functions: Sequence[Value], k: Value) -> OneOf:
        """Return the function that a number of the loop chooses."""
        if not functions or len(functions) > MOST_UNROLLED or isinstance(k, slice | tuple):
            raise NotCaptured("functions that are chosen by a number of the loop")
        if self.is_below(k, len(functions)):
            return OneOf(functions, self.as_index(k))
        numbers = self.table_view(np.arange(len(functions)))  # an index of it raises where one of the functions does
        return OneOf(functions, self.as_index(self.lazy(self.index(numbers, k))))

    def is_below(self, k: Value, n: int) -> bool:
        """Whether an integer is known to be in `range(n)`."""
        low, high = (self.ranges.lower(k), self.ranges.upper(k)) if isinstance(k, Affine) else (None, None)
        return low is not None and high is not None and low >= 0 and high < n <= MOST_UNROLLED

    def python_number(self, value: Lazy) -> Value:
        """Return a number; an integer of Python's as an `Affine`."""
        return self.snapshot(value) if not value.doubt and value.weak and value.dtype.kind == "i" else value

    def weakened(self, value: Value) -> Lazy:
        """Return a number as a weak one, like Python's numbers."""
        return self.number(value.value, True)

    def items(self, value: Value) -> list[Value]:
        """The items of an iterable that is known to be short, or whose items Python knows."""
        if isinstance(value, Generator):
            return self.inline(list_of_a_generator, [value], {})  # type: ignore[no-any-return]
        is_made = isinstance(value, Iterated | Counted | Complex | View | Lazy)
        return list(self.every(value) if is_made else run_by_python(value, "__iter__"))

    def truth(self, value: Value) -> bool | Element:
        if isinstance(value, Complex):
            return element(OR, *[element(NOT_EQUAL, self.lazy(p).value, constant(0.0)) for p in value])
        if isinstance(value, View | Lazy):
            value = self.lazy(value)
            if value.shape:
                raise NotCaptured("the truth value of an array")
            e = value.value
            if e.op == "constant":
                return bool(e.args[0])
            return e if e.dtype == BOOL else element(NOT_EQUAL, e, constant(0, e.dtype))
        if isinstance(value, Affine):
            return self.truth(self.unequal(value))
        return bool(run_by_python(value, "__bool__", "__len__"))

    def all_of(self, values: Sequence[Value], every: bool) -> bool | Lazy:
        """Return whether every value is true, or with `every=False` whether one is."""
        ufunc = AND if every else OR
        result: Value = None
        for value in values:
            truth = self.truth(value)
            if isinstance(truth, bool):
                if truth is not every:
                    return truth
                continue
            result = truth if result is None else element(ufunc, result, truth)
        last = len(values) - 1
        found = [v for k, v in enumerate(values) if k == last or not isinstance(self.truth(v), bool)]
        return every if result is None else self.one_of(result, truth_classes(found))

    def unequal(self, value: Affine) -> Lazy | bool:
        """Whether an integer differs from zero: decided now if its bounds allow it, else a lazy truth value."""
        low, high = self.ranges.lower(value), self.ranges.upper(value)
        if low is not None and high is not None and (low > 0 or high < 0 or low == high == 0):
            return not low == high == 0
        return self.elementwise(NOT_EQUAL, value, 0)

    def symbol(self, e: Element, classes: Classes, refuse: Refuse = refuse_class) -> Lazy | Affine:
        """The number in a cell that nothing writes while the number is in use."""
        found = self.one_of(e, classes, refuse)
        return variable(e) if e.dtype == INT and found.doubt is None and found.weak else found

    def affine_of(self, value: Lazy) -> Affine:
        """A Python integer that was computed from others, as an `Affine`."""
        return integer(cast(value.value, INT))


def truth_classes(values: Iterable[Value]) -> Classes:
    """The classes that a truth value may have which is one of several; of a number only the truth counts."""
    found = [classes_of(v) for v in values if isinstance(v, bool | np.bool | View | Lazy)]
    return frozenset([c for classes in found for c in classes if c.dtype == BOOL] or [NumberClass(BOOL, True)])
