"""`stop_gradient`, and the choice of derivatives at kinks."""

import numpy as np
import optree

from effgrad.arrays.labelled import labelled, with_numbers
from effgrad.arrays.value import Tracer, plain
from effgrad.errors import Detached
from effgrad.primitives.kinks import Kinks
from effgrad.program.caches import carries_inside
from effgrad.vocabulary import Value


def stop_gradient(x: Value) -> Value:
    """Replace every traced value in a pytree by its plain value, which is a constant to every derivative.

    Arguments:
        x: a pytree, which may contain sparse matrices, and tables of pandas and xarray.

    Returns:
        A pytree of the same structure, of plain numbers and arrays.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """

    def constant_of(leaf: Value) -> Value:
        if isinstance(leaf, Tracer):
            value = plain(leaf)
            return value.copy() if isinstance(value, Tracer) else np.copy(value)[()]
        if hasattr(leaf, "without_derivative"):
            return leaf.without_derivative()
        if labelled(leaf):
            return with_numbers(leaf, constant_of)
        if not callable(leaf) and carries_inside([leaf]):
            raise Detached(
                f"stop_gradient takes numbers, arrays, tables and containers of them; an object of the class "
                f"{type(leaf).__name__!r} keeps its traced values: stop them before they are put into it"
            )
        return leaf

    return optree.tree_map(constant_of, x)


def kinks(choice: str) -> Kinks:
    """A context that chooses the derivatives at points where a function is not smooth.

    Such points are ties of a maximum or minimum, `abs` at 0, `clip` at a bound, a norm or standard deviation at 0.
    Without this context, the derivative is the element of least norm: 0 for `abs` and norms, and the average at ties.
    That of `clip` at a bound is 1.

    Arguments:
        choice: "left" or "right" for the one-sided derivative (for ties, that of the last or the first tied element),
            "raise" for a `NotSmooth` error that names the function and the place, or "report", which counts in
            `counts` how many times each function met such a point.

    Returns:
        A context manager; under "report" it has `counts`.

    Raises:
        NotSmooth: inside the context, with "raise".
        ValueError: the choice is unknown.

    >>> with kinks("right"):
    ...     grad(np.abs)(0.0)
    1.0
    >>> with kinks("report") as report:
    ...     print(grad(lambda x: np.sum(np.abs(x)))(np.array([0.0, 1.0])), report.counts)
    [0. 1.] Counter({'absolute': 1})
    """
    return Kinks(choice)
