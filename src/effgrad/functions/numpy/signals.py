"""Convolutions, interpolation and polynomials, written with sums and products."""

from typing import Any

from effgrad.arrays.reach import np
from effgrad.arrays.value import composed, getitem, plain
from effgrad.primitives.complexes import conj, require_real
from effgrad.primitives.given import all_as_computed
from effgrad.primitives.joining import shape_of

# Convolutions and interpolation.


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """A product with the matrix of shifts of the shorter one."""
    if np.size(plain(a)) < np.size(plain(v)):
        a, v = v, a
    n, m = np.size(plain(a)), np.size(plain(v))
    offsets = np.arange(n + m - 1)[:, None] - np.arange(m)
    inside = (offsets >= 0) & (offsets < n)
    full = np.matmul(np.where(inside, np.ravel(a)[np.where(inside, offsets, 0)], 0.0), np.ravel(v))
    if mode == "full":
        return full
    if mode == "same":
        return full[(m - 1) // 2 : (m - 1) // 2 + n]
    return full[m - 1 : n]


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    if np.size(plain(a)) < np.size(plain(v)):
        return np.flip(conj(_correlate(v, a, mode)))
    return _convolve(a, np.flip(conj(v)), mode)


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = np.asarray(x), np.asarray(xp), np.asarray(fp)
    require_real(x, "numpy.interp in a complex point")
    if period is not None:
        x, xp, left, right = np.mod(x, period), np.mod(xp, period), None, None
        order = np.argsort(plain(xp))
        xp, fp = xp[order], fp[order]
        xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
    knots = plain(xp)
    i = np.clip(np.searchsorted(knots, plain(x), side="right") - 1, 0, np.size(knots) - 2)
    (f0, f1), (x0, x1) = ([getitem(values, i), getitem(values, i + 1)] for values in (fp, xp))
    inside = f0 + (f1 - f0) / (x1 - x0) * (x - x0)
    result = np.where(plain(x) < knots[0], fp[0] if left is None else left, inside)
    return np.where(plain(x) > knots[-1], fp[-1] if right is None else right, result)


def _polyval(p: Any, x: Any) -> Any:
    result = x * 0.0
    for i in range(len(p)):
        result = result * x + p[i]
    return result


def _polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(_without_leading_zeros(a1), _without_leading_zeros(a2))


def _without_leading_zeros(p: Any) -> Any:
    p = np.atleast_1d(p)
    kept = np.flatnonzero(plain(p))
    return p[int(kept[0]) :] if len(kept) else np.zeros(1)


def _polyadd(a1: Any, a2: Any) -> Any:
    a, b = np.atleast_1d(a1), np.atleast_1d(a2)
    n = max(shape_of(a)[0], shape_of(b)[0])
    return np.pad(a, (n - shape_of(a)[0], 0)) + np.pad(b, (n - shape_of(b)[0], 0))


def _polyder(p: Any, m: int = 1) -> Any:
    for _ in range(m):
        p = p[:-1] * np.arange(shape_of(p)[0] - 1, 0, -1)
    return p


def _polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    constants = np.zeros(m) if k is None else np.broadcast_to(k, (m,))
    for i in range(m):
        p = np.concatenate([p / np.arange(shape_of(p)[0], 0, -1), constants[i : i + 1]])
    return p


def _polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    matrix = np.vander(x, deg + 1)
    if w is not None:
        matrix, y = matrix * w[:, None], y * (w if np.ndim(plain(y)) == 1 else w[:, None])
    # The columns in one scale, as NumPy has them when it takes singular values below `rcond` for zero.
    scale = np.sqrt(np.sum(matrix * matrix, axis=0))
    limit = len(plain(x)) * np.finfo(float).eps if rcond is None else rcond
    one = np.ndim(plain(y)) == 1
    solution, residuals, rank, sizes = np.linalg.lstsq(matrix / scale, y, limit)
    solution = solution / (scale if one else scale[:, None])
    if full:
        return solution, residuals, rank, sizes, limit
    if not cov:
        return solution
    base = np.linalg.inv(np.matmul(matrix.T, matrix))
    factor = 1.0 if cov == "unscaled" else residuals / (shape_of(y)[0] - deg - 1)
    return solution, (base if one else base[:, :, None]) * factor


def _poly(seq_of_zeros: Any) -> Any:
    zeros = np.linalg.eigvals(seq_of_zeros) if np.ndim(plain(seq_of_zeros)) == 2 else np.atleast_1d(seq_of_zeros)
    result: Any = np.ones(1, np.result_type(plain(zeros)))
    for zero in zeros:
        result = np.pad(result, (0, 1)) - np.pad(result, (1, 0)) * zero
    # Zeros in conjugate pairs make real coefficients.
    paired = np.array_equal(np.sort_complex(plain(zeros)), np.sort_complex(np.conj(plain(zeros))))
    return np.real(result) if paired else result


def _roots(p: Any) -> Any:
    """The eigenvalues of the companion matrix, and zeros for the last coefficients that are zero."""
    kept = np.flatnonzero(plain(p))
    if len(kept) == 0:
        return np.array([])
    low = np.size(plain(p)) - 1 - int(kept[-1])
    p = p[int(kept[0]) : int(kept[-1]) + 1]
    n = np.size(plain(p)) - 1
    if n == 0:
        return np.zeros(low)
    companion = np.concatenate([np.reshape(-p[1:] / p[0], (1, n)), np.eye(n - 1, n)])
    return np.concatenate([np.linalg.eigvals(companion), np.zeros(low)])


def _polydiv(u: Any, v: Any) -> Any:
    u, v = np.atleast_1d(u) + 0.0, np.atleast_1d(v) + 0.0
    m, n = shape_of(u)[0], shape_of(v)[0]
    quotient = []
    for k in range(m - n + 1):
        factor = u[k] / v[0]
        quotient.append(factor)
        u = np.concatenate([u[:k], u[k : k + n] - factor * v, u[k + n :]])
    nonzero = np.flatnonzero(~(np.abs(plain(u)) <= 1e-8))  # what NumPy takes for zero
    rest = u[int(nonzero[0]) if len(nonzero) else -1 :]
    return (np.stack(quotient) if quotient else np.zeros(1)), rest


composed(all_as_computed({
    np.convolve: _convolve, np.correlate: _correlate, np.interp: _interp, np.polyval: _polyval, np.polymul: _polymul,
    np.polyadd: _polyadd, np.polysub: lambda a1, a2: _polyadd(a1, np.negative(a2)), np.polyder: _polyder,
    np.polyint: _polyint, np.polyfit: _polyfit, np.poly: _poly, np.roots: _roots, np.polydiv: _polydiv,
}))  # fmt: skip
