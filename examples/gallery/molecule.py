"""The shape of a cluster of thirteen atoms, and the frequencies at which it vibrates.

Pairs attract and repel by Lennard-Jones' potential; lengths and energies in its units. The minimum is an icosahedron
of energy -44.326801. Wales and Doye 1997, Journal of Physical Chemistry A 101.
"""

import numpy as np

ATOMS = 13


def data():
    """The indices of all pairs."""
    return np.triu_indices(ATOMS, 1)


def start():
    """The corners of an icosahedron and its middle, shaken."""
    golden = (1 + np.sqrt(5)) / 2
    corners = [(0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
    corners = np.array([np.roll(c, k) for c in corners for k in range(3)] + [(0.0, 0.0, 0.0)])
    return 0.57 * corners + 0.06 * np.random.default_rng(2).standard_normal(corners.shape)


def distances(positions, pairs):
    i, j = pairs
    return np.linalg.norm(positions[i] - positions[j], axis=1)


def objective(positions, pairs):
    """The energy of the cluster."""
    inverse = distances(positions, pairs) ** -6
    return np.sum(4 * (inverse**2 - inverse))


def frequencies(hessian):
    """The frequencies of small vibrations, from the second derivatives; the first six are moves of the whole."""
    stiffness = np.linalg.eigvalsh(hessian.reshape(3 * ATOMS, 3 * ATOMS))
    return np.sqrt(np.maximum(stiffness, 0.0)) / (2 * np.pi)
