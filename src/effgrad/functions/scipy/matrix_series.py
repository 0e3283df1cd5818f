"""Functions of matrices, and the Sylvester equations of their derivatives, as series in t.

The coefficients are computed one after another, each from those before it, so that a series of n terms takes n
equations. By its derivatives, which nest, each term would take twice as long as the one before it: a third of the
search for the limit of an energy, whose orbitals a power of a matrix makes orthogonal, was one logarithm.
"""

import numpy as np
import scipy.linalg

from effgrad.arrays import laurent
from effgrad.arrays.laurent import Array, Laurent

# The Pade approximant of log(I + Z) of order 8 is the Gauss-Legendre quadrature of Z (I + s Z)^-1 over [0, 1].
POINTS, WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(8))
# The constant terms of a root that is nearer to the identity have a logarithm by the approximant.
NEAR, MOST_ROOTS = 0.05, 100


def sylvester(a: Laurent, b: Laurent, q: Laurent) -> Laurent | None:
    """Return the solution x of a x + x b = q; None for a batch, and where the constant terms have no one solution."""
    if min(a.start, b.start) < 0 or a.end <= 0 or b.end <= 0 or max(c.coefficients.ndim for c in (a, b, q)) > 3:
        return None
    if q.coefficients.ndim != 3:
        return None
    left, right, kind = a.from_zero(), b.from_zero(), np.result_type(a.coefficients, b.coefficients, q.coefficients)
    first, second = left[0].astype(kind), right[0].astype(kind)
    found: list[Array] = []
    for k in range(min(len(left), len(right), len(q.coefficients))):
        rest = q.coefficients[k].astype(kind)
        for j in range(1, k + 1):
            rest = rest - left[j] @ found[k - j] - found[k - j] @ right[j]
        solution = _solution(first, second, rest)
        if solution is None:
            return None
        found.append(solution)
    return Laurent(q.start, np.stack(found))


def _solution(a: Array, b: Array, q: Array) -> Array | None:
    """Return the solution of an equation of plain matrices, or None where there is none."""
    try:
        x: Array = scipy.linalg.solve_sylvester(a, b, q)
    except (np.linalg.LinAlgError, ValueError):
        return None
    return x if np.isfinite(x).all() else None


def root(a: Laurent) -> Laurent | None:
    """Return the square root of a matrix whose constant term has one that is not singular; else None."""
    if a.start != 0 or a.coefficients.ndim != 3:
        return None
    first = np.asarray(scipy.linalg.sqrtm(a.coefficients[0]))
    if not np.isfinite(first).all() or np.linalg.cond(first) > 1 / laurent.ROUNDING:
        return None
    found = [first]
    for rest in a.coefficients[1:]:
        known = sum((found[j] @ found[-j] for j in range(1, len(found))), start=np.zeros_like(first))
        solution = _solution(first, first, (rest - known).astype(np.result_type(rest, first)))
        if solution is None:
            return None
        found.append(solution)
    return Laurent(0, np.stack(found), a.merged)


def log(a: Laurent) -> Laurent | None:
    """Return the logarithm of a matrix whose constant term has one; else None."""
    identity, roots, near = np.eye(a.coefficients.shape[-1]), 0, a
    while near.coefficients.ndim == 3 and np.linalg.norm(near.coefficients[0] - identity, 1) > NEAR:
        further = root(near)
        if further is None or roots == MOST_ROOTS:
            return None
        near, roots = further, roots + 1
    if near.coefficients.ndim != 3 or near.start != 0:
        return None
    rest = laurent.subtract(near, laurent.constant(identity))
    total: list[Laurent] = []
    for point, weight in zip(0.5 + POINTS, WEIGHTS, strict=True):
        divisor = laurent.add(laurent.constant(identity), Laurent(rest.start, point * rest.coefficients))
        part = laurent.solved(divisor, rest)
        total.append(Laurent(part.start, 2.0**roots * weight * part.coefficients, a.merged))
    return laurent.linear(lambda *parts: sum(parts), *total)
