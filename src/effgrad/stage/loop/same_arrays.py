"""The arrays that names share after a loop.

A loop copies an array that a step binds to a name into the cell of the name. If the last step certainly binds two names
to one array, or a name to an array from before the loop, they share that array after the loop too.
"""

from collections.abc import Container, Mapping

from effgrad.stage.loop.affine import NotCaptured, Ranges, affine
from effgrad.stage.loop.buffers import Buffer
from effgrad.stage.loop.operands import Lazy, Value, View, views_in


def check_shapes(found: Mapping[str, Value], ranges: Ranges) -> None:
    """Raise if the shape of an array that a loop leaves behind depends on the steps of that loop."""
    for name, value in found.items():
        for view in views_in(value):
            if any(affine(n).variables() - ranges.bounds.keys() for n in view.shape):
                raise NotCaptured(f"{name!r}, an array whose shape changes, is read after the loop")


def is_whole(view: View) -> bool:
    """Whether a view is that of a whole buffer."""
    whole = [a.axis for a in view.axes] == list(range(len(view.buffer.shape))) and view.shape == view.buffer.shape
    return whole and all(a.step == 1 for a in view.axes) and all(i == 0 for i in view.base)


def array_after(value: Value, copy: Value, existing: Container[Buffer | Lazy], arrays: dict[int, View]) -> Value:
    """The array of a name after a loop, given its array at the end of the last step, and the copy of that in its cell.

    The array is given as such, or as an identity if it is lazy and made in the step. `existing` holds what the arrays
    from before the loop are, and `arrays` the arrays of the other names after it.
    """
    if isinstance(value, View) and not is_whole(value):
        return copy
    if isinstance(value, View) and value.buffer not in existing:
        value = id(value.buffer)
    return arrays.setdefault(value, copy) if isinstance(value, int) else value
