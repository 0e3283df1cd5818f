"""The NumPy functions that are differentiated by running NumPy's own Python source with traced values.

`effgrad.program` rewrites that source as it rewrites the user's, so values, errors and options are NumPy's. A function
is listed if, in the laws of the coverage tests, its source gives the derivatives that a definition of ours gave, and
takes no longer. Measured 2026-11-22 on NumPy 2.4 with one value and gradient of 12 and of 4,800 elements, eager and
compiled: `median` takes 0.5 to 0.9 of the definition's time, `polyadd` 0.45, `trapezoid` 0.85, and every other function
at most 1.1.
"""


import numpy as np

from effgrad.vocabulary import Value

# Functions that return views, write to an argument, or call one function that has a rule.
MOVING: tuple[Value, ...] = (
    np.split, np.hsplit, np.vsplit, np.dsplit, np.dstack, np.unstack, np.fliplr, np.flipud, np.rollaxis,
    np.matrix_transpose, np.fill_diagonal, np.logspace, np.append,
    np.linalg.trace, np.linalg.diagonal, np.linalg.matrix_transpose, np.linalg.matmul, np.linalg.tensordot,
    np.linalg.tensorinv, np.linalg.outer,
)  # fmt: skip
# Functions that compute; a staged program calls NumPy's own where no derivative is taken.
COMPUTING: tuple[Value, ...] = (
    np.diff, np.trapezoid, np.linalg.cross, np.cov, np.cumulative_sum, np.cumulative_prod, np.median,
    np.apply_over_axes, np.union1d, np.sort_complex, np.polyval, np.polyadd, np.polysub, np.polyder, np.polyint,
    np.polyfit, np.polydiv, np.poly, np.fft.hfft, np.setxor1d,
    np.emath.sqrt, np.emath.log, np.emath.log2, np.emath.log10, np.emath.arccos, np.emath.arcsin, np.emath.arctanh,
)  # fmt: skip
# Functions that call a function of the user's. It may close over traced values, so their source is also run with traced
# values where all arguments are plain.
CALLING: tuple[Value, ...] = (np.piecewise,)
