"""The classes whose operators no program defines: Python's, NumPy's and those of traced values."""

from effgrad.arrays.value import HOLDERS, Tracer

# Those that hold no memory that a program writes to, and those that hold none with traced numbers at this moment.
OPERANDS, DIRECT = Tracer.operands, Tracer.direct


def is_builtin(value: object) -> bool:
    """Return whether no program defines the operators of a value."""
    return type(value) in OPERANDS or type(value) in HOLDERS
