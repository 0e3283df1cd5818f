"""Matrices without a basis of eigenvectors, up to rounding: their equal eigenvalues have no derivative.

A function of the eigenvalues may be smooth there (the sum of their cubes is a trace), but a rule that reads vectors
cannot find its derivative. A derivative loses the digits that the condition of its cluster's vectors has.
The other eigenvalues have their derivative, which needs a basis of what the vectors of the cluster would span.
"""

import numpy as np
import scipy.linalg

from effgrad.arrays.value import evaluated, example
from effgrad.vocabulary import Value

# Eigenvalues that differ by less, relative to the largest, form a cluster.
CLUSTER = 1e-3
# If the smallest singular value of the vectors of a cluster is less, they count as dependent, because the derivatives
# of the eigenvalues would have three digits or none.
DEPENDENT = 1e-12


def completed_basis(a: Value, w: Value, v: Value) -> tuple[Value, Value]:
    """Return the eigenvectors, with a basis in place of dependent ones, and the mask of the eigenvalues of these."""
    if type(example(w)) is not np.ndarray:
        return v, False
    change = evaluated(_changes, a, w, v)
    return v + change[..., 1:, :], change[..., 0, :] != 0


def _changes(a: Value, w: Value, v: Value) -> Value:
    """Return a row that is 1 for eigenvalues with dependent vectors, above what the basis adds to the vectors."""
    changes = np.zeros((*v.shape[:-2], v.shape[-1] + 1, v.shape[-1]), v.dtype)
    size = np.max(np.abs(w), axis=-1, initial=0.0)[..., None, None]
    close = np.abs(w[..., None, :] - w[..., :, None]) <= CLUSTER * size
    for place in filter(lambda place: close[place].sum() > w.shape[-1], np.ndindex(w.shape[:-1])):
        left = np.arange(w.shape[-1])
        while left.size:
            chosen = close[place][left[0], left]
            cluster, left = left[chosen], left[~chosen]
            vectors = v[place][:, cluster]
            if len(cluster) > 1 and not np.linalg.norm(vectors, -2) > DEPENDENT:
                changes[place][0, cluster] = 1.0
                changes[place][1:, cluster] = _invariant_basis(a[place], w[place], cluster) - vectors
    return changes


def _invariant_basis(a: Value, w: Value, cluster: Value) -> Value:
    """Return an orthonormal basis of the space that belongs to a cluster of eigenvalues, NaN if it is not separate."""
    distance = np.abs(w - w[cluster].mean())
    others = np.delete(distance, cluster)
    radius = (distance[cluster].max() + others.min(initial=np.inf)) / 2
    _, vectors, size = scipy.linalg.schur(a, "complex", sort=lambda value: abs(value - w[cluster].mean()) <= radius)
    return vectors[:, :size] if size == len(cluster) else np.nan
