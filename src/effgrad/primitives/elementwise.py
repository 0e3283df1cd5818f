"""Elementwise primitives, each given by its implementation and its partials, one per argument.

Where a function is not smooth, the derivative is by convention the minimum-norm element of the subdifferential (0 for
`abs` at 0, the average at ties of `maximum`), and 1 for `clip` at its bounds.
"""

import operator

import scipy.special as sp

from effgrad.arrays import counterparts, laurent
from effgrad.arrays.counterparts import any_type, floating
from effgrad.arrays.laurent import Laurent
from effgrad.arrays.layout import PYTHON_NUMBERS, dtype_of, extremes
from effgrad.arrays.reach import np
from effgrad.arrays.value import FUNCTIONS, UFUNCS, Tracer, decided, plain, to_operand
from effgrad.primitives import kinks, machine_code, powers
from effgrad.primitives.kinks import differentiated, direction, kink, nested, reciprocal_root, step
from effgrad.primitives.machine_code import intrinsic, library, scaling
from effgrad.primitives.primitive import elementwise, everywhere, not_at_zero, not_by_zero, not_if_equal
from effgrad.vocabulary import Option, Value

MOST_EXPONENTS = 50  # a power with more distinct exponents has no series


def _weight(name: str, chosen: Value, tied: Value, left: float, ahead: Value, behind: Value) -> Value:
    """Return the weight of an argument of a maximum or minimum; `left` is its limit at a tie from the left.

    The argument is chosen where `ahead` is larger than `behind`. One of these two is the argument.
    """
    if nested(ahead, tied) or nested(behind, tied):
        return kinks.step_weight(chosen * 1.0, tied, lambda: ahead - behind, 0.5)
    if decided(chosen):
        default: Value = 0.5 if tied else float(chosen)
    else:
        default = np.where(tied, 0.5, chosen * 1.0)
    return kink(name, lambda: tied, left, 1.0 - left, default)


def _extreme(name: str, left: float, own: Value, other: Value, larger: bool) -> Value:
    """Return the weight of an argument of `maximum` or `minimum`; a NaN argument gets a weight of NaN."""
    x, z = plain(own), plain(other)
    ahead, behind = (own, other) if larger else (other, own)
    weight = _weight(name, x > z if larger else x < z, x == z, left, ahead, behind)
    if type(x) is np.ndarray and (total := _sum(x, axis=None)) == total:
        return weight
    if not isinstance(x, Tracer) and np.ndim(x) == 0:
        return weight if x == x else np.nan
    return np.where(x != x, np.nan, weight)


# NumPy's function itself, without a rule.
_sum = np.add.reduce


def slope_of_absolute(x: Value) -> Value:
    value = plain(x)
    if differentiated(x) and nested(x, value == 0):
        return 2.0 * step(x, 0.5) - 1.0
    return kink("absolute", lambda: value == 0, -1.0, 1.0, np.sign(value))


def _inside(x: Value, low: Value, high: Value) -> Value:
    value, least, most = plain(x), plain(low), plain(high)
    at_low, at_high = value == least, value == most
    weight = ((value >= least) & (value <= most)) * 1.0
    if differentiated(x):
        inside = weight != 0
        for at, distance in ((at_low & inside, lambda: x - low), (at_high & inside, lambda: high - x)):
            weight = kinks.step_weight(weight, at, distance, 1.0) if nested(x, at) else weight
    default = kink("clip", lambda: at_low, 0.0, 1.0, weight)
    return kink("clip", lambda: at_high, 1.0, 0.0, default)


def _clip_series(x: Laurent, low: Laurent, high: Laurent) -> Laurent:
    return _least(_largest(x, low), high)


def _largest(a: Laurent, b: Laurent) -> Laurent:
    return laurent.choose(laurent.sign(laurent.subtract(a, b)) >= 0, a, b)


def _least(a: Laurent, b: Laurent) -> Laurent:
    return laurent.choose(laurent.sign(laurent.subtract(a, b)) <= 0, a, b)


def _power_series(a: Laurent, n: Laurent) -> Laurent | None:
    """Return the series of a power with constant exponents, from one series for each distinct exponent."""
    exponent = n.plain()
    different = np.unique(exponent)
    constant = not n.coefficients[1:].any() and n.start <= 0
    if not (constant and 0 < len(different) <= MOST_EXPONENTS) or np.imag(different).any():
        return None
    result = laurent.linear(lambda c: np.broadcast_to(c, np.broadcast_shapes(np.shape(c), np.shape(exponent))), a)
    for other in different:
        result = laurent.choose(exponent == other, laurent.power(a, float(np.real(other))), result)
    return result


def _hypot_series(a: Laurent, b: Laurent) -> Laurent:
    return laurent.power(laurent.add(laurent.multiply(a, a), laurent.multiply(b, b)), 0.5)


def _size_series(x: Laurent) -> Laurent:
    return laurent.linear(lambda c: c * laurent.sign(x), x)


add = elementwise(
    operator.add, 1, 1, name="add", series=laurent.add, analytic=everywhere, text="({0} + {1})", neutral=(0, 0),
    code=machine_code.ADD, counterpart=counterparts.operator(operator.add),
)  # fmt: skip
subtract = elementwise(
    operator.sub, 1, -1, name="subtract", series=laurent.subtract, analytic=everywhere, text="({0} - {1})",
    neutral=(None, 0), code=machine_code.SUBTRACT, counterpart=counterparts.operator(operator.sub),
)  # fmt: skip
multiply = elementwise(
    operator.mul, lambda y, a, b: b, lambda y, a, b: a, name="multiply", series=laurent.multiply, analytic=everywhere,
    text="({0} * {1})", neutral=(1, 1),
    code=machine_code.MULTIPLY, counterpart=counterparts.operator(operator.mul),
)  # fmt: skip
divide = elementwise(
    operator.truediv, lambda y, a, b: powers.one_over(b), powers.DENOMINATOR, name="divide",
    series=laurent.divide, analytic=not_by_zero,
    text="({0} / {1})", neutral=(None, 1),
    code=machine_code.DIVIDE, counterpart=counterparts.operator(operator.truediv, floating=True),
)  # fmt: skip
power = elementwise(
    operator.pow, powers.BASE, powers.exponent_partial, name="power", series=_power_series, analytic=not_at_zero,
    text="({0} ** {1})", neutral=(None, 1), code=library("pow", 2), counterpart=counterparts.operator(operator.pow),
)  # fmt: skip
negative = elementwise(
    operator.neg, -1, name="negative", text="(-{0})", code=machine_code.NEGATIVE, counterpart=any_type("negative")
)
absolute = elementwise(
    operator.abs, lambda y, x: slope_of_absolute(x), name="absolute", series=_size_series, analytic=not_at_zero,
    text="abs({0})", code=intrinsic("fabs"), counterpart=any_type("abs"),
)  # fmt: skip


def _minus_quotient(y: Value, a: Value, b: Value) -> Value:
    # The quotient is found from the remainder, which is exact. The rounded quotient of numbers like 3 and 0.3 may be
    # the next integer.
    return -np.rint((plain(a) - plain(y)) / plain(b))


mod = elementwise(
    operator.mod, 1, _minus_quotient, name="mod", text="({0} % {1})",
    code=machine_code.MOD, counterpart=any_type("remainder"),
)  # fmt: skip
fmod = elementwise(np.fmod, 1, _minus_quotient, counterpart=counterparts.fmod)

maximum = elementwise(
    np.maximum,
    lambda y, a, b: _extreme("maximum", 0.0, a, b, larger=True),
    lambda y, a, b: _extreme("maximum", 1.0, b, a, larger=True),
    selects=True, series=_largest, analytic=not_if_equal,
    code=intrinsic("maximum", 2, integers="smax"), counterpart=any_type("maximum"),
)  # fmt: skip
minimum = elementwise(
    np.minimum,
    lambda y, a, b: _extreme("minimum", 1.0, a, b, larger=False),
    lambda y, a, b: _extreme("minimum", 0.0, b, a, larger=False),
    selects=True, series=_least, analytic=not_if_equal,
    code=intrinsic("minimum", 2, integers="smin"), counterpart=any_type("minimum"),
)  # fmt: skip
fmax = elementwise(
    np.fmax,
    lambda y, a, b: _weight(
        "fmax", (plain(a) > plain(b)) | np.isnan(plain(b)), plain(a) == plain(b), 0.0, a, b),
    lambda y, a, b: _weight(
        "fmax", (plain(b) > plain(a)) | np.isnan(plain(a)), plain(a) == plain(b), 1.0, b, a),
    selects=True, series=_largest, analytic=not_if_equal,
    code=intrinsic("maxnum", 2), counterpart=counterparts.ignoring_nan("maximum"),
)  # fmt: skip
fmin = elementwise(
    np.fmin,
    lambda y, a, b: _weight(
        "fmin", (plain(a) < plain(b)) | np.isnan(plain(b)), plain(a) == plain(b), 1.0, b, a),
    lambda y, a, b: _weight(
        "fmin", (plain(b) < plain(a)) | np.isnan(plain(a)), plain(a) == plain(b), 0.0, a, b),
    selects=True, series=_least, analytic=not_if_equal,
    code=intrinsic("minnum", 2), counterpart=counterparts.ignoring_nan("minimum"),
)  # fmt: skip
where = elementwise(
    np.where,
    None,
    lambda y, c, a, b: plain(c) != 0,
    lambda y, c, a, b: plain(c) == 0,
    name="where",
    selects=True,
    text="np.where({0}, {1}, {2}){scalar}",
    series=lambda c, a, b: laurent.choose(c.plain() != 0, a, b), analytic=lambda c, a, b: np.result_type(c).kind == "b",
    code=machine_code.WHERE,
    counterpart=counterparts.where,
)
clip = elementwise(
    np.clip,
    lambda y, x, low, high: _inside(x, low, high),
    # If the lower bound exceeds the upper bound, NumPy gives the upper bound.
    lambda y, x, low, high: ((plain(x) < plain(low)) & (plain(low) <= plain(high))) * 1.0,
    lambda y, x, low, high: ((plain(x) > plain(high)) | (plain(low) > plain(high))) * 1.0,
    selects=True,
    series=_clip_series, analytic=lambda x, low, high: bool(np.all(x != low) and np.all(x != high)),
    code=machine_code.CLIP,
    counterpart=counterparts.clip,
)


def _half_over(y: Value) -> Value:
    if nested(y, plain(y) == 0):
        return 0.5 * reciprocal_root(y)
    y = np.asarray(y)[()] if type(y) in PYTHON_NUMBERS else y  # which can be divided by 0
    return powers.in_domain(0.5 / y)


def _sinc_partial(y: Value, x: Value) -> Value:
    # Near 0 the series has derivatives of every order, while the quotient loses all its digits.
    near = np.abs(plain(x)) < 1e-2
    t = np.where(near, 1.0, x) * np.pi
    z = (np.pi * x) ** 2
    series = np.pi**2 * x * (-1 / 3 + z * (1 / 30 + z * (-1 / 840 + z * (1 / 45360 - z / 3991680))))
    return np.where(near, series, np.pi * (t * np.cos(t) - np.sin(t)) / t**2)


def _logaddexp_partial(y: Value, a: Value, b: Value) -> Value:
    # y is -inf only where both arguments are, and then neither gets a weight.
    finite = plain(y) != -np.inf
    return np.where(finite, sp.expit(np.where(finite, a, 0.0) - np.where(finite, b, 0.0)), 0.0)


def _one_minus_square(x: Value) -> Value:
    # Near 1 the product keeps all digits, and near 0 the derivative of the difference does.
    return np.where(np.abs(plain(x)) < 0.5, 1 - x * x, (1 - x) * (1 + x))


def _root_of_one_minus_square(x: Value) -> Value:
    if not np.iscomplexobj(plain(x)):
        return np.sqrt(_one_minus_square(x))
    # On the branch cuts the sign of a zero imaginary part selects the side, and 1 - x would lose it.
    return np.where(np.abs(plain(x)) < 0.5, np.sqrt(1 - x * x), np.sqrt(-(x - 1)) * np.sqrt(x + 1))


def _root_of_one_plus_square(x: Value) -> Value:
    return np.sqrt(1 + x * x) if np.iscomplexobj(plain(x)) else np.hypot(1.0, x)


def _over_square(c: Value, a: Value, b: Value) -> Value:
    """Return `c / (a**2 + b**2)` without the squares, which may overflow or underflow when the result does not."""
    size = np.hypot(a, b)
    return np.divide(np.divide(c, size), size)


UNARY = {primitive.function: primitive for primitive in (
    elementwise(np.positive, 1, code=machine_code.POSITIVE, counterpart=any_type("positive")),
    elementwise(
        np.exp, lambda y, x: y, series=laurent.exponential, analytic=everywhere,
        code=library("exp"), counterpart=floating("exp")),
    elementwise(
        np.exp2, lambda y, x: y * np.log(2.0),
        code=library("exp2"), counterpart=counterparts.own("exp2", lambda xp, x: 2.0**x)),
    elementwise(np.expm1, lambda y, x: np.exp(x), code=library("expm1"), counterpart=floating("expm1")),
    elementwise(
        np.log, lambda y, x: powers.in_domain(np.reciprocal(x)), series=laurent.logarithm, analytic=not_at_zero,
        code=library("log"), counterpart=floating("log")),
    elementwise(
        np.log2, lambda y, x: powers.in_domain(np.reciprocal(x * np.log(2.0))),
        code=library("log2"), counterpart=floating("log2")),
    elementwise(
        np.log10, lambda y, x: powers.in_domain(np.reciprocal(x * np.log(10.0))),
        code=library("log10"), counterpart=floating("log10")),
    elementwise(
        np.log1p, lambda y, x: powers.in_domain(np.reciprocal(1 + x)),
        code=library("log1p"), counterpart=floating("log1p")),
    elementwise(
        np.sqrt, lambda y, x: _half_over(y), series=lambda x: laurent.power(x, 0.5), analytic=not_at_zero,
        code=intrinsic("sqrt"), counterpart=floating("sqrt")),
    elementwise(
        np.cbrt, lambda y, x: powers.in_domain(np.reciprocal(3 * y * y)),
        series=lambda x: laurent.power(x, 1 / 3), analytic=not_at_zero,
        code=library("cbrt"), counterpart=counterparts.own("cbrt", counterparts.cbrt)),
    elementwise(
        np.square, lambda y, x: 2 * x, series=lambda x: laurent.multiply(x, x), analytic=everywhere,
        code=machine_code.SQUARE, counterpart=any_type("square")),
    elementwise(
        np.reciprocal, powers.INVERSE, series=lambda x: laurent.power(x, -1.0), analytic=not_at_zero,
        code=machine_code.RECIPROCAL, counterpart=floating("reciprocal")),
    elementwise(
        np.sin, lambda y, x: np.cos(x), series=laurent.sine, analytic=everywhere,
        code=library("sin"), counterpart=floating("sin")),
    elementwise(
        np.cos, lambda y, x: -np.sin(x), series=lambda x: laurent.sine(x, cosine=True), analytic=everywhere,
        code=library("cos"), counterpart=floating("cos")),
    elementwise(np.tan, lambda y, x: 1 + y * y, code=library("tan"), counterpart=floating("tan")),
    elementwise(
        np.arcsin, lambda y, x: 1 / _root_of_one_minus_square(x),
        code=library("asin"), counterpart=floating("asin")),
    elementwise(
        np.arccos, lambda y, x: -1 / _root_of_one_minus_square(x),
        code=library("acos"), counterpart=floating("acos")),
    elementwise(np.arctan, lambda y, x: 1 / (1 + x * x), code=library("atan"), counterpart=floating("atan")),
    elementwise(np.sinh, lambda y, x: np.cosh(x), code=library("sinh"), counterpart=floating("sinh")),
    elementwise(np.cosh, lambda y, x: np.sinh(x), code=library("cosh"), counterpart=floating("cosh")),
    elementwise(np.tanh, lambda y, x: 1 - y * y, code=library("tanh"), counterpart=floating("tanh")),
    elementwise(
        np.arcsinh, lambda y, x: powers.in_domain(np.reciprocal(_root_of_one_plus_square(x))),
        code=library("asinh"), counterpart=floating("asinh")),
    elementwise(
        np.arccosh, lambda y, x: powers.in_domain(np.reciprocal(np.sqrt(x - 1) * np.sqrt(x + 1))),
        code=library("acosh"), counterpart=floating("acosh")),
    elementwise(
        np.arctanh, lambda y, x: powers.in_domain(np.reciprocal(_one_minus_square(x))),
        code=library("atanh"), counterpart=floating("atanh")),
    *(elementwise(f, np.pi / 180, code=scaling(np.pi / 180)) for f in (np.deg2rad, np.radians)),
    *(elementwise(f, 180 / np.pi, code=scaling(180 / np.pi)) for f in (np.rad2deg, np.degrees)),
    *(elementwise(f, lambda y, x: slope_of_absolute(x), series=_size_series, analytic=not_at_zero,
                  code=intrinsic("fabs"), counterpart=any_type("abs"))
      for f in (np.fabs, np.absolute)),
)}  # fmt: skip
BINARY = {primitive.function: primitive for primitive in (
    elementwise(
        np.hypot, direction, lambda y, a, b: direction(y, b, a), series=_hypot_series,
        code=library("hypot", 2), counterpart=floating("hypot")),
    elementwise(
        np.arctan2, lambda y, a, b: _over_square(b, a, b), lambda y, a, b: _over_square(-a, a, b),
        code=library("atan2", 2), counterpart=floating("atan2")),
    elementwise(
        np.logaddexp, lambda y, a, b: _logaddexp_partial(y, a, b), lambda y, a, b: _logaddexp_partial(y, b, a),
        code=machine_code.LOGADDEXP, counterpart=floating("logaddexp")),
    elementwise(np.nextafter, 1, None),
    elementwise(np.heaviside, None, lambda y, x, at_0: (plain(x) == 0) * 1.0),
    elementwise(
        np.copysign, lambda y, a, b: np.sign(plain(a)) * np.sign(np.copysign(1.0, plain(b))), None,
        code=intrinsic("copysign", 2), counterpart=floating("copysign")),
)}  # fmt: skip

sinc = elementwise(np.sinc, _sinc_partial, counterpart=counterparts.own("sinc", counterparts.sinc))


ARITHMETIC = {
    np.add: add, np.subtract: subtract, np.multiply: multiply, np.divide: divide, np.power: power,
    np.float_power: power, np.negative: negative, np.absolute: absolute, np.mod: mod, np.maximum: maximum,
    np.minimum: minimum, np.fmod: fmod, np.fmax: fmax, np.fmin: fmin,
}  # fmt: skip
# `np.absolute` and `np.float_power` get their rules in `primitives/complexes.py` and `primitives/ufuncs.py`.
UFUNCS.enter({u: row for u, row in (UNARY | BINARY | ARITHMETIC).items() if u not in (np.absolute, np.float_power)})


def _clip(
    a: Value, a_min: Value = np._NoValue, a_max: Value = np._NoValue, out: Option = None, *,
    min: Value = None, max: Value = None,
) -> Value:  # fmt: skip
    if (a_min is np._NoValue) != (a_max is np._NoValue):
        raise TypeError("numpy.clip was given one of two bounds by its place: give both, or one as min= or max=")
    if a_min is not np._NoValue and not min is max is None:
        raise ValueError("Passing `min` or `max` to numpy.clip is forbidden when `a_min` and `a_max` are provided")
    low, high = (min, max) if a_min is np._NoValue else (a_min, a_max)
    a = to_operand(a)
    least, largest = extremes(dtype_of(a))
    return clip(a, least if low is None else to_operand(low), largest if high is None else to_operand(high))


FUNCTIONS.enter({np.clip: _clip, np.sinc: lambda x: sinc(x)})
