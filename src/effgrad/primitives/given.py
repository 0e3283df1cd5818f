"""A value from one computation with the derivative of another.

Many functions of NumPy and SciPy have a short definition that has the same derivative but other rounding errors.
`as_computed` runs the library's function for the value, so that value, dtype, shape and errors are the library's to the
bit. It runs the definition for the derivative. A staged or batched program, and an array of another library, use the
definition only. There, its value at the example is compared with the library's, and its results are cast to the
library's dtypes: definitions round at other points than the library, and some have real results where those of the
library are complex.
"""

import functools
import inspect
from collections.abc import Callable

from effgrad.arrays.layout import PYTHON_NUMBERS, address_of, copy_arrays, shape_of
from effgrad.arrays.memory_order import laid_as
from effgrad.arrays.reach import np
from effgrad.arrays.value import Smooth, Tracer, depends, example, operations, plain, plain_tree
from effgrad.arrays.written import read
from effgrad.effects import handled, mask
from effgrad.errors import EffgradError, NoRule
from effgrad.nested import leaves, map_leaves
from effgrad.primitives.primitive import elementwise
from effgrad.vocabulary import Function, Option, Tree, Value

value_with_derivative = elementwise(
    lambda derived, value: value, 1, None, name="given", series=lambda derived, value: derived,
    analytic=lambda derived, value: np.allclose(derived, value, rtol=1e-9, atol=0.0),
)


def as_computed(original: Function, definition: Function) -> Function:
    """Return a rule that has the value of `original` and the derivative of `definition`."""

    name = getattr(original, "__name__", "a function")

    @functools.wraps(definition)
    def rule(*args: Value, **kwargs: Option) -> Value:
        if any(isinstance(plain(leaf), Tracer) for leaf in leaves((args, kwargs))):
            derived = _defined(original, definition, args, kwargs, name)
            return with_dtypes(original, args, kwargs, derived) if _has_example(args, kwargs) else derived
        values, options = plain_tree(args), plain_tree(kwargs)
        if _overwrites(original, args, kwargs):
            values, options = copy_arrays(values), copy_arrays(options)
        value = run_outside(functools.partial(original, *values, **options))
        return with_value(_defined(original, definition, args, kwargs, name), value, name)

    return rule


def _defined(
    original: Callable[..., object], definition: Callable[..., object], args: Tree, kwargs: Tree, name: str
) -> Tree:
    """Return the results of a definition; if it raises an error and the function does not, raise `NoRule`."""
    try:
        return read(definition(*args, **kwargs))  # a library's Python may write traced values to plain arrays
    except EffgradError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        inspect.signature(definition).bind(*args, **kwargs)  # raises if the caller gave wrong arguments
        values, options = copy_arrays(map_leaves(example, args)), copy_arrays(map_leaves(example, kwargs))
        run_outside(functools.partial(original, *values, **options))
        raise NoRule(f"{name} called like this has no derivative rule: its definition raises {error!r}") from error


def all_as_computed(definitions: dict[Value, Value]) -> dict[Value, Value]:
    """Return the rule `as_computed` for each function in a table of definitions."""
    return {original: as_computed(original, definition) for original, definition in definitions.items()}


def run_outside(program: Callable[[], Value]) -> Value:
    """Run a program of plain values as if outside all derivatives, by masking every handler of `Smooth`."""
    return mask(Smooth, run_outside, program) if handled(Smooth) else program()


def _has_example(args: object, kwargs: object) -> bool:
    """Return whether a staged or batched call has an example, by which values and dtypes are compared."""
    values = [plain(leaf) for leaf in leaves((args, kwargs))]
    return all(depends(value) for value in values if isinstance(value, Tracer))  # excludes other libraries


def with_dtypes(original: Callable[..., Tree], args: Tree, kwargs: Tree, derived: Tree) -> Tree:
    """Return the results of a definition in the dtypes and memory order that the function gives for the example."""
    values, options = map_leaves(example, args), map_leaves(example, kwargs)
    value = run_outside(functools.partial(original, *copy_arrays(values), **copy_arrays(options)))
    return _with_dtypes(derived, value, getattr(original, "__name__", "a function"))


def _with_dtypes(derived: Tree, value: Tree, name: str) -> Tree:
    if isinstance(derived, tuple | list) and isinstance(value, tuple | list) and len(derived) == len(value):
        return _like(derived, [_with_dtypes(d, v, name) for d, v in zip(derived, value, strict=True)], derived)
    if isinstance(derived, Tracer) or isinstance(derived, np.ndarray):
        if depends(derived) and shape_of(derived) != np.shape(value):
            raise NoRule(f"{name} called like this has no derivative rule: its definition has another shape")
        if depends(derived) and not (agree(found := example(derived), value) and _is_undefined_like(found, value)):
            raise NoRule(f"{name} called like this has no derivative rule: its definition has another value")
        dtype = np.result_type(value)
        derived = derived if derived.dtype == dtype or dtype.kind not in "fc" else derived.astype(dtype)
        return operations.as_pythons(derived) if type(value) in PYTHON_NUMBERS else laid_as(derived, value)
    return derived


def with_value(derived: Value, value: Value, name: str = "a function") -> Value:
    """Return the results of a definition with the values that the function itself has computed.

    Results in a staged program or a batch are returned unchanged, since the function has computed only an example.
    """
    if isinstance(plain(derived), Tracer):
        return _with_dtypes(derived, value, name) if depends(plain(derived)) else derived
    if isinstance(derived, Tracer):
        if shape_of(derived) != np.shape(value):
            raise NoRule(f"{name} called like this has no derivative rule: its definition has another shape")
        if _is_same_memory(plain(derived), value):
            return derived  # the argument, or a view of it
        if not agree(plain(derived), value):
            raise NoRule(f"{name} called like this has no derivative rule: its definition has another value")
        return value_with_derivative(derived, value)
    if isinstance(derived, tuple | list) and isinstance(value, tuple | list) and len(derived) == len(value):
        parts = [with_value(d, v, name) for d, v in zip(derived, value, strict=True)]
        return _like(derived, parts, value)
    if isinstance(derived, tuple) and len(derived) == 1:
        return with_value(derived[0], value, name)
    if any(isinstance(leaf, Tracer) for leaf in leaves(derived)):
        raise NoRule(f"{name} called like this has no derivative rule: its definition has results of another form")
    return value


def _like(derived: Value, parts: list[Value], value: Value) -> Value:
    """Return a list or tuple of `parts` in the class of `value`; a class may have made attributes of its items."""
    if not hasattr(value, "_fields"):
        return type(value)(parts)
    result: Value = tuple.__new__(type(value), parts)
    made = {id(item): part for item, part in zip(derived, parts, strict=True)}
    for name, item in getattr(derived, "__dict__", {}).items():
        object.__setattr__(result, name, made.get(id(item), item))
    return result


def _is_same_memory(derived: Value, value: Value) -> bool:
    arrays = isinstance(derived, np.ndarray) and isinstance(value, np.ndarray) and np.may_share_memory(derived, value)
    return bool(arrays and derived.strides == value.strides and address_of(derived) == address_of(value))


def agree(derived: Value, value: Value) -> bool:
    """Return whether the values of a definition and of the function agree up to rounding errors."""
    derived, value = np.asarray(derived), np.asarray(value)
    if value.dtype.kind not in "biufc":
        return False
    both = np.isfinite(derived) & np.isfinite(value)
    derived, value = derived[both], value[both]
    scale = np.max(np.abs(value), initial=0.0)
    eps = np.finfo(value.dtype if value.dtype.kind in "fc" else float).eps
    return bool(np.all(np.abs(derived - value) <= eps**0.25 * scale + 1e3 * eps))


def _is_undefined_like(derived: Value, value: Value) -> bool:
    """Return whether a definition is NaN where the function is. Eager programs have the function's NaN."""
    return not np.any(np.isnan(value) & np.isfinite(derived))


def _overwrites(function: Function, args: Tree, kwargs: Tree) -> bool:
    """Return whether an option of a call lets the function overwrite its arguments."""
    places = _overwriting(function).items()
    options = [args[place] if place < len(args) else kwargs.get(name, False) for name, place in places]
    return any(isinstance(option, np.ndarray) or option for option in options)


def without_overwriting(function: Function, args: Tree, kwargs: Tree) -> Tree:
    """Return the arguments and options of a call without the permission to overwrite arguments."""
    places = _overwriting(function)
    args = tuple(False if k in places.values() else arg for k, arg in enumerate(args)) if places else args
    return args, {name: value for name, value in kwargs.items() if name not in places}


@functools.cache
def _overwriting(function: Function) -> dict[str, int]:
    """Return the names of a function's `overwrite` options, and their positions."""
    try:
        names = inspect.signature(function).parameters
    except ValueError:
        return {}
    return {name: place for place, name in enumerate(names) if name.startswith("overwrite")}
