"""`isotonic_regression` and `linear_sum_assignment`: pieces that change in steps, and numbers that move in them."""

import numpy as np
import pytest
import scipy.integrate
from differences import partials
from scipy.optimize import isotonic_regression, linear_sum_assignment

import effgrad
from effgrad import grad, hessian, jacobian, vmap

Y = np.array([1.5, 1.0, 4.0, 6.0, 5.7, 5.0, 7.8, 9.0, 7.5, 9.5])
W = np.arange(1.0, 11.0)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("f", [
    lambda z, up: isotonic_regression(z, increasing=up).x,
    lambda z, up: isotonic_regression(Y, weights=z, increasing=up).x,
    lambda z, up: isotonic_regression(Y, weights=z, increasing=up).weights,
    lambda z, up: isotonic_regression(z * W, weights=z, increasing=up).x,
], ids=["values", "weights", "weights of blocks", "both"])  # fmt: skip
def test_blocks_have_the_mean_of_their_values(f, increasing):
    x = Y[::-1] + np.sin(W)
    np.testing.assert_array_equal(effgrad.jvp(lambda z: f(z, increasing), (x,), (x,))[0], f(x, increasing))
    np.testing.assert_allclose(
        jacobian(lambda z: f(z, increasing))(x), partials(lambda z: f(z, increasing), x, 1e-6), rtol=1e-6, atol=1e-8
    )


def test_blocks_in_batches_compiled_and_to_second_order(run):
    def loss(y):
        return np.sum(np.sin(isotonic_regression(y, weights=W).x))

    rows = np.stack([Y, np.sin(3 * W), -Y])
    expected = [partials(loss, y, 1e-6) for y in rows]
    np.testing.assert_allclose(vmap(grad(loss))(rows), expected, rtol=1e-6, atol=1e-8)
    gradient = run(grad)(loss)
    np.testing.assert_allclose([gradient(y) for y in rows], expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(hessian(loss)(Y), partials(grad(loss), Y, 1e-6), rtol=1e-5, atol=1e-7)


def matched(x):
    costs = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]) * x + x[0] ** 2
    rows, columns = linear_sum_assignment(costs)
    return np.sum(costs[rows, columns] ** 2)


def test_each_member_of_a_batch_has_its_own_assignment(run):
    """The assignment of a batch was an error, and a compiled program was staged for each matrix of costs."""
    points = np.array([[0.7, 1.3, 0.4], [2.0, 0.1, 1.0], [0.1, 3.0, 0.2]])
    expected = [partials(matched, x, 1e-6) for x in points]
    np.testing.assert_allclose(vmap(matched)(points), [matched(x) for x in points], rtol=1e-14)
    np.testing.assert_allclose(vmap(grad(matched))(points), expected, rtol=1e-7)
    gradient = run(grad)(matched)
    np.testing.assert_allclose([gradient(x) for x in points], expected, rtol=1e-7)


def test_an_assignment_is_not_a_matrix():
    with pytest.raises(ValueError, match="2-D"):
        grad(lambda x: linear_sum_assignment(x)[0][0] * x[0])(Y)


def test_counts_of_odeint_are_constants():
    """Numbers of steps and evaluations were refused with the lengths of steps."""

    def f(x, key="nst"):
        states, info = scipy.integrate.odeint(lambda y, t: -x * y, 1.0, [0, 1.0], full_output=True)
        return states[-1, 0] * info[key][-1]

    assert grad(f)(1.0) == pytest.approx(-np.exp(-1) * f(1.0) / np.exp(-1), rel=1e-6)
    with pytest.raises(effgrad.NoRule, match="odeint has no derivative rule for the field 'hu'"):
        grad(lambda x: f(x, "hu"))(1.0)
