"""How the arrays of a compiled function's result lie in memory: with their axes in the order of NumPy's result.

A program makes arrays in C order. Where NumPy's result is a transpose, lies in column order or is reversed, the program
makes the array whose elements follow one another as NumPy's do, and the function returns a view of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import optree

from effgrad.arrays.layout import axes_in_memory
from effgrad.arrays.value import outline
from effgrad.program import read
from effgrad.trees import with_dataclasses
from effgrad.vocabulary import Function, Option, Value


class Layout(NamedTuple):
    """The place of each axis by its stride, the largest first, and an index that reverses some axes."""

    places: tuple[int, ...]
    reversing: tuple[slice, ...]

    def packed(self, value: Value) -> Value:
        """Return the array, a constant or a value of the program that runs, whose elements follow one another."""
        return np.transpose(value[self.reversing], tuple(map(self.places.index, range(len(self.places)))))

    def seen(self, packed: Value) -> Value:
        """Return the view of a packed array that is the result."""
        return packed.transpose(self.places)[self.reversing]


def layout_of(value: Value) -> Layout | None:
    """Return the layout of a result; None for numbers, and for arrays with their axes in order."""
    array = outline(value)
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return None
    axes = axes_in_memory(array)
    reversing = tuple([slice(None, None, -1 if step < 0 else None) for step in array.strides])
    if axes == tuple(range(array.ndim)) and min(array.strides) >= 0:
        return None
    return Layout(tuple(map(axes.index, range(array.ndim))), reversing)


def arranged(f: Function, layouts: list[Layout | None]) -> Function:
    """Return the function with its results packed; a call puts their layouts into the list."""

    def packed(*args: Value, **kwargs: Option) -> Value:
        leaves, tree = with_dataclasses(read(f)(*args, **kwargs))
        layouts[:] = map(layout_of, leaves)
        return optree.tree_unflatten(tree, [
            leaf if layout is None else layout.packed(leaf) for leaf, layout in zip(leaves, layouts, strict=True)])

    return packed


def placed(outputs: Sequence[Value], layouts: Sequence[Layout | None]) -> list[Value]:
    """Return the results of a function from those of the packed function."""
    return [value if layout is None else layout.seen(value) for value, layout in zip(outputs, layouts, strict=True)]


def owned(outputs: list[Value], inputs: Sequence[Value]) -> list[Value]:
    """Return outputs in C order that share no memory: a view, an input, a constant and a repeated one are copied."""
    seen = set(map(id, inputs))
    for i, value in enumerate(outputs):
        if isinstance(value, np.ndarray):
            flags = value.flags
            if value.base is not None or not (flags.writeable and flags.c_contiguous) or id(value) in seen:
                outputs[i] = value = value.copy()
            seen.add(id(value))
    return outputs
