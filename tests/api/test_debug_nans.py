"""`debug_nans` names the operation that first made a NaN or an infinity."""

import numpy as np
import pytest

from effgrad import NotFinite, debug_nans, grad, jvp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
X = np.array([1.0, 0.0, 4.0])


def test_forward():
    with pytest.raises(
        NotFinite, match=r"in the program, log\(array of shape \(3,\) from 0 to 4\) made -inf at index \(1,\)"
    ):
        debug_nans(lambda x: np.sum(np.log(x) * x))(X)


def test_it_points_at_the_line():
    def f(x):
        y = x * x
        return np.sum(y / (y - 1))

    with pytest.raises(NotFinite, match=r"return np.sum\(y / \(y - 1\)\)"):
        debug_nans(grad(f))(X)


def test_backward():
    with pytest.raises(NotFinite, match="in the reverse pass, reciprocal"):
        debug_nans(grad(lambda x: np.sum(np.sqrt(x) ** 2)))(X)


def test_second_order_and_forward_mode():
    with pytest.raises(NotFinite, match="in the program, reciprocal"):
        debug_nans(lambda x: jvp(np.sqrt, (x,), (np.ones(3),)))(X)
    with pytest.raises(NotFinite):
        debug_nans(grad(lambda x: np.sum(grad(lambda y: np.sum(y**1.5))(x))))(X)


def test_what_is_finite_is_returned_as_without():
    f = lambda x, n: {"a": np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0)) * n}  # noqa: E731
    assert debug_nans(f)(X, 2) == f(X, 2)
    gradient = grad(lambda x: f(x, 2)["a"])
    np.testing.assert_array_equal(debug_nans(gradient)(X), gradient(X))


def test_an_infinity_that_was_given_is_not_blamed_on_an_operation():
    assert debug_nans(lambda x: x + 1)(np.inf) == np.inf
