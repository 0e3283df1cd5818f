"""Eigenvalues and eigenvectors of a matrix as series in t, even if some eigenvalues are equal at t = 0.

The eigenspaces of different eigenvalues are separated, order by order, by a series of matrices, which is unitary if the
matrix is Hermitian. Within one eigenspace, the rest of the series is divided by t. Its eigenvectors are the limits of
the eigenvectors at t > 0. By Rellich's theorem, a Hermitian matrix has series of both eigenvalues and eigenvectors, and
so any matrix has series of singular values and vectors. Other matrices have no series if eigenvectors are missing at
t = 0. Kato, Perturbation theory for linear operators (1995), section II.6.

Eigenvalues that are nearly equal are merged too, because quotients by their difference cancel in a smooth function of
the matrix, and leave no digits. The part that is taken from the matrix is given back with the factor (t / THETA)**2, so
the series have their values at t = THETA.
"""

from typing import Any

from effgrad.arrays import laurent
from effgrad.arrays.laurent import Array, Laurent
from effgrad.arrays.reach import np

# Eigenvalues whose difference, relative to the largest, is smaller are merged.
NEAR = 1e-5
# If it is smaller, it counts as a rounding error.
EQUAL = 1e-13
# For singular values, so that many that are nearly 0, as of a noisy matrix of low rank, are merged without a remainder.
EQUAL_SIZES = 1e-10
# If the condition number of the eigenvectors is larger, the matrix counts as one without a basis of eigenvectors.
DEFECTIVE = 1e7


def packed(a: Laurent, hermitian: bool = True, lower: bool = True) -> Laurent | None:
    """Return the series of the eigenvalues, as a row above the matrix of eigenvectors, for each matrix of a batch.

    For a Hermitian matrix, `lower` says from which triangle LAPACK computes the signs of the eigenvectors at t = 0.
    """
    if a.start < 0 or a.end <= 0:
        return None
    c = a.from_zero()
    *batch, n, _ = c.shape[1:]
    parts = np.moveaxis(c.reshape(len(c), -1, n, n), 1, 0)
    found = [eigen(part, True, lower) if hermitian else normalized(part) for part in parts]
    merged = any(_merges(np.linalg.eigvalsh(part[0]) if hermitian else np.linalg.eigvals(part[0])) for part in parts)
    known = min((len(v) for _, v in found), default=1)
    rows = [np.concatenate([w[:known, None], v[:known]], axis=1) for w, v in found]
    return Laurent(0, np.stack(rows, axis=1).reshape(known, *batch, n + 1, n), merged)


def normalized(c: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of a general matrix, of length 1 and with their phases at t = 0.

    The vectors are NaN if they are real at t = 0 and complex elsewhere, since the program may have taken real numbers.
    """
    w, v = eigen(c, hermitian=False)
    if np.isrealobj(c) and not np.imag(np.linalg.eigvals(c[0])).any() and np.iscomplexobj(w):
        v = v * np.nan
    length = laurent.linear(lambda x: x.sum(0), laurent.multiply(Laurent(0, np.conj(v)), Laurent(0, v)))
    place = np.argmax(np.abs(v[0]), axis=0)
    largest = v[:, place, np.arange(v.shape[-1])]
    size = laurent.multiply(Laurent(0, largest), Laurent(0, np.conj(largest)))
    turn = laurent.multiply(Laurent(0, np.conj(largest) * largest[0] / np.abs(largest[0])), laurent.power(size, -0.5))
    normal = laurent.multiply(Laurent(0, v), laurent.multiply(turn, laurent.power(length, -0.5)))
    return w, normal.coefficients


def packed_svd(a: Laurent) -> Laurent | None:
    """Return left singular vectors, singular values and the transposed right vectors, raveled one after the other.

    They come from the eigenvectors of the Hermitian matrix with `a` and its adjoint off the diagonal. The result is
    None if a singular value is 0 up to the known order, since the two halves of its vector are then not a pair.
    """
    if a.start < 0 or a.end <= 0:
        return None
    c = a.from_zero()
    *batch, m, n = c.shape[1:]
    rows, merged = [], False
    for part in np.moveaxis(c.reshape(len(c), -1, m, n), 1, 0):
        both = np.zeros((len(c), m + n, m + n), c.dtype)
        both[:, :m, m:], both[:, m:, :m] = part, np.conj(np.swapaxes(part, 1, 2))
        w, v = eigen(both, equal=EQUAL_SIZES)
        merged |= _merges(np.linalg.eigvalsh(both[0]), EQUAL_SIZES)
        last = np.arange(m + n - 1, m + n - 1 - min(m, n), -1)
        s, v = w[: len(v), last], v[:, :, last] * 2**0.5
        if not np.allclose(np.linalg.norm(v[0, :m], axis=0), 1.0, atol=1e-6):
            return None
        # Vectors that are determined up to a phase at t = 0 get the phase that NumPy's have there.
        phase = np.sum(np.conj(v[0, :m]) * np.linalg.svd(part[0], full_matrices=False)[0], axis=0)
        size = np.abs(phase)
        v = v * np.where(np.abs(size - 1) < 1e-6, phase / np.where(size == 0, 1.0, size), 1.0)
        vt = np.conj(np.swapaxes(v[:, m:], 1, 2))
        rows.append(np.concatenate([v[:, :m].reshape(len(s), -1), s, vt.reshape(len(s), -1)], axis=1))
    known = min(map(len, rows), default=1)
    size = (m + n + 1) * min(m, n)
    return Laurent(0, np.stack([row[:known] for row in rows], axis=1).reshape(known, *batch, size), merged)


def _merges(w: Array, equal: float = EQUAL) -> bool:
    """Return whether some of the eigenvalues differ, but so little that they are merged."""
    gaps, size = np.abs(w[:, None] - w), np.abs(w).max(initial=0.0)
    return bool(np.any((gaps > equal * size) & (gaps <= NEAR * size)))


def eigen(
    c: Array, hermitian: bool = True, lower: bool = True, near: float = 0.0, equal: float = EQUAL
) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors from coefficients of shape (terms, n, n); unknown vectors are NaN.

    The eigenvectors of a general matrix are not normalized. Eigenvalues that differ by `near` are merged, and so are
    those that differ by little relative to the largest.
    """
    terms, n, _ = c.shape
    if n == 1:
        return c[:, 0], np.concatenate([np.ones((1, 1, 1)), np.zeros((terms - 1, 1, 1))])
    w, v = np.linalg.eigh(c[0], "L" if lower else "U") if hermitian else np.linalg.eig(c[0])
    if np.isrealobj(c) and not np.imag(w).any():  # NumPy 2.5 returns complex numbers for every general matrix
        w, v = np.real(w), np.real(v)
    condition = 1.0 if hermitian else np.linalg.cond(v)
    if not condition < DEFECTIVE:
        return w[None], v[None] * np.nan
    near = max(near, NEAR * np.abs(w).max(initial=0.0))
    rounding = near * equal / NEAR * condition
    w = _without_rounding(w, rounding)
    groups, inverse = _groups(w, near), np.conj(v).T if hermitian else np.linalg.inv(v)
    if len(groups) > 1:
        return _of_groups(np.matmul(np.matmul(inverse, c), v), w, v, groups, hermitian, near, equal)
    mean = np.full((1, n), 0.0 if np.abs(w.mean()) <= rounding else w.mean())
    if (w != mean).any() and len(c) > 2:
        c = np.concatenate([c[:2], c[2:3] + np.matmul(v * (w - mean), inverse) / laurent.THETA**2, c[3:]])
    if not c[1:].any():  # up to the known order, the eigenvalues are equal all along the path
        vectors = np.concatenate([np.eye(n)[None], np.zeros((terms - 1, n, n))])
        return np.concatenate([mean, np.zeros((terms - 1, n))]), vectors if terms > 1 else vectors * np.nan
    rest, vectors = eigen(c[1:], hermitian)
    return np.concatenate([mean, rest])[: len(vectors)], vectors


def _without_rounding(w: Array, rounding: float) -> Array:
    """Return eigenvalues, equal where only rounding tells them apart, and 0 where it tells them from 0.

    Real ones of opposite signs, as those of singular values, stay opposite.
    """
    w = np.where(np.abs(w) <= rounding, 0.0, w)
    sizes, signs = (w, 1.0) if np.iscomplexobj(w) else (np.abs(w), np.sign(w))
    for group in _groups(sizes, rounding):
        sizes[group] = sizes[group].mean()
    return sizes * signs


def _groups(w: Array, near: float) -> list[Array]:
    """Return the positions of the eigenvalues, in groups of equal ones."""
    left, groups = np.arange(len(w)), []
    while left.size:
        equal = np.abs(w[left] - w[left[0]]) <= near
        groups.append(left[equal])
        left = left[~equal]
    return groups


def _of_groups(
    c: Array, w: Array, v: Array, groups: list[Array], hermitian: bool, near: float, equal: float
) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of a series whose first coefficient is diagonal with the elements `w`.

    The groups of equal eigenvalues are separated, and then each group is solved by itself. The vectors are multiplied
    by `v`.
    """
    turn, blocks = _separated(c, w, groups, hermitian)
    found = [eigen(blocks[:, group[:, None], group], hermitian, near=near, equal=equal) for group in groups]
    known = min(len(vectors) for _, vectors in found)
    dtype = np.result_type(c, *[vectors for _, vectors in found])
    values, inner = np.zeros((known, len(w)), np.result_type(w, dtype)), np.zeros((known, *c.shape[1:]), dtype)
    for group, (rows, vectors) in zip(groups, found, strict=True):
        values[:, group], inner[:, group[:, None], group] = rows[:known], vectors[:known]
    product = [sum(turn[i] @ inner[k - i] for i in range(k + 1)) for k in range(known)]
    return np.real(values) if hermitian else values, np.matmul(v, np.stack(product))


def _separated(c: Array, w: Array, groups: list[Array], hermitian: bool) -> tuple[Array, Array]:
    """Return the series Q and the block-diagonal series D with C Q = Q D.

    C begins with the diagonal matrix of `w`, and Q is unitary if C is Hermitian.
    """
    n = len(w)
    label = np.zeros(n, int)
    for number, group in enumerate(groups):
        label[group] = number
    same = label[:, None] == label
    gaps: Any = np.where(same, 1.0, w[:, None] - w)
    q, d = [np.eye(n, dtype=c.dtype)], [np.diag(w).astype(c.dtype)]
    for k in range(1, len(c)):
        rest = sum(c[i] @ q[k - i] for i in range(1, k + 1)) - sum((q[i] @ d[k - i] for i in range(1, k)), 0.0)
        length = sum((np.conj(q[i]).T @ q[k - i] for i in range(1, k)), np.zeros((n, n))) if hermitian else 0.0
        q.append(np.where(same, -0.5 * length, -rest / gaps))
        d.append(np.where(same, rest, 0.0))
    return np.stack(q), np.stack(d)
