"""Quotients by differences of eigenvalues, in the derivatives of their vectors."""


from effgrad.arrays import counterparts, laurent
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated
from effgrad.primitives.primitive import Primitive, elementwise
from effgrad.vocabulary import Value


def over_differences(product: Value, w: Value, asked: Value = None) -> Value:
    """`product` over w_j - w_i.

    Where the two are equal to rounding it is 0 if the product is 0 too, and otherwise NaN: what is asked for depends on
    which vectors of their common space LAPACK has chosen. It may do so in second order alone, so in reverse any part of
    these vectors that is `asked` for, as columns, is enough.
    """
    equal = evaluated(_equal, w)
    inverse = inverse_if_apart(w[..., None, :] - w[..., :, None], equal)
    quotient = cleared(product, product if asked is None else asked) * inverse
    return undefined_where(quotient, evaluated(_undefined, equal, product, asked))


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
    tolerance = 4 * np.finfo(w.dtype).eps * np.max(np.abs(w), axis=-1)[..., None, None]
    return np.abs(w[..., None, :] - w[..., :, None]) <= tolerance


def _undefined(equal: Value, product: Value, asked: Value) -> Value:
    if asked is None:
        return equal & ~np.eye(equal.shape[-1], dtype=bool) & more_than_rounding(product)
    columns = np.broadcast_to(np.max(np.abs(asked), axis=-2, keepdims=True, initial=0.0), asked.shape)
    return equal & ~np.eye(equal.shape[-1], dtype=bool) & more_than_rounding(columns)


def more_than_rounding(x: Value) -> Value:
    size = np.abs(x)
    return size > 100 * np.finfo(size.dtype).eps * np.max(size, axis=(-2, -1), keepdims=True, initial=0.0)


def diagonal(x: Value) -> Value:
    return np.diagonal(x, axis1=-2, axis2=-1)
