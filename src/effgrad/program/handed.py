"""Results passed between rewritten and other code, from the user's functions and from compiled code, and items."""

from collections.abc import Iterator

import numpy as np

from effgrad.arrays.marks import refuse_marked
from effgrad.arrays.value import Tracer, example
from effgrad.arrays.written import item_of, memories, memory_of
from effgrad.arrays.written import read as now
from effgrad.trees import flatten
from effgrad.vocabulary import Array, Object


def hand_out(result: Object) -> Object:
    """Return a result of the user's function, with traced arrays in place of plain arrays that hold traced values."""
    leaves, tree = flatten(result)
    leaves = [_with_memory(leaf) if type(leaf) is np.ndarray else now(leaf) for leaf in leaves]
    for leaf in leaves:
        refuse_marked(example(leaf, form=True), "the function's result")
    return tree.unflatten(leaves)


def _with_memory(array: Array) -> Object:
    memory = memory_of(array)
    return array if memory is None else memory.handle(array)


# CPython's flag `Py_TPFLAGS_HEAPTYPE`, which classes made at run time have and statically compiled classes lack.
_MADE = 1 << 9


def is_compiled(kind: type) -> bool:
    return not kind.__flags__ & _MADE


def from_compiled(result: object, name: str, of: type) -> Object:
    """Return a result of compiled code, or raise an error if it was computed from the marks of traced values."""
    if isinstance(result, float | complex | np.ndarray | memoryview) or hasattr(result, "memview"):
        known = isinstance(result, Tracer) or (isinstance(result, np.ndarray) and memory_of(result) is not None)
        if not known:
            refuse_marked(np.asarray(result), f"{of.__module__}.{of.__qualname__}.{name}")
    return result


def each_item(array: Array) -> Iterator[Object]:
    """Iterate over the items of a plain array, and read each only when it is reached."""
    for place in range(len(array)):
        memory = memory_of(array) if memories else None
        yield array[place] if memory is None else item_of(memory, array, place)
