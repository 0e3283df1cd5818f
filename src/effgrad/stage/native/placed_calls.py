"""Calls of NumPy that write their result where a program keeps it, instead of to new memory that is copied there."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.arrays.layout import address_of
from effgrad.arrays.value import UFUNCS
from effgrad.stage.nodes import Node
from effgrad.vocabulary import Value

_UFUNC_OF: dict[Any, np.ufunc] = {row: ufunc for ufunc, row in UFUNCS.items() if isinstance(ufunc, np.ufunc)}


def written(node: Node, args: Sequence[Value], result: np.ndarray) -> Callable[[], None] | None:
    """Return a function that computes a node into the array `result`, or None if NumPy has to make a new array."""
    ufunc = _UFUNC_OF.get(node.primitive)
    if ufunc is not None:
        return _by_ufunc(ufunc, args, result) if not node.params else None
    if node.primitive.view and len(args) == 1 and not node.slots and args[0].size == result.size:
        source, moved = args[0], result.reshape(args[0].shape)
        seen = node.primitive.function(moved, **node.params)
        if address_of(seen) == address_of(result) and seen.strides == result.strides:

            def move() -> None:
                moved[...] = source

            return move
    return None


def _by_ufunc(ufunc: np.ufunc, args: Sequence[Value], result: np.ndarray) -> Callable[[], None] | None:
    """Return a call of a ufunc that writes floats or complex numbers; None if its own result has another type."""
    own = result.shape and result.dtype.kind in "fc" and ufunc.nout == 1 and np.result_type(*args) == result.dtype
    if not own or not all(isinstance(a, np.ndarray | int | float | complex) for a in args):
        return None

    def compute() -> None:
        ufunc(*args, out=result)

    return compute
