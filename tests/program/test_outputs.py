"""Arrays given for outputs, however they are given, and frames that functions of Python's ask for."""

import inspect
import sys
import warnings

import numpy as np
import pytest
import scipy.interpolate

from effgrad import checkpoint, compile, grad, jvp, vjp
from effgrad.errors import NoRule

X = np.array([0.2, 0.45, 0.9])
UFUNCS = {1: (np.exp, np.negative, np.arcsin, np.floor), 2: (np.add, np.arctan2, np.hypot, np.fmod)}
GIVEN = {
    "by position": lambda f, args, out: f(*args, out),
    "by name": lambda f, args, out: f(*args, out=out),
    "in a tuple": lambda f, args, out: f(*args, out=(out,)),
}


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("f", [f for several in UFUNCS.values() for f in several], ids=lambda f: f.__name__)
@pytest.mark.parametrize("out", [lambda x: 2 * x, lambda x: np.zeros(3)], ids=["traced", "plain"])
def test_an_output_is_written_to_however_it_is_given(f, give, out):
    """`np.exp(K, K)` left K as it was: the tuple of outputs was taken for a list of numbers."""

    def program(x):
        written = out(x)
        returned = give(f, (x, written + 0.5)[: f.nin], written)
        assert returned is written
        return written * x

    value, pull = vjp(program, X)
    assert np.array_equal(value, program(X))
    h = 1e-6
    expected = (program(X + h) - program(X - h)) / (2 * h)
    assert np.allclose(pull(np.ones(3))[0], expected, atol=1e-8)
    assert np.allclose(compile(lambda x: jvp(program, (x,), (np.ones(3),))[1])(X), expected, atol=1e-8)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("out", [lambda x: 2 * x, lambda x: np.zeros(3)], ids=["traced", "plain"])
def test_several_outputs_are_written_to(by_name, out):
    def program(x):
        quotient, rest = out(x), out(x)
        np.divmod(3 * x, 0.7, out=(quotient, rest)) if by_name else np.divmod(3 * x, 0.7, quotient, rest)
        return quotient + rest * x

    value, pull = vjp(program, X)
    assert np.array_equal(value, program(X))
    assert np.allclose(pull(np.ones(3))[0], 3 * X + (3 * X) % 0.7)


MAKERS = (np.array, np.asarray, np.asanyarray, np.asarray_chkfinite, np.require)


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_an_array_made_of_a_number_is_written_to(make):
    """`np.asarray(x)` of a number is an array without axes, and no number."""

    def program(x):
        h = make(np.sin(x))
        before = h + 0.0
        h[np.asarray(h > 0)] = 3 * x
        h[...] += before
        return h

    value, pull = vjp(program, 0.3)
    assert value.shape == () and value == program(0.3)
    assert pull(1.0)[0] == pytest.approx(3 + np.cos(0.3), rel=1e-14)
    assert compile(grad(program))(0.3) == pytest.approx(3 + np.cos(0.3), rel=1e-14)


def caller(depth):
    return sys._getframe(depth).f_code.co_name


def test_functions_that_ask_for_frames_see_the_programs():
    def asking(x):
        names = caller(0), caller(1), inspect.currentframe().f_code.co_name
        assert names == ("caller", "asking", "asking")
        return x * x

    assert grad(asking)(3.0) == 6.0


def test_a_warning_names_the_users_line():
    def warning(x):
        warnings.warn("here", stacklevel=1)
        return x * x

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert grad(warning)(3.0) == 6.0
    assert found[0].filename == __file__


def test_compiled_code_that_rejects_a_traced_value_is_named():
    """A function of SciPy ended in a ValueError of compiled code, about an array's dtype."""
    x = np.linspace(0, 1, 12)

    def program(y):
        return scipy.interpolate.bisplrep(np.repeat(x, 12), np.tile(x, 12), np.ravel(np.outer(y, y)))[2][0]

    with pytest.raises(NoRule, match=r"scipy\.interpolate\.bisplrep"):
        grad(program)(np.sin(5 * x))


@pytest.mark.parametrize("mode", ["taped", "reverse", "continuation", "delta"])
def test_an_array_without_axes_is_added_to_in_a_checkpoint(mode):
    """`h[...] += b` writes the array onto itself: a write that kept the array as its value read itself without end."""

    def program(x):
        h = np.asarray(np.sin(x))
        h[...] += h * x
        return h * 1.0

    derivative = grad(lambda x: checkpoint(program, x), mode=mode)(0.3)
    assert derivative == pytest.approx(np.cos(0.3) * 1.3 + np.sin(0.3), rel=1e-14)


@pytest.mark.parametrize("make", [lambda n: np.empty(n), lambda n: np.empty_like(np.ones(n))], ids=["", "like"])
def test_memory_that_held_traced_values_is_empty_again(make):
    """An array that is gone leaves marks in its memory, which `np.empty` hands out: a loop took them as an input."""

    def filled(x, n):
        a = make(n)
        for i in range(n):
            a[i] = np.sin(x + i)
        return np.sum(a)

    def program(x):
        return sum(filled(x, 64) for _ in range(20))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for derivative in (grad(program), compile(grad(program))):
            assert derivative(0.3) == pytest.approx(20 * np.sum(np.cos(0.3 + np.arange(64))), rel=1e-12)
