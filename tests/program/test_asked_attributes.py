"""What a traced value says of itself when a program asks for its class and its attributes."""

import collections.abc

import numpy as np
import pytest

from effgrad import vjp


@pytest.mark.parametrize("x", [0.7, np.float64(0.7), np.array(0.7), np.array([0.7])])
def test_a_traced_number_says_of_itself_what_the_number_says(x):
    """`isinstance(x, Iterable)` and `hasattr(x, "__len__")`, by which programs tell arrays, were true of numbers."""
    abstract = [getattr(collections.abc, name) for name in ("Iterable", "Sized", "Container", "Collection", "Callable")]
    names = ("__len__", "__iter__", "__getitem__", "__call__", "shape", "dtype", "real")

    def f(x):
        told.append([isinstance(x, kind) for kind in (*abstract, (str, *abstract), abstract[0] | abstract[1], float)])
        told.append([hasattr(x, name) for name in names] + [getattr(x, name, None) is None for name in names])
        return x * 1.0

    told = []
    f(x), vjp(f, x)
    assert told[:2] == told[2:]
