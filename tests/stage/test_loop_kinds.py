"""Numbers that a captured loop binds are Python's after it where Python's loop leaves Python's, else NumPy's.

Python's numbers adopt the precision of the arrays that they meet, NumPy's do not; `is True`, `type` and three-argument
`pow` tell them apart too. Every number was NumPy's once. Each program is compared with its plain run, to the dtype.
"""

import importlib
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse.linalg

import effgrad

SINGLE = np.array([0.1, 0.7], np.float32)


def floats_beside_single_precision(x):
    s = x
    for _ in range(40):
        s = s * 0.9 + 0.1
    return SINGLE * s


def items_of_a_tuple(x):
    s = (x, 1)
    for i in range(40):
        s = (s[0] * 0.9 + 0.1, (s[1] * 3 + i) % 7)
    return SINGLE * s[0] * s[1]


def counted_until_a_test(x):
    s = x
    n = 0
    while n < 100 and s < 0.9:
        s = s * 0.9 + 0.1
        n += 1
    return SINGLE * s * n


def begun_with_a_python_float(x):
    s = 0.0
    for _ in range(40):
        s = s + x
    return SINGLE * s


def begun_with_a_python_integer(x):
    s = 1
    for _ in range(40):
        s = s * (0.9 + 0.1 * x)
    return SINGLE * s


def truths(x):
    s, p = x, False
    for _ in range(40):
        s = s * 0.9 + 0.1
        p = s > 0.5
    return s * (2 if p is True else 3) + (type(p) is bool)


def integers(x):
    s, k = x, 1
    for i in range(40):
        s = s * 0.9 + 0.1
        k = (k * 3 + i) % 7
    return s * pow(k, 3, 7) + isinstance(k, int) + (np.array([3, 1], np.int8) * k)[0]


def integers_of_numpy(x):
    k = 0
    for i in range(40):
        k = np.argmax(np.array([x, 0.2 + i, 10.0]))
    return x * k + isinstance(k, int) + (SINGLE * k)[1]


def integers_without_an_input(x):
    k, m = 1, 4
    for _ in range(5):
        k = (k + m) % 7
        for j in range(40):
            m = (m * 3 + j) % 5
    return x * pow(k, 3, 7) + isinstance(m, int)


def integers_through_two_loops(x):
    s, k, m = x, 1, 4
    for i in range(5):
        k = (k + m) % 7
        s = s + pow(k, 3, 7)
        for j in range(40):
            m = (m * 3 + j + i) % 5
    return s + isinstance(m, int) + isinstance(k, int)


PROGRAMS = [
    floats_beside_single_precision, items_of_a_tuple, counted_until_a_test, begun_with_a_python_float,
    begun_with_a_python_integer, truths, integers, integers_of_numpy,
    integers_without_an_input, integers_through_two_loops,
]  # fmt: skip


@pytest.mark.parametrize("x", [0.3, -0.4, np.float64(0.3), np.float32(0.3)])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_numbers_after_a_loop_are_of_pythons_class(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.errors.StagingWarning)
        found = effgrad.compile(f)(x)
    expected = f(x)
    assert type(found) is type(expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if np.asarray(expected).dtype == np.float32 else 1e-13)


def test_a_count_that_values_decide_needs_no_path_of_its_own():
    runs = []

    def f(x):
        runs.append(x)
        s, n = x, 0
        while s < 0.9:
            s = s * 0.9 + 0.1
            n += 1
        return s / (n + 1) + n * x

    run = effgrad.compile(f)
    for x in np.linspace(0.0, 0.85, 9).tolist():
        assert run(x) == pytest.approx(f(x), rel=1e-14)
    assert len(runs) - 9 <= 2


def test_a_conversion_to_single_precision_has_second_derivatives():
    """The cotangents of a call came in double precision and were added to single ones: LLVM refused the text."""

    def f(v):
        s = v[0]
        for _ in range(40):
            s = np.float32(s) * np.cos(v[1]) + 0.1
        return s * s * v[1]

    def curvature(v):
        return effgrad.grad(lambda w: np.sum(effgrad.grad(f)(w) * np.array([1.0, 2.0])))(v)

    point = np.array([0.3, 0.7])
    np.testing.assert_allclose(effgrad.compile(curvature)(point), curvature(point), rtol=1e-5)


TRUTHS = [
    "(not p) + (not q)", "(not r) + (not r2)", "~(not p)", "-(not p)", "(not p) - (not q)", "abs(not p) + (not p)",
    "(k in (1, 2)) + (k in (2, 3))", "(k not in (1, 2)) + (k in (2, 3))", "bool(p) + bool(q)", "bool(r) + bool(r2)",
    "bool(k) + bool(s)", "(0 < k < 3) + (1 < k < 5)", "(0 < s < 3) + (-1 < s < 1)", "(p and q) + (q or p)",
    "(r and r2) + (r or r2)", "(not (p and q)) + (not (p or q))", "max(not p, not q) + min(not p, q)",
    "((not p) if q else (not q)) + (not p)", "isinstance(not p, bool) + isinstance(r, bool)",
    "np.logical_not(p) + np.logical_not(q)", "(not p) + np.logical_not(q)", "((not p) | (not q)) + (not r)",
    "(not 0 < k < 3) + (not 1 < k)",
]  # fmt: skip


@pytest.mark.parametrize("expression", TRUTHS)
def test_truth_values_of_python_count_in_sums_and_those_of_numpy_do_not(written, expression):
    """Two truth values of Python's add up to 2, two of NumPy's to True: `(not p) + (not q)` was 1 at most."""
    f = written(f"""\
        s, out, k = x[0], 0.0, 1
        for i in range(40):
            p, q, r, r2 = k > 2, i % 3 == 1, s > 0.1, x[i % 3] > 0.3
            out = out + ({expression}) * (0.1 + 0.01 * i)
            k = (k * 3 + i) % 7
            s = np.sin(s + x[1] + i)
        return out + s
    """)
    agrees(f, np.array([0.4, 0.7, -0.2]))


NUMBERS = [
    "np.sin(s)", "math.sin(s)", "math.sin(np.float64(s))", "float(np.float64(s))", "np.float64(s)", "abs(s)", "-s",
    "np.abs(s)", "max(s, t)", "np.maximum(s, t)", "s ** 2", "np.square(s)", "s // 1", "np.floor(s)", "np.add(s, 1)",
    "np.where(s > 0, s, t)", "(s if s > 0.1 else t)", "np.sqrt(k)", "k * 0.1", "round(s, 2)", "np.clip(s, 0, 1)",
    "pow(s, 2)", "np.real(s)", "s.real", "sum([s, t])", "np.dot(s, t)", "-np.sin(s)", "np.sin(s) * t", "[s, t][1]",
]  # fmt: skip


@pytest.mark.parametrize("expression", NUMBERS)
def test_functions_give_numbers_of_the_class_that_they_give_in_python(written, expression):
    """`SINGLE * np.sin(s)` is double and `SINGLE * math.sin(s)` single; both were single for a Python float `s`."""
    f = written(f"""\
        s, t, k, out = 0.3, 0.7, 1, single * 0
        for i in range(40):
            s, t = t * 0.9 - 0.05, s * 0.95
            k = (k * 3 + i) % 7
            out = single * ({expression})
        return out * float(x[0])
    """)
    agrees(f, np.array([0.4]))


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that makes a function of `x` from the text of its body."""

    def make(body):
        text = "import math\nimport numpy as np\nsingle = np.array([0.1, 0.7], np.float32)\ndef f(x):\n"
        (tmp_path / "program_of_kinds.py").write_text(text + textwrap.indent(textwrap.dedent(body), "    "))
        monkeypatch.syspath_prepend(tmp_path)
        return importlib.import_module("program_of_kinds").f

    yield make
    sys.modules.pop("program_of_kinds", None)


def agrees(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.errors.StagingWarning)
        found = effgrad.compile(f)(x)
    expected = f(x)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-13)


def test_objects_in_a_loop_are_not_asked_for_a_dtype():
    """The factors of a sparse matrix, which have none, stopped a compiled loop over steps in time."""

    class Scale:
        factor = 0.5

        @property
        def dtype(self):
            raise ValueError("a scale has no dtype")

    def f(x):
        matrix = scipy.sparse.diags([[2.0, 3.0, 4.0], [1.0, 1.0]], [0, 1]).tocsc()
        factors, scale = scipy.sparse.linalg.splu(matrix), Scale()
        for _ in range(20):
            x = np.sin(factors.solve(x)) + scale.factor
        return np.sum(x**2)

    x, step = np.array([0.3, 0.8, -0.4]), 1e-6
    slopes = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(x), slopes, rtol=1e-6, atol=1e-9)
