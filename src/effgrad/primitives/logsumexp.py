"""The logarithm of a sum of exponentials, written with maxima and sums."""

from effgrad.arrays.layout import dtype_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, depends, plain
from effgrad.primitives.given import value_with_derivative
from effgrad.vocabulary import Axis, Value


def logsumexp(a: Value, axis: Axis = None, b: Value = None, keepdims: bool = False, return_sign: bool = False) -> Value:
    """Do the same as `scipy.special.logsumexp` for traced arrays; if all elements are -inf, their derivatives are zero.

    An element whose weight `b` is 0 does not contribute, however large it is. If some elements are +inf, only these
    have a derivative.
    """
    a = np.asarray(a)
    used = True if b is None else np.broadcast_to(plain(b) != 0, np.broadcast_shapes(shape_of(b), a.shape))
    size = np.real(plain(a))
    least: dict[str, Value] = {} if np.size(size) else {"initial": -np.inf}  # the sum of no elements is 0
    top = np.max(size if b is None else np.where(used, size, -np.inf), axis=axis, keepdims=True, **least)
    total = np.sum(_weighted_exponentials(_below(a, top), b, used), axis=axis, keepdims=True)
    empty = plain(total) == 0
    magnitude = np.where(empty, 1.0, np.abs(total) if return_sign else total)
    result = np.where(empty, -np.inf, np.log(magnitude)) + np.where(plain(top) == -np.inf, 0.0, top)
    parts: tuple[Value, ...] = (result, _sign_of(total, empty)) if return_sign else (result,)
    if not keepdims:
        parts = tuple(np.reshape(part, np.shape(np.sum(plain(a) * used, axis=axis))) for part in parts)
    return parts if return_sign else parts[0]


def _sign_of(total: Value, empty: Value) -> Value:
    """Return the sign of a sum: a constant for a real sum, and the sum divided by its size for a complex one."""
    if dtype_of(total).kind != "c":
        return np.sign(plain(total))
    return np.where(empty, 0.0, np.sign(np.where(empty, 1.0, total)))


def _below(a: Value, top: Value) -> Value:
    """Return the distance of each element from the largest, which may be infinite."""
    if isinstance(plain(a), Tracer) or not np.any(np.isposinf(top)):
        return a - np.where(np.isfinite(top), top, 0.0)
    with np.errstate(invalid="ignore"):
        from_infinity = np.where(plain(a) == np.inf, 0.0, -np.inf)
        shifted = plain(a) - np.where(np.isfinite(top), top, 0.0)
        return value_with_derivative(a, np.where(np.isposinf(top), from_infinity, shifted))


def _weighted_exponentials(below: Value, b: Value, used: Value) -> Value:
    if b is None:
        return np.exp(below)
    terms = np.where(used, b * np.exp(np.where(used, below, 0.0)), 0.0)
    if not depends(b):
        return terms
    # The derivative with respect to a weight of 0 is not zero; that with respect to its element is.
    return terms + np.where(used, 0.0, b * np.exp(np.where(used, 0.0, plain(below))))
