"""The strides, flags and base of a traced array: those of its memory, which views and writes share."""

from effgrad.arrays.value import outline, plain
from effgrad.vocabulary import Value


def _addresses(array: Value) -> Value:
    """Return the addresses of the elements of an array that is a view or has been written to, else None."""
    handle: Value = getattr(array, "handle", None)
    known = handle is not None and (handle.path or handle.storage.addresses is not None)
    return handle.located() if known else None


def strides_of(array: Value) -> tuple[int, ...]:
    if (addresses := _addresses(array)) is None:
        return plain(array).strides  # type: ignore[no-any-return]
    width = array.handle.storage.dtype.itemsize
    return tuple(step // addresses.itemsize * width for step in addresses.strides)


def base_of(array: Value) -> Value:
    """Return the array whose memory a view shares, while the program holds it, or None for one of its own memory."""
    whole = array.handle.storage.whole if is_view(array) else None
    return None if whole is None else whole()


def is_view(array: Value) -> bool:
    """Whether an array is a view of another one's memory."""
    handle: Value = getattr(array, "handle", None)
    if handle is None or not handle.path:
        return False
    whole = handle.storage.whole
    return whole is None or whole() is not array  # an array that was made read-only has a path too


class Flags:
    """The attribute `array.flags`: those of an array with the same memory order, of which `writeable` can be set."""

    def __init__(self, array: Value) -> None:
        self.array, addresses = array, _addresses(array)
        self.known = (outline(array) if addresses is None else addresses).flags
        self.owndata = not is_view(array)

    writeable = property(lambda self: self.known.writeable, lambda self, write: self.array.setflags(write=write))

    def __getattr__(self, name: str) -> Value:
        return getattr(self.known, name)

    def __getitem__(self, name: str) -> Value:
        return self.owndata if name in ("O", "OWNDATA") else self.known[name]

    def __setitem__(self, name: str, value: Value) -> None:
        if name not in ("W", "WRITEABLE"):
            self.known[name] = value  # NumPy's error
        self.writeable = value

    def __repr__(self) -> str:
        return repr(self.known).replace(f"OWNDATA : {self.known.owndata}", f"OWNDATA : {self.owndata}")
