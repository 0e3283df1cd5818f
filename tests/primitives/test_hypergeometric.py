"""Derivatives of 2F1 and 1F1 in their parameters, compared with mpmath's differences in 40 digits."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

import effgrad
from effgrad import EffgradError, grad, jvp

GAUSS = [
    (1.0, 0.9, 1.1, 0.5), (1.2, -0.7, 2.3, -0.8), (2.5, 3.5, 1.2, 0.9), (-1.5, 0.5, 0.3, 0.6), (0.5, 1.5, 2.5, -30.0),
    (0.3, 0.4, 2.1, 0.0), (1.0, 1.0, 2.0, 0.97), (1.5, 2.2, 1.2, -0.7), (0.7, 3.1, 1.4, -5.0), (0.5, 2.0, 1.0, 0.3),
]  # fmt: skip
KUMMER = [
    (0.5, 1.5, 2.0), (1.5, 0.7, -3.0), (-0.4, 2.2, 12.0), (2.3, 4.1, -40.0), (3.5, 1.5, -0.8), (0.6, 1.1, 0.0),
]  # fmt: skip
COMPLEX = [(1.0, 0.9, 1.1, -0.2 + 0.15j), (0.6, 1.3, 2.2, -3 + 1j), (0.5, 1.2, 1.9, 0.4 - 0.6j)]
TOLERANCE = 2e-13


def partials(f, args):
    """The derivatives of mpmath's function, as a number of the argument's class, in each parameter."""
    with mp.workdps(40):
        many = range(len(args) - 1)
        return [complex(mp.diff(lambda t, i=i: f(*args[:i], t, *args[i + 1 :]), args[i])) for i in many]


CASES = [
    *((sp.hyp2f1, mp.hyp2f1, args) for args in GAUSS), *((sp.hyp1f1, mp.hyp1f1, args) for args in KUMMER)
]  # fmt: skip


@pytest.mark.parametrize(("f", "exact", "args"), CASES)
def test_first_derivatives(f, exact, args):
    expected = np.real(partials(exact, args))
    compiled = effgrad.compile(lambda p, z: grad(lambda p: f(*p, z))(p))(np.array(args[:-1]), args[-1])
    for found in (compiled, grad(lambda p: f(*p, args[-1]))(np.array(args[:-1]))):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    forward = [jvp(lambda p: f(*p, args[-1]), (np.array(args[:-1]),), (row,))[1] for row in np.eye(len(args) - 1)]
    np.testing.assert_allclose(forward, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("args", COMPLEX)
def test_at_complex_points(args):
    def part(p):
        z = sp.hyp2f1(*p, args[-1])
        return np.real(z) + 0.3 * np.imag(z)

    expected = [d.real + 0.3 * d.imag for d in partials(mp.hyp2f1, args)]
    np.testing.assert_allclose(grad(part)(np.array(args[:-1])), expected, rtol=TOLERANCE)


@pytest.mark.parametrize(("f", "exact", "args"), [CASES[0], CASES[1], CASES[4], CASES[10], CASES[11]])
def test_second_derivatives(f, exact, args):
    many = len(args)
    with mp.workdps(40):
        orders = [[tuple(int(k == i) + int(k == j) for k in range(many)) for j in range(many)] for i in range(many)]
        expected = [[float(mp.diff(exact, args, order)) for order in row] for row in orders]
    found = effgrad.hessian(lambda p: f(*p))(np.array(args))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_arrays_of_points_and_parameters():
    b, z = np.array([[0.7], [1.9]]), np.array([0.1, -0.6, -4.0])
    expected = [[partials(mp.hyp2f1, (1.1, p, 2.3, t))[1].real for t in z] for p in b[:, 0]]
    np.testing.assert_allclose(grad(lambda b: np.sum(sp.hyp2f1(1.1, b, 2.3, z)))(b)[:, 0], np.sum(expected, axis=1))


@pytest.mark.parametrize("args", [(0.5, 1.5, 2.5, 0.999), (-2.0, 1.5, 2.5, 0.3)])
def test_what_no_series_gives_is_refused(args):
    with pytest.raises(EffgradError, match="hyp2f1 has a derivative rule in its parameters where"):
        grad(lambda p: sp.hyp2f1(*p, args[-1]))(np.array(args[:-1]))
