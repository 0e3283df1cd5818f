"""Derivatives of public functions that are no primitives, a folder for each library.

Importing this package registers every rule.
"""

import importlib
from collections.abc import Mapping

from effgrad.arrays import namespace  # noqa: F401
from effgrad.arrays.value import operations
from effgrad.functions import dask, torch  # noqa: F401
from effgrad.functions.numpy import (  # noqa: F401
    histograms,
    linalg,
    padding,
    sets,
    signals,
    statistics,
    writing,
)
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
    singular_values,
    ufuncs,
)
from effgrad.primitives.special import bessel, definitions, distributions, elementary, elliptic  # noqa: F401
from effgrad.vocabulary import Value


def _counterparts() -> Mapping[Value, Value]:
    """The table of counterparts of functions, made when the first array of another library comes: it takes 7 ms."""
    table: Mapping[Value, Value] = importlib.import_module("effgrad.functions.counterparts").COUNTERPARTS
    return table


operations.counterparts = _counterparts
