"""The strides and flags of a traced array: those of its memory, which views and writes share."""

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


class Flags:
    """The attribute `array.flags`: those of an array with the same memory order, of which `writeable` can be set."""

    def __init__(self, array: Value) -> None:
        self.array, addresses = array, _addresses(array)
        self.known = (outline(array) if addresses is None else addresses).flags

    writeable = property(lambda self: self.known.writeable, lambda self, write: self.array.setflags(write=write))

    def __getattr__(self, name: str) -> Value:
        return getattr(self.known, name)

    def __getitem__(self, name: str) -> Value:
        return self.known[name]

    def __setitem__(self, name: str, value: Value) -> None:
        if name not in ("W", "WRITEABLE"):
            self.known[name] = value  # NumPy's error
        self.writeable = value

    def __repr__(self) -> str:
        return repr(self.known)
