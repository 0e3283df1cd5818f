"""Elliptic integrals and functions in Legendre's and in Carlson's form.

Chapters 19 and 22 of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov).

Carlson's symmetric integrals are differentiated through his algorithm. Every duplication brings the arguments four
times closer to each other, and a series around their mean gives the integral. Carlson, Numerical computation of real or
complex elliptic integrals (1995). The derivatives of Legendre's integrals follow from Carlson's, without the
cancellations of the textbook formulas.
"""

import numpy as np

from effgrad.arrays.value import UFUNCS, plain
from effgrad.primitives.given import all_as_computed
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.special.table import enter, enter_parts, sp, special
from effgrad.vocabulary import Tangent, Value

# With this number of duplications, the error of the truncated series is negligible. It is of the sixth order in the
# relative distance of the arguments.
DUPLICATIONS = 8


def _duplicated(*args: Value) -> tuple[Value, list[Value]]:
    """Return the square roots of the first three arguments, and the arguments after one duplication."""
    x, y, z = roots = [np.sqrt(a) for a in args[:3]]
    shift = x * y + y * z + z * x
    return roots, [(a + shift) / 4 for a in args]


def _rf(x: Value, y: Value, z: Value) -> Value:
    args = [x, y, z]
    for _ in range(DUPLICATIONS):
        _, args = _duplicated(*args)
    mean = (args[0] + args[1] + args[2]) / 3
    a, b = 1 - args[0] / mean, 1 - args[1] / mean
    c = -(a + b)
    e2, e3 = a * b - c * c, a * b * c
    return (1 - e2 / 10 + e3 / 14 + e2 * e2 / 24 - 3 * e2 * e3 / 44) / np.sqrt(mean)


def _rc(x: Value, y: Value) -> Value:
    # For a y left of 0, this is Cauchy's principal value (19.2.20).
    negative = _is_negative(y)
    gap = np.where(negative, x - y, 1.0)
    positive = np.where(negative, -y, y)
    inside = _rf(np.where(negative, gap, x), positive, positive)
    return np.where(negative, np.sqrt(np.where(negative, x, 1.0) / gap), 1.0) * inside


def _is_negative(x: Value) -> Value:
    return (np.real(plain(x)) < 0) & (np.imag(plain(x)) == 0)


def _series(mean: Value, e2: Value, e3: Value, e4: Value, e5: Value) -> Value:
    total = 1 - 3 * e2 / 14 + e3 / 6 + 9 * e2 * e2 / 88 - 3 * e4 / 22 - 9 * e2 * e3 / 52 + 3 * e5 / 26
    return total / 4**DUPLICATIONS / (mean * np.sqrt(mean))


def _rd(x: Value, y: Value, z: Value) -> Value:
    args, total = [x, y, z], 0.0
    for power in range(DUPLICATIONS):
        roots, closer = _duplicated(*args)
        total = total + 3 / 4 ** (power + 1) / (roots[2] * closer[2])
        args = closer
    mean = (args[0] + args[1] + 3 * args[2]) / 5
    a, b = 1 - args[0] / mean, 1 - args[1] / mean
    c, ab = -(a + b) / 3, a * b
    cc = c * c
    return total + _series(mean, ab - 6 * cc, (3 * ab - 8 * cc) * c, 3 * (ab - cc) * cc, ab * cc * c)


def _rj(x: Value, y: Value, z: Value, p: Value) -> Value:
    x, z = _swapped(np.real(plain(x)) > np.real(plain(z)), x, z)
    y, z = _swapped(np.real(plain(y)) > np.real(plain(z)), y, z)
    # Left of 0 the integral is Cauchy's principal value (19.20.14), and far beyond the other arguments p comes closer
    # to them too slowly. In both cases it follows from the integral for a p near the largest of them (19.21.12).
    negative, far = _is_negative(p), np.real(plain(p)) > 2 * np.real(plain(z))
    sign, positive = np.where(negative, -1.0, 1.0), np.where(negative, -p, p)
    gap = np.where(negative | far, (p - z) * sign, 1.0)
    shift = np.where(negative | far, sign * (z - x) * (z - y) / gap, 0.0)
    inside = _rj_near(x, y, z, np.where(negative | far, z + shift, p))
    product = (z + shift) * positive
    first = x * y + np.where(negative, product, 0.0)
    root = [np.sqrt(np.where(negative, value, 1.0)) for value in (x, y, first)]
    weight = np.sqrt(z) * root[0] * root[1] / root[2]
    rest = sp.elliprf(x, y, z) - weight * sp.elliprc(first, product)
    return np.where(negative | far, sign * (3 * rest - shift * inside) / gap, inside)


def _swapped(condition: Value, a: Value, b: Value) -> tuple[Value, Value]:
    return np.where(condition, b, a), np.where(condition, a, b)


def _rj_near(x: Value, y: Value, z: Value, p: Value) -> Value:
    args, total, gaps = [x, y, z, p], 0.0, (p - x) * (p - y) * (p - z)
    for power in range(DUPLICATIONS):
        roots, closer = _duplicated(*args)
        root = np.sqrt(args[3])
        product = (root + roots[0]) * (root + roots[1]) * (root + roots[2])
        gap = gaps / (64**power * product * product)
        total = total + 6 / (4**power * product) * sp.hyp2f1(0.5, 1.0, 1.5, -gap)
        args = closer
    mean = (args[0] + args[1] + args[2] + 2 * args[3]) / 5
    a, b, c = (1 - value / mean for value in args[:3])
    d, abc = -(a + b + c) / 2, a * b * c
    dd = d * d
    e2 = a * b + b * c + c * a - 3 * dd
    return total + _series(mean, e2, abc + 2 * e2 * d + 4 * d * dd, (2 * abc + e2 * d + 3 * d * dd) * d, abc * dd)


def _rg_slope(x: Value, y: Value, z: Value) -> Value:
    """Return the partial of the integral of the second kind in x, an integral over t / (t + x)."""
    zero, others = plain(x) == 0, (plain(y) == 0) & (plain(z) == 0)
    inside = np.where(zero, 1.0, x) * sp.elliprd(y, z, np.where(zero, 1.0, x)) / 3
    slope = (sp.elliprf(x, y, z) - np.where(zero, 0.0, inside)) / 4
    return np.where(others & ~zero, 1 / (4 * np.sqrt(np.where(zero, 1.0, x))), slope)


UFUNCS.enter(all_as_computed({
    sp.elliprf: _rf, sp.elliprc: _rc, sp.elliprd: _rd, sp.elliprj: _rj,
}))  # fmt: skip
enter({sp.elliprg: (
    lambda g, x, y, z: _rg_slope(x, y, z), lambda g, x, y, z: _rg_slope(y, z, x), lambda g, x, y, z: _rg_slope(z, x, y),
)})  # fmt: skip


# Complete integrals, which are hypergeometric functions of the parameter.


def _e_below_1(rest: Value) -> Value:
    return sp.ellipe(1 - rest)


# E as a function of 1 - m, for m near 1, where m itself has lost digits.
e_below_1: Primitive = special(_e_below_1, lambda y, rest: (sp.ellipkm1(rest) - y) / (2 * (1 - rest)))


def _k_slope(m: Value, rest: Value) -> Value:
    """Return the derivative of the complete elliptic integral K in its parameter m = 1 - rest."""

    def near_1(rest: Value) -> Value:
        # This is (E - rest K) / (2 m rest), which cancels only for small m.
        return (e_below_1(rest) - rest * sp.ellipkm1(rest)) / (2 * (1 - rest) * rest)

    return np.where(
        plain(m) > 0.5,
        near_1(np.where(plain(m) > 0.5, rest, 0.5)),
        np.pi / 8 * sp.hyp2f1(1.5, 1.5, 2.0, np.where(plain(m) > 0.5, 0.0, m)),
    )


def _e_slope(m: Value) -> Value:
    return -np.pi / 8 * sp.hyp2f1(0.5, 1.5, 2.0, m)


# Incomplete integrals, reduced to an amplitude within a quarter period plus multiples of the half period.


def _reduced(phi: Value) -> tuple[Value, Value]:
    turns = np.rint(plain(phi) / np.pi)
    return turns, phi - turns * np.pi


def _f_parameter(y: Value, phi: Value, m: Value) -> Value:
    turns, phi = _reduced(phi)
    s, c = np.sin(phi), np.cos(phi)
    inside = s**3 / 6 * sp.elliprd(c * c, 1.0, 1 - m * s * s)
    return inside if not np.any(turns) else inside + _periods(turns, lambda m: _k_slope(m, 1 - m), m)


def _e_parameter(y: Value, phi: Value, m: Value) -> Value:
    turns, phi = _reduced(phi)
    s, c = np.sin(phi), np.cos(phi)
    inside = -(s**3) / 6 * sp.elliprd(c * c, 1 - m * s * s, 1.0)
    return inside if not np.any(turns) else inside + _periods(turns, _e_slope, m)


def _periods(turns: Value, slope: Tangent, m: Value) -> Value:
    # Without turns the slope of the period is not used, as it is infinite at m = 1.
    return np.where(turns == 0, 0.0, 2 * turns * slope(np.where(turns == 0, 0.5, m)))


enter({
    sp.ellipk: lambda y, m: _k_slope(m, 1 - m),
    sp.ellipkm1: lambda y, p: -_k_slope(1 - p, p),
    sp.ellipe: lambda y, m: _e_slope(m),
    sp.ellipkinc: (lambda y, phi, m: 1 / np.sqrt(1 - m * np.sin(phi) ** 2), _f_parameter),
    sp.ellipeinc: (lambda y, phi, m: np.sqrt(1 - m * np.sin(phi) ** 2), _e_parameter),
    sp.agm: (lambda y, a, b: _agm(a, b), lambda y, a, b: _agm(b, a)),
})  # fmt: skip


def _agm(a: Value, b: Value) -> Value:
    """Return the partial of the arithmetic-geometric mean in its first argument."""
    # agm(a, b) = pi (a + b) / (4 K(1 - q)), where q is the squared ratio of the geometric and the arithmetic mean.
    s = a + b
    zero = (plain(a) == 0) | (plain(b) == 0)  # the mean is 0 there, and rises steeply in the argument that is 0
    s = np.where(zero, 1.0, s)
    q = np.where(zero, 0.5, 4 * (a / s) * (b / s))
    k = sp.ellipkm1(q)
    slope = 4 * (b / s) * ((b - a) / s)  # s times the partial of q
    inside = np.pi / (4 * k) * (1 + slope * _k_slope(1 - q, q) / k)
    return np.where(zero, np.where(plain(b) == 0, 0.0, np.inf), inside)


# Jacobi's elliptic functions, whose amplitude is the inverse of the incomplete integral.


def _amplitude_parameter(u: Value, m: Value) -> Value:
    _, _, dn, phi = sp.ellipj(u, m)
    return -dn * _f_parameter(None, phi, m)


def _dn_parameter(y: Value, u: Value, m: Value) -> Value:
    sn, cn, _, _ = sp.ellipj(u, m)
    return -sn * (sn + 2 * m * cn * _amplitude_parameter(u, m)) / (2 * y)


enter_parts({
    sp.ellipj: (
        (
            lambda y, u, m: sp.ellipj(u, m)[1] * sp.ellipj(u, m)[2],
            lambda y, u, m: sp.ellipj(u, m)[1] * _amplitude_parameter(u, m),
        ),
        (
            lambda y, u, m: -sp.ellipj(u, m)[0] * sp.ellipj(u, m)[2],
            lambda y, u, m: -sp.ellipj(u, m)[0] * _amplitude_parameter(u, m),
        ),
        (lambda y, u, m: -m * sp.ellipj(u, m)[0] * sp.ellipj(u, m)[1], _dn_parameter),
        (lambda y, u, m: sp.ellipj(u, m)[2], lambda y, u, m: _amplitude_parameter(u, m)),
    )
})  # fmt: skip
