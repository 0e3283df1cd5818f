"""`np.nditer` of traced arrays that are read: NumPy's order of the elements, each a view without axes.

NumPy itself iterates over outlines of the arrays, unfilled arrays with their shapes and strides, and tells the places.
"""

import math
from typing import Any

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import as_array
from effgrad.arrays.value import Tracer, outline
from effgrad.errors import Detached
from effgrad.vocabulary import Option, Value

# The flags that only tell of a place, or allow arrays that NumPy refuses.
FLAGS = frozenset(("multi_index", "c_index", "f_index", "zerosize_ok", "refs_ok", "common_dtype"))

REFUSED = (
    "numpy.nditer goes through plain memory, and was given a traced value to write to or options that choose how: "
    f"effgrad follows it where it reads, with the flags {', '.join(sorted(FLAGS))}; loop over np.ndindex(x.shape) and "
    "write x[index], or write the program with whole arrays"
)
_NUMPYS: Any = np.nditer


def _writes(op_flags: Value) -> bool:
    """Whether the flags of an operand, or of each operand, say that it is written to."""
    return any(_writes(flag) if type(flag) is not str else "write" in flag for flag in op_flags)


class Nditer:
    """An iterator over the elements of arrays that are only read."""

    def __init__(
        self, op: Value, flags: Option = (), op_flags: Option = None, *, order: str = "K", **options: Option
    ) -> None:
        self.several = type(op) in (list, tuple)
        arrays = list(op) if self.several else [op]
        flags = flags or ()
        if options or not FLAGS.issuperset(flags) or _writes(op_flags or ()) or any(a is None for a in arrays):
            raise Detached(REFUSED)
        self.operands = tuple(as_array(a) if isinstance(a, Tracer) else np.asarray(a) for a in arrays)
        known = [name for name in flags if name != "multi_index"]
        numpys: Any = _NUMPYS([outline(a) for a in self.operands], ["multi_index", *known], order=order)
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
