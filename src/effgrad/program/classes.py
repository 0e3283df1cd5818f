"""The classes whose operators a program cannot override: Python's, NumPy's and those of traced values."""

from effgrad.arrays.value import HOLDERS, Tracer

# Classes of numbers and traced values, and all classes to which Python's own operators may be applied at this moment.
OPERANDS, DIRECT = Tracer.operands, Tracer.direct


def is_builtin(value: object) -> bool:
    """Whether the operators of a value are those of Python, NumPy or effgrad, and not a program's."""
    return type(value) in OPERANDS or type(value) in HOLDERS
