"""The saddle point of (x1^2 + y1^2) - (x2^2 + y2^2): a descent along a gradient through a descent along a gradient.

In the name of a function, the first letter is the mode of the outer gradient and the second of the inner: f for
forward, r for reverse.
"""

from effgrad_gradbench.descent import VALUE_AND_GRADIENT, argmin
from effgrad_gradbench.fields import array


def height(x, y):
    return (x[0] ** 2 + x[1] ** 2) - (y[0] ** 2 + y[1] ** 2)


def argmax(x, start, mode):
    """The y of the greatest height, found from `start` on."""

    def depth(y):
        return -height(x, y)

    return argmin(VALUE_AND_GRADIENT[mode](depth), start)


def search(modes):
    """The search for the saddle, in a pair of modes."""
    outer, inner = modes

    def saddle(start):
        def highest(x):
            return height(x, argmax(x, start, inner))

        x = argmin(VALUE_AND_GRADIENT[outer](highest), start)
        return [*x, *argmax(x, start, inner)]

    return saddle


MODES = [outer + inner for outer in "rf" for inner in "rf"]
FUNCTIONS = {modes: search(modes) for modes in MODES}


def read(source):
    return (array(source, "start", 2).tolist(),)
