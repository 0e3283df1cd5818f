"""Compiled functions: as the function, in results, paths and errors."""

import copy
import dataclasses
import gc
import io
import pickle
import re
import sys
import warnings
import weakref

import numpy as np
import pytest
import scipy

import effgrad
from effgrad import grad, loop
from effgrad.errors import NotStaged
from effgrad.stage import GuardFailed, paths
from effgrad.stage.compiled import BACKENDS, compile

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def newton(x):
    """A root of y^3 + y = x, by as many steps as it takes."""
    y = x
    while abs(y**3 + y - x) > 1e-12:
        y = y - (y**3 + y - x) / (3 * y**2 + 1)
    return y


def collatz(x):
    steps = 0
    while x > 1:
        x = x / 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
        if steps > 30:
            break
    return steps * x


@pytest.mark.parametrize("f", [newton, collatz])
def test_control_flow_is_followed(f, backend):
    c = compile(f, backend)
    d = compile(grad(f), backend)
    for _ in range(2):
        for x in (0.5, 2.0, 3.0, 0.1, 6.0, -0.0):
            assert c(x) == pytest.approx(f(x), rel=1e-14)
            assert d(x) == pytest.approx(grad(f)(x), rel=1e-10)


def test_a_path_is_staged_once(backend):
    calls = []

    def f(x):
        calls.append(1)
        return x if x > 0 else -x

    c = compile(f, backend)
    assert [c(x) for x in (1.0, 2.0, -1.0, -2.0, 3.0, -3.0)] == [1, 2, 1, 2, 3, 3]
    assert len(calls) == 2


def test_paths_that_never_settle_run_as_python_with_one_warning(backend, monkeypatch):
    monkeypatch.setattr(paths, "MOST_PATHS", 4)
    c = compile(lambda x: x * int(x), backend)
    for x in (1.0, 2.0, 3.0, 4.0):
        assert c(x) == x * x
    with pytest.warns(UserWarning, match="4 different paths"):
        assert c(5.0) == 25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [c(x) for x in (6.0, 1.0)] == [36, 1]


def test_a_program_that_takes_another_path_than_numpy_runs_as_python_soon(monkeypatch):
    """Rounding decided: 64 programs were compiled, one at each call, for a gradient that then ran as plain Python."""

    def program(*leaves):
        raise GuardFailed(0, "another digit")

    monkeypatch.setitem(BACKENDS, "native", lambda graph, flush: program)
    calls = []

    def f(x):
        calls.append(isinstance(x, float))
        return x * int(x)

    c = compile(f)
    assert [c(float(x)) for x in range(1, 4)] == [1, 4, 9]
    with pytest.warns(UserWarning, match="3 different paths.* last digits of its argument x"):
        assert c(4.0) == 16
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert c(5.0) == 25
    assert len(calls) == 5


def test_what_a_path_prints_is_printed_when_it_is_staged(backend, capsys):
    def f(x):
        print("positive" if x > 0 else "negative")
        return x * 2

    c = compile(f, backend)
    assert [c(x) for x in (1.0, 2.0, -1.0, -3.0, 4.0)] == [2, 4, -2, -6, 8]
    assert capsys.readouterr().out.split() == ["positive", "negative"]


def test_pytrees_types_and_static_arguments(backend):
    def f(p, n, *, name):
        return {"y": p["a"] * n + p["b"][0], "name": name, "n": n, "none": None}

    c = compile(f, backend)
    for p in ({"a": np.ones(2), "b": [1.0]}, {"a": np.ones(3, np.float32), "b": [np.float32(1)]}):
        for n in (2, 3):
            result, expected = c(p, n, name="it"), f(p, n, name="it")
            np.testing.assert_array_equal(result.pop("y"), y := expected.pop("y"))
            assert c(p, n, name="it")["y"].dtype == y.dtype
            assert result == expected


def test_results_have_memory_of_their_own(backend):
    x, constant = np.ones(3), np.zeros(3)
    c = compile(lambda x: (x, x, x[::-1], constant, x.reshape(3, 1)), backend)
    for _ in range(2):
        for part in c(x):
            part += 1
    np.testing.assert_array_equal(x, np.ones(3))
    np.testing.assert_array_equal(constant, np.zeros(3))
    np.testing.assert_array_equal(c(x)[3], np.zeros(3))


def test_a_later_call_does_not_change_an_earlier_result(backend):
    c = compile(lambda x: np.sin(x) * 2, backend)
    first = c(np.zeros(3))
    c(np.ones(3))
    np.testing.assert_array_equal(first, np.zeros(3))


def test_derivatives_go_through_a_compiled_function(backend):
    c = compile(lambda x: np.sum(x**3), backend)
    np.testing.assert_allclose(grad(c)(np.array([1.0, 2.0])), [3, 12])
    np.testing.assert_allclose(compile(grad(c), backend)(np.array([1.0, 2.0])), [3, 12])


def test_turned_off_by_the_environment(monkeypatch, backend):
    calls = []
    monkeypatch.setenv("EFFGRAD_COMPILE", "0")
    c = compile(lambda x: calls.append(1) or x, backend)
    c(1.0), c(1.0), c(1.0)
    assert len(calls) == 3


def test_an_argument_that_cannot_be_part_of_a_program_is_an_error():
    class Unhashable:
        __hash__ = None

    with pytest.raises(NotStaged, match="options, a Unhashable, which is not hashable"):
        compile(lambda x, options: x)(1.0, Unhashable())
    with pytest.raises(ValueError, match="numpy"):
        compile(lambda x: x, backend="fortran")


def test_a_result_that_is_no_container_of_arrays_is_an_error(backend):
    class Holder:
        def __init__(self, value):
            self.value = value

    with pytest.raises(NotStaged, match="returned a Holder"):
        compile(Holder, backend)(1.0)


def test_a_value_kept_after_staging_is_an_error(backend):
    kept = []
    compile(lambda x: kept.append(x) or x, backend)(1.0)
    with pytest.raises(effgrad.EscapedValue):
        kept[0] + 1.0


def test_an_exception_of_the_function_reaches_the_caller(backend):
    c = compile(lambda x: np.linalg.inv(x) if x[0, 0] > 0 else [][1], backend)
    c(np.eye(2))
    with pytest.raises(IndexError):
        c(-np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        c(np.ones((2, 2)))


def test_repeated_calls_are_equal_to_the_bit(backend):
    x = np.random.default_rng(0).normal(size=(50, 7))
    f = grad(lambda x: np.sum(np.exp(np.sin(x) @ np.cos(x).T)))
    c = compile(f, backend)
    c(x)
    d = compile(f, backend)
    d(x * 2)
    assert c(x).tobytes() == c(x).tobytes() == d(x + 0).tobytes()


def test_the_report_names_the_steps(backend):
    c = compile(lambda x: np.sum(np.sin(x) @ x), backend)
    text = c.report(np.ones((20, 20)))
    if backend == "numpy":
        assert "3 operations" in text
        return
    for item in ("steps", "different kernels", "flop,", "B moved", "peak memory", "compiled in", "ceiling", "] sin"):
        assert item in text
    assert re.search(r"\[20, 20\] matmul \(BLAS\)", text)
    product = next(line for line in text.splitlines() if "matmul" in line)
    assert "16 k" in product  # 2 * 20**3 operations


def test_the_report_counts_the_steps_of_loops():
    def f(x):
        return loop.fori(0, 10, lambda i, c: np.sin(c), x) * np.linalg.det(x)

    rows = compile(f).report(np.eye(20)).splitlines()
    assert any("det (NumPy)" in row for row in rows)
    (row,) = [row for row in rows if "run_region (loop)" in row]
    assert row.split()[2:4] == ["4", "k"]  # ten times the sine of 400 elements


def test_functions_without_a_rule_are_called(backend):
    def f(x):
        return np.unique(np.round(x)), np.median(x), np.fft.rfft(x), np.real(1j * x + x), np.conj(x)

    c = compile(f, backend)
    for x in (np.arange(4.0), np.arange(4.0) + 1, np.array([1.0, 1.0, 2.0, 0.0]), np.zeros(4), np.arange(4.0)):
        for value, expected in zip(c(x), f(x), strict=True):
            np.testing.assert_allclose(value, expected)
            assert np.shape(value) == np.shape(expected)


def test_under_a_derivative_they_need_a_rule(backend):
    with pytest.raises(effgrad.NoRule):
        compile(grad(lambda x: np.savetxt(io.StringIO(), x)), backend)(np.ones(3))


@pytest.mark.parametrize("use", [lambda w, x: w * x, lambda w, x: x * w, lambda w, x: np.where(x > w, x, 0.0)])
def test_a_traced_value_that_is_closed_over_is_an_error(use, backend):
    ones = np.ones(3)

    def outer(w):
        return np.sum(compile(lambda x: use(w, x), backend)(ones))

    with pytest.raises(NotStaged, match="pass it as an argument"):
        grad(outer)(2.0)
    with pytest.raises(NotStaged, match="pass it as an argument"):
        compile(outer, backend)(2.0)
    assert outer(2.0) in (6.0, 0.0)


INDICES = [np.array(2), (np.array(1),), (slice(0, 3), np.array(0)), (np.array(1), [0, 1]), (np.array(1), np.newaxis)]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_that_is_an_array_without_axes(index, backend):
    x = np.linspace(0.1, 1, 12).reshape(4, 3)
    for f in (lambda x: np.sum(np.sin(x[index])), lambda x: np.sum(np.sin(x[:, 0][np.array(2)] * x))):
        for g in (f, grad(f), grad(lambda x, f=f: np.sum(grad(f)(x) ** 2))):
            c = compile(g, backend)
            for point in (x, x, 2 * x):
                np.testing.assert_allclose(c(point), g(point), rtol=1e-12)


def test_compiling_leaves_the_search_for_garbage_as_it_was(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # of what earlier tests have left
    class Kept:
        pass

    cycle = Kept()
    cycle.itself = cycle
    watched = weakref.ref(cycle)
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            effgrad.compile(lambda x: x * 2)(1.0)
            assert gc.isenabled() == enabled
            assert gc.get_freeze_count() == 0
        finally:
            gc.enable()
    del cycle
    gc.collect()
    assert watched() is None


SYMMETRIC = np.array([[2.0, 0.3, 0.1], [0.3, 3.1, 0.2], [0.1, 0.2, 4.2]])

# Functions with several results, and functions that are given functions.
SEVERAL = {
    "eigh": lambda x: np.linalg.eigh(x).eigenvectors ** 2 @ np.linalg.eigh(x)[0],
    "eig": lambda x: np.linalg.eig(x)[0],
    "svd": lambda x: np.linalg.svd(x)[1],
    "qr": lambda x: np.linalg.qr(x)[1] ** 2,
    "lstsq": lambda x: np.linalg.lstsq(x, x[:, 0] ** 2, rcond=None)[0],
    "polar": lambda x: scipy.linalg.polar(x)[0],
    "gradient": lambda x: np.gradient(x)[1],
    "polydiv": lambda x: np.polydiv(x[0], x[1, :2])[1],
    "average": lambda x: np.average(x, weights=x * x, returned=True)[0],
    "histogram": lambda x: np.histogram(x, 3)[0] * x[0, 0] + np.histogram(x, 3)[1][1],
    "histogram2d": lambda x: np.histogram2d(x[0], x[1], 2, [[0, 5], [0, 5]])[0] * x[0, 0],
    "where": lambda x: x[np.where(x > 0.25)],
    "unravel_index": lambda x: x[np.unravel_index(np.argmax(x), x.shape)],
    "divmod": lambda x: np.divmod(x, 0.7)[1] + np.modf(x)[0],
    "apply_along_axis": lambda x: np.apply_along_axis(lambda row: row * x[0, 0], 0, x),
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [0, 1]),
    "piecewise": lambda x: np.piecewise(x, [x < 1, x >= 1], [lambda t: t * x[0, 1], np.exp]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_results_and_arguments_that_are_functions(name, backend):
    f = SEVERAL[name]
    compiled = compile(f, backend=backend)
    source = effgrad.stage(f)(SYMMETRIC).to_python()
    for x in (SYMMETRIC, SYMMETRIC + 0.1 * np.eye(3), SYMMETRIC * 1.1):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-10, atol=1e-15)  # polar: an identity
    names = {}
    exec(source, names)
    np.testing.assert_allclose(names["program"](SYMMETRIC), f(SYMMETRIC), rtol=1e-10, atol=1e-15)


LAYOUTS = {
    "ravel": lambda x: np.ravel(x, "K"),
    "strides": lambda x: x * x.strides[0],
    "flags": lambda x: x * 2 if x.flags.c_contiguous else x * 3,
    "reshape": lambda x: np.reshape(x * 2, (3, 2), order="A"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_order_in_memory_is_a_part_of_an_array_s_type(name, backend):
    f = LAYOUTS[name]
    x = np.arange(6.0).reshape(2, 3)
    compiled = compile(f, backend=backend)
    for y in (x, np.asfortranarray(x), np.arange(6.0).reshape(3, 2).T, np.arange(12.0).reshape(2, 6)[:, ::2], x):
        np.testing.assert_array_equal(compiled(y), f(y))


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    @compile
    def times(self, x):
        return self.scale * x


def test_a_method_is_compiled_for_each_object():
    assert [Scaled(2.0).times(3.0), Scaled(5.0).times(3.0)] == [6.0, 15.0]


def test_a_compiled_function_is_copied_and_pickled_as_what_it_is_made_of():
    compiled = compile(newton, backend="numpy")
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other.backend == "numpy" and other(2.0) == pytest.approx(1.0)


def test_arrays_given_are_copies_to_the_function(backend):
    def f(a, b):
        a[0] = 7.0
        return a + b

    compiled, x = compile(f, backend=backend), np.array([1.0, 2.0])
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x, x), [8.0, 4.0])
        np.testing.assert_array_equal(x, [1.0, 2.0])


@pytest.mark.parametrize(
    "argument", [np.array(["a"]), np.array([1.0, None]), np.array(["2026-01-01"], "M8[D]"), np.array(3.0, dtype=object)]
)
def test_arrays_that_are_not_of_numbers_are_refused(argument):
    """They took the places of the inputs after them."""
    with pytest.raises(NotStaged, match="array of"):
        compile(lambda x, y: y * 2.0)(argument, 1.0)


def test_arrays_of_objects_made_inside_hold_numbers_of_the_program(backend):
    compiled = compile(lambda x: np.sum(np.array([x[0], x[1]], dtype=object)), backend=backend)
    assert [compiled(np.ones(2)), compiled(np.array([1.5, 2.0]))] == [2.0, 3.5]


def test_integers_are_shifted(backend):
    compiled, x = compile(lambda x: (x << 2) + (x >> 1), backend=backend), np.array([3, -8])
    for y in (x, x + 1):
        np.testing.assert_array_equal(compiled(y), (y << 2) + (y >> 1))


TRUTHS = {
    "not x": lambda x: 1.0 if not x else 2 * x,
    "x or y": lambda x: (x or 3.0) * 2,
    "bool(x)": lambda x: x * x if bool(x * 0.5) else 5.0,
}


@pytest.mark.parametrize("name", TRUTHS)
def test_the_truth_of_a_number_has_two_answers(name):
    """A program asked whether a number is zero was staged again for every number."""
    f = TRUTHS[name]
    compiled, slopes = effgrad.compile(f), effgrad.compile(effgrad.grad(f))
    for x in (0.1, 0.2, 3.0, 0.0, -1.0, np.nan):
        np.testing.assert_equal(compiled(x), f(x))
        np.testing.assert_equal(slopes(x), effgrad.grad(f)(x))
    assert "2 programs" in repr(compiled) and "2 programs" in repr(slopes)


@dataclasses.dataclass
class Layer:
    weights: np.ndarray
    scale: float
    power: int = 2

    def out(self, x):
        return np.sum(np.tanh(self.weights @ x) * self.scale) ** self.power


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    layer: Layer
    shift: np.ndarray
    title: str = "model"


def shifted(model, x):
    return model.layer.out(x + model.shift)


def test_dataclasses_are_containers_of_inputs():
    """They were refused as "neither a container nor hashable"; a frozen one with numbers was a program for each."""
    x = np.array([0.2, -0.4])
    models = [Model(Layer(np.eye(2) * k, 1.0 + k), np.full(2, 0.1 * k)) for k in (1, 2, 3)]
    compiled, gradient = effgrad.compile(shifted), effgrad.compile(grad(shifted))
    for model in models:
        assert np.isclose(compiled(model, x), shifted(model, x))
        found, expected = gradient(model, x), grad(shifted)(model, x)
        assert type(found) is Model and found.title == "model"
        np.testing.assert_allclose(found.layer.weights, expected.layer.weights)
        np.testing.assert_allclose(found.shift, expected.shift)
    assert "1 programs" in repr(compiled)


@pytest.mark.parametrize("places", [
    slice(2, 5), slice(None, 5), slice(-3, None), slice(8, 1, -2), (slice(1, 7), slice(None, None, 2)), (..., slice(3)),
])  # fmt: skip
def test_slices_may_be_arguments(places):
    def f(x, s):
        return np.sum(x[s] ** 2)

    x, compiled = np.arange(80.0).reshape(10, 8), compile(grad(f))
    for _ in range(2):
        expected = np.zeros_like(x)
        expected[places] = 2 * x[places]
        np.testing.assert_array_equal(compiled(x, places), expected)
