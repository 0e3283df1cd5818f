"""Functions as values: passed, returned, stored and mapped, with derivatives of what they close over."""

import math
import tracemalloc

import numpy as np
import pytest
from runs import eagerly

from effgrad import function, grad, jvp, vjp
from effgrad.api.run import run as run_mode
from effgrad.fast import REVERSE
from effgrad.modes import READABLE

BACKEND = "numpy"  # of the compiled runs

MODES = ["taped", "reverse", "continuation", "delta", "checkpointed", "higher_order", "higher_order_checkpointed"]


def derivative(run, f):
    return lambda x: run(jvp)(f, (x,), (1.0,))[1]


def shifted(u):
    return function(lambda f: function(lambda x: f(x + u)))


def test_no_higher_order_perturbation_confusion():
    d = derivative(eagerly, shifted)(0.0)
    assert d(d(lambda x: x**3))(5.0) == 30.0
    assert d(d(np.exp))(1.0) == pytest.approx(math.e)
    assert d(d(d(lambda x: x**4)))(2.0) == pytest.approx(48.0)


def test_the_value_of_a_function_output_is_usable_afterwards():
    value, tangent = jvp(lambda a: {"f": function(lambda x: a * x * x), "n": a * a}, (3.0,), (1.0,))
    assert value["f"](2.0) == 12.0 and value["n"] == 9.0
    assert tangent["f"](2.0) == 4.0 and tangent["n"] == 6.0
    assert grad(tangent["f"])(2.0) == 4.0  # d/dx of d/da a x^2


@pytest.mark.parametrize("mode", MODES)
def test_functions_are_passed_returned_stored_and_mapped(run, mode):
    def program(w):
        scale = function(lambda x: w[0] * x)
        layers = [scale, function(np.tanh), function(lambda x: x + w[1])]

        def compose(functions):
            def composed(x):
                for f in functions:
                    x = f(x)
                return x

            return function(composed)

        table = {"net": compose(layers)}
        return sum(map(table["net"], [0.5, 1.0])) * compose([table["net"], scale])(2.0)

    w = np.array([0.7, -0.2])
    plain = [(program(w + e) - program(w - e)) / 2e-6 for e in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(run(grad)(program, mode=mode)(w), plain, rtol=1e-8)
    np.testing.assert_allclose(vjp(program, w)[1](1.0)[0], plain, rtol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_recursive_functions(run, mode):
    @function
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert run(grad)(power, mode=mode)(2.0, 5) == 80.0


def test_checkpointed_applications_run_twice_and_others_once(run):
    runs = []

    @function
    def f(x):
        runs.append(1)
        return np.sin(x)

    run(grad)(lambda x: f(f(x)), mode="higher_order")(1.0)
    assert len(runs) == 2
    runs.clear()
    run(grad)(lambda x: f(f(x)), mode="higher_order_checkpointed")(1.0)
    assert len(runs) == 4


def test_an_instrumented_function_called_with_plain_values_just_works():
    assert function(lambda x, y=1: x + y)(2, y=5) == 7


def nested(depth, sines):
    @function
    def f(x, k):
        if k == 0:
            return x
        x = f(x, k - 1)
        for _ in range(sines):
            x = np.sin(x)
        return x

    return lambda x: np.sum(f(x, depth))


def peak_of(program):
    tracemalloc.start()
    try:
        program()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("reverse", [READABLE, REVERSE], ids=["readable", "fast"])
def test_checkpoints_of_nested_functions_save_memory(reverse):
    """80 functions, each of which calls the next, took three times the memory that they take without checkpoints."""
    x, f = np.linspace(0.1, 1.0, 1000), nested(80, 5)

    def pulled(mode):
        activation, shadows = run_mode(reverse[mode](), lambda xs: f(*xs), [(x,)], seeded)
        return activation.cotangents(shadows)[0]

    def seeded(activation, shadows, output):
        activation.seed(output, 1.0)
        return activation, shadows

    plain, checkpointed = pulled("higher_order"), pulled("higher_order_checkpointed")
    np.testing.assert_array_equal(plain, checkpointed)
    assert peak_of(lambda: pulled("higher_order_checkpointed")) < 0.15 * peak_of(lambda: pulled("higher_order"))


def test_a_pullback_over_checkpoints_may_be_called_again():
    """What a walk forgets on its way is recorded anew by the next."""
    f = nested(3, 2)
    _, pullback = vjp(f, np.array([0.3, 0.9]), mode="higher_order_checkpointed")
    first, second = pullback(1.0)[0], pullback(1.0)[0]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, grad(f)(np.array([0.3, 0.9])), rtol=1e-12)
