"""`np.nditer` of traced arrays goes through the elements in NumPy's order, and keeps their derivatives."""

import numpy as np
import pytest

from effgrad import compile, grad, value_and_grad

X, STEP = np.array([0.7, 1.3, 2.1]), 1e-5
ARRAYS = {
    "a vector": lambda x: x, "rows": lambda x: np.outer(x, x**2), "columns": lambda x: np.outer(x, x**2).T,
    "a view": lambda x: np.outer(x, x)[::-1, :2], "a part": lambda x: np.outer(x, x)[:, 1:], "a number": lambda x: x[1],
    "no element": lambda x: x[:0], "written": lambda x: written(x).T,
}  # fmt: skip


def written(x):
    a = np.ones((2, 3))
    a[1] = x
    return a


def in_order(a, order):
    return sum((i + 1) * v**2 for i, v in enumerate(np.nditer(a, order=order, flags=["zerosize_ok"])))


def with_places(a, order):
    total, it = 0.0, np.nditer(a, ["multi_index", "zerosize_ok"], order=order)
    for v in it:
        total = total + v * sum((n + 2) * i for n, i in enumerate(it.multi_index)) * it.iterindex
    return total


def by_steps(a, order):
    total = 0.0
    with np.nditer(a, flags=["f_index", "zerosize_ok"], order=order) as it:
        while not it.finished:
            total = total + it[0] * (it.index + 1)
            it.iternext()
        it.reset()
        return total + (float(next(it)) if it.itersize else 0.0)


def of_two(a, order):
    total = 0.0
    for i, (p, q) in enumerate(np.nditer([a, np.arange(1.0, 1 + a.shape[-1] if np.ndim(a) else 2)], order=order)):
        total = total + p * q * i
    return total


def assert_right(f):
    """Assert that the value and the gradient of a program are right, compiled too, at a point it was not staged for."""
    value, gradient = value_and_grad(f)(X)
    assert value == f(X)
    expected = [(f(X + h) - f(X - h)) / (2 * STEP) for h in STEP * np.eye(3)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-8)
    compiled = compile(grad(f))
    compiled(2 * X)
    np.testing.assert_allclose(compiled(X), gradient, rtol=1e-12)


@pytest.mark.parametrize("order", ["K", "C", "F"])
@pytest.mark.parametrize("loop", [in_order, with_places, by_steps, of_two], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ARRAYS)
def test_elements_come_in_numpys_order(name, loop, order):
    def f(x):
        return 1.0 * loop(ARRAYS[name](x), order) + x[0]

    if name == "no element" and loop is of_two:
        pytest.skip("NumPy iterates over no elements only if it is told to")
    assert_right(f)


def squared(x):
    out = np.zeros(3)
    with np.nditer([x, out], op_flags=[["readonly"], ["writeonly"]]) as it:
        for a, b in it:
            b[...] = a * a
    return out


def in_place(x):
    a = np.outer(x, x).T
    part = a[:2]
    for v in np.nditer(a, op_flags=["readwrite"]):
        v *= v
    return part


def made(x):
    it = np.nditer([np.outer(x, x).T, x, None], flags=["multi_index"])
    while not it.finished:
        it[2] = it[0] ** 2 * it[1] * it.multi_index[0]
        it.iternext()
    assert it.operands[2].strides == (8, 24)
    return it.operands[2]


def by_out(x):
    with np.nditer([x, None, x[::-1]]) as it:
        for a, y, c in it:
            np.add(a * c, 1, out=y)
        return it.operands[1]


def plain_arrays(x):
    """The array holds one traced number, then the elements of another array are written as the first is read."""
    a, b = np.zeros(3), np.zeros((1, 3), order="F")
    a[0] = x[0]
    for v, w in zip(np.nditer(a, op_flags=["readwrite"]), np.nditer(b, op_flags=[["readwrite"]]), strict=True):
        v[...] = v * 2 + x[1]
        w[()] = v * x[2]
    with np.nditer(np.arange(3.0), ["external_loop", "buffered"], ["readwrite"]) as chunks:
        constant = sum(chunk.sum() for chunk in chunks)
    return np.stack([a, b[0]]) * constant


@pytest.mark.parametrize("f", [squared, in_place, made, by_out, plain_arrays], ids=lambda f: f.__name__)
def test_elements_are_written(f):
    def total(x):
        return np.sum(f(x) * np.cos(np.arange(3.0)))

    assert_right(total)


def test_an_operand_that_is_spread_is_not_written():
    for derive in (lambda f: f, grad):
        with pytest.raises(ValueError, match="requires a reduction"):
            derive(lambda x: [0.0 for _ in np.nditer([np.outer(x, x), x * 1.0], op_flags=["readwrite"])][0])(X)
