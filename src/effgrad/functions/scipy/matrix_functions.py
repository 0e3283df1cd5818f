"""Rules for `scipy.linalg`: functions of matrices, and the Sylvester equations that their derivatives solve.

The derivative of an entire function of a matrix is a block of the function of a larger matrix, f([[A, E], [0, A]]) =
[[f(A), L(A, E)], [0, f(A)]]: Mathias, A chain rule for matrix functions and applications (1996).

A function with a branch cut could take that larger matrix to be on the other side of the cut. So its derivative is
computed from the result: Y dY + dY Y = dA for Y = sqrtm(A), and N dS + dS N = dA - S dA S with N = A S for
S = signm(A). The unitary factor Q of A = Q H has dQ = Q X with H X + X H = Q^H dA - dA^H Q: Higham, Functions of
matrices (2008), chapter 8. The derivative of the logarithm is taken through square roots until the root is near the
identity, and there it is the derivative of a Pade approximant: Al-Mohy, Higham and Relton, Computing the Frechet
derivative of the matrix logarithm and estimating the condition number (2013).
"""

import scipy.linalg

from effgrad.arrays import laurent
from effgrad.arrays.layout import dtype_of, ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, plain
from effgrad.functions.scipy import matrix_series
from effgrad.functions.scipy.matrix_series import MOST_ROOTS, POINTS, WEIGHTS
from effgrad.functions.scipy.tables import over_batches, require
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.factors import adjoint
from effgrad.primitives.primitive import Primitive, general
from effgrad.primitives.product import mT
from effgrad.vocabulary import Cotangent, Function, Value

# Sylvester equations a x + x b = q.


def _sylvester_value(a: Value, b: Value, q: Value) -> Value:
    # All three get one dtype: SciPy computes real Schur forms of real matrices, which have 2 by 2 blocks, and LAPACK's
    # complex solver does not expect these.
    a, b = (np.asarray(x).astype(np.result_type(a, b, q), copy=False) for x in (a, b))
    if max(map(np.ndim, (a, b, q))) == 2:
        return scipy.linalg.solve_sylvester(a, b, q)
    batch = np.broadcast_shapes(*(np.shape(x)[:-2] for x in (a, b, q)))
    a, b, q = (np.broadcast_to(x, batch + np.shape(x)[-2:]) for x in (a, b, q))
    result = np.empty(q.shape, np.result_type(a, b, q))
    for place in np.ndindex(batch):
        result[place] = scipy.linalg.solve_sylvester(a[place], b[place], q[place])
    return result


def _nan_if_singular(a: Value, b: Value) -> Value:
    """Return 1 if the equation has one solution, else NaN: `a` and `-b` must have no common eigenvalue, to rounding."""
    first, second = np.linalg.eigvals(a)[..., :, None], np.linalg.eigvals(b)[..., None, :]
    size = np.max(np.abs(first), axis=(-2, -1), initial=0.0) + np.max(np.abs(second), axis=(-2, -1), initial=0.0)
    least = np.min(np.abs(first + second), axis=(-2, -1), initial=np.inf)
    return np.where(least <= SINGULAR * size, np.nan, 1.0)[..., None, None]


def _sylvester_or_nan(a: Value, b: Value, q: Value) -> Value:
    """The solution of a Sylvester equation in a derivative; it is NaN where rounding alone would choose a solution."""
    return sylvester(a, b, q) * evaluated(_nan_if_singular, a, b)


# Eigenvalues smaller than this, relative to the largest, count as 0 with a rounding error.
SINGULAR = 1e-13
sylvester: Primitive = general(
    _sylvester_value,
    jvp=(
        lambda t, y, a, b, q: -_sylvester_or_nan(a, b, np.matmul(t, y)),
        lambda t, y, a, b, q: -_sylvester_or_nan(a, b, np.matmul(y, t)),
        lambda t, y, a, b, q: _sylvester_or_nan(a, b, t),
    ),
    vjp=(
        lambda g, y, a, b, q: -np.matmul(_sylvester_or_nan(mT(a), mT(b), g), mT(y)),
        lambda g, y, a, b, q: -np.matmul(mT(y), _sylvester_or_nan(mT(a), mT(b), g)),
        # SciPy takes a number for a multiple of the identity.
        lambda g, y, a, b, q: (np.asarray if ndim_of(q) else np.trace)(_sylvester_or_nan(mT(a), mT(b), g)),
    ),
    name="solve_sylvester",
    series=matrix_series.sylvester,
)


def _solve_sylvester(a: Value, b: Value, q: Value) -> Value:
    batch = np.broadcast_shapes(*(shape_of(x)[:-2] for x in (a, b, q)))
    return sylvester(*(
        np.broadcast_to(x, batch + shape_of(x)[-2:]) if ndim_of(x) and shape_of(x)[:-2] != batch else x
        for x in (a, b, q)
    ))  # fmt: skip


# The unitary factor Q of a = Q h, with h Hermitian. The factor of a wide matrix has orthonormal rows.


def _factor_change(t: Value, y: Value, a: Value) -> Value:
    size, turn = np.matmul(adjoint(y), a), np.matmul(adjoint(y), t)
    change = np.matmul(y, sylvester(size, size, turn - adjoint(turn)) * evaluated(_nan_if_not_unique, size))
    beside = t - np.matmul(y, turn)
    return change if shape_of(a)[-2] == shape_of(a)[-1] else change + _divided_by(beside, size)


def _nan_if_not_unique(size: Value) -> Value:
    """Return 1 where a Hermitian factor has at most one eigenvalue 0, else NaN: then Q is one of many."""
    values = np.linalg.eigvalsh(size)
    lost = np.sum(values <= SINGULAR * np.max(values, axis=-1, initial=0.0)[..., None], axis=-1)
    return np.where(lost > 1, np.nan, 1.0)[..., None, None]


def _factor_pull(g: Cotangent, y: Value, a: Value) -> Value:
    """The cotangent map, which is the tangent map: that map is its own adjoint."""
    return conj(_factor_change(conj(g), y, a))


def _divided_by(x: Value, size: Value) -> Value:
    return mT(np.linalg.solve(mT(size), mT(x)))


def _unitary_value(a: Value) -> Value:
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return np.matmul(u, vh)


_tall_factor = general(_unitary_value, jvp=_factor_change, vjp=_factor_pull, name="unitary_factor")


def unitary_factor(a: Value) -> Value:
    """The unitary factor of the polar decomposition; it has a derivative also at equal singular values other than 0."""
    wide = shape_of(a)[-2] < shape_of(a)[-1]
    return adjoint(_tall_factor(adjoint(a))) if wide else _tall_factor(a)


# Entire functions, and tan and tanh, which have poles but no branch cuts.


def _frechet(function: Primitive, a: Value, direction: object) -> Value:
    """The derivative of a function of matrices along a direction, which is scaled to size 1 before and back after."""
    size = np.max(np.abs(plain(direction)), initial=0.0)
    size = np.where((size > 0) & (size < np.inf), size, 1.0)
    n = shape_of(a)[-1]
    top = np.concatenate([a, direction / size], axis=-1)
    bottom = np.concatenate([np.zeros(shape_of(a)), a], axis=-1)
    return size * function(np.concatenate([top, bottom], axis=-2))[..., :n, n:]


def _entire(function: Function) -> Primitive:
    primitive: Primitive = general(
        function,
        jvp=lambda t, y, a: _frechet(primitive, a, t),
        vjp=lambda g, y, a: _frechet(primitive, mT(a), g),
        series=lambda a: laurent.of_matrix(function, a),
    )
    return primitive


ENTIRE = {
    name: _entire(getattr(scipy.linalg, name)) for name in ("expm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")
}


# Functions with a branch cut.


sqrtm = general(
    scipy.linalg.sqrtm,
    jvp=lambda t, y, a: sylvester(y, y, t),
    vjp=lambda g, y, a: sylvester(mT(y), mT(y), g),
    series=matrix_series.root,
)


def _signm_change(t: Value, y: Value, a: Value) -> Value:
    size = np.matmul(a, y)
    return sylvester(size, size, t - np.matmul(np.matmul(y, t), y))


def _signm_pull(g: Cotangent, y: Value, a: Value) -> Value:
    size, sign = mT(np.matmul(a, y)), mT(y)
    w = sylvester(size, size, g)
    return w - np.matmul(np.matmul(sign, w), sign)


signm = general(scipy.linalg.signm, jvp=_signm_change, vjp=_signm_pull)
NEAR = 0.25


def _near_identity(x: Value) -> bool:
    return not bool(np.max(np.linalg.norm(x - np.eye(x.shape[-1]), 1, axis=(-2, -1)), initial=0.0) > NEAR)


def _log_frechet(a: Value, direction: Value, transposed: bool) -> Value:
    """The derivative of logm along a direction, or the transpose of that linear map."""
    for count in range(MOST_ROOTS + 1):
        if count == MOST_ROOTS or evaluated(_near_identity, a):
            break
        a = sqrtm(a)
        root = mT(a) if transposed else a
        direction = sylvester(root, root, direction)
    identity = np.eye(shape_of(a)[-1])
    rest = (mT(a) if transposed else a) - identity
    total: Value = 0.0
    for point, weight in zip(0.5 + POINTS, WEIGHTS, strict=True):
        inverse = np.linalg.inv(identity + point * rest)
        total = total + weight * np.matmul(np.matmul(inverse, direction), inverse)
    return 2.0**count * total


logm = general(
    scipy.linalg.logm,
    jvp=lambda t, y, a: _log_frechet(a, t, False),
    vjp=lambda g, y, a: _log_frechet(a, g, True),
    series=matrix_series.log,
)


def _fractional_matrix_power(A: Value, t: Value) -> Value:
    if plain(t) is t and float(t).is_integer():
        return np.linalg.matrix_power(A, int(t))
    # SciPy has results in double precision here, also of matrices in single precision.
    A = np.asarray(A).astype(np.result_type(dtype_of(A), float), copy=False)
    power = ENTIRE["expm"](t * logm(A))
    real = not is_complex(A) and evaluated(_is_real_power, A, t)
    return np.real(power) if real else power + 0j


def _is_real_power(a: Value, t: Value) -> bool:
    return np.isrealobj(scipy.linalg.fractional_matrix_power(a, t))


def _funm(A: Value, func: Function, disp: object = True) -> Value:
    """A function of a matrix by its eigenvectors.

    Where eigenvalues are equal and the values of `func` do not determine the derivative, it is NaN.
    """
    require(bool(disp), "linalg.funm", "disp=True")
    w, v = np.linalg.eig(A)
    result = np.matmul(v * func(w)[..., None, :], np.linalg.inv(v))

    def is_real(a: Value) -> bool:
        return np.isrealobj(scipy.linalg.funm(a, func))

    return np.real(result) if evaluated(is_real, A) else result


def _expm_frechet(A: Value, E: object, compute_expm: bool = True) -> Value:
    derivative = _frechet(ENTIRE["expm"], A, E)
    return (ENTIRE["expm"](A), derivative) if compute_expm else derivative


def _of_matrix(primitive: Primitive) -> Function:
    return lambda A: primitive(np.atleast_2d(A))  # SciPy takes a number as a 1 by 1 matrix


RULES = {
    **{name: _of_matrix(primitive) for name, primitive in ENTIRE.items()},
    "sqrtm": _of_matrix(sqrtm), "logm": _of_matrix(logm), "signm": _of_matrix(signm),
    "funm": over_batches(_funm, 2),
    "fractional_matrix_power": over_batches(_fractional_matrix_power, 2), "expm_frechet": _expm_frechet,
    "solve_sylvester": _solve_sylvester,
}  # fmt: skip
