"""Checks of derivatives against central differences."""

import numpy as np

from effgrad.api.debug import debug_values
from effgrad.api.gradient import grad
from effgrad.api.tracebacks import of_function
from effgrad.arrays.library_array import of_another_library
from effgrad.arrays.value import to_operand
from effgrad.errors import EffgradError, NotDifferentiable
from effgrad.primitives.blocks import basis_vectors
from effgrad.vocabulary import Function, Value


@of_function
def check_grad(f: Function, x: Value, *args: Value, step: float = 1e-5, tolerance: float = 1e-6) -> str:
    """Compare `grad(f)` at `x` with central differences, in every coordinate.

    Arguments:
        f: a function of `x` and `args` that returns one real number.
        x: the point, a real number or array.
        args: further arguments of `f`, held fixed.
        step: the step of the differences.
        tolerance: the largest error allowed, relative to the larger of 1 and the absolute derivative.

    Returns:
        A report of one line.

    Raises:
        EffgradError: a coordinate differs by more than `tolerance` (the message lists them), or the value of `f` under
            a derivative differs from NumPy's.
        NotDifferentiable: `x` is not a real number or array of NumPy.

    >>> print(check_grad(lambda x: np.sum(np.sin(x)), np.array([0.5, 1.0])))
    check_grad: 2 coordinates agree, largest difference below 1e-06
    """
    if of_another_library(x):
        raise NotDifferentiable("check_grad takes differences of NumPy arrays: give it the function at one of those")
    x = to_operand(x)
    if np.asarray(x).dtype.kind not in "fiu":
        raise NotDifferentiable(f"check_grad takes differences in a real number or array, not {type(x).__name__}")
    x = np.asarray(x, float)
    debug_values(f)(x, *args)
    exact = np.asarray(grad(f)(x, *args))
    wrong = []
    for basis, place in zip(basis_vectors(x.shape), np.ndindex(x.shape), strict=True):
        difference = (f(x + step * basis, *args) - f(x - step * basis, *args)) / (2 * step)
        if not abs(difference - exact[place]) <= tolerance * max(1.0, float(abs(exact[place]))):
            wrong.append(f"  at {place}: gradient {exact[place]:.9g}, differences {difference:.9g}")
    if wrong:
        raise EffgradError("\n".join([f"check_grad: {len(wrong)} of {x.size} coordinates differ", *wrong]))
    return f"check_grad: {x.size} coordinates agree, largest difference below {tolerance:g}"
