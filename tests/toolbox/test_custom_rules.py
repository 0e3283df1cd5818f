"""Rules of the user's own, on functions of C and of pytrees, beside the same functions written in NumPy."""

import ctypes
import ctypes.util
import math

import numpy as np
import pytest
import scipy.special

from effgrad import (
    EffgradError,
    NoRule,
    NotDifferentiable,
    check_grad,
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
from effgrad.modes import REVERSE

pytestmark = pytest.mark.eager
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


@pytest.mark.parametrize("mode", REVERSE)
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


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_what_is_missing(name):
    f, kind, reason = REFUSED[name]
    with pytest.raises(kind, match=reason):
        f(0.5)


@pytest.mark.parametrize("forms", [{}, {"partials": math.cos, "jvp": math.cos}])
def test_one_form_of_rule_is_given(forms):
    with pytest.raises(ValueError, match="one form of rule"):
        rule(**forms)


def test_vjp_may_be_pulled_many_times():
    _, pull = vjp(lambda a: BOXES["vjp"](a, B), A)
    np.testing.assert_array_equal(pull({"s": 1.0, "p": np.zeros(2)})[0], B)
    np.testing.assert_array_equal(pull({"s": 0.0, "p": np.ones(2)})[0], 2 * A)
