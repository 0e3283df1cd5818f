"""Runge and Kutta's method, s steps to time 2, for y_0' = x_0 and y_i' = x_i y_(i-1), from y = 0.

The gradient is that of the last element of y(2) with respect to x.
"""

import numpy as np

from effgrad import grad
from effgrad_gradbench.fields import array, integer


def primal(x, s):
    def slope(y):
        return x * np.concatenate([[1.0], y[:-1]])

    y, h = np.zeros(len(x)), 2.0 / s
    for _ in range(s):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def last(x, s):
    return primal(x, s)[-1]


FUNCTIONS = {"primal": primal, "gradient": grad(last)}


def read(source):
    return array(source, "x", None), integer(source, "s", most=100_000)
