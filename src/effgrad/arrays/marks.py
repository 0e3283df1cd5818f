"""The mark for traced numbers in plain memory: one NaN of the 2**52, which reveals a read that effgrad has not seen.

A plain array that traced values were written to holds this NaN in their place until the derivative ends. Arithmetic
and casts between precisions keep the bits of a NaN (IEEE 754-2019, 6.2.3). So a result computed from a mark is marked
too, and raises an error wherever a derivative meets it.
"""

import numpy as np

from effgrad.errors import Detached
from effgrad.vocabulary import DType, Value

# The tokens of the sessions whose arrays hold marks. While there are none, values are not searched for marks.
marking: set[object] = set()

# The first 23 bits of the mantissa, which both precisions have.
_PAYLOAD = 0x47F64A
_BITS: dict[Value, tuple[Value, int]] = {
    np.dtype(np.float64): (np.uint64, 0x7FF0000000000000 | _PAYLOAD << 29),
    np.dtype(np.float32): (np.uint32, 0x7F800000 | _PAYLOAD),
}
_PARTS: dict[Value, Value] = {
    np.dtype(np.complex128): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.float32),
}


def mark(dtype: DType) -> Value:
    """Return the marked NaN of a dtype, or the usual NaN for precisions other than single and double."""
    part: Value = _PARTS.get(dtype, dtype)
    if part not in _BITS:
        return np.full((), np.nan, dtype)[()]
    kind, bits = _BITS[part]
    return np.full(dtype.itemsize // part.itemsize, bits, kind).view(dtype)[0]


def is_marked(value: Value) -> bool:
    """Whether any element of a plain array or number is a marked NaN, of either sign."""
    array = np.asarray(value)
    part: Value = _PARTS.get(array.dtype, array.dtype)
    if part not in _BITS or not array.size:
        return False
    kind, bits = _BITS[part]
    array = np.ascontiguousarray(array).view(kind)
    return bool(np.any(array & kind(~(1 << (8 * part.itemsize - 1)) & (1 << 8 * part.itemsize) - 1) == bits))


def refuse_marked(value: Value, name: str = "an argument") -> None:
    """Raise an error if a value was computed from marks, by a read of plain memory that effgrad has not seen."""
    if issubclass(type(value), np.ndarray | np.floating | np.complexfloating | float) and is_marked(value):
        raise Detached(
            f"{name} was computed from the plain memory of an array that holds traced values, by code that effgrad "
            "does not read (compiled, or without its source), which would lose the derivative: compute it with "
            "functions of NumPy"
        )


def no_mark(array: Value) -> Detached:
    """The error for a traced value written into an array whose dtype cannot hold one."""
    return Detached(
        f"a traced value was written into an array of {array.dtype}, which would lose its derivative; make the "
        "array with dtype=float"
    )
