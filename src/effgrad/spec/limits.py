"""Derivatives as limits of differences: the rule of any primitive, stated a second time without a rule.

Below a derivative, the handler `Stated` answers every operation with the definition of its value in mpmath, at many
digits. So a mode and the rules run as they are, on numbers as exact as one likes, and what they compute is compared
with the limit of (f(x + h u) - f(x - h u)) / 2 h. No derivative is stated anywhere: a wrong rule, a wrong mode and a
wrong order of arguments all differ from the limit. Only elementwise primitives have definitions here.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from effgrad.arrays.value import KINDS, plain
from effgrad.errors import EffgradError
from effgrad.modes.evaluate import Evaluate
from effgrad.modes.mode import Operation
from effgrad.spec.expressions import Dictionary
from effgrad.spec.maps import pull, push
from effgrad.spec.representation import Counterexample, Evidence

try:
    from mpmath import mp, mpf
except ImportError as error:
    raise ImportError("effgrad.spec.limits needs mpmath: pip install 'effgrad[spec]'") from error

Real = Any  # mpmath's numbers have no types
Program = Callable[..., Any]

# Primitives by name: the definition of the value, never of a derivative.
DEFINITIONS: dict[str, Callable[..., Real]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "positive": operator.pos, "divide": lambda x, y: mpf(x) / y, "reciprocal": lambda x: 1 / mpf(x),
    "square": lambda x: x * x, "power": lambda x, y: mpf(x) ** y, "float_power": lambda x, y: mpf(x) ** y,
    "sqrt": mp.sqrt, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "absolute": abs, "fabs": abs,
    "exp": mp.exp, "exp2": lambda x: mpf(2) ** x, "expm1": mp.expm1, "log": mp.log, "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10, "log1p": mp.log1p, "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "arcsin": mp.asin,
    "arccos": mp.acos, "arctan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "arcsinh": mp.asinh,
    "arccosh": mp.acosh, "arctanh": mp.atanh, "arctan2": mp.atan2, "hypot": mp.hypot,
    "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "logaddexp2": lambda x, y: mp.log(mpf(2) ** x + mpf(2) ** y, 2),
    "deg2rad": mp.radians, "radians": mp.radians, "rad2deg": mp.degrees, "degrees": mp.degrees,
    "maximum": max, "minimum": min, "sign": mp.sign, "where": lambda c, x, y: x if c else y,
    "erf": mp.erf, "erfc": mp.erfc, "erfi": mp.erfi, "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "dawsn": lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2,
    "gamma": mp.gamma, "gammaln": mp.loggamma, "psi": mp.digamma, "digamma": mp.digamma, "rgamma": mp.rgamma,
    "expit": lambda x: 1 / (1 + mp.exp(-x)), "logit": lambda x: mp.log(x / (1 - x)),
    "log_expit": lambda x: -mp.log1p(mp.exp(-x)), "ndtr": mp.ncdf,
    "xlogy": lambda x, y: x * mp.log(y), "xlog1py": lambda x, y: x * mp.log1p(y), "entr": lambda x: -x * mp.log(x),
    "rel_entr": lambda x, y: x * mp.log(x / y), "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
    "cosm1": lambda x: mp.cos(x) - 1, "exp10": lambda x: mpf(10) ** x, "exp1": mp.e1, "expi": mp.ei,
    "spence": lambda x: mp.polylog(2, 1 - x), "sici": mp.si, "ellipk": mp.ellipk, "ellipe": mp.ellipe,
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
    """Evaluate by definitions: every operation is what `DEFINITIONS` says, on mpmath's numbers."""

    def perform(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Operation:
        definition = DEFINITIONS.get(primitive.name)
        if definition is None or params:
            raise Unstated(f"{primitive.name} has no definition in effgrad.spec.limits; add its value to DEFINITIONS")
        primals = [self.primal(a) for a in args]
        return Operation(primitive, params, primals, [None] * len(args), definition(*map(_real, primals)))


def _real(value: Any) -> Real:
    return value if isinstance(value, mpf) else mpf(float(value))


def values(f: Program, xs: Sequence[Real]) -> list[Real]:
    """Return the results of a program of numbers, by definitions."""
    with Stated() as stated:
        return [_real(plain(y)) for y in f(*[stated.variable(x) for x in xs])]


def difference(f: Program, xs: Sequence[Real], us: Sequence[Real], digits: int) -> list[Real]:
    """Return the derivative of a program along a direction, as the limit of differences, to some digits.

    The quotient errs by h^2 times a third derivative, and by the last digit over h; `h` and the precision are such that
    both are far below what is asked.
    """
    with mp.workdps(4 * digits + 20):
        h = mpf(10) ** -(digits + 5)
        above, below = (values(f, [x + s * h * u for x, u in zip(xs, us, strict=True)]) for s in (1, -1))
        return [(a - b) / (2 * h) for a, b in zip(above, below, strict=True)]


def converges(f: Program, xs: Sequence[float], mode: Any = "taped", digits: int = 14) -> Evidence:
    """Check that a mode's derivatives of a program are limits of differences; the evidence, or a `Counterexample`.

    Arguments:
        f: a program of n numbers that returns a list of m numbers; its primitives are elementwise.
        xs: the point; f is smooth there.
        mode: a forward or a reverse mode, by name.
        digits: to how many digits they should agree. Rules with constants that are floats, such as log(2), have 15.

    >>> import numpy as np
    >>> print(converges(lambda x, y: [np.sin(x) * y, np.hypot(x, y)], [0.3, 2.0], "continuation", digits=40))
    limits of differences, 40 digits: 1 point, exact
    """
    with mp.workdps(4 * digits + 20):
        at = [mpf(x) for x in xs]
        name = f"limits of differences, {digits} digits"
        m = len(values(f, at))
        forward = mode in ("forward", "second_order")
        for j, unit in enumerate(_units(len(at))):
            expected = difference(f, at, unit, digits)
            actual = _pushed(f, at, unit, mode) if forward else _pulled_column(f, at, j, m, mode)
            for one, other in zip(expected, actual, strict=True):
                if abs(one - other) > mpf(10) ** -digits * (1 + abs(one)):
                    raise Counterexample(name, list(xs), expected, actual)
    return Evidence(name, 1)


def _units(n: int) -> list[list[Real]]:
    return [[mpf(i == j) for i in range(n)] for j in range(n)]


def _run(derivative: Callable[..., list[Any]], numbers: Sequence[Real]) -> list[Real]:
    """Run a derivative of a map over stated numbers."""
    with Stated() as stated:
        zero, one, *rest = [stated.variable(x) for x in (mpf(0), mpf(1), *numbers)]
        results = derivative(Dictionary(zero, one, operator.add, operator.mul), *rest)
        return [_real(y.primal if type(y) in KINDS else y) for y in results]


def _pushed(f: Program, xs: Sequence[Real], us: Sequence[Real], mode: Any) -> list[Real]:
    return _run(push(lambda d, *inner: f(*inner), mode), [*xs, *us])


def _pulled_column(f: Program, xs: Sequence[Real], j: int, m: int, mode: Any) -> list[Real]:
    derivative = pull(lambda d, *inner: f(*inner), len(xs), mode)
    return [_run(derivative, [*xs, *weights])[j] for weights in _units(m)]
