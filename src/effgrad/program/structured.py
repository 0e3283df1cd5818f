"""Records: elements of a structured array, each a view of the array's memory (NumPy's guide, structured arrays).

The table of memories finds an array by the owner of its memory. NumPy gives a field of a record no such owner, so a
field is made here as a view of the array that contains the record.
"""

from collections.abc import Iterator

import numpy as np

from effgrad.arrays.layout import address_of, owner_of
from effgrad.arrays.value import depends
from effgrad.arrays.written import handle, read
from effgrad.vocabulary import Function, Value


def is_record(value: Value) -> bool:
    """Whether a value is a record that is a view of an array."""
    return isinstance(value, np.void) and value.dtype.names is not None and isinstance(value.base, np.ndarray)


def field_of(record: Value, key: Value) -> Value:
    """Return a field of a record, or several, as a view of the array that contains the record."""
    owner = owner_of(record.base)
    start = address_of(record) - np.lib.array_utils.byte_bounds(owner)[0]
    held = np.ndarray((), record.dtype, owner.data if owner.flags.c_contiguous else owner.T.data, start)
    if isinstance(key, str | list):
        return held[key]
    record[key]  # raises NumPy's error for an invalid field number
    return held[record.dtype.names[key]]


def parts_of(names: tuple[str, ...], value: Value, item: Function) -> Iterator[tuple[str, Value]]:
    """Iterate over the fields of a structured array and the value written to each.

    A record gives its field of the same position, and any other value is written to all fields.
    """
    made = getattr(getattr(value, "dtype", None), "names", None)
    if made is not None and len(made) != len(names):
        np.empty(1, [(name, float) for name in names])[...] = np.zeros(1, [(name, float) for name in made])
    if type(value) is tuple and len(value) != len(names):
        np.empty(1, [(name, float) for name in names])[0] = (0.0,) * len(value)
    for place, name in enumerate(names):
        if made is not None:
            yield name, item(value, made[place])
        elif type(value) in (tuple, list):
            yield name, _part(value, place)
        else:
            yield name, value


def _part(value: Value, place: int) -> Value:
    """Return an item of a record given as a tuple, or of each record in a list."""
    return [_part(row, place) for row in value] if type(value) is list else value[place]


def by_fields(move: Function, array: Value, result: Value) -> Value:
    """Write the traced values of the fields of `array` to the records `result`, into which NumPy has moved them."""
    for name in result.dtype.names:
        if result[name].dtype.names is not None:
            by_fields(move, array[name], result[name])
        elif depends(value := read(array[name])):
            handle(result[name])[...] = move(value)
    return result
