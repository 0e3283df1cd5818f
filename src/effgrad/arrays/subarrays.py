"""Traced values as real NumPy arrays: of a subclass of the program's own (`x.view(cls)`), or with other strides.

The array is NumPy's, over memory that holds the traced values (`effgrad.arrays.written`). So the subclass's
constructor, `__array_finalize__`, attributes and views work as they do without a derivative. The array and the traced
value share memory: a later write to one is seen by the other.
"""

from effgrad.arrays.layout import ndim_of
from effgrad.arrays.reach import np
from effgrad.arrays.traced import handle_of
from effgrad.arrays.value import Tracer, is_lazy, no_subclass, operations, plain
from effgrad.arrays.written import Memory, enter, running
from effgrad.vocabulary import Array, DTypeLike, Value


def view_as(value: Tracer, kind: type) -> Array:
    """Return a traced value as an array of a subclass of `np.ndarray`."""
    array = real(value)
    if array is None:
        raise no_subclass(kind)
    return array.view(kind)


def real(value: Tracer) -> Array | None:
    """Return a NumPy array that shares memory with a traced value from now on, or None if it cannot have one."""
    session = running()
    if session is None or is_lazy(value) or value.dtype.kind not in "fc":
        return None
    link = handle_of(value)
    storage, addresses = link.storage, link.located()
    if storage.raw is None:
        owner = np.empty(storage.addresses.size, storage.dtype)
        memory = session.held[id(owner)] = Memory(owner, storage.dtype, session, storage)
        enter(id(owner), memory)
        memory.wrote(memory.places, storage.read(storage.addresses))
    owner = storage.raw.owner()
    return None if owner is None or link.half is not None else _seen(owner, addresses)


def _seen(owner: Array, addresses: Array) -> Array:
    """Return the view of flat memory with the elements at some addresses, which come from basic indices."""
    if not addresses.size:
        return np.empty(addresses.shape, owner.dtype)
    first, size, shape = int(addresses.flat[0]), owner.itemsize, addresses.shape
    seconds = [int(addresses.take(n > 1, axis).flat[0]) for axis, n in enumerate(shape)]
    return np.ndarray(shape, owner.dtype, owner, first * size, [(second - first) * size for second in seconds])


operations.view_as = view_as


class Converter:
    """`_array_converter`, by which NumPy's Python functions convert their arguments, and wrap their results."""

    def __init__(self, *given: Value) -> None:
        self.given = given
        self.arrays = tuple(a if isinstance(a, np.ndarray) else np.asarray(a) for a in given)
        self.scalar_input = tuple(ndim_of(value) == 0 and not isinstance(value, np.ndarray) for value in given)

    def as_arrays(self, subok: bool = True, pyscalars: str = "convert") -> tuple[Value, ...]:
        return self.arrays if subok else tuple(map(np.asarray, self.arrays))

    def result_type(self, extra_dtype: DTypeLike = None, ensure_inexact: bool = False) -> DTypeLike:
        extra = [*([] if extra_dtype is None else [extra_dtype]), *([0.0] if ensure_inexact else [])]
        return np.result_type(*map(plain, self.given), *extra)

    def wrap(self, arr: Value, to_scalar: bool | None = None) -> Value:
        """Return a result in the class of the argument that has the highest priority."""
        own = [value for value in self.arrays if type(value) is not np.ndarray and isinstance(value, np.ndarray)]
        first = max(own, key=lambda value: value.__array_priority__, default=None)
        return arr if first is None or isinstance(arr, type(first)) else first.__array_wrap__(arr, None, False)
