"""`scipy.integrate.quad`, `nquad` and `quad_vec`: integrals of functions of traced values.

`quad` is differentiated by `effgrad.toolbox.intervals`, with a weight by `effgrad.toolbox.weights`, and so is each of
the nested integrals of `nquad`, by which SciPy computes `dblquad` and `tplquad`. For `quad_vec`, SciPy integrates plain
numbers, and the value is SciPy's. The derivative is that of a sum by the Gauss-Legendre rule, on intervals that are
halved until this rule and one with fewer points agree to rounding.
"""

import numpy as np
import scipy.integrate

from effgrad.arrays.value import depends, plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.tables import Calling, reals, require, traced_inside
from effgrad.primitives.kinks import derivative_order
from effgrad.toolbox.callbacks import called_back
from effgrad.toolbox.calls import Call, rule_of
from effgrad.toolbox.frozen import Observed, as_number_or_array, number, plain_tree
from effgrad.toolbox.intervals import (
    COARSE_POINTS,
    COARSE_WEIGHTS,
    POINTS,
    WEIGHTS,
    by_pieces,
    fits,
    integrand_term,
    listed,
    of_no_length,
    refuse_jumps,
    refuse_kinks,
    values_at,
)
from effgrad.toolbox.slopes import uses_derivatives
from effgrad.toolbox.solutions import with_value
from effgrad.toolbox.weights import weighted_integral
from effgrad.vocabulary import Function, Option, Value

QUADPACK = scipy.integrate.quad
# An integrand counts as not smooth if an interval would be halved more often than this, or if there are more intervals.
DEEPEST, MOST = 10, 500
# The number of intervals in each half, which get shorter towards its end.
LEVELS = 8


def _sum(term: Function, start: float, end: float, points: Value, weights: Value) -> Value:
    terms = [weight * value for weight, value in zip(weights, values_at(term, start, end, points), strict=True)]
    return (end - start) * sum(terms[1:], terms[0])


def _graded(start: float, end: float) -> list[tuple[float, float, int]]:
    """Return intervals that get shorter to both ends, where a derivative may be singular.

    The integrand may be finite there, as x^p at 0. The third number is how often an interval has been halved.
    """
    parts = 0.5 * 0.25 ** np.arange(LEVELS)[::-1]
    ends = start + (end - start) * np.concatenate([[0.0], parts, 1 - parts[:-1][::-1], [1.0]])
    return [(float(a), float(b), 0) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _smooth_intervals(term: Function, start: float, end: float, order: int) -> list[tuple[float, float]]:
    """Return intervals on each of which a polynomial equals the integrand up to rounding."""
    waiting, found = _graded(start, end), []
    usual = np.max(np.abs(_sum(lambda t: np.abs(term(t)), start, end, POINTS, WEIGHTS)), initial=1e-300)
    while waiting:
        a, b, halved = waiting.pop()
        fine, coarse = (np.stack(values_at(term, a, b, points)) for points in (POINTS, COARSE_POINTS))
        if all(fits(fine, coarse, usual / (b - a), 1.0)):
            found.append((a, b, fine))
        elif halved == DEEPEST or len(found) > MOST:
            raise NoRule(
                "scipy.integrate.quad_vec has a derivative rule for integrands that are smooth: not near "
                f"{a:.4g}; write it as two integrals, to and from there"
            )
        else:
            middle = (a + b) / 2
            waiting += [(middle, b, halved + 1), (a, middle, halved + 1)]
    refuse_jumps(term, [a for a, *_ in found], "quad_vec")
    if order > 1:
        refuse_kinks(sorted(found, key=lambda part: part[0]), order, "quad_vec")
    return [(a, b) for a, b, _ in found]


@rule_of(scipy.integrate.quad_vec, "f", followed=1)
def quad_vec_rule(call: Call) -> Value:
    """The rule of `quad_vec`."""
    f, a, b, args = call.arguments["f"], call.arguments["a"], call.arguments["b"], call.args
    reals("integrate.quad_vec", a, b)
    result = call.run()
    used = call.traced or traced_inside((a, b, args))
    if not used and not (call.observed["f"].first and uses_derivatives(f, *call.observed["f"].first, *args)):
        return result

    def term(t: float) -> Value:
        return integrand_term(lambda x, *args: as_number_or_array(f(x, *args)), t, a, b, args)

    def at_primals(t: float) -> Value:
        return number(as_number_or_array(integrand_term(f, t, number(a), number(b), args)))

    low, high = float(number(a)), float(number(b))
    if low == high:
        total = of_no_length(lambda x: as_number_or_array(f(x, *args)), a, b)
        return (with_value(total, result[0]), *result[1:])
    start, end = (low, high) if np.isfinite(low) and np.isfinite(high) else (0.0, 1.0)
    order = derivative_order(term((start + end) / 2))
    intervals = _smooth_intervals(at_primals, start, end, order)
    total = sum((_sum(term, *interval, POINTS, WEIGHTS) for interval in intervals), start=0.0)
    return (with_value(total, result[0]), *result[1:])


# Gregory's coefficients. A series is its integral, plus half its first term, plus the sum of these coefficients times
# the differences of its terms at the first one.
GREGORY = (-1 / 12, 1 / 24, -19 / 720, 3 / 160, -863 / 60480, 275 / 24192, -33953 / 3628800)
# The number of terms of a series that are added before the rest is computed as an integral, the most terms of a finite
# sum, and the logarithm of the index, relative to the first one, after which terms are left out.
FIRST_TERMS, MOST_TERMS, LONGEST = 128, 2**20, 400


def nsum_rule(call: Call) -> Value:
    """The rule of `nsum`: the first terms are added, and the rest is an integral with Gregory's corrections.

    SciPy's own transformation of the integral has weights that overflow where terms vanish. Their derivatives would be
    NaN.
    Jordan, Calculus of finite differences (1947), section 99.
    """
    f, a, b, step = call.arguments["f"], call.arguments["a"], call.arguments["b"], call.get("step") or 1
    result = call.run()
    used = call.traced or traced_inside((a, b, step, call.args))
    if not used and not (call.observed["f"].first and uses_derivatives(f, *call.observed["f"].first, *call.args)):
        return result
    plainly = not traced_inside((a, b, step)) and np.ndim(result.sum) == 0 and np.isfinite(a) and not call.get("log")
    require(plainly, "integrate.nsum", "one sum from a finite number, of terms and args alone, with log=False")
    count = FIRST_TERMS if np.isinf(b) else int(np.floor((b - a) / step)) + 1
    require(count <= MOST_TERMS, "integrate.nsum", f"{MOST_TERMS} terms at most, or a sum to infinity")

    def terms(k: Value) -> Value:
        value = as_number_or_array(f(a + step * k, *call.args))
        reals("integrate.nsum", value)
        return value

    total = np.sum(terms(np.arange(float(count))))
    if np.isinf(b):
        first = terms(count + np.arange(len(GREGORY) + 1.0))
        corrections = [weight * np.diff(first, n + 1)[0] for n, weight in enumerate(GREGORY)]
        total = total + _tail(terms, float(count), lambda k: number(terms(k))) + first[0] / 2 + sum(corrections)
    return type(result)(**{**result, "sum": with_value(total, result.sum)})


def _tail(f: Function, start: float, at_primals: Function) -> Value:
    """Return the integral of terms from `start` to infinity.

    It is an integral over the logarithm of their index, in which they decay fast, up to where they are negligible.
    """
    ends = start * np.exp(np.arange(LONGEST))
    with np.errstate(all="ignore"):  # terms with huge indices may overflow
        sizes = np.abs(at_primals(ends) * ends)
    count = int(np.max(np.flatnonzero(sizes > 1e-18 * np.max(sizes)), initial=0)) + 1

    def total(f: Function, points: Value, weights: Value) -> Value:
        places = start * np.exp(np.arange(count)[:, None] + 0.5 + points)
        return np.sum(np.reshape(f(np.ravel(places)), places.shape) * places * weights)

    fine, coarse = total(at_primals, POINTS, WEIGHTS), total(at_primals, COARSE_POINTS, COARSE_WEIGHTS)
    decays = count < LONGEST and abs(fine - coarse) <= 1e-9 * np.max(np.abs(at_primals(np.arange(8.0))), initial=0.0)
    require(decays, "integrate.nsum", "terms that are smooth and decay faster than k**-1.1; sum a fixed number of them")
    return total(f, POINTS, WEIGHTS)


class Nested:
    """An integral over several variables, the first of them innermost, as `nquad` computes it on plain numbers.

    `ranges` and `options` are functions of the variables further out, and then of `args`.
    """

    def __init__(self, func: Function, ranges: list[Function], options: list[Function], args: Value) -> None:
        self.func, self.ranges, self.options, self.args = func, ranges, options, args
        self.plain = Observed(func, args), [Observed(f, args) for f in ranges], [Observed(f, args) for f in options]

    def value(self, depth: int, *outer: float) -> Value:
        """Return SciPy's integral over the first `depth` variables, on plain numbers, for given outer variables."""
        func, ranges, options = self.plain
        return scipy.integrate.nquad(func, ranges[:depth], args=outer, opts=options[:depth])[0]

    def traced(self, depth: int, *outer: Value) -> Value:
        """Return the integral over the first `depth` variables with its derivatives, for given outer variables."""
        if not depth:
            return self.func(*outer, *self.args)
        low, high = map(as_number_or_array, self.ranges[depth - 1](*outer, *self.args))
        reals("integrate.nquad", low, high)
        given = self.options[depth - 1](*outer, *self.args)
        points = listed(given.get("points"))
        given = plain_tree(given)
        require(given.get("weight") is None, "integrate.nquad", "no weight")
        place = number(as_number_or_array(list(outer))) if outer else ()

        def like(t: float) -> float:
            return float(self.value(depth - 1, float(t), *place) if depth > 1 else self.plain[0](float(t), *place))

        a, b = float(number(low)), float(number(high))
        if "points" in given:
            given["points"] = [t for t in given["points"] if a <= t <= b]
        info = scipy.integrate.quad(like, a, b, **(given | {"full_output": 1}))[2]
        return by_pieces(lambda t: self.traced(depth - 1, t, *outer), like, low, high, (), info, points)


@rule_of(scipy.integrate.nquad, "func", followed=1)
def nquad_rule(call: Call) -> Value:
    """The rule of `nquad`."""
    ranges, options = call.arguments["ranges"], call.get("opts") or {}
    listed = [options] * len(ranges) if isinstance(options, dict) else options
    args = call.get("args") or ()
    nested = Nested(call.arguments["func"], [*map(_function, ranges)], [*map(_function, listed)], args)
    func, plain_ranges, plain_options = nested.plain
    result = call.run(func=func, ranges=plain_ranges, opts=plain_options)
    used = any(f.traced for f in (func, *plain_ranges))
    if not used and not (func.first and uses_derivatives(nested.func, *func.first, *nested.args)):
        return result
    return (with_value(nested.traced(len(ranges)), result[0]), *result[1:])


def _function(given: Value) -> Function:
    """Return a range or the options of an integral as a function of the variables further out."""
    return given if callable(given) else lambda *outer: given


def integral(
    func: Function, a: Value, b: Value, args: Value = (), full_output: Option = 0, *,
    switched: Function = lambda: False, **options: Option,
) -> Value:  # fmt: skip
    """The rule of `quad`.

    `switched` says whether an integrand that returns plain numbers chooses them by traced values. If it jumps, the
    integral has a derivative that no traced value shows.
    """
    args = args if isinstance(args, tuple) else (args,)
    if options.pop("complex_func", False):
        return _complex_integral(func, a, b, args, full_output, switched=switched, **options)
    points = listed(options.get("points"))
    traced = traced_inside((a, b, args, points, options.get("wvar")))

    def value(t: float) -> float:
        nonlocal traced
        result = func(t, *args)
        traced = traced or depends(result)
        return float(plain(result))

    low, high = float(plain(a)), float(plain(b))
    result, error, info, *rest = QUADPACK(value, low, high, full_output=1, **plain_tree(options))
    if not traced:
        if low != high and switched():
            by_pieces(func, func, a, b, args, info, points)
        return (result, error, info, *rest) if full_output else (result, error)
    if options.get("weight") is None:
        total = by_pieces(func, func, a, b, args, info, points)
    else:
        total = weighted_integral(func, a, b, args, options["weight"], options["wvar"])
    require(np.isrealobj(plain(total)), "integrate.quad", "real integrands, and complex ones with complex_func=True")
    total = total + (result - float(plain(total)))  # the value is QUADPACK's
    return (total, error, info, *rest) if full_output else (total, error)


def _complex_integral(func: Function, a: Value, b: Value, args: Value, full_output: object, **options: Option) -> Value:
    """The integrals of the real and of the imaginary part, as one complex result like SciPy's."""
    parts = [
        integral(lambda t, *args, part=part: part(func(t, *args)), a, b, args, full_output, **options)
        for part in (np.real, np.imag)
    ]
    (real, real_error, *of_real), (imag, imag_error, *of_imag) = parts
    found = real + 1j * imag, real_error + 1j * imag_error
    return (*found, {"real": tuple(of_real), "imag": tuple(of_imag)}) if full_output else found


def _switched(func: Function, a: Value, b: Value, args: Value = (), **options: Value) -> bool:
    """Whether an integrand uses values of a derivative to choose among plain numbers."""
    low, high = (float(np.clip(number(limit), -1e9, 1e9)) for limit in (a, b))
    return uses_derivatives(func, (low + high) / 2, *(args if isinstance(args, tuple) else (args,)))


def _quad(*args: Value, **kwargs: Value) -> Value:
    def run(converted: Function, kept: Function) -> Value:
        given, named = converted((args, kwargs))
        return integral(*given, **named, switched=lambda: _switched(*given, **named))

    return called_back(run, "quad", followed=1)


quad_rule = Calling(_quad)

RULES: list[tuple[Value, str, Value]] = [
    (scipy.integrate, "quad", quad_rule),
    *((owner, "nquad", nquad_rule) for owner in (scipy.integrate, scipy.integrate._quadpack_py)),
    *((scipy.integrate, name, rule_of(getattr(scipy.integrate, name), "f", points=["f"])(nsum_rule))
      for name in ("nsum",) if hasattr(scipy.integrate, name)),  # from SciPy 1.15 on
    (scipy.integrate, "quad_vec", quad_vec_rule),
]  # fmt: skip
