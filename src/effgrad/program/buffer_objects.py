"""Objects that share memory with arrays and are no arrays: memoryviews, `bytearray`, `array.array`, ctypes' objects.

An element of such an object of numbers is an element of an array over its memory, and is read and written as such. Any
other write it does by itself. Which elements of the arrays that hold traced values have changed is then found in their
memory.
"""

import array
import copy
import ctypes
import mmap
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from effgrad.arrays.marks import refuse_marked
from effgrad.arrays.record import preserve
from effgrad.arrays.value import example
from effgrad.arrays.written import Memory, memories, memory_of, read, running
from effgrad.errors import Detached
from effgrad.nested import map_leaves
from effgrad.program.plain_writes import takes
from effgrad.vocabulary import Array, Function, Object

BUFFERS = frozenset((memoryview, bytearray, array.array, mmap.mmap))
FUNCTIONS_OF_C: Any = type(ctypes.memset).__mro__[1]  # the base of all their classes
# The names of compiled functions that write to buffers that they are given, or share their memory; an array is one.
_WRITING = frozenset(("from_buffer", "readinto", "readinto1", "recv_into", "pack_into"))
# The names of methods that return the elements of a buffer as a list, or that change their number.
_OF_ITEMS = frozenset(("tolist", "append", "extend", "insert", "pop", "remove", "fromlist", "frombytes"))
_OF_C = (ctypes.Array, ctypes._Pointer, ctypes._SimpleCData, ctypes.Structure, ctypes.Union)
# The formats of elements that can hold traced values.
_FORMATS = frozenset(("f", "d", "Zf", "Zd", "<f", "<d"))


def is_buffer(value: object) -> bool:
    return type(value) in BUFFERS or isinstance(value, _OF_C)


def viewed(buffer: Any) -> Any:
    """Return an array over the elements of a buffer of numbers that can hold traced values, or None."""
    if type(buffer) is memoryview:
        of_array = isinstance(buffer.obj, np.ndarray) and buffer.format in _FORMATS
        return np.asarray(buffer) if of_array else None
    if type(buffer) is array.array or isinstance(buffer, ctypes.Array):
        view = memoryview(buffer)
        return np.asarray(view) if view.format in _FORMATS and view.ndim == 1 and view.nbytes else None
    return None


def held(buffer: Object) -> Any:
    """Return the array over the elements of a buffer, if it holds traced values; else None."""
    found = viewed(buffer) if memories else None
    return None if found is None or memory_of(found) is None else found


def item(buffer: Any, key: Object, getitem: Function) -> Object:
    """Return `buffer[key]`. A slice of a memoryview shares the memory, and that of an array of ctypes is a list."""
    listed = isinstance(key, slice) and isinstance(buffer, ctypes.Array)
    found = None if isinstance(key, slice) and not listed else held(buffer)
    if found is None:
        return buffer[key]
    buffer[key]  # raises Python's error
    return [*items(found[key], getitem)] if listed else getitem(found, key).item()


def each_item(buffer: Any, getitem: Function) -> Object:
    """Return the object to iterate over in place of a buffer."""
    found = held(buffer)
    return buffer if found is None else items(found, getitem)


def items(found: Array, getitem: Function) -> Iterator[Object]:
    """The elements of an array over a buffer, each read when it is reached."""
    return (getitem(found, place).item() for place in range(len(found)))


def compared(one: Object, other: Object) -> tuple[Object, Object]:
    """Return two buffers that are compared; if one of them holds traced values, the lists of their elements."""
    if held(one) is None and held(other) is None:
        return one, other
    return elements(one), elements(other)


def elements(buffer: Any) -> list[Object]:
    """Return the elements of a buffer as a list."""
    value = read(held(buffer))
    return list(buffer) if value is None else [value[place].item() for place in range(len(value))]


def store(buffer: Any, key: Object, value: Object, write_item: Function) -> None:
    """Perform `buffer[key] = value`, where `write_item` writes to elements of an array."""
    found = viewed(buffer)
    if found is None or not takes(found, value):
        watched(lambda: buffer.__setitem__(key, value), (buffer,))
        return
    scratch = _copy_of(buffer, found)
    with memoryview(scratch):  # so that it cannot change its length
        scratch[key] = map_leaves(example, value)  # raises Python's error
    write_item(np.asarray(memoryview(value)) if is_buffer(value) else value, found, key)


def _copy_of(buffer: Any, found: Array) -> Any:
    """Return an object of a buffer's class with the numbers of the array over its elements."""
    if type(buffer) is not memoryview:
        return copy.copy(buffer) if type(buffer) is array.array else type(buffer)()
    scratch: Any = memoryview(np.empty(found.shape, found.dtype))  # type: ignore[arg-type]
    return scratch.toreadonly() if buffer.readonly else scratch


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
        if memories and f.__name__ in _OF_ITEMS and held(owner) is not None:
            return elements(owner) if f.__name__ == "tolist" else _refuse_other_length(f.__name__)
        if memories and f.__name__ in _WRITING:
            args = tuple([_memory_of_array(arg) for arg in args])
        buffers = [arg for arg in (owner, *args) if is_buffer(arg)] if memories else ()
        return watched(lambda: target(*args, **kwargs), buffers) if buffers else target(*args, **kwargs)

    called.__name__ = target.__name__  # for errors
    return called


def _memory_of_array(arg: Any) -> Any:
    return arg.data if isinstance(arg, np.ndarray) else arg


def _refuse_other_length(name: str) -> NoReturn:
    raise Detached(
        f"array.array.{name} changes the length of an array.array that holds traced values, which an array of NumPy "
        "shares: use a list, or write to its elements"
    )


def watched(write: Callable[[], Object], buffers: Object, size: int | None = None) -> Object:
    """Call a function that may write to buffers, and log the writes in the memories that share memory with them.

    It writes items of `size` bytes, which is by default that of the buffers' items. No array may refer to a buffer
    during the call, which may change the buffer's length.
    """
    _preserve(buffers)
    shared = [(memory, owner, memory.flat.copy()) for memory, owner in _memories() if _meets(owner, buffers)]
    result = write()
    for memory, _, before in shared:
        _log(memory, before, size or min(map(_size_of_item, buffers)))
    return result


def _preserve(buffers: Object) -> None:
    for memory in map(_bytes_of, buffers):
        if memory is not None:
            preserve(memory)


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
