"""The saddle point of (x1^2 + y1^2) - (x2^2 + y2^2): a descent along a gradient through a descent along a gradient.

In the name of a function, the first letter is the mode of the outer gradient and the second of the inner: f for
forward, r for reverse.
"""

from effgrad_gradbench.descent import GRADIENT, argmin
from effgrad_gradbench.fields import array


def height(x, y):
    return (x[0] ** 2 + x[1] ** 2) - (y[0] ** 2 + y[1] ** 2)


def argmax(x, start, mode):
    """The y of the greatest height, found from `start` on."""

    def depth(y):
        return -height(x, y)

    return argmin(depth, GRADIENT[mode](depth), start)


def highest(x, start, mode):
    return height(x, argmax(x, start, mode))


def build(modes, run=lambda function: function):
    """The search for the saddle; `run` may be `effgrad.compile`, for the inner search and the gradient through it."""
    outer, inner = modes
    value = run(lambda x, start: highest(x, start, inner))
    gradient = run(lambda x, start: GRADIENT[outer](lambda x: highest(x, start, inner))(x))
    inside = run(lambda x, start: argmax(x, start, inner))

    def saddle(start):
        x = argmin(lambda x: value(x, start), lambda x: gradient(x, start), start)
        return [*x, *inside(x, start)]

    return saddle


FUNCTIONS = {outer + inner: build(outer + inner) for outer in "rf" for inner in "rf"}


def read(source):
    return (array(source, "start", 2).tolist(),)
