"""Points where a rule once lost its derivative without a word; the truth is stated by hand or by mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special as sp

from effgrad import grad, jvp


@pytest.mark.parametrize(
    "x, b, expected",
    [
        ([800.0, 0.0], [0.0, 1.0], [0.0, 1.0]),
        ([np.inf, 0.0], [1.0, 1.0], [1.0, 0.0]),
        ([np.inf, np.inf], [1.0, 3.0], [0.25, 0.75]),
        ([-np.inf, -np.inf], [1.0, 1.0], [0.0, 0.0]),
        ([-np.inf, 2.0], [1.0, 0.5], [0.0, 1.0]),
        ([1e4, 1e4], [2.0, -1.0], [2.0, -1.0]),
    ],
)
def test_logsumexp_with_weights_and_infinities(x, b, expected):
    x, b = np.array(x), np.array(b)
    np.testing.assert_array_equal(grad(lambda x: sp.logsumexp(x, b=b))(x), expected)
    for i in range(2):
        assert jvp(lambda x: sp.logsumexp(x, b=b), (x,), (np.eye(2)[i],))[1] == expected[i]


def test_logsumexp_by_its_weights_and_with_its_sign():
    x = np.array([1.0, 0.0])
    np.testing.assert_allclose(grad(lambda b: sp.logsumexp(x, b=b))(np.array([0.0, 1.0])), np.exp(x), rtol=1e-14)
    size, total = lambda b: sp.logsumexp(x, b=b, return_sign=True)[0], 1 - 2 * np.e  # noqa: E731
    np.testing.assert_allclose(grad(size)(np.array([-2.0, 1.0])), np.exp(x) / total, rtol=1e-14)


@pytest.mark.parametrize("function, args", [(sp.pdtrik, (0.1, 0.05)), (sp.nbdtrik, (0.1, 3.0, 0.9))])
def test_an_inverse_that_is_clipped_at_0_is_constant(function, args):
    assert function(*args) == 0
    for place in range(len(args)):
        assert grad(lambda t, place=place: function(*args[:place], t, *args[place + 1 :]))(args[place]) == 0


@pytest.mark.parametrize("z", [-2 + 1j, -2 - 1j, 2 + 1j, -0.5 + 0.1j, 0.3 - 2j, -2 + 0j])
def test_arccosh_in_all_quadrants(z):
    step = mpmath.mpc(0, 1e-15 if z.imag >= 0 else -1e-15)  # away from the cut
    with mpmath.workdps(50):
        exact = complex((mpmath.acosh(mpmath.mpc(z) + step) - mpmath.acosh(mpmath.mpc(z))) / step)
    np.testing.assert_allclose(grad(np.arccosh, holomorphic=True)(z), exact, rtol=1e-13)
