"""The partials of powers, quotients and reciprocals."""

from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, decided, plain
from effgrad.primitives.kinks import differentiated, is_outside, nan_outside, nested, reciprocal_root
from effgrad.primitives.partials import Factored
from effgrad.vocabulary import Value

_REALS = frozenset((int, float))


def one_over(b: Value) -> Value:
    try:
        return 1 / b
    except ZeroDivisionError:  # `b` is a Python number; NumPy divides by zero to infinity
        return np.divide(1.0, b)


def _minus_over(y: Value, b: Value) -> Value:
    # A further derivative of `y / b` divides by b twice more, and b**3 leaves the range of floats long before b**2.
    return -(y * one_over(b)) if differentiated(y) or differentiated(b) else -y / b


def base_partial(y: Value, a: Value, n: Value) -> Value:
    if type(n) in _REALS and n == 2:
        return n * a
    # With exponent 0 the function is constant in a, also at a = 0, where a**(n-1) is infinite. If the exponent is
    # differentiated too, the partial varies with it, and only a = 0 is excepted.
    flat = (plain(n) == 0) & (plain(a) == 0) if differentiated(n) else plain(n) == 0
    if decided(flat):
        try:
            if plain(n) == 0.5 and not differentiated(n) and nested(y, plain(y) == 0):
                return 0.5 * reciprocal_root(y)
            if 0 < plain(n).real < 1:
                return in_domain(n * a ** (n - 1))
            return 0.0 if flat else n * a ** (n - 1)
        except (ZeroDivisionError, OverflowError):  # raised by Python's floats, where NumPy gives infinity
            return n * np.reciprocal(a ** (1 - n))
    return n * a ** np.where(flat, 1.0, n - 1)


def exponent_partial(y: Value, a: Value, n: Value) -> Value:
    # 0**n is 0 for every n > 0, so it is flat in n. A negative base has no derivative in n, which gives NaN for this
    # argument alone.
    zero = plain(a) == 0
    safe = (1.0 if zero else a) if decided(zero) else np.where(zero, 1.0, a)
    with np.errstate(invalid="ignore"):
        return y * np.log(safe)


def in_domain(reciprocal: Value) -> Value:
    """Return a partial that is positive in the domain of its function, and NaN where it is not.

    It is 0 where the argument is infinite, perhaps by an overflow, and negative where the function has no value.
    """
    value = plain(reciprocal)
    outside = value == 0 if np.iscomplexobj(value) else value <= 0
    if not decided(outside) and isinstance(outside, Tracer):
        return reciprocal * np.where(is_outside(value), np.nan, 1.0)  # its derivatives are NaN there too
    if not (outside if decided(outside) else np.any(outside)):
        return reciprocal
    return nan_outside(reciprocal)


def _pulled_through_base(g: Value, y: Value, a: Value, n: Value) -> Value:
    falls = _falls(n)
    if falls is None:
        return g * np.where(_negative(n), y, 1.0) * _rest(y, a, n)
    if falls:
        return g * y * n / a if type(a) is not float else _over(g * y * n, a)
    return g * base_partial(y, a, n)


def _pushed_through_base(t: Value, y: Value, a: Value, n: Value) -> Value:
    falls = _falls(n)
    if falls is None:
        return t * _rest(y, a, n) * np.where(_negative(n), y, 1.0)
    return _over(t, a) * n * y if falls else t * base_partial(y, a, n)


def _negative(n: Value) -> Value:
    return np.real(plain(n)) < 0


def _falls(n: Value) -> bool | None:
    """Return whether the exponents are negative, or None where some are, or where that is not known."""
    negative = n < 0 if type(n) in _REALS else _negative(n)
    if decided(negative):
        return bool(negative)
    return False if not isinstance(negative, Tracer) and not np.any(negative) else None


def _rest(y: Value, a: Value, n: Value) -> Value:
    """Return the partial in the base, divided by the power where the exponent is negative."""
    negative = _negative(n)
    others = base_partial(y, a, np.where(negative, 1.0, n))
    return np.where(negative, n / np.where(negative, a, 1.0), others)


def _over(v: Value, b: Value) -> Value:
    try:
        return v / b
    except ZeroDivisionError:
        return np.divide(v, b)


def _pushed_through_denominator(t: Value, y: Value, b: Value) -> Value:
    change = _over(t, b)
    # Beside small numbers the relative change may overflow where the derivative does not. No element of an array is
    # infinite if the sum of their squares is finite, which is found in a quarter of the time.
    if type(change) is np.ndarray and np.vdot(change, change) < np.inf:
        return change * -y
    lost = abs(plain(change)) == np.inf
    if decided(lost):
        return _over(t * -y, b) if lost else change * -y
    if not isinstance(lost, Tracer) and not lost.any():
        return change * -y
    return np.where(lost, _over(t * -y, b), change * -y)


BASE = Factored(base_partial, _pulled_through_base, _pushed_through_base)
DENOMINATOR = Factored(
    lambda y, a, b: _minus_over(y, b),
    lambda g, y, a, b: g * -y / b if type(b) is not float else _over(g * -y, b),
    lambda t, y, a, b: _pushed_through_denominator(t, y, b),
)
INVERSE = Factored(lambda y, x: -y * y, lambda g, y, x: g * -y * y, lambda t, y, x: t * y * -y)
