"""NumPy for effgrad's own rules: functions such as `np.array` also take traced values and lists of them.

NumPy's protocols do not consult traced values in these functions. In the user's program such calls are operations
(`effgrad.program`). A rule gets them by the import `from effgrad.arrays.reach import np`.
"""

import contextlib
import inspect
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy

from effgrad.arrays.layout import extremes, to_dtype
from effgrad.arrays.signatures import ask_again, raise_as_numpy
from effgrad.arrays.value import Tracer, depends, example, outline, plain, stack_nested, traced_inside
from effgrad.errors import EffgradError, NoRule
from effgrad.nested import map_leaves
from effgrad.vocabulary import DTypeLike, Function, Option, Params, Shape, Value

if TYPE_CHECKING:
    import numpy as np

__all__ = ["np"]


def in_order(value: Value, order: Option) -> Value:
    """Return a value in the memory order "C" or "F", copied if necessary; for other orders return it unchanged."""
    if order in (None, "K", "A"):
        return value
    numpy.empty(0).copy(order)  # raises NumPy's error for an invalid order
    return value if outline(value).flags[order.upper()] else value.copy(order.upper())


def array(
    value: Value, dtype: DTypeLike = None, *, copy: Option = True, order: Option = "K", subok: bool = False,
    ndmin: int = 0, ndmax: int = 0, like: Option = None,
) -> Value:  # fmt: skip
    """`np.array` of a traced array or of nested lists with traced numbers in them."""
    dtype = plain(dtype)
    if isinstance(value, Tracer):
        result = value.copy(order or "K") if copy in (True, numpy._CopyMode.ALWAYS) else value
    else:
        result = stack_nested(value)
    if dtype is not None and to_dtype(dtype) != result.dtype:
        _check_fits(result, value, to_dtype(dtype))
        result = result.astype(dtype)
    result = in_order(result, order)
    return result if result.ndim >= ndmin else numpy.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)


def _check_fits(integers: Value, value: Value, dtype: Value) -> None:
    """Raise NumPy's error for integers that do not fit; NumPy wraps some of its own integers without an error."""
    if dtype.kind not in "iu" or integers.dtype.kind not in "iu":
        return
    least, largest = extremes(dtype)
    if numpy.any((integers < least) | (integers > largest)):
        numpy.array(map_leaves(example, value), dtype)


def as_array(
    value: Value, dtype: DTypeLike = None, order: Option = None, *, device: Option = None, copy: Option = None,
    like: Option = None,
) -> Value:  # fmt: skip
    return array(value, dtype, copy=copy, order=order)


def _is_staged(a: Value) -> bool:
    """Whether a value is in a staged program or in a batch, where a test is an operation."""
    return isinstance(inside := plain(a), Tracer) and depends(inside)


def all_finite(a: Value, dtype: DTypeLike = None, order: Option = None) -> Value:
    """`np.asarray_chkfinite` of a traced array, with NumPy's error."""
    if _is_staged(a):
        if not numpy.all(numpy.isfinite(a)):
            numpy.asarray_chkfinite(numpy.nan)
    else:
        numpy.asarray_chkfinite(example(a))
    return as_array(a, dtype, order)


ORDERS = dict.fromkeys(("C", "C_CONTIGUOUS", "CONTIGUOUS"), "C") | dict.fromkeys(("F", "F_CONTIGUOUS", "FORTRAN"), "F")


def required(a: Value, dtype: DTypeLike = None, requirements: Value = None, *, like: Option = None) -> Value:
    """`np.require` of a traced array, which meets every requirement except a memory order."""
    wanted = [ORDERS[name.upper()] for name in requirements or () if name.upper() in ORDERS]
    return as_array(a, dtype, *wanted[:1])


def contiguous(order: str) -> Function:
    """Return the rule of `np.ascontiguousarray` ("C") or `np.asfortranarray` ("F")."""

    def rule(a: Value, dtype: DTypeLike = None, *, like: Option = None) -> Value:
        return in_order(array(a, dtype, copy=None, ndmin=1), order)

    return rule


def full(
    shape: Shape, fill_value: Value, dtype: DTypeLike = None, order: Option = "C", *, device: Option = None,
    like: Option = None,
) -> Value:  # fmt: skip
    number = as_array(fill_value, dtype if type(example(fill_value)) is int else None)
    return array(numpy.broadcast_to(number, shape), dtype, order=order)


RULES: dict[str, Value] = {
    "array": array, "asarray": as_array, "asanyarray": as_array, "asarray_chkfinite": all_finite, "require": required,
    "ascontiguousarray": contiguous("C"), "asfortranarray": contiguous("F"), "full": full,
}  # fmt: skip


def when_traced(original: Any, rule: Function) -> Function:
    """Return a function that calls a rule if an argument is traced, and else the original."""

    def dispatch(*args: Value, **kwargs: Option) -> Value:
        if traced_inside(args) or (kwargs and traced_inside(kwargs)):
            try:
                return rule(*args, **kwargs)
            except TypeError as error:
                args, kwargs = by_position(original, rule, args, kwargs, error)
            return rule(*args, **kwargs)
        return original(*args, **kwargs)

    dispatch.rule = rule  # type: ignore[attr-defined]
    return dispatch


def by_position(function: Function, rule: Function, args: Sequence[Value], kwargs: Params, error: TypeError) -> Value:
    """Return arguments at the positions of the library's signature, for a rule that has other parameter names.

    Raises `NoRule` for arguments that the rule does not take, and `error` itself if it is not about the arguments.
    """
    if isinstance(error, EffgradError):  # a refusal of what the rule was asked for
        raise error
    known = inspect.signature(rule)
    try:
        known.bind(*args, **kwargs)
    except TypeError as unexpected:
        with contextlib.suppress(TypeError, ValueError):
            bound = inspect.signature(function).bind(*args, **kwargs)
            known.bind(*bound.args, **bound.kwargs)
            return bound.args, bound.kwargs
        ask_again(function, args, kwargs)
        name = f"{function.__module__}.{function.__name__}"
        raise NoRule(f"{name} called like this has no derivative rule: {unexpected}") from None
    raise_as_numpy(error, function, args, kwargs)


if not TYPE_CHECKING:
    np = ModuleType("numpy")
    vars(np).update(vars(numpy))
    vars(np).update({name: when_traced(getattr(numpy, name), rule) for name, rule in RULES.items()})
