"""Vectors that complete those of a thin decomposition to a square unitary factor.

They are a basis of the rest of the space, which the matrix determines up to a rotation of the basis in itself. What
depends on that rotation has no derivative. What does not, as a projection, has the derivative of a basis that does not
rotate in itself. In reverse the cotangent shows which is the case. Forward the derivative is NaN, unless there is one
real vector, and its limit is taken (`effgrad.api.singular`). There the basis rotates, on each side in another way, so
that limits agree only where the rotation does not count.
"""

import zlib

from effgrad.arrays import laurent
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated
from effgrad.primitives.batching import stacked
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.cotangents import dense
from effgrad.primitives.factors import adjoint
from effgrad.primitives.primitive import elementwise, general
from effgrad.primitives.product import mT
from effgrad.primitives.quotients import undefined_where
from effgrad.vocabulary import Cotangent, Tangent, Value

# Smaller parts of a cotangent along rotations, relative to the terms of their sums, are rounding errors.
ROTATING = 1e-10


def complement(u: Value, basis: Value) -> Value:
    """Return the plain vectors `basis`, which complete the orthonormal columns of `u`, as a function of `u`."""
    basis = completing(u, basis)
    if _is_unique(basis):
        return basis
    rng, size = np.random.default_rng(0), shape_of(basis)[-1]
    rotation = rng.normal(size=(size, size)) + (1j * rng.normal(size=(size, size)) if is_complex(basis) else 0.0)
    part = np.sum(np.real(u) * rng.normal(size=shape_of(u)[-2:]), axis=(-2, -1), keepdims=True)
    angle = (part - evaluated(np.array, part)) * number_of_side(part)
    turn = angle * (rotation - adjoint(rotation))
    return np.matmul(basis, np.eye(size) + turn + 0.5 * np.matmul(turn, turn))


def _is_unique(basis: Value) -> bool:
    return shape_of(basis)[-1] == 1 and not is_complex(basis)


def _push(t: Tangent, y: Value, u: Value, basis: Value) -> Value:
    change = -np.matmul(u, np.matmul(adjoint(t), y))
    return change if _is_unique(y) else undefined_where(change, True)


def _pull(g: Cotangent, y: Value, u: Value, basis: Value) -> Value:
    g = dense(g)
    return undefined_where(-conj(np.matmul(y, np.matmul(mT(g), u))), evaluated(_rotates, g, y))


def _rotates(g: Value, y: Value) -> Value:
    """Return whether a cotangent of a basis has a part along its rotations in itself."""
    along, size = np.matmul(mT(g), y), np.matmul(mT(np.abs(g)), np.abs(y))
    least = ROTATING * np.max(size, axis=(-2, -1), initial=0.0, keepdims=True)
    return np.any(np.abs(along - adjoint(along)) > least, axis=(-2, -1), keepdims=True)


def _number(x: laurent.Laurent) -> laurent.Laurent:
    rng = np.random.default_rng(zlib.crc32(x.coefficients.tobytes()))
    return laurent.constant(rng.uniform(0.5, 1.5, x.coefficients.shape[1:]))


completing = general(lambda u, basis: basis, (_push, None), (_pull, None), name="completing", batch=stacked)
# It is 0 at the point, and another number on each side infinitely near it.
number_of_side = elementwise(lambda x: 0.0 * x, lambda y, x: 0.0, name="number_of_side", series=_number)
