"""`stop_gradient`, and the choice at kinks."""


import numpy as np
import optree

from effgrad.arrays.value import Tracer, plain
from effgrad.primitives.kinks import Kinks
from effgrad.vocabulary import Value


def stop_gradient(x: Value) -> Value:
    """A pytree with every traced value replaced by its plain value: a constant to every derivative.

    Arguments:
        x: a pytree, also with sparse matrices in it.

    Returns:
        A pytree of the same structure, of plain numbers and arrays.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """

    def constant_of(leaf: Value) -> Value:
        if not isinstance(leaf, Tracer):
            return leaf.without_derivative() if hasattr(leaf, "without_derivative") else leaf
        value = plain(leaf)
        return value.copy() if isinstance(value, Tracer) else np.copy(value)[()]

    return optree.tree_map(constant_of, x)


def kinks(choice: str) -> Kinks:
    """A context in which derivatives at points where a function is not smooth are taken as chosen.

    Such points are ties of a maximum or minimum, `abs` at 0, `clip` at an end, a norm or standard deviation at 0.
    Outside, the element of least norm is taken: 0 for `abs` and norms, the average at ties; `clip` at an end has 1.

    Arguments:
        choice: "left" or "right" (the one-sided derivative; of tied elements, the last or the first), "raise" (a
            `NotSmooth` error that names the function and the place), or "report": the context's `counts` then has the
            number of times each function met such a point.

    Returns:
        A context manager; under "report" it has `counts`.

    Raises:
        NotSmooth: inside the context, under "raise".
        ValueError: the choice is unknown.

    >>> with kinks("right"):
    ...     grad(np.abs)(0.0)
    1.0
    >>> with kinks("report") as report:
    ...     print(grad(lambda x: np.sum(np.abs(x)))(np.array([0.0, 1.0])), report.counts)
    [0. 1.] Counter({'absolute': 1})
    """
    return Kinks(choice)
