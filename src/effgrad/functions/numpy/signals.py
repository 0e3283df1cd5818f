"""Convolutions, interpolation and polynomials, defined by sums and products."""

from effgrad.arrays.layout import size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import composed, evaluated, getitem, plain
from effgrad.functions.numpy.sets import leading_zeros
from effgrad.primitives.complexes import conj, require_real
from effgrad.primitives.decomposition import in_their_order, order_of, real_where_real
from effgrad.primitives.given import all_as_computed
from effgrad.primitives.kinks import without
from effgrad.vocabulary import Value

# Convolutions and interpolation.


def _convolve(a: Value, v: Value, mode: str = "full") -> Value:
    """Return the product of the matrix of shifts of the longer array with the shorter array."""
    if size_of(a) < size_of(v):
        a, v = v, a
    n, m = size_of(a), size_of(v)
    offsets = np.arange(n + m - 1)[:, None] - np.arange(m)
    inside = (offsets >= 0) & (offsets < n)
    full = np.matmul(np.where(inside, np.ravel(a)[np.where(inside, offsets, 0)], 0.0), np.ravel(v))
    if mode == "full":
        return full
    if mode == "same":
        return full[(m - 1) // 2 : (m - 1) // 2 + n]
    return full[m - 1 : n]


def _correlate(a: Value, v: Value, mode: str = "valid") -> Value:
    if size_of(a) < size_of(v):
        return np.flip(conj(_correlate(v, a, mode)))
    return _convolve(a, np.flip(conj(v)), mode)


def _interp(
    x: Value, xp: Value, fp: Value, left: Value = None, right: Value = None, period: Value = None
) -> Value:
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


def _polymul(a1: object, a2: object) -> Value:
    return np.convolve(_without_leading_zeros(a1), _without_leading_zeros(a2))


def _without_leading_zeros(p: Value) -> Value:
    p, lost = np.atleast_1d(p), leading_zeros(p)
    return without(p[size_of(lost) :] if size_of(lost) < size_of(p) else np.zeros(1), lost)


def _roots(p: Value) -> Value:
    """Return the eigenvalues of the companion matrix, and a zero for each trailing coefficient that is zero."""
    leading = leading_zeros(p)
    if size_of(leading) == size_of(p):
        return np.array([])
    p, low = p[size_of(leading) :], size_of(leading_zeros(p[::-1]))
    if low == 1:  # a simple root, which moves with the last coefficient
        found = real_where_real(companion(p))[0]
        return without(np.take_along_axis(found, evaluated(_order_of_roots, p, found), axis=-1), leading)
    p, trailing = (p[:-low], p[-low:]) if low else (p, p[:0])
    roots = np.zeros(low)
    if size_of(p) > 1:
        matrix = companion(p)
        # In every version of NumPy the roots are real numbers if all of them are real.
        roots = np.concatenate([in_their_order(real_where_real(matrix)[0], matrix), roots])
    return without(roots, leading, trailing)


def _order_of_roots(p: Value, found: Value) -> Value:
    return order_of(np.roots(p), found)


def companion(p: Value) -> Value:
    """Return the companion matrix of a polynomial, whose coefficients begin with that of the highest power."""
    n = size_of(p) - 1
    return np.concatenate([np.reshape(-p[1:] / p[0], (1, n)), np.eye(n - 1, n)])


composed(all_as_computed({
    np.convolve: _convolve, np.correlate: _correlate, np.interp: _interp, np.polymul: _polymul,
    np.roots: _roots,
}))  # fmt: skip
