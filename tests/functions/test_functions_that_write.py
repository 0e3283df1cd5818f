"""Functions and operators that write into an array, given lists, ranges, scalars and integers as NumPy takes them."""

import operator

import numpy as np
import pytest
from differences import directional

from effgrad import compile, grad, jvp

X = np.array([0.5, 1.5, 2.5])
KEEP, ROWS = [True, False, True], np.array([[0], [1], [2]])
# Each writes into `a`, the outer product of x with itself, or into `b`, a copy of x.
WRITES = {
    "put a list": lambda a, b, x: np.put(b, [0, 2], [1.5, 2.5]),
    "put at a list of floats": lambda a, b, x: np.put(b, [0.0, 2.0], [1.5, x[1]]),
    "put nothing": lambda a, b, x: np.put(b, [], []),
    "put too few": lambda a, b, x: np.put(a, (0, 4, 8), (x[0], 2)),
    "put in turn": lambda a, b, x: np.put(b, [0, 5, -7], [1.5, x[1], 3], mode="wrap"),
    "put one place twice": lambda a, b, x: np.put(b, [1, 1], x[:2]),
    "place a list": lambda a, b, x: np.place(b, [1, 0, 1], [x[0], 3]),
    "place too few": lambda a, b, x: np.place(b, x > 1, [9]),
    "putmask a list": lambda a, b, x: np.putmask(b, KEEP, [9.0, x[0]]),
    "putmask beyond": lambda a, b, x: np.putmask(b, b > 1, x * 2),
    "copyto a list": lambda a, b, x: np.copyto(b, [x[0], 2, x[1]]),
    "copyto where": lambda a, b, x: np.copyto(a, [[1.0], [2], [3]], where=KEEP),
    "put along an axis": lambda a, b, x: np.put_along_axis(a, ROWS, [[1.0], [2], [3]], 1),
    "put a number along an axis": lambda a, b, x: np.put_along_axis(a, ROWS, 9, -1),
    "put along no axis": lambda a, b, x: np.put_along_axis(a, np.array([0, 2, 5]), x * 3, None),
    "a diagonal": lambda a, b, x: np.fill_diagonal(a, [x[0], 2]),
    "add at": lambda a, b, x: np.add.at(b, [0, 0, 2], [1, x[0], 3]),
    "a flat array": lambda a, b, x: operator.setitem(a.flat, [0, 2], [1, x[0]]),
}
OPERATORS = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow")
OPERANDS = ([1, 2, 3], (1.5, 2, 3), range(1, 4), [True, True, True], 2, np.float32(2))


def written(name):
    def f(x):
        a, b = np.outer(x, x), x * 1
        WRITES[name](a, b, x)
        return np.sum(a**2) + np.sum(b**3)

    return f


def agrees(f):
    """The value is NumPy's, and derivatives are those of differences of plain values."""
    u = np.array([0.3, -0.7, 0.2])
    wanted, _ = directional(f, X, u)
    value, forward = jvp(f, (X,), (u,))
    assert value == f(X)
    found = [forward, *[np.sum(run(X) * u) for run in (grad(f), grad(f, mode="reverse"), compile(grad(f)))]]
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", WRITES)
def test_functions_write_what_numpy_writes(name):
    """A list of floats as places was an IndexError, and writes along no axis were lost."""
    agrees(written(name))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("number", range(len(OPERANDS)))
def test_operators_in_place_take_what_numpy_takes(name, number):
    """`/=` and `**=` with a list raised errors of Python, and `//=` did not write into a second name or a view."""

    def f(x):
        a = x * 3.1
        second, view = a, a[1:]
        a = getattr(operator, name)(a, OPERANDS[number])
        return np.sum(second * x) + 2 * np.sum(view * x[1:])

    agrees(f)


@pytest.mark.parametrize("operate", [operator.add, operator.sub, operator.truediv, operator.pow, operator.matmul])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_range_is_an_operand(operate, swapped):
    agrees(lambda x: np.sum(operate(range(1, 4), x) if swapped else operate(x, range(1, 4))))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_in_place_keeps_the_shape(name):
    with pytest.raises(ValueError, match="shape|broadcast"):
        grad(lambda x: np.sum(getattr(operator, name)(x * 1, [[1], [2], [3]])))(X)


@pytest.mark.parametrize(
    "write",
    [
        lambda b: np.put(b, np.array([0.0]), 1.0),
        lambda b: np.put(b, [5], 1.0),
        lambda b: np.put(b, [0], 1.0, mode="bad"),
        lambda b: np.place(b, [True, True], [1.0]),
        lambda b: np.place(b, KEEP, []),
        lambda b: np.put_along_axis(b, np.array([0]), 1.0, 3),
    ],
)
def test_what_numpy_rejects_is_rejected_with_its_error(write):
    with pytest.raises(Exception) as plain:  # noqa: PT011
        write(X * 1)
    with pytest.raises(plain.type):
        grad(lambda x: np.sum(x) + (write(b := x * 1) or 0.0) + b[0])(X)
