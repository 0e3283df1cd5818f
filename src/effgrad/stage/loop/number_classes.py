"""The classes that a number may have: Python's `int`, `float` and `bool`, or NumPy's, which differ in arithmetic.

A loop may find Python's 0 in its first step and a number of NumPy's in later steps, and a branch may choose between the
two. Such a number is a `Lazy` with a `Doubt`. An operation on it is captured if its result is the same for all classes.
"""

import enum
from collections.abc import Callable, Collection
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.buffers import BOOL, FLOAT
from effgrad.vocabulary import DType

T = TypeVar("T")
Refuse = Callable[[], NoReturn]


class Memory(enum.Enum):
    """The memory of a value without axes: a number has none, an array may share that of another array.

    Augmented assignment changes an array in place, under all its names, and not a number.
    """

    NONE, OWN, SHARED = range(3)


class NumberClass(NamedTuple):
    """The type of a number, whether it is of Python's class (`weak`) rather than of NumPy's, and its memory."""

    dtype: DType
    weak: bool
    memory: Memory = Memory.NONE


Classes = frozenset[NumberClass]


class Doubt:
    """The classes that a number may have. `refuse` raises an error where a program depends on which it is."""

    def __init__(self, classes: Classes, refuse: Refuse) -> None:
        self.classes, self.refuse = classes, refuse

    def shared(self, of: Callable[[NumberClass], T]) -> T:
        """Return what all classes share."""
        found = {of(c) for c in self.classes}
        return found.pop() if len(found) == 1 else self.refuse()

    def are_python_integers(self) -> bool:
        """Whether the number is Python's integer in arithmetic. A truth value is one too, but in other operations."""
        if any(c.dtype == BOOL for c in self.classes):
            self.refuse()
        return all(c.weak and c.dtype.kind == "i" for c in self.classes)

    def ordered(self) -> list[NumberClass]:
        """The classes, the widest one last."""
        return sorted(self.classes, key=lambda c: (c.dtype.kind != "b", c.dtype.kind == "f", c.dtype.itemsize))


def refuse_class() -> NoReturn:
    """Raise because a program depends on the class of a number that its values choose."""
    raise NotCaptured("a number whose class depends on values")


def widest(classes: Collection[NumberClass]) -> DType:
    """The type of the memory for a number that may have several classes."""
    samples = {"b": False, "i": 0}
    dtypes = [c.dtype for c in classes if not c.weak or c.dtype.kind not in samples]
    return np.result_type(*dtypes, *[samples[c.dtype.kind] for c in classes if c.weak and c.dtype.kind in samples])


def are_alike(classes: Collection[NumberClass]) -> bool:
    """Whether a number of these classes is the same in one type: integers and floats are, truth values are not."""
    dtypes = {c.dtype for c in classes}
    return len(dtypes) == 1 or (BOOL not in dtypes and all(sum(d.kind == k for d in dtypes) < 2 for k in "fi"))


def are_floats(classes: Collection[NumberClass]) -> bool:
    """Whether a number is a `float` or its subclass `np.float64`."""
    return all(c.dtype == FLOAT for c in classes)
