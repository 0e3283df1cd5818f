"""Points where a function is not smooth: ties of a maximum, `abs` at 0, `clip` at an end, a norm at 0.

Meeting one performs an operation of its own, `Kink.take`. Without a handler the derivative there is the documented
default: the element of least norm of the subdifferential (0 for `abs`, the average at ties), and 1 for `clip` at its
ends.
"""

from collections import Counter
from typing import Any

import numpy as np

from effgrad.effects import Effect, Handler, handled, operation
from effgrad.errors import NotSmooth


class Kink(Effect):
    """The effect of meeting points where a function is not smooth."""

    @operation
    def take(self, name: str, at: Any, left: Any, right: Any, default: Any) -> Any:
        """The partial of `name` where `at` holds, given its limits from the left and from the right there."""


def kink(name: str, at: Any, left: Any, right: Any, default: Any) -> Any:
    """`default`, with the values that a handler of `Kink` takes where the function is not smooth.

    `at` gives the mask of these points, and `left` and `right` may be functions too: without a handler none is called.
    """
    if not handled(Kink):
        return default
    points = at()
    if not np.any(points):
        return default
    left, right = (side() if callable(side) else side for side in (left, right))
    return Kink.take(name, points, left, right, default)


class Kinks(Handler[Kink]):
    """Takes one side at every kink ("left", "right"), refuses ("raise"), or counts them ("report").

    Under "report", `counts` has how often each function met a kink: once for each element, and each argument that is
    differentiated.
    """

    def __init__(self, choice: str) -> None:
        if choice not in ("left", "right", "raise", "report"):
            raise ValueError(f"kinks are taken 'left', 'right', 'raise' or 'report', not {choice!r}")
        self.choice = choice

    def enter(self) -> None:
        self.counts: Counter[str] = Counter()

    def take(self, name: str, at: Any, left: Any, right: Any, default: Any) -> Any:
        if self.choice == "raise":
            place = tuple(int(i[0]) for i in np.nonzero(at)) if np.ndim(at) else ()
            raise NotSmooth(
                f"{name} is not smooth at {np.count_nonzero(at)} of its points, first at index {place}; choose a side "
                "with effgrad.kinks('left') or 'right', or change the program"
            )
        if self.choice == "report":
            self.counts[name] += int(np.count_nonzero(at))
            return default
        side = left if self.choice == "left" else right
        return np.where(at, side, default) if np.ndim(at) else side


def first_of_ties(chosen: Any, axis: Any, last: bool) -> Any:
    """For each group along `axis`, the weight 1 for its first (or last) chosen element alone."""
    moved = chosen.reshape(-1) if axis is None else chosen
    if isinstance(axis, tuple):
        order = [i for i in range(chosen.ndim) if i not in axis] + sorted(axis)
        moved = np.transpose(chosen, order)
        groups = moved.reshape((*moved.shape[: chosen.ndim - len(axis)], -1))
        return np.transpose(first_of_ties(groups, -1, last).reshape(moved.shape), np.argsort(order))
    moved = np.moveaxis(moved, -1 if axis is None else axis, -1)
    n = moved.shape[-1]
    at = n - 1 - np.argmax(np.flip(moved, -1), -1) if last else np.argmax(moved, -1)
    weights = np.expand_dims(at, -1) == np.arange(n)
    return weights.reshape(chosen.shape) if axis is None else np.moveaxis(weights, -1, axis)
