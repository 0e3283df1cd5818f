"""The Smooth effect: primitives with their rules, and the traced value that performs them."""

from effgrad.smooth import (  # noqa: F401 (they fill the tables)
    bessel,
    complexes,
    decompositions,
    distributions,
    elementwise,
    elliptic,
    fft,
    joining,
    library,
    linalg,
    reductions,
    signals,
    special,
    statistics,
    structure,
    torch_functions,
    ufuncs,
)
from effgrad.smooth.primitive import Primitive
from effgrad.smooth.traced import Smooth, Traced, perform, plain

__all__ = ["Primitive", "Smooth", "Traced", "perform", "plain"]
