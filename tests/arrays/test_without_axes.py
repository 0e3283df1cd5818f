"""An array without axes stays an array that can be written to, however it is copied."""

import copy

import numpy as np
import pytest

from effgrad import compile, grad, hvp, jvp, value_and_grad, vmap

X = np.array([2.0, 3.0, 5.0])


def filled(x):
    a = np.zeros(())
    a[...] = x[0]
    return a


MADE = {
    "filled": filled, "np.array": lambda x: np.array(x[0]), "np.asarray": lambda x: np.asarray(x[0] * 1),
    "reshaped": lambda x: x[:1].reshape(()), "an item": lambda x: x[0, ...],
}  # fmt: skip
COPIED = {
    "copy": lambda a: a.copy(), "np.copy": np.copy, "np.array": np.array, "astype": lambda a: a.astype(float),
    "narrower": lambda a: a.astype(np.float32), "np.astype": lambda a: np.astype(a, np.float64),
    "broadcast": lambda a: np.broadcast_to(a, ()).copy(), "zeros_like": np.zeros_like, "T": lambda a: a.T,
    "reshape": lambda a: a.reshape(()), "squeeze": np.squeeze, "full": lambda a: np.full((), a),
}  # fmt: skip


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("name", COPIED)
def test_a_copy_without_axes_can_be_written_to(name, make):
    """The copy was a number: `b[()] = v` raised TypeError, as NumPy's numbers do."""

    def f(x):
        a = make(x)
        b = COPIED[name](a)
        b[()] = x[1]
        b += x[2]
        return float(a * b)

    h, unit = 1e-2 if name == "narrower" else 1e-5, np.eye(3)
    step = np.float64(h)
    differences = [(f(X + step * u) - f(X - step * u)) / (2 * step) for u in unit]
    value, gradient = value_and_grad(f)(X)
    assert value == f(X.copy())
    np.testing.assert_allclose(gradient, differences, rtol=1e-4 if name == "narrower" else 1e-8, atol=1e-8)
    compiled = compile(grad(f))
    compiled(2 * X)
    np.testing.assert_allclose(compiled(X), gradient, rtol=1e-6)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("name", COPIED)
def test_members_of_a_batch_change_in_place(name, make):
    """To a batch they were numbers, so that a product in place left the other name at the old value."""

    def f(x):
        s = COPIED[name](make(x))
        t = s
        s *= 3
        return s * t

    def members():
        return np.stack([X, X + 1])

    wanted = np.array([f(x) for x in members()])
    for g in (vmap(f), compile(vmap(f))):
        np.testing.assert_allclose(g(members()), wanted, rtol=1e-6)
    for found in (jvp(vmap(f), (members(),), (members(),)), vmap(lambda x: jvp(f, (x,), (members()[0],)))(members())):
        np.testing.assert_allclose(found[0], wanted, rtol=1e-6)
    # f is homogeneous of order 2.
    np.testing.assert_allclose(jvp(vmap(f), (members(),), (members(),))[1], 2 * wanted, rtol=1e-6)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("name", COPIED)
def test_a_copy_without_axes_has_the_class_of_numpys(name, make):
    found = []
    grad(lambda x: found.append(isinstance(COPIED[name](make(x)), np.ndarray)) or x[0])(X)
    assert found == [isinstance(COPIED[name](make(X)), np.ndarray)]


def test_a_number_that_is_cast_stays_a_number():
    found = []
    grad(lambda x: found.append(isinstance(x[0].astype(float), np.ndarray)) or copy.copy(x)[0])(X)
    assert found == [False]


def selected(x):
    return np.where(x > 0, x, 2 * x)


def selected_from_lists(x):
    return np.select([x > 1, x > 0], [x, 2 * x])


def in_pieces(x):
    return np.piecewise(x, [x > 0], [lambda t: 2 * t, lambda t: t])


@pytest.mark.parametrize("make", [selected, selected_from_lists, in_pieces])
def test_selections_of_numbers_are_arrays_that_change_in_place(make):
    """NumPy returns an array without axes; a number here left its other name at the old value, silently."""

    def f(x):
        s = make(x)
        t = s
        s *= 3
        return s * t

    # f is a square, so that its difference quotient is exact.
    value, slope = f(0.7), (f(0.7 + 1e-3) - f(0.7 - 1e-3)) / 2e-3
    for derivative in (value_and_grad(f), compile(value_and_grad(f))):
        np.testing.assert_allclose(derivative(0.7), (value, slope), rtol=1e-8)
    np.testing.assert_allclose(jvp(f, (0.7,), (1.0,)), (value, slope), rtol=1e-8)
    np.testing.assert_allclose(hvp(f, 0.7, 1.0), 2 * f(1.0), rtol=1e-8)


@pytest.mark.parametrize("make", [selected, np.array, np.asarray, lambda x: np.atleast_1d(x)[0, ...]])
def test_an_array_without_axes_changes_in_place_each_time(make):
    """The first change left a number, which the second one did not change under the other names."""

    def f(x):
        s = make(x)
        t = s
        s *= 1.5
        t *= 2.0
        s[()] = s * t
        s[s > 0.0] *= 2.0
        np.copyto(t, t * x, where=t > 0.0)
        t.ravel()[-1] *= 1.5
        t.reshape(1)[0] += s
        u = copy.copy(s)
        u *= 0.5
        kinds.update([isinstance(s, np.ndarray), isinstance(u, np.ndarray), not isinstance(+s, np.ndarray)])
        return t * 1.0 + u

    kinds: set[bool] = set()
    x, step = np.array(0.7), 1e-4
    value, slope = f(x.copy()), (f(np.array(x + step)) - f(np.array(x - step))) / (2 * step)
    for derivative in (value_and_grad(f), compile(value_and_grad(f))):
        np.testing.assert_allclose(derivative(x.copy()), (value, slope), rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (x.copy(),), (np.array(1.0),)), (value, slope), rtol=1e-6)
    assert kinds == {True}


@pytest.mark.parametrize("mask", [False, True])
def test_copyto_takes_an_array_without_axes_whose_numbers_are_plain(mask):
    """NumPy, asked about the options, got the number in the array's memory, and rejected it."""

    def f(x):
        a = np.zeros(())
        np.putmask(a, mask, x[0])
        np.copyto(a, x[1] * x[2], where=a > 0.0)
        return np.sin(a) + x[0]

    for found, slope in (value_and_grad(f)(X), compile(value_and_grad(f))(X)):
        assert found == pytest.approx(f(X.copy()), rel=1e-15)
        assert slope[1] == pytest.approx(np.cos(X[1] * X[2]) * X[2] if mask else 0.0, rel=1e-14)
