"""Objects that share memory with arrays and are no arrays: memoryviews, `bytearray`, `array.array`, ctypes' objects.

An element of a memoryview of an array is an element of the array, and is read and written as such. Any other object
writes by itself. Which elements of the arrays that hold traced values have changed is then found in their memory.
"""

import array
import ctypes
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from effgrad.arrays.marks import refuse_marked
from effgrad.arrays.record import preserve
from effgrad.arrays.value import example
from effgrad.arrays.written import Memory, memories, memory_of, running
from effgrad.errors import Detached
from effgrad.program.plain_writes import takes
from effgrad.vocabulary import Array, Function, Object

BUFFERS = frozenset((memoryview, bytearray, array.array, mmap.mmap))
FUNCTIONS_OF_C: Any = type(ctypes.memset).__mro__[1]  # the base of all their classes
_OF_C = (ctypes.Array, ctypes._Pointer, ctypes._SimpleCData, ctypes.Structure, ctypes.Union)
# The formats of the elements of memoryviews that can hold traced values.
_FORMATS = frozenset(("f", "d", "Zf", "Zd"))


def is_buffer(value: object) -> bool:
    return type(value) in BUFFERS or isinstance(value, _OF_C)


def viewed(buffer: Any) -> Any:
    """Return the array whose elements a memoryview has, or None for another buffer."""
    if type(buffer) is not memoryview or not isinstance(buffer.obj, np.ndarray) or buffer.format not in _FORMATS:
        return None
    return np.asarray(buffer)


def held(buffer: Object) -> Any:
    """Return the array whose elements a memoryview has, if it holds traced values; else None."""
    found = viewed(buffer) if memories else None
    return None if found is None or memory_of(found) is None else found


def item(buffer: Any, key: Object, getitem: Function) -> Object:
    """Return `buffer[key]`; a slice of a memoryview is one too, which shares the memory."""
    found = None if isinstance(key, slice) else held(buffer)
    if found is None:
        return buffer[key]
    buffer[key]  # raises Python's error
    return getitem(found, key).item()


def each_item(buffer: Any, getitem: Function) -> Object:
    """Return the object to iterate over in place of a memoryview."""
    found = held(buffer)
    return buffer if found is None else (item(buffer, place, getitem) for place in range(len(found)))


def store(buffer: Any, key: Object, value: Object, write_item: Function) -> None:
    """Perform `buffer[key] = value`, where `write_item` writes to elements of an array."""
    found = viewed(buffer)
    if found is None or not takes(found, value):
        watched(lambda: buffer.__setitem__(key, value), (buffer,))
        return
    scratch: Any = np.empty(found.shape, found.dtype)
    scratch = memoryview(scratch).toreadonly() if buffer.readonly else memoryview(scratch)
    scratch[key] = example(value)  # raises Python's error
    write_item(np.asarray(value) if type(value) is memoryview else value, found, key)


def put(owner: Any, name: str, value: Object) -> None:
    """Perform `owner.name = value`, where the attribute of an object of ctypes is in its memory."""
    if memories and isinstance(owner, _OF_C):
        field = getattr(getattr(type(owner), name, None), "size", ctypes.sizeof(owner))
        watched(lambda: setattr(owner, name, value), (owner,), field)
    else:
        setattr(owner, name, value)


def of_c(f: Function) -> Object:
    """Return the target of a function of C, which may write to any memory: it is given addresses."""

    def called(*args: Object, **kwargs: Object) -> Object:
        if not memories:
            return f(*args, **kwargs)
        return watched(lambda: f(*args, **kwargs), [ctypes.pointer(ctypes.c_byte())])

    called.__name__ = getattr(f, "__name__", "a function of C")  # for errors
    return called


def writing(f: Object, target: Object) -> Object:
    """Return the target of a compiled function that may write to a buffer: one of its arguments, or its owner."""
    owner = getattr(f, "__self__", None)

    def called(*args: Object, **kwargs: Object) -> Object:
        buffers = [arg for arg in (owner, *args) if is_buffer(arg)] if memories else ()
        return watched(lambda: target(*args, **kwargs), buffers) if buffers else target(*args, **kwargs)

    called.__name__ = target.__name__  # for errors
    return called


def watched(write: Callable[[], Object], buffers: Object, size: int | None = None) -> Object:
    """Call a function that may write to buffers, and log the writes in the memories that share memory with them.

    It writes items of `size` bytes, which is by default that of the buffers' items.
    """
    for memory in map(_bytes_of, buffers):
        if memory is not None:
            preserve(memory)
    shared = [(memory, owner, memory.flat.copy()) for memory, owner in _memories() if _meets(owner, buffers)]
    result = write()
    for memory, _, before in shared:
        _log(memory, before, size or min(map(_size_of_item, buffers)))
    return result


def _log(memory: Memory, before: Array, size: int) -> None:
    """Log the elements of a memory that have changed, by a write of items of `size` bytes."""
    bits = f"V{memory.dtype.itemsize}"
    (at,) = np.nonzero(memory.flat.view(bits) != before.view(bits))
    numbers = memory.flat[at]
    if memory.marked[at].any() and size < memory.dtype.itemsize:
        memory.flat[at] = before[at]
        raise Detached(
            "bytes of a traced number were written to, by an object that shares memory with its array: write to the "
            "array's elements"
        )
    if at.size:
        refuse_marked(numbers, "what was written to memory that an array shares")
        memory.storage.write(memory.places.reshape(-1)[at], numbers)


def _memories() -> Iterator[tuple[Memory, Array]]:
    """The memories of the session that runs here, and the arrays that own them."""
    session = running()
    for memory in [*memories.values()] if session is not None else ():
        owner = memory.owner()
        if owner is not None and session is not None and session.owns(memory):
            yield memory, owner


def _bytes_of(buffer: Any) -> Any:
    """Return the memory of a buffer as an array, and None for a pointer, which does not say how long it is."""
    return None if isinstance(buffer, ctypes._Pointer) else np.frombuffer(buffer, np.uint8)


def _meets(owner: Array, buffers: Object) -> bool:
    return any(memory is None or np.may_share_memory(owner, memory) for memory in map(_bytes_of, buffers))


def _size_of_item(buffer: Any) -> int:
    of_pointer = isinstance(buffer, ctypes._Pointer)
    return ctypes.sizeof(buffer._type_) if of_pointer else memoryview(buffer).itemsize
