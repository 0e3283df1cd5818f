"""Derivatives of public functions that are no primitives, a folder for each library.

Importing this package registers every rule.
"""

from effgrad.arrays import namespace  # noqa: F401
from effgrad.functions import dask, torch  # noqa: F401
from effgrad.functions.numpy import emath, linalg, padding, signals, statistics  # noqa: F401
from effgrad.functions.scipy import names  # noqa: F401
from effgrad.primitives import (  # noqa: F401
    complexes,
    decomposition,
    elementwise,
    factors,
    fourier,
    joining,
    move,
    overwrite,
    product,
    reduction,
    ufuncs,
)
from effgrad.primitives.special import bessel, distributions, elementary, elliptic  # noqa: F401
