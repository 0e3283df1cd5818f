"""The classes whose operators no program defines: Python's, NumPy's and those of traced values."""

from typing import Any

import numpy as np

from effgrad.arrays.value import Tracer

# Those that hold no memory that a program writes to, and the others.
OPERANDS = Tracer.operands
HOLDERS = frozenset((np.ndarray, list, tuple, dict, set, range, type(None)))


def is_builtin(value: Any) -> bool:
    """Return whether no program defines the operators of a value."""
    return type(value) in OPERANDS or type(value) in HOLDERS
