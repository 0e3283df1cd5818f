"""A value from one computation with the derivative of another.

Many functions of NumPy and SciPy have a short definition whose derivative is theirs, but whose rounding errors are not.
`as_computed` runs the function itself for the value, so that value, dtype, shape and errors are the library's to the
bit, and the definition for the derivative. A staged program, and an array of another library, have the definition only;
in single precision, where definitions round elsewhere than the library, the results have the library's dtypes.
"""

import functools
import inspect
from collections.abc import Callable

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Smooth, Tracer, depends, example, plain, plain_tree
from effgrad.effects import handled, mask
from effgrad.errors import EffgradError, NoRule
from effgrad.nested import copied, leaves, mapped
from effgrad.primitives.primitive import elementwise
from effgrad.vocabulary import Function, Option, Tree, Value

given = elementwise(lambda derived, value: value, 1, None, name="given", series=lambda derived, value: derived)


def as_computed(original: Function, definition: Function) -> Function:
    """A rule that has the value of `original` and the derivative of `definition`."""

    @functools.wraps(definition)
    def rule(*args: Value, **kwargs: Option) -> Value:
        if any(isinstance(plain(leaf), Tracer) for leaf in leaves((args, kwargs))):
            derived = _defined(original, definition, args, kwargs)
            return with_dtypes(original, args, kwargs, derived) if _in_single(args, kwargs) else derived
        values, options = plain_tree(args), plain_tree(kwargs)
        if _overwrites(original, args, kwargs):
            values, options = copied(values), copied(options)
        value = outside(functools.partial(original, *values, **options))
        name = getattr(original, "__name__", "a function")
        return with_value(_defined(original, definition, args, kwargs), value, name)

    return rule


def _defined(original: Callable[..., object], definition: Callable[..., object], args: Tree, kwargs: Tree) -> Tree:
    """The results of a definition; one that raises an error where the function does not has no rule for the call."""
    try:
        return definition(*args, **kwargs)
    except EffgradError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        inspect.signature(definition).bind(*args, **kwargs)  # an error about the arguments is the caller's
        values, options = copied(mapped(example, args)), copied(mapped(example, kwargs))
        outside(functools.partial(original, *values, **options))
        name = getattr(original, "__name__", "a function")
        raise NoRule(f"{name} called like this has no derivative rule: its definition raises {error!r}") from error


def all_as_computed(definitions: dict[Value, Value]) -> dict[Value, Value]:
    """Rules of functions by their definitions."""
    return {original: as_computed(original, definition) for original, definition in definitions.items()}


def outside(program: Callable[[], Value]) -> Value:
    """Run a program of plain values as it runs where there is no derivative."""
    return mask(Smooth, outside, program) if handled(Smooth) else program()


def _in_single(args: object, kwargs: object) -> bool:
    """Whether arguments of a staged or batched call are in single precision."""
    values = [plain(leaf) for leaf in leaves((args, kwargs))]
    single = any(getattr(value, "dtype", None) in _SINGLE for value in values)
    return single and all(depends(value) for value in values if isinstance(value, Tracer))  # and of no other library


_SINGLE = frozenset(map(np.dtype, "efF"))


def with_dtypes(original: Callable[..., Tree], args: Tree, kwargs: Tree, derived: Tree) -> Tree:
    """The results of a definition in the dtypes that the function gives for the example of a staged program."""
    values, options = mapped(example, args), mapped(example, kwargs)
    value = outside(functools.partial(original, *copied(values), **copied(options)))
    return _with_dtypes(derived, value)


def _with_dtypes(derived: Tree, value: Tree) -> Tree:
    if isinstance(derived, tuple | list) and isinstance(value, tuple | list) and len(derived) == len(value):
        parts = list(map(_with_dtypes, derived, value))
        return type(derived)(*parts) if hasattr(derived, "_fields") else type(derived)(parts)
    if isinstance(derived, Tracer) or isinstance(derived, np.ndarray):
        dtype = np.result_type(value)
        return derived if derived.dtype == dtype or dtype.kind not in "fc" else derived.astype(dtype)
    return derived


def with_value(derived: Value, value: Value, name: str = "a function") -> Value:
    """The results of a definition with the values that the function itself has computed.

    What a staged program computes, or a batch, stays: the function has computed it for an example.
    """
    if isinstance(plain(derived), Tracer):
        return derived
    if isinstance(derived, Tracer):
        if shape_of(derived) != np.shape(value):
            raise NoRule(f"{name} called like this has no derivative rule: its definition has another shape")
        if _is_same_memory(plain(derived), value):
            return derived  # the argument, or a view of it
        if not agree(plain(derived), value):
            raise NoRule(f"{name} called like this has no derivative rule: its definition has another value")
        return given(derived, value)
    if isinstance(derived, tuple | list) and isinstance(value, tuple | list) and len(derived) == len(value):
        parts = [with_value(d, v, name) for d, v in zip(derived, value, strict=True)]
        if not hasattr(value, "_fields"):
            return type(value)(parts)
        # A result with more than its fields is not made of them alone.
        return type(derived)(*parts) if hasattr(value, "_extra_fields") else type(value)(*parts)
    if isinstance(derived, tuple) and len(derived) == 1:
        return with_value(derived[0], value, name)
    if any(isinstance(leaf, Tracer) for leaf in leaves(derived)):
        raise NoRule(f"{name} called like this has no derivative rule: its definition has results of another form")
    return value


def _is_same_memory(derived: Value, value: Value) -> bool:
    arrays = isinstance(derived, np.ndarray) and isinstance(value, np.ndarray) and np.may_share_memory(derived, value)
    return bool(arrays and derived.strides == value.strides and derived.ctypes.data == value.ctypes.data)


def agree(derived: Value, value: Value) -> bool:
    """Whether a definition has the value of the function, but for what rounding may do to either."""
    derived, value = np.asarray(derived), np.asarray(value)
    if value.dtype.kind not in "biufc":
        return False
    both = np.isfinite(derived) & np.isfinite(value)
    derived, value = derived[both], value[both]
    scale = np.max(np.abs(value), initial=0.0)
    eps = np.finfo(value.dtype if value.dtype.kind in "fc" else float).eps
    return bool(np.all(np.abs(derived - value) <= eps**0.25 * scale + 1e3 * eps))


def _overwrites(function: Function, args: Tree, kwargs: Tree) -> bool:
    """Whether a function is told to write to its arguments."""
    places = _overwriting(function).items()
    told = [args[place] if place < len(args) else kwargs.get(name, False) for name, place in places]
    return any(isinstance(option, np.ndarray) or option for option in told)


@functools.cache
def _overwriting(function: Function) -> dict[str, int]:
    """The options of a function to write to its arguments, and their places."""
    try:
        names = inspect.signature(function).parameters
    except ValueError:
        return {}
    return {name: place for place, name in enumerate(names) if name.startswith("overwrite")}
