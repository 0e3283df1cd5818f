"""The hard cases that are programs, beside those of `test_hard_cases`: nesting, failures, loops, containers."""

import copy
import dataclasses
import functools
import gc
import itertools
import math
import pickle
import weakref

import numpy as np
import pytest
from hard_cases import shows

import effgrad
from effgrad import (
    Detached,
    Irreproducible,
    NotDifferentiable,
    checkpoint,
    compile,
    function,
    grad,
    hessian,
    jacobian,
    jvp,
    stop_gradient,
    value_and_grad,
)
from effgrad.fast import REVERSE
from effgrad.primitives.primitive import elementwise


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


DERIVATIVES = {"forward": forward, **{mode: functools.partial(grad, mode=mode) for mode in REVERSE}}


@shows("N10", "x**4, third derivative at 2, every mode in every mode in every mode", "48")
@pytest.mark.parametrize("modes", list(itertools.product(DERIVATIVES, repeat=3)), ids="-".join)
def test_third_derivatives_in_all_mixes(modes):
    f = functools.reduce(lambda f, mode: DERIVATIVES[mode](f), modes, lambda x: x**4)
    assert f(2.0) == pytest.approx(48.0)


@shows("N4", "s = u -> f -> x -> f(x + u), D(s)(0) applied twice to exp, at 1 (and to x**3, at 5)", "e (and 30)")
@pytest.mark.parametrize("f, x, answer", [(np.exp, 1.0, math.e), (lambda x: x**3, 5.0, 30.0)])
def test_higher_order_derivatives_are_not_confused(f, x, answer):
    shift = function(lambda u: function(lambda f: function(lambda x: f(x + u))))
    d = jvp(shift, (0.0,), (1.0,))[1]
    assert d(d(f))(x) == pytest.approx(answer)


@shows("N7", "the Jacobian in q of the gradient in v of v·v/2 - 9.8 q[1]", "zeros (2, 2)")
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_mixed_derivatives_of_a_lagrangian(mode):
    def lagrangian(q, v):
        return np.sum(v * v) / 2 - 9.8 * q[1]

    result = jacobian(lambda q: grad(lagrangian, argnums=1)(q, np.ones(2)), mode=mode)(np.ones(2))
    np.testing.assert_array_equal(result, np.zeros((2, 2)))


@shows("N13", "a primitive whose rule itself differentiates, inside two derivatives", "the chain rule")
def test_a_rule_that_differentiates():
    sine = elementwise(np.sin, lambda y, x: grad(np.sin)(x), name="sine")
    assert grad(lambda x: x * sine(x))(1.0) == pytest.approx(math.sin(1) + math.cos(1))
    assert grad(grad(sine))(1.0) == pytest.approx(-math.sin(1))


@shows("N14", "functools.cache around a function of a traced value, two gradients at one point", "sin 1 + cos 1, twice")
def test_a_cache_does_not_leak_values_of_an_ended_derivative():
    cached = functools.cache(np.sin)
    for _ in range(2):
        assert grad(lambda x: x * cached(x))(1.0) == pytest.approx(math.sin(1) + math.cos(1))


@shows("X3", "an exception inside the reverse pass, then another gradient", "the exception; the next gradient is right")
@pytest.mark.parametrize("mode", REVERSE)
def test_an_exception_in_the_reverse_pass(mode):
    def partial(y, x):
        raise KeyError("in the rule")

    failing = elementwise(np.sin, partial, name="failing")
    with pytest.raises(KeyError, match="in the rule"):
        grad(lambda x: np.sum(failing(x * x) * x), mode=mode)(np.ones(2))
    assert grad(lambda x: x * grad(lambda y: x + y, mode=mode)(1.0), mode=mode)(1.0) == 1


@pytest.mark.thinned(7)
@shows("X4", "KeyboardInterrupt in the middle of a long program", "the interrupt; the memory is released")
@pytest.mark.parametrize("mode", REVERSE)
def test_an_interrupt_releases_the_memory(mode):
    released = []

    def f(x):
        for _ in range(50):
            x = np.sin(x)
            released.append(weakref.ref(x))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grad(f, mode=mode)(np.ones(1000))
    gc.collect()
    assert not any(reference() for reference in released)


@shows("D9", "rng.normal(loc=x): a compiled function that cannot know the derivative", "that of the draw, which moves")
def test_a_random_number_of_a_traced_mean_moves_with_it():
    assert grad(lambda x: np.random.default_rng(0).normal(loc=x))(1.0) == 1.0
    assert grad(lambda x: x + np.random.default_rng(0).normal())(1.0) == 1.0


@shows(
    "D10",
    "f-string, repr, sorted, hash, pickle, deepcopy",
    "readable; deepcopy keeps the derivative",
)
def test_a_traced_value_is_readable_and_sorts():
    def f(x):
        assert "2.0" in f"{x[1]}" and "2." in repr(x)
        assert sorted([x[1], x[0]])[0] == x[0] and len({x[0], x[1]}) == 2
        with pytest.raises(Detached):
            pickle.dumps(x)
        assert pickle.loads(pickle.dumps(stop_gradient(x)))[0] == 1.0
        return np.sum(copy.deepcopy(x) * 2)

    np.testing.assert_array_equal(grad(f)(np.array([1.0, 2.0])), [2, 2])


@shows("C1", "checkpoint(x -> x * rng.normal())", "the derivative for the number that was drawn first")
@shows("C8", "a checkpointed function that raises when run again", "its own exception")
@pytest.mark.parametrize("mode", [mode for mode in REVERSE if mode != "reverse"])  # it records a region as it runs
def test_a_region_that_cannot_be_repeated(mode):
    rng, numbers, runs = np.random.default_rng(0), iter(range(9)), []
    assert grad(lambda x: checkpoint(lambda: x * rng.normal()), mode=mode)(1.0) == np.random.default_rng(0).normal()
    with pytest.raises(Irreproducible):
        grad(lambda x: checkpoint(lambda: x * next(numbers)), mode=mode)(1.0)

    def once(x):
        runs.append(1)
        if len(runs) > 1:
            raise RuntimeError("only once")
        return x * x

    with pytest.raises(RuntimeError, match="only once"):
        grad(lambda x: checkpoint(once, x), mode=mode)(1.0)


@shows("C3", "a second derivative through a checkpoint: x**3 at 2", "12")
@shows("C4", "the gradient of a checkpointed function: x**3 at 2", "12")
@pytest.mark.parametrize("mode", REVERSE)
def test_derivatives_of_a_checkpointed_function(mode):
    def f(x):
        return checkpoint(lambda: x**3)

    assert grad(f, mode=mode)(2.0) == pytest.approx(12.0)
    assert grad(grad(f, mode=mode), mode=mode)(2.0) == pytest.approx(12.0)


@shows("C6", "checkpoints in a while loop whose number of steps is not known", "the same gradient")
def test_checkpoints_in_a_loop_of_unknown_length():
    def f(x, block):
        while x < 100:
            x = block(x)
        return x

    def block(x):
        for _ in range(3):
            x = x * 1.1
        return x

    assert grad(f)(1.5, lambda x: checkpoint(block, x)) == pytest.approx(grad(f)(1.5, block))


@shows("L6", "break, continue, else, early return, generators, recursion with a memo", "as in Python")
def test_control_flow_of_python():
    def f(x):
        total = 0.0
        for i in range(10):
            if i % 2:
                continue
            if total > 20:
                break
            total = total + x**i
        else:
            return x
        return total + sum(x * i for i in range(3))

    def fibonacci(n, memo):
        if n not in memo:
            memo[n] = fibonacci(n - 1, memo) + fibonacci(n - 2, memo)
        return memo[n]

    # 1 + x^2 + x^4 is 21 at 2, and then 3x.
    assert grad(f)(2.0) == 2 * 2 + 4 * 8 + 3
    assert grad(lambda x: fibonacci(30, {0: x, 1: x * x}))(1.0) == 514229 + 2 * 832040


@shows(
    "L8",
    "a compiled function that reads a variable outside it, changed between two calls",
    "documented: as at the first call",
)
def test_a_compiled_function_keeps_the_values_outside_it():
    scale = np.array([2.0])
    f = compile(lambda x: np.sum(x * scale))
    assert f(np.ones(1)) == 2.0
    scale[0] = 3.0
    assert f(np.ones(1)) == 2.0
    assert f(np.ones((1, 1))) == 3.0  # another shape is staged anew
    assert "(what it closes over, globals, random numbers) is constant" in " ".join(compile.__doc__.split())


@shows("E1", "a float32 point and a float64 constant", "a float32 gradient")
@shows("E2", "x.astype(float32).sum()", "a float64 gradient")
@shows("E4", "float16, longdouble, 0-d arrays and Python floats", "the same kind out as in")
@pytest.mark.parametrize("mode", REVERSE)
def test_the_type_of_a_gradient_is_that_of_its_point(mode):
    for dtype in (np.float16, np.float32, np.float64, np.longdouble):
        assert grad(lambda x: np.sum(x * np.ones(2)), mode=mode)(np.ones(2, dtype)).dtype == dtype
    assert grad(lambda x: np.sum(x.astype(np.float32)), mode=mode)(np.ones(2)).dtype == np.float64
    assert type(grad(np.sin, mode=mode)(1.0)) is float
    zero_dimensional = grad(np.sin, mode=mode)(np.array(1.0))
    assert type(zero_dimensional) is np.ndarray and zero_dimensional.shape == ()


@dataclasses.dataclass
class Leaf:
    x: float


@dataclasses.dataclass
class Node:
    left: object
    right: object
    label: str = ""


@shows("E6", "None, str and int in containers; dataclasses and named tuples", "the same containers, with these kept")
@shows("E7", "a sum type: Leaf(x) | Node(l, r), the sum of squares", "a tree of the same shape, of 2x")
@pytest.mark.parametrize("mode", REVERSE)
def test_trees_of_a_sum_type(mode):
    def squares(tree):
        return tree.x**2 if isinstance(tree, Leaf) else squares(tree.left) + squares(tree.right)

    tree = Node(Leaf(1.0), Node(Leaf(2.0), Leaf(3.0), "inner"))
    assert grad(squares, mode=mode)(tree) == Node(Leaf(2.0), Node(Leaf(4.0), Leaf(6.0), "inner"))


@shows("E9", "aux output, default and keyword-only arguments, methods, functools.partial", "as in the call")
def test_functions_are_called_as_they_are():
    class Model:
        scale = 3.0

        def loss(self, x, power=2, *, shift=0.0):
            return self.scale * x**power + shift, {"power": power}

    model = Model()
    assert grad(model.loss, has_aux=True)(2.0, shift=1.0) == (12.0, {"power": 2})
    assert grad(functools.partial(model.loss, power=3), has_aux=True)(2.0) == (36.0, {"power": 3})
    assert value_and_grad(lambda x, y=4.0: x * y)(2.0) == (8.0, 4.0)


@shows("Z8", "a gradient of a complex output that is not declared holomorphic", "an error")
def test_a_complex_output_has_no_gradient():
    with pytest.raises(NotDifferentiable, match="complex"):
        grad(lambda z: z * z)(1j)
    with pytest.raises(effgrad.EffgradError):
        grad(np.conj, holomorphic=True)(1j)


@shows("S5", "the returned gradient", "has memory of its own, and can be written to")
@pytest.mark.parametrize("mode", REVERSE)
def test_a_gradient_has_memory_of_its_own(mode):
    x = np.ones((2, 3))
    for f in (np.sum, lambda x: np.sum(x.T), lambda x: np.sum(x[::-1] + x[:1]), lambda x: 0.0 * x[0, 0]):
        gradient = grad(f, mode=mode)(x)
        gradient[0] = 7.0
        np.testing.assert_array_equal(gradient[0], 7.0)
        assert not np.may_share_memory(gradient, x)


def test_hessians_of_rows():
    np.testing.assert_allclose(hessian(lambda x: np.sum(x[[0, 0]] ** 2))(np.array([1.0, 2.0])), [[4, 0], [0, 0]])
