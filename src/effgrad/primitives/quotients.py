"""Quotients by differences of eigenvalues, in the derivatives of their vectors, and the phases of complex ones."""

from effgrad.arrays import counterparts, laurent
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, plain
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.cotangents import FORMS, settled
from effgrad.primitives.primitive import Primitive, elementwise
from effgrad.vocabulary import Cotangent, Value


def over_differences(product: Value, w: Value, asked: Value = True, beside: Value = None) -> Value:
    """`product` over w_j - w_i; NaN where the two are equal to rounding and a vector of theirs is asked for.

    There the quotient is zero over zero, or depends on which vectors of the common space LAPACK has chosen. A product
    that is 0 says nothing, since it may grow as fast as the difference beside the point.

    Arguments:
        asked: the mask of a cotangent of the vectors, as columns: which of its elements are no structural zeros.
        beside: the quantity whose rounding `product` may contain, itself where there is none.
    """
    equal = evaluated(_equal, w)
    inverse = inverse_if_apart(w[..., None, :] - w[..., :, None], equal)
    quotient = cleared(product, product if beside is None else beside) * inverse
    return undefined_where(quotient, evaluated(_undefined, equal, asked))


def asked(g: Cotangent) -> Value:
    """The mask of the elements of a cotangent that are not zero by construction; True where that is all of them."""
    return settled(g).mask if type(g) in FORMS else True


def _clear(x: laurent.Laurent, beside: laurent.Laurent) -> laurent.Laurent:
    size = np.abs(beside.coefficients).max(initial=0.0)
    return laurent.Laurent(x.start, np.where(np.abs(x.coefficients) > 1e-12 * size, x.coefficients, 0.0))


# The first argument; beside the point, its coefficients that are rounding of the second would become infinite.
cleared = elementwise(
    lambda x, beside: x, 1, None, name="cleared", series=_clear, counterpart=lambda lib, x, beside: x
)  # fmt: skip
# A hair beside the point, eigenvalues that are equal there are apart, and the quotient is defined.
inverse_if_apart = elementwise(
    lambda d, equal: np.where(equal, 0.0, 1 / np.where(equal, 1.0, d)), lambda r, d, equal: -r * r, None,
    name="inverse_if_apart", series=lambda d, equal: laurent.power(d, -1.0, of_zero=0.0),
    counterpart=counterparts.inverse_if_apart,
)  # fmt: skip
undefined_where: Primitive = elementwise(
    lambda x, at: np.where(at, np.nan, x), lambda y, x, at: undefined_where(0.0 * x + 1.0, at), None,
    name="undefined_where", series=lambda x, at: x, counterpart=counterparts.undefined_where,
)  # fmt: skip


def _equal(w: Value) -> Value:
    if w.size == 0:
        return np.ones((*w.shape, w.shape[-1]), bool)
    return np.abs(w[..., None, :] - w[..., :, None]) <= rounding_of(w)[..., None]


def rounding_of(w: Value) -> Value:
    """The error that LAPACK may leave in eigenvalues and singular values, which lie along the last axis."""
    size = np.max(np.abs(w), axis=-1, keepdims=True, initial=0.0)
    return 4 * w.shape[-1] * np.finfo(w.dtype).eps * size


def is_zero(s: Value) -> Value:
    """Whether singular values are zero to rounding."""
    return s <= rounding_of(s)


def _undefined(equal: Value, asked: Value) -> Value:
    columns = np.any(np.broadcast_to(asked, equal.shape) if np.ndim(asked) == 0 else asked, axis=-2)
    either = columns[..., None, :] | columns[..., :, None]
    return equal & ~np.eye(equal.shape[-1], dtype=bool) & either


def diagonal(x: Value) -> Value:
    return np.diagonal(x, axis1=-2, axis2=-1)


# Elements of vectors of length 1 that are smaller count as zero: which phase they have is rounding.
SMALL = 1e-10


def phases(change: Value, v: Value, place: int) -> Value:
    """The turns of complex vectors, as a row times i, in a change of them that would leave an element of each real.

    LAPACK chooses phases so; where the element is zero, the vector keeps the phase of the change.
    """
    if not is_complex(v):
        return 0.0
    return 1j * np.imag(change[..., [place], :]) * _over_element(v, place)


def of_phases(along: Value, g: Value, v: Value, place: int) -> Value:
    """The transpose of `phases`, for the conjugate of a cotangent whose products with the vectors are `along`."""
    size = np.sum(np.abs(plain(g)) * np.abs(plain(v)), axis=-2, keepdims=True)
    counts = np.abs(np.imag(plain(along))) > 1e-13 * size
    turned = 1j * np.where(counts, np.imag(along), 0.0) * _over_element(v, place)
    rows = np.arange(shape_of(v)[-2])[:, None] == place % shape_of(v)[-2]
    return rows * turned


def _over_element(v: Value, place: int) -> Value:
    """One over a real element of each vector; 0 where it is zero."""
    element = np.real(v[..., [place], :])
    zero = np.abs(plain(element)) <= SMALL
    return np.where(zero, 0.0, 1 / np.where(zero, 1.0, element))
