"""Rules of the user's own, on functions of C and of pytrees, beside the same functions written in NumPy."""

import ctypes
import ctypes.util
import math
import shutil
import subprocess
import threading
import warnings

import numpy as np
import pytest
import scipy.special
import scipy.special.cython_special
from scipy import LowLevelCallable

from effgrad import (
    EffgradError,
    NoRule,
    NotDifferentiable,
    StagingWarning,
    check_grad,
    checkpoint,
    compile,
    grad,
    hessian,
    jacobian,
    jvp,
    rule,
    second_order,
    taylor,
    vjp,
    vmap,
)
from effgrad.modes import READABLE

LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))
LIBRARY.erf.restype, LIBRARY.erf.argtypes = ctypes.c_double, [ctypes.c_double]


@rule(partials=lambda y, x: 2 / np.sqrt(np.pi) * np.exp(-x * x))
def erf(x):
    """The error function of the C library, of a number."""
    return LIBRARY.erf(x)


def plainly(a, b):
    return {"s": a @ b, "p": a * a}


def hidden(a, b):
    """Do what `plainly` does, out of sight: the arguments have to be plain arrays."""
    a, b = (np.frombuffer(x.tobytes()) for x in (a, b))
    return {"s": np.float64(a @ b), "p": a * a}


def product_jvp(tangents, y, a, b):
    s, t = tangents
    return {"s": s @ b + a @ t, "p": 2 * a * s}


def product_vjp(g, y, a, b):
    return g["s"] * b + 2 * a * g["p"], g["s"] * a


BOXES = {
    "jvp": rule(jvp=product_jvp)(hidden),
    "vjp": rule(vjp=product_vjp)(hidden),
    "both": rule(jvp=product_jvp, vjp=product_vjp)(hidden),
}
A, B = np.array([1.0, 2.0]), np.array([3.0, -4.0])


def using(box):
    return lambda a: np.sin(box(a, B * a[0])["s"]) * np.sum(box(a, B)["p"] ** 2)


def test_partials_of_a_c_function_in_every_order():
    exact = scipy.special.erf
    assert grad(erf)(0.3) == pytest.approx(2 / math.sqrt(math.pi) * math.exp(-0.09), rel=1e-14)
    assert grad(grad(erf))(0.3) == pytest.approx(grad(grad(exact))(0.3), rel=1e-14)
    np.testing.assert_allclose(taylor(erf, [0.3, 1.0], order=4), taylor(exact, [0.3, 1.0], order=4), rtol=1e-13)
    np.testing.assert_allclose(second_order(erf, 0.3), second_order(exact, 0.3), rtol=1e-13)
    assert "agree" in check_grad(erf, 0.3)


@pytest.mark.parametrize("mode", READABLE)
@pytest.mark.parametrize("box", BOXES)
def test_missing_forms_are_derived_in_reverse_modes(box, mode):
    np.testing.assert_allclose(grad(using(BOXES[box]), mode=mode)(A), grad(using(plainly))(A), rtol=1e-13)


@pytest.mark.parametrize("box", BOXES)
def test_forward_modes_and_higher_orders(box):
    f, exact = using(BOXES[box]), using(plainly)
    np.testing.assert_allclose(jvp(f, (A,), (B,)), jvp(exact, (A,), (B,)), rtol=1e-13)
    np.testing.assert_allclose(jacobian(f, mode="forward")(A), grad(exact)(A), rtol=1e-13)
    for mode in (None, "hessian"):
        np.testing.assert_allclose(hessian(f, mode=mode)(A), hessian(exact)(A), rtol=1e-12)
    np.testing.assert_allclose(taylor(f, [A, B], order=3), taylor(exact, [A, B], order=3), rtol=1e-12)
    assert "agree" in check_grad(f, A)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("box", BOXES)
def test_compiled_programs_call_back(box, backend):
    compiled = compile(grad(using(BOXES[box])), backend=backend)
    for a in (A, 2 * A, A[::-1]):
        np.testing.assert_allclose(compiled(a), grad(using(plainly))(a), rtol=1e-13)
    erf_slope = compile(grad(lambda x: erf(x) * x), backend=backend)
    assert erf_slope(0.4) == pytest.approx(grad(lambda x: scipy.special.erf(x) * x)(0.4), rel=1e-14)


@pytest.mark.parametrize("box", BOXES)
def test_batches_call_the_black_box_for_each_member(box):
    f, exact, batch = using(BOXES[box]), using(plainly), np.stack([A, 2 * A, A[::-1]])
    for derivative in (lambda f: f, grad, hessian):
        expected = np.stack([derivative(exact)(a) for a in batch])
        np.testing.assert_allclose(vmap(derivative(f))(batch), expected, rtol=1e-12)
        np.testing.assert_allclose(compile(vmap(derivative(f)))(batch), expected, rtol=1e-12)
    np.testing.assert_allclose(
        grad(lambda a: np.sum(vmap(f)(a)))(batch), np.stack([grad(exact)(a) for a in batch]), rtol=1e-12
    )


def test_a_function_of_numbers_is_called_for_each_element():
    """The C function takes no arrays; a batch, or an array, gives it one number after another."""
    points = np.array([0.3, -0.2, 1.0])
    np.testing.assert_allclose(vmap(grad(erf))(points), 2 / np.sqrt(np.pi) * np.exp(-(points**2)), rtol=1e-14)
    np.testing.assert_allclose(vmap(erf)(points[:1]), scipy.special.erf(points[:1]), rtol=1e-14)
    np.testing.assert_allclose(jvp(erf, (points,), (points,))[0], scipy.special.erf(points), rtol=1e-14)


def test_a_rule_of_a_function_that_is_called_as_one_of_numpys():
    """Passes over graphs know NumPy's functions by their names."""

    def exp(x):
        return 2.0 * x

    by_partial = rule(partials=lambda y, x: 2.0)(exp)
    by_transpose = rule(transposes=lambda g, x: 2.0 * g)(exp)
    by_jvp = rule(jvp=lambda tangents, y, x: 2.0 * tangents[0])(exp)
    for f in (by_partial, by_transpose, by_jvp):
        for backend in ("native", "numpy"):
            assert compile(lambda x, f=f: f(x) * f(x), backend)(3.0) == 36.0
            assert compile(grad(lambda x, f=f: f(x) * x), backend)(3.0) == 12.0


def test_transposes_of_a_linear_function():
    running = rule(transposes=lambda g, x: np.cumsum(g[::-1])[::-1])(lambda x: np.cumsum(np.frombuffer(x.tobytes())))
    for mode in ("forward", "reverse"):
        np.testing.assert_array_equal(jacobian(running, mode=mode)(np.ones(3)), np.tril(np.ones((3, 3))))
    assert "agree" in check_grad(lambda x: np.sum(running(x) ** 2), np.array([1.0, 2.0, 3.0]))


def test_arguments_without_derivatives_are_passed_as_they_are():
    @rule(jvp=lambda tangents, y, x, n, name: n * x ** (n - 1) * tangents[0])
    def power(x, n, name="unused"):
        assert type(x) is float and type(n) is int and name == "a name"
        return math.pow(x, n)

    assert grad(lambda x: power(x, 3, name="a name"))(2.0) == 12.0
    assert power.__name__ == "power"


def test_wrong_rule_is_found_by_check_grad():
    wrong = rule(partials=lambda y, x: -np.sin(x))(lambda x: math.sin(x))
    with pytest.raises(EffgradError, match="differ"):
        check_grad(wrong, 0.5)


def opaque(x):
    return LIBRARY.erf(x)


REFUSED = {
    "a second derivative": (
        lambda x: grad(grad(rule(partials=lambda y, x: opaque(x))(opaque)))(x),
        NoRule, "opaque.*differentiates its partials.*rule of its own",
    ),
    "a transpose": (
        grad(rule(jvp=lambda tangents, y, x: opaque(tangents[0]))(opaque)), NoRule, "opaque.*give vjp=",
    ),
    "a tangent": (
        lambda x: jvp(rule(vjp=lambda g, y, x: (opaque(g),))(opaque), (x,), (1.0,)), NoRule, "opaque.*give jvp=",
    ),
    "a shape": (grad(rule(vjp=lambda g, y, x: (np.ones(3),))(opaque)), NotDifferentiable, r"shape \(3,\).*shape \(\)"),
    "a count": (grad(rule(vjp=lambda g, y, x: (g, g))(opaque)), NotDifferentiable, "one cotangent .* 1 arguments"),
    "a tangent's shape": (
        lambda x: jvp(rule(jvp=lambda tangents, y, x: np.ones(2))(opaque), (x,), (1.0,)), NotDifferentiable, "the jvp",
    ),
    "arguments": (lambda x: grad(lambda x: erf(x, 2))(x), NotDifferentiable, "2 arguments"),
}  # fmt: skip


def square(x):
    return np.frombuffer(x.tobytes()) ** 2


# Rules of a square that are wrong, and what is said of them in forward and in reverse mode: in the words of their form.
WRONG = {
    "jvp of another shape": ({"jvp": lambda t, y, x: np.sum(2 * x * t[0])}, "the jvp of square returns a number, and"),
    "jvp without a result": ({"jvp": lambda t, y, x: None}, "the jvp of square returns None"),
    "jvp in a dictionary": ({"jvp": lambda t, y, x: {"a": t[0]}}, "the jvp of square returns a dict"),
    "jvp of complex numbers": ({"jvp": lambda t, y, x: 2j * x * t[0]}, "returns complex numbers"),
    "jvp of integers": ({"jvp": lambda t, y, x: (2 * x * t[0]).astype(int)}, "returns integers"),
    "vjp of another shape": ({"vjp": lambda g, y, x: (np.sum(g),)}, "the vjp of square returns a cotangent of shape"),
    "partial of another shape": ({"partials": lambda y, x: np.ones(7)}, r"partials of square .* \(7,\).* \(2,\)"),
    "transpose of another shape": ({"transposes": lambda g, x: g[:1]}, r"transposes of square .* \(1,\).* \(2,\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_rule_that_returns_something_else_is_refused(name):
    """A jvp of another shape was refused as a cotangent in reverse mode; a transpose of one was broadcast."""
    forms, said = WRONG[name]
    wrong = rule(**forms)(square)
    for run in (grad, lambda f: compile(grad(f))):
        with pytest.raises(NotDifferentiable, match=said):
            run(lambda x: np.sum(wrong(x)))(A)
    if "transposes" not in forms:
        with pytest.raises(NotDifferentiable, match=said):
            jvp(lambda x: np.sum(wrong(x)), (A,), (B,))


@pytest.mark.parametrize("form", [
    lambda t, y, x: 2 * x * t[0] + 1.0, lambda t, y, x: x * t[0] ** 2,
    lambda t, y, x: 2 * x * t[0] if t[0][0] > 0 else 0 * t[0],
])  # fmt: skip
def test_a_jvp_that_is_not_linear_is_not_transposed(form):
    """Its transpose at zero was taken, and the gradient was silently zero."""
    with pytest.raises(NotDifferentiable, match="the jvp of square is not linear in the tangents"):
        grad(lambda x: np.sum(rule(jvp=form)(square)(x)))(A)


def complex_square(z):
    return np.frombuffer(z.tobytes(), complex) ** 2


@pytest.mark.parametrize("forms", [
    {"jvp": lambda t, y, z: 2 * z * t[0]},
    {"vjp": lambda g, y, z: (np.conj(2 * z) * g,)},
    {"partials": lambda y, z: 2 * z},
])  # fmt: skip
def test_rules_of_complex_numbers(forms):
    """A pullback is the adjoint, and a transposed jvp was taken for the transpose: its gradient was another one."""
    boxed, z = rule(**forms)(complex_square), np.array([1.0 + 2.0j, 0.5 - 1.0j])

    def f(square):
        return lambda x: np.sum(np.real(square(z * x) * (2.0 - 3.0j)))

    expected, second = grad(f(lambda z: z**2))(A), hessian(f(lambda z: z**2))(A)
    for derivative in (grad, lambda f: compile(grad(f)), lambda f: jacobian(f, mode="forward")):
        np.testing.assert_allclose(derivative(f(boxed))(A), expected, rtol=1e-12)
    np.testing.assert_allclose(hessian(f(boxed))(A), second, rtol=1e-12, atol=1e-12)
    w = np.array([1.0 - 1.0j, 2.0])
    np.testing.assert_allclose(vjp(boxed, z)[1](w)[0], vjp(lambda z: z**2, z)[1](w)[0], rtol=1e-12)


def test_rules_in_loops():
    boxed = rule(jvp=lambda t, y, x: 2 * x * t[0])(square)

    def iterated(square):
        def f(x):
            count = 0
            while np.sum(x) > 0.01 and count < 12:
                x, count = 0.9 * square(x) + 0.01 * x, count + 1
            return np.sum(x)

        return f

    x = np.array([0.9, 0.7])
    expected = grad(iterated(lambda x: x**2))(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StagingWarning)
        for run in (grad, lambda f: compile(grad(f)), lambda f: grad(lambda x: checkpoint(f, x))):
            np.testing.assert_allclose(run(iterated(boxed))(x), expected, rtol=1e-12)
        np.testing.assert_allclose(compile(hessian(iterated(boxed)))(x), hessian(iterated(lambda x: x**2))(x))


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_what_is_missing(name):
    f, kind, reason = REFUSED[name]
    with pytest.raises(kind, match=f"(?s){reason}"):
        f(0.5)


@pytest.mark.parametrize("forms", [{}, {"partials": math.cos, "jvp": math.cos}])
def test_one_form_of_rule_is_given(forms):
    with pytest.raises(ValueError, match="one form of rule"):
        rule(**forms)


def test_vjp_may_be_pulled_many_times():
    _, pull = vjp(lambda a: BOXES["vjp"](a, B), A)
    np.testing.assert_array_equal(pull({"s": 1.0, "p": np.zeros(2)})[0], B)
    np.testing.assert_array_equal(pull({"s": 0.0, "p": np.ones(2)})[0], 2 * A)


# Machine code.


def slope_of_erf(y, x):
    return 2 / np.sqrt(np.pi) * np.exp(-x * x)


def counted(calls):
    """The error function by a call of Python that counts, and its address for machine code."""

    def called(x):
        calls.append(x)
        return LIBRARY.erf(x)

    return rule(partials=slope_of_erf, native=LIBRARY.erf)(called)


PROGRAMS = {
    "numbers": (lambda f: lambda x: f(x[0]) * f(x[1] * f(x[2])), np.array([0.3, -0.5, 1.2])),
    "an array": (lambda f: lambda x: np.sum(f(x) ** 2 * x), np.linspace(-2, 2, 50)),
    "a matrix": (lambda f: lambda x: np.sum(f(x @ x.T)), np.arange(12.0).reshape(3, 4) / 10),
    "a loop": (lambda f: lambda x: repeated(f, x), np.array([0.3, 0.4])),
    "an integer": (lambda f: lambda x: f(1) * np.sum(x) + f(x[0] > 0), np.array([0.3, 0.4])),
}


def repeated(f, x):
    total = 0.0
    for i in range(10):
        total = total * x[0] + f(x[1] + 0.1 * i) ** 2
    return total


def along(f):
    return lambda x: jvp(f, (x,), (x,))[1]


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled_programs_call_machine_code(program):
    """They compute what SciPy's function gives, and do not call Python."""
    make, point = PROGRAMS[program]
    calls = []
    f, exact = make(counted(calls)), make(lambda x: scipy.special.erf(1.0 * x))  # of a truth value, in full
    for derive in (lambda f: f, grad, hessian, along):
        compiled = compile(derive(f))
        compiled(point)
        calls.clear()
        for x in (point, point + 0.1):
            np.testing.assert_allclose(compiled(x), derive(exact)(x), rtol=1e-12, atol=1e-12)
        assert program == "an integer" or not calls
    batch = np.stack([point, point / 2])
    np.testing.assert_allclose(compile(vmap(grad(f)))(batch), vmap(grad(exact))(batch), rtol=1e-12)


def test_a_function_of_ctypes_is_called_at_its_address():
    direct = rule(partials=slope_of_erf)(LIBRARY.erf)
    x = np.array([0.3, -0.2])
    for f in (direct, compile(direct), vmap(direct), compile(vmap(direct))):
        np.testing.assert_allclose(f(x), scipy.special.erf(x), rtol=1e-15)
    assert grad(grad(direct))(0.3) == pytest.approx(grad(grad(scipy.special.erf))(0.3), rel=1e-14)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table in C, and its slopes: looked up by a number, with the table as user data, or by an integer too."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("table")
    (folder / "table.c").write_text(
        """
        #include <math.h>
        typedef struct { long n; double step, *values; } Table;
        static long place(double x, const Table *t) {
            long i = (long)floor(x / t->step);
            return i < 0 ? 0 : i > t->n - 2 ? t->n - 2 : i;
        }
        double looked_up(double x, void *data) {
            const Table *t = data; long i = place(x, t);
            return t->values[i] + (x / t->step - i) * (t->values[i + 1] - t->values[i]);
        }
        double slope(double x, void *data) {
            const Table *t = data; long i = place(x, t);
            return (t->values[i + 1] - t->values[i]) / t->step;
        }
        double powered(int n, double x) { double y = 1; while (n-- > 0) y *= x; return y; }
        float halved(float x) { return x / 2; }
        """
    )
    made = [compiler, "-shared", "-fPIC", "-O1", "-o", str(folder / "table.so"), str(folder / "table.c"), "-lm"]
    subprocess.run(made, check=True, timeout=60)
    return ctypes.CDLL(str(folder / "table.so"))


class Table(ctypes.Structure):
    _fields_ = (("n", ctypes.c_long), ("step", ctypes.c_double), ("values", ctypes.POINTER(ctypes.c_double)))


def test_a_table_in_c_with_user_data(table):
    values = np.sin(np.arange(11) / 5.0)
    data = Table(11, 0.2, values.ctypes.data_as(ctypes.POINTER(ctypes.c_double)))
    address = ctypes.cast(ctypes.pointer(data), ctypes.c_void_p)

    def looked_up_by(name, partial):
        function = getattr(table, name)
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_void_p]
        return rule(partials=partial, native=LowLevelCallable(function, address))(lambda x: function(x, address))

    slope = looked_up_by("slope", lambda y, x: 0.0 * x)
    f = looked_up_by("looked_up", lambda y, x: slope(x))
    x = np.linspace(0.03, 1.93, 14)
    np.testing.assert_allclose(compile(f)(x), np.interp(x, np.arange(11) / 5.0, values), rtol=1e-13)
    expected = np.diff(values)[np.floor(x / 0.2).astype(int)] / 0.2
    for derivative in (grad(lambda x: np.sum(f(x))), compile(grad(lambda x: np.sum(f(x))))):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-12)
    assert "agree" in check_grad(lambda x: np.sum(f(x)), x)


def test_arguments_of_other_types(table):
    powered, halved = table.powered, table.halved
    powered.restype, powered.argtypes = ctypes.c_double, [ctypes.c_int, ctypes.c_double]
    halved.restype, halved.argtypes = ctypes.c_float, [ctypes.c_float]
    power = rule(partials=[None, lambda y, n, x: n * power(n - 1, x)])(powered)
    half = rule(partials=lambda y, x: 0.5)(halved)

    def f(x):
        return power(5, x) * half(x)

    for x in (0.75, 1.5):
        assert compile(f)(x) == f(x) == x**6 / 2
        assert compile(grad(f))(x) == pytest.approx(3 * x**5, rel=1e-14)
        assert compile(grad(grad(f)))(x) == pytest.approx(15 * x**4, rel=1e-14)


def test_cython_functions_of_scipy():
    """Its special functions can be had as machine code."""
    digamma = LowLevelCallable.from_cython(scipy.special.cython_special, "__pyx_fuse_1psi")
    by_rule = rule(partials=lambda y, x: scipy.special.polygamma(1, x), native=digamma)(scipy.special.psi)
    x = np.linspace(0.5, 3.0, 5)
    np.testing.assert_allclose(compile(by_rule)(x), scipy.special.psi(x), rtol=1e-15)
    slopes = compile(grad(lambda x: np.sum(by_rule(x))))(x)
    np.testing.assert_allclose(slopes, scipy.special.polygamma(1, x), rtol=1e-13)


def test_machine_code_in_threads():
    f = compile(grad(lambda x: np.sum(counted([])(x) ** 3)))
    x = np.linspace(-1, 1, 200)
    expected, found = f(x), [None] * 4

    def work(i):
        for _ in range(20):
            found[i] = f(x)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    for one in found:
        np.testing.assert_array_equal(one, expected)


def _strlen():
    library = ctypes.CDLL(None)
    library.strlen.restype, library.strlen.argtypes = ctypes.c_size_t, [ctypes.c_char_p]
    return library.strlen


BAD = {
    "types are unknown": lambda: rule(partials=slope_of_erf, native=LIBRARY.erfc)(abs),
    "functions of numbers": lambda: rule(partials=slope_of_erf, native=_strlen())(abs),
    "2 partials, and its machine code takes 1": lambda: rule(partials=[None, None], native=LIBRARY.erf)(abs),
    "native= with partials=": lambda: rule(vjp=lambda g, y, x: (g,), native=LIBRARY.erf),
    "Python's lock": lambda: rule(partials=slope_of_erf, native=ctypes.pythonapi.PyFloat_GetMax)(abs),
    "not a callable": lambda: rule(partials=slope_of_erf, native=3)(abs),
}


@pytest.mark.parametrize("message", BAD)
def test_machine_code_that_cannot_be_called_is_refused(message):
    ctypes.pythonapi.PyFloat_GetMax.restype, ctypes.pythonapi.PyFloat_GetMax.argtypes = ctypes.c_double, []
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_a_transpose_may_return_a_list():
    """It passed the check of its shape, and was NumPy's error about a field of a record."""

    @rule(transposes=[lambda g, x: [2.0 * g[0], 2.0 * g[1]]])
    def doubled(x):
        return 2.0 * x

    np.testing.assert_array_equal(grad(lambda x: np.sum(doubled(x) ** 2))(np.array([1.0, 3.0])), [8.0, 24.0])
