"""Values under a derivative are those of plain NumPy, and at the ends of the range derivatives are right."""

import itertools

import mpmath
import numpy as np
import numpy_cases
import pytest
import scipy.special as sp
from random_programs import random_program

from effgrad import (
    EffgradError,
    check_grad,
    checkpoint,
    compare,
    compile,
    debug_values,
    grad,
    hessian,
    jacobian,
    jvp,
    vjp,
)

X = np.random.default_rng(3).uniform(0.2, 1.4, (3, 4))
A, V = np.arange(9.0).reshape(3, 3), np.array([1.0, -2.0, 3.5])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", numpy_cases.CASES)
def test_each_function_gives_numpys_value(row):
    debug_values(numpy_cases.CASES[row])(X.copy())


RUNS = {
    "forward": lambda f, x: jvp(f, (x,), (np.ones_like(x),))[0],
    "reverse": lambda f, x: vjp(f, x)[0],
    "checkpoint": lambda f, x: vjp(lambda x: checkpoint(f, x), x)[0],
    "compiled": lambda f, x: compile(f)(x),
}
# Three operands are multiplied in the order that is quickest.
ROUNDED_OTHERWISE = {"einsum three"}
# What shares its elements, or begins inside of other memory, is a copy when it comes out.
LAID_OTHERWISE = {
    "dsplit", "histogramdd", "full row", "full_like", "windows of an axis", "broadcast_arrays", "rot90", "diagonal",
    "linalg diagonal", "new axis", "diag of matrix", "broadcast_to", "partition", "einsum diagonal",
}  # fmt: skip


def strides(array):
    return [step for step, n in zip(array.strides, array.shape, strict=True) if n > 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["forward", "reverse", "checkpoint", pytest.param("compiled", marks=pytest.mark.sweep)])
def test_values_are_those_of_a_plain_run(way):
    """Value to the bit, shape, dtype and strides; compiled, the value but for rounding."""
    for row, f in numpy_cases.CASES.items():
        plain, found = np.asarray(f(X.copy())), np.asarray(RUNS[way](f, X.copy()))
        assert found.dtype == plain.dtype, row
        if way == "compiled" or row in ROUNDED_OTHERWISE:
            np.testing.assert_allclose(found, plain, rtol=1e-13, atol=1e-14, err_msg=row)
        else:
            np.testing.assert_array_equal(found, plain, strict=True, err_msg=row)
        if way != "compiled" and row not in LAID_OTHERWISE:
            assert strides(found) == strides(plain), row


@pytest.mark.parametrize("way", ["forward", "reverse", "checkpoint"])
def test_errors_are_those_of_a_plain_run(way):
    """A program that NumPy rejects raises the same error."""
    programs = [
        lambda x: np.reshape(x, (5, 5)), lambda x: x[7], lambda x: np.sum(x, axis=4), lambda x: x @ x,
        lambda x: np.concatenate([x, x[0]]), lambda x: np.linalg.inv(x), lambda x: np.mean(x[0, 0], axis=1),
        lambda x: np.quantile(x, 1.5), lambda x: {}["x"], lambda x: 1 // 0,
    ]  # fmt: skip
    for f in programs:
        with pytest.raises(Exception) as plain:  # noqa: PT011 (whichever it is)
            f(X.copy())
        with pytest.raises(plain.type):
            RUNS[way](f, X.copy())


@pytest.mark.filterwarnings("ignore")
def test_random_programs_have_numpys_value():
    """To the bit and in dtype, in several layouts; compiled to NumPy's calls or to machine code, but for rounding."""
    for seed in range(100):
        x = np.random.default_rng(seed).normal(size=(3, 4))
        x = [x, x.astype(np.float32), np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=1)[:, ::2]][seed % 5]
        f = random_program(seed)
        plain = f(x)
        for run in ("forward", "reverse", "checkpoint"):
            found = RUNS[run](f, x)
            assert (np.result_type(found), found) == (np.result_type(plain), plain), (seed, run)
        if seed % 10 in (0, 1):
            for found in (compile(f, "numpy")(x), compile(f)(x)):
                assert np.result_type(found) == np.result_type(plain)
                np.testing.assert_allclose(found, plain, rtol=32 * np.finfo(x.dtype).eps, err_msg=str(seed))


def test_a_value_that_differs_is_named():
    def wrong(x):
        return np.sum(x) + (1.0 if hasattr(x, "primal") else 0.0)

    for check in (debug_values(wrong), lambda x: check_grad(wrong, x), lambda x: compare(wrong, x)):
        with pytest.raises(EffgradError, match="the function gives"):
            check(np.ones(3))


SINGLE = {
    "clip with its ends exchanged": (lambda z: np.clip(z, 3.0, 1.0), X),
    "rollaxis": (lambda z: np.rollaxis(z, 0, -1), X),
    "rollaxis to the end": (lambda z: np.rollaxis(z, 0, 2), X),
    "diff of order 0": (lambda z: np.diff(z, n=0, prepend=5.0), X),
    "variance of too few": (lambda z: np.nanvar(z, ddof=5, axis=1), X),
    "xlog1py at 0": (lambda z: sp.xlog1py(0.0, z), np.array([-1.0, 2.0])),
    "tril of a vector": (np.tril, V),
    "triu of a vector": (lambda z: np.triu(z, 1), V),
    "einsum of a column": (lambda z: np.einsum("ij,ij->i", A, z[:, None]), V),
    "einsum of a row": (lambda z: np.einsum("ij,ij->ij", A, z[None]), V),
    "cumulative_sum of a number": (np.cumulative_sum, 2.5),
    "full": (lambda z: np.full(3, z), 2.5),
    "broadcast_to a length": (lambda z: np.broadcast_to(z, 3), 2.5),
    "angle": (np.angle, V),
    "tuples in an index": (lambda z: z[(0, 1), (2, 3)], X),
    "a tuple in an index": (lambda z: z[(0, 1), 1:], X),
    "sum of a number": (lambda z: np.sum(z, axis=0, keepdims=True), np.array(2.5)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", SINGLE)
def test_values_and_derivatives_of_single_calls(row):
    f, x = SINGLE[row]
    ones = np.ones_like(x)
    value = np.asarray(f(x))
    for found in (jvp(f, (x,), (ones,))[0], vjp(f, x)[0], compile(lambda z: jvp(f, (z,), (ones,))[0])(x)):
        if row != "variance of too few":
            assert np.shape(found) == value.shape
            np.testing.assert_array_equal(found, value)
    if not np.isfinite(value).all():
        return

    def g(z):
        return np.sum(np.sin(f(z)))

    steps = 1e-6 * np.eye(np.size(x)).reshape(-1, *np.shape(x))
    wanted = np.reshape([(g(x + h) - g(x - h)) / 2e-6 for h in steps], np.shape(x))
    wanted = np.where(np.isfinite(wanted), wanted, 0.0)
    for found in (grad(g)(x), jacobian(g, mode="forward")(x), compile(grad(g))(x)):
        np.testing.assert_allclose(found, wanted, atol=1e-8)


# Programs whose steps Python and NumPy take differently for a number: Python raises errors, or gives complex numbers.
NUMBERS = {
    "divide": (lambda x: np.divide(1.0, x), 0.0),
    "true_divide by 0": (lambda x: np.true_divide(x, 0), 1.0),
    "power that overflows": (lambda x: np.power(x, -2), 1e-160),
    "power of 0": (lambda x: np.power(x, -2), 0.0),
    "root of a negative number": (lambda x: np.power(x, 0.5), -1.0),
    "power of a negative number": (lambda x: np.power(-1.0, x), 0.5),
    "float_power": (lambda x: np.float_power(x, -2), 1e-160),
    "remainder": (lambda x: np.remainder(x, 0.0), 1.0),
    "divmod": (lambda x: np.divmod(x, 0.0)[1], 1.0),
    "ldexp": (lambda x: np.ldexp(x, 5000), 1.0),
    "a quotient by a product": (lambda x: 1 / np.multiply(x, 0.0), 1.0),
    "a quotient by a negative number": (lambda x: 1 / np.negative(x), 0.0),
    "a quotient by a number of NumPy's": (lambda x: 1 / np.float64(x), 0.0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", NUMBERS)
def test_a_ufunc_makes_a_number_of_numpys_of_one_of_pythons(row):
    f, x = NUMBERS[row]
    for found in (jvp(f, (x,), (1.0,))[0], vjp(f, x)[0], compile(lambda x: vjp(f, x)[0])(x)):
        np.testing.assert_array_equal(found, f(x))
        assert type(found) is np.float64
    with pytest.raises((ZeroDivisionError, OverflowError)):
        grad(lambda x: 1 / x**200)(1e-160)


Z = np.random.default_rng(8).uniform(-1, 1, (4, 3, 2, 2)) @ [1, 1j]
SUMMED = {
    "Frobenius norm": lambda z: np.linalg.norm(z, "fro"),
    "norm": np.linalg.norm,
    "tensordot": lambda z: np.tensordot(z, z, axes=0),
    "dot": lambda z: np.dot(z.T, z),
    "sign": np.sign,
}


POWERS = {
    "an operator": lambda x, n: x**n, "power": np.power, "float_power": np.float_power,
    "an operator, reflected": lambda x, n: n**x, "power, reflected": lambda x, n: np.power(n, x),
}  # fmt: skip


@pytest.mark.parametrize("row", POWERS)
@pytest.mark.parametrize("exponent", [2, 3, 0.5, 2.0, 2.3, np.float64(2.3), np.full(5, 2.3)], ids=repr)
def test_powers_are_rounded_as_in_numpy_by_a_function_and_by_an_operator(row, exponent):
    """`np.power` of numbers and of complex arrays is not `**` in the last bit, nor is `np.float_power`."""
    rng = np.random.default_rng(9)
    for _ in range(50):
        x = rng.uniform(0.1, 9, 5)
        for base in (x, x + 1j, x.astype(np.float32), float(x[0]), x[0], np.float32(x[0]), np.array(x[0])):
            value = POWERS[row](base, exponent)
            found, slope = jvp(lambda x: POWERS[row](x, exponent), (base,), (np.ones_like(base),))
            np.testing.assert_array_equal(found, value)
            assert np.result_type(found) == np.result_type(value)
    steps = POWERS[row](base + 1e-6, exponent) - POWERS[row](base - 1e-6, exponent)
    np.testing.assert_allclose(slope, steps / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("order", [0, 1, 2, 3, -2, 0.5, np.inf, -np.inf])
def test_norms_are_rounded_as_in_numpy_over_one_axis_and_several(order, keepdims):
    """NumPy joins the axes of `vector_norm` and sums along one; the root of a number and of an array also differ."""
    rng = np.random.default_rng(10)
    for _ in range(20):
        for x in (rng.normal(size=5), *(rng.normal(size=shape) for shape in ((3, 4), (2, 3, 4), (9, 17)))):
            some = [None, *range(-x.ndim, x.ndim), *itertools.permutations(range(x.ndim), 2), tuple(range(x.ndim))]
            for axis, laid in itertools.product(some, (x, x.T, np.asfortranarray(x)[::-1])):
                options = {"axis": axis, "ord": order, "keepdims": keepdims}
                for norm in (np.linalg.vector_norm, np.linalg.norm):
                    try:
                        value = norm(laid, **options)
                    except ValueError:  # a norm of matrices of an order that they do not have
                        continue
                    found = jvp(lambda x, norm=norm, options=options: norm(x, **options), (laid,), (laid,))[0]
                    np.testing.assert_array_equal(found, value)
                    assert np.shape(found) == np.shape(value)


@pytest.mark.parametrize("row", SUMMED)
def test_sums_are_rounded_as_in_numpy_however_the_elements_lie(row):
    f, z = SUMMED[row], Z[..., 0]
    for x in (z.real, z):
        for laid in (x, np.asfortranarray(x), x.T, x[::-1], np.repeat(x, 2, axis=-1)[..., ::2], x[::2].T):
            np.testing.assert_array_equal(jvp(f, (laid,), (np.ones_like(laid),))[0], f(laid))
            np.testing.assert_array_equal(vjp(f, laid)[0], f(laid))


@pytest.mark.parametrize("dtype, double", [(np.float32, np.float64), (np.complex64, np.complex128)])
def test_float_power_computes_in_double_precision(dtype, double):
    x = X.astype(dtype)

    def f(x):
        return np.float_power(x, np.float32(1.5))

    value, tangent = jvp(f, (x,), (np.ones_like(x),))
    assert value.dtype == tangent.dtype == double
    np.testing.assert_array_equal(value, f(x))
    assert grad(lambda x: np.sum(np.abs(f(x))))(x).dtype == dtype


def test_what_numpy_rejects():
    with pytest.raises(ValueError, match="order must be non-negative"):
        grad(lambda x: np.sum(np.diff(x, n=-1)))(V)
    with pytest.raises(TypeError):
        grad(lambda x: np.sum(np.insert(x, 1, 2 + 3j)))(V)


def test_nan_stays_with_its_argument():
    for f in (np.maximum, np.minimum):
        np.testing.assert_array_equal(grad(lambda a, b, f=f: f(a, b), argnums=(0, 1))(np.nan, 1.0), [np.nan, 0.0])


SIZES = [1e-300, 1e-200, 1e-30, 0.7, 1e30, 1e150, 1e200, 1e300]


@pytest.mark.parametrize("size", SIZES)
def test_arctan2_at_all_sizes(size):
    for other in (1.0, 3.0):
        a, b = size, size * other
        square = mpmath.mpf(a) ** 2 + mpmath.mpf(b) ** 2
        wanted = [float(b / square), float(-a / square)]
        found = grad(lambda x: np.arctan2(x[0], x[1]))(np.array([a, b]))
        np.testing.assert_allclose(found, wanted, rtol=1e-15)


@pytest.mark.parametrize("size", SIZES)
def test_inverse_hyperbolic_functions_at_all_sizes(size):
    x = mpmath.mpf(size)
    assert grad(np.arcsinh)(size) == pytest.approx(float(1 / mpmath.sqrt(1 + x * x)), rel=1e-15, abs=0)
    if size > 1:
        assert grad(np.arccosh)(size) == pytest.approx(float(1 / mpmath.sqrt(x * x - 1)), rel=1e-15, abs=0)


EXACT = {
    "hypot": (lambda x: np.hypot(x[0], x[1]), lambda a, b, h: [a / h, b / h]),
    "abs": (lambda x: np.abs(x[0] + 1j * x[1]), lambda a, b, h: [a / h, b / h]),
    "angle": (lambda x: np.angle(x[0] + 1j * x[1]), lambda a, b, h: [-b / h**2, a / h**2]),
    "arctan2": (lambda x: np.arctan2(x[0], x[1]), lambda a, b, h: [b / h**2, -a / h**2]),
    "product": (np.prod, lambda a, b, h: [b, a]),
    "quotient": (lambda x: x[0] / x[1], lambda a, b, h: [1 / b, -a / b**2]),
    "largest size": (lambda x: np.linalg.norm(x, np.inf), lambda a, b, h: [abs(a) > abs(b), -int(abs(b) > abs(a))]),
    "logaddexp": (lambda x: np.logaddexp(x[0], x[1]), lambda a, b, h: [weight(a - b), weight(b - a)]),
    "logsumexp": (sp.logsumexp, lambda a, b, h: [weight(a - b), weight(b - a)]),
    "arcsinh": (lambda x: np.sum(np.arcsinh(x)), lambda a, b, h: [1 / mpmath.hypot(1, a), 1 / mpmath.hypot(1, b)]),
}


def weight(difference):
    return 1 / (1 + mpmath.exp(-difference)) if abs(difference) < 1e5 else mpmath.mpf(difference > 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", EXACT)
def test_derivatives_at_the_ends_of_the_range(row):
    """Against the formula at 50 digits, wherever value and derivative are doubles; also for subnormal numbers."""
    f, formula = EXACT[row]
    sizes = [1e-310, 1e-200, 1.0, 1e200, 1e300]
    for a in sizes:
        for b in (3 * size for size in sizes):
            x = np.array([a, -b])
            with mpmath.workdps(50), np.errstate(all="ignore"):
                exact = formula(mpmath.mpf(a), -mpmath.mpf(b), mpmath.hypot(a, b))
                wanted = np.array([float(part) for part in exact])
                if not np.isfinite([f(x), *wanted]).all():
                    continue
                for found in (grad(f)(x), jacobian(f, mode="forward")(x)):
                    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-320, err_msg=str(x))


def test_products_that_underflow_or_overflow_on_the_way():
    np.testing.assert_allclose(grad(np.prod)(np.array([1e-200, 1e-200, 1e200])), [1.0, 1.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(grad(np.prod)(np.array([1e-160, 1e-160])), [1e-160, 1e-160], rtol=1e-15)


def test_a_norm_that_overflows_has_no_derivative():
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(grad(np.linalg.norm)(np.array([3e200, 4e200]))).all()
    np.testing.assert_allclose(grad(np.linalg.norm)(np.array([3e150, 4e150])), [0.6, 0.8], rtol=1e-15)


def test_logsumexp_of_a_large_value_without_weight():
    f = lambda x: sp.logsumexp(x, b=np.array([0.0, 1.0]))  # noqa: E731
    x = np.array([800.0, 0.0])
    assert vjp(f, x)[0] == sp.logsumexp(x, b=[0.0, 1.0]) == 0.0
    np.testing.assert_array_equal(grad(f)(x), [0.0, 1.0])
    np.testing.assert_allclose(hessian(f)(x), np.zeros((2, 2)), atol=1e-15)


TAKEN_OUT = {
    "item": lambda x: x[0].item(), "item at a place": lambda x: x.item(-1), "item at places": lambda x: x.item((1,)),
    "list": lambda x: x.tolist()[1], "float": lambda x: float(x[2]),
}  # fmt: skip
MEETINGS = {
    "alone": lambda v: v, "a number": lambda v: v * 0.1, "singles": lambda v: v * np.ones(2, np.float32),
    "doubles": lambda v: v * np.ones(2), "a single": lambda v: v + np.float32(0.3), "a function": np.sin,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("meeting", MEETINGS)
@pytest.mark.parametrize("name", TAKEN_OUT)
def test_numbers_of_arrays_are_pythons(name, meeting, dtype):
    """`x.item() * 0.1` of single precision was in single precision, where Python's number is in double precision.

    Of double precision it made doubles of an array in single precision, which Python's numbers do not.
    """
    x = np.array([0.1, 0.7, -0.3], dtype)

    def f(x):
        return MEETINGS[meeting](TAKEN_OUT[name](x))

    value, _ = jvp(f, (x,), (x,))
    assert type(value) is type(f(x)) and np.result_type(value) == np.result_type(f(x))
    np.testing.assert_array_equal(value, f(x))
    gradient = grad(lambda x: np.sum(f(x)))(x)
    assert gradient.dtype == dtype
    slope = sum((np.sum(f(x + step)) - np.sum(f(x - step))) / 0.2 for step in 0.1 * np.eye(3))
    np.testing.assert_allclose(np.sum(gradient), slope, rtol=0.02)


SINGLES = {
    "union": lambda x: np.union1d(x, 0), "a row with numbers": lambda x: np.concatenate((x, 0, 2.5), axis=None),
    "a row with a double": lambda x: np.concatenate((x, np.float64(2.5)), axis=None),
    "count": lambda x: np.linalg.norm(x[None], 0, 1), "inner product": lambda x: np.inner(x, 1.5),
    "inner product on the left": lambda x: np.inner(2, x),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLES)
def test_arrays_in_single_precision_meet_numbers_as_in_numpy(name):
    x = np.array([0.4, 0.9, 1.1], np.float32)
    found = jvp(SINGLES[name], (x,), (x,))[0]
    assert found.dtype == SINGLES[name](x).dtype
    np.testing.assert_array_equal(found, SINGLES[name](x))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [0, 1, -1])
def test_partition_leaves_the_order_beside_nan_to_numpy(k, axis):
    """`argpartition` moves NaN otherwise than `partition`, whose result has the values."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        x = np.where(rng.random((4, 5)) < 0.3, np.nan, rng.normal(size=(4, 5)).round(1))
        value, tangent = jvp(lambda x: np.partition(x, k, axis), (x,), (x,))
        np.testing.assert_array_equal(value, np.partition(x, k, axis))
        np.testing.assert_array_equal(tangent, value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, dtype: np.subtract(x, 1.0, dtype=dtype), lambda x, dtype: x.astype(dtype),
        lambda x, dtype: np.sum(x, dtype=dtype), lambda x, dtype: np.array([x[0], 2.0], dtype=dtype),
        lambda x, dtype: np.asarray(list(x), dtype), lambda x, dtype: np.full(2, x[0], dtype),
    ],
)  # fmt: skip
def test_the_class_of_a_dtype_stands_for_it(f, dtype):
    """NumPy's `dtype=type(x.dtype)` was taken for the dtype of objects."""
    x, kind = np.array([0.5, 2.0]), type(np.dtype(dtype))
    dtypes = []

    def program(x):
        y = f(x, kind)
        dtypes.append(y.dtype)
        return np.sum(np.real(y) ** 2)

    slope = grad(program)(x)
    assert dtypes == [f(x, kind).dtype] == [dtype]
    np.testing.assert_allclose(slope, grad(lambda x: np.sum(np.real(f(x, dtype)) ** 2))(x), rtol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (-1, 0), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("function", [np.sum, np.prod])
def test_reductions_with_a_first_number_or_a_mask_are_numpys_to_the_bit(function, axis):
    """NumPy begins with `initial`, and it was combined with the sum in the end."""
    x = np.random.default_rng(3).uniform(0.1, 0.9, (2, 3, 4))
    for options in ({"initial": 0.3}, {"where": x > 0.4}, {"initial": 0.3, "where": x > 0.4, "keepdims": True}):
        value, tangent = jvp(lambda x, o=options: function(x, axis=axis, **o), (x,), (x,))
        assert np.array_equal(value, function(x, axis=axis, **options)), options
        step = np.imag(function(x + 1e-30j * x, axis=axis, **options)) / 1e-30
        np.testing.assert_allclose(tangent, step, rtol=1e-12)
