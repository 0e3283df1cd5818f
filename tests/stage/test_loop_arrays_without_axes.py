"""Arrays without axes in captured loops: augmented assignment changes them in place, under all their names.

A captured loop once held them as numbers, which augmented assignment binds anew: the other names kept the old value.
"""

import contextlib
import itertools
import warnings

import numpy as np
import pytest
from differences import directional

from effgrad import StagingWarning, checkpoint, compile, value_and_grad
from effgrad.stage.loop import capture, rule_calls

pytestmark = pytest.mark.filterwarnings("ignore:the loop")
COUNT = 120
POINTS = np.linspace(0.1, 1.0, COUNT)


def squeezed(x):
    total = 0.0
    for i in range(COUNT):
        a = np.squeeze(x[i : i + 1])
        b = a
        a *= 0.5
        total += b
    return total + np.sum(x)


def copied(x):
    total = 0.0
    for i in range(COUNT):
        a = np.array(x[i])
        b = a
        a *= 0.5
        total += b
    return total


def by_ellipsis(x):
    for i in range(COUNT):
        a = x[i, ...]
        a *= 0.5
    return np.sum(x)


def by_subscript(x):
    for i in range(COUNT):
        a = x[i, ...]
        a[...] = 2 * a
    return np.sum(x)


def by_out(x):
    for i in range(COUNT):
        a = x[i, ...].T
        np.multiply(a, 2.0, out=a)
    return np.sum(x)


def given_to_a_function(x):
    def add(a, v):
        a += v

    total = np.array(0.0)
    for i in range(COUNT):
        add(total, x[i] ** 2)
    return total * 1.0


def under_another_name(x):
    total = np.array(0.0)
    for i in range(COUNT):
        same = total
        same += x[i] ** 2
    return total * 1.0


def from_outside(x):
    total = np.asarray(np.mean(x))
    same = total.reshape(1)
    for i in range(COUNT):
        total += x[i] ** 2
    return total + same[0]


def of_an_argument(x):
    a, k = x[:1].reshape(()), 0
    while k < COUNT:
        a *= 0.99
        k += 1
    return np.sum(x**2)


def after_the_loop(x):
    for i in range(COUNT):
        a = x[i, ...]
    a += 1.0
    return np.sum(x**2)


def chosen(x):
    total = 0.0
    for i in range(COUNT):
        a = x[i, ...] if x[i] > 0.5 else x[i]
        b = a
        a *= 2.0
        total += b
    return total


def listed(x):
    items = []
    for i in range(COUNT):
        items.append(x[i, ...])  # noqa: PERF401
    for item in items:
        item *= 2
    return np.sum(x**2)


def complex_ones(x):
    z = x + 1j
    for i in range(COUNT):
        a = z[i, ...]
        a *= 1j
    return np.sum(np.real(z) + z.imag**2)


def none_taken(x):
    a = np.squeeze(x[:1] * 1.0)
    while np.sum(a * a) > 9.0:
        a *= 0.5
    np.sin(a, out=a)
    return np.sum(a)


def selected(x):
    total = 0.0
    for i in range(COUNT):
        a = np.where(x[i] > 0.5, x[i] * i, 2 * x[i])
        b = a
        a *= 3
        total += a * b
    return total


def selected_from_lists(x):
    total = 0.0
    for i in range(COUNT):
        a = np.select([x[i] > 0.5], [x[i] * i], 1.0)
        b = a
        a *= 3
        a *= x[i]
        total += a * b
    return total


def in_a_list(x):
    total = 0.0
    for i in range(COUNT):
        a = np.where(x[i] > 0.5, x[i], 1.0)
        items, table = [a], {"a": a}
        items[0] += 1.0
        table["a"] *= x[i]
        total += a
    return total


def carried(x):
    state = 0.0
    for i in range(COUNT):
        state = np.where(i % 3 == 1, 0.1 * x[i], state + x[i])
    same = state
    state *= 2.0
    return same * x[0]


def carried_from_an_array(x):
    state, before = np.array(0.5), 0.0
    for i in range(COUNT):
        state = np.where(i % 3 == 1, 0.1 * x[i], state + x[i])
        before = before + state
    state += 1.0
    return state * before


def under_two_names_after_the_loop(x):
    state = 0.0
    for i in range(COUNT):
        state = np.where(i % 3 == 1, 0.1 * x[i], state + x[i])
        same = state
    state *= 2.0
    return same * x[0]


def in_an_attribute(x):
    class Holder:
        state = 0.0

    holder = Holder()
    for i in range(COUNT):
        holder.state = np.where(i % 3 == 1, 0.1 * x[i], holder.state + x[i])
    same = holder.state
    holder.state *= 2.0
    return same * x[0]


def known_and_changed_by_another_name(x):
    memory, total = np.zeros((2, 3)), 0.0
    single = memory[-1, 0, ...]
    for i in range(COUNT):
        memory[:] += np.cos(single)
        total += x[i] * single
    return total


def changed_through_a_vector(x):
    a, total = np.array(0.5), 0.0
    b = a.reshape(1)
    for i in range(COUNT):
        total += x[i] * a
        b[0] = i
    return total


def changed_by_put(x):
    a = np.array(0.5)
    for _ in range(COUNT):
        np.put(a, [0], 0.3 + np.sum(a) * 0.5)
    return a * np.sum(x)


def viewed_before_the_loop(x):
    memory = x * 1.0
    single, row = memory[0, ...], np.atleast_2d(memory)
    for i in range(COUNT):
        row[:] = i
        total = single * x[i]
    return total


PROGRAMS = (
    known_and_changed_by_another_name, changed_through_a_vector, changed_by_put, viewed_before_the_loop, selected,
    selected_from_lists, in_a_list, carried, carried_from_an_array, under_two_names_after_the_loop, in_an_attribute,
    squeezed, copied, by_ellipsis, by_subscript, by_out, given_to_a_function, under_another_name, from_outside,
    of_an_argument, after_the_loop, chosen, listed, complex_ones,
)  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("program", PROGRAMS)
def test_other_names_see_a_change_in_place(program):
    check(lambda x: program(x.copy()), lambda x: program(x.copy()))


def test_a_loop_without_steps_leaves_an_array_without_axes():
    """In a checkpoint, what it left was a number, so that `out=` was an error."""
    check(none_taken, lambda x: checkpoint(none_taken, x))


@pytest.mark.parametrize("program", [carried, carried_from_an_array])
def test_an_array_without_axes_is_carried(program):
    """Such loops would be unrolled if an array that the loop has made could not leave it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", StagingWarning)
        assert compile(program)(POINTS) == pytest.approx(program(POINTS), rel=1e-13)


@pytest.mark.filterwarnings("ignore")
def test_rules_know_which_functions_return_arrays_without_axes():
    """NumPy itself is asked."""
    values = [0.7, np.float64(0.7), 1, np.array([0.3, 0.8]), ()]
    functions = [f for f in capture.RULES if callable(f) and f is not print]
    found = set()
    for f, count in itertools.product(functions, (1, 2, 3)):
        for args in itertools.product(values, repeat=count):
            with contextlib.suppress(Exception), np.errstate(all="ignore"):
                result = f(*args)
                found |= {f} if isinstance(result, np.ndarray) and not result.ndim else set()
    assert np.where in found and np.zeros in found
    assert found <= rule_calls.ARRAYS


FORMS = {
    "number": lambda v: 2.0 * v, "array": lambda v: np.where(v > 0.0, 2.0 * v, v), "Python's number": lambda v: 2.0,
}  # fmt: skip
VIEWS = {
    "reshape": lambda a: np.reshape(a, ()), "moveaxis": lambda a: np.moveaxis(a, (), ()), "transpose": np.transpose,
    "squeeze": np.squeeze, "flip": np.flip, "asarray": np.asarray, "real": np.real,
}  # fmt: skip


@pytest.mark.thinned(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_number_is_a_number_where_numpy_gives_one(view, form):
    """`np.reshape(x, ())` of a NumPy number was an array in a captured loop, so that `*=` changed both names."""

    def f(x):
        total = 0.0
        for i in range(COUNT):
            a = b = VIEWS[view](FORMS[form](x[i]))
            b *= 3.0
            total = total + a * b * x[i]
        return total

    check(f, f)


def check(plain, f):
    u = np.random.default_rng(2).normal(size=COUNT)
    value, gradient = compile(value_and_grad(f))(POINTS)
    assert value == pytest.approx(plain(POINTS), rel=1e-13)
    assert gradient @ u == pytest.approx(directional(plain, POINTS, u, step=1e-3)[0], rel=1e-8)


def scaled(v, s):
    v = v.copy()
    v *= s
    return v


def carried_copies(x):
    a = np.full((), x[0])
    for _ in range(COUNT):
        a = a.copy()
    return a


def carried_scaled(x):
    a = np.full((), x[0])
    for _ in range(COUNT):
        a = scaled(a, 0.9)
    return a


def carried_renamed(x):
    a = np.array(x[0])
    for _ in range(COUNT):
        b = np.array(a)
        a = b
        a *= 0.9
    return a, b


@pytest.mark.parametrize("f", [carried_copies, carried_scaled, carried_renamed])
def test_a_carried_array_without_axes_stays_an_array(f):
    """Its memory was forgotten where its value was read: the loop left a number, which cannot be written to."""
    found, expected = (r if isinstance(r, tuple) else (r,) for r in (compile(f)(POINTS), f(POINTS)))
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other) is np.ndarray
        np.testing.assert_allclose(one, other, rtol=1e-14)
