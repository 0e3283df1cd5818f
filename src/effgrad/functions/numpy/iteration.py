"""`np.nditer` of traced arrays: NumPy's order of the elements, each a view without axes that may be written to.

NumPy itself iterates over outlines of the arrays, unfilled arrays with their shapes and strides, and tells the places.
"""

import math
from typing import Any

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import as_array
from effgrad.arrays.value import outline, traced_inside
from effgrad.errors import Detached
from effgrad.program.plain_writes import holds_traced
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Option, Value

# The flags that only tell of a place, or allow arrays that NumPy refuses.
FLAGS = frozenset(("multi_index", "c_index", "f_index", "zerosize_ok", "refs_ok", "common_dtype"))

# The flags of operands that change nothing else.
OPERAND_FLAGS = frozenset(("readonly", "readwrite", "writeonly", "allocate", "no_broadcast"))

REFUSED = (
    "numpy.nditer was given a traced value with {given}, which work on buffers or parts of plain memory; effgrad "
    f"follows the flags {', '.join(sorted(FLAGS))}, and for operands {', '.join(sorted(OPERAND_FLAGS))}: loop over "
    "np.ndindex(x.shape) and write x[index], or write the program with whole arrays"
)
_NUMPYS: Any = np.nditer


def _names(flags: Value) -> set[str]:
    """The flags of an operand, or those of all operands."""
    return {flags} if type(flags) is str else {name for part in flags or () for name in _names(part)}


def iterator(op: Value, flags: Option = (), op_flags: Option = None, **options: Option) -> Value:
    """Return `np.nditer(op, flags, op_flags, ...)` in a derivative, where also plain arrays may get traced values."""
    strange = {*options} - {"order"} | ({*(flags or ())} - FLAGS) | (_names(op_flags) - OPERAND_FLAGS)
    if not strange:
        return Nditer(op, flags or (), op_flags, **options)
    if holds_traced(op):
        raise Detached(REFUSED.format(given=", ".join(sorted(strange))))
    return np.nditer(op, flags, op_flags, **options)


class Nditer:
    """An iterator over the elements of arrays, of which those that are None are made for results."""

    def __init__(self, op: Value, flags: Option, op_flags: Option, order: str = "K") -> None:
        self.several = type(op) in (list, tuple)
        arrays = op if self.several else [op]
        given = [None if a is None else as_array(a) if traced_inside(a) else np.asarray(a) for a in arrays]
        known = [name for name in flags if name != "multi_index"]
        flags_given = {} if op_flags is None else {"op_flags": op_flags}
        outlines = [a if a is None else outline(a) for a in given]
        numpys: Any = _NUMPYS(outlines, ["multi_index", *known], order=order, **flags_given)
        self.operands = tuple(
            np.zeros_like(made) if a is None else a for a, made in zip(given, numpys.operands, strict=True)
        )
        self.shape = np.broadcast_shapes(*map(shape_of, self.operands))
        self.ndim, self.itersize = len(self.shape), math.prod(self.shape)
        self.has_multi_index, self.has_index = "multi_index" in flags, numpys.has_index
        self.places = [(numpys.multi_index, numpys.index if self.has_index else None) for _ in numpys]
        self.spread = [a if shape_of(a) == self.shape else np.broadcast_to(a, self.shape) for a in self.operands]
        self.iterindex, self.begun = 0, False

    multi_index = property(lambda self: self.places[self.iterindex][0])
    index = property(lambda self: self.places[self.iterindex][1])
    finished = property(lambda self: self.iterindex >= self.itersize)
    value = property(lambda self: tuple(self[n] for n in range(len(self))) if self.several else self[0])

    def __getitem__(self, number: int) -> Value:
        return self.spread[number][(*self.multi_index, ...)]

    def __setitem__(self, number: int, value: Value) -> None:
        vars(SOURCES.operations)["setitem"](value, self[number], ...)

    def __len__(self) -> int:
        return len(self.operands)

    def __iter__(self) -> "Nditer":
        return self

    def __next__(self) -> Value:
        self.iterindex += self.begun
        self.begun = True
        if self.finished:
            raise StopIteration
        return self.value

    def iternext(self) -> bool:
        self.iterindex += 1
        return not self.finished

    def reset(self) -> None:
        self.iterindex, self.begun = 0, False

    def __enter__(self) -> "Nditer":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing, as no buffers are written back."""
