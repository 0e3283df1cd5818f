"""The operations of rewritten code: Python's own operations, applied to the current values of their operands.

Without traced values an operation gives Python's own value, errors and order of evaluation. A plain array that traced
values were written to is read from its memory (`effgrad.arrays.written`). An operator, item or attribute that a class
of the program defines in Python is a call of that method, which is rewritten too. An operation looks at the table of
memories when it is called and never earlier, because evaluating its operands may have written to arrays.
"""

import builtins
import functools
import itertools
import operator
import sys
from typing import Any

import numpy as np

from effgrad.arrays.layout import is_basic
from effgrad.arrays.operator_ufuncs import BINARY
from effgrad.arrays.record import preserve
from effgrad.arrays.value import Tracer, any_traced, example, plain_tree, stack_nested
from effgrad.arrays.written import READERS, handle, item_of, memories, memory_of, read, write_number
from effgrad.nested import map_leaves
from effgrad.program import buffer_objects
from effgrad.program.attributes import get, is_object, put, remove
from effgrad.program.classes import DIRECT, OPERANDS, is_builtin
from effgrad.program.coercion import coerced
from effgrad.program.control import loops
from effgrad.program.duck_arrays import assigns_by_ufunc, defines_ufuncs, ufunc_of
from effgrad.program.handed import each_item
from effgrad.program.hashed import HASHING, as_key
from effgrad.program.held_data import scaling
from effgrad.program.infix import (
    AUGMENTED,
    add,
    and_,
    eq,
    floordiv,
    ge,
    gt,
    invert,
    le,
    lshift,
    lt,
    matmul,
    mul,
    ne,
    neg,
    operand_in_place,
    or_,
    pos,
    pow,
    rshift,
    sub,
    truediv,
    written_out,
    xor,
)
from effgrad.program.managers import (
    Stepping,
    awaited,
    by_items,
    class_item,
    context,
    context_async,
    iterate_async,
    method_of,
    missing_item,
)
from effgrad.program.object_arrays import for_numbers, holds_objects, is_of_one_item, mixed
from effgrad.program.patterns import class_parts, is_sequence, item_at, items, mapping_parts
from effgrad.program.plain_writes import as_objects, by_traced_index, has_computed_place, is_same, takes, write_plainly
from effgrad.program.resolve import KNOWN, call, call_inside
from effgrad.program.rewritten import SOURCES
from effgrad.program.structured import by_fields, field_of, is_record, parts_of
from effgrad.program.subclasses import as_array, has_subclass, is_held, is_subclass, perform
from effgrad.program.texts import formatted, joined, mod, text
from effgrad.program.truths import FalsePattern, TruePattern, same, truth
from effgrad.vocabulary import Activation, Object

__all__ = [
    "DIRECT", "FalsePattern", "OPERANDS", "TruePattern", "add", "and_", "as_key", "awaited", "call", "call_inside",
    "class_of", "class_parts", "context", "context_async", "eq", "floordiv", "formatted", "ge", "globals", "gt",
    "identity", "invert", "is_sequence", "item_at", "items", "iterate_async", "joined", "known", "le", "locals",
    "loops", "lshift", "lt", "mapping_parts", "matmul", "mod", "mul", "ne", "neg", "or_", "pos", "pow", "read",
    "rshift", "same", "slice", "sub", "text", "truediv", "xor",
]  # fmt: skip
slice, locals, globals, class_of, identity = builtins.slice, builtins.locals, builtins.globals, type, id
known = KNOWN.targets.get


# Items


# The classes of the commonest keys that cannot contain a traced value.
KEYS = frozenset((int, str, np.int64, type(None), type(...)))


def getitem(a: Object, key: Object) -> Object:
    return a[key] if type(a) in DIRECT and type(key) in KEYS else item(a, key)


def item(a: Object, key: Object) -> Object:
    kind = type(a := read(a) if type(a) in READERS else a)
    if not is_builtin(a):
        found = record_item(a) or method_of(kind, "__getitem__") or class_item(a) or missing_item(a, key)
        if found is not None:
            return found(a, key)
    if memories:
        key = read_key(key)
        if is_held(a):
            return held_item(a, key)
    if kind is np.ndarray and (isinstance(key, Tracer) or type(key) is tuple and any_traced(key)):
        return by_traced_index(a, key)[key]
    return buffer_objects.item(a, key, item) if memories and buffer_objects.is_buffer(a) else a[key]


def held_item(a: Object, key: Object) -> Object:
    """Return an item of a plain array that holds traced values; a copy of several elements keeps the array's class."""
    key = map_leaves(as_array, key) if has_subclass(key) else key
    result = item_of(memory_of(a), a, key)  # type: ignore[arg-type]
    if isinstance(result, np.ndarray) and result.dtype.names is not None and not np.may_share_memory(result, a):
        return by_fields(lambda field: field[key], a, result)
    copies = is_subclass(a) and isinstance(result, Tracer) and result.ndim
    return perform(np.ndarray.__getitem__, operator.getitem, (a, key), {}) if copies else result


def record_item(a: Any) -> Any:
    """Return the function that reads a field of a record in an array, or None if `a` is no such record."""
    return item_of_record if is_record(a) else None


def item_of_record(record: Any, key: Any) -> Any:
    part = field_of(record, key)
    return part if part.ndim else item(part, ())


def read_key(key: Object) -> Object:
    return tuple(map(read, key)) if type(key) is tuple else read(key)


def setitem(value: Object, holder: Object, key: Object) -> None:
    kind = type(holder)
    if kind is np.ndarray:
        write_item(value, holder, key)
        return
    if isinstance(holder, Tracer):
        holder[read_key(key) if memories else key] = read(coerced(value))
        return
    if kind is np.flatiter and takes(holder.base, read(value)):
        base, value, key = holder.base, read(value), read_key(key)
        if base.dtype.kind not in "fc":
            write_plainly(set_flat, base, key, value)
            return
        holder = handle(base).flat
    if is_builtin(holder):
        into = kind is list and type(key) is builtins.slice  # takes the items of an array
        holder[as_key(key) if kind is dict else key] = iterate(value) if into else value
    elif (found := method_of(kind, "__setitem__")) is not None:
        found(holder, key, value)
    elif is_subclass(holder):
        write_item(value, holder, key)
    elif is_record(holder):
        setitem(value, field_of(holder, key), ...)
    elif buffer_objects.is_buffer(holder):
        buffer_objects.store(holder, key, read(value), write_item)
    else:
        holder[key] = value


def set_flat(array: Object, key: Object, value: Object) -> None:
    array.flat[key] = value


def write_item(value: Object, array: Object, key: Object) -> None:
    """Perform `array[key] = value` on a plain array."""
    value = value if type(value) in OPERANDS else coerced(value)
    if memories:
        kept = array.dtype.kind == "O" and is_of_one_item(array, key)
        value = value if kept else read(value)
        value = iterate(value) if is_record(value) and is_held(value.base) else for_numbers(value, array)
        key = read_key(key)
    if takes(array, value) or has_computed_place(array, key):
        write(array, key, value)
    else:
        preserve(array)
        array[key] = as_objects(array, key, value) if array.dtype.kind == "O" else value


def delitem(holder: Object, key: Object) -> None:
    found = None if is_builtin(holder) else method_of(type(holder), "__delitem__")
    if found is not None:
        found(holder, key)
    else:
        del holder[key]


def write(array: Object, key: Object, value: Object) -> None:
    """Write to a plain array that holds traced values, or does so after the write."""
    key = key if is_basic(key) else plain_tree(key)
    if array.dtype.names is not None:
        if isinstance(key, str | list):  # one field or several, which are views
            array, key = array[key], ...
        if array.dtype.names is not None:
            for name, part in parts_of(array.dtype.names, value, item):
                setitem(part, array[name], key)
            return
    if type(value) is not np.ndarray and type(value) in (list, tuple):
        value = stack_nested(value)
    known = memory_of(array)
    if known is None and array.dtype.kind not in "fc":
        write_plainly(operator.setitem, array, key, value)
    elif known is None or not (write_number(known, array, key, value) or is_same(array, key, value, known)):
        handle(array)[key] = value


def _into_array(operate: Object, plainly: str, a: Object, b: Object) -> Object:
    """Perform an augmented assignment to a plain array."""
    if memories and (holds_objects(a) or holds_objects(b) or mixed(a, b)):
        write_item(globals()[plainly](a, b), a, ...)
        return a
    if not takes(a, b):
        preserve(a)
        return operate(a, b)
    if a.dtype.kind not in "fc":
        operate(a.copy(), example(b))  # raises NumPy's own error for operands that do not fit
        return write_plainly(operate, a, b)
    memory = handle(a)
    result = operate(memory, b)
    if result is not memory:  # the operator did not work in place
        write(a, ..., result)
    return a


def _augmented(name: str) -> tuple[Object, Object, Object]:
    operate, method = getattr(operator, name), f"__{name}__"
    plainly = f"{name[1:]}_" if name in ("iand", "ior") else name[1:]
    otherwise = globals()[plainly]

    def carefully(a: Object, b: Object) -> Object:
        given, b = b, operand_in_place(a, b)
        if assigns_by_ufunc(a, b):
            return ufunc_of(plainly)(a, b, out=(a,))
        if is_subclass(b):
            if isinstance(a, float | int | complex):
                return otherwise(a, b)
            b = read(b) if is_builtin(a) else b
        if type(a) is np.ndarray:
            return _into_array(operate, plainly, a, b)
        if is_builtin(a):
            return operate(a, b)
        found = scaling(name, a, b) or method_of(type(a), method)
        if found is None and is_subclass(a) and takes(a, b):
            if defines_ufuncs(a):
                return ufunc_of(plainly)(a, b, out=(a,))
            write_item(otherwise(a, b), a, ...)
            return a
        result = NotImplemented if found is None else found(a, given)
        if result is not NotImplemented:
            return result
        return operate(a, b) if hasattr(type(a), method) else otherwise(a, b)

    inplace = written_out(AUGMENTED, getattr(operator, plainly), carefully)

    def item(holder: Object, key: Object, value: Object) -> None:
        setitem(inplace(getitem(holder, key), value), holder, key)

    def of_attribute(holder: Object, name: str, value: Object) -> None:
        setattribute(inplace(attribute(holder, name), value), holder, name)

    return inplace, item, of_attribute


IN_PLACE = [f"i{name}" for name in BINARY]
for _name in IN_PLACE:
    globals()[_name], globals()[f"item_{_name}"], globals()[f"attribute_{_name}"] = _augmented(_name)


# Attributes


def attribute(owner: Activation, name: str) -> Object:
    """Return `owner.name`, where a property written in Python is a call of its rewritten function."""
    if name == "flat" and is_held(owner) and type(owner).flat is np.ndarray.flat:
        return memory_of(owner).handle(owner).flat  # type: ignore[union-attr]
    plainly = type(owner) is np.ndarray or is_builtin(owner) or not is_object(owner)
    return getattr(owner, name) if plainly else get(owner, name)


def setattribute(value: Object, owner: Activation, name: str) -> None:
    """Perform `owner.name = value`, where a property written in Python is a call of its rewritten function."""
    shaping = name in ("shape", "strides", "dtype") and isinstance(owner, np.ndarray)
    if shaping and (memory := memory_of(owner)) is not None:
        memory.views.pop(id(owner), None)
        memory.values.pop(id(owner), None)
    if type(owner) is np.ndarray:
        if name in ("real", "imag"):
            itself = name == "real" and owner.dtype.kind != "c"
            setitem(value, owner if itself else getattr(owner, name), ...)
            return
        if name == "flat":
            setitem(value, owner.flat, ...)
            return
    if is_builtin(owner) or not is_object(owner):
        setattr(owner, name, value)
    elif is_record(owner) and name in owner.dtype.names:
        setitem(value, owner, name)
    else:
        put(owner, name, value)


def delattribute(owner: Activation, name: str) -> None:
    if is_builtin(owner) or not is_object(owner):
        delattr(owner, name)
    else:
        remove(owner, name)


def getter(f: Any) -> Object:
    """Return an `operator.attrgetter`, `itemgetter` or `methodcaller` rewritten, with the arguments from its pickle."""
    made, args = f.__reduce__()
    if type(f) is operator.methodcaller:
        (name, *rest), named = ((*made.args, *args), made.keywords) if type(made) is functools.partial else (args, {})
        return lambda owner, /: call(attribute(owner, name))(*rest, **named)
    step = getitem if type(f) is operator.itemgetter else attribute_by_path
    return lambda owner, /: step(owner, args[0]) if len(args) == 1 else tuple([step(owner, arg) for arg in args])


def attribute_by_path(owner: Activation, path: str) -> Object:
    """Return `owner.name.of.a.part` for a dotted path."""
    return functools.reduce(attribute, path.split("."), owner)


# Membership


def contains(value: Object, holder: Object) -> bool:
    """Return `value in holder`."""
    if type(holder) in DIRECT and type(value) in DIRECT:
        return value in holder
    if not is_builtin(holder):
        found = method_of(type(holder), "__contains__")
        if found is not None:
            return bool(truth(found(holder, value)))
        if hasattr(type(holder), "__contains__") and not buffer_objects.is_buffer(holder):
            return value in (read(holder) if is_held(holder) else holder)
    if type(holder) in (np.ndarray, dict, set, str, range) or isinstance(holder, Tracer):
        return read(as_key(value) if type(holder) in HASHING else value) in read(holder)
    return any(item is value or truth(eq(item, value)) for item in iterate(holder))


# Iteration and `with`


def iterate(values: Object) -> Object:
    """Return the object that a loop iterates over in place of `values`."""
    kind = type(values)
    if kind is np.ndarray:
        return each_item(values) if values.ndim else iter(values)
    if is_builtin(values):
        return values
    if memories and buffer_objects.is_buffer(values):
        return buffer_objects.each_item(values, item)
    found = method_of(kind, "__iter__")
    if found is None:
        found = method_of(kind, "__getitem__") if not hasattr(kind, "__iter__") or is_held(values) else None
        return _without_iterator(values) if found is None else by_items(found, values)
    result = found(values)
    following = None if is_builtin(result) else method_of(type(result), "__next__")
    return result if following is None else Stepping(following, result, iterate)


def _without_iterator(values: Object) -> Object:
    """Return the object to iterate over in place of one whose class has no `__iter__` in Python."""
    if is_held(values):
        return each_item(values)
    return tuple([item_of_record(values, name) for name in values.dtype.names]) if is_record(values) else values


def unpacked(value: Object, shape: tuple[Object, ...]) -> Object:
    """Return the object to unpack in place of `value` into a target of a shape (`effgrad.program.stores.pattern`)."""
    parts = iterate(value)
    inner = [place for place, part in enumerate(shape) if type(part) is tuple and ... not in shape[:place]]
    if not inner or (type(parts) is not tuple and not hasattr(parts, "__iter__")):
        return parts
    taken = [*parts] if ... in shape else [*itertools.islice(parts, len(shape) + 1)]
    for place in inner:
        if place < len(taken):
            taken[place] = unpacked(taken[place], shape[place])
    return taken


def each_unpacked(values: Object, shape: tuple[Object, ...]) -> Object:
    """Iterate over the items of a loop whose target unpacks each item."""
    plain = not any(type(part) is tuple for part in shape)
    return (item if plain and type(item) is tuple else unpacked(item, shape) for item in values)


SOURCES.operations = sys.modules[__name__]
