"""Special functions that solve differential equations.

They are Bessel, Airy, Kelvin, Struve, Mathieu, parabolic cylinder and spheroidal wave functions, integrals of these,
and the associated Legendre functions. Chapters 9 to 12, 14, 28 and 30 of the NIST Digital Library of Mathematical
Functions (https://dlmf.nist.gov).

Partials in orders and parameters are `unknown`, except in the order of `kv` and `kve`. If SciPy gives a function
together with its derivative, the second derivative follows from the differential equation. Functions scaled by
exp(-abs(x)) have a kink at 0, where this factor counts as flat.
"""

from typing import Any

import numpy as np
import scipy.special

from effgrad.arrays.layout import ndim_of
from effgrad.arrays.value import plain
from effgrad.errors import NoRule
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.elementwise import slope_of_absolute
from effgrad.primitives.given import as_computed
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.special.elementary import SQRT_PI, erfcx_slope, order_below
from effgrad.primitives.special.parameters import kve_order
from effgrad.primitives.special.table import enter, enter_parts, piecewise, real_only, sp, special, unknown
from effgrad.vocabulary import Function, Tangent, Value

# Bessel functions: chapter 10.


def _bessel(function: Function, below: int, above: int, scale: complex = 0.0) -> Function:
    """Return the partial of f(v, x) exp(scale x), where f' is (`below` f(v - 1) + `above` f(v + 1)) / 2."""

    def partial(y: Value, v: Value, x: Value) -> Value:
        slope = (below * function(v - 1, x) + above * function(v + 1, x)) / 2
        return slope + scale * y if scale else slope

    return partial


def _of_truncated_order(partial: Function) -> Function:
    """Return the partial of a function that truncates its order to an integer."""
    return lambda y, n, x: partial(y, np.trunc(plain(n)), x)


def _struve_term(v: Value, x: Value) -> Value:
    return (x / 2) ** v / (SQRT_PI * sp.gamma(v + 1.5))


enter({
    sp.j0: lambda y, x: -sp.j1(x),
    sp.j1: lambda y, x: (sp.j0(x) - sp.jv(2, x)) / 2,
    sp.y0: lambda y, x: -sp.y1(x),
    sp.y1: lambda y, x: (sp.y0(x) - sp.yv(2, x)) / 2,
    sp.i0: lambda y, x: sp.i1(x),
    sp.i1: lambda y, x: (sp.i0(x) + sp.iv(2, x)) / 2,
    sp.k0: lambda y, x: -sp.k1(x),
    sp.k1: lambda y, x: -(sp.k0(x) + sp.kv(2, x)) / 2,
    sp.i0e: lambda y, x: sp.i1e(x) - slope_of_absolute(x) * y,
    sp.i1e: lambda y, x: (sp.i0e(x) + sp.ive(2, x)) / 2 - slope_of_absolute(x) * y,
    sp.k0e: lambda y, x: y - sp.k1e(x),
    sp.k1e: lambda y, x: y - (sp.k0e(x) + sp.kve(2, x)) / 2,
    sp.jv: (unknown, _bessel(sp.jv, 1, -1)),
    sp.jve: (unknown, real_only("jve", _bessel(sp.jve, 1, -1))),
    sp.yv: (unknown, _bessel(sp.yv, 1, -1)),
    sp.yve: (unknown, real_only("yve", _bessel(sp.yve, 1, -1))),
    sp.yn: (unknown, _of_truncated_order(_bessel(sp.yv, 1, -1))),
    sp.iv: (unknown, _bessel(sp.iv, 1, 1)),
    sp.ive: (unknown, real_only(
        "ive", lambda y, v, x: (sp.ive(v - 1, x) + sp.ive(v + 1, x)) / 2 - slope_of_absolute(x) * y)),
    sp.kv: (real_only("kv", lambda y, v, x: np.exp(-x) * kve_order(v, x)), _bessel(sp.kv, -1, -1)),
    sp.kn: (unknown, _of_truncated_order(_bessel(sp.kv, -1, -1))),
    sp.kve: (real_only("kve", lambda y, v, x: kve_order(v, x)), _bessel(sp.kve, -1, -1, 1.0)),
    sp.hankel1: (unknown, _bessel(sp.hankel1, 1, -1)),
    sp.hankel2: (unknown, _bessel(sp.hankel2, 1, -1)),
    sp.hankel1e: (unknown, _bessel(sp.hankel1e, 1, -1, -1j)),
    sp.hankel2e: (unknown, _bessel(sp.hankel2e, 1, -1, 1j)),
    sp.struve: (unknown, lambda y, v, x: (sp.struve(v - 1, x) - sp.struve(v + 1, x) + _struve_term(v, x)) / 2),
    sp.modstruve: (
        unknown, lambda y, v, x: (sp.modstruve(v - 1, x) + sp.modstruve(v + 1, x) + _struve_term(v, x)) / 2
    ),
    # This is the integral of z**power J(order, 2 a z) over z in (0, 1).
    sp.besselpoly: (
        lambda y, a, power, order: (
            sp.besselpoly(a, power + 1, order - 1) - sp.besselpoly(a, power + 1, order + 1)
        ),
        unknown, unknown,
    ),
    sp.wright_bessel: (unknown, unknown, lambda y, a, b, x: sp.wright_bessel(a, a + b, x)),
    sp.log_wright_bessel: (
        unknown, unknown, lambda y, a, b, x: np.exp(sp.log_wright_bessel(a, a + b, x) - y)
    ),
    sp.itstruve0: lambda y, x: sp.struve(0, x),
    sp.it2struve0: lambda y, x: -sp.struve(0, x) / x,
    sp.itmodstruve0: lambda y, x: sp.modstruve(0, x),
})  # fmt: skip


def _spherical(function: Function, below: int, above: int) -> Primitive:
    """Return the primitive of a spherical Bessel function.

    Its derivative is computed from the functions of neighbouring orders, and is regular at 0.
    """

    def partial(y: Value, n: Value, x: Value) -> Value:
        lower, upper = primitive(order_below(n), x), primitive(n + 1, x)
        return (below * n * lower + above * (n + 1) * upper) / (2 * n + 1)

    primitive = special(function, unknown, partial)
    return primitive


spherical_jn = _spherical(sp.spherical_jn, 1, -1)
spherical_yn = _spherical(sp.spherical_yn, 1, -1)
spherical_in = _spherical(sp.spherical_in, 1, 1)
spherical_kn = _spherical(sp.spherical_kn, -1, -1)


def _of_spherical(function: Function, primitive: Primitive) -> Function:
    def rule(n: Value, z: Value, derivative: bool = False) -> Value:
        n = np.trunc(plain(n))  # SciPy truncates the order too
        return primitive.partials[1](None, n, z) if derivative else primitive(n, z)

    return as_computed(function, rule)


def _riccati(spherical: Primitive) -> Function:
    """Return a rule that gives x f(k, x) for k up to n, and its derivatives."""

    def rule(n: int, x: Value) -> tuple[Value, Value]:
        orders = np.arange(n + 1)
        values = spherical(orders, x)
        return x * values, values + x * spherical.partials[1](None, orders, x)

    return rule


# Integrals of Bessel functions. The difference from 1 in their derivatives loses its digits near 0, where a series is
# used.

_COEFFICIENTS = np.cumprod([0.25, *(0.25 / (k * k) for k in range(2, 12))]).tolist()


def _rest_over(function: Function, sign: int) -> Function:
    """Return a partial that is `sign` (f(x) - 1) / x, for a Bessel function f of order 0."""

    def series(x: Value) -> Value:
        z, total = sign * x * x, _COEFFICIENTS[-1]
        for coefficient in _COEFFICIENTS[-2::-1]:
            total = coefficient + z * total
        return x * total

    return lambda y, x: piecewise(
        np.abs(plain(x)) < 2, x, 1.0, series, 3.0, lambda x: sign * (function(x) - 1) / x
    )  # fmt: skip


# Some versions of SciPy compute the imaginary part of the integral left of 0 from its real part, which is wrong.
REFLECTS_REAL = abs(np.imag(scipy.special.modfresnelp(-1.0)[0]) - 0.9369253701) > 1e-6


def _modfresnel(sign: int) -> tuple[Value, Value]:
    """Return the partials of the Fresnel integral from x to infinity, and of a multiple that is erfcx on a diagonal."""
    turn = np.exp(-0.25j * np.pi * sign).item()

    def slope(x: Value) -> Value:
        derivative = -np.exp(1j * sign * x * x)
        return np.where(plain(x) < 0, (1 - 1j) * np.real(derivative), derivative) if REFLECTS_REAL else derivative

    return (
        (lambda y, x: slope(x),),
        (lambda y, x: turn / 2 * erfcx_slope(turn * x),),
    )


enter_parts({
    sp.itj0y0: ((lambda y, x: sp.j0(x),), (lambda y, x: sp.y0(x),)),
    sp.iti0k0: ((lambda y, x: sp.i0(x),), (lambda y, x: sp.k0(x),)),
    sp.it2j0y0: ((_rest_over(sp.j0, -1),), (lambda y, x: -sp.y0(x) / x,)),
    sp.it2i0k0: ((_rest_over(sp.i0, 1),), (lambda y, x: -sp.k0(x) / x,)),
    sp.itairy: (
        (lambda y, x: sp.airy(x)[0],), (lambda y, x: sp.airy(x)[2],),
        (lambda y, x: sp.airy(-x)[0],), (lambda y, x: sp.airy(-x)[2],),
    ),
    sp.modfresnelp: _modfresnel(1),
    sp.modfresnelm: _modfresnel(-1),
})  # fmt: skip


# Airy functions: chapter 9.


def _root(x: Value) -> Value:
    """Return the derivative of 2/3 x**1.5, by whose exponential `airye` scales.

    For a real x left of 0 it is 0, since the growing functions are not scaled there.
    """
    if is_complex(x):
        return np.sqrt(x)
    positive = plain(x) > 0
    return np.where(positive, np.sqrt(np.where(positive, x, 1.0)), 0.0)


enter_parts({
    sp.airy: (
        (lambda y, x: sp.airy(x)[1],), (lambda y, x: x * sp.airy(x)[0],),
        (lambda y, x: sp.airy(x)[3],), (lambda y, x: x * sp.airy(x)[2],),
    ),
    sp.airye: (
        (lambda y, x: sp.airye(x)[1] + _root(x) * y,), (lambda y, x: x * sp.airye(x)[0] + _root(x) * y,),
        (real_only("airye", lambda y, x: sp.airye(x)[3] - _root(x) * y),),
        (real_only("airye", lambda y, x: x * sp.airye(x)[2] - _root(x) * y),),
    ),
})  # fmt: skip


# Kelvin functions: section 10.61. Both pairs f + i g solve w'' + w' / x = i w.


def _over(y: Value, x: Value, at_0: complex) -> Value:
    zero = plain(x) == 0
    return np.where(zero, at_0, y / np.where(zero, 1.0, x))


enter({
    sp.ber: lambda y, x: sp.berp(x),
    sp.bei: lambda y, x: sp.beip(x),
    sp.ker: lambda y, x: sp.kerp(x),
    sp.kei: lambda y, x: sp.keip(x),
    sp.berp: lambda y, x: -sp.bei(x) - _over(y, x, 0.0),
    sp.beip: lambda y, x: sp.ber(x) - _over(y, x, 0.5),
    sp.kerp: lambda y, x: -sp.kei(x) - y / x,
    sp.keip: lambda y, x: sp.ker(x) - y / x,
})  # fmt: skip
enter_parts({
    sp.kelvin: (
        (lambda y, x: sp.kelvin(x)[2],), (lambda y, x: sp.kelvin(x)[3],),
        (lambda y, x: 1j * sp.kelvin(x)[0] - _over(y, x, 0.5j),), (lambda y, x: 1j * sp.kelvin(x)[1] - y / x,),
    )
})  # fmt: skip


# Functions that SciPy gives together with their derivatives.


def _solution(function: Any, second: Function, step: float = 1.0) -> Value:
    """Return the partials of a pair of a function and its derivative.

    SciPy's derivative is with respect to `step` times the last argument, which turns degrees into radians. `second`
    gives the second derivative.
    """
    constants = (unknown,) * (function.nin - 1)
    return (
        (*constants, lambda y, *args: step * function(*args)[1]),
        (*constants, lambda y, *args: step * second(*function(*args), *args)),
    )


def _mathieu(function: Function, characteristic: Value) -> Value:
    def second(y: Value, slope: Tangent, m: Value, q: Value, x: Value) -> Value:
        return (2 * q * sp.cosdg(2 * x) - characteristic(m, q)) * y

    return _solution(function, second, np.pi / 180)


def _modified_mathieu(function: Function, characteristic: Value) -> Value:
    def second(y: Value, slope: Tangent, m: Value, q: Value, x: Value) -> Value:
        return (characteristic(m, q) - 2 * q * np.cosh(2 * x)) * y

    return _solution(function, second)


def _spheroidal(function: Function, value: Value) -> Value:
    """Return the partials of a spheroidal wave function by the differential equation of section 30.2.

    An oblate radial function is the prolate radial function of an imaginary argument and an imaginary c.
    """
    oblate, angular = function.__name__.startswith("obl"), "ang" in function.__name__
    sign = 1 if oblate and not angular else -1

    def second(y: Value, slope: Tangent, m: Value, n: Value, c: Value, *rest: Value) -> Value:
        x = rest[-1]
        eigenvalue = rest[0] if len(rest) == 2 else value(m, n, c)
        weight = 1 + sign * x * x
        potential = eigenvalue + (1 if oblate and angular else -1) * (c * x) ** 2 - m * m / weight
        return sign * (potential * y - 2 * x * slope) / weight

    return _solution(function, second)


SPHEROIDAL = [
    (getattr(sp, f"{kind}_{form}{tail}"), getattr(sp, f"{kind}_cv"))
    # obl_rad2 is left out, because the slope that SciPy gives is not the slope of its values.
    for kind, forms in (("pro", ("ang1", "rad1", "rad2")), ("obl", ("ang1", "rad1")))
    for form in forms for tail in ("", "_cv")
]  # fmt: skip
enter_parts({
    sp.mathieu_cem: _mathieu(sp.mathieu_cem, sp.mathieu_a),
    sp.mathieu_sem: _mathieu(sp.mathieu_sem, sp.mathieu_b),
    sp.mathieu_modcem1: _modified_mathieu(sp.mathieu_modcem1, sp.mathieu_a),
    sp.mathieu_modcem2: _modified_mathieu(sp.mathieu_modcem2, sp.mathieu_a),
    sp.mathieu_modsem1: _modified_mathieu(sp.mathieu_modsem1, sp.mathieu_b),
    sp.mathieu_modsem2: _modified_mathieu(sp.mathieu_modsem2, sp.mathieu_b),
    sp.pbdv: _solution(sp.pbdv, lambda y, slope, v, x: (x * x / 4 - v - 0.5) * y),
    sp.pbvv: _solution(sp.pbvv, lambda y, slope, v, x: (x * x / 4 - v - 0.5) * y),
    sp.pbwa: _solution(sp.pbwa, lambda y, slope, a, x: (a - x * x / 4) * y),
    **{function: _spheroidal(function, value) for function, value in SPHEROIDAL},
})  # fmt: skip


# Legendre functions, chapter 14. On the sphere their derivatives use ladder operators, which are regular at the poles.


def _legendre_slope(y: Value, m: Value, v: Value, x: Value) -> Value:
    return ((v + 1) * x * y - (v - m + 1) * sp.lpmv(m, v + 1, x)) / (1 - x * x)


enter({sp.lpmv: (unknown, unknown, _legendre_slope)})


def _polar_value(n: Value, m: Value, theta: Value) -> Value:
    return scipy.special.sph_harm_y(n, m, theta, 0.0).real


def _polar_slope(y: Value, n: Value, m: Value, theta: Value) -> Value:
    n, m = plain(n), plain(m)

    def ladder(size: Value, m: Value) -> Value:
        inside = np.abs(m) <= n
        return np.sqrt(np.where(inside, size, 0.0)) * polar(n, np.where(inside, m, 0), theta)

    # On the other side of a pole, SciPy gives the values for the same distance from the pole.
    side = np.where(np.sin(plain(theta)) < 0, -0.5, 0.5)
    return side * (ladder((n - m) * (n + m + 1), m + 1) - ladder((n + m) * (n - m + 1), m - 1))


# The spherical harmonics at longitude 0.
polar: Primitive = special(_polar_value, unknown, unknown, _polar_slope)


def _sph_legendre_p(n: Value, m: Value, theta: Value, *, diff_n: int = 0) -> Value:
    if diff_n:
        raise NoRule("scipy.special.sph_legendre_p with diff_n has no derivative rule: differentiate its values")
    return np.stack([polar(n, m, theta)])


def _sph_harm_y(n: Value, m: Value, theta: Value, phi: Value, *, diff_n: int = 0) -> Value:
    if diff_n:
        raise NoRule("scipy.special.sph_harm_y with diff_n has no derivative rule: differentiate its values")
    return polar(n, m, theta) * np.exp(1j * m * phi)


def _sph_harm_y_all(n: int, m: int, theta: Value, phi: Value, *, diff_n: int = 0) -> Value:
    ndim = max(ndim_of(theta), ndim_of(phi))
    degrees = np.reshape(np.arange(n + 1), (-1, 1) + (1,) * ndim)
    orders = np.reshape(np.concatenate([np.arange(m + 1), np.arange(-m, 0)]), (-1,) + (1,) * ndim)
    inside = np.abs(orders) <= degrees
    return np.where(inside, _sph_harm_y(degrees, np.where(inside, orders, 0), theta, phi, diff_n=diff_n), 0.0)


def _legendre_p(n: Value, z: Value, *, diff_n: int = 0) -> Value:
    """Return the Legendre polynomial and its first `diff_n` derivatives, which are Gegenbauer polynomials."""
    rows, factor = [], 1.0
    for k in range(diff_n + 1):
        rows.append(factor * np.where(n < k, 0.0, sp.eval_gegenbauer(np.where(n < k, 0, n - k), k + 0.5, z)))
        factor *= 2 * k + 1
    return np.stack(rows)


def _legendre_p_all(n: int, z: Value, *, diff_n: int = 0) -> Value:
    return _legendre_p(np.reshape(np.arange(n + 1), (-1,) + (1,) * ndim_of(z)), z, diff_n=diff_n)


RULES: dict[str, Value] = {
    "spherical_jn": _of_spherical(scipy.special.spherical_jn, spherical_jn),
    "spherical_yn": _of_spherical(scipy.special.spherical_yn, spherical_yn),
    "spherical_in": _of_spherical(scipy.special.spherical_in, spherical_in),
    "spherical_kn": _of_spherical(scipy.special.spherical_kn, spherical_kn),
    "riccati_jn": _riccati(spherical_jn),
    "riccati_yn": _riccati(spherical_yn),
    "sph_legendre_p": _sph_legendre_p,
    "sph_harm_y": _sph_harm_y,
    "sph_harm_y_all": _sph_harm_y_all,
    "legendre_p": _legendre_p,
    "legendre_p_all": _legendre_p_all,
}
# Some of the functions came with SciPy 1.15.
RULES = {
    name: as_computed(getattr(scipy.special, name), rule) if "_p" in name else rule
    for name, rule in RULES.items() if hasattr(scipy.special, name)
}  # fmt: skip
