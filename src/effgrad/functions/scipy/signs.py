"""Eigenvectors and singular vectors with the signs, or phases, that SciPy's LAPACK gives them.

NumPy's LAPACK may choose others. The vectors of one matrix differ by the signs alone, which are constants.
"""

import scipy.linalg

from effgrad.arrays.layout import dtype_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated
from effgrad.primitives.product import mT
from effgrad.vocabulary import Function, Value


def with_phases(vectors: Value, driver: Function, *arguments: Value) -> Value:
    """Return eigenvectors with the signs, or phases, that `driver`, which calls LAPACK as SciPy does, gives them."""

    def phases(vectors: Value, *arguments: Value) -> Value:
        along = np.sum(np.conj(vectors) * driver(*arguments), axis=-2)
        return np.where(along == 0, 1.0, along / np.where(along == 0, 1.0, np.abs(along)))

    return vectors * evaluated(phases, vectors, *arguments)[..., None, :]


def with_signs(vectors: Value, driver: Function, a: Value) -> Value:
    """Return vectors of a general matrix with SciPy's signs, which are NumPy's except in single precision."""
    return with_phases(vectors, driver, a) if dtype_of(a) in (np.float32, np.complex64) else vectors


def svd(a: Value, full_matrices: bool) -> Value:
    u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
    u = with_signs(u, lambda a: scipy.linalg.svd(a, full_matrices)[0], a)
    return u, s, mT(with_signs(mT(vh), lambda a: mT(scipy.linalg.svd(a, full_matrices)[2]), a))
