"""Ctrl-C in captured loops: it is raised where the program runs, whatever the loop does."""

import signal

import numpy as np
import pytest

from effgrad import compile, grad


def numbers(x, limit):
    k = 0.0
    while k < limit:
        x, k = x * 0.5, k + 1.0
    return x


def arrays(x, limit):
    y, k = x * np.ones(1000), 0.0
    while k < limit:
        y[1:-1] = 0.5 * (y[:-2] + y[2:])
        k = k + 1.0
    return np.sum(y)


def nested(x, limit):
    k = 0.0
    while k < limit:
        for i in range(10**6):
            x = x * 0.999 + 1e-3 * np.sin(x) if i % 3 else x
        k = k + 1.0
    return x


def calls(x, limit):
    A, k = x * np.eye(3), 0.0
    while k < limit:
        A = np.linalg.cholesky(A @ A.T + np.eye(3))
        k = k + 1.0
    return np.sum(A)


@pytest.fixture
def interrupts():
    """A list of the interrupts so far, and a function that lets one come after so many seconds, as Ctrl-C does.

    If that one is lost another comes, so no test waits for ever.
    """
    heard = []

    def interrupt(number, frame):
        heard.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield heard, lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds, 10.0 if seconds else 0.0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("f", [numbers, arrays, nested, calls, grad(numbers)], ids=lambda f: f.__name__)
def test_a_long_loop_is_interrupted_at_once(f, interrupts):
    """Also one that calls NumPy: an interrupt between machine code and Python ended in an AssertionError, or was
    printed and ignored."""
    heard, alarm = interrupts
    program = compile(f)
    program(2.0, 1.0)
    for k in range(15):
        alarm(0.01 + 0.0007 * k)
        with pytest.raises(KeyboardInterrupt):
            program(2.0, 1e12)
        alarm(0.0)
        assert len(heard) == k + 1


def distances(x):
    d = x[:, None] - x
    return np.sum(np.exp(-d * d) * np.cos(d))


def distances_in_a_loop(x):
    total = 0.0
    while total < 1.0:
        d = x[:, None] - x
        total = total + np.sum(np.exp(-d * d) * np.cos(d))
    return total


def chain(x):
    y = np.concatenate([x] * 1000)
    return np.sum(np.sin(y) * np.exp(y - np.mean(y)) + np.tanh(y) * np.cos(y * y) + np.arctan(y) * np.log1p(y))


@pytest.mark.parametrize("f", [distances, distances_in_a_loop, chain, grad(distances), grad(distances_in_a_loop)])
def test_signals_are_heard_within_one_large_kernel(f):
    """They come each millisecond; a kernel that does not ask hears one of them, when it has ended."""
    x, heard = np.linspace(0.0, 1.0, 2000), []
    program = compile(f)
    expected = program(x)
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(True))
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    try:
        found = program(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert len(heard) >= 3
    np.testing.assert_array_equal(found, expected)
