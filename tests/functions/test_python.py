"""Functions of `math` and `cmath` under a derivative: their own values to the bit, and their own errors."""

import cmath
import math

import numpy as np
import pytest

from effgrad import compile, grad, jvp, value_and_grad
from effgrad.functions.python import RULES

# Arguments within the domain, of functions that do not take one number between 0 and 1.
ARGUMENTS = {
    "acosh": (1.7,), "atan2": (0.6, -0.3), "pow": (0.6, 1.3), "copysign": (0.6, -2.0), "fmod": (5.3, 0.7),
    "nextafter": (0.6, 1.0), "hypot": (0.6, 0.8, 0.1), "fsum": ([0.1, 0.2, 0.7],), "dist": ([0.1, 0.2], [0.4, 0.9]),
    "sumprod": ([0.1, 0.2], [0.4, 0.9]), "prod": ([0.1, 0.3, 0.7],), "fma": (0.1, 0.3, 0.7), "ldexp": (0.3, 3),
    "remainder": (5.3, 0.7), "isclose": (0.3, 0.3), "rect": (0.3, 0.7),
}  # fmt: skip
MATH = sorted(name for module, name, _ in RULES if module is math)
CMATH = sorted(name for module, name, _ in RULES if module is cmath)
STEPS_AND_ANGLES = {"isclose", "isnan", "isinf", "isfinite", "phase", "polar", "rect"}
MOVED = [1.0, 0.37, 1.9]


def results(f, *args):
    """What a call gives, or the type and the text of its error."""
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error).partition(" [E")[0]


def under_a_derivative(f, *args):
    """The same call with its first argument traced."""
    return jvp(lambda x: f(x, *args[1:]), (args[0],), (args[0],))[0]


@pytest.mark.parametrize("name", MATH)
@pytest.mark.parametrize("scale", MOVED)
def test_values_are_those_of_math(name, scale):
    function, args = getattr(math, name), ARGUMENTS.get(name, (0.41,))
    moved = [value * scale for value in args[0]] if isinstance(args[0], list) else args[0] * scale
    assert results(under_a_derivative, function, moved, *args[1:]) == results(function, moved, *args[1:])


@pytest.mark.parametrize("name", CMATH)
def test_values_are_those_of_cmath(name):
    function, args = getattr(cmath, name), ARGUMENTS.get(name, (0.41 - 0.2j,))
    assert under_a_derivative(function, *args) == function(*args)


@pytest.mark.parametrize("x", [-2.3, -0.4, 0.6, 1.7])
@pytest.mark.parametrize("name", sorted(set(CMATH) - STEPS_AND_ANGLES))
def test_functions_of_cmath_take_real_numbers_for_complex_ones(name, x):
    """`cmath.sqrt(x)` of a negative number was NaN compiled, and the derivative of its imaginary part 0."""
    function = getattr(cmath, name)
    for part in (np.real, np.imag):
        f = lambda x, part=part: part(function(x))  # noqa: E731
        slope = (f(x + 1e-5) - f(x - 1e-5)) / 2e-5
        assert under_a_derivative(f, x) == f(x)
        assert grad(f)(x) == pytest.approx(slope, rel=1e-7, abs=1e-8)
        assert compile(f)(x) == pytest.approx(f(x), rel=1e-14)
        assert compile(grad(f))(x) == pytest.approx(slope, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(
    "bad", [np.array([0.3, 0.4]), np.ones((1, 2)), 0.3 + 0.1j], ids=["vector", "matrix", "complex"]
)
@pytest.mark.parametrize("name", sorted(set(MATH) - {"fsum", "dist", "sumprod", "prod"}))
def test_what_math_rejects_is_rejected(name, bad):
    function, args = getattr(math, name), (bad, *ARGUMENTS.get(name, (0.41,))[1:])
    expected, got = results(function, *args), results(under_a_derivative, function, *args)
    assert got[0] is expected[0] is TypeError


@pytest.mark.parametrize("function, x", [
    (math.log, 0.0), (math.log, -1.0), (math.sqrt, -1.0), (math.asin, 2.0), (math.acosh, 0.5), (math.exp, 1e3),
    (math.gamma, -1.0), (math.atanh, 1.0), (math.log1p, -1.0), (math.cosh, 1e3), (lambda x: math.pow(0.0, -x), 1.0),
    (lambda x: math.sin(x, x), 1.0), (lambda x: math.sin(), 1.0), (math.fsum, 1.0),
])  # fmt: skip
def test_errors_are_those_of_math(function, x):
    """A program may catch them: it would go on elsewhere with an infinity or a NaN."""
    expected = results(function, x)
    assert isinstance(expected, tuple)
    assert results(grad(function), x)[0] is expected[0]


def test_a_program_that_catches_an_error_goes_its_own_way():
    def safe_log(x):
        try:
            return math.log(x)
        except ValueError:
            return 3.0 * x

    assert value_and_grad(safe_log)(0.0) == (0.0, 3.0)
    assert value_and_grad(safe_log)(-2.0) == (-6.0, 3.0)


@pytest.mark.parametrize("name", MATH)
def test_derivatives_agree_with_differences(name):
    function, args = getattr(math, name), ARGUMENTS.get(name, (0.41,))
    point = np.atleast_1d(np.array(args[0], float))

    def number(x):
        value = function(list(x) if isinstance(args[0], list) else x[0], *args[1:])
        return float(value[0]) if isinstance(value, tuple) else float(value)

    def traced(x):
        value = function(x if isinstance(args[0], list) else x[0], *args[1:])
        return (value[0] if isinstance(value, tuple) else value) * 1.0

    step = 1e-6 * np.eye(point.size)
    expected = [(number(point + h) - number(point - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(grad(traced)(point), expected, atol=1e-7, rtol=1e-7)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", "exp sin expm1 sqrt log erf lgamma fabs log1p degrees".split())
def test_functions_of_math_take_the_real_part_of_numpys_complex_numbers(name):
    """The derivative was that of the function of complex numbers, 0.28 for 0.27."""
    f = getattr(math, name)

    def of_complex(x):
        return f(x[0] * np.complex128(0.3 + 0.2j) + 0.1j * x[1])

    x, step = np.array([1.0, 0.7]), 1e-6
    slope = (f(0.3 * (1 + step)) - f(0.3 * (1 - step))) / (2 * step)
    value, gradient = value_and_grad(of_complex)(x)
    assert value == f(0.3)
    np.testing.assert_allclose(gradient, [slope, 0], rtol=1e-8, atol=1e-15)
    np.testing.assert_array_equal(compile(grad(of_complex))(x), gradient)
    with pytest.raises(TypeError, match="must be real number"):
        grad(lambda x: f(x * 1j))(0.3)


@pytest.mark.parametrize("x", [5e-324, 1e-310, -2e-320, 1e-300, 1.5, 8e307])
def test_numbers_of_any_size_are_split_into_mantissa_and_exponent(x):
    """The power of 2 for a subnormal number overflows: `math.frexp` was refused, and `np.frexp` gave NaN."""

    def python(x):
        return math.ldexp(*math.frexp(x))

    def numpy(x):
        return np.ldexp(*np.frexp(x))

    mantissa = math.frexp(x)[0]
    for f in (python, numpy, compile(numpy)):
        assert value_and_grad(f)(x) == (x, 1.0)
    scaled = grad(lambda x: math.frexp(x)[0] * 2.0**-1000)(x)
    assert scaled * x == pytest.approx(mantissa * 2.0**-1000, rel=1e-12)


NUMBERS = (np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128, np.clongdouble)
GIVEN = {
    "a number of NumPy": lambda kind, x: kind(x[0]), "a Python number": lambda kind, x: kind(float(x[0])),
    "an array": lambda kind, x: kind(x), "a list": lambda kind, x: kind([x[0], 2.0]),
    "a single": lambda kind, x: kind(x[0].astype(np.float32)), "an array without axes": lambda kind, x: kind(x[0, ...]),
}  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", GIVEN)
def test_classes_of_numpys_numbers_keep_derivatives(kind, name):
    """`np.float32(x)` was refused, `np.longdouble(x)` a double, and `np.complex128` of a list a TypeError."""
    x, found = np.array([0.75, 1.5]), []  # numbers that each class has

    def f(x):
        found.append(GIVEN[name](kind, x))
        return float(np.sum(found[-1].real))

    expected = GIVEN[name](kind, x)
    np.testing.assert_array_equal(grad(f)(x), [1.0, float(name == "an array")])
    assert (found[0].dtype, found[0].shape) == (np.asarray(expected).dtype, np.shape(expected))
    assert isinstance(found[0], np.ndarray) is isinstance(expected, np.ndarray)
    assert compile(f)(2 * x) == f(2 * x)


def test_complex_of_an_array_of_one_number_is_a_number():
    assert value_and_grad(lambda x: abs(complex(3 * x, 4 * x)) ** 2)(np.float32(1)) == (25, 50)
    assert grad(lambda x: type(complex(x[0])) is complex and complex(x[0]).real ** 2)(np.array([1.5])) == [3.0]
