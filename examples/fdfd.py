"""Light around a device, by finite differences in the frequency domain (FDFD): Maxwell's equations for one wavelength.

The field E solves (D D + k^2 epsilon) E = -i k source on a grid, with layers that absorb at the edges.
Shin and Fan 2012, Choice of the perfectly matched layer boundary condition, Journal of Computational Physics 231.
"""

import numpy as np
import scipy.sparse as sp


def stretch(n, layer, k):
    """How much each cell of an axis is stretched into the complex plane, where the light is absorbed."""
    depth = np.maximum(np.maximum(layer - np.arange(n), np.arange(n) - (n - 1 - layer)), 0) / layer
    return 1.0 + 1j * 20.0 / k * depth**3


def derivative(n, layer, k):
    """The second derivative along an axis of n cells, with stretched cells."""
    s = stretch(n, layer, k)
    forward = sp.diags([-np.ones(n), np.ones(n - 1)], [0, 1])
    return sp.diags([1 / s], [0]) @ forward @ sp.diags([1 / s], [0]) @ -forward.T


def field(epsilon, source, k, layer=8):
    """The electric field of a source around a device with permittivity epsilon, of the same shape."""
    nx, ny = epsilon.shape
    laplacian = sp.kron(derivative(nx, layer, k), sp.eye(ny)) + sp.kron(sp.eye(nx), derivative(ny, layer, k))
    matrix = laplacian + sp.diags([np.ravel(epsilon) * k**2], [0])
    return sp.linalg.spsolve(matrix.tocsc(), -1j * k * np.ravel(source)).reshape(nx, ny)


def power(epsilon, source, k, target):
    """The power of the light that arrives at a target."""
    return np.sum(np.abs(field(epsilon, source, k)[target]) ** 2)
