"""The classes whose operators no program defines: Python's, NumPy's and those of traced values."""

from typing import Any

from effgrad.arrays.value import HOLDERS, LISTS, Tracer, nested, traced_inside

# Those that hold no memory that a program writes to, and those that hold none with traced numbers at this moment.
OPERANDS, DIRECT = Tracer.operands, Tracer.direct


def is_builtin(value: Any) -> bool:
    """Return whether no program defines the operators of a value."""
    return type(value) in OPERANDS or type(value) in HOLDERS


def gathered(value: Any) -> Any:
    """A list with traced values in it as an array; any other value as it is."""
    return nested(value) if type(value) in LISTS and traced_inside(value) else value
