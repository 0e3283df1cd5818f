"""The calls of `benchmarks.fuzz_calls --table rows`: of each row of a function that its own table does not draw.

Special functions and distributions are drawn by their signatures. The others state their required arguments; their
options are drawn by name, from the values that options of that name have.
"""

import inspect
from typing import Any

import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats

from effgrad.functions.rows import rows

Draw = Any


def one_of(*values: Any) -> Draw:
    return lambda rng, known: values[int(rng.integers(len(values)))]


def number(low: float, high: float) -> Draw:
    return lambda rng, known: float(rng.uniform(low, high))


def formed(rng: Any, x: Any, kinds: str = "fc") -> Any:
    """The array in single precision, complex, with gaps, transposed or reversed."""
    kind = rng.random()
    if kind < 0.08 and "f" in kinds:
        x = x.astype(np.float32)
    elif kind < 0.16 and "c" in kinds:
        x = x + 1j * rng.uniform(-1, 1, x.shape)
    layout = rng.random()
    if layout < 0.12 and x.ndim:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if layout < 0.24:
        return np.asfortranarray(x)
    return x[::-1] if layout < 0.34 and x.ndim else x


def array(*dims: Any, low: float = -1.0, high: float = 1.0, kinds: str = "fc", least: int = 1) -> Draw:
    """An array with these axes (None: of any length); without any, of up to 3 axes."""

    def draw(rng: Any, known: Any) -> Any:
        lengths = dims or (None,) * int(rng.integers(0, 4))
        shape = [int(rng.integers(least, 5)) if n is None else n for n in lengths]
        if rng.random() < 0.03 and shape and None in lengths:
            shape[0] = 0
        return formed(rng, rng.uniform(low, high, shape), kinds)

    return draw


def like(name: str, low: float = -1.0, high: float = 1.0, axis: int | None = None) -> Draw:
    def draw(rng: Any, known: Any) -> Any:
        shape = np.shape(known[name])
        return rng.uniform(low, high, shape if axis is None else shape[axis])

    return draw


def rising(n: int, low: float = -1.0, high: float = 1.0) -> Draw:
    return lambda rng, known: np.sort(rng.uniform(low, high, n)) + np.linspace(0, 1, n)


def axis_of(rng: Any, known: Any) -> Any:
    n = np.ndim(next((v for v in known.values() if isinstance(v, np.ndarray)), 0.0))
    return int(rng.integers(-n, n)) if n else 0


def axes_of(rng: Any, known: Any) -> Any:
    n = np.ndim(next((v for v in known.values() if isinstance(v, np.ndarray)), 0.0))
    return tuple(int(i) for i in rng.permutation(n)[: rng.integers(1, n + 1)]) if n else None


def positive_definite(rng: Any, known: Any) -> Any:
    n = int(rng.integers(1, 4))
    x = rng.uniform(-1, 1, (n, n))
    return formed(rng, x @ x.T + np.eye(n), "f")


ANY, LINE, PLANE = array(), array(None), array(None, None)
REAL, POSITIVE = array(kinds="f"), array(low=0.2, high=2.0, kinds="f")
SQUARE = lambda rng, known: array(*[int(rng.integers(1, 4))] * 2)(rng, known) * 0.4 + np.eye(1)  # noqa: E731
LONG = array(None, 9, least=1, kinds="f")

def first_array(known: Any) -> Any:
    return next((np.asarray(v) for v in known.values() if isinstance(v, np.ndarray)), np.zeros(2))


def like_first(low: float = -1.0, high: float = 1.0, axis: int | None = None) -> Draw:
    """Real numbers in the shape of the first array, or as many as it has along one of its axes."""

    def draw(rng: Any, known: Any) -> Any:
        shape = first_array(known).shape
        return rng.uniform(low, high, shape if axis is None or not shape else shape[axis])

    return draw


def mask(rng: Any, known: Any) -> Any:
    """Which elements of the first array, or of its rows."""
    shape = first_array(known).shape
    return rng.random(shape[-1:] if rng.random() < 0.3 else shape) < 0.7


def second_positive_definite(rng: Any, known: Any) -> Any:
    x = rng.uniform(-1, 1, first_array(known).shape)
    return np.matmul(x, np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1]) if x.ndim > 1 else x


def neighbourhood(rng: Any, known: Any) -> Any:
    shape = tuple(int(n) for n in rng.integers(1, 4, first_array(known).ndim))
    return rng.random(shape) < 0.8


EITHER = one_of(True, False)
# Options that are true or false.
FLAGS = (
    "check_finite overwrite_a overwrite_b overwrite_x overwrite_ab overwrite_data overwrite_input copy compute_uv "
    "eigvals_only returned return_index return_inverse return_counts return_sign return_rank retstep sparse balanced "
    "squared precenter floating_mean zero_phase include_nyquist retquad retenv sorted fisher grid_mode derivative "
    "p_indices equal_nan assume_unique return_indices homogeneous_eigvals boundary padded full cov transposed "
    "compute_expm repetition exact assume_sorted stable subok sum_check return_sensitivity"
).split()

# The values of options by their names, wherever an option is called so.
OPTIONS: dict[str, Draw] = {
    **dict.fromkeys(FLAGS, EITHER),
    "where": mask,
    "dtype": one_of(None, np.float64, np.float32, np.complex128, int),
    "order": one_of("C", "F", "A", "K"),
    "casting": one_of("same_kind", "unsafe"),
    "workers": one_of(None, 1),
    "correction": one_of(0, 1),
    "mean": number(-1, 1),
    "aweights": like_first(0.2, 2.0, axis=-1),
    "fweights": lambda rng, known: rng.integers(1, 4, first_array(known).shape[-1:]),
    "y": like_first(),
    "v_weights": like("v_values", 0.2),
    "b": second_positive_definite,
    "nan": number(0, 1),
    "posinf": number(1, 2),
    "neginf": number(-2, -1),
    "discont": number(1, 4),
    "left": number(0, 1),
    "right": number(0, 1),
    "alternative": one_of("two-sided", "less", "greater"),
    "structure": None,  # SciPy reads beyond one of another shape than the footprint's
    "footprint": neighbourhood,
    "to_end": number(-1, 1),
    "to_begin": number(-1, 1),
    "base": number(2, 3),
    "minlength": one_of(0, 6),
    "kind": one_of(None, "stable", "quicksort"),
    "lapack_driver": one_of("gesdd", "gesvd"),
    "subset_by_index": one_of(None, [0, 0]),
    "driver": one_of(None, "ev", "evd", "evr"),
    "UPLO": one_of("L", "U"),
    "nfft": one_of(None, 16),
    "nperseg": one_of(4, 6),
    "noverlap": one_of(None, 1),
    "range": one_of(None, (-1.0, 1.0)),
    "domain": one_of("time", "freq"),
    "wo": number(0.5, 2),
    "m": one_of(None, 3),
    "bwr": number(-9, -3),
    "tpr": number(-70, -50),
    "atol": one_of(None, 1e-9),
    "rtol": one_of(None, 1e-9),
    "rcond": one_of(None, 1e-9),
    "cond": one_of(None, 1e-9),
    "fill_value": number(-1, 1),
    "axis1": one_of(0, 1),
    "axis2": one_of(1, 0),
    **dict.fromkeys(("axisa", "axisb", "axisc", "caxis", "baxis", "outaxis"), one_of(0, -1)),
    "output": one_of(None, np.float64, np.float32),
    "interpolation": one_of("linear", "lower", "midpoint"),
    "proportiontocut": number(0.05, 0.3),
    "tail": one_of("right", "left"),
    "labels": lambda rng, known: rng.integers(0, 3, first_array(known).shape),
    "alpha": number(0.2, 0.8),
    "f_exp": like_first(0.5, 1.5),
    "optimizer": one_of(None),
    "window_length": one_of(None, 2),
    "limit": one_of((), (-0.5, 0.8)),
    "compute_uv": EITHER,
    "x": one_of(None),
    "r": like_first(axis=0),
    "w": like_first(0.5, 2.0, axis=0),
    "bp": one_of(0, 1),
    "ndmin": one_of(0, 2, 4),
    "shape": one_of(None, (3,)),
    "start": one_of(0, 1),
    "trim": one_of("fb", "f", "b"),
    "axis": axis_of,
    "axes": axes_of,
    "keepdims": one_of(True, False),
    "norm": one_of(None, "ortho", "forward"),
    "cval": number(-1, 1),
    "origin": one_of(0, -1),
    "ddof": one_of(0, 1, 2),
    "dx": number(0.3, 2.0),
    "bias": one_of(True, False),
    "lower": one_of(True, False),
    "prefilter": one_of(True, False),
    "include_initial": one_of(True, False),
    "nan_policy": one_of("propagate", "omit"),
    "weights": like_first(0.2, 2.0),
    "truncate": number(2.0, 5.0),
    "radius": one_of(None, 2),
    "offset": one_of(-1, 0, 1),
    "k": one_of(-1, 0, 1),
    "deriv": one_of(0, 1),
    "delta": number(0.5, 2.0),
    "fs": number(0.5, 2.0),
    "scale": number(0.5, 2.0),
    "high": number(3.0, 6.0),
    "low": number(-1.0, 1.0),
    "full_matrices": one_of(True, False),
    "der": one_of(0, 1, 2),
    "smoothing": number(0.1, 1.0),
    "epsilon": number(0.5, 2.0),
    "extrapolate": one_of(None, True, False),
    "standardize": one_of(True, False),
    "equal_var": one_of(True, False),
    "normalize": one_of(True, False),
    "index": one_of(None, 1, [0, 1]),
    "reshape": one_of(True, False),
    "zi": None,
    "orthogonalize": one_of(None, True, False),
    "return_onesided": one_of(True, False),
    "whole": one_of(True, False),
    "bw": number(0.3, 0.8),
    "phi": number(-9, 9),
    "lam": number(0.1, 1.0),
    "increasing": one_of(True, False),
    "indexing": one_of("xy", "ij"),
    "initial": number(-1, 1),
    "drop": None,
    "type": one_of(1, 2, 3, 4),
    "num": one_of(2, 4),
    "endpoint": one_of(True, False),
    "density": one_of(None, True),
    "half": None,
    "center": None,
    "popmean": number(-1, 1),
    "limits": one_of(None, (-0.8, 0.8), (None, 0.5)),
    "inclusive": one_of((True, True), (True, False)),
    "tol": one_of(None, 1e-9),
    "rescale": one_of(True, False),
    "hermitian": None,
    "edge_order": one_of(1, 2),
    "n": None,
    "s": None,
    "degree": one_of(None, 1),
}
# Those whose values depend on the function.
OF_FUNCTION: dict[str, dict[str, Draw]] = {
    "scipy.ndimage": {
        "order": one_of(1, 2, 3),
        "mode": one_of("reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap", "grid-constant"),
    },
    "scipy.ndimage.gaussian_filter1d": {"order": one_of(0, 1, 2)},
    "scipy.ndimage.spline_filter": {"order": one_of(2, 3, 4, 5), "mode": one_of("mirror", "reflect", "grid-wrap")},
    "scipy.ndimage.spline_filter1d": {"order": one_of(2, 3, 4), "mode": one_of("mirror", "reflect", "grid-wrap")},
    "scipy.signal.savgol_filter": {"mode": one_of("mirror", "constant", "nearest", "wrap", "interp")},
    "scipy.signal.upfirdn": {
        "mode": one_of("constant", "symmetric", "reflect", "wrap"),
        "up": one_of(1, 2),
        "down": one_of(1, 2),
    },
    "scipy.signal.oaconvolve": {"mode": one_of("full", "same", "valid"), "axes": one_of(None, 0, -1)},
    "scipy.signal.filtfilt": {
        "padtype": one_of("odd", "even", "constant", None),
        "padlen": one_of(1, 2),
        "method": one_of("pad", "gust"),
    },
    "scipy.signal.sosfiltfilt": {"padtype": one_of("odd", "even", "constant", None), "padlen": one_of(1, 2)},
    "scipy.signal.resample_poly": {
        "padtype": one_of("constant", "line", "mean", "median", "minimum", "edge", "reflect")
    },
    **{
        f"scipy.signal.{n}": {
            "scaling": one_of("density", "spectrum"),
            "detrend": one_of("constant", "linear", False),
            "window": one_of("hann", "boxcar", ("kaiser", 3.0)),
            "average": one_of("mean", "median"),
        }
        for n in "welch csd periodogram spectrogram".split()
    },
    "scipy.fft.dctn": {"type": one_of(1, 2, 3, 4), "s": one_of(None, (3,))},
    "scipy.linalg.eig": {"left": EITHER, "right": EITHER},
    "scipy.linalg.eigh": {"type": one_of(1, 2, 3)},
    "scipy.linalg.eigvalsh": {"type": one_of(1, 2, 3)},
    "scipy.stats.iqr": {"scale": one_of(1.0, "normal", 2.0), "rng": one_of((25, 75), (10, 60))},
    "scipy.stats.ttest_ind": {"trim": number(0.0, 0.2)},
    **{
        f"scipy.signal.{n}": {"method": one_of("auto", "direct", "fft")} for n in ("convolve", "correlate")
    },
    **{
        f"numpy.{n}": {"method": one_of("linear", "hazen", "lower", "inverted_cdf")}
        for n in ("percentile", "nanpercentile")
    },
    "numpy.linalg.matrix_norm": {"ord": one_of(None, 1, 2, -1, -2, np.inf, "nuc", "fro")},
    "numpy.linalg.vector_norm": {"ord": one_of(0, 1, 2, 3, 0.5, -1, np.inf, -np.inf)},
    "scipy.linalg.norm": {"ord": one_of(None, 1, 2, np.inf, "fro", "nuc"), "axis": one_of(None, 0, (0, 1))},
    "numpy.concatenate": {"axis": one_of(0, None)},
    "numpy.stack": {"axis": one_of(0, -1, 1)},
    "scipy.interpolate.interp1d": {
        "kind": one_of("linear", "nearest", "zero", "slinear", "quadratic", "cubic", "previous", "next"),
        "axis": one_of(-1, 0),
        "fill_value": one_of("extrapolate", 0.5),
        "bounds_error": one_of(False),
    },
    "scipy.interpolate.CubicSpline": {"bc_type": one_of("not-a-knot", "natural", "clamped")},
    "scipy.interpolate.Akima1DInterpolator": {"method": one_of("akima", "makima")},
    "scipy.interpolate.RegularGridInterpolator": {
        "method": one_of("linear", "nearest", "slinear", "cubic", "quintic", "pchip"),
        "bounds_error": one_of(False),
        "fill_value": one_of(None, 0.5),
    },
    "scipy.interpolate.interpn": {
        "method": one_of("linear", "nearest", "splinef2d", "cubic", "pchip"),
        "bounds_error": one_of(False),
        "fill_value": one_of(None, 0.5),
    },
    "scipy.interpolate.griddata": {"method": one_of("linear", "nearest", "cubic")},
    "scipy.interpolate.RBFInterpolator": {
        "kernel": one_of("linear", "thin_plate_spline", "cubic", "gaussian", "multiquadric", "inverse_quadratic")
    },
    "scipy.interpolate.make_interp_spline": {"k": one_of(1, 2, 3), "bc_type": one_of(None, "natural", "clamped")},
    "scipy.stats.quantile": {"method": one_of("linear", "hazen", "weibull", "inverted_cdf")},
    "scipy.stats.power_divergence": {"lambda_": one_of("pearson", "log-likelihood", "neyman", 0.5)},
    "scipy.stats.combine_pvalues": {"method": one_of("fisher", "pearson", "tippett", "stouffer", "mudholkar_george")},
    "scipy.stats.scoreatpercentile": {"interpolation_method": one_of("fraction", "lower", "higher")},
    "scipy.stats.differential_entropy": {"method": one_of("auto", "vasicek", "van es", "ebrahimi", "correa")},
    "scipy.stats.levene": {"center": one_of("median", "mean", "trimmed")},
    "scipy.stats.kstat": {"n": one_of(1, 2, 3, 4)},
    "scipy.stats.kstatvar": {"n": one_of(1, 2)},
    "scipy.stats.entropy": {"base": number(1.5, 3)},
    "scipy.stats.lmoment": {"order": one_of(None, 1, 2, [1, 3]), "sorted": one_of(False)},
}


def options_of(path: str, function: Any, required: dict[str, Draw]) -> dict[str, Draw]:
    """The options that the function has, and for whose names values are known."""
    if isinstance(function, np.ufunc):
        return {}
    try:
        names = inspect.signature(function).parameters
    except ValueError:
        return {}
    known = {**OPTIONS, **OF_FUNCTION.get(path.rpartition(".")[0], {}), **OF_FUNCTION.get(path, {})}
    return {name: known[name] for name in names if known.get(name) is not None and name not in required}


def special() -> dict[str, Any]:
    """The ufuncs of `scipy.special`, each argument an array, a number or a small integer."""

    def argument(rng: Any, known: Any) -> Any:
        shapes = [np.shape(value) for value in known.values()] or [()]
        shape = max(shapes, key=len) if known else tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
        kind = rng.random()
        if kind < 0.2:
            return float(rng.integers(0, 4)) if kind < 0.1 else int(rng.integers(0, 4))
        if kind < 0.4:
            return float(rng.uniform(0.05, 0.95))
        low, high = [(0.05, 0.95), (0.1, 3.0), (-2.0, 2.0)][int(rng.integers(3))]
        return formed(rng, rng.uniform(low, high, shape), "f" if kind < 0.9 else "fc")

    calls = {}
    for row in rows("scipy.special"):
        function = getattr(scipy.special, row.name.rpartition(".")[2])
        if row.status == "differentiable" and isinstance(function, np.ufunc):
            calls[row.name] = {f"x{i}": argument for i in range(function.nin)}, {}
    return calls


METHODS = "pdf logpdf cdf logcdf sf logsf ppf isf".split()
OF_SHAPES = "mean var std median entropy".split()


def distributions() -> dict[str, Any]:
    """The methods of distributions, of points, shapes, place and scale."""
    calls: dict[str, Any] = {}
    for row in rows("scipy.stats"):
        found = getattr(scipy.stats, row.name.rpartition(".")[2])
        if row.status != "differentiable" or not isinstance(found, scipy.stats.rv_continuous | scipy.stats.rv_discrete):
            continue
        continuous = isinstance(found, scipy.stats.rv_continuous)
        shapes = found.shapes.replace(" ", "").split(",") if found.shapes else []
        given = {name: shape_of_distribution(row.name, name) for name in shapes}
        options = {"loc": number(-1, 1), "scale": number(0.5, 2)} if continuous else {"loc": one_of(0, 1)}
        point = array(low=-1.0, high=3.0, kinds="f") if continuous else one_of(1, 2, [1, 3], np.array([[0, 2]]))
        for method in METHODS if continuous else "pmf logpmf cdf sf logcdf logsf".split():
            at = array(low=0.05, high=0.95, kinds="f") if method in ("ppf", "isf") else point
            calls[f"{row.name}.{method}"] = {"q" if method in ("ppf", "isf") else "x": at, **given}, options
        for method in OF_SHAPES:
            calls[f"{row.name}.{method}"] = given, options
    return calls


def shape_of_distribution(path: str, name: str) -> Draw:
    """A shape parameter: an integer where the distribution is of counts."""
    if name in ("n", "N", "M", "lower", "upper") and "norm" not in path:
        return one_of(4, 5)
    if name in ("p", "q", "mu1", "u") and "crystal" not in path:
        return lambda rng, known: rng.uniform(0.2, 0.8, (2,)) if rng.random() < 0.1 else float(rng.uniform(0.2, 0.8))
    if name == "b" and "trunc" in path:
        return number(2.5, 4)
    return lambda rng, known: [1.5, 2.5] if rng.random() < 0.05 else float(rng.uniform(0.4, 2.5))


def after(cls: Any, *points: str) -> Any:
    """A function that makes an interpolator of a class, and asks it for values at points."""

    def call(*args: Any, at: Any, **options: Any) -> Any:
        return cls(*args, **options)(at)

    parameters = [*inspect.signature(cls).parameters.values(), inspect.Parameter("at", inspect.Parameter.KEYWORD_ONLY)]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        sorted((p for p in parameters if p.kind is not p.VAR_KEYWORD), key=lambda p: p.kind)
    )
    return call


INTERPOLATORS = {
    name: after(getattr(scipy.interpolate, name))
    for name in (
        "CubicSpline PchipInterpolator Akima1DInterpolator CubicHermiteSpline BarycentricInterpolator interp1d "
        "BSpline PPoly BPoly "
        "make_interp_spline make_smoothing_spline RegularGridInterpolator RBFInterpolator"
    ).split()
}
PROGRAMS: dict[str, Any] = {f"scipy.interpolate.{name}()": call for name, call in INTERPOLATORS.items()}
GRID = lambda rng, known: (np.linspace(0, 1, 6), np.linspace(-1, 1, 7))  # noqa: E731
AT, IN_PLANE = array(None, low=-0.2, high=1.2, kinds="f"), array(None, 2, low=-0.2, high=1.1, kinds="f")
POINTS = lambda rng, known: rng.uniform(0, 1, (7, 2))  # noqa: E731
LINES = lambda rng, known: rng.uniform(-1, 1, (6, 2) if rng.random() < 0.3 else 6)  # noqa: E731
SPLINES: dict[str, dict[str, Draw]] = {
    **{
        name: {"x": rising(6), "y": LINES, "at": AT}
        for name in (
            "CubicSpline PchipInterpolator Akima1DInterpolator interp1d make_interp_spline "
            "make_smoothing_spline"
        ).split()
    },
    "CubicHermiteSpline": {"x": rising(6), "y": LINES, "dydx": like("y"), "at": AT},
    "BarycentricInterpolator": {"xi": rising(5), "yi": like("xi"), "at": AT},
    "BSpline": {"t": rising(9), "c": array(5, kinds=""), "k": one_of(1, 2, 3), "at": AT},
    "PPoly": {"c": array(3, 4, kinds=""), "x": rising(5), "at": AT},
    "BPoly": {"c": array(3, 4, kinds=""), "x": rising(5), "at": AT},
    "RegularGridInterpolator": {"points": GRID, "values": array(6, 7, kinds=""), "at": IN_PLANE},
    "RBFInterpolator": {"y": POINTS, "d": array(7, kinds=""), "at": IN_PLANE},
}

FILTERED = {"input": PLANE}
# The required arguments of the other functions, by their namespace.
REQUIRED: dict[str, dict[str, dict[str, Draw]]] = {
    "numpy": {
        **{
            n: {"a": ANY}
            for n in "amax amin copy ascontiguousarray asfortranarray nan_to_num asarray squeeze ravel "
            "sort_complex real_if_close array permute_dims".split()
        },
        **{
            n: {"x": ANY}
            for n in (
                "cumulative_sum cumulative_prod i0 sign atleast_1d atleast_2d atleast_3d real imag "
                "unique_values"
            ).split()
        },
        **{
            n: {"x": REAL}
            for n in "abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad exp exp2 expm1 "
            "fabs frexp log log10 log1p log2 modf negative positive rad2deg reciprocal sin sinh spacing "
            "sqrt square tan tanh".split()
        },
        **{
            n: {"x1": ANY, "x2": like("x1")}
            for n in "add arctan2 copysign divide divmod float_power fmax fmin fmod heaviside hypot "
            "logaddexp logaddexp2 maximum minimum mod multiply nextafter power subtract floor_divide remainder".split()
        },
        "ldexp": {"x1": REAL, "x2": one_of(2, -3)},
        "matmul": {"x1": array(2, 3), "x2": array(3, 2)},
        "vecdot": {"x1": ANY, "x2": like("x1")},
        "matvec": {"x1": array(2, 3), "x2": array(3)},
        "vecmat": {"x1": array(2), "x2": array(2, 3)},
        **{n: {"v": one_of(np.ones(3), np.eye(3)[:, :2])} for n in ("diag", "diagflat")},
        "bincount": {"x": one_of(np.array([0, 2, 2, 1])), "weights": array(4, kinds="f")},
        "broadcast_to": {"array": array(3), "shape": one_of((2, 3), (4, 1, 3))},
        "choose": {"a": one_of(np.array([0, 1, 0])), "choices": array(2, 3)},
        "compress": {"condition": one_of([True, False, True]), "a": array(3, 3)},
        **{n: {"arrays": array(2, 3, 2)} for n in "concatenate stack hstack vstack dstack column_stack concat".split()},
        "cross": {"a": array(2, 3), "b": like("a")},
        "ediff1d": {"ary": ANY},
        "expand_dims": {"a": ANY, "axis": one_of(0, -1)},
        "extract": {"condition": one_of(np.array([True, False, True])), "arr": array(3)},
        "fliplr": {"m": array(2, 3)},
        "flipud": {"m": PLANE},
        "full": {"shape": one_of(3, (2, 2)), "fill_value": array(1, kinds="")},
        "full_like": {"a": PLANE, "fill_value": number(-1, 1)},
        "geomspace": {"start": array(2, low=1, high=2, kinds=""), "stop": number(3, 4)},
        "linspace": {"start": array(None), "stop": number(3, 4)},
        "logspace": {"start": array(2, kinds=""), "stop": number(0, 1)},
        "histogram": {"a": LINE, "bins": one_of(2, [-1.0, 0.0, 1.0])},
        "kaiser": {"M": one_of(5), "beta": number(0, 4)},
        "meshgrid": {"x": LINE, "y": LINE},
        "moveaxis": {"a": array(2, 3, 1), "source": one_of(0, 2), "destination": one_of(-1, 1)},
        **{n: {"a": ANY, "q": one_of(30.0, [10, 60])} for n in ("nanpercentile",)},
        "partition": {"a": LINE, "kth": one_of(0, -1)},
        **{n: {"a1": LINE, "a2": LINE} for n in "polyadd polysub polymul".split()},
        "polydiv": {"u": array(4), "v": array(2)},
        "resize": {"a": PLANE, "new_shape": one_of((2, 3), 5)},
        "roots": {"p": array(4)},
        **{n: {"ar1": LINE, "ar2": LINE} for n in "union1d setdiff1d setxor1d intersect1d".split()},
        "split": {"ary": array(4, 2), "indices_or_sections": one_of(2, [1, 3])},
        "array_split": {"ary": PLANE, "indices_or_sections": one_of(2, 3)},
        "take_along_axis": {"arr": array(2, 3), "indices": one_of(np.array([[0, 1], [2, 0]])), "axis": one_of(1, -1)},
        "trim_zeros": {"filt": LINE},
        "where": {"condition": one_of(np.array([True, False, True])), "x": array(2, 3), "y": array(3)},
        "select": {"condlist": one_of([np.array([True, False])]), "choicelist": array(1, 2), "default": number(0, 1)},
        "unstack": {"x": array(2, 3)},
        "matrix_transpose": {"x": array(2, 3)},
        "rollaxis": {"a": array(2, 3, 1), "axis": one_of(0, 2, -1)},
    },
    "numpy.linalg": {
        "cross": {"x1": array(2, 3), "x2": array(2, 3)},
        "diagonal": {"x": PLANE},
        "trace": {"x": PLANE},
        "eigh": {"a": positive_definite},
        "eig": {"a": SQUARE},
        "svd": {"a": PLANE},
        "matrix_norm": {"x": PLANE},
        "vector_norm": {"x": ANY},
        "multi_dot": {"arrays": array(3, 2, 2)},
        "outer": {"x1": LINE, "x2": LINE},
        "tensorinv": {"a": array(2, 3, 6)},
        "tensorsolve": {"a": array(2, 3, 6), "b": array(2, 3)},
        "vecdot": {"x1": ANY, "x2": like("x1")},
    },
    "numpy.fft": {n: {"a": PLANE} for n in "fft2 fftn ifft2 ifftn irfft2 irfftn rfft2 rfftn".split()}
    | {n: {"x": ANY} for n in ("fftshift", "ifftshift")},
    "scipy.fft": {
        n: {"x": PLANE}
        for n in "dctn dstn fft2 fftn fftshift hfft2 hfftn idctn idstn ifft2 ifftn ihfft2 ihfftn "
        "irfft2 irfftn rfft2 rfftn".split()
    },
    "scipy.linalg": {
        **{n: {"A": SQUARE} for n in "coshm sinhm tanhm tanm".split()},
        "block_diag": {"a": PLANE, "b": PLANE},
        "companion": {"a": array(4)},
        "convolution_matrix": {"a": array(None, least=1), "n": one_of(2, 3)},
        "diagsvd": {"s": array(2), "M": one_of(2, 3), "N": one_of(3)},
        **{n: {"a": positive_definite} for n in "cho_factor eigh pinvh".split()},
        "eig": {"a": SQUARE},
        "svd": {"a": PLANE},
        "eigh_tridiagonal": {"d": array(3, kinds="f"), "e": array(2, kinds="f")},
        "eigvalsh_tridiagonal": {"d": array(3), "e": array(2)},
        "expm_frechet": {"A": array(2, 2), "E": array(2, 2)},
        "fiedler": {"a": array(3)},
        "khatri_rao": {"a": array(2, 3), "b": array(2, 3)},
        "leslie": {"f": array(3), "s": array(2)},
        "lstsq": {"a": array(4, 2), "b": array(4)},
        "norm": {"a": PLANE},
        "matmul_toeplitz": {"c": array(3), "x": array(3)},
        "orthogonal_procrustes": {"A": array(4, 2), "B": array(4, 2)},
        "schur": {"a": positive_definite},
        "solve_banded": {"l_and_u": one_of((1, 1)), "ab": array(3, 4, low=0.5), "b": array(4)},
        "solve_circulant": {"c": array(3, low=0.5), "b": array(3)},
        "solve_toeplitz": {"c": array(3, low=1, high=2), "b": array(3)},
        "solveh_banded": {"ab": one_of(np.array([[0, 0.3, 0.2], [2.0, 3, 2]])), "b": array(3)},
        "cholesky_banded": {"ab": one_of(np.array([[0, 0.3, 0.2], [2.0, 3, 2]]))},
        **{
            n: {"a": array(2, 2), "q": array(2, 2)} for n in "solve_continuous_lyapunov solve_discrete_lyapunov".split()
        },
        "solve_sylvester": {"a": array(2, 2, low=1, high=2), "b": array(3, 3), "q": array(2, 3)},
        **{
            n: {"a": array(2, 2, kinds=""), "b": array(2, 1, kinds=""), "q": one_of(np.eye(2)), "r": one_of(np.eye(1))}
            for n in "solve_continuous_are solve_discrete_are".split()
        },
    },
    "scipy.signal": {
        **{n: {"x": LONG} for n in "periodogram welch spectrogram resample savgol_filter stft".split()},
        "envelope": {"z": LONG},
        "coherence": {"x": LONG, "y": like("x")},
        "csd": {"x": LONG, "y": like("x")},
        "czt": {"x": LINE},
        "deconvolve": {"signal": array(5), "divisor": array(2)},
        **{
            n: {"b": array(2, kinds=""), "a": lambda rng, known: np.array([1.0, rng.uniform(-0.5, 0.5)]), "x": LONG}
            for n in ("filtfilt",)
        },
        **{
            n: {"b": array(3, kinds="f"), "a": array(2, low=1, high=2, kinds="f"), "worN": one_of(4)}
            for n in ("freqz",)
        },
        "freqs": {"b": array(3, kinds=""), "a": array(2, kinds=""), "worN": one_of([0.3, 1.0])},
        "gauss_spline": {"x": REAL, "n": one_of(1, 2, 3)},
        "gausspulse": {"t": REAL, "fc": number(0.5, 2)},
        "hilbert2": {"x": array(3, 4, kinds="f")},
        "lfilter_zi": {"b": array(3, kinds=""), "a": array(3, low=1, high=2, kinds="")},
        "lp2hp": {"b": array(2, kinds=""), "a": array(3, kinds="")},
        "lp2lp": {"b": array(2, kinds=""), "a": array(3, kinds="")},
        "lombscargle": {"x": rising(6), "y": array(6, kinds="f"), "freqs": array(3, low=0.5, high=2, kinds="")},
        "medfilt": {"volume": array(None, None, kinds="f"), "kernel_size": one_of(3, 1)},
        "medfilt2d": {"input": array(3, 4, kinds="f")},
        "normalize": {"b": array(2, kinds=""), "a": array(3, low=1, high=2, kinds="")},
        "oaconvolve": {"in1": ANY, "in2": like("in1")},
        "order_filter": {"a": array(3, 4, kinds="f"), "domain": one_of(np.ones((1, 3))), "rank": one_of(0, 1)},
        "resample_poly": {"x": LONG, "up": one_of(2, 3), "down": one_of(1, 2)},
        "sosfilt": {"sos": one_of(np.array([[0.5, 0.2, 0.1, 1, 0.3, 0.1]])), "x": LONG},
        "sosfiltfilt": {"sos": one_of(np.array([[0.5, 0.2, 0.1, 1, 0.3, 0.1]])), "x": LONG},
        "sweep_poly": {"t": REAL, "poly": array(2, kinds="")},
        "tf2zpk": {"b": array(2, kinds=""), "a": array(3, kinds="")},
        "upfirdn": {"h": array(3), "x": LONG},
        "vectorstrength": {"events": array(4, kinds="f"), "period": number(0.3, 1)},
        "zpk2tf": {"z": array(2), "p": array(2), "k": number(0.5, 1)},
        "savgol_filter": {"x": LONG, "window_length": one_of(3, 5), "polyorder": one_of(1, 2)},
        "resample": {"x": LONG, "num": one_of(5, 12)},
        "stft": {"x": LONG, "nperseg": one_of(4)},
        "spectrogram": {"x": LONG, "nperseg": one_of(4)},
        "decimate": {"x": array(1, 40, kinds=""), "q": one_of(2), "ftype": one_of("iir", "fir")},
    },
    "scipy.ndimage": {
        **{n: FILTERED | {"weights": array(2, 3, kinds="")} for n in ("convolve", "correlate")},
        **{n: FILTERED | {"weights": array(3, kinds="")} for n in ("convolve1d", "correlate1d")},
        **{n: FILTERED | {"sigma": number(0.5, 2)} for n in ("gaussian_filter1d", "fourier_gaussian")},
        **{
            n: FILTERED | {"size": one_of(2, 3)}
            for n in "grey_closing grey_dilation grey_erosion grey_opening morphological_gradient white_tophat "
            "black_tophat "
            "morphological_laplace maximum_filter1d minimum_filter1d uniform_filter1d fourier_uniform "
            "fourier_ellipsoid".split()
        },
        "fourier_shift": FILTERED | {"shift": number(-1, 1)},
        "laplace": FILTERED,
        "spline_filter": FILTERED,
        "spline_filter1d": FILTERED,
        "percentile_filter": FILTERED | {"percentile": one_of(30, 80), "size": one_of(2, 3)},
        "rank_filter": FILTERED | {"rank": one_of(0, 1, -1), "size": one_of(2, 3)},
        "rotate": FILTERED | {"angle": number(-90, 90)},
        "map_coordinates": FILTERED | {"coordinates": array(2, 3, low=0, high=3, kinds="f")},
        "affine_transform": FILTERED | {"matrix": array(2, 2, kinds="f"), "offset": one_of(0.0, 0.4, [0.2, 0.3])},
        "center_of_mass": FILTERED,
        **{
            n: {"input": array(2, 3), "labels": one_of(None, np.array([[0, 1, 1], [1, 0, 2]]))}
            for n in "mean sum sum_labels standard_deviation variance".split()
        },
    },
    "scipy.stats": {
        **{
            n: {"a": array(None, 9, kinds="f")}
            for n in (
                "describe gzscore variation tsem tstd tvar tmean sigmaclip expectile kurtosistest normaltest "
                "skewtest moment"
            ).split()
        },
        **{n: {"samples": array(None, 9, kinds="f")} for n in "circmean circstd circvar directional_stats".split()},
        **{n: {"a": array(9), "b": array(9)} for n in ("ttest_ind", "ttest_rel")},
        "ttest_1samp": {"a": array(3, 9), "popmean": number(-1, 1)},
        **{
            n: {"u_values": array(4, kinds="f"), "v_values": array(5, kinds="f"), "u_weights": like("u_values", 0.2)}
            for n in ("energy_distance", "wasserstein_distance")
        },
        **{n: {"x": array(9, kinds="f"), "y": like("x")} for n in ("linregress", "pearsonr")},
        "boxcox": {"x": array(5, low=0.2, high=2, kinds="f"), "lmbda": number(-1, 1)},
        **{
            n: {"lmb": number(-1, 1), "data": array(5, low=0.2, high=2, kinds="")}
            for n in ("boxcox_llf", "yeojohnson_llf")
        },
        "yeojohnson": {"x": array(5, kinds="f"), "lmbda": number(-1, 1)},
        **{n: {"f_obs": array(4, low=0.2, kinds="f")} for n in ("chisquare", "power_divergence")},
        "entropy": {"pk": POSITIVE, "qk": like("pk", 0.2)},
        "combine_pvalues": {"pvalues": array(4, low=0.1, high=0.9, kinds="f"), "weights": like("pvalues", 0.2)},
        "differential_entropy": {"values": array(2, 9, kinds="f")},
        **{n: {"x": array(2, 5, kinds="f")} for n in ("jarque_bera", "median_abs_deviation")},
        **{n: {"data": array(6, kinds="f")} for n in ("kstat", "kstatvar")},
        **{n: {"x": array(6), "y": array(5), "z": array(6)} for n in ("bartlett", "f_oneway", "levene")},
        "lmoment": {"sample": array(2, 6, kinds="f")},
        "pmean": {"a": POSITIVE, "p": number(-1, 2), "weights": like("a", 0.2)},
        "quantile": {"x": REAL, "p": one_of(0.3, [0.2, 0.6])},
        "scoreatpercentile": {"a": LINE, "per": one_of(30, [20, 70])},
        **{
            n: {"a": array(9, kinds="f"), "proportiontocut": one_of(0.1, 0.3)}
            for n in "trim1 trim_mean trimboth".split()
        },
        "zmap": {"scores": REAL, "compare": array(4, kinds="f")},
        "ttest_ind_from_stats": {
            "mean1": number(0, 1),
            "std1": number(1, 2),
            "nobs1": one_of(9),
            "mean2": number(0, 1),
            "std2": number(1, 2),
            "nobs2": one_of(8),
        },
        "theilslopes": {"y": array(6, kinds="f"), "x": like("y")},
    },
    "scipy.integrate": {
        "cumulative_simpson": {"y": array(2, 5)},
        "cumulative_trapezoid": {"y": ANY},
        "romb": {"y": array(2, 5)},
        "simpson": {"y": array(3, 5)},
        "trapezoid": {"y": ANY},
    },
    "scipy.special": {
        "multigammaln": {"a": number(2, 4), "d": one_of(1, 2)},
        "polygamma": {"n": one_of(0, 1, 2), "x": POSITIVE},
        "factorial": {"n": POSITIVE},
        "comb": {"N": number(3, 5), "k": one_of(2, 1.5)},
        "perm": {"N": number(3, 5), "k": one_of(2)},
        "diric": {"x": REAL, "n": one_of(3, 4)},
        "softplus": {"x": REAL},
        "sinc": {"x": REAL},
        **{
            n: {"n": one_of(0, 1, 2), "z": POSITIVE}
            for n in "spherical_jn spherical_yn spherical_in spherical_kn".split()
        },
        **{
            n: {"v": one_of(0, 1, 0.5), "z": POSITIVE, "n": one_of(0, 1, 2)}
            for n in "jvp yvp ivp kvp h1vp h2vp".split()
        },
        "zeta": {"x": array(low=1.5, high=4, kinds=""), "q": number(0.5, 2)},
        "lambertw": {"z": POSITIVE},
        "kelvin": {"x": POSITIVE},
        "legendre_p": {"n": one_of(0, 2, 3), "z": REAL},
    },
    "scipy.interpolate": {
        "barycentric_interpolate": {"xi": rising(5), "yi": like("xi"), "x": AT},
        "pchip_interpolate": {"xi": rising(5), "yi": like("xi"), "x": AT},
        "griddata": {"points": POINTS, "values": array(7, kinds=""), "xi": IN_PLANE},
        "interpn": {"points": GRID, "values": array(6, 7, kinds=""), "xi": IN_PLANE},
    },
}


def calls(function_of: Any) -> dict[str, Any]:
    """The functions by their full names, with their required arguments and options."""
    table = {**special(), **distributions()}
    for space, functions in REQUIRED.items():
        for name, required in functions.items():
            path = f"{space}.{name}"
            try:
                function = function_of(path)
            except AttributeError:  # an older version of the library
                continue
            table[path] = required, options_of(path, function, required)
    for name, required in SPLINES.items():
        path = f"scipy.interpolate.{name}"
        options = options_of(path, INTERPOLATORS[name], required)
        table[f"{path}()"] = required, options
    return table
