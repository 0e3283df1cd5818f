"""Quotients by differences of eigenvalues, for the derivatives of eigenvectors, and the phases of complex vectors."""

from effgrad.arrays import counterparts, laurent
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, example, plain
from effgrad.effects import Effect, Handler, handled, operation
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.cotangents import FORMS, to_masked
from effgrad.primitives.kinks import derivative_order
from effgrad.primitives.primitive import Primitive, elementwise, everywhere
from effgrad.vocabulary import Cotangent, Value

# Eigenvalues that differ by less, relative to the largest, leave a quotient undefined; these are for quotients that are
# not differentiated, once, and more often. If quotients cancel, as in a smooth function of the matrix, they lose 7
# digits, 11 digits, and in a derivative of the third order 13 at 1e-4 and 7 at 1e-2.
CLOSE = 1e-9, 1e-5, 1e-2


class Division(Effect):
    """The effect of dividing by the difference of nearly equal eigenvalues."""

    @operation
    def is_done(self) -> Value:
        """Return whether to divide, so that quotients are defined which may lose their digits in a sum."""


class Divide(Handler[Division]):
    """A handler in which all quotients by differences that are no rounding errors are defined."""

    def is_done(self) -> Value:
        return True


def closeness(w: Value) -> float:
    """Return the difference up to which eigenvalues are too close for a quotient, relative to the largest."""
    if type(example(w)) is not np.ndarray or (handled(Division) and Division.is_done()):
        return 0.0
    return CLOSE[min(derivative_order(w), 2)]


def over_differences(product: Value, w: Value, asked: Value = True, beside: Value = None) -> Value:
    """Return `product` over w_j - w_i, with NaN where these are nearly equal and one of their vectors is used.

    There the quotient is zero over zero, or depends on the vectors of the common eigenspace that LAPACK has chosen.
    Even a product of 0 is undefined, since near the point it may grow as fast as the difference.

    Arguments:
        asked: the mask of the cotangent of the vectors, as columns, that excludes structural zeros.
        beside: the quantity whose rounding errors `product` may contain; by default `product` itself.
    """
    equal = evaluated(_equal, w, closeness(w))
    inverse = inverse_if_apart(w[..., None, :] - w[..., :, None], equal)
    quotient = cleared(product, product if beside is None else beside) * inverse
    return undefined_where(quotient, evaluated(_undefined, equal, asked))


def nonzero_mask(g: Cotangent) -> Value:
    """Return the mask of the elements of a cotangent that are not structurally zero, or True if there are no zeros."""
    return to_masked(g).mask if type(g) in FORMS else True


def _clear(x: laurent.Laurent, beside: laurent.Laurent) -> laurent.Laurent:
    start, (ours, theirs) = laurent.aligned([x, beside])
    # The rounding error of a coefficient is that of its own terms, which have no coefficients of higher order.
    size = np.maximum.accumulate(np.abs(theirs).max(axis=tuple(range(1, theirs.ndim)), initial=0.0))
    return laurent.Laurent(start, np.where(np.abs(ours) > 1e-12 * size.reshape(-1, *[1] * (ours.ndim - 1)), ours, 0.0))


# `cleared` is its first argument. In a series it clears the coefficients that are rounding errors of the second
# argument, because a division would make them infinite.
cleared = elementwise(
    lambda x, beside: x, 1, None, name="cleared", series=_clear, analytic=everywhere,
    counterpart=lambda lib, x, beside: x
)  # fmt: skip


def _inverse(d: laurent.Laurent, equal: laurent.Laurent) -> laurent.Laurent:
    """Return one over differences that are infinitely small where eigenvalues count as equal.

    Other eigenvalues that are too close for a quotient leave it undefined in a series too.
    """
    inverse = laurent.power(d, -1.0, of_zero=0.0)
    lost = np.broadcast_to((equal.plain() != 0) & (d.plain() != 0), inverse.coefficients.shape[1:])
    return laurent.Laurent(inverse.start, np.where(lost, np.nan, inverse.coefficients)) if lost.any() else inverse


# Eigenvalues that are equal at the point differ infinitely near it, so the series of the quotient is defined.
inverse_if_apart = elementwise(
    lambda d, equal: np.where(equal, 0.0, 1 / np.where(equal, 1.0, d)), lambda r, d, equal: -r * r, None,
    name="inverse_if_apart", series=_inverse,
    analytic=lambda d, equal: not np.any(equal & ~np.eye(equal.shape[-1], dtype=bool)),
    counterpart=counterparts.inverse_if_apart,
)  # fmt: skip
undefined_where: Primitive = elementwise(
    lambda x, at: np.where(at, np.nan, x), lambda y, x, at: undefined_where(0.0 * x + 1.0, at), None,
    name="undefined_where", series=lambda x, at: x, analytic=lambda x, at: not np.any(at),
    counterpart=counterparts.undefined_where,
)  # fmt: skip


def _equal(w: Value, close: float) -> Value:
    if w.size == 0:
        return np.ones((*w.shape, w.shape[-1]), bool)
    return np.abs(w[..., None, :] - w[..., :, None]) <= rounding_of(w, close)[..., None]


def rounding_of(w: Value, close: float = 0.0) -> Value:
    """Return the error that LAPACK may leave in eigenvalues or singular values, which lie along the last axis.

    It is at least `close` relative to the largest.
    """
    size = np.max(np.abs(w), axis=-1, keepdims=True, initial=0.0)
    return max(4 * w.shape[-1] * float(np.finfo(w.dtype).eps), close) * size


def is_zero(s: Value, close: float) -> Value:
    """Return whether singular values are zero, or too close to it for a quotient."""
    return s <= rounding_of(s, close)


def _undefined(equal: Value, asked: Value) -> Value:
    columns = np.any(np.broadcast_to(asked, equal.shape) if np.ndim(asked) == 0 else asked, axis=-2)
    either = columns[..., None, :] | columns[..., :, None]
    return equal & ~np.eye(equal.shape[-1], dtype=bool) & either


def diagonal(x: Value) -> Value:
    return np.diagonal(x, axis1=-2, axis2=-1)


# Smaller elements of vectors of length 1 count as zero, because their phase is a rounding error.
SMALL = 1e-10


def phases(change: Value, v: Value, place: int) -> Value:
    """Return the changes of phase, as a row times i, to subtract from a change of complex vectors.

    Without them, the element of each vector in row `place` stays real, as LAPACK chooses its phases. If this element is
    zero, the phase of the change is kept.
    """
    if not is_complex(v):
        return 0.0
    return 1j * np.imag(change[..., [place], :]) * _over_element(v, place)


def of_phases(along: Value, g: Value, v: Value, place: int) -> Value:
    """Return the transpose of `phases` for the conjugate of a cotangent whose products with the vectors are `along`."""
    size = np.sum(np.abs(plain(g)) * np.abs(plain(v)), axis=-2, keepdims=True)
    counts = np.abs(np.imag(plain(along))) > 1e-13 * size
    turned = 1j * np.where(counts, np.imag(along), 0.0) * _over_element(v, place)
    rows = np.arange(shape_of(v)[-2])[:, None] == place % shape_of(v)[-2]
    return rows * turned


def _over_element(v: Value, place: int) -> Value:
    """Return one over the real element of each vector in row `place`, or 0 where this element is zero."""
    element = np.real(v[..., [place], :])
    zero = np.abs(plain(element)) <= SMALL
    return np.where(zero, 0.0, 1 / np.where(zero, 1.0, element))
