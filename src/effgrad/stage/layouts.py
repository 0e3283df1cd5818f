"""How the arrays of a compiled function's result lie in memory: with their axes in the order of NumPy's result.

A program makes arrays in C order. Where NumPy's result is a transpose, lies in column order or is reversed, the program
makes the array whose elements follow one another as NumPy's do, and the function returns a view of it. Where NumPy's
results share memory, the function puts those of the program into memory that they share likewise.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import optree

from effgrad.arrays.common_memory import Place, common_places, together
from effgrad.arrays.layout import axes_in_memory
from effgrad.arrays.traced import Mutable
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


class Arrangement:
    """How the results of a function lie in memory: the layout of each, or its place in one that it shares with others.

    It is false if all of them are arrays of their own in C order.
    """

    layouts: Sequence[Layout | None] = ()
    places: Sequence[Place | None] = ()

    def __bool__(self) -> bool:
        return any(self.layouts) or any(self.places)

    def packed(self, leaves: Sequence[Value]) -> list[Value]:
        """Return results, constants and values of the program that runs, with elements that follow one another."""
        self.places = common_places(leaves)
        values = [leaf.current_value() if type(leaf) is Mutable else leaf for leaf in leaves]
        self.layouts = [None if place else layout_of(v) for v, place in zip(values, self.places, strict=True)]
        pairs = zip(values, self.layouts, strict=True)
        return [value if layout is None else layout.packed(value) for value, layout in pairs]

    def seen(self, outputs: Sequence[Value]) -> list[Value]:
        """Return the results of a function from its packed results."""
        pairs = zip(outputs, self.layouts, strict=True)
        return together([value if layout is None else layout.seen(value) for value, layout in pairs], self.places)


def arranged(f: Function, arrangement: Arrangement) -> Function:
    """Return the function with its results packed; a call says in `arrangement` how they lie."""

    def packed(*args: Value, **kwargs: Option) -> Value:
        leaves, tree = with_dataclasses(read(f)(*args, **kwargs))
        return optree.tree_unflatten(tree, arrangement.packed(leaves))

    return packed


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
