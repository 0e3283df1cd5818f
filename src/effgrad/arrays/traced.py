"""Traced values and the arrays that are written to: `a[i] = v`, views written through, arrays filled in a loop.

A traced value never changes; an array that the program writes to is a *variable* whose value does, read through its
memory (`effgrad.arrays.memory`). Until something is written, arrays are ordinary traced values: `alias` only notes
which ones are views of which, and the first write makes them `Mutable`.
"""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.arrays.handle import Handle
from effgrad.arrays.indexing import as_index, tells_places
from effgrad.arrays.labelled import to_array
from effgrad.arrays.layout import DOUBLES, PYTHONS, as_item, dtype_of, index_parts, is_basic, shape_of, without_axes
from effgrad.arrays.memory import Storage
from effgrad.arrays.ndarray import ArrayMethods
from effgrad.arrays.parts import PARTS, Part, rewind
from effgrad.arrays.value import (
    Evaluation,
    Tracer,
    any_traced,
    contiguous,
    depends,
    evaluated,
    getitem,
    is_lazy,
    operations,
    outline,
    owned_by,
    plain,
    plain_tree,
    staging,
)
from effgrad.arrays.write_log import spread
from effgrad.errors import Detached
from effgrad.vocabulary import Activation, DType, Function, Index, Option, Shadow, Shape, Value

_OWNER, _PRIMAL, _SHADOW = (Tracer.__dict__[name] for name in ("owner", "primal", "shadow"))
_CLASS: Any = object.__dict__["__class__"]


def _current(descriptor: Value) -> Value:
    """Return a property for a slot of `Mutable` that reads the array from its memory again if that has changed."""

    def get(self: Value) -> Value:
        handle = self.handle
        if parts := PARTS.get():
            rewind(handle.storage, parts)
        if handle.version != handle.storage.version:
            value = handle.read()
            handle.version = handle.storage.version
            traced = isinstance(value, Tracer)
            _OWNER.__set__(self, value.owner if traced else OUTERMOST)
            _PRIMAL.__set__(self, value.primal if traced else value)
            _SHADOW.__set__(self, value.shadow if traced else None)
        return descriptor.__get__(self)

    return property(get, descriptor.__set__)


class TracedArray(ArrayMethods):
    """A value whose elements lie in memory that views share."""

    __slots__ = ()
    shape = property(lambda self: shape_of(plain(self)), lambda self, shape: take_shape(self, shape))

    def __getitem__(self, index: Index) -> Value:
        index = as_index(index)
        result = getitem(self, index)
        if places := _row_places(index):
            return alias(result, self, lambda value: getitem(value, places()))
        return view(result, self, lambda value: getitem(value, index))

    def __setitem__(self, index: Index, value: Value) -> None:
        write(self, index, value)

    def assign(self, value: Value) -> None:
        # The result of an operation on an array without axes is a number, which would not be changed the next time.
        fits = isinstance(value, Tracer) and value.shape == self.shape != () and value.dtype == self.dtype
        if fits and type(self) is type(value) and getattr(self, "handle", None) is None and not Part.first:
            _replace(self, value)
        else:
            write(self, ..., value)

    def protect(self, write: bool) -> None:
        handle_of(self).protect(write) if hasattr(plain(self), "dtype") else None  # a number of Python has no memory

    def shares(self, other: Value) -> bool:
        """Return whether a value below all derivatives shares memory with another."""
        return False

    def become_mutable(self) -> None:
        self.handle.version = -1
        _CLASS.__set__(self, Mutable)


class Traced(TracedArray):
    """A value under a derivative. `shadow` is its tangent in forward mode, and names its cotangent in reverse mode."""

    __slots__ = ()

    def plain(self) -> Value:
        primal = self.primal
        return primal.plain() if isinstance(primal, Tracer) else primal

    # The primal has these attributes unless it is a Python number; NumPy's functions take four times as long.
    shape = property(lambda self: getattr(self.primal, "shape", ()), lambda self, shape: take_shape(self, shape))
    ndim = property(lambda self: getattr(self.primal, "ndim", 0))
    size = property(lambda self: getattr(self.primal, "size", 1))

    @property
    def dtype(self) -> DType:
        primal = self.primal
        return primal.dtype if hasattr(primal, "dtype") else np.result_type(primal)


class Outermost(Evaluation):
    """The owner of arrays made inside a derivative that hold no traced value yet; NumPy evaluates their operations."""

    serial = -2

    def apply(self, primitive: Any, *args: Value, **params: Option) -> Value:
        return primitive.function(*[plain(a) for a in args], **params)

    def constant(self, value: Value) -> Value:
        return value.handle.shared(value.primal)

    def released(self, value: Value) -> Value:
        return value.primal

    def exposed(self, value: Value) -> Value:
        return value.handle.exposed(value.primal)


OUTERMOST = Outermost()


def buffer(array: Value) -> Value:
    """Return a fresh plain array as a `Mutable`: code that effgrad does not rewrite can write traced values to it."""
    result: Value = Mutable(OUTERMOST, array, None)
    # Not np.ascontiguousarray, which would give a number an axis.
    Handle(Storage(np.asarray(array, order="C"), PARTS.get())).attach(result)
    return result


def as_plain(value: Value) -> Value:
    """Return a `Mutable` without traced values as a plain array, whose operations are faster; others unchanged."""
    return value.owner.constant(value) if type(value) is Mutable and owned_by(value, OUTERMOST) else value


class Mutable(TracedArray):
    """An array whose memory has been written to, or may absorb traced values."""

    __slots__ = ()
    owner = _current(_OWNER)
    primal = _current(_PRIMAL)
    shadow = _current(_SHADOW)
    shape = property(lambda self: self.handle.outline().shape, lambda self, shape: take_shape(self, shape))
    ndim = property(lambda self: self.handle.outline().ndim)
    size = property(lambda self: self.handle.outline().size)
    dtype = property(lambda self: self.handle.dtype)
    form = property(lambda self: self.handle.storage.form)  # so that a class is known without reading the memory

    def __init__(self, owner: Activation, primal: Value, shadow: Shadow) -> None:
        _OWNER.__set__(self, owner)
        _PRIMAL.__set__(self, primal)
        _SHADOW.__set__(self, shadow)

    def __len__(self) -> int:
        return len(self.handle.outline())

    def __getitem__(self, index: Index) -> Value:
        index = as_index(index)
        handle = self.handle
        if _listed(index):
            return getitem(self.__copy__(), index)
        addresses = handle.located()[index]
        if type(addresses) is np.int64:
            return handle.elements(addresses)
        if isinstance(addresses, np.ndarray) and np.may_share_memory(addresses, handle.addresses):
            result: Value = Mutable(None, None, None)
            handle.along(lambda value: getitem(value, index=index), addresses, version=-1).attach(result)
            return result
        value = handle.elements(addresses)
        if np.ndim(addresses):
            value = value.copy("K")  # if all elements come from one write, they alias the value written
        return value

    def plain(self) -> Value:
        """Return the plain value below the derivatives that the array holds values of."""
        owner, primal = self.owner, self.primal
        return held(owner, primal, self.shadow).plain() if hasattr(owner, "holder") else plain(primal)

    def value_below(self, form: bool = False) -> Value:
        value = self.current_value()
        return value.value_below(form) if isinstance(value, Tracer) else value

    def current_value(self) -> Value:
        """Return the array's current value: plain, or a new tracer of the activation that owns it."""
        owner, primal, shadow = self.owner, self.primal, self.shadow
        return primal if owner is OUTERMOST else held(owner, primal, shadow)

    def contiguous(self) -> bool:
        return contiguous(self.handle.outline())

    def addresses(self) -> Value:
        return self.handle.located()

    def __copy__(self) -> Value:
        value = self.current_value()
        return without_axes(value) if isinstance(value, Tracer) else np.array(value)


def _row_places(index: Index) -> Callable[[], Index] | None:
    """For `a[i]` with a batched integer `i`: return a function giving the index that all members share, or an error."""
    parts = index_parts(index)
    if not any_traced(parts) or not any(hasattr(part, "agreed") for part in parts) or any(map(np.ndim, parts)):
        return None
    instead = "np.where(np.arange(n) == i, v, a) for a[i] = v"
    what = "a row a[i], where it or the array is written to,"
    return lambda: tuple(part.agreed(what, instead) if hasattr(part, "agreed") else part for part in parts)


def _listed(index: Index) -> bool:
    """Whether an index is one staged array of integers. Such an index selects a copy and not a view."""
    return isinstance(index, Tracer) and staging((index,)) is not None and index.dtype.kind in "iu" and index.ndim > 0


def held(owner: Activation, primal: Value, shadow: Shadow) -> Value:
    """Return a value of an activation, in the class that its `holder` names, or else `Traced`."""
    return getattr(owner, "holder", Traced)(owner, primal, shadow)


def as_pythons(value: Value) -> Value:
    """Return a traced NumPy scalar as a traced Python number, which adopts the precision of the arrays it meets."""
    if not isinstance(value, Tracer):
        return value
    inside = plain(value)
    if inside is value and isinstance(value, np.number | np.bool_):  # of a staged program, which converts it too
        return evaluated(PYTHONS[value.dtype.kind], value)
    if value.dtype.char in "efF":
        value = operations.astype(value, dtype=np.dtype(complex if value.dtype.kind == "c" else float))
    primal = value.primal
    if not isinstance(inside, np.floating | np.complexfloating) or isinstance(primal, np.ndarray):  # or a batch
        return value
    return held(value.owner, as_pythons(primal) if isinstance(primal, Tracer) else primal.item(), value.shadow)


operations.as_pythons = as_pythons


def view(result: Value, source: object, step: Function) -> Value:
    """Return `result`, which is `step(source)`; if NumPy's result would share memory with `source`, mark it a view."""
    memory: Any = plain(result)
    whole: Value = plain(source)
    if isinstance(source, Tracer) and (addresses := source.addresses()) is not None:
        # The value of an array that was written to may have another memory order than its storage.
        whole, memory = addresses, step(addresses)
    elif isinstance(memory, Tracer) and memory.by_outline and memory.ndim and not is_lazy(memory):
        # For another library's array or a batch, apply the step to a NumPy array of the shape, and see what is shared.
        whole = outline(whole) if depends(whole) else np.empty(whole.shape, bool)
        memory = step(whole)
    ask = memory.shares if isinstance(memory, TracedArray) else lambda other: np.may_share_memory(memory, other)
    if isinstance(memory, np.ndarray) and ask(whole):
        return alias(result, source, step)
    if type(result) is np.ndarray and isinstance(source, Tracer) and np.may_share_memory(result, plain(source)):
        return result.copy("K")  # writes to the result must not change the source's primal
    return result


def always_view(result: Value, source: object, step: Function) -> Value:
    """Mark a view, as `view` does, for a function whose result shares memory with every array."""
    shares = isinstance(plain(source), np.ndarray) and not is_lazy(source)
    return alias(result, source, step) if shares else result


def take_shape(array: Value, shape: Shape) -> None:
    """Perform `array.shape = shape`: the array becomes what a view of that shape would be."""
    seen: Any = np.reshape(array, shape)
    if not hasattr(seen, "handle") and seen.shape != array.shape:
        raise AttributeError("incompatible shape for in-place modification: use array.reshape(shape), which copies")
    array.owner, array.primal, array.shadow = seen.owner, seen.primal, seen.shadow
    if hasattr(seen, "handle"):
        array.handle = seen.handle
        array.handle.storage.note(array)


def memory(array: Tracer) -> Value:
    """Return the value of an array's whole memory, and make the array mutable; without a memory, return the array."""
    handle: Handle | None = getattr(array, "handle", None)
    if handle is None:
        return array
    array.become_mutable()
    handle.located()
    storage = handle.storage
    return storage.read(storage.addresses) if storage.reruns(PARTS.get()) else storage.merge_writes()


def is_written(array: Value) -> bool:
    """Whether the memory of an array has been written to."""
    handle: Handle | None = getattr(array, "handle", None)
    return handle is not None and handle.storage.written is not None


def alias(result: Value, source: object, step: Callable[[Value], Value]) -> Value:
    """Return `result`, marked as a view of `source`; `step` is the function that made it, and maps addresses too."""
    if not isinstance(source, Tracer) or not (isinstance(result, Tracer) or type(source) is Mutable):
        return result
    handle = handle_of(source)
    if not isinstance(result, Tracer):  # the array holds only plain numbers so far
        view: Any = Mutable(None, None, None)
        handle.along(step, version=-1).attach(view)
        return view
    handle.along(step).attach(result)
    handle.storage.note(result)
    return result


def handle_of(array: Value) -> Handle:
    handle: Handle | None = getattr(array, "handle", None)
    if handle is None:
        handle = Handle(Storage(held(array.owner, array.primal, array.shadow)))
        handle.attach(array)
        handle.storage.whole = weakref.ref(array)
        handle.storage.note(array)
    return handle


def _asked(item: Value) -> Value:
    """Return a scalar boolean tracer in an index as a Python bool, since NumPy would take it for an integer."""
    return bool(item) if isinstance(item, Tracer) and item.dtype.kind == "b" and item.ndim == 0 else item


def write(array: Tracer, index: Index, value: Value) -> None:
    """Perform `array[index] = value`."""
    if type(array) is not Mutable and is_lazy(array):  # a graph has no memory: it becomes the graph of a changed copy
        value = np.array(value) if type(value) in (list, tuple) else value
        _replace(array, operations.setitem(array, value, index=as_index(index)))
    else:
        _write(array, index, value)


def _write(array: Tracer, index: Index, value: Value) -> None:
    """Perform `array[index] = value` in memory that views may share."""
    if type(array) is not Mutable and not isinstance(plain(array), np.ndarray):
        raise TypeError(f"a number of type {type(plain(array)).__name__} cannot be assigned to by index")
    value = np.array(value) if type(value) in (list, tuple) else as_item(to_array(value), array.dtype)
    handle = handle_of(array)
    if not is_basic(index):
        index = plain_tree(index)
        if staging((index,)) is not None and (whole := _written(array, index, value)) is not None:
            handle.write(handle.located(), whole)
            return
        index = tuple(map(_asked, index)) if type(index) is tuple else _asked(index)
    addresses = handle.located()[index]
    if type(addresses) is np.int64 and type(value) is not Mutable and type(getattr(value, "primal", value)) in DOUBLES:
        handle.write(addresses, value)
    elif type(value) is not Mutable or not handle.holds(value.handle, addresses):
        _write_at(handle, addresses, value)


def _write_at(handle: Handle, addresses: Value, value: Value) -> None:
    """Write to the elements with some addresses."""
    value = spread(value, np.shape(addresses))
    if dtype_of(value).kind == "c" and handle.dtype.kind != "c":
        raise Detached("a complex value was assigned into a real array, which would lose its imaginary part")
    if type(value) is Mutable or isinstance(plain(value), np.ndarray):
        # The program may write to the value later (also to an array without axes), or it may be a view of this array.
        value = value.__copy__() if isinstance(value, Tracer) else value.copy("K")
    handle.write(addresses, value)


def _written(array: Tracer, index: Index, value: Value) -> Value:
    """Return the array after a write at a staged index, or None if the write needs the index as plain numbers."""
    if dtype_of(value).kind == "c":
        return None
    whole: Value = array.__copy__() if type(array) is Mutable else array
    if isinstance(index, Tracer) and index.dtype.kind == "b":
        whole = _where(index, value, whole)
    else:
        whole = operations.setitem(whole, value, index=index) if tells_places(index) else None
    return whole if whole is None or dtype_of(whole) == array.dtype else whole.astype(array.dtype)


def _where(mask: Value, value: Value, array: Value) -> Value:
    """Return the array with a value where the mask holds, or None if each selected place gets a value of its own."""
    inner = np.ndim(array) - mask.ndim
    if not mask.ndim or len(shape_of(value)) > inner:
        return None
    mask = np.reshape(mask, (*mask.shape, *(1,) * inner))
    return np.where(mask, as_item(value, array.dtype), array)


def _replace(array: Tracer, value: Tracer) -> None:
    array.owner, array.primal, array.shadow = value.owner, value.primal, value.shadow
    if type(array) is not type(value):
        _CLASS.__set__(array, type(value))
