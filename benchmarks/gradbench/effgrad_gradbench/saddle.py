"""The saddle point of (x1^2 + y1^2) - (x2^2 + y2^2): a descent along a gradient through a descent along a gradient.

In the name of a function, the first letter is the mode of the outer gradient and the second of the inner: f for
forward, r for reverse.
"""

import functools

from effgrad_gradbench.descent import argmax, argmin
from effgrad_gradbench.fields import array


def height(x, y):
    return (x[0] ** 2 + x[1] ** 2) - (y[0] ** 2 + y[1] ** 2)


def highest(x, start, mode):
    """The greatest height over y, found from `start` on."""
    return height(x, argmax(lambda y: height(x, y), start, mode))


def saddle(outer, inner, start):
    x = argmin(lambda x: highest(x, start, inner), start, outer)
    return [*x, *argmax(lambda y: height(x, y), start, inner)]


FUNCTIONS = {outer + inner: functools.partial(saddle, outer, inner) for outer in "rf" for inner in "rf"}


def read(source):
    return (array(source, "start", 2).tolist(),)
