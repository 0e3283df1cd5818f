"""Laws that every differentiable function keeps, for the coverage tests: `f` takes `x`, a matrix, to a real array.

`Laws` are the tests of a table of such functions, which a module of tests names in a subclass.
"""

import contextlib

import numpy as np
import pytest

from effgrad import check_grad, compile, grad, hvp, jvp, value_and_grad, vjp
from effgrad.api import directional
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import UFUNCS
from effgrad.errors import Detached, NoRule
from effgrad.fast import REVERSE, FastTaped, recording
from effgrad.modes.forward import Forward
from effgrad.modes.mode import Operation
from effgrad.modes.taped import Taped
from effgrad.primitives import cotangents

U, V = np.cos(np.arange(24.0).reshape(2, 3, 4))


def scalar(f):
    return lambda x: np.sum(np.sin(f(x)))


@contextlib.contextmanager
def another_row(function, row):
    """Put another row in the place of a ufunc's; a registry itself refuses that."""
    right = UFUNCS[function]
    dict.__setitem__(UFUNCS, function, row)
    try:
        yield
    finally:
        dict.__setitem__(UFUNCS, function, right)


def forward_and_reverse_are_transposes(run, f, x):
    value, tangent = run(jvp)(f, (x,), (U,))
    np.testing.assert_allclose(value, f(x), rtol=1e-12, atol=1e-14)
    value, pullback = vjp(f, x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12, atol=1e-14)
    cotangent = np.sin(np.arange(np.size(value))).reshape(np.shape(value))
    np.testing.assert_allclose(np.sum(cotangent * tangent), np.sum(pullback(cotangent)[0] * U), rtol=1e-8, atol=1e-10)


def derivatives_agree_with_differences(run, f, x, tolerance):
    f, step = scalar(f), 1e-5
    check_grad(f, x, tolerance=tolerance)
    first = run(grad)(f)
    second = run(grad)(lambda x: np.sum(first(x) * U))(x)
    difference = (first(x + step * U) - first(x - step * U)) / (2 * step)
    np.testing.assert_allclose(second, difference, rtol=tolerance, atol=tolerance)


def orders_of_nesting_agree(run, f, x):
    f = scalar(f)
    along_u, along_v = run(hvp)(f, x, U), run(hvp)(f, x, V)
    np.testing.assert_allclose(np.sum(along_u * V), np.sum(along_v * U), rtol=1e-6, atol=1e-7)
    twice_forward = run(jvp)(lambda x: run(jvp)(f, (x,), (U,))[1], (x,), (U,))[1]
    np.testing.assert_allclose(twice_forward, np.sum(along_u * U), rtol=1e-6, atol=1e-7)


def reverse_modes_agree(run, f, x):
    f = scalar(f)
    expected = run(grad)(f)(x)
    for mode in ("reverse", "continuation", "delta", "checkpointed"):
        np.testing.assert_allclose(run(grad)(f, mode=mode)(x), expected, rtol=1e-10, atol=1e-12, err_msg=mode)


class Hollow(FastTaped):
    """Every operation by the clause, which keeps no elements that the rules say their passes back do not read."""

    value = Traced


def the_pass_back_reads_what_its_rule_says(run, f, x, monkeypatch):
    f = scalar(f)
    expected = run(grad)(f)(x)
    nothing = np.array(np.nan)
    monkeypatch.setattr(recording, "LARGE_BYTES", 0)
    monkeypatch.setattr(recording, "shape_only", lambda a: np.broadcast_to(nothing.astype(a.dtype), a.shape))
    monkeypatch.setitem(REVERSE, "hollow", Hollow)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(run(grad)(f, mode="hollow")(x), expected, rtol=1e-10, atol=1e-12)


def dtype_of(x):
    """The dtype of a number, an array or a cotangent."""
    return cotangents.dense(x).dtype if type(x) in cotangents.FORMS else np.result_type(x)


class Cells(list):
    """Cotangents on their way back, each in the precision of its value, and real where that is real."""

    def __init__(self, given, entries):
        super().__init__(given)
        self.entries = entries

    def __setitem__(self, name, part):
        entry = self.entries[name]
        if part is not None and isinstance(entry, list | Operation):
            primitive, value = entry[0], np.asarray(entry[2] if type(entry) is list else entry.result)
            assert np.finfo(dtype_of(part)).dtype == np.finfo(value.dtype).dtype, (primitive, part, value)
            assert value.dtype.kind == "c" or dtype_of(part).kind == "f", (primitive, part, value)
        super().__setitem__(name, part)


def in_cells(mode):
    """The mode, with every cotangent looked at."""

    class Looking(mode):
        def walk(self, collected, first):
            super().walk(cells := Cells(collected, self.entries), first)
            collected[:] = cells

    return Looking


class LookingForward(Forward):
    """Forward mode, with every tangent looked at."""

    def shadow(self, operation):
        tangent, value = super().shadow(operation), np.asarray(operation.result)
        if tangent is not None:
            assert np.finfo(dtype_of(tangent)).dtype == np.finfo(value.dtype).dtype, (operation.primitive, tangent)
            assert value.dtype.kind == "c" or dtype_of(tangent).kind == "f", (operation.primitive, tangent)
        return tangent


def single_precision_stays(run, f, x, monkeypatch):
    """Every tangent and cotangent on the way has the precision of its value, not only the derivative at the end."""
    f, x = scalar(f), x.astype(np.float32)
    for mode in (Taped, FastTaped):
        monkeypatch.setitem(REVERSE, "looking", in_cells(mode))
        found = run(grad)(f, mode="looking")(x)
        assert found.dtype == np.float32
    np.testing.assert_allclose(run(grad)(f)(x), found, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(directional, "FastForward", LookingForward)
    value, tangent = run(jvp)(f, (x,), (U,))
    assert np.result_type(tangent) == np.result_type(value) == np.result_type(f(x))


def compiled_values_have_the_dtype(f, x):
    for at in (x, x.astype(np.float32)):
        value, compiled = f(at), compile(f, "numpy")(at)
        assert (np.shape(compiled), np.result_type(compiled)) == (np.shape(value), np.result_type(value))


def complex_arguments_are_differentiated_or_refused(f, x):
    """In the real and imaginary parts of a complex argument.

    In places SciPy drops the imaginary one with a warning; a transposed complex system it does not solve.
    """
    x, step = x + 0.2j * np.cos(3 * np.arange(x.size)).reshape(x.shape), 1e-6

    def g(a, b):
        y = f(a + 1j * b)
        return np.sum(np.sin(np.real(y)) + 2 * np.cos(np.imag(y)))

    def difference(u, v):
        return (g(x.real + step * u, x.imag + step * v) - g(x.real - step * u, x.imag - step * v)) / (2 * step)

    try:
        value = f(x)
    except (TypeError, ValueError, RuntimeError, np.linalg.LinAlgError):
        return
    try:
        of_real, of_imag = grad(g, argnums=(0, 1))(x.real, x.imag)
    except (NoRule, Detached, TypeError):
        return
    if np.isfinite(value).all():
        np.testing.assert_allclose(vjp(f, x)[0], value, rtol=1e-9, atol=1e-11)
        for u, v in ((U, 0 * U), (0 * U, U), (V, U)):
            np.testing.assert_allclose(np.sum(of_real * u + of_imag * v), difference(u, v), rtol=1e-4, atol=1e-5)


def compiled_programs_agree(f, x, backend):
    f = value_and_grad(scalar(f))
    compiled = compile(f, backend)
    for at in (x, x, x[::-1] ** 1.1):  # the last may take another path
        for value, expected in zip(compiled(at), f(at), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-7, atol=1e-9)


class Laws:
    """Every law for every function of `cases` at `x`; `without` names the functions that a law is not about."""

    cases = {}
    x = None
    # Steep functions: differences of gradients have larger errors there.
    steep = {}
    without = {}

    def pytest_generate_tests(self, metafunc):
        law = metafunc.function.__name__
        metafunc.parametrize("name", [name for name in self.cases if name not in self.without.get(law, ())])

    def test_forward_and_reverse_are_transposes_and_keep_the_value(self, run, name):
        forward_and_reverse_are_transposes(run, self.cases[name], self.x)

    def test_first_and_second_derivative_agree_with_differences(self, run, name):
        derivatives_agree_with_differences(run, self.cases[name], self.x, self.steep.get(name, 2e-5))

    @pytest.mark.sweep  # each order is held to differences above, in one of these modes
    def test_orders_of_nesting_agree(self, run, name):
        orders_of_nesting_agree(run, self.cases[name], self.x)

    def test_reverse_modes_agree(self, run, name):
        reverse_modes_agree(run, self.cases[name], self.x)

    def test_the_pass_back_reads_what_its_rule_says(self, run, name, monkeypatch):
        the_pass_back_reads_what_its_rule_says(run, self.cases[name], self.x, monkeypatch)

    def test_single_precision_stays(self, run, name, monkeypatch):
        single_precision_stays(run, self.cases[name], self.x, monkeypatch)

    def test_compiled_values_have_the_dtype_of_plain_ones(self, name):
        compiled_values_have_the_dtype(self.cases[name], self.x)

    def test_complex_arguments_are_differentiated_or_refused(self, name):
        complex_arguments_are_differentiated_or_refused(self.cases[name], self.x)

    @pytest.mark.parametrize("backend", [pytest.param("numpy", marks=pytest.mark.sweep), "native"])
    def test_compiled_programs_agree(self, name, backend):
        compiled_programs_agree(self.cases[name], self.x, backend)
