"""All modes agree with each other and with differences in high precision, on generated programs and nested."""

import functools
import math

import mpmath
import numpy as np
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Numpy
from runs import eagerly, examples, third

from effgrad import checkpoint, function, grad, hessian, jvp, second_order, taylor, vjp
from effgrad.fast import REVERSE

BACKEND = "numpy"  # of the compiled runs

points = st.lists(st.floats(-1.5, 1.5).map(lambda a: round(a, 3)), min_size=3, max_size=3).map(np.array)
directions = st.lists(st.sampled_from([-1.0, 0.5, 1.0]), min_size=3, max_size=3).map(np.array)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-9)


# Each mode as an operator on functions of one number, and the order of the derivative that it gives; and other ways to
# the same.
OPERATORS = {
    "forward": (1, lambda run, f: lambda x: run(jvp)(f, (x,), (1.0,))[1]),
    **{mode: (1, lambda run, f, mode=mode: run(grad)(f, mode=mode)) for mode in REVERSE},
    "second_order": (2, lambda run, f: lambda x: run(second_order)(f, x)[2]),
    "taylor": (1, lambda run, f: lambda x: run(taylor)(f, [x, 1.0])[1]),
    "hessian": (2, lambda run, f: run(hessian)(f, mode="hessian")),
}
OTHERS = {
    "vjp": (1, lambda run, f: lambda x: vjp(f, x)[1](1.0)[0]),
    "second_order, first": (1, lambda run, f: lambda x: run(second_order)(f, x)[1]),
    "taylor, order 2": (2, lambda run, f: lambda x: 2.0 * run(taylor)(f, [x, 1.0], order=2)[2]),
}


@settings(deadline=None, max_examples=examples(150))
@given(programs.programs(), points, directions)
def test_first_order(run, steps, x, u):
    def f(x):
        return programs.run(Numpy, steps, [x[0], x[1], x[2]])

    expected = programs.differences(steps, x, u, 1)
    close(run(jvp)(f, (x,), (u,))[1], expected)
    close(run(second_order)(f, x, u)[1], expected)
    close(run(taylor)(f, [x, u])[1], expected)
    for mode in REVERSE:
        close(np.dot(run(grad)(f, mode=mode)(x), u), expected)
        # The same on Python floats, for which modes have operators of their own.
        numbers = run(grad)(lambda *x: programs.run(Numpy, steps, x), argnums=(0, 1, 2), mode=mode)(*map(float, x))
        close(np.dot(numbers, u), expected)


@settings(deadline=None, max_examples=examples(60))
@given(programs.programs(), points, directions)
def test_second_order(run, steps, x, u):
    def f(x):
        return programs.run(Numpy, steps, [x[0], x[1], x[2]])

    expected = programs.differences(steps, x, u, 2)
    close(u @ run(hessian)(f)(x) @ u, expected)
    close(u @ run(hessian)(f, mode="hessian")(x) @ u, expected)
    close(run(second_order)(f, x, u)[2], expected)
    close(2 * run(taylor)(f, [x, u], order=2)[2], expected)
    for mode in REVERSE:
        close(np.dot(run(jvp)(run(grad)(f, mode=mode), (x,), (u,))[1], u), expected)
        close(np.dot(run(grad)(lambda x, mode=mode: np.dot(run(grad)(f, mode=mode)(x), u))(x), u), expected)
        close(np.dot(run(grad)(lambda x: run(jvp)(f, (x,), (u,))[1], mode=mode)(x), u), expected)


@settings(deadline=None, max_examples=examples(60))
@given(programs.programs(), points)
def test_the_sparse_hessian_is_the_dense_one(steps, x):
    f = lambda x: programs.run(Numpy, steps, [x[0], x[1], x[2]])  # noqa: E731
    close(hessian(f, sparse=True)(x).toarray(), hessian(f)(x))


@settings(deadline=None, max_examples=examples(100))
@given(programs.programs(), points, st.permutations(sorted(OPERATORS | OTHERS)))
def test_generated_programs_under_two_modes(run, steps, x, modes):
    """Along the line x + t, under any two modes of first order."""
    first, second = [operator for order, operator in map((OPERATORS | OTHERS).get, modes) if order == 1][:2]
    f = lambda t: programs.run(Numpy, steps, [x[0] + t, x[1] + t, x[2] + t])  # noqa: E731
    close(first(run, second(run, f))(0.0), programs.differences(steps, x, np.ones(3), 2))


def nested_program(x):
    """One number to one number, by everything that a mode can meet."""
    a = np.zeros(2)
    a[0] = x
    a[1:] = np.sin(a[0])
    y = checkpoint(lambda: np.tanh(a * x)[1] + x / (2.0 + x * x))
    scale = function(lambda t: t * y)
    return scale(np.sum(a * a)) + (np.exp(0.2 * x) if x > 0 else x)


@functools.cache
def exact(order):
    """Its derivatives at 0.7, along the lines of a Taylor series in 60 digits."""

    def f(x):
        s = mpmath.sin(x)
        y = mpmath.tanh(s * x) + x / (2 + x * x)
        return (x * x + s * s) * y + mpmath.exp(x / 5)

    with mpmath.workdps(60):
        return float(mpmath.diff(f, mpmath.mpf(0.7), order))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("outer", OPERATORS)
@pytest.mark.parametrize("middle", OPERATORS)
def test_every_mode_in_every_mode_in_every_mode(outer, middle):
    for inner in third(OPERATORS, outer, middle):
        order, operator = OPERATORS[inner]
        total = order + OPERATORS[middle][0] + OPERATORS[outer][0]
        actual = OPERATORS[outer][1](eagerly, OPERATORS[middle][1](eagerly, operator(eagerly, nested_program)))(0.7)
        np.testing.assert_allclose(actual, exact(total), rtol=1e-7, err_msg=inner)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("outer", OPERATORS)
@pytest.mark.parametrize("middle", OPERATORS)
def test_inner_derivatives_close_over_the_values_of_outer_ones(run, outer, middle):
    """Perturbations are not confused: x * D(y -> x y^3 D(z -> x y z^3)) and the like, a polynomial to compare with."""
    (m, in_middle), (n, at_top) = OPERATORS[middle], OPERATORS[outer]
    for inner in third(OPERATORS, outer, middle):
        k, operator = OPERATORS[inner]

        def second(x, y, operator=operator):
            return x * y**3 * operator(run, lambda z: x * y * z**3)(x * y)

        def first(x):
            return x**2 * in_middle(run, lambda y: second(x, y))(x * x)

        # D^k z^3 at xy is falling(3, k) (xy)^(3-k); then D^m in y; then D^n of a monomial in x.
        power_y = 3 + 1 + 3 - k
        power_x = 2 + 1 + 1 + 3 - k + 2 * (power_y - m)
        expected = math.perm(3, k) * math.perm(power_y, m) * math.perm(power_x, n) * 1.3 ** (power_x - n)
        np.testing.assert_allclose(at_top(run, first)(1.3), expected, rtol=1e-10, err_msg=inner)
