"""Derivative rules for public library functions that are not primitives, with a folder for each library.

Importing this package registers the rules that NumPy's protocols reach. The rules of most of SciPy, of pandas and of
`statistics` are imported at the first call of one of their functions (`effgrad.program.rules_by_callable`).
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
    """Return the table of counterparts, imported for the first array of another library because that takes 7 ms."""
    table: Mapping[Value, Value] = importlib.import_module("effgrad.functions.counterparts").COUNTERPARTS
    return table


operations.counterparts = _counterparts
