"""Programs on which other systems are wrong or refuse: each with its right answer, in forward and reverse mode."""

import asyncio
import copy
import gc
import io
import math
import operator
import threading

import numpy as np
import pytest
from hard_cases import MATRIX, shows
from runs import eagerly

from effgrad import (
    Detached,
    EffgradError,
    EscapedValue,
    NoRule,
    NotDifferentiable,
    compile,
    grad,
    jvp,
    stop_gradient,
    vjp,
)
from effgrad.fast import REVERSE

BACKEND = "native"  # of the compiled runs

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
a = np.array


def forward_gradient(run, f, x):
    if np.ndim(x) == 0:
        return run(jvp)(f, (x,), (1.0,))[1]
    result = np.zeros(np.shape(x))
    for place in np.ndindex(np.shape(x)):
        basis = np.zeros(np.shape(x))
        basis[place] = 1.0
        result[place] = run(jvp)(f, (x,), (basis,))[1]
    return result


@pytest.mark.thinned(2)
@pytest.mark.parametrize("mode", REVERSE)
@pytest.mark.parametrize("row", MATRIX)
def test_reverse_modes_give_the_right_answer(row, mode):
    f, x, answer = MATRIX[row]
    before = np.copy(x)
    np.testing.assert_allclose(grad(f, mode=mode)(x), answer, atol=1e-12)
    np.testing.assert_array_equal(x, before)


# Forward mode carries the one tangent of a vector input, in which M24's NaN cannot be kept apart from its neighbour.
@pytest.mark.parametrize("row", [row for row in MATRIX if row != "M24"])
def test_forward_gives_the_right_answer(row):
    f, x, answer = MATRIX[row]
    np.testing.assert_allclose(forward_gradient(eagerly, f, x), answer, atol=1e-12)


# A program of Python floats is recorded with Python's division, which refuses Z4's zero.
@pytest.mark.thinned(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("row", [row for row in MATRIX if row != "Z4"])
def test_compiled_gradients_give_the_right_answer(row, backend):
    f, x, answer = MATRIX[row]
    compiled = compile(grad(f), backend)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x), answer, atol=1e-12)


DERIVATIVES = {"reverse": grad, "forward": lambda f: lambda x: jvp(f, (x,), (1.0,))[1]}


@shows("N1", "D(x -> x * D(y -> x + y)(1))(1)", "1")
@shows("N2", "D(x -> x * D(y -> x * y)(1))(4)", "8")
@shows("N3", "D(x -> D(y -> x)(1))(1)", "0")
@pytest.mark.parametrize("inner", DERIVATIVES)
@pytest.mark.parametrize("outer", DERIVATIVES)
def test_nested_derivatives_do_not_confuse_perturbations(outer, inner):
    d, e = DERIVATIVES[outer], DERIVATIVES[inner]
    assert d(lambda x: x * e(lambda y: x + y)(1.0))(1.0) == 1
    assert d(lambda x: x * e(lambda y: x * y)(1.0))(4.0) == 8
    assert d(lambda x: e(lambda y: x)(1.0) + 0 * x)(1.0) == 0
    assert d(e(d(lambda x: x**4)))(2.0) == 48


@shows("T1", "a derivative in one thread, which ends while another thread runs a nested one", "6 and 1")
def test_interleaved_threads_do_not_confuse_perturbations():
    started, ended, results = threading.Event(), threading.Event(), {}

    def first(x):
        started.wait()
        return x * x

    def second(x):
        started.set()
        ended.wait()
        return x * jvp(lambda y: x + y, (1.0,), (1.0,))[1]

    def run_first():
        results["a"] = jvp(first, (3.0,), (1.0,))[1]
        ended.set()

    threads = [threading.Thread(target=run_first)]
    threads.append(threading.Thread(target=lambda: results.update(b=jvp(second, (1.0,), (1.0,))[1])))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"a": 6.0, "b": 1.0}


@shows("T2", "nested derivatives in asyncio tasks that switch in the middle", "as if alone")
def test_interleaved_tasks_keep_their_own_derivatives():
    async def main():
        async def one(x):
            await asyncio.sleep(0)
            return grad(lambda y: y * grad(lambda z: y + z)(x))(x)

        return await asyncio.gather(*[one(float(i)) for i in range(5)])

    assert asyncio.run(main()) == [1.0] * 5


@shows("D1", "math.sin(x) * x", "an error")
@shows("D2", "float(x) * x", "an error")
@pytest.mark.parametrize(
    "f, error",
    [
        (lambda x: operator.index(x) * x, Detached),
        (lambda x: np.zeros(2, int).__setitem__(0, x), Detached),
        (lambda x: np.savetxt(io.StringIO(), x), NoRule),
        (lambda x: None, NotDifferentiable),
        (lambda x: 3, NotDifferentiable),
        (lambda x: np.stack([x, x]), NotDifferentiable),
        (lambda x: "text", NotDifferentiable),
    ],
)
def test_what_would_lose_a_derivative_is_an_error(run, f, error):
    with pytest.raises(error):
        run(grad)(f)(2.0)


@shows("E3", "an integer or boolean point", "an error that names the type")
@pytest.mark.parametrize("x", [1, True, a([1, 2]), a([True])])
def test_integer_inputs_are_an_error_that_names_the_type(run, x):
    with pytest.raises(NotDifferentiable, match="int|bool"):
        run(grad)(np.sum)(x)
    with pytest.raises(NotDifferentiable, match="int|bool"):
        run(grad)(lambda x: np.sum(x * 2.0))(x)


@shows("N9", "a traced value kept in a global and used in the next derivative", "an error")
def test_a_value_used_after_its_derivative_ended_is_an_error(run):
    kept = []
    run(grad)(lambda x: kept.append(x) or x * x)(3.0)
    with pytest.raises(EscapedValue):
        run(grad)(lambda x: x * kept[0])(2.0)


@shows("X1", "an exception in the program, three times, then N1", "1")
def test_an_exception_reaches_the_caller_unchanged_and_leaves_the_library_usable():
    error = KeyError("mine")

    def f(x):
        x = x * x
        raise error

    for _ in range(3):
        with pytest.raises(KeyError) as caught:
            grad(f)(2.0)
        assert caught.value is error
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1


@shows("S4", "gx, gy = grad(sum(x + y)); gx[0] = 7", "gy unchanged")
def test_gradients_do_not_share_memory(run):
    gx, gy = run(grad)(lambda x, y: np.sum(x + y), argnums=(0, 1))(np.ones(2), np.ones(2))
    gx[0] = 7
    np.testing.assert_array_equal(gy, [1, 1])


@shows("S1", "c = ones; y = sum(x * c); c[:] = 100", "ones")
def test_a_later_write_to_a_constant_does_not_change_the_derivative(run):
    def f(x):
        c = np.ones(3)
        y = np.sum(x * c)
        c[:] = 100
        return y

    np.testing.assert_array_equal(run(grad)(f)(np.ones(3)), [1, 1, 1])


@shows("L3", "a chain of a million operations", "1.1051709, no recursion limit")
def test_a_million_operations_deep_at_the_default_recursion_limit():
    def chain(x):
        for _ in range(10**6):
            x = x * 1.0000001
        return x

    assert grad(chain)(1.0) == pytest.approx(math.exp(0.1), rel=1e-6)


def test_deepcopy_keeps_the_derivative_and_printing_is_readable(run):
    def f(x):
        assert f"{np.sum(x):.1f}" == "2.0"
        return np.sum(copy.deepcopy(x) * 2)

    np.testing.assert_array_equal(run(grad)(f)(np.ones(2)), [2, 2])


def test_stop_gradient_is_a_constant_to_every_derivative(run):
    assert run(grad)(run(grad)(lambda x: x * x * stop_gradient(x)))(3.0) == 6.0


def test_an_unmarked_function_as_output_is_an_error(run):
    with pytest.raises(NotDifferentiable, match="effgrad.function"):
        run(jvp)(lambda u: lambda x: x + u, (0.0,), (1.0,))


@shows("N6", "a callable that differentiates an instance of its own class", "1")
def test_tag_wars_a_callable_that_differentiates_itself():
    class Confuse:
        def __init__(self, outer, x):
            self.outer, self.x = outer, x

        def __call__(self, y):
            return self.x + grad(Confuse(False, y))(1.0) * 0 + y if self.outer else y + 0 * self.x

    assert grad(Confuse(True, 0.0))(1.0) == 1


@shows("T5", "a derivative abandoned in the middle, then a nested one", "1")
def test_an_abandoned_derivative_does_not_disturb_a_later_one():
    def program(x):
        for _ in range(3):
            x = x * 2
            yield x

    abandoned = []

    def f(x):
        steps = program(x)
        next(steps)
        abandoned.append(steps)
        raise StopAsyncIteration

    for _ in range(3):
        with pytest.raises(StopAsyncIteration):
            grad(f)(1.0)
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1


@shows("T3", "two generators driven in turns", "as if sequential")
def test_two_generators_driven_in_turns_are_as_if_sequential(run):
    def powers(x):
        y = x
        while True:
            y = y * x
            yield y

    def f(x):
        first, second = powers(x), powers(2 * x)
        return sum(next(first) * next(second) for _ in range(2))

    assert run(grad)(f)(1.0) == pytest.approx(4 * 4 + 8 * 6)


@shows("X2", "try: inv(A), except LinAlgError: another path", "the gradient of the path taken")
def test_an_exception_used_for_control_gives_the_gradient_of_the_path_taken(run):
    def f(m):
        try:
            return np.sum(np.linalg.inv(m))
        except np.linalg.LinAlgError:
            return np.sum(m * m)

    np.testing.assert_array_equal(run(grad)(f)(np.ones((2, 2))), np.full((2, 2), 2.0))


@shows(
    "S12",
    "Fortran order, negative strides, big-endian, read-only inputs",
    "as of a plain array; subclasses are an error",
)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: np.asfortranarray(x),
        lambda x: np.ascontiguousarray(x[::-1])[::-1],
        lambda x: x.astype(">f8"),
        lambda x: np.broadcast_to(x, x.shape),
    ],
    ids=["plain", "fortran", "reversed", "big-endian", "read-only"],
)
def test_the_layout_of_the_input_does_not_matter(run, make):
    x = np.arange(6.0).reshape(2, 3) + 1
    gradient = run(grad)(lambda x: np.sum(x.T @ x * np.arange(3.0)))(make(x))
    np.testing.assert_allclose(gradient, run(grad)(lambda x: np.sum(x.T @ x * np.arange(3.0)))(x))
    assert gradient.flags.writeable and gradient.flags.owndata


@pytest.mark.parametrize("x", [np.ma.array([1.0, 2.0], mask=[True, False]), np.asmatrix([[1.0, 2.0]])])
def test_array_subclasses_are_an_error_that_names_the_class(x):
    with pytest.raises(NotDifferentiable, match="MaskedArray|matrix"):
        grad(lambda x: np.sum(x * x))(x)


@shows("L4", "Python recursion near the limit", "works")
def test_python_recursion_to_depth_900(run):
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    assert run(grad)(power)(1.0, 800) == 800


@pytest.mark.sweep
@shows("L5", "freeing a long tape", "no recursion, no cyclic garbage")
def test_a_million_operation_tape_leaves_no_cyclic_garbage():
    def chain(x):
        for _ in range(10**4):
            x = np.sin(x)
        return x

    gc.collect()
    grad(chain)(1.0)
    assert gc.collect() < 100


def test_pythons_own_functions_of_numbers(run):
    assert run(grad)(lambda x: math.sin(x) * x)(2.0) == pytest.approx(math.sin(2) + 2 * math.cos(2))
    assert run(grad)(lambda x: float(x) * x)(2.0) == 4.0
    assert run(grad)(lambda x: int(x) * x)(2.0) == 2.0  # a step


@pytest.mark.parametrize("through", [lambda c: c, lambda c: c[:1]], ids=["itself", "a view made before"])
def test_a_large_constant_may_be_written_to_after_its_use(run, through):
    c = np.ones((200, 200))
    view = through(c)

    def f(x):
        y = np.sum(x * c)
        view[0, 0] = 100
        return y + np.sum(x * c)

    np.testing.assert_array_equal(run(grad)(f)(np.ones(200)), [400 + 99] + [400] * 199)
    assert c[0, 0] == 100 and c.flags.writeable


def test_a_write_after_the_function_has_returned_is_noticed():
    c = np.ones((200, 200))
    _, pull = vjp(lambda x: np.sum(x * c), np.ones(200))
    c[0, 0] = 100
    with pytest.raises(EffgradError, match="written to"):
        pull(1.0)


def test_an_array_made_inside_is_as_it_was_at_each_use(run):
    def f(x):
        work, total = np.zeros((200, 200)), 0.0
        for i in range(3):
            work[:] = i
            total = total + np.sum(x * work)
        return total

    np.testing.assert_array_equal(run(grad)(f)(np.ones(200)), np.full(200, 600.0))
