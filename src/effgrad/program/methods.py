"""Methods of plain arrays, applied to the current values of the array and the arguments."""

import functools
import operator

import numpy as np

from effgrad.arrays.layout import PYTHON_NUMBERS, VIEWING_METHODS, to_dtype
from effgrad.arrays.ndarray import RESIZED
from effgrad.arrays.operator_ufuncs import BINARY
from effgrad.arrays.record import preserve
from effgrad.arrays.signatures import place_of_out
from effgrad.arrays.subarrays import real
from effgrad.arrays.value import Tracer, stack_nested, traced_inside
from effgrad.arrays.written import handle, memories, memory_of, read
from effgrad.errors import Detached
from effgrad.program.coercion import coerced
from effgrad.program.duck_arrays import by_ufuncs, defines_ufuncs, of_base_class
from effgrad.program.object_arrays import array_of_objects, is_of_objects, noticed, numbers_of_objects
from effgrad.program.own_numbers import read_number
from effgrad.program.plain_writes import holds_traced, write_plainly
from effgrad.program.rewritten import SOURCES
from effgrad.program.structured import by_fields
from effgrad.program.subclasses import as_array, has_subclass, is_subclass, perform, read_arrays
from effgrad.program.views import laid_as
from effgrad.vocabulary import Function, Object, Params

# Methods of arrays that write to the array.
WRITING = frozenset(("fill", "put", "itemset", "__setitem__", "sort", "partition", "setfield"))
# Methods about the array itself and not its elements.
OF_ITSELF = frozenset(("__array_finalize__", "setflags"))
# Methods that may return a view, which is NumPy's own.
VIEWING = VIEWING_METHODS | {"astype", "view", "conj", "conjugate", "getfield", "__getitem__", "__array__"}
# Methods that only move the elements of an array, so that they apply to each field of records.
MOVING = frozenset(("copy", "__copy__", "__deepcopy__", "take", "repeat", "flatten", "ravel", "reshape"))
# Methods with a parameter `out`; NumPy's functions of the same names take the same arguments.
WITH_OUT = frozenset((
    "all", "any", "argmax", "argmin", "choose", "clip", "compress", "conj", "conjugate", "cumprod", "cumsum", "dot",
    "max", "mean", "min", "prod", "round", "std", "sum", "take", "trace", "var",
))  # fmt: skip


# NumPy's functions of these names whose methods take `out` only as a positional argument.
BY_PLACE = frozenset((np.conj, np.conjugate))


def gives_out(function: Function, args: tuple[object, ...], kwargs: Params) -> bool:
    """Return whether a call of the method of a function's name gives `out`."""
    place = place_of_out(function)
    named = kwargs.get("out") is not None and function not in BY_PLACE
    return named or place is not None and len(args) >= place and args[place - 1] is not None


def with_out(function: Function, array: Object, *args: Object, **kwargs: Object) -> Object:
    """Call NumPy's function in place of the method of its name. Of `np.compress` the array is the second argument."""
    if function is np.compress:
        kwargs |= dict(zip(("condition", "axis", "out"), args, strict=False))
        args, array = (array,), kwargs.pop("condition")
    return vars(SOURCES.operations)["call"](function)(array, *args, **kwargs)


@functools.cache
def of_traced(f: Function, convert: Function) -> Function:
    """Return a method of traced values, called with converted arguments; with `out`, NumPy's function is called."""
    function = getattr(np, f.__name__) if f.__name__ in WITH_OUT else None

    def called(value: Object, *args: Object, **kwargs: Object) -> Object:
        if function is not None and gives_out(function, args, kwargs):
            return with_out(function, value, *args, **kwargs)
        args = tuple(map(coerced, args))
        if f.__name__ == "astype" and value.dtype.kind != "O" and args and to_dtype(args[0]).hasobject:
            return noticed(array_of_objects(value))
        return f(value, *map(convert, args), **{key: convert(option) for key, option in kwargs.items()})

    return called


def bound_method(f: Object, *args: Object, **kwargs: Object) -> Object:
    """Call a method that is bound to a plain array, or with `out` NumPy's function of its name."""
    of_objects = memories and is_of_objects(f.__self__)
    if of_objects and (result := by_ufuncs(f.__name__, (f.__self__, *args), kwargs)) is not NotImplemented:
        return result
    known = is_subclass(f.__self__) and defines_ufuncs(f.__self__)
    if not known and f.__name__ in WITH_OUT and gives_out(function := getattr(np, f.__name__), args, kwargs):
        return with_out(function, as_array(f.__self__), *args, **kwargs)
    return array_method(f, *args, **kwargs)


def array_method(f: Object, *args: Object, **kwargs: Object) -> Object:
    """Call a method that is bound to a plain array with the current values of the array and the arguments."""
    array = f.__self__
    name = f.__name__
    operation = OPERATIONS.get((name, None if name in OF_ANY_COUNT else len(args)))
    if operation is not None:
        return operation(array, *args, **kwargs)
    if name == "astype" and array.dtype.kind == "O":
        return _cast_objects(f, array, *args, **kwargs)
    args, memory = tuple(map(coerced, args)), None
    if memories:
        memory = memory_of(array)
        args = tuple(map(read_arrays, args))
        kwargs = {key: read_arrays(value) for key, value in kwargs.items()}
    # The argument of `__deepcopy__` is the table of objects copied before, and no operand.
    traced = name != "__deepcopy__" and (holds_traced if memories else traced_inside)((args, kwargs))
    if name in OF_ITSELF or memory is None and not traced:
        if name in WRITING:
            preserve(array)
        return f(*args, **kwargs)
    if name in WRITING:
        return _writing(f, array, args, kwargs)
    shown = None if memory is None else _shown(f, array, args, kwargs)
    return _by_value(name, shown, memory, array, args, kwargs)


def _resize(array: Object, *args: Object, **kwargs: Object) -> None:
    """Resize an array in place, if it holds no traced values and NumPy finds nothing else that refers to it."""
    if memories and memory_of(array) is not None:
        raise Detached(RESIZED)
    preserve(array)
    try:
        np.ndarray.resize(array, *args, **kwargs)
    except ValueError as error:
        raise (Detached(RESIZED) if "references" in str(error) else error) from None


def _shown(f: Function, array: Object, args: Object, kwargs: Object) -> Object:
    """Return NumPy's result for the array's own memory if it may be a view, or an array without axes, else None."""
    asks = f.__name__ in VIEWING or not array.ndim and f.__name__ in MOVING
    return f(*args, **kwargs) if asks else None


def _cast_objects(f: Function, array: Object, dtype: Object, *args: Object, **kwargs: Object) -> Object:
    """Return `array.astype(dtype)` of an array of objects, some of which may be traced numbers."""
    numbers = array if to_dtype(dtype).hasobject else numbers_of_objects(array, vars(SOURCES.operations)["call"](float))
    return f(dtype, *args, **kwargs) if numbers is array else stack_nested(numbers).astype(dtype, *args, **kwargs)


def _set_item(array: Object, key: Object, value: Object) -> None:
    vars(SOURCES.operations)["write_item"](value, array, key)


def _set_field(array: Object, value: Object, dtype: Object, offset: int = 0) -> None:
    _set_item(np.ndarray.getfield(array, dtype, offset), ..., value)


def _augmented(name: str) -> Function:
    """Return the method for an augmented assignment. It works on a plain view, since the array's class may call it."""

    def assign(array: Object, other: Object) -> Object:
        vars(SOURCES.operations)[name](np.ndarray.view(array, np.ndarray), other)
        return array

    return assign


# The operations for operators that are called as methods, by the method's name and number of arguments, or any number.
OF_CLASSES = ("__array_ufunc__", "__array_function__")
OF_ANY_COUNT = (*OF_CLASSES, "resize", "setfield")
_OF_ANY_COUNT: dict[tuple[str, int | None], Function] = {
    **{(name, None): functools.partial(of_base_class, name) for name in OF_CLASSES}, ("resize", None): _resize,
    ("setfield", None): _set_field,
}  # fmt: skip
OPERATIONS = _OF_ANY_COUNT | {("__setitem__", 2): _set_item} | {
    (f"__i{name}__", 1): _augmented(f"i{name}") for name in BINARY
}  # fmt: skip


# Methods of numbers that are no operators, and the functions that call them.
AS_TEXT = {"repr": repr, "str": repr, "format": format}


def of_number(f: Object) -> Object:
    """Return the target of a method of Python's numbers, as `float.__mul__`: for traced values it is the operator."""
    owner, name = getattr(f, "__self__", None), f.__name__.strip("_")
    reflected = not hasattr(operator, name) and hasattr(operator, name[1:])
    operate = getattr(operator, name[1:] if reflected else name, None)

    def called(*args: Object) -> Object:
        of = [read_number(a) for a in (args if owner is None else (owner, *args))]
        if name in AS_TEXT and of and isinstance(of[0], Tracer):
            return vars(SOURCES.operations)["call"](AS_TEXT[name])(*of)
        if operate is None or not traced_inside([*map(read_number, args), read_number(owner)]):
            return f(*args)
        operands = [_as_number(a) for a in (args if owner is None else (owner, *args))]
        return operate(*reversed(operands)) if reflected else operate(*operands)

    return called


def _as_number(value: Object) -> Object:
    """Return a number of a class of the program, which may define the operator by this very method, as Python's."""
    value = read_number(value)
    kinds = [kind for kind in PYTHON_NUMBERS if not isinstance(value, Tracer) and isinstance(value, kind)]
    return value if not kinds or isinstance(value, np.generic) else max(kinds, key=lambda k: len(k.__mro__))(value)


def of_array(f: Object, array: Object, *args: Object, **kwargs: Object) -> Object:
    """Perform `np.ndarray.method(array, ...)`, which calls NumPy's method even if the array's class overrides it."""
    if isinstance(array, Tracer):
        return getattr(array, f.__name__)(*args, **kwargs)
    return array_method(f.__get__(array), *args, **kwargs)


def in_memory(new: Function) -> Object:
    """Return NumPy's constructor of arrays; a traced argument is passed as a plain array that shares its memory."""

    def lent(value: Object) -> Object:
        array = real(value) if isinstance(value, Tracer) and value.ndim else None
        return value if array is None else array

    return lambda *args, **kwargs: new(*map(lent, args), **{name: lent(value) for name, value in kwargs.items()})


def _writing(f: Function, array: Object, args: Object, kwargs: Object) -> Object:
    if array.dtype.kind in "fc":
        return getattr(handle(array), f.__name__)(*args, **kwargs)
    return write_plainly(getattr(np.ndarray, f.__name__), array, *args, **kwargs)


def _by_value(name: str, shown: Object, memory: Object, array: Object, args: Object, kwargs: Object) -> Object:
    """Apply a method of an array to its current value.

    `shown` is NumPy's result for the array's own memory, if the method may return a view; the result has its layout.
    """
    if shown is not None and np.may_share_memory(shown, array):
        return shown
    if type(shown) is np.ndarray:
        return laid_as(shown, getattr(memory.value(array), name)(*args, **kwargs))
    if array.dtype.names is not None and name in MOVING:
        result = getattr(np.ndarray, name)(array, *args, **kwargs)
        return by_fields(lambda field: getattr(field, name)(*args, **kwargs), array, result)
    if memory is None:
        rule = getattr(operator, name) if name.startswith("__") else vars(SOURCES.operations)["call"](getattr(np, name))
    else:
        rule = functools.partial(_method, name)
    if is_subclass(array) or has_subclass(args):
        result = by_ufuncs(name, args := (array, *args), kwargs)
        return result if result is not NotImplemented else perform(getattr(np.ndarray, name), rule, args, kwargs)
    return rule(read(array), *args, **kwargs)


def _method(name: str, array: Object, *args: Object, **kwargs: Object) -> Object:
    return getattr(array, name)(*args, **kwargs)
