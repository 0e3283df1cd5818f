"""Least squares: how far a polynomial with coefficients x is from the sign of t, at n points t in [-1, 1]."""

import numpy as np

from effgrad import grad
from effgrad_gradbench.fields import array, integer


def primal(x, n):
    t = np.linspace(-1, 1, n)
    powers = np.vander(t, len(x), increasing=True)
    return 0.5 * np.sum((np.sign(t) - powers @ x) ** 2)


FUNCTIONS = {"primal": primal, "gradient": grad(primal)}


def read(source):
    return array(source, "x", None), integer(source, "n", least=2)
