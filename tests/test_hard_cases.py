"""Programs on which other systems are wrong or refuse: each with its right answer, in forward and reverse mode."""

import asyncio
import copy
import gc
import io
import math
import threading

import numpy as np
import pytest
import scipy.special

from effgrad import Detached, EffgradError, EscapedValue, NoRule, NotDifferentiable, grad, hessian, jvp, stop_gradient

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
a = np.array

MATRIX = {
    "M1": (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
    "M2": (lambda x: np.where(x < 1, x, np.sqrt(x)), 0.0, 1.0),
    "M3": (lambda x: np.where(x > 0, x * np.log(x), 0.0), 0.0, 0.0),
    "M4": (lambda x: np.maximum(np.sqrt(x), 1e-3), 0.0, 0.0),
    "M5": (lambda x: np.where(x > 10, x, np.exp(x)), 1000.0, 1.0),
    "M6": (lambda d: np.sum(np.where(d != 0, 1 / d, 0)), a([0.0, 2.0]), [0, -0.25]),
    "M7": (lambda x: np.linalg.norm(x) ** 2, a([0.0, 0.0]), [0, 0]),
    "M8": (np.linalg.norm, a([0.0, 0.0]), [0, 0]),
    "M9": (lambda x: np.sqrt(x**2), 0.0, 0.0),
    "M10": (np.std, a([1.0, 1.0, 1.0]), [0, 0, 0]),
    "M11": (lambda x: np.hypot(x[0], x[1]), a([0.0, 0.0]), [0, 0]),
    "M13": (lambda x: x**0, 0.0, 0.0),
    "M14": (lambda x: x**1, 0.0, 1.0),
    "M15": (lambda x: x**2, 0.0, 0.0),
    "M22": (lambda y: 0.0**y, 2.0, 0.0),
    "M23": (lambda v: v[0] ** v[1], a([0.0, 2.0]), [0, 0]),
    "M24": (lambda v: v[0] ** v[1], a([-2.0, 3.0]), [12, np.nan]),
    "M25": (lambda x: np.sum(x ** a([0.0, 1.0, 2.0])), a([0.0, 0.0, 0.0]), [0, 1, 0]),
    "M26": (abs, 0.0, 0.0),
    "M27": (np.max, a([1.0, 1.0, 0.0]), [0.5, 0.5, 0]),
    "M28": (lambda x: np.maximum(x, x), 1.0, 1.0),
    "M29": (lambda x: np.maximum(x, 0), 0.0, 0.5),
    "M31": (lambda x: np.clip(x, 0, 1), 1.0, 1.0),
    "M32": (lambda x: np.sum(x * (x > 0)), a([0.0]), [0]),
    "M34": (np.sum, a([]), []),
    "M36": (np.prod, a([]), []),
    "M37": (lambda x: np.sum(x[[0, 0, 1]]), a([1.0, 2.0, 3.0]), [2, 1, 0]),
    "M39": (lambda x: np.sum(x[::-1] * a([1.0, 2.0, 3.0])), a([1.0, 2.0, 3.0]), [3, 2, 1]),
    "M40": (lambda x: np.sum(x[::-2] * a([1.0, 2.0])), a([1.0, 2.0, 3.0]), [2, 0, 1]),
    "M41": (lambda x: np.sum(x[x > 1] ** 2), a([1.0, 2.0, 3.0]), [0, 4, 6]),
    "M51": (lambda x: np.einsum("ii->", x) ** 2 * 0 + np.einsum("ij,ij,ij->", x, x, np.eye(2)),
            a([[1.0, 5.0], [5.0, 4.0]]), [[2, 0], [0, 8]]),
    "M53": (lambda x: np.sum(np.einsum("ij,k->i", np.ones((1, 2)), x)), a([1.0, 1.0]), [2, 2]),
    "M55": (lambda x: np.einsum("i,i->", x, x), a([1.0, 2.0]), [2, 4]),
    "M56": (np.prod, a([2.0, 0.0, 3.0]), [0, 6, 0]),
    "M57": (np.prod, a([0.0, 0.0, 3.0]), [0, 0, 0]),
    "M60": (np.sinc, 0.0, 0.0),
    "M66": (lambda x: np.logaddexp(x, -np.inf), 1.0, 1.0),
    "M67": (lambda x: np.logaddexp(x, -np.inf), -np.inf, 0.0),
    "M71": (lambda v: np.mod(v[0], v[1]), a([7.0, 2.0]), [1, -3]),
    "M72": (lambda x: np.floor(x) + np.round(x) + np.sign(x) + 0 * x, 1.3, 0.0),
    "M73": (np.linalg.det, a([[1.0, 2.0], [2.0, 4.0]]), [[4, -2], [-2, 1]]),
    "M74": (np.linalg.det, np.zeros((3, 3)), np.zeros((3, 3))),
    "M79": (lambda b: np.sum(np.linalg.solve(a([[2.0, 0.0], [0.0, 4.0]]), b)), a([1.0, 1.0]), [0.5, 0.25]),
    "M84": (lambda x: np.trace(np.linalg.inv(x)), a([[2.0, 0.0], [0.0, 4.0]]), [[-0.25, 0], [0, -0.0625]]),
    "F7": (lambda x: np.fmax(np.nan, x), 2.0, 1.0),
    "inplace": (lambda x: np.sum(_scaled_in_place(x)), a([2.0, 4.0]), [8, 16]),
    "M47": (lambda x: _square_then_triple(x), a([1.0, 2.0]), [5, 7]),
    "S6": (lambda x: np.sum(_assign_twice(x)), a([1.0, 2.0]), [0, 1]),
    "L1": (lambda x: _multiply_until_seven(x), 2.0, 12.0),
    "fan-out": (lambda x: _double(x, 60), 1.0, 2.0**60),
    "M50": (lambda x: _scaled_by_two(x), a([1.0, 2.0]), [8, 16]),
    "M16": (lambda x: grad(lambda y: y**2)(x), 0.0, 2.0),
    "M17": (lambda x: grad(grad(lambda y: y**2.0))(x) + 0 * x, 0.0, 0.0),
    "M21": (lambda x: grad(lambda y: np.power(y, 2.0))(x), 0.0, 2.0),
    "M33": (lambda x: np.sum(x * np.full((1, 4), 3.0)), np.ones((3, 1)), [[12], [12], [12]]),
    "M35": (lambda x: np.sum(np.zeros((0, 3)) + x), np.ones((1, 3)), [[0, 0, 0]]),
    "M42": (lambda x: np.sum(x[None, ..., 1]), a([1.0, 2.0, 3.0]), [0, 1, 0]),
    "M43": (lambda x: _buffer(x), a([1.0, 2.0]), [8, 4]),
    "M49": (lambda x: _into_out(x), a([1.0, 2.0]), [2, 4]),
    "M52": (lambda x: np.sum(np.einsum("ii->i", x) * a([1.0, 2.0])), np.ones((2, 2)), [[1, 0], [0, 2]]),
    "M54": (lambda x: np.sum(np.einsum("...ij,...jk", x, np.ones((3, 2, 1)))), np.ones((1, 2)), [[3, 3]]),
    "M62": (lambda x: grad(grad(grad(np.sinc)))(x), 0.0, np.pi**4 / 5),
    "M64": (lambda x: scipy.special.logsumexp(x), a([-np.inf, 0.0]), [0, 1]),
    "M80": (lambda m: np.sum(np.linalg.solve(a([[[2.0, 0], [0, 4.0]]] * 2), m)), np.ones((2, 2, 1)),
            [[[0.5], [0.25]]] * 2),
    "M82": (lambda x: grad(lambda y: np.linalg.slogdet(np.reshape(y, (1, 1)))[1])(x), 2.0, -0.25),
    "S7": (lambda x: _add_twice(x), a([1.0, 2.0]), [0, 1]),
    "S8": (lambda x: _added_to_zeros(x), a([1.0, 2.0]), [1, 1]),
    "D3": (lambda x: np.sum(np.asarray(x) * x), a([1.0, 2.0]), [2, 4]),
    "D7": (lambda x: np.sum(np.array([[x[0], 0], [0, x[1]]]) @ a([1.0, 2.0])), a([1.0, 2.0]), [1, 2]),
    "D7 sum": (lambda x: sum([x[0], x[1] * 2]), a([1.0, 2.0]), [1, 2]),
    "D7 max": (lambda x: max([x, 1.0]), 2.0, 1.0),
    "E2": (lambda x: x.astype(np.float32).sum(), a([1.0, 2.0]), [1, 1]),
    "E5": (lambda x: 3.0 + 0.0 * np.sum(np.ones(2)) + 0 * x[0], a([1.0, 2.0]), [0, 0]),
    "F12": (lambda x: np.linalg.det(x), np.zeros((0, 0)), np.zeros((0, 0))),
    "M18": (lambda x: grad(lambda y: y**1.0)(x) + 0 * x, 0.0, 0.0),
    "M19": (lambda x: grad(grad(lambda y: y**3))(x), 0.0, 6.0),
    "M20": (lambda x: grad(grad(grad(lambda y: y**3)))(x) + 0 * x, 0.0, 0.0),
    "M61": (lambda x: grad(np.sinc)(x), 0.0, -np.pi**2 / 3),
    "M70": (lambda x: grad(np.tanh)(x), 1000.0, 0.0),
}  # fmt: skip


def _buffer(x):
    b = np.zeros(2)
    b[0], b[1] = 2 * x[0], x[1]
    return np.sum(b * b)


def _into_out(x):
    out = np.empty(2)
    np.multiply(x, x, out=out)
    return np.sum(out)


def _add_twice(x):
    b = np.zeros(1)
    b[[0, 0]] += x
    return b[0]


def _added_to_zeros(x):
    b = np.zeros(2)
    b += x
    return np.sum(b)


def _scaled_in_place(x):
    y = x * 1.0
    y *= y
    return y + 2 * x - 2 * x + y


def _square_then_triple(x):
    b = x * 1.0
    y = b * b
    b *= 3
    return np.sum(y + b)


def _scaled_by_two(x):
    x *= 2
    return np.sum(x * x)


def _assign_twice(x):
    b = x * 0.0
    b[[0, 0]] = x
    return b


def _multiply_until_seven(x):
    y = 1.0
    while y < 7:
        y *= x
    return y


def _double(x, times):
    for _ in range(times):
        x = x + x
    return x


def forward_gradient(f, x):
    if np.ndim(x) == 0:
        return jvp(f, (x,), (1.0,))[1]
    result = np.zeros(np.shape(x))
    for place in np.ndindex(np.shape(x)):
        basis = np.zeros(np.shape(x))
        basis[place] = 1.0
        result[place] = jvp(f, (x,), (basis,))[1]
    return result


@pytest.mark.parametrize("row", MATRIX)
def test_reverse_gives_the_right_answer(row):
    f, x, answer = MATRIX[row]
    before = np.copy(x)
    np.testing.assert_allclose(grad(f)(x), answer, atol=1e-12)
    np.testing.assert_array_equal(x, before)


# Forward mode carries the one tangent of a vector input, in which M24's NaN cannot be kept apart from its neighbour.
@pytest.mark.parametrize("row", [row for row in MATRIX if row != "M24"])
def test_forward_gives_the_right_answer(row):
    f, x, answer = MATRIX[row]
    np.testing.assert_allclose(forward_gradient(f, x), answer, atol=1e-12)


def test_second_derivatives_of_gathered_squares():
    np.testing.assert_allclose(hessian(lambda x: np.sum(x[[0, 0]] ** 2))(a([1.0, 2.0])), [[4, 0], [0, 0]])


def test_second_derivatives_of_prod_with_two_zeros():
    h = hessian(np.prod)(a([0.0, 0.0, 3.0]))
    np.testing.assert_allclose(h, [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


def derivatives():
    return {"reverse": grad, "forward": lambda f: lambda x: jvp(f, (x,), (1.0,))[1]}


@pytest.mark.parametrize("inner", derivatives())
@pytest.mark.parametrize("outer", derivatives())
def test_nested_derivatives_do_not_confuse_perturbations(outer, inner):
    d, e = derivatives()[outer], derivatives()[inner]
    assert d(lambda x: x * e(lambda y: x + y)(1.0))(1.0) == 1
    assert d(lambda x: x * e(lambda y: x * y)(1.0))(4.0) == 8
    assert d(lambda x: e(lambda y: x)(1.0) + 0 * x)(1.0) == 0
    assert d(e(d(lambda x: x**4)))(2.0) == 48


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


def test_interleaved_tasks_keep_their_own_derivatives():
    async def main():
        async def one(x):
            await asyncio.sleep(0)
            return grad(lambda y: y * grad(lambda z: y + z)(x))(x)

        return await asyncio.gather(*[one(float(i)) for i in range(5)])

    assert asyncio.run(main()) == [1.0] * 5


@pytest.mark.parametrize(
    "f, error",
    [
        (lambda x: math.sin(x) * x, Detached),
        (lambda x: float(x) * x, Detached),
        (lambda x: int(x) * x, Detached),
        (lambda x: np.savetxt(io.StringIO(), x), NoRule),
        (lambda x: None, NotDifferentiable),
        (lambda x: 3, NotDifferentiable),
        (lambda x: np.stack([x, x]), NotDifferentiable),
        (lambda x: "text", NotDifferentiable),
    ],
)
def test_what_would_lose_a_derivative_is_an_error(f, error):
    with pytest.raises(error):
        grad(f)(2.0)


@pytest.mark.parametrize("x", [1, True, a([1, 2]), a([True])])
def test_integer_inputs_are_an_error_that_names_the_type(x):
    with pytest.raises(NotDifferentiable, match="int|bool"):
        grad(np.sum)(x)
    with pytest.raises(NotDifferentiable, match="int|bool"):
        grad(lambda x: np.sum(x * 2.0))(x)


def test_a_value_used_after_its_derivative_ended_is_an_error():
    kept = []
    grad(lambda x: kept.append(x) or x * x)(3.0)
    with pytest.raises(EscapedValue):
        grad(lambda x: x * kept[0])(2.0)


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


def test_gradients_do_not_share_memory():
    gx, gy = grad(lambda x, y: np.sum(x + y), argnums=(0, 1))(np.ones(2), np.ones(2))
    gx[0] = 7
    np.testing.assert_array_equal(gy, [1, 1])


def test_a_later_write_to_a_constant_does_not_change_the_derivative():
    def f(x):
        c = np.ones(3)
        y = np.sum(x * c)
        c[:] = 100
        return y

    np.testing.assert_array_equal(grad(f)(np.ones(3)), [1, 1, 1])


def test_a_million_operations_deep_at_the_default_recursion_limit():
    def chain(x):
        for _ in range(10**6):
            x = x * 1.0000001
        return x

    assert grad(chain)(1.0) == pytest.approx(math.exp(0.1), rel=1e-6)


def test_deepcopy_keeps_the_derivative_and_printing_is_readable():
    def f(x):
        assert f"{np.sum(x):.1f}" == "2.0"
        return np.sum(copy.deepcopy(x) * 2)

    np.testing.assert_array_equal(grad(f)(np.ones(2)), [2, 2])


def test_stop_gradient_is_a_constant_to_every_derivative():
    assert grad(grad(lambda x: x * x * stop_gradient(x)))(3.0) == 6.0


def test_an_unmarked_function_as_output_is_an_error():
    with pytest.raises(NotDifferentiable, match="effgrad.function"):
        jvp(lambda u: lambda x: x + u, (0.0,), (1.0,))


def test_tag_wars_a_callable_that_differentiates_itself():
    class Confuse:
        def __init__(self, outer, x):
            self.outer, self.x = outer, x

        def __call__(self, y):
            return self.x + grad(Confuse(False, y))(1.0) * 0 + y if self.outer else y + 0 * self.x

    assert grad(Confuse(True, 0.0))(1.0) == 1


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


def test_two_generators_driven_in_turns_are_as_if_sequential():
    def powers(x):
        y = x
        while True:
            y = y * x
            yield y

    def f(x):
        first, second = powers(x), powers(2 * x)
        return sum(next(first) * next(second) for _ in range(2))

    assert grad(f)(1.0) == pytest.approx(4 * 4 + 8 * 6)


def test_an_exception_used_for_control_gives_the_gradient_of_the_path_taken():
    def f(m):
        try:
            return np.sum(np.linalg.inv(m))
        except np.linalg.LinAlgError:
            return np.sum(m * m)

    np.testing.assert_array_equal(grad(f)(np.ones((2, 2))), np.full((2, 2), 2.0))


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
def test_the_layout_of_the_input_does_not_matter(make):
    x = np.arange(6.0).reshape(2, 3) + 1
    gradient = grad(lambda x: np.sum(x.T @ x * np.arange(3.0)))(make(x))
    np.testing.assert_allclose(gradient, grad(lambda x: np.sum(x.T @ x * np.arange(3.0)))(x))
    assert gradient.flags.writeable and gradient.flags.owndata


@pytest.mark.parametrize("x", [np.ma.array([1.0, 2.0], mask=[True, False]), np.asmatrix([[1.0, 2.0]])])
def test_array_subclasses_are_an_error_that_names_the_class(x):
    with pytest.raises(NotDifferentiable, match="MaskedArray|matrix"):
        grad(lambda x: np.sum(x * x))(x)


def test_python_recursion_to_depth_900():
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    assert grad(power)(1.0, 800) == 800


def test_a_million_operation_tape_leaves_no_cyclic_garbage():
    def chain(x):
        for _ in range(10**4):
            x = np.sin(x)
        return x

    gc.collect()
    grad(chain)(1.0)
    assert gc.collect() < 100


def test_a_large_constant_is_locked_while_the_derivative_runs():
    c = np.ones((200, 200))

    def f(x):
        y = np.sum(x * c)
        c[0, 0] = 100
        return y

    with pytest.raises(ValueError, match="read-only") as caught:
        grad(f)(np.ones(200))
    assert "a.copy()" in caught.value.__notes__[0]
    c[0, 0] = 2.0
    np.testing.assert_array_equal(grad(lambda x: np.sum(x * c))(np.ones(200)), [201] + [200] * 199)


def test_a_large_constant_written_through_an_earlier_view_is_an_error():
    c = np.ones((200, 200))
    view = c[:1]

    def f(x):
        y = np.sum(x * c)
        view[:, :2] = [[3.0, 5.0]]
        return y

    with pytest.raises(EffgradError, match="written to"):
        grad(f)(np.ones(200))


def test_an_array_made_inside_is_as_it_was_at_each_use():
    def f(x):
        work, total = np.zeros((200, 200)), 0.0
        for i in range(3):
            work[:] = i
            total = total + np.sum(x * work)
        return total

    np.testing.assert_array_equal(grad(f)(np.ones(200)), np.full(200, 600.0))
