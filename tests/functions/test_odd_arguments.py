"""Options and shapes that rules once overlooked: each gave a wrong derivative, or an error that NumPy does not."""

import functools
import inspect

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
from scipy import sparse, stats
from scipy.spatial import distance

from effgrad import NoRule, check_grad, compile, grad, jvp, value_and_grad, vjp
from effgrad.arrays.protocols import ask_numpy

BACKEND = "numpy"  # of the compiled runs

X = np.array([[0.3, np.nan, 0.7], [0.2, 0.9, 0.4]])
KNOWN = np.array([[0.3, 0.5, 0.7], [0.2, 0.9, 0.4]])
SOME = np.array([[True, True, False], [False, True, True]])


@pytest.mark.parametrize("function", [np.nanmean, np.nanvar, np.nanstd, np.nansum, np.nanprod])
def test_functions_without_nans_take_where(run, function):
    """`where` was taken for granted: all elements counted."""
    value, derivative = run(value_and_grad)(lambda x: np.sum(function(x, axis=1, where=SOME) ** 2))(X)
    assert value == np.sum(function(X, axis=1, where=SOME) ** 2)
    assert (derivative[~SOME] == 0).all() and derivative[0, 1] == 0
    check_grad(lambda x: np.sum(function(x, axis=1, where=SOME) ** 2), KNOWN)


@pytest.mark.parametrize("transform, factor", [(np.fft.rfftn, 1), (np.fft.irfftn, 1 + 2j), (np.fft.fftn, 1)])
def test_transforms_over_an_axis_that_comes_twice(transform, factor):
    """A transform of half the length was followed by one of that length."""
    check_grad(lambda x: np.sum(np.abs(transform(x * factor, axes=(0, 0))) ** 2), KNOWN)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.mean, np.var, np.std, np.cumprod, np.nansum, np.nanmean])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_at_all(run, function, shape, axis):
    value, derivative = run(value_and_grad)(lambda x: np.sum(function(x, axis=axis)))(np.ones(shape))
    np.testing.assert_equal(value, np.sum(function(np.ones(shape), axis=axis)))
    assert derivative.shape == shape


@pytest.mark.parametrize("function", [np.max, np.min, np.nanmax])
def test_an_extremum_of_nothing_is_what_it_begins_with(run, function):
    value, derivative = run(value_and_grad)(lambda s: np.sum(function(np.zeros((0, 3)) * s, axis=0, initial=s)))(0.5)
    assert (value, derivative) == (1.5, 3.0)
    assert run(value_and_grad)(lambda s: function([], initial=s) * function([0.2, 0.3], initial=s))(0.1) == (
        0.1 * function([0.2, 0.3], initial=0.1), 0.1 + 0.1 if function is np.min else 0.3)


@pytest.mark.parametrize("ddof, answer", [(2, np.inf), (3, np.inf)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_variance_with_too_few_degrees_of_freedom_is_that_of_numpy(run, ddof, answer):
    """With more degrees of freedom than elements it was negative."""
    value, _ = run(value_and_grad)(lambda x: np.var(x, ddof=ddof))(np.array([1.0, 2.0]))
    assert value == answer == np.var([1.0, 2.0], ddof=ddof)


def test_sums_without_nans_take_a_dtype(run):
    assert run(value_and_grad)(lambda x: np.nansum(x, dtype=np.float32))(KNOWN)[0].dtype == np.float32
    assert run(grad)(lambda x: np.sum(np.nancumprod(x, dtype=np.float64)))(KNOWN.astype(np.float32)).dtype == np.float32


def test_an_array_function_of_a_list_and_a_traced_array():
    for f in (lambda x: np.dot(x, [1.0, 2.0, 3.0]), lambda x: np.inner([1.0, 2.0, 3.0], x),
              lambda x: np.tensordot(x, [1.0, 2.0, 3.0], axes=1), lambda x: np.einsum("ij,j", x, [1.0, 2.0, 3.0]),
              lambda x: np.clip(x, [0.25, 0.25, 0.25], 0.8)):  # fmt: skip
        check_grad(lambda x, f=f: np.sum(f(x) ** 2), KNOWN)


def test_the_next_number_moves_with_its_argument(run):
    """It was taken as a constant, like a rounded number."""
    derivative = run(grad)(lambda x: np.sum(np.nextafter(x, 1.0) ** 2))(KNOWN)
    np.testing.assert_array_equal(derivative, 2 * np.nextafter(KNOWN, 1.0))


def test_heaviside_at_0_is_its_second_argument(run):
    assert run(grad)(lambda h: np.sum(np.heaviside([-1.0, 0.0, 1.0, 0.0], h) ** 2))(0.3) == 1.2


@pytest.mark.parametrize(
    "method", ["linear", "hazen", "weibull", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf", "lower"]
)
def test_a_quantile_moves_with_the_probability_by_every_method(method):
    """Only by the default one it did: the derivative of the others was 0."""
    data = np.array([0.3, 0.9, 0.1, 0.6, 0.4])
    check_grad(lambda q: np.sum(np.quantile(data, q, method=method) ** 2), np.array([0.03, 0.33, 0.71, 0.98]))


@pytest.mark.parametrize("options", [{}, {"bins": 3}, {"bins": 2, "range": (0.0, 1.0)}, {"bins": [0.0, 0.5, 1.0]}])
def test_the_edges_of_a_histogram_move_with_the_data(options):
    """They were constants: the density and the bins' middles lost their derivatives."""
    data = KNOWN.ravel() + 0.01
    check_grad(lambda x: np.sum(np.histogram(x, **options)[1] ** 2), data)
    check_grad(lambda x: np.sum(np.histogram(x, density=True, weights=np.arange(6.0), **options)[0] ** 2), data)
    check_grad(lambda x: np.sum(np.histogram_bin_edges(x, **options) ** 2), data)


def test_the_edges_of_a_histogram_of_planes_are_refused():
    with pytest.raises(NoRule, match="give it the range"):
        grad(lambda x: np.sum(np.histogram2d(x[0], x[1], 2)[1]))(KNOWN)
    assert not grad(lambda x: np.sum(np.histogram2d(x[0], x[1], 2, range=[(0, 1), (0, 1)])[0]))(KNOWN).any()


def test_several_arrays_of_at_least_some_axes():
    """The call was made again and again with the first of them."""
    for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        parts = lambda x, function=function: function(KNOWN, x, x[0, 0])  # noqa: E731
        assert [np.shape(p) for p in parts(KNOWN)] == [np.shape(p) for p in function(KNOWN, KNOWN, 0.3)]
        check_grad(lambda x, parts=parts: sum(np.sum(p * p) for p in parts(x)), KNOWN)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.solve(a=x, b=np.ones(2)), lambda x: np.linalg.inv(a=x), lambda x: np.linalg.det(a=x),
        lambda x: np.sinc(x=x), lambda x: np.nanmedian(x, 0), lambda x: np.nanquantile(x, 0.3, 0),
        lambda x: np.cov(x, rowvar=False), lambda x: np.cov(x[:1], rowvar=False, ddof=0),
        lambda x: np.diff(x, n=0, prepend=5.0), lambda x: np.insert(x, 0, 1.0, axis=1),
        lambda x: np.tril(x[0]), lambda x: np.triu(x[0], 1), lambda x: np.cumsum(x[0, 0], axis=0),
        lambda x: np.cumprod(x[0, 0], axis=0), lambda x: np.vdot(x, x.T),
    ],
)  # fmt: skip
def test_calls_by_name_and_rare_forms_have_the_value_and_derivatives_of_numpy(run, f):
    x = np.array([[1.5, 0.3], [0.4, 2.5]])
    value, _ = run(value_and_grad)(lambda x: np.sum(f(x) ** 2))(x)
    assert value == np.sum(f(x) ** 2)
    check_grad(lambda x: np.sum(f(x) ** 2), x)


def test_axes_that_do_not_fit_are_rejected_by_tensordot(run):
    with pytest.raises(ValueError, match="shape-mismatch"):
        run(grad)(lambda x: np.sum(np.tensordot(x, np.ones(3), axes=1)))(np.ones(2))


REJECTED = {
    "order of a ufunc": lambda x: np.add(x, x, order=1),
    "casting of a ufunc": lambda x: np.add(x, x, casting="any"),
    "dtype of a ufunc": lambda x: np.sin(x, dtype=int),
    "text from a sum": lambda x: np.add(x, x, dtype="U5"),
    "unsafe cast": lambda x: np.add(x, x, dtype="f4", casting="no"),
    "order of a copy": lambda x: np.copy(x, order="Z"),
    "cast that loses digits": lambda x: x.astype(np.float32, casting="safe"),
    "an array to begin with": lambda x: np.prod(x, -1, initial=x[0]),
    "bounds given twice": lambda x: np.clip(x, None, None, max=x),
    "an axis of a number": lambda x: np.cumsum(x[0, 0], 2),
    "an array like a number": lambda x: np.array(x, like=1),
    "full like a number": lambda x: np.full(3, x[0, 0], like=1),
    "an unknown device": lambda x: np.ones_like(x, device=1),
    "a device of an array": lambda x: np.asarray(x, device="gpu"),
    "a dtype without a copy": lambda x: np.asarray(x, np.float32, copy=False),
    "a list without a copy": lambda x: np.asarray([x[0, 0], x[0, 1]], copy=False),
    "a name of no parameter": lambda x: np.unique_all(x=x).values,
    "a number without a copy": lambda x: np.nan_to_num(x[0, 0], copy=False),
    "zeros by name": lambda x: np.poly(seq_of_zeros=x[0, 0]),
    "a double factorial": lambda x: scipy.special.factorial2(x[0, 0]),
    "a factorial in threes": lambda x: scipy.special.factorialk(x, 3),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_numpy_rejects_is_rejected_with_its_error(name):
    with pytest.raises((TypeError, ValueError)) as expected:
        REJECTED[name](KNOWN)
    with pytest.raises(expected.type) as found:
        grad(lambda x: np.sum(REJECTED[name](x)))(KNOWN)
    assert str(found.value).partition(":")[0] == str(expected.value).partition(":")[0]


ODD = {
    "dtype": (0.5, "nonsense", 3), "where": (0.5, "x"), "axis": (0.5, "x", 9), "keepdims": ("x", 0.5, None, 2),
    "initial": ("x", [1, 2]), "order": (0.5, "Z"), "casting": ("bad", 1), "subok": ("x",), "kind": ("bad", 3),
    "ord": (7.5,), "mode": ("bad", 3), "method": ("bad",), "out": (0.5,), "bogus": (1,),
}  # fmt: skip
CALLED = """sum prod mean std var max min cumsum nansum nanmean median ptp sort sin matmul einsum trapezoid diff clip
    round trace roll concatenate stack full_like zeros_like linalg.norm pad kron add""".split()


def called(name, x, options):
    function = functools.reduce(getattr, name.split("."), np)
    match name:
        case "einsum":
            return function("i...->...", x, **options)
        case "concatenate" | "stack":
            return function([x, x], **options)
        case "roll" | "pad":
            return function(x, 1, **options)
        case "clip":
            return function(x, 0.1, 0.6, **options)
        case "full_like":
            return function(KNOWN, x[0, 0], **options)
        case "matmul" | "kron" | "add":
            return function(x, x.T @ x if name == "matmul" else x, **options)
    return function(x, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLED)
def test_values_of_options_that_numpy_rejects_are_rejected(name):
    """`keepdims=0.5`, `initial=[1, 2]`, `kind="bad"` and names that do not exist were accepted."""
    for option, values in ODD.items():
        for value in values:
            try:
                expected = called(name, KNOWN, {option: value})
            except Exception as error:
                with pytest.raises(Exception) as found:  # noqa: PT011
                    jvp(lambda x, o={option: value}: called(name, x, o), (KNOWN,), (KNOWN,))
                assert issubclass(type(error), found.type) or found.type is NoRule and option == "out", (option, value)
            else:
                try:
                    given = jvp(lambda x, o={option: value}: called(name, x, o), (KNOWN,), (KNOWN,))[0]
                except NoRule:
                    continue
                np.testing.assert_array_equal(given, expected, strict=True)


def test_a_filter_of_nothing_is_nothing():
    nothing = np.zeros((0, 4))
    assert grad(lambda x: np.sum(scipy.ndimage.minimum_filter1d(x, 3, axis=0)))(nothing).shape == (0, 4)
    assert grad(lambda x: np.sum(scipy.ndimage.uniform_filter1d(x, 3, axis=0)))(nothing).shape == (0, 4)
    assert grad(lambda q: np.sum(scipy.stats.vonmises_line.ppf(q, 0.7)))(nothing).shape == (0, 4)


def test_arguments_go_by_the_names_of_the_library():
    assert grad(lambda n: scipy.special.perm(N=n, k=2))(5.0) == pytest.approx(9.0)
    assert grad(lambda n: scipy.special.comb(N=n, k=2))(5.0) == pytest.approx(4.5)
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.asarray(a=x) ** 2))(KNOWN), 2 * KNOWN)


def test_what_a_definition_cannot_take_is_refused_by_name():
    with pytest.raises(NoRule, match="called like this has no derivative rule"):
        grad(lambda loc: scipy.stats.powernorm.entropy([1.5, 2.5], loc=loc)[0])(0.7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, shape", [("foldnorm", 0.58), ("exponpow", 2.07), ("exponnorm", 0.52)])
def test_entropies_have_derivatives_where_the_density_underflows(name, shape):
    """`0 * log(0)` of a density that had underflowed made them NaN."""
    entropy = getattr(scipy.stats, name).entropy
    expected = (entropy(shape + 1e-4) - entropy(shape - 1e-4)) / 2e-4
    np.testing.assert_allclose([grad(entropy)(shape), jvp(entropy, (shape,), (1.0,))[1]], expected, rtol=1e-5)


def test_asking_numpy_about_a_call_writes_to_nothing():
    """NumPy 2.1 has no signatures of compiled functions: asking about `np.copyto(a, b, where=c)` wrote to `a`."""
    a = np.zeros(3)
    ask_numpy(np.copyto, (a, np.ones(3)), {"casting": "unsafe"})
    ask_numpy(np.put, (a, [0, 4], [1.0, 2.0]), {"mode": "wrap"})
    ask_numpy(np.add, (a, 1.0), {"out": (a,)})
    assert not a.any()


VALUES = {
    "fractions of infinities": (lambda x: np.modf(x)[0], np.array([1.5, np.inf, -np.inf, np.nan])),
    "a determinant of NaN": (np.linalg.det, np.array([[1.0, np.nan], [0.0, 2.0]])),
    "a mean in half precision": (lambda x: np.mean(x, axis=-1), np.float16([[1.3, -0.7, 2.1], [0.4, 0.9, 1.1]])),
    "a product with a number": (lambda x: np.dot(x, 2), np.float32([1.0, 2.0])),
    "axes kept, after no array to write to": (lambda x: np.sum(x, 0, None, None, True), KNOWN),
    "degrees of freedom, after none": (lambda x: np.std(x, 0, None, None, 1), KNOWN),
    "a mode, after none": (lambda x: np.take(x, [0, 7], 1, None, "clip"), KNOWN),
    "a method, after none": (lambda x: np.quantile(x, 0.3, 0, None, False, "lower"), KNOWN),
    "axes kept, of a list": (lambda x: np.max([x[0], x[1]], 0, None, True), KNOWN),
    "axes kept, of a method": (lambda x: x.mean(1, None, None, True), KNOWN),
    "a spline in single precision": (lambda x: scipy.ndimage.spline_filter(x, output=None), np.float32([1, 2, 3.5, 7])),
    "a line of a spline": (lambda x: scipy.ndimage.spline_filter1d(x, output=None), np.float32([1, 2, 3.5, 7])),
    "a number with a product": (lambda x: np.dot(0.5, x), np.float32([1.0, 2.0])),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", VALUES)
def test_values_and_dtypes_are_numpys(name):
    f, x = VALUES[name]
    for value in (jvp(f, (x,), (np.ones_like(x),))[0], vjp(f, x)[0]):
        np.testing.assert_array_equal(value, f(x))
        assert np.result_type(value) == np.result_type(f(x))


BATCH = np.array([[[1.0, 2.0], [0.5, 3.0]], [[0.2, 1.5], [2.5, 0.7]]])
@pytest.mark.parametrize("product", [np.dot, np.inner])
def test_a_product_with_a_traced_number_is_in_double_precision(run, product):
    """NumPy makes an array of the number, unlike in `0.5 * x`."""
    x = np.float32([1, 2])
    value, (slope, slopes) = run(value_and_grad)(lambda a, x: np.sum(product(a, x)), argnums=(0, 1))(0.3, x)
    assert value.dtype == np.float64 and value == np.sum(product(0.3, x))
    assert slope == 3.0 and slopes.dtype == np.float32


DERIVATIVES = {
    "an order that is cut": lambda x: scipy.special.spherical_jn(0.5, x) + scipy.special.spherical_in(2.5, x),
    "a gradient of a number": lambda x: scipy.ndimage.gaussian_gradient_magnitude(x[0], 1.2) * x,
    "one of two arrays to write to": lambda x: scipy.special.airy(x[0], np.zeros(2))[1] * x,
    "no array to write to": lambda x: np.modf(x, None)[0],
    "an open mesh": lambda x: np.multiply(*np.ix_(x, [1.0, 2.0])),
    "lengths of a pixel": lambda x: scipy.ndimage.distance_transform_edt([[1, 1, 0], [0, 1, 1]], x),
    "lengths of a pixel, with places": lambda x: scipy.ndimage.distance_transform_edt([1, 1, 0], x[0], True, True)[0],
    "a multiple of the identity": lambda x: scipy.linalg.solve_sylvester([[3, x[1]], [1, 4]], [[2, 1], [0, 1]], x[0]),
    "a list beside a dtype": lambda x: np.add([[[0.5, 0.4]]], x, dtype=float) * np.hypot([0.5, 0.4], x, dtype=float),
    **{
        f"weights of {metric.__name__}": lambda x, metric=metric: metric([*x, 0.0], [0.4, 1.0, 0.0], [*(x**2), 0.3])
        for metric in (distance.chebyshev, distance.cosine, distance.correlation, distance.canberra)
    },
    "equations for a batch": lambda x: scipy.linalg.solve_sylvester([[3, x[1]], [1, 4]], x * np.eye(2), BATCH * x),
    "too many to choose": lambda x: scipy.special.perm(1, x * [1, 2]) + scipy.special.comb(x * [1, 2], 1.5),
    "repetitions": lambda x: scipy.special.comb(3, x, repetition=True) * x,
    "a profile without width": lambda x: scipy.special.voigt_profile(x, 0.0, x[::-1]),
    "no axes in common": lambda x: np.tensordot(0.8, x, axes=-2) * x,
    "cuts by no floats": lambda x: np.hsplit(x[None], np.zeros(0))[0] * x,
    "a loop of other dtypes": lambda x: np.real(scipy.special.eval_chebyu([2, 3], x, dtype=complex)) * x,
    "a range and data": lambda x: np.histogram(x * 2.0, 2, (x[0] - 1, x[1] * 3))[1] @ [1, 2, 3] * x,
    "weights of braycurtis": lambda x: distance.braycurtis([*x, 0.2], [0.4, 0.9, 0.1], [*(x**2), 0.3]),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_those_of_differences(run, name):
    def f(x):
        return np.sum(np.sin(DERIVATIVES[name](x)))

    x, step = np.array([0.7, 1.2]), 1e-6
    differences = [(f(x + e) - f(x - e)) / (2 * step) for e in step * np.eye(2)]
    np.testing.assert_allclose(run(grad)(f)(x), differences, rtol=1e-7)


LOWER = np.array([[0, 1, 1, 2, 2], [0, 0, 1, 1, 2]], np.int32)  # SciPy 1.14 solves for no others
ELEMENTS, RIGHT = np.array([2.0, 0.5, 3.0, 0.7, 1.5]), np.array([1.0, 2.0, 3.0])
OTHER = np.array([1.0, 2.0, 0.0, 3.0, 1.0])


def lower(x):
    return sparse.csr_array((x, tuple(LOWER)), shape=(3, 3))


def symmetric(x):
    return lower(x) + lower(x).T + 8 * sparse.eye_array(3)


def with_diagonal(x):
    a = lower(x)
    a.setdiag([x[0], 2 * x[1], 3.0])
    return np.sum(a.toarray() ** 2)


BY_POSITION = {
    "spsolve_triangular": lambda x: sparse.linalg.spsolve_triangular(lower(x), RIGHT, True, False, False, True).sum(),
    "eigsh, values only": lambda x: sum(
        sparse.linalg.eigsh(symmetric(x), 2, None, None, "LM", None, None, None, 0, False)
    ),
    "eigsh, a start": lambda x: sparse.linalg.eigsh(symmetric(x), 2, None, None, "LM", np.ones(3))[0].sum(),
    "eigs, a start": lambda x: np.real(sparse.linalg.eigs(symmetric(x), 1, None, None, "LM", np.ones(3))[0]).sum(),
    "mean": lambda x: (lower(x).mean(1, None) ** 2).sum(),
    "toarray": lambda x: np.ravel(lower(x).toarray("F"), order="K") @ np.arange(9.0),
    "setdiag of a list": with_diagonal,
    "correlation": lambda x: stats.pearsonr(x, OTHER).correlation,
    "a correlation below": lambda x: stats.pearsonr(x, OTHER, alternative="less").pvalue,
    "a correlation above": lambda x: stats.pearsonr(x, OTHER, alternative="greater").pvalue,
    "a correlation, unpacked": lambda x: (lambda r, p: r * p)(*stats.pearsonr(x, OTHER)),
}


if "explicit" in inspect.signature(sparse.csr_array.max).parameters:  # from SciPy 1.15 on
    BY_POSITION["explicit elements"] = lambda x: (-lower(x)).max(explicit=True) + lower(x).min()


@pytest.mark.parametrize("name", BY_POSITION)
def test_every_argument_is_followed(name):
    """Arguments by position and options were dropped: `unit_diagonal` had another gradient, silently."""
    f, step = BY_POSITION[name], 1e-5
    wanted = [(f(ELEMENTS + d) - f(ELEMENTS - d)) / (2 * step) for d in step * np.eye(5)]
    np.testing.assert_allclose(grad(f)(ELEMENTS), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", ["sum", "mean"])
def test_an_array_for_the_result_of_a_sparse_sum_is_refused(method):
    """It kept its zeros, and its gradient was 0."""
    with pytest.raises(NoRule, match=r"write out\[\.\.\.\]"):
        grad(lambda x: getattr(lower(x), method)(0, out=np.zeros(3)).sum())(ELEMENTS)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_correlation_of_two_points_does_not_change(run, alternative):
    """SciPy rounds it to 1 or -1 and gives the p-value 1; the derivative of the p-value was NaN."""
    y = np.array([3.0, 1.0])
    f = lambda x: tuple(stats.pearsonr(x, y, alternative=alternative))  # noqa: E731
    x = np.array([0.1, 0.7])
    value, tangent = run(jvp)(f, (x,), (y,))
    assert value == f(x) == (-1.0, 1.0)
    assert tangent == (0.0, 0.0)


@pytest.mark.filterwarnings("error")
def test_lu_of_a_singular_matrix_gives_no_warning():
    jvp(lambda a: scipy.linalg.lu(a)[2], (np.ones((2, 2)),), (np.eye(2),))


FILTERS = {
    "maximum": scipy.ndimage.maximum_filter, "minimum": scipy.ndimage.minimum_filter,
    "median": scipy.ndimage.median_filter, "dilation": scipy.ndimage.grey_dilation,
    "erosion": scipy.ndimage.grey_erosion, "laplace": scipy.ndimage.morphological_laplace,
    "rank": lambda x, **options: scipy.ndimage.rank_filter(x, 1, **options),
    "percentile": lambda x, **options: scipy.ndimage.percentile_filter(x, 30, **options),
}  # fmt: skip
OPTIONS = (
    {"size": 2, "axes": (0, 1)}, {"size": 3, "axes": -2, "mode": "constant", "cval": 0.5},
    {"size": (2, 3), "axes": (0, 2)}, {"footprint": [[1, 0, 1], [0, 1, 1]], "axes": (1, 2), "origin": (0, -1)},
    {"size": 2, "axes": ()},
)  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_some_axes(name, options):
    """They were refused, beside the filters by weights."""
    x = np.random.default_rng(4).normal(size=(3, 4, 5))
    u = np.random.default_rng(5).normal(size=x.shape)
    try:
        value = FILTERS[name](x, **options)
    except (TypeError, RuntimeError, ValueError) as error:  # an older SciPy takes no axes in some of them
        pytest.skip(f"SciPy rejects it: {error}")
    found, tangent = jvp(lambda x: FILTERS[name](x, **options), (x,), (u,))
    np.testing.assert_array_equal(found, value)
    steps = FILTERS[name](x + 1e-6 * u, **options) - FILTERS[name](x - 1e-6 * u, **options)
    np.testing.assert_allclose(tangent, steps / 2e-6, atol=1e-8)


def test_filters_of_axes_out_of_order_are_refused():
    with pytest.raises(NoRule, match="axes in increasing order"):
        jvp(lambda x: scipy.ndimage.maximum_filter(x, (2, 3), axes=(1, 0)), (KNOWN,), (KNOWN,))


@pytest.mark.parametrize("axis", [None, 0, -1, ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("b", [None, 2.0, np.array([1.0, 2.0])], ids=str)
def test_logsumexp_of_a_number_has_scipys_shape(axis, keepdims, b):
    """With `keepdims` the result has an axis, and was refused, or had none in compiled programs."""

    def f(x):
        return scipy.special.logsumexp(x, axis=axis, keepdims=keepdims, b=b)

    for x in (0.3, np.array(0.3)):
        value, slope = jvp(f, (x,), (1.0,))
        for found in (value, compile(f, BACKEND)(x)):
            np.testing.assert_allclose(found, f(x), rtol=1e-15)
            assert np.shape(found) == np.shape(slope) == np.shape(f(x))
        np.testing.assert_allclose(slope, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-8)


def test_the_deviation_about_an_infinite_mean_is_infinite():
    """A compiled program took the infinite mean's square from the second moment."""

    def f(m):
        return stats.crystalball.std(1.0, m, loc=0.1)

    with np.errstate(all="ignore"):
        assert compile(f, BACKEND)(1.02) == f(1.02) == np.inf
        check_grad(f, 4.2)


@pytest.mark.parametrize("function", [np.nanvar, np.nanstd])
@pytest.mark.parametrize("options", [
    {}, {"axis": 1}, {"axis": 1, "keepdims": True}, {"axis": 0, "where": [[True], [False], [True]]},
])  # fmt: skip
@pytest.mark.parametrize("ddof", [0, 1, 2])
@pytest.mark.filterwarnings("ignore")
def test_no_degree_of_freedom_gives_nan_also_when_compiled(function, options, ddof):
    x = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan], [1.0, 5.0, 2.0]])

    def value(run):
        return run(lambda a: jvp(lambda b: function(b, ddof=ddof, **options), (a,), (a,))[0])(x)

    expected = function(x, ddof=ddof, **options)
    np.testing.assert_array_equal(value(lambda f: f), expected)
    np.testing.assert_allclose(value(lambda f: compile(f, "numpy")), expected, rtol=1e-13)


@pytest.mark.parametrize("function", [np.dot, np.inner])
def test_a_complex_number_times_an_array_has_numpys_bits(function):
    random = np.random.default_rng(0)
    for size in (1, 2, 7):
        for _ in range(50):
            number, *parts = random.normal(size=(2 * size + 1, 2)) @ [1, 1j]
            array, direction = np.array(parts[:size]), np.array(parts[size:])
            for f in (lambda a, n=number: function(n, a), lambda a, n=number: function(a, n)):
                value, tangent = jvp(f, (array,), (direction,))
                np.testing.assert_array_equal(value, f(array))
                np.testing.assert_allclose(tangent, number * direction, rtol=1e-14)


BESIDE = {
    "convolve2d": lambda x: scipy.signal.convolve2d(KNOWN, KNOWN, fillvalue=x),
    "correlate2d": lambda x: scipy.signal.correlate2d(KNOWN, KNOWN, "same", fillvalue=x),
    "correlate": lambda x: scipy.ndimage.correlate(KNOWN, KNOWN, mode="constant", cval=x),
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(KNOWN, 1.0, mode="constant", cval=x),
    "pad": lambda x: np.pad(KNOWN, 1, constant_values=x),
    "pad of integers": lambda x: np.pad(np.arange(4), 1, constant_values=(x * 10 + 0.5, 7)),
    "pad of two ends": lambda x: np.pad(KNOWN, ((1, 2), (0, 3)), constant_values=(x, x**2)),
    "pad of all ends": lambda x: np.pad(KNOWN, 2, constant_values=((x, x**2), (1, np.sin(x)))),
}


@pytest.mark.parametrize("name", BESIDE)
def test_the_value_beyond_a_constant_array_has_a_derivative(run, name):
    """It was called a traced value in code that is not read, and several values of `np.pad` were refused."""
    f = BESIDE[name]
    value, slope = run(lambda f: lambda x: jvp(f, (x,), (1.0,)))(f)(0.7)
    np.testing.assert_allclose(value, f(0.7), rtol=1e-15, atol=1e-15)
    around = [f(0.7 + step).astype(float) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(slope, (around[0] - around[1]) / 2e-5, atol=1e-9)
