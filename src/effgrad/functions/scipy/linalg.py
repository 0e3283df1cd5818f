"""Rules for `scipy.linalg`: definitions by `numpy.linalg`, and primitives for triangular and banded systems and for LU.

A derivative is that of the function as SciPy computes it: if SciPy reads one triangle of a matrix, the derivative by
the other triangle is 0. Giles, An extended collection of matrix derivative results (2008).
"""

import scipy.linalg

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, example, plain
from effgrad.functions.scipy import banded, generalized_schur, matrix_functions, reduced_forms, schur, special_matrices
from effgrad.functions.scipy.matrix_functions import sylvester, unitary_factor
from effgrad.functions.scipy.signs import svd, with_phases, with_signs
from effgrad.functions.scipy.tables import constant, over_batches, reals, require, rules_of
from effgrad.primitives.complexes import conj
from effgrad.primitives.decomposition import real_where_real
from effgrad.primitives.factors import adjoint, hermitian_of_triangle
from effgrad.primitives.primitive import general
from effgrad.primitives.product import mT
from effgrad.primitives.triangular import triangle, triangular
from effgrad.vocabulary import Axis, Cotangent, Option, Reached, Tangent, Value


def _det(a: Value) -> Value:
    return a[..., 0, 0] if shape_of(a)[-2:] == (1, 1) else np.linalg.det(a)


# Triangular systems.


def _solve_triangular(a: Value, b: Value, trans: object = 0, lower: bool = False, unit_diagonal: bool = False) -> Value:
    a = conj(a) if trans in (2, "C") else a
    trans = {0: 0, 1: 1, 2: 1, "N": 0, "T": 1, "C": 1}[trans]
    return triangular(a, b, lower=bool(lower), trans=trans, unit=bool(unit_diagonal))


def _cholesky(a: Value, lower: bool = False) -> Value:
    return np.linalg.cholesky(a, upper=not lower)


# Before SciPy 1.18, the other triangle of the result keeps the elements of the argument.
KEEPS_OTHER_TRIANGLE = scipy.linalg.cho_factor(np.array([[2.0, 1.0], [1.0, 2.0]]))[0][1, 0] != 0


def _cho_factor(a: Value, lower: bool = False) -> Value:
    factor = _cholesky(a, lower)
    return factor + triangle(a, not lower, unit=True) if KEEPS_OTHER_TRIANGLE else factor, lower


def _solved_by_cholesky(c: Value, lower: Value, b: Value) -> Value:
    half = triangular(c if lower else conj(c), b, lower=bool(lower), trans=0 if lower else 1, unit=False)
    return triangular(conj(c) if lower else c, half, lower=bool(lower), trans=1 if lower else 0, unit=False)


_solve_by_cholesky = over_batches(_solved_by_cholesky, 2, 0, -1)


def _cho_solve(c_and_lower: Value, b: Value) -> Value:
    return _solve_by_cholesky(*c_and_lower, b)


# From SciPy 1.17, `solve` divides by a matrix of one element, all of it; a stack of such is read by its structure.
DIVIDES_BY_ELEMENT = scipy.linalg.solve([[2 + 1j]], [1.0], assume_a="her").imag[0] != 0


def _solve(a: Value, b: Value, lower: bool = False, assume_a: Value = None, transposed: bool = False) -> Value:
    if DIVIDES_BY_ELEMENT and size_of(a) == 1:
        return np.divide(b[:, None], a)[..., 0] if ndim_of(b) == 1 else np.divide(b, a)
    return _solve_by_structure(a, b, lower, assume_a, transposed)


def _solve_by_structure(a: Value, b: Value, lower: bool, assume_a: Value, transposed: bool = False) -> Value:
    if assume_a in ("upper triangular", "lower triangular"):
        return triangular(a, b, lower=assume_a.startswith("lower"), trans=int(transposed), unit=False)
    if assume_a in ("sym", "symmetric", "her", "hermitian", "pos", "positive definite"):
        hermitian = not assume_a.startswith("sym")
        a = hermitian_of_triangle(a, lower) if hermitian else triangle(a, lower) + mT(triangle(a, lower, unit=True))
    elif assume_a in ("diagonal", "tridiagonal"):
        width = int(assume_a == "tridiagonal")
        a = np.triu(np.tril(a, width), -width)
    return np.linalg.solve(mT(a) if transposed else a, b)


def _inv(a: Value, *, assume_a: object = None, lower: bool = False) -> Value:
    return np.linalg.inv(a) if assume_a is None else _solve_by_structure(a, np.eye(shape_of(a)[-1]), lower, assume_a)


# LU factors. The order of the rows, which the pivots choose, is a constant.


def _permutation(a: Value) -> Value:
    return scipy.linalg.lu(a, p_indices=True)[0]


def _packed(a: Value) -> Value:
    if not a.size:
        return np.empty_like(a)
    # `lu_factor` without its warning, which `lu` does not give.
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (a,))
    return getrf(a)[0]


def _lower_upper(packed: Value) -> tuple[Value, Value]:
    return triangle(packed, True, unit=True) + np.eye(shape_of(packed)[-1]), np.triu(packed)


def _invertible(upper: Value) -> Value:
    """Return a triangular factor with NaN for each zero on its diagonal, where the rows below have no derivative."""
    return upper + np.diag(np.where(np.diagonal(plain(upper)) == 0, np.nan, 0.0))


def _before_last(packed: Value) -> Value:
    """Return the upper factor with 1 for its last pivot, by which nothing is divided: it may be 0."""
    last = np.diag((np.arange(shape_of(packed)[-1]) == shape_of(packed)[-1] - 1) * 1.0)
    return _invertible(np.triu(packed) * (1 - last) + last)


def _packed_jvp(t: Tangent, y: Value, a: Value) -> Value:
    lower, upper = _lower_upper(y)
    change = triangular(y, t, lower=True, trans=0, unit=True)
    below = np.tril(mT(triangular(_before_last(y), mT(change), lower=False, trans=1, unit=False)), -1)
    return np.matmul(lower, below) + np.triu(change - np.matmul(below, upper))


def _packed_vjp(g: Cotangent, y: Value, a: Value) -> Value:
    lower, upper = _lower_upper(y)
    below = np.tril(np.matmul(mT(lower), np.tril(g, -1)) - np.matmul(np.triu(g), mT(upper)), -1)
    change = np.triu(g) + mT(triangular(_before_last(y), mT(below), lower=False, trans=0, unit=False))
    return triangular(y, change, lower=True, trans=1, unit=True)


packed_lu = general(_packed, jvp=_packed_jvp, vjp=_packed_vjp, name="lu_factor")


def _pivots(a: Value) -> Value:
    return scipy.linalg.lu_factor(a)[1]


def _factored(a: Value) -> tuple[Value, Value, Value]:
    """Return the order of the rows, and the factors of the rows in that order: (m, k) and (k, n) with k = min(m, n)."""
    # `lu` says where the rows of L go, which is the inverse of the order of the rows.
    order = evaluated(np.argsort, evaluated(_permutation, a))
    a, k = a[order], min(shape_of(a))
    m, n = shape_of(a)
    lower, upper = _lower_upper(packed_lu(a[:k, :k]))
    if m > n:
        below = triangular(_invertible(upper), mT(a[k:]), lower=False, trans=1, unit=False)
        return order, np.concatenate([lower, mT(below)], axis=0), upper
    if n > m:
        beside = triangular(lower, a[:, k:], lower=True, trans=0, unit=True)
        return order, lower, np.concatenate([upper, beside], axis=1)
    return order, lower, upper


def _lu(a: Value, permute_l: bool = False, p_indices: bool = False) -> Value:
    order, lower, upper = _factored(a)
    if permute_l:
        return lower[evaluated(np.argsort, order)], upper
    return (evaluated(_permutation, a) if p_indices else np.eye(shape_of(a)[0])[:, order], lower, upper)


def _lu_factor(a: Value) -> Value:
    _, lower, upper = _factored(a)
    m, n = shape_of(a)
    rest = np.zeros((max(m - n, 0), n))
    wide = np.zeros((m, max(n - m, 0)))
    packed = np.concatenate([np.tril(lower, -1), wide], axis=1) + np.concatenate([upper, rest], axis=0)
    return packed, evaluated(_pivots, a)


def _order(pivots: Value) -> Value:
    order = np.arange(len(pivots))
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order


def _solved_by_lu(packed: Value, pivots: Value, b: Value, trans: int) -> Value:
    order = evaluated(_order, pivots)
    if trans == 2:
        packed = conj(packed)
    if trans:
        half = triangular(packed, b, lower=False, trans=1, unit=False)
        return triangular(packed, half, lower=True, trans=1, unit=True)[evaluated(np.argsort, order)]
    half = triangular(packed, b[order], lower=True, trans=0, unit=True)
    return triangular(packed, half, lower=False, trans=0, unit=False)


_solve_by_lu = over_batches(_solved_by_lu, 2, 1, -1)


def _lu_solve(lu_and_piv: Value, b: Value, trans: int = 0) -> Value:
    return _solve_by_lu(*lu_and_piv, b, trans)


# Equations of Lyapunov and Riccati.


def _discrete_lyapunov(a: Value, q: Value, method: Option = None) -> Value:
    """Solve x = a x a^H + q as one linear system for all elements of x."""
    n = shape_of(a)[0]
    return np.reshape(np.linalg.solve(np.eye(n * n) - np.kron(a, conj(a)), np.ravel(q)), (n, n))


# Riccati equations. Newton's method starts at SciPy's solution, which counts as a constant, and each step doubles the
# number of derivatives that are right: Kleinman, On an iterative technique for Riccati equation computations (1968),
# and Hewer, An iterative technique for the computation of the steady state gains for the discrete optimal regulator
# (1971).
STEPS = 3


def _continuous_riccati(a: Value, b: Value, q: Value, r: Value) -> Value:
    reals("linalg.solve_continuous_are", a, b, q, r)
    x = evaluated(scipy.linalg.solve_continuous_are, a, b, q, r)
    for _ in range(STEPS):
        gain = np.linalg.solve(r, np.matmul(mT(b), x))
        closed = a - np.matmul(b, gain)
        x = sylvester(mT(closed), closed, -q - np.matmul(mT(gain), np.matmul(r, gain)))
    return x


def _discrete_riccati(a: Value, b: Value, q: Value, r: Value) -> Value:
    reals("linalg.solve_discrete_are", a, b, q, r)
    x = evaluated(scipy.linalg.solve_discrete_are, a, b, q, r)
    for _ in range(STEPS):
        xb = np.matmul(x, b)
        gain = np.linalg.solve(r + np.matmul(mT(b), xb), np.matmul(mT(xb), a))
        closed = a - np.matmul(b, gain)
        x = _discrete_lyapunov(mT(closed), q + np.matmul(mT(gain), np.matmul(r, gain)))
    return x


# Decompositions, by those of NumPy. Eigenvectors of Hermitian matrices get the signs of SciPy's LAPACK driver.


def _eigh(
    a: Value, b: Value = None, *, lower: bool = True, eigvals_only: bool = False, subset_by_index: Value = None
) -> Value:
    first, last = (0, None) if subset_by_index is None else (subset_by_index[0], subset_by_index[1] + 1)
    whole, factor = hermitian_of_triangle(a, lower), None
    if b is not None:
        factor = np.linalg.cholesky(hermitian_of_triangle(b, lower))
        half = triangular(factor, whole, lower=True, trans=0, unit=False)
        whole = triangular(factor, adjoint(half), lower=True, trans=0, unit=False)
    if eigvals_only:
        return np.linalg.eigvalsh(whole)[..., first:last]
    values, vectors = np.linalg.eigh(whole)
    if factor is not None:
        vectors = triangular(conj(factor), vectors, lower=True, trans=1, unit=False)

    vectors = with_phases(
        vectors, lambda a, *b: scipy.linalg.eigh(a, *b, lower=lower)[1], *((a,) if b is None else (a, b))
    )
    return values[..., first:last], vectors[..., first:last]


def _eig(a: Value, b: Value = None, right: bool = True) -> Value:
    require(b is None or not right, "linalg.eig", "right=False, of a generalised problem")
    if b is not None:
        return _eigvals(a, b)
    values, vectors = real_where_real(a)
    return (values + 0j, with_signs(vectors, lambda a: scipy.linalg.eig(a)[1], a)) if right else values + 0j


def _eigvals(a: Value, b: Value = None) -> Value:
    if b is None:
        return np.linalg.eigvals(a) + 0j
    plainly = example(b)
    regular = np.all(np.linalg.matrix_rank(plainly) == plainly.shape[-1])
    return np.linalg.eigvals(np.linalg.solve(b, a)) + 0j if regular else _eigvals_beside_infinity(a, b)


def _eigvals_beside_infinity(a: Value, b: Value) -> Value:
    """The eigenvalues of a pencil with a singular `b`, by a shift that is no eigenvalue; infinite ones are constant."""
    values = evaluated(scipy.linalg.eigvals, a, b)
    finite = np.isfinite(values)
    shift = evaluated(lambda v: 1.0 + 2.0 * np.max(np.abs(v[np.isfinite(v)]), initial=0.0), values)
    inverses = np.linalg.eigvals(np.linalg.solve(a - shift * b, b)) + 0j
    inverses = inverses[evaluated(_order_like, 1 / (values - shift), inverses)]
    return np.where(finite, shift + 1 / np.where(finite, inverses, 1.0), values)


def _order_like(wanted: Value, found: Value) -> Value:
    """For each wanted number, the index of the nearest number found; no index is used twice."""
    left = list(range(len(found)))
    return np.array([left.pop(int(np.argmin(np.abs(number - found[left])))) for number in np.nan_to_num(wanted)])


def _svd(a: Value, full_matrices: bool = True, compute_uv: bool = True) -> Value:
    return svd(a, full_matrices) if compute_uv else np.linalg.svd(a, compute_uv=False)


def _order_of_columns(a: Value) -> Value:
    return scipy.linalg.qr(a, mode="r", pivoting=True)[1]


def _qr(a: Value, mode: str = "full", pivoting: bool = False) -> Value:
    if pivoting and ndim_of(a) > 2:
        return over_batches(_qr, 2)(a, mode, pivoting)
    order = evaluated(_order_of_columns, a) if pivoting else None
    a = a if order is None else a[..., order]
    m, n = shape_of(a)[-2:]
    if mode == "raw":
        reflectors, tau = np.linalg.qr(a, mode="raw")
        parts: tuple[Value, ...] = ((mT(reflectors), tau), np.triu(mT(reflectors)[..., : min(m, n), :]))
    elif mode == "r":
        # SciPy's factor has the full shape.
        r = np.linalg.qr(a, mode="r")
        rest = np.zeros((*shape_of(a)[:-2], max(m - n, 0), n))
        parts = (np.concatenate([r, rest], axis=-2),)
    else:
        parts = tuple(np.linalg.qr(a, mode="complete" if mode == "full" else "reduced"))
    return parts if order is None else (*parts, order)


def _qr_multiply(a: Value, c: Value, mode: str = "right", pivoting: bool = False, conjugate: bool = False) -> Value:
    q, *rest = _qr(a, "economic", pivoting)
    q = conj(q) if conjugate else q
    return np.matmul(c, q) if mode == "right" else np.matmul(q, c), *rest


def _rq(a: Value, mode: str = "full") -> Value:
    """The factors of the matrix with its rows in reverse order by QR: of A^H, they are those of A in reverse order."""
    m, n = shape_of(a)[-2:]
    require(mode != "full" or m >= n, "linalg.rq", 'mode="economic" or "r" of a matrix with more columns than rows')
    q, r = np.linalg.qr(adjoint(a[..., ::-1, :]))
    r, q = adjoint(r)[..., ::-1, ::-1], adjoint(q)[..., ::-1, :]

    def phases(q: Value, a: Value) -> Value:
        along = np.sum(np.conj(q) * scipy.linalg.rq(a, mode="economic")[1], axis=-1)
        return along / np.abs(along)

    turn = evaluated(phases, q, a)
    r = r * np.conj(turn)[..., None, :]
    return r if mode == "r" else (r, turn[..., None] * q)


def _lstsq(a: Value, b: Value, cond: Value = None, lapack_driver: str | None = None) -> Value:
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond=cond)
    rank = evaluated(int, rank)  # SciPy gives a number of Python's
    if lapack_driver == "gelsy":  # which computes no residuals and no singular values
        return x, np.zeros(0, dtype_of(x)), rank, None
    return x, residuals[0] if ndim_of(b) == 1 and size_of(residuals) else residuals, rank, s


def _pinv(a: Value, *, rtol: Option = None, return_rank: bool = False) -> Value:
    shape = shape_of(a)
    rtol = max(shape[-2:]) * np.finfo(dtype_of(a)).eps if rtol is None else rtol
    inverse = np.linalg.pinv(a, rcond=rtol)
    if not return_rank:
        return inverse
    sizes = np.linalg.svd(a, compute_uv=False)
    return inverse, np.sum(sizes > rtol * np.max(sizes, axis=-1, keepdims=True), axis=-1)


def _polar(a: Value, side: str = "right") -> Value:
    factor = unitary_factor(a)
    return factor, np.matmul(adjoint(factor), a) if side == "right" else np.matmul(a, adjoint(factor))


def _norm(a: Value, ord: Option = None, axis: Axis = None, keepdims: bool = False) -> Value:
    if ord not in (None, 2) or axis is not None or keepdims or ndim_of(a) != 1:
        return np.linalg.norm(a, ord, axis, keepdims)
    # BLAS computes the norm of a vector without underflow or overflow. So the vector is scaled by a power of 2 to a
    # size near 1, where neither the norm nor its derivative underflows or overflows.
    top = np.max(np.abs(plain(a)), initial=0.0)
    size = np.exp2(np.floor(np.log2(np.where((top > 0) & (top < np.inf), top, 1.0))))
    return size * np.linalg.norm(a / size)


def _procrustes(A: Value, B: Value) -> Value:
    product = np.matmul(adjoint(A), B)
    return unitary_factor(product), np.linalg.norm(product, "nuc", axis=(-2, -1))


RULES: list[Reached] = rules_of(scipy.linalg, {
    **matrix_functions.RULES, **schur.RULES, **generalized_schur.RULES, **banded.RULES, **special_matrices.RULES,
    **reduced_forms.RULES,
    "cholesky": _cholesky, "cho_factor": over_batches(_cho_factor, 2), "cho_solve": _cho_solve,
    "solve": _solve, "inv": _inv, "det": _det, "solve_triangular": _solve_triangular, "lu": over_batches(_lu, 2),
    "lu_factor": over_batches(_lu_factor, 2), "lu_solve": _lu_solve,
    "solve_continuous_lyapunov": lambda a, q: sylvester(a, conj(mT(a)), q),
    "solve_lyapunov": lambda a, q: sylvester(a, conj(mT(a)), q),
    "solve_discrete_lyapunov": over_batches(_discrete_lyapunov, 2, 2),
    "eigh": _eigh,
    "eigvalsh": lambda a, b=None, *, lower=True, subset_by_index=None: _eigh(
        a, b, lower=lower, eigvals_only=True, subset_by_index=subset_by_index),
    "eig": _eig, "eigvals": _eigvals, "svd": _svd, "svdvals": lambda a: np.linalg.svd(a, compute_uv=False), "qr": _qr,
    "qr_multiply": over_batches(_qr_multiply, 2, -1), "rq": _rq,
    "lstsq": over_batches(_lstsq, 2, -1), "pinv": _pinv,
    "pinvh": lambda a, rtol=None, lower=True, return_rank=False: _pinv(
        hermitian_of_triangle(a, lower), rtol=rtol, return_rank=return_rank),
    "polar": _polar, "orthogonal_procrustes": _procrustes,
    "solve_continuous_are": _continuous_riccati, "solve_discrete_are": over_batches(_discrete_riccati, 2, 2, 2, 2),
    "bandwidth": constant(scipy.linalg.bandwidth), "issymmetric": constant(scipy.linalg.issymmetric),
    "ishermitian": constant(scipy.linalg.ishermitian),
    "norm": _norm,
})  # fmt: skip
