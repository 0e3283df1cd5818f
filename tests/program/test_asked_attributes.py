"""What a traced value says of itself when a program asks for its class and its attributes."""

import collections.abc

import numpy as np
import pytest

from effgrad import compile, grad, vjp
from effgrad.errors import Detached


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


def test_a_number_says_whether_it_is_whole():
    """`hasattr(x, "is_integer")` was False, and the program took another way than the plain one."""

    def f(x):
        return x * x if hasattr(x, "is_integer") and x.is_integer() else 3 * x

    for x in (2.0, 2.5, np.float64(2.0), np.inf):
        assert grad(f)(x) == (2 * x if x == 2 else 3)
    compiled = compile(f)
    assert [compiled(x) for x in (2.0, 2.5, 3.0)] == [4.0, 7.5, 9.0]
    assert not any(grad(lambda x: x.sum() * hasattr(x, "is_integer"))(np.ones(2)))


def test_an_attribute_that_only_the_number_has_is_not_absent():
    assert grad(lambda x: x * (2 if hasattr(x, "hex") else 3))(1.0) == 2.0
    with pytest.raises(Detached, match="a traced value has no tobytes"):
        grad(lambda x: np.sum(x) if getattr(x, "tobytes", None) is None else 2 * np.sum(x))(np.ones(2))
    assert grad(lambda x: x * getattr(x, "colour", 2))(1.0) == 2.0


def test_an_integer_of_a_compiled_program_has_its_methods():
    f = compile(lambda n, x: x * n.bit_length() * n.bit_count() if hasattr(n, "bit_length") else x)
    assert [f(n, 2.0) for n in (3, 9, 3)] == [8.0, 16.0, 8.0]


def test_a_missing_attribute_is_named_after_writes_that_wait():
    """The message was about a value of a derivative that has ended: the explanation asked for the array's value."""

    def f(x):
        y = x.copy()
        y[1:] += y[:-1]
        y.byteswap()
        return np.sum(y)

    with pytest.raises(Detached, match="a traced value has no byteswap"):
        grad(f)(np.arange(3.0))
