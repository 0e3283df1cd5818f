"""Derivatives of `quad` with weights, beside mpmath's integrals of the same integrands in 40 digits."""

import mpmath
import numpy as np
import pytest
from scipy import integrate

import effgrad
from effgrad import grad, hessian

P = np.array([0.7, -0.3, 0.4])


def powers(weight):
    """A program whose parameters are in the integrand, in both powers and in both ends."""

    def f(p):
        return integrate.quad(
            lambda t: np.exp(p[0] * t) / (2 + t), 0.1 * p[0], 1 + p[2], weight=weight, wvar=(p[1], p[2] * p[0])
        )[0]

    def exact(p):
        a, b, logarithms = p[0] / 10, 1 + p[2], weight.removeprefix("alg")
        low = mpmath.log if logarithms in ("-loga", "-log") else lambda t: 1
        high = mpmath.log if logarithms in ("-logb", "-log") else lambda t: 1
        power, other = p[1], p[2] * p[0]

        def half(from_low):  # t is the distance from an end; t = s**k takes its singularity away
            k, length = 8, (b - a) / 2

            def term(s):
                t = s**k
                x = a + t if from_low else b - t
                one, two = (t, b - x) if from_low else (x - a, t)
                weight = one**power * two**other * low(one) * high(two)
                return mpmath.exp(p[0] * x) / (2 + x) * weight * k * s ** (k - 1)

            return mpmath.quad(term, [0, length ** (mpmath.mpf(1) / k)])

        return half(True) + half(False)

    return f, exact


def pole(shift):
    """A principal value whose pole is nearer to the first end, to the second, in the middle, or outside."""

    def f(p):
        return integrate.quad(lambda t: np.cos(p[0] * t), p[1], 1.3, weight="cauchy", wvar=shift + 0.1 * p[2])[0]

    def exact(p):
        a, b, c = p[1], mpmath.mpf(1.3), shift + mpmath.mpf(0.1) * p[2]
        value = mpmath.cos(p[0] * c)
        rest = mpmath.quad(lambda t: (mpmath.cos(p[0] * t) - value) / (t - c), [a, b] if c > b else [a, c, b])
        return rest + value * mpmath.log(abs((b - c) / (c - a)))

    return f, exact


PROGRAMS = {
    **{weight: powers(weight) for weight in ("alg", "alg-loga", "alg-logb", "alg-log")},
    **{f"cauchy {shift}": pole(shift) for shift in (0.1, 0.46, 0.9, 1.6)},
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_weight_has_the_derivatives_of_the_integral(name, run):
    f, exact = PROGRAMS[name]
    assert effgrad.value_and_grad(f)(P)[0] == f(P)
    with mpmath.workdps(40):
        h = mpmath.mpf("1e-8")
        point = [mpmath.mpf(float(x)) for x in P]

        def at(*places):
            moved = list(point)
            for place, sign in places:
                moved[place] += sign * h
            return exact(moved)

        slopes = [float((at((i, 1)) - at((i, -1))) / (2 * h)) for i in range(3)]
        bends = [
            float((at((i, 1), (0, 1)) - at((i, 1), (0, -1)) - at((i, -1), (0, 1)) + at((i, -1), (0, -1))) / (4 * h * h))
            for i in range(3)
        ]
    np.testing.assert_allclose(run(grad)(f)(P), slopes, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(hessian(f)(P)[0], bends, rtol=1e-7, atol=1e-8)
    forward = effgrad.jvp(f, (P,), (np.array([1.0, 2.0, -1.0]),))[1]
    np.testing.assert_allclose(forward, np.dot(slopes, [1, 2, -1]), rtol=1e-9)


def test_ends_in_the_other_order():
    def f(p):
        return integrate.quad(lambda t: np.exp(p * t), 1.0, -0.5, weight="cauchy", wvar=p)[0]

    np.testing.assert_allclose(grad(f)(0.3), (f(0.3 + 1e-5) - f(0.3 - 1e-5)) / 2e-5, rtol=1e-7)


def test_a_complex_integrand_with_a_weight():
    def f(p):
        return abs(integrate.quad(lambda t: np.exp(1j * p * t), 0, 1, weight="alg", wvar=(p, 0), complex_func=True)[0])

    np.testing.assert_allclose(grad(f)(0.3), (f(0.3 + 1e-5) - f(0.3 - 1e-5)) / 2e-5, rtol=1e-7)


def test_a_batch_of_weights():
    def f(p):
        return integrate.quad(lambda t: np.exp(p * t), 0, 1, weight="alg", wvar=(p, 0.5))[0]

    points = np.array([-0.5, 0.2, 1.0])
    np.testing.assert_allclose(effgrad.vmap(grad(f))(points), [grad(f)(p) for p in points], rtol=1e-13)


@pytest.mark.parametrize("name", ["quad", "quad_vec"])
def test_an_interval_without_length_has_second_and_third_derivatives(name):
    """The integral was its length times the integrand at its first end: the second derivative by the other was 0."""
    f = effgrad.hessian(lambda z: getattr(integrate, name)(np.exp, z[0], z[1])[0])
    np.testing.assert_allclose(f(np.ones(2)), [[-np.e, 0], [0, np.e]], rtol=1e-13, atol=1e-14)
    third = effgrad.jacobian(f)(np.ones(2))
    np.testing.assert_allclose([third[0, 0, 0], third[1, 1, 1], third[0, 0, 1]], [-np.e, np.e, 0], atol=1e-12)


def kinked(p):
    return integrate.quad(lambda t: abs(t - p), 0, 1, weight="alg", wvar=(0.5, 0))[0]


def jumping(p):
    return integrate.quad(lambda t: 1.0 if t > p else p * t, 0, 1, weight="alg", wvar=(0.5, 0))[0]


def jumping_beside_a_pole(p):
    return integrate.quad(lambda t: 1.0 if t > p else p * t, 0, 1, weight="cauchy", wvar=0.75)[0]


def to_infinity(p):
    return integrate.quad(lambda t: np.exp(-p * t), 0, np.inf, weight="cos", wvar=2.0)[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f", [kinked, jumping, jumping_beside_a_pole, to_infinity])
def test_what_has_no_derivative_is_refused(f):
    with pytest.raises(effgrad.NoRule, match="quad"):
        grad(f)(0.4)
