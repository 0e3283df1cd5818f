"""Objects of the program's own classes with NumPy's protocols: `__array_ufunc__`, `__array_function__`, `__array__`.

NumPy would call these methods itself, and they would run as they are written, without rules. So a call of a NumPy
function with such an object calls the rewritten method, in NumPy's order; arrays of a subclass are such objects if the
class defines the method. A method that it calls by `super()` is NumPy's own (`of_base_class`).
"""

import functools
from types import FunctionType

import numpy as np
from numpy._core import _methods

from effgrad.arrays.labelled import labelled, of_pandas
from effgrad.arrays.operator_ufuncs import BY_OPERATOR, COMPARISONS
from effgrad.arrays.signatures import UFUNC_METHODS
from effgrad.arrays.value import LISTS, Tracer
from effgrad.nested import leaves, map_leaves
from effgrad.program.classes import is_builtin
from effgrad.program.coercion import method_of_protocol
from effgrad.program.object_arrays import (
    array_of_objects,
    array_of_operand,
    has_objects,
    holds_objects,
    is_noticed,
    is_of_objects,
    noticed,
)
from effgrad.program.rewritten import SOURCES
from effgrad.program.subclasses import has_subclass, perform
from effgrad.vocabulary import Function, Object, Params

_LEFT_OUT = np._NoValue


def by_protocol(f: Function, args: Object, kwargs: Object) -> Object:
    """Return the result of the first argument's protocol that computes one, or `NotImplemented` without such."""
    ufunc = f if isinstance(f, np.ufunc) else getattr(f, "__self__", None)
    operands = _operands(ufunc, args, kwargs)
    traced = any(isinstance(arg, Tracer) for arg in args)  # which computes with a table itself (`labelled.on_table`)
    given = [value for value in operands if not is_builtin(value) and not (traced and of_pandas(value))]
    if isinstance(ufunc, np.ufunc):
        name = "__call__" if f is ufunc else f.__name__
        args, kwargs = _normalised(ufunc, name, args, kwargs)
    for value in _in_order(given):
        if isinstance(ufunc, np.ufunc):
            method = method_of_protocol(value, "__array_ufunc__")
            result = method and method(value, ufunc, name, *args, **kwargs)
        else:
            method = method_of_protocol(value, "__array_function__") if type(f) is type(np.sum) else None
            result = method and method(value, f, _types(operands), args, kwargs)
        if method is not None and result is not NotImplemented:
            return result
    return NotImplemented


def _operands(ufunc: Object, args: Object, kwargs: Params) -> list[Object]:
    """Return what NumPy may ask for a protocol: a ufunc does not ask the items of lists that it is given."""
    return [*(args if isinstance(ufunc, np.ufunc) else leaves(args)), *leaves([*kwargs.values()])]


def _normalised(ufunc: np.ufunc, name: str, args: tuple[Object, ...], kwargs: Params) -> tuple[Object, Params]:
    """Return the arguments as NumPy gives them to `__array_ufunc__`: options by their names, and `out` as a tuple."""
    count = ufunc.nin if name == "__call__" else 2 if name == "reduceat" else 1
    if len(args) > count and name == "__call__":
        args, kwargs = args[:count], {"out": args[count:]}
    elif len(args) > count and name in UFUNC_METHODS:
        named = zip(UFUNC_METHODS[name][count:], args[count:], strict=False)
        args, kwargs = args[:count], {**dict(named), **kwargs}
    kwargs = {key: value for key, value in kwargs.items() if value is not _LEFT_OUT}
    if "out" in kwargs:
        out = kwargs["out"] if type(kwargs["out"]) is tuple else (kwargs["out"],)
        del kwargs["out"]
        if any(one is not None and one is not ... for one in out):
            kwargs["out"] = out
    return args, kwargs


def _types(operands: list[Object]) -> tuple[type, ...]:
    """The classes of the operands that have `__array_function__`, which NumPy gives to it, its own class last."""
    kinds = dict.fromkeys(one.__class__ if is_builtin(one) else type(one) for one in operands)
    asked = [kind for kind in kinds if hasattr(kind, "__array_function__")]
    return tuple(sorted(asked, key=lambda kind: kind is np.ndarray))


def _in_order(values: list[Object]) -> list[Object]:
    """Return the values in the order in which NumPy asks them: subclasses first, else from the left."""
    ordered: list[Object] = []
    for value in values:
        place = next((i for i, other in enumerate(ordered) if isinstance(value, type(other))), len(ordered))
        if type(value) not in map(type, ordered):
            ordered.insert(place, value)
    return ordered


def defines_ufuncs(value: Object) -> bool:
    """Whether an array leaves an operator to the class of `value`, by its `__array_ufunc__`."""
    return not is_builtin(value) and not labelled(value) and method_of_protocol(value, "__array_ufunc__") is not None


def assigns_by_ufunc(array: Object, operand: Object) -> bool:
    """Whether the class of an operand decides what an augmented assignment to an array of NumPy's class gives."""
    if not isinstance(array, np.ndarray) or not is_builtin(array) or is_builtin(operand) or not np.ndim(array):
        return False
    return defines_ufuncs(operand) or of_pandas(operand)


# The methods of arrays whose functions in NumPy's Python source have other names.
_IN_PYTHON = {"max": "_amax", "min": "_amin"}
_OPERATORS = frozenset((*BY_OPERATOR, "divmod"))


def ufunc_of(operator: str) -> Object:
    """Return the ufunc of an operator, by its name as in the module `operator`, to be called."""
    name = operator.strip("_")
    return vars(SOURCES.operations)["call"](BY_OPERATOR.get(name) or getattr(np, name))


# The operators that ufuncs apply to objects, by the ufunc's name.
_APPLIED = {ufunc.__name__: f"{name}_" if name in ("and", "or") else name for name, ufunc in BY_OPERATOR.items()}
_COMPARING = frozenset(COMPARISONS.values())


def takes_objects(f: Function, args: tuple[Object, ...]) -> bool:
    """Whether NumPy applies methods of objects of the program's classes, given in lists or to a ufunc by themselves."""
    ufunc = f if isinstance(f, np.ufunc) else getattr(f, "__self__", None)
    if not isinstance(ufunc, np.ufunc):
        return type(f) is type(np.sum) and type(args[0] if args else None) in LISTS and has_objects(args[0])
    count = ufunc.nin if f is ufunc else 1 + (f.__name__ == "outer")
    return any(has_objects(one) and not hasattr(type(one), "__array_ufunc__") for one in args[:count])


def by_each_item(f: Function, args: Object, kwargs: Params) -> Object:
    """Return a function of objects, or arrays of them, by rewritten operators and methods as NumPy applies them.

    Return `NotImplemented` for a function whose compiled code is left to call the methods as they are written.
    """
    if not (takes_objects(f, args) or any(map(holds_objects, leaves([args, kwargs])))):
        return _of_traced_numbers(f, args, kwargs)
    ufunc = f if isinstance(f, np.ufunc) else getattr(f, "__self__", None)
    if not isinstance(ufunc, np.ufunc):
        source = source_of(f) if type(f) is type(np.sum) else None
        return NotImplemented if source is None else source(*args, **kwargs)
    args, kwargs = _normalised(ufunc, "__call__" if f is ufunc else f.__name__, args, kwargs)
    options = {name: value for name, value in kwargs.items() if value is not None and (name, value) != ("where", True)}
    unknown = {*options} - {"axis", "keepdims", "initial", "array", "indices"}
    args = tuple(map(array_of_operand, args))
    apply = None if ufunc.nout != 1 or ufunc.signature or unknown else _applied(ufunc, args)
    return NotImplemented if apply is None else _by_items(apply, f, ufunc, args, options)


def _by_items(apply: Function, f: Function, ufunc: np.ufunc, args: Object, options: Params) -> Object:
    """Return a ufunc of objects, or a method of it, that applies `apply` to each item."""
    identity = {} if ufunc.identity is None else {"identity": ufunc.identity}
    made = np.frompyfunc(apply, ufunc.nin, 1, **identity)
    result = (made if f is ufunc else getattr(made, f.__name__))(*args, **options)
    return np.asarray(result, bool)[()] if ufunc in _COMPARING else noticed(result)


def _of_traced_numbers(f: Function, args: Object, kwargs: Params) -> Object:
    """Return a function of traced numbers in arrays of objects, to which NumPy itself applies operators."""
    return noticed(f(*map_leaves(array_of_objects, args), **map_leaves(array_of_objects, kwargs)))


def _applied(ufunc: np.ufunc, args: tuple[Object, ...]) -> Object:
    """Return what a ufunc applies to objects: an operator, or else their method of its name."""
    operations, name = vars(SOURCES.operations), ufunc.__name__
    if name in _APPLIED:
        operate = operations.get(_APPLIED[name]) or operations["call"](abs)
        return (lambda *items: bool(operations["truth"](operate(*items)))) if ufunc in _COMPARING else operate
    if not all(hasattr(type(item), name) for array in args if holds_objects(array) for item in array.flat):
        return None
    return lambda item, *others: operations["call"](operations["attribute"](item, name))(*others)


def by_ufuncs(method: str, args: tuple[Object, ...], kwargs: Params) -> Object:
    """Return the result of `np.ndarray.method(*args)`, if it asks the `__array_ufunc__` of an argument's class.

    Return `NotImplemented` if it does not. Methods such as `mean` are in NumPy's Python source, made of ufuncs.
    """
    if not any(defines_ufuncs(one) or is_noticed() and is_of_objects(one) for one in args):
        return NotImplemented
    call = vars(SOURCES.operations)["call_inside"]
    if method == "clip":
        return _clip(*args, **kwargs)
    if (source := getattr(_methods, _IN_PYTHON.get(method, f"_{method}"), None)) is not None:
        return call(source)(*args, **kwargs)
    if method in ("cumsum", "cumprod"):
        return call((np.add if method == "cumsum" else np.multiply).accumulate)(*_flat_first(args, kwargs), **kwargs)
    name = method.strip("_") if method[:2] == "__" else ""
    if name in _OPERATORS:
        return ufunc_of(name)(*args)
    return ufunc_of(name[1:])(*args[::-1]) if name[1:] in _OPERATORS and name[:1] == "r" else NotImplemented


def _clip(array: Object, min: Object = None, max: Object = None, out: Object = None, **options: Object) -> Object:
    """Return `np.ndarray.clip`, by ufuncs that have rules."""
    bounds = [(name, bound) for name, bound in (("maximum", min), ("minimum", max)) if bound is not None]
    for name, bound in bounds[:-1]:
        array = ufunc_of(name)(array, bound)
    (name, *last) = bounds[-1] if bounds else ("positive",)
    return ufunc_of(name)(array, *last, out=out, **options)


def _flat_first(args: tuple[Object, ...], kwargs: Params) -> tuple[Object, ...]:
    """Return the arguments with the array made flat, if no axis is given."""
    axis = args[1] if len(args) > 1 else kwargs.pop("axis", None)
    return (args[0].ravel(), 0, *args[2:]) if axis is None else (args[0], axis, *args[2:])


# Functions of NumPy's namespace whose Python source calls compiled functions and no methods of its arguments.
CALLING_COMPILED = frozenset((np.einsum, np.interp))


def source_of(f: Object) -> Object:
    """Return the Python source of a function of NumPy, rewritten, or None if it is not made of methods of arrays."""
    source = getattr(f, "_implementation", None)
    found = type(source) is FunctionType and f.__module__ == "numpy" and f not in CALLING_COMPILED
    return vars(SOURCES.operations)["call_inside"](source) if found else None


def of_base_class(name: str, array: Object, *args: Object, **kwargs: Object) -> Object:
    """Perform `np.ndarray.__array_ufunc__` or `__array_function__` for a subclass whose own method calls it."""
    call = vars(SOURCES.operations)["call"]
    if name == "__array_ufunc__":
        ufunc, method, *inputs = args
        if any(map(defines_ufuncs, (*inputs, *kwargs.get("out", ())))):
            return NotImplemented
        return call(ufunc if method == "__call__" else getattr(ufunc, method))(*inputs, **kwargs)
    f, types, inputs, options = args
    if not all(issubclass(kind, np.ndarray) for kind in types):
        return NotImplemented
    if not has_subclass([*inputs, *options.values()]):
        return call(f)(*inputs, **options)
    if (source := source_of(f)) is not None:
        return source(*inputs, **options)

    @functools.wraps(f)
    def plainly(*args: Object, **kwargs: Object) -> Object:
        return np.ndarray.__array_function__(array, f, types, args, kwargs)

    return perform(plainly, call(f), inputs, options)
