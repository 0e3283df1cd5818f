"""Views that are made by rearranging elements have NumPy's gaps, so that a `ravel` of one is a copy as in NumPy."""

import numpy as np
import pytest

import effgrad
from effgrad import jvp, value_and_grad

POINT = np.array([[0.3, 0.7], [0.2, 0.6]])
VIEWS = [
    lambda a: np.flip(a[0]).reshape(-1, order="F"), lambda a: a[:, 1].reshape(-1, order="F"),
    lambda a: a.T.reshape(2, 2, order="F"), lambda a: a.T.reshape(-1, order="A"),
    lambda a: a[::-1].reshape(2, 2, order="F"), lambda a: np.diagonal(a.T), lambda a: np.diagonal(a[::-1]),
    lambda a: np.lib.stride_tricks.sliding_window_view(a[:, ::-1], 2, axis=0),
]  # fmt: skip
RUNS = {
    "forward": lambda f, x: jvp(f, (x,), (np.ones_like(x),)),
    "reverse": lambda f, x: (lambda value, slope: (value, np.sum(slope)))(*value_and_grad(f)(x)),
    "compiled": lambda f, x: effgrad.compile(lambda x: jvp(f, (x,), (np.ones_like(x),)))(x),
}


@pytest.mark.parametrize("along", RUNS)
@pytest.mark.parametrize("flat", [lambda a: a.ravel(), lambda a: a.reshape(-1)])
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_is_seen_where_numpy_sees_it(view, flat, along):
    """`ravel` took a view with gaps for an array without, and returned another view."""

    def f(x):
        a = x * 1.0
        b = flat(view(a))
        a[1, 1] *= 2.0
        a[0, 1] *= 3.0
        if b.flags.writeable:
            b[0] *= 3.0
            b[1] += 2.0 * x[0, 0]
        return np.sum(b * np.arange(1.0, 1 + b.size)) + 10.0 * np.sum(a * np.arange(4.0).reshape(2, 2))

    value, tangent = RUNS[along](f, POINT.copy())
    assert value == pytest.approx(f(POINT.copy()), rel=1e-14)
    assert tangent == pytest.approx((f(POINT + 1e-3) - f(POINT - 1e-3)) / 2e-3, rel=1e-10)
