"""Eigenvalues and eigenvectors of a Hermitian matrix as series in t, where some eigenvalues are equal at t = 0.

Eigenspaces that are apart are separated by a series of unitary matrices, order by order. Within one of them, the rest
of the series is divided by t and has eigenvectors of its own, which are those that the vectors beside the point tend
to. Rellich's theorem says that both are series; and so are singular values and vectors.
Kato, Perturbation theory for linear operators (1995), section II.6.
"""

from typing import Any

from effgrad.arrays.laurent import Array, Laurent
from effgrad.arrays.reach import np

# Eigenvalues that are nearer to each other, relative to the largest, are equal.
EQUAL = 1e-10


def packed(a: Laurent) -> Laurent | None:
    """The eigenvalues as a row over the matrix of eigenvectors, for each matrix of a batch."""
    if a.start < 0 or a.end <= 0:
        return None
    c = _from_zero(a)
    *batch, n, _ = c.shape[1:]
    found = [eigen(part) for part in np.moveaxis(c.reshape(len(c), -1, n, n), 1, 0)]
    known = min((len(v) for _, v in found), default=1)
    rows = [np.concatenate([w[:known, None], v[:known]], axis=1) for w, v in found]
    return Laurent(0, np.stack(rows, axis=1).reshape(known, *batch, n + 1, n))


def packed_svd(a: Laurent) -> Laurent | None:
    """Left singular vectors, singular values and the transpose of the right vectors, raveled one after the other.

    They are eigenvectors of the Hermitian matrix with `a` and its transpose beside the diagonal. None where a singular
    value is 0: there it has a kink.
    """
    if a.start < 0 or a.end <= 0:
        return None
    c = _from_zero(a)
    *batch, m, n = c.shape[1:]
    rows = []
    for part in np.moveaxis(c.reshape(len(c), -1, m, n), 1, 0):
        both = np.zeros((len(c), m + n, m + n), c.dtype)
        both[:, :m, m:], both[:, m:, :m] = part, np.conj(np.swapaxes(part, 1, 2))
        w, v = eigen(both)
        last = np.arange(m + n - 1, m + n - 1 - min(m, n), -1)
        if not np.all(w[0, last] > EQUAL * np.abs(w[0]).max(initial=0.0)):
            return None
        s, v = w[: len(v), last], v[:, :, last] * 2**0.5
        vt = np.conj(np.swapaxes(v[:, m:], 1, 2))
        rows.append(np.concatenate([v[:, :m].reshape(len(s), -1), s, vt.reshape(len(s), -1)], axis=1))
    known = min(map(len, rows), default=1)
    size = (m + n + 1) * min(m, n)
    return Laurent(0, np.stack([row[:known] for row in rows], axis=1).reshape(known, *batch, size))


def _from_zero(a: Laurent) -> Array:
    """The coefficients from that of order 0 on."""
    lead = np.zeros((a.start, *a.coefficients.shape[1:]), a.coefficients.dtype)
    return np.concatenate([lead, a.coefficients])[: a.end]


def eigen(c: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors from coefficients of shape (terms, n, n); NaN for vectors that are not known."""
    terms, n, _ = c.shape
    w, v = np.linalg.eigh(c[0])
    groups = np.split(np.arange(n), np.flatnonzero(np.diff(w) > EQUAL * np.abs(w).max(initial=0.0)) + 1)
    if n == 1:
        return np.real(c[:, 0]), np.concatenate([np.ones((1, 1, 1)), np.zeros((terms - 1, 1, 1))])
    if len(groups) > 1:
        return _of_groups(np.matmul(np.matmul(np.conj(v).T, c), v), w, v, groups)
    mean = np.full((1, n), w.mean())
    if not c[1:].any():  # as far as is known, they are equal all along
        vectors = np.concatenate([np.eye(n)[None], np.zeros((terms - 1, n, n))])
        return np.concatenate([mean, np.zeros((terms - 1, n))]), vectors if terms > 1 else vectors * np.nan
    rest, vectors = eigen(c[1:])
    return np.concatenate([mean, rest])[: len(vectors)], vectors


def _of_groups(c: Array, w: Array, v: Array, groups: list[Array]) -> tuple[Array, Array]:
    """The eigenvectors of a series whose first coefficient is diagonal: each group by itself, once they are apart."""
    turn, blocks = _separated(c, w, groups)
    found = [eigen(blocks[:, group[:, None], group]) for group in groups]
    known = min(len(vectors) for _, vectors in found)
    inner = np.zeros((known, *c.shape[1:]), c.dtype)
    for group, (_, vectors) in zip(groups, found, strict=True):
        inner[:, group[:, None], group] = vectors[:known]
    product = [sum(turn[i] @ inner[k - i] for i in range(k + 1)) for k in range(known)]
    return np.concatenate([values[:known] for values, _ in found], axis=1), np.matmul(v, np.stack(product))


def _separated(c: Array, w: Array, groups: list[Array]) -> tuple[Array, Array]:
    """Unitary Q and block-diagonal D with C Q = Q D, where C begins with the diagonal matrix of `w`."""
    n = len(w)
    label = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    same = label[:, None] == label
    gaps: Any = np.where(same, 1.0, w[:, None] - w)
    q, d = [np.eye(n, dtype=c.dtype)], [np.diag(w).astype(c.dtype)]
    for k in range(1, len(c)):
        rest = sum(c[i] @ q[k - i] for i in range(1, k + 1)) - sum((q[i] @ d[k - i] for i in range(1, k)), 0.0)
        length = sum((np.conj(q[i]).T @ q[k - i] for i in range(1, k)), np.zeros((n, n)))
        q.append(np.where(same, -0.5 * length, -rest / gaps))
        d.append(np.where(same, rest, 0.0))
    return np.stack(q), np.stack(d)
