"""Derivatives as limits of differences, a check of any primitive's rule that shares nothing with the rule.

Below a derivative, the handler `Stated` answers every operation with the definition of its value in mpmath, at many
digits. So a mode and the rules run unchanged, on numbers of any precision. Their results are compared with the limit of
(f(x + h u) - f(x - h u)) / 2 h. No derivative is stated anywhere, so a wrong rule, a wrong mode and a wrong order of
arguments all differ from the limit. Elementwise primitives have definitions here. Primitives that sum, multiply and
move elements use NumPy's function on mpmath's numbers, so their values are not checked, but their transposes are.
"""

import operator
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.arrays.value import Tracer, plain
from effgrad.errors import EffgradError
from effgrad.modes.evaluate import Evaluate
from effgrad.modes.mode import Operation
from effgrad.spec.differentiation import pull, push
from effgrad.spec.expressions import Dictionary
from effgrad.spec.representation import Counterexample, Evidence
from effgrad.vocabulary import Function, Params, Value

try:
    from mpmath import mp, mpf
except ImportError as error:
    raise ImportError("effgrad.spec.limits needs mpmath: pip install 'effgrad[spec]'") from error

Real = Any  # mpmath has no type annotations
Program = Callable[..., Any]

# The definition of each primitive's value, by name. No derivative is defined here.
DEFINITIONS: dict[str, Callable[..., Real]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "positive": operator.pos, "divide": lambda x, y: mpf(x) / y, "reciprocal": lambda x: 1 / mpf(x),
    "inverse": lambda x: 1 / mpf(x) if x else mpf(0),
    "step": lambda x, at_zero: mpf(x > 0) if x else mpf(at_zero), "spike": lambda x: mpf(0) if x else mpf("nan"),
    "kinked": lambda x: mpf(0),
    "square": lambda x: x * x, "power": lambda x, y: mpf(x) ** y,
    "sqrt": mp.sqrt, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "absolute": abs, "fabs": abs,
    "exp": mp.exp, "exp2": lambda x: mpf(2) ** x, "expm1": mp.expm1, "log": mp.log, "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10, "log1p": mp.log1p, "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "arcsin": mp.asin,
    "arccos": mp.acos, "arctan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "arcsinh": mp.asinh,
    "arccosh": mp.acosh, "arctanh": mp.atanh, "arctan2": mp.atan2, "hypot": mp.hypot,
    "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "deg2rad": mp.radians, "radians": mp.radians, "rad2deg": mp.degrees, "degrees": mp.degrees,
    "maximum": max, "minimum": min, "sign": mp.sign, "where": lambda c, x, y: x if c else y,
    "erf": mp.erf, "erfc": mp.erfc, "erfi": mp.erfi, "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "dawsn": lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2,
    "gamma": mp.gamma, "gammaln": mp.loggamma, "psi": mp.digamma, "rgamma": mp.rgamma,
    "expit": lambda x: 1 / (1 + mp.exp(-x)), "logit": lambda x: mp.log(x / (1 - x)),
    "log_expit": lambda x: -mp.log1p(mp.exp(-x)), "ndtr": mp.ncdf,
    "xlogy": lambda x, y: x * mp.log(y), "xlog1py": lambda x, y: x * mp.log1p(y), "entr": lambda x: -x * mp.log(x),
    "rel_entr": lambda x, y: x * mp.log(x / y), "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
    "cosm1": lambda x: mp.cos(x) - 1, "exp10": lambda x: mpf(10) ** x, "exp1": mp.e1, "expi": mp.ei,
    "spence": lambda x: mp.polylog(2, 1 - x),
    "ellipk": mp.ellipk, "ellipe": mp.ellipe,
    "j0": mp.j0, "j1": mp.j1, "y0": lambda x: mp.bessely(0, x), "y1": lambda x: mp.bessely(1, x),
    "i0": lambda x: mp.besseli(0, x), "i1": lambda x: mp.besseli(1, x), "k0": lambda x: mp.besselk(0, x),
    "k1": lambda x: mp.besselk(1, x), "i0e": lambda x: mp.exp(-abs(x)) * mp.besseli(0, x),
    "i1e": lambda x: mp.exp(-abs(x)) * mp.besseli(1, x),
    "iv": mp.besseli, "jv": mp.besselj, "kv": mp.besselk, "yv": mp.bessely,
    "ive": lambda v, x: mp.exp(-abs(x)) * mp.besseli(v, x), "hyp1f1": mp.hyp1f1, "hyp2f1": mp.hyp2f1,
    "beta": mp.beta, "betaln": lambda x, y: mp.log(abs(mp.beta(x, y))),
    "boxcox": lambda x, y: (mpf(x) ** y - 1) / y, "exprel": lambda x: mp.expm1(x) / x,
}  # fmt: skip


class Unstated(EffgradError, LookupError):
    """A primitive has no definition in `effgrad.spec.limits`."""

    code = "S3"


class Stated(Evaluate):
    """A handler that evaluates every operation by its definition in `DEFINITIONS`, on arrays of mpmath's numbers."""

    def perform(self, primitive: Any, args: Sequence[Value], params: Params) -> Operation:
        primals = [self.primal(a) for a in args]
        definition = DEFINITIONS.get(primitive.name)
        if definition is not None and not params:
            result = _elementwise(definition, primals)
        elif primitive.kind == "linear":
            result = primitive.function(*primals, **params)
        else:
            raise Unstated(f"{primitive.name} has no definition in effgrad.spec.limits; add its value to DEFINITIONS")
        return Operation(primitive, params, primals, [None] * len(args), result)


def _elementwise(definition: Callable[..., Real], primals: Sequence[Value]) -> Value:
    if all(np.ndim(primal) == 0 for primal in primals):
        return definition(*[real(primal) for primal in primals])
    return _frompyfunc(definition, len(primals), 1)(*[real(primal) for primal in primals])


def real(value: Value) -> Value:
    """Return a number, or an array of numbers, as mpmath's numbers."""
    return _reals(value)


# NumPy's function, bound at import, outside all derivatives.
_frompyfunc = np.frompyfunc
_reals = np.frompyfunc(lambda x: x if isinstance(x, mpf) else mpf(float(x)), 1, 1)


def values(f: Program, xs: Sequence[Value]) -> list[Value]:
    """Return the results of a program evaluated by the definitions."""
    with Stated() as stated:
        results = f(*[stated.variable(x) for x in xs])
    return [real(plain(y)) for y in results]


def difference(f: Program, xs: Sequence[object], us: Sequence[object], digits: int) -> list[Value]:
    """Return the derivative of a program along a direction as the limit of differences, to the given number of digits.

    The quotient has an error of h^2 times a third derivative, and of the last digit over h. `h` and the precision are
    chosen so that both are far below the requested accuracy.
    """
    with mp.workdps(4 * digits + 20):
        h = mpf(10) ** -(digits + 5)
        above, below = (values(f, [x + s * h * u for x, u in zip(xs, us, strict=True)]) for s in (1, -1))
        return [(a - b) / (2 * h) for a, b in zip(above, below, strict=True)]


def converges(f: Program, xs: Sequence[object], mode: object = "taped", digits: int = 14, seed: int = 0) -> Evidence:
    """Check that a mode's derivatives of a program are limits of differences.

    Return the evidence, or raise a `Counterexample`.

    Arguments:
        f: a program of n numbers or arrays that returns a list of m numbers or arrays.
        xs: the point, as floats or arrays of floats; f has to be smooth there.
        mode: a forward or a reverse mode, by name.
        digits: to how many digits they should agree. Rules with constants that are floats, such as log(2), have 15.
        seed: the seed of the random directions in the n inputs, and for reverse modes also of weights of the m results.

    A forward mode is compared with the limit along each direction. For a reverse mode, the inner product of the weights
    and the limit along a direction has to equal that of the direction and the cotangents that the mode pulls back.

    >>> import numpy as np
    >>> print(converges(lambda x, y: [np.sin(x) * y, np.hypot(x, y)], [0.3, 2.0], "continuation", digits=40))
    limits of differences, 40 digits: 3 points, exact
    """
    rng, name, trials = random.Random(seed), f"limits of differences, {digits} digits", 3
    with mp.workdps(4 * digits + 20):
        at = [real(x) for x in xs]
        results = values(f, at)
        for _ in range(trials):
            us = [_random_like(x, rng) for x in at]
            expected = difference(f, at, us, digits)
            if mode in ("forward", "second_order"):
                actual = _run(push(_as_map(f), mode), [*at, *us])
            else:
                ws = [_random_like(y, rng) for y in results]
                pulled = _run(pull(_as_map(f), len(at), mode), [*at, *ws])
                expected, actual = [_inner(ws, expected)], [_inner(us, pulled)]
            for one, other in zip(expected, actual, strict=True):
                if np.any(abs(one - other) > mpf(10) ** -digits * (1 + abs(one))):
                    raise Counterexample(name, list(xs), expected, actual)
    return Evidence(name, trials)


def _as_map(f: Program) -> Function:
    return lambda dictionary, *xs: f(*xs)


def _random_like(value: object, rng: random.Random) -> Value:
    """Return random numbers between -1 and 1 in the shape of a value."""
    return _frompyfunc(lambda _: mpf(rng.uniform(-1, 1)), 1, 1)(value)


def _inner(first: Sequence[Value], second: Sequence[Value]) -> Real:
    return sum(np.sum(a * b) for a, b in zip(first, second, strict=True))


def _run(derivative: Callable[..., list[Value]], numbers: Sequence[Value]) -> list[Value]:
    """Run a derivative of a map on mpmath's numbers under `Stated`."""
    with Stated() as stated:
        zero, one, *rest = [stated.variable(x) for x in (mpf(0), mpf(1), *numbers)]
        results = derivative(Dictionary(zero, one, operator.add, operator.mul), *rest)
        found = [y.primal if isinstance(y, Tracer) else y for y in results]
    return [real(y) for y in found]
