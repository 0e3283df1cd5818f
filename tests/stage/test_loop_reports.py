"""The report says which functions a compiled program still calls, and which loops Python has run: where, and why."""

import inspect
import re
import warnings

import numpy as np
import pytest
from scipy.special import gammaln

import effgrad
from effgrad import loop


def line_of(f, text):
    """The file and line of a function's text, as reports and warnings have them."""
    lines, first = inspect.getsourcelines(f)
    (place,) = [number for number, line in enumerate(lines) if text in line]
    return f"{__file__}:{first + place}"


def report(f, *args, backend="native"):
    return effgrad.compile(effgrad.grad(f), backend=backend).report(*args)


def test_calls_in_a_loop_are_named_with_their_lines_and_reasons():
    @effgrad.rule(vjp=lambda g, y, x: (g * np.cos(x),))
    def ruled(x):
        return np.sin(x)

    def f(x):
        for _ in range(100):
            x = x + 0.1 * np.linalg.cholesky(x @ x.T + np.eye(3))
            x = x - 0.001 * gammaln(2.0 + x * x)
            x = x + 0.01 * ruled(x)
        return np.sum(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = effgrad.compile(f).report(np.eye(3))
    assert f"{line_of(f, 'cholesky')}: cholesky: it is no map, sum, product or move of elements (in a loop)" in text
    assert f"{line_of(f, 'gammaln')}: gammaln: it has no machine code (in a loop)" in text
    assert f"{line_of(f, 'ruled')}: ruled: it has a rule of yours (in a loop)" in text
    assert "unrolled" not in text


def test_calls_of_the_derivative_have_the_line_of_the_value():
    def f(x):
        for _ in range(100):
            x = x + 0.1 * np.linalg.cholesky(x @ x.T + np.eye(3))
        return np.sum(x)

    (line,) = [line for line in report(f, np.eye(3)).splitlines() if ": cholesky:" in line]
    assert line_of(f, "cholesky") in line and line.endswith("2 times")  # the value, and its cotangent


def test_calls_between_loops_are_named_with_their_lines_and_reasons():
    def f(x):
        y = np.sort(x)
        z = gammaln(y)
        return np.sum(z * np.median(x))

    text = effgrad.compile(f).report(np.array([2.0, 1.0, 3.0]))
    assert re.search(rf"{re.escape(line_of(f, 'gammaln'))}: gammaln: it has no machine code", text)
    assert re.search(rf"{re.escape(line_of(f, 'np.sort'))}: \w+: it is no map, sum, product or move of elements", text)


def test_complex_numbers_are_a_reason():
    def f(x):
        return np.sum(np.abs(np.exp(1j * x)))

    assert f"{line_of(f, 'exp')}: exp: machine code has no complex128" in effgrad.compile(f).report(np.ones(3))


def test_the_reverse_pass_has_no_line():
    def f(x):
        return np.sum(np.linalg.cholesky(x))

    assert "the reverse pass: " in report(f, np.eye(3))


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_unrolled_loops_are_named_with_their_lines_and_reasons(backend):
    def f(x):
        for _ in range(40):
            x = x + np.sin(x)
            np.random.random(1)
        return x

    with pytest.warns(effgrad.errors.StagingWarning, match="the loop in 'f' is unrolled") as found:
        text = report(f, 0.5, backend=backend)
    (warning,) = found
    line = text.splitlines()[text.splitlines().index("unrolled:") + 1].strip()
    assert line == f"{warning.filename}:{warning.lineno}: {warning.message}"


def test_programs_of_numpy_say_that_they_unroll_loops():
    """One warning for each loop that is long; the loops of `effgrad.loop` were unrolled without a word."""

    def f(x):
        for _ in range(40):
            x = x + 0.1 * np.sin(x)
        for _ in range(10):
            x = x + 0.1 * np.cos(x)
        return loop.fori(0, 50, lambda i, c: c * 0.9, x)

    with pytest.warns(effgrad.errors.StagingWarning) as found:
        compiled = effgrad.compile(effgrad.grad(f), backend="numpy")
        value = compiled(0.5)
    first, second = sorted(found, key=lambda warning: warning.lineno)
    assert f"{first.filename}:{first.lineno}" == line_of(f, "range(40)")
    assert f"{second.filename}:{second.lineno}" == line_of(f, "fori")
    assert all("because of backend='numpy'" in str(warning.message) for warning in found)
    assert value == pytest.approx(effgrad.grad(f)(0.5), rel=1e-14)


@pytest.mark.parametrize(("start", "long"), [(0.5, False), (1e30, True)])
def test_programs_of_numpy_say_that_a_while_was_long(start, long):
    def f(x):
        while x > 1.0:
            x = x / 2.0
        return x * x

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        effgrad.compile(effgrad.grad(f), backend="numpy")(start)
    assert [f"{w.filename}:{w.lineno}" for w in found] == [line_of(f, "while")] * long
