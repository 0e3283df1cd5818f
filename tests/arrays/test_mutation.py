"""Arrays that a program writes to: the derivative of what NumPy computes, whatever is a view of what.

Each program is run untraced by NumPy, and its derivatives are compared with central differences of that run.
"""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import random_writes
from runs import examples

from effgrad import Detached, check_grad, compile, grad, hessian, jvp
from effgrad.fast import REVERSE

BACKEND = "numpy"  # of the compiled runs

WEIGHTS = np.array([1.0, 2.0, 3.0, 5.0, 7.0, 11.0])


def through_a_view(x):
    a = x * 1.0
    v = a[1:]
    v[0] = 10 * x[0]
    return np.sum(a * WEIGHTS)


def into_the_base_under_a_view(x):
    a = x * 1.0
    v = a[2:4]
    a[3] = x[0] ** 2
    return np.sum(v * v)


def reshaped_and_transposed(x):
    a = np.reshape(x * 1.0, (2, 3))
    a.T[0] = x[:2] ** 2
    a.reshape(-1)[5] = x[0] * x[1]
    a.ravel()[1] *= 3
    return np.sum(a * WEIGHTS.reshape(2, 3))


def filled(x):
    a = np.zeros(6)
    for i in range(6):
        a[i] = x[i] ** 2 if i % 2 else x[i]
    return np.sum(a * WEIGHTS)


def recurrence(x):
    a = np.zeros((6, 2))
    a[0] = x[:2]
    for i in range(1, 6):
        a[i] = a[i - 1] * x[i] + a[i // 2]
    return np.sum(a[2:] ** 2)


def stencil(x):
    u = np.array(x)
    for _ in range(3):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**3)


def swapped(x):
    a = x.copy()
    a[0], a[1] = a[1], a[0]
    a[[2, 3]] = a[[3, 2]]
    return np.sum(a * WEIGHTS)


def masked(x):
    a = x * 1.0
    a[a > 0.6] *= 2
    return np.sum(a * a)


def diagonal(x):
    a = np.zeros((3, 3))
    np.fill_diagonal(a, x[:3])
    np.put(a, [1, 2], x[3:5])
    a[2, 0] += x[5]
    return np.sum(a @ a @ a)


def with_out(x):
    out = np.empty(6)
    np.multiply(x, x, out=out)
    np.add(out, x, out=out)
    return np.sum(out * WEIGHTS)


def repeated_index(x):
    a = np.zeros(3)
    a[[0, 0, 1]] = x[:3]
    a[[2, 2]] += x[3:5]
    return np.sum(a * a)


def inserted_rows(x):
    rows = np.zeros((3, 6))
    for row in rows:
        row[:] = x * np.sum(x)
    rows[1, ::2] = 1.0
    return np.sum(rows**2)


def a_view_kept_while_the_array_is_rebound(x):
    a = x * 2.0
    v = a[:3]
    a = a + 1
    v += x[3:]
    return np.sum(a) * np.sum(v)


def moved_axes(x):
    a = np.reshape(x * 1.0, (2, 3))
    np.swapaxes(a, 0, 1)[0] = x[4:]
    left, right = np.split(a, [1], axis=1)
    right[:, 0] *= left[:, 0]
    return np.sum(a * WEIGHTS.reshape(2, 3))


def the_written_array_changes_later(x):
    row, constant = x * 2.0, np.ones(6)
    a = np.zeros((3, 6))
    a[0], a[1] = row, constant
    row[1] = x[0] ** 2
    constant[:] = 5.0
    a[2] = row * constant
    return np.sum(a * a)


def written_where_memory_goes_by_columns(x):
    a = np.exp(np.reshape(x, (2, 3)).T)
    a[0] = a[0] * 2
    a[-1, -1] += a[0, 0]
    return np.sum(np.sin(a))


def written_everywhere_twice(x):
    a, b = x[:2] * 1.0, np.outer(x[:2], x[:3])
    a[:], b[:] = 2.0, x[0]
    total = np.sum(a) + np.sum(b) * x[1]
    a[:], b[:] = 3.0, 4.0
    b[1, 0], a[1] = 5.0, 6.0
    return total + a @ x[:2] + np.sum(b * x[:3])


def gathered_from_one_write(x):
    a = x * 1.0
    a[1:2] -= 0.3
    a[2:4] = np.array([2.0, 3.0])
    b, c = a[[1, 1]], a[[2, 3]]
    b[0], c[0] = x[0], x[1]
    return np.sum(a * WEIGHTS) + b @ c


def read_where_an_element_was_named_twice(x):
    a = x * 1.0
    a[[1, 4, 1]] = x[2:5] ** 2
    return a[[1, 4, 1]] @ WEIGHTS[:3]


def raveled_where_a_copy_is_needed(x):
    a = np.reshape(x * 1.0, (2, 3))
    v = a[:, ::2]
    v[0, 0] += 1.0
    flat, seen = np.ravel(v[::-1, :1]), v[:, :1].reshape(-1)
    v[...] = x[0] * v
    return flat @ x[:2] + seen @ x[2:4] + np.sum(a * WEIGHTS.reshape(2, 3))


PROGRAMS = [
    written_everywhere_twice, gathered_from_one_write, raveled_where_a_copy_is_needed,
    written_where_memory_goes_by_columns, read_where_an_element_was_named_twice,
    the_written_array_changes_later,
    through_a_view, into_the_base_under_a_view, reshaped_and_transposed, filled, recurrence, stencil, swapped, masked,
    diagonal, with_out, repeated_index, inserted_rows, a_view_kept_while_the_array_is_rebound, moved_axes,
]  # fmt: skip
X = np.array([0.5, 1.5, -0.7, 0.9, 0.3, 1.1])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode", ["taped", "reverse", "continuation", "delta", "checkpointed"])
def test_reverse_agrees_with_differences(run, f, mode):
    gradient = run(grad)(f, mode=mode)(X)
    for i in range(6):
        step = np.zeros(6)
        step[i] = 1e-6
        np.testing.assert_allclose(gradient[i], (f(X + step) - f(X - step)) / 2e-6, rtol=1e-7, atol=1e-7)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_forward_and_second_order_agree(run, f):
    direction = np.linspace(-1.0, 2.0, 6)
    value, tangent = run(jvp)(f, (X,), (direction,))
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(tangent, run(grad)(f)(X) @ direction)
    curvature = run(hessian)(f)(X)
    np.testing.assert_allclose(curvature, curvature.T, atol=1e-12)
    second = run(grad)(lambda x: np.sum(run(grad)(f)(x) * direction))(X)
    np.testing.assert_allclose(second, curvature @ direction, atol=1e-9)


@st.composite
def edits(draw):
    """A list of writes: (which handle is written to, an index, the source handle, an index)."""
    count = draw(st.integers(1, 6))
    index = st.one_of(
        st.integers(-2, 1),
        st.tuples(st.integers(-2, 1), st.integers(-3, 2)),
        st.just((slice(None), 0)),
        st.just((slice(None, None, -1), slice(1, None))),
        st.just(([0, 1, 0], [2, 2, 1])),
        st.just(Ellipsis),
    )
    return [(draw(st.integers(0, 3)), draw(index), draw(st.integers(0, 3)), draw(index)) for _ in range(count)]


@settings(deadline=None, max_examples=examples(150))
@given(edits(), st.booleans())
def test_random_writes_through_random_views(run, writes, made_empty):
    def f(x):
        a = np.zeros((2, 3)) if made_empty else np.reshape(x * 1.0, (2, 3))
        handles = [a, a[::-1], a.T.T, np.reshape(x**2, (2, 3))]
        for target, at, source, place in writes:
            value = np.sum(handles[source][place]) * handles[3][1, 2] + handles[source][0, 1]
            handles[target][at] = value
        return sum(np.sum(h * WEIGHTS.reshape(2, 3)) for h in handles)

    value, tangent = run(jvp)(f, (X,), (WEIGHTS,))
    np.testing.assert_allclose(value, f(X))
    h = 1e-30j * WEIGHTS  # the programs are polynomials: the complex step is exact
    exact = _complex(f, X + h).imag / 1e-30
    np.testing.assert_allclose(tangent, exact, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run(grad)(f)(X) @ WEIGHTS, exact, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=examples(200))
@given(st.integers(0, 10**6))
def test_random_programs_of_views_and_writes(run, seed):
    f = random_writes(seed)
    x, direction = np.random.default_rng(seed).normal(size=(2, 1 + seed % 3, 1 + seed % 4))
    value, tangent = run(jvp)(f, (x,), (direction,))
    np.testing.assert_allclose(value, f(x), rtol=1e-10)
    exact = _complex(f, x + 1e-30j * direction).imag / 1e-30
    np.testing.assert_allclose(tangent, exact, rtol=1e-8, atol=1e-8)
    for mode in ("taped", "reverse", "delta"):
        np.testing.assert_allclose(np.sum(run(grad)(f, mode=mode)(x) * direction), exact, rtol=1e-8, atol=1e-8)


def _complex(f, x):
    zeros = np.zeros
    try:
        np.zeros = lambda shape, dtype=complex: zeros(shape, dtype)
        return f(x)
    finally:
        np.zeros = zeros


def test_writing_leaves_the_callers_array_alone(run):
    x = X.copy()

    def f(x):
        x *= 2
        x[0] = 0.0
        return np.sum(x * x)

    np.testing.assert_allclose(run(grad)(f)(x), [0, *(8 * X[1:])])
    np.testing.assert_array_equal(x, X)


VIEWS = [
    np.diag, lambda y: np.broadcast_to(y, (2, 3, 3)), lambda y: np.broadcast_arrays(y, np.ones((2, 1, 1)))[0],
    lambda y: np.meshgrid(y[0], y[1], copy=False)[0], lambda y: np.unstack(y)[0], np.matrix_transpose, np.flip,
    lambda y: np.einsum("ii->i", y), lambda y: np.einsum("ij->ji", y), lambda y: np.split(y, 3)[0], np.rot90,
    lambda y: np.lib.stride_tricks.sliding_window_view(y, 2, axis=0), lambda y: np.moveaxis(y, 0, 1), np.conj,
    lambda y: y.conj(), lambda y: y.astype(float, copy=False), lambda y: y.astype(float), np.positive,
    lambda y: np.nan_to_num(y, copy=False), lambda y: np.asfortranarray(y), lambda y: np.ascontiguousarray(y.T),
    lambda y: np.ascontiguousarray(y), lambda y: np.ravel(y, order="F"), lambda y: np.take(y, [0], 0),
]  # fmt: skip


@pytest.mark.parametrize("take", VIEWS)
def test_a_later_write_is_seen_through_what_numpy_makes_a_view_and_not_through_a_copy(take):
    def f(x):
        y = x * 1.0
        taken = take(y)
        y[0, 0] = 5 * x[1, 1]
        return np.sum(taken**3)

    check_grad(f, np.arange(1.0, 10.0).reshape(3, 3))


def test_an_array_that_absorbed_nothing_is_data(run):
    def f(x):
        scale = np.zeros(3)
        scale[1] = 4.0
        assert float(scale[1]) == 4.0
        assert isinstance(scale, np.ndarray)
        return np.sum(np.sort(scale) * x), (scale, np.ones(2))

    gradient, (scale, ones) = run(grad)(f, has_aux=True)(np.arange(3.0))
    np.testing.assert_array_equal(gradient, [0, 0, 4])
    assert type(scale) is np.ndarray and type(ones) is np.ndarray


def test_filling_takes_linear_work(run):
    def f(x, n):
        a = np.zeros(n)
        a[0] = x
        for i in range(1, n):
            a[i] = a[i - 1] * 1.0001
        return a[n - 1]

    np.testing.assert_allclose(run(grad)(f)(2.0, 20_000), 1.0001**19_999)


def traced_elements(x):
    y = x * 1.0
    for i in range(len(x)):
        y[i] = 0.5 * y[i]
    return y


def by_what_came_before(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] - x[:i] @ y[:i]
    return y


def from_the_end(x):
    y = np.zeros_like(x)
    for i in reversed(range(len(x))):
        y[i] = x[i] - x[i + 1 :] @ y[i + 1 :]
    return y


def by_both_neighbours(x):
    y = np.zeros_like(x)
    for i in range(1, len(x) - 1):
        y[i] = 0.3 * np.sum(y[i - 1 : i + 2]) + x[i]
    return y


def by_columns_transposed(x):
    y = np.zeros((len(x), 3)).T
    for i in range(1, len(x)):
        y[:, i] = x[i] + 0.5 * y[::-1, i - 1]
        y.T[i] += 0.1 * y[:, : i + 1].sum(axis=1)
    return y


def triangle(x):
    a = np.outer(x, x) + len(x) * np.eye(len(x))
    for i in range(len(x)):
        a[i, :i] -= a[:i, :i] @ a[i, :i]
    return a


def calls_of(f, *args):
    """How many functions, Python's and compiled ones, a call runs."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        f(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "fill",
    [traced_elements, by_what_came_before, from_the_end, by_both_neighbours, by_columns_transposed, triangle],
)
def test_filling_takes_as_many_calls_for_each_write_however_it_is_read(fill):
    derivative = grad(lambda x: np.sum(fill(x) ** 2))
    derivative(np.ones(5))
    few, many = (calls_of(derivative, np.linspace(0.1, 0.2, n)) for n in (50, 200))
    assert many < 4.8 * few
    check_grad(lambda x: np.sum(fill(x) ** 2), np.linspace(0.1, 0.2, 9))


def test_what_numpy_refuses_is_refused(run):
    with pytest.raises(ValueError, match="broadcast"):
        run(grad)(lambda x: x.__setitem__(slice(0, 2), x))(X)
    with pytest.raises(IndexError):
        run(grad)(lambda x: x.__setitem__(6, 1.0))(X)
    with pytest.raises(Detached, match="imaginary"):
        run(grad)(lambda x: x.__setitem__(0, x[1] * 1j))(X)
    numbers = np.zeros(3, int)
    with pytest.raises(Detached, match="array of int64.*dtype=float"):
        run(grad)(lambda x: np.copyto(numbers, x[:3]))(X)
    with pytest.raises(Detached, match="array of int64.*dtype=float"):
        run(grad)(lambda x: numbers.__setitem__(0, x[0]))(X)
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        run(grad)(lambda x: fixed.__setitem__(0, x[0]))(X)


def test_check_grad_reads_a_filled_array():
    assert "6 coordinates agree" in check_grad(filled, X)


def test_an_array_of_no_axis_that_is_filled_has_none(run):
    def f(x):
        made, like = np.zeros(()), np.zeros_like(x)
        made[...] = x
        like[()] = made
        assert np.shape(made) == np.shape(like) == np.shape(np.zeros_like(x) + x) == ()
        return like * made + np.imag(x)

    assert run(grad)(f)(1.5) == 3.0


def parts_read_after_a_write(x):
    z = x * (1 + 2j)
    r = z.real
    z[1] = x[0] * (3 - 1j)
    r[2] = x[3] ** 2
    z.imag[0] *= 2
    return np.sum(np.sin(r)) + np.sum(np.cos(z.imag)) + np.sum(np.abs(z) ** 2)


def parts_assigned(x):
    z = np.zeros(4, complex)
    z.real = x
    z.imag[1:3] = x[:2] ** 2
    z.imag[::2] += x[::2]
    return np.sum(np.abs(z) ** 3) + np.sum(z.real * z.imag)


def parts_of_views(x):
    z = np.array([x[0] + 1j * x[1], x[2] * 1j, 1 + 0j]).reshape(1, 3)
    w = z.T.imag
    w[0] = x[3]
    z.real[0, 2] = x[1] * w[1, 0]
    z *= 2
    return np.sum(w**2) + np.sum(np.real(z)) + np.real(np.prod(z))


def parts_written_by_functions(x):
    z = x + 0j
    re = z.real[1:]
    re += x[:3]
    np.add.at(z.imag, [0, 0, 1], x[:3])
    z.imag.sort()
    np.copyto(z.real[:1], 5 * x[2])
    z[2:].imag.fill(3.0)
    return np.sum(np.abs(z) ** 2 * np.arange(4)) + np.sum(re**2)


PARTS = [parts_read_after_a_write, parts_assigned, parts_of_views, parts_written_by_functions]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("f", PARTS, ids=lambda f: f.__name__)
def test_real_and_imaginary_parts_are_views_that_are_read_and_written_through(run, f):
    """Once an error: the parts of an array that is written to, and writes through them."""
    x = np.array([0.3, 0.5, 0.7, 0.9])
    step = 1e-6 * np.eye(4)
    differences = [(f(x + e) - f(x - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(run(grad)(f)(x), differences, rtol=1e-7)
    second = [(run(grad)(f)(x + e) - run(grad)(f)(x - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(run(hessian)(f)(x), second, rtol=1e-6, atol=1e-7)
    for mode in ("reverse", "delta", "continuation", "checkpointed"):
        np.testing.assert_allclose(run(grad)(f, mode=mode)(x), run(grad)(f)(x), rtol=1e-12)


def shuffled(x):
    order, total = np.arange(3), 0.0
    generator = np.random.default_rng(0)
    for _ in range(3):
        generator.shuffle(order)
        total = total + np.sum(x[order] * WEIGHTS[:3])
    return total


def gathered(x):
    index = np.array([0, 1])
    y = x[index]
    index[:] = 2
    return np.sum(y * WEIGHTS[:2])


def put(x):
    index = np.array([0, 1])
    y = x * 1.0
    y[index] = x[index] ** 2
    index[0] = 2
    return np.sum(y * WEIGHTS[:3])


def added(x):
    index = np.array([0, 1])
    y = np.zeros(3) * x
    np.add.at(y, index, x[:2] ** 2)
    index[:] = 2
    return np.sum(y * WEIGHTS[:3])


def masked(x):
    mask = x > 1.5
    y = x[mask]
    mask[:] = True
    return np.sum(y**2)


@pytest.mark.parametrize("program", [shuffled, gathered, put, added, masked])
@pytest.mark.parametrize("mode", [*sorted(REVERSE), "compiled"])
def test_an_index_may_be_written_to_after_its_use(run, program, mode):
    x = np.array([1.0, 2.0, 3.0])
    expected = [(program(x + h) - program(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    gradient = compile(run(grad)(program)) if mode == "compiled" else run(grad)(program, mode=mode)
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-7, atol=1e-7)
