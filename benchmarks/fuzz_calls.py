"""Random calls of NumPy and SciPy, against plain values and Ridders differences.

    PYTHONPATH=src:tests python -m benchmarks.fuzz_calls [--count 10000] [--first 0] [--seed 0] [--only linalg]
        [--table rows]

Each call draws a function, arguments (of several shapes, not contiguous, transposed, of one element, empty, float32,
complex), options by position or by name, and the float argument that is traced. The value has to be the library's to
the bit, with its shape and dtype. Forward, reverse and second derivatives have to agree with differences of plain
values, or the call is refused by an error of ours. A call that the library rejects has to be rejected.

`--table rows` draws the functions of `benchmarks/row_calls.py`, which are those of the other rows. A call that takes
more than `--seconds` of processor time is counted, and given up.

It prints each kind of disagreement when it first comes, and in the end a shortest call that shows it, and how often
each outcome came. A long run is the sum of short ones with one seed: `--first 20000` goes on where `--count 20000`
ended.
"""

import argparse
import collections
import functools
import inspect
import signal
import warnings
from typing import Any

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
from benchmarks import row_calls
from differences import directional, parts

from effgrad import compile, grad, jvp
from effgrad.errors import EffgradError

Draw = Any  # a function of the generator and the arguments before it


def array(*dims: int | None) -> Draw:
    """An array of so many axes (None: of any number up to 3)."""

    def draw(rng: Any, known: dict[str, Any]) -> Any:
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4], rng.integers(0, 4))) if dims == (None,) else tuple(
            int(rng.integers(1, 5)) if n is None else n for n in dims)  # fmt: skip
        if rng.random() < 0.03 and shape:
            shape = (0, *shape[1:])
        return formed(rng, rng.uniform(-1, 1, shape))

    return draw


def formed(rng: Any, x: Any) -> Any:
    """The array in one of several forms."""
    kind = rng.random()
    if kind < 0.08:
        x = x.astype(np.float32)
    elif kind < 0.2:
        x = x + 1j * rng.uniform(-1, 1, x.shape)
    layout = rng.random()
    if layout < 0.15 and x.ndim:
        x = np.repeat(x, 2, axis=-1)[..., ::2]
    elif layout < 0.3:
        x = np.asfortranarray(x)
    elif layout < 0.4 and x.ndim:
        x = x[::-1]
    return x


def like(name: str, positive: bool = False) -> Draw:
    def draw(rng: Any, known: dict[str, Any]) -> Any:
        x = rng.uniform(0.1 if positive else -1, 1, np.shape(known[name]))
        return x if positive else formed(rng, x)

    return draw


def square(positive: bool = False, batch: bool = True) -> Draw:
    def draw(rng: Any, known: dict[str, Any]) -> Any:
        n = int(rng.integers(1, 4))
        shape = (2, n, n) if batch and rng.random() < 0.3 else (n, n)
        x = formed(rng, rng.uniform(-1, 1, shape))
        x = x + np.eye(n, dtype=x.dtype) * 2
        return np.matmul(x, np.conj(np.swapaxes(x, -1, -2))) if positive and rng.random() < 0.9 else x

    return draw


def axis(many: bool = False, name: str = "a") -> Draw:
    def draw(rng: Any, known: dict[str, Any]) -> Any:
        n = np.ndim(next(iter(known.values())))
        if n == 0 or rng.random() < 0.2:
            return None if many or rng.random() < 0.5 else 0
        if many and rng.random() < 0.3:
            return tuple(int(i) for i in rng.permutation(n)[: rng.integers(1, n + 1)])
        return int(rng.integers(-n, n))

    return draw


def one_of(*values: Any) -> Draw:
    return lambda rng, known: values[int(rng.integers(len(values)))]


def right_hand(rng: Any, known: dict[str, Any]) -> Any:
    n = np.shape(next(iter(known.values())))[-1]
    shape = (n,) if rng.random() < 0.5 else (n, int(rng.integers(1, 4)))
    return formed(rng, rng.uniform(-1, 1, shape))


def number(low: float, high: float) -> Draw:
    return lambda rng, known: float(rng.uniform(low, high))


def times(draw: Draw, shift: float, scale: float) -> Draw:
    return lambda rng, known: draw(rng, known) * scale + shift


ANY = array(None)
LINE = lambda rng, known: formed(rng, rng.uniform(-1, 1, int(rng.integers(1, 7))))  # noqa: E731
PLANE = lambda rng, known: formed(rng, rng.uniform(-1, 1, tuple(rng.integers(1, 5, 2))))  # noqa: E731
INNER = {"axis": axis(True), "keepdims": one_of(True, False)}
POSITIVE = lambda rng, known: rng.uniform(0.2, 2.0, tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3))))  # noqa: E731

# Functions, their required arguments in order, and their options.
CALLS: dict[str, tuple[dict[str, Draw], dict[str, Draw]]] = {
    **{f"numpy.{n}": ({"a": ANY}, INNER) for n in (
        "sum prod max min mean nansum nanprod nanmean nanmax nanmin median nanmedian ptp".split())},
    **{f"numpy.{n}": ({"a": ANY}, {**INNER, "ddof": one_of(0, 1, 2)}) for n in "var std nanvar nanstd".split()},
    **{f"numpy.{n}": ({"a": ANY}, {"axis": axis()}) for n in "cumsum cumprod nancumsum nancumprod sort".split()},
    **{f"numpy.{n}": ({"a": ANY, "q": one_of(0.3, [0.1, 0.6], 0.0, 1.0)}, {**INNER, "method": one_of(
        "linear", "hazen", "lower", "nearest", "midpoint", "weibull", "median_unbiased", "inverted_cdf")})
       for n in "quantile nanquantile".split()},
    "numpy.percentile": ({"a": ANY, "q": one_of(30.0, [10, 60])}, INNER),
    "numpy.average": ({"a": ANY}, {"axis": axis(True), "weights": like("a", True), "keepdims": one_of(True, False)}),
    "numpy.diff": ({"a": ANY}, {
        "n": one_of(0, 1, 2), "axis": axis(), "prepend": number(-1, 1), "append": number(-1, 1)}),
    "numpy.gradient": ({"f": ANY}, {"axis": axis(), "edge_order": one_of(1, 2)}),
    "numpy.trapezoid": ({"y": ANY}, {"dx": number(0.5, 2), "axis": axis()}),
    "numpy.clip": ({"a": ANY, "a_min": number(-1, 0.5), "a_max": number(-0.5, 1)}, {}),
    **{f"numpy.{n}": ({"m": ANY}, {"axis": axis(True)}) for n in ("flip",)},
    "numpy.roll": ({"a": ANY, "shift": one_of(1, -2, 5)}, {"axis": axis()}),
    "numpy.rot90": ({"m": PLANE}, {"k": one_of(1, 2, -1), "axes": one_of((0, 1), (1, 0))}),
    "numpy.ravel": ({"a": ANY}, {"order": one_of("C", "F", "A", "K")}),
    "numpy.reshape": ({"a": PLANE, "shape": one_of(-1, (1, -1), (-1, 1))}, {"order": one_of("C", "F", "A")}),
    "numpy.swapaxes": ({"a": PLANE, "axis1": one_of(0, -1), "axis2": one_of(1, -2)}, {}),
    "numpy.transpose": ({"a": PLANE}, {"axes": one_of((1, 0), (0, 1), (-1, 0), None)}),
    "numpy.repeat": ({"a": ANY, "repeats": one_of(1, 2)}, {"axis": axis()}),
    "numpy.tile": ({"A": ANY, "reps": one_of(2, (2, 1), (1, 2, 2))}, {}),
    "numpy.delete": ({"arr": LINE, "obj": one_of(0, -1, [0], slice(0, 2))}, {}),
    "numpy.insert": ({"arr": LINE, "obj": one_of(0, -1, 1), "values": number(-1, 1)}, {}),
    "numpy.append": ({"arr": ANY, "values": like("arr")}, {"axis": axis()}),
    "numpy.pad": ({"array": PLANE, "pad_width": one_of(1, (1, 2), ((0, 1), (2, 1)))}, {"mode": one_of(
        "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap")}),
    "numpy.take": ({"a": ANY, "indices": one_of(0, [0, 0], -1)}, {"axis": axis(), "mode": one_of("wrap", "clip")}),
    **{f"numpy.{n}": ({"m": ANY}, {"k": one_of(-1, 0, 1)}) for n in "tril triu".split()},
    "numpy.trace": ({"a": PLANE}, {"offset": one_of(-1, 0, 1)}),
    "numpy.diagonal": ({"a": PLANE}, {"offset": one_of(-1, 0, 1)}),
    "numpy.unwrap": ({"p": times(ANY, 0, 9)}, {"axis": axis(), "period": one_of(1.0, 6.0)}),
    "numpy.nan_to_num": ({"x": ANY}, {"nan": number(0, 1)}),
    "numpy.unique": ({"ar": PLANE}, {"axis": one_of(None, 0, 1)}),
    "numpy.cov": ({"m": PLANE}, {"rowvar": one_of(True, False), "bias": one_of(True, False), "ddof": one_of(0, 1)}),
    "numpy.corrcoef": ({"x": PLANE}, {"rowvar": one_of(True, False)}),
    **{f"numpy.{n}": ({"a": LINE, "v": LINE}, {"mode": one_of("full", "same", "valid")})
       for n in "convolve correlate".split()},
    "numpy.dot": ({"a": ANY, "b": like("a")}, {}), "numpy.inner": ({"a": ANY, "b": like("a")}, {}),
    "numpy.vdot": ({"a": ANY, "b": like("a")}, {}), "numpy.outer": ({"a": ANY, "b": ANY}, {}),
    "numpy.kron": ({"a": ANY, "b": ANY}, {}), "numpy.tensordot": ({"a": ANY, "b": like("a")}, {"axes": one_of(0, 1)}),
    "numpy.interp": ({"x": ANY, "xp": lambda rng, known: np.sort(rng.uniform(-1, 1, 4)),
                      "fp": lambda rng, known: rng.uniform(-1, 1, 4)}, {
        "left": number(0, 1), "period": one_of(None, 1.5)}),
    "numpy.polyval": ({"p": LINE, "x": ANY}, {}), "numpy.polyder": ({"p": LINE}, {"m": one_of(1, 2)}),
    "numpy.polyint": ({"p": LINE}, {"m": one_of(1, 2), "k": one_of(None, 0.5)}),
    "numpy.poly": ({"seq_of_zeros": LINE}, {}),
    "numpy.polyfit": ({"x": lambda rng, known: rng.uniform(-1, 1, 6), "y": like("x"), "deg": one_of(1, 2)},
                      {"w": like("x", True)}),
    "numpy.vander": ({"x": LINE}, {"N": one_of(2, 4), "increasing": one_of(True, False)}),
    "numpy.sinc": ({"x": ANY}, {}), "numpy.angle": ({"z": ANY}, {"deg": one_of(True, False)}),
    "numpy.linalg.norm": ({"x": PLANE}, {"ord": one_of(None, 1, 2, -1, -2, np.inf, -np.inf, "fro", "nuc", 3),
                                         "axis": one_of(None, 0, -1, (0, 1), (1, 0)), "keepdims": one_of(True, False)}),
    **{f"numpy.linalg.{n}": ({"a": square()}, {}) for n in "inv det slogdet eigvals".split()},
    **{f"numpy.linalg.{n}": ({"a": square(True)}, {"UPLO": one_of("L", "U")}) for n in ("eigvalsh",)},
    "numpy.linalg.cholesky": ({"a": square(True)}, {"upper": one_of(True, False)}),
    "numpy.linalg.solve": ({"a": square(), "b": right_hand}, {}),
    "numpy.linalg.lstsq": ({"a": PLANE, "b": lambda rng, known: rng.uniform(-1, 1, np.shape(known["a"])[0])}, {}),
    "numpy.linalg.pinv": ({"a": PLANE}, {"rcond": one_of(None, 1e-9)}),
    "numpy.linalg.matrix_power": ({"a": square(), "n": one_of(-2, -1, 0, 1, 2, 3, 5)}, {}),
    "numpy.linalg.cond": ({"x": square()}, {"p": one_of(None, 1, 2, -2, "fro", np.inf)}),
    "numpy.linalg.svdvals": ({"x": PLANE}, {}),
    "numpy.linalg.qr": ({"a": PLANE}, {"mode": one_of("reduced", "complete", "r", "raw")}),
    **{f"{m}.fft.{n}": ({"a" if m == "numpy" else "x": ANY}, {"n": one_of(None, 2, 5), "axis": axis(), "norm": one_of(
        None, "ortho", "forward")}) for m in ("numpy", "scipy") for n in "fft ifft rfft irfft hfft ihfft".split()},
    **{f"scipy.fft.{n}": ({"x": ANY}, {"type": one_of(1, 2, 3, 4), "n": one_of(None, 3), "axis": axis(), "norm": one_of(
        None, "ortho", "forward")}) for n in "dct idct dst idst".split()},
    **{f"scipy.linalg.{n}": ({"A": square()}, {}) for n in "expm sqrtm logm cosm sinm signm".split()},
    **{f"scipy.linalg.{n}": ({"a": square()}, {}) for n in "inv det svdvals eigvals lu_factor".split()},
    "scipy.linalg.cholesky": ({"a": square(True)}, {"lower": one_of(True, False)}),
    "scipy.linalg.eigvalsh": ({"a": square(True)}, {"lower": one_of(True, False)}),
    "scipy.linalg.solve": ({"a": square(True), "b": right_hand}, {"lower": one_of(True, False), "assume_a": one_of(
        None, "gen", "sym", "her", "pos", "upper triangular", "lower triangular")}),
    "scipy.linalg.solve_triangular": ({"a": square(), "b": right_hand}, {
        "trans": one_of(0, 1, 2, "N", "T", "C"), "lower": one_of(True, False), "unit_diagonal": one_of(True, False)}),
    "scipy.linalg.fractional_matrix_power": ({"A": square(), "t": one_of(-1.5, 0.5, 2.0)}, {}),
    "scipy.linalg.polar": ({"a": square()}, {"side": one_of("left", "right")}),
    "scipy.linalg.pinv": ({"a": PLANE}, {"rtol": one_of(None, 1e-9)}),
    "scipy.linalg.lu": ({"a": PLANE}, {"permute_l": one_of(True, False)}),
    "scipy.linalg.qr": ({"a": PLANE}, {
        "mode": one_of("full", "economic", "r", "raw"), "pivoting": one_of(True, False)}),
    **{f"scipy.linalg.{n}": ({"c": LINE}, {}) for n in "toeplitz circulant hankel".split()},
    **{f"scipy.special.{n}": ({"x": POSITIVE}, {}) for n in (
        "gamma gammaln digamma erf erfc erfcx expit log_ndtr ndtr j0 j1 y0 i0 i1 k0 k1 expi exp1 spence".split())},
    **{f"scipy.special.{n}": ({"a": POSITIVE, "x": like("a", True)}, {}) for n in (
        "gammainc gammaincc beta betaln xlogy rel_entr kl_div jv yv iv kv zeta".split())},
    "scipy.special.logsumexp": ({"a": ANY}, {
        "axis": axis(True), "b": like("a", True), "keepdims": one_of(True, False)}),
    **{f"scipy.special.{n}": ({"x": ANY}, {"axis": axis(True)}) for n in "softmax log_softmax".split()},
    **{f"scipy.ndimage.{n}": ({"input": PLANE, "sigma": number(0.5, 1.5)}, {"mode": one_of(
        "reflect", "constant", "nearest", "mirror", "wrap"), "cval": number(0, 1)})
       for n in "gaussian_filter gaussian_laplace gaussian_gradient_magnitude".split()},
    **{f"scipy.ndimage.{n}": ({"input": PLANE, "size": one_of(2, 3)}, {"mode": one_of(
        "reflect", "constant", "nearest", "mirror", "wrap"), "cval": number(0, 1), "origin": one_of(0, -1)})
       for n in "uniform_filter maximum_filter minimum_filter median_filter".split()},
    **{f"scipy.ndimage.{n}": ({"input": PLANE}, {"axis": axis(), "mode": one_of("reflect", "wrap")})
       for n in "sobel prewitt".split()},
    "scipy.ndimage.shift": ({"input": PLANE, "shift": number(-1, 1)}, {"order": one_of(1, 2, 3), "cval": number(0, 1)}),
    "scipy.ndimage.zoom": ({"input": PLANE, "zoom": one_of(1.5, 2)}, {"order": one_of(1, 3)}),
    **{f"scipy.signal.{n}": ({"in1": ANY, "in2": like("in1")}, {"mode": one_of("full", "same", "valid")})
       for n in "convolve correlate fftconvolve".split()},
    **{f"scipy.signal.{n}": ({"in1": PLANE, "in2": PLANE}, {"mode": one_of("full", "same", "valid"), "boundary": one_of(
        "fill", "wrap", "symm"), "fillvalue": one_of(0, 0.5)}) for n in "convolve2d correlate2d".split()},
    "scipy.signal.lfilter": ({"b": LINE, "a": times(array(2), 2, 0.3), "x": ANY}, {"axis": axis()}),
    "scipy.signal.hilbert": ({"x": ANY}, {"axis": axis(), "N": one_of(None, 3)}),
    "scipy.signal.detrend": ({"data": ANY}, {"axis": axis(), "type": one_of("linear", "constant")}),
    **{f"scipy.stats.{n}": ({"a": ANY}, {"axis": axis(), "ddof": one_of(0, 1)}) for n in "sem gstd zscore".split()},
    **{f"scipy.stats.{n}": ({"a": ANY}, {"axis": axis()}) for n in "gmean hmean skew kurtosis moment iqr".split()},
    **{f"scipy.stats.norm.{n}": ({"x": ANY}, {"loc": number(-1, 1), "scale": number(0.5, 2)})
       for n in "pdf logpdf cdf logcdf sf logsf".split()},
    **{f"scipy.stats.gamma.{n}": ({"x": POSITIVE, "a": number(0.5, 2)}, {"scale": number(0.5, 2)})
       for n in "pdf logpdf cdf sf".split()},
    "scipy.stats.poisson.logpmf": ({"k": one_of(2, [1, 2]), "mu": number(0.5, 3)}, {}),
    "scipy.stats.binom.logpmf": ({"k": one_of(2, [1, 2]), "n": one_of(4), "p": number(0.2, 0.8)}, {}),
}  # fmt: skip


def function_of(path: str) -> Any:
    if path in row_calls.PROGRAMS:
        return row_calls.PROGRAMS[path]
    module, *names = path.split(".")
    return functools.reduce(getattr, names, {"numpy": np, "scipy": scipy}[module])


def all_options(table: dict[str, Any]) -> dict[str, Any]:
    """A table with the options that it leaves out, drawn by their names."""
    return {
        path: (required, {**row_calls.options_of(path, function_of(path), required), **options})
        for path, (required, options) in table.items()
    }


def is_float(value: Any) -> bool:
    return isinstance(value, float | np.ndarray) and np.result_type(value).kind in "fc"


def drawn(path: str, rng: Any, table: Any = CALLS, rejected: bool = False) -> tuple[Any, str, Any]:
    """A program of one traced argument, how it is written, and that argument.

    With `rejected`, a fifth of the programs give an option a value of no class that it takes.
    """
    required, options = table[path]
    known: dict[str, Any] = {}
    for name, draw in required.items():
        known[name] = draw(rng, known)
    often = min(0.6, 2.0 / max(len(options), 1))  # with all options at once most calls are rejected
    chosen = {name: draw(rng, known) for name, draw in options.items() if rng.random() < often}
    named = {name: value for name, value in required.items() if rng.random() < 0.15}
    try:
        kinds = {p.name: p.kind for p in inspect.signature(function_of(path)).parameters.values()}
    except ValueError:
        kinds = {}
    by_name = any(kinds.get(name) == inspect.Parameter.POSITIONAL_OR_KEYWORD for name in named)
    first = next((i for i, name in enumerate(known) if name in named), len(known)) if by_name else len(known)
    names = list(known)
    everything = {**known, **chosen}
    wrong = [name for name in kinds if name in REJECTED]
    if rejected and wrong and rng.random() < 0.2:
        name = wrong[int(rng.integers(len(wrong)))]
        everything[name] = REJECTED[name]
    floats = [name for name, value in everything.items() if is_float(value)]
    traced = floats[int(rng.integers(len(floats)))] if floats else ""
    by_position = names[:first]

    overwrites = any(name.startswith("overwrite") and value for name, value in everything.items())

    def program(x: Any) -> Any:
        values = {**everything, traced: x}
        if overwrites:
            values = {name: laid_as(v, v.copy()) if type(v) is np.ndarray else v for name, v in values.items()}
        rest = {name: values[name] for name in everything if name not in by_position}
        return function_of(path)(*[values[name] for name in by_position], **rest)

    arrays = [value for value in everything.values() if isinstance(value, np.ndarray)]
    single = [np.result_type(value).char in "fF" for value in arrays] + [v is np.float32 for v in everything.values()]
    program.single = any(single)  # type: ignore[attr-defined]
    program.overwrites = overwrites  # type: ignore[attr-defined]
    program.unset = reads_unset_memory(path, everything)  # type: ignore[attr-defined]
    text = ", ".join([repr(known[n]) for n in by_position]
                     + [f"{n}={everything[n]!r}" for n in everything if n not in by_position])  # fmt: skip
    return program, f"{path}({text})  # traced: {traced}", everything.get(traced)


def reads_unset_memory(path: str, arguments: dict[str, Any]) -> bool:
    """Whether the library's own result is what unset memory happens to hold, so that there is no value to compare.

    NumPy's complex-to-real transforms read the first element of the transformed axis before they look at its length.
    """
    if path not in ("numpy.fft.irfft", "numpy.fft.hfft") or arguments.get("n") is None:
        return False
    shape, axis = np.shape(arguments["a"]), arguments.get("axis", -1)
    return len(shape) > 0 and shape[-1 if axis is None else axis] == 0


# Values of options that are of no class which NumPy and SciPy take, by the names of the options.
REJECTED: dict[str, Any] = {
    "where": 2, "ord": "bad", "axis": 9, "axes": (9, 9), "keepdims": "bad", "norm": "bad", "mode": "bad",
    "method": "bad", "dtype": "bad", "casting": "bad", "order": "bad", "ddof": "bad", "initial": "bad", "kind": "bad",
    "UPLO": "bad", "n": 2.5, "k": "bad", "type": 9, "deg": [], "nan_policy": "bad", "out": 2,
}  # fmt: skip


def real_parts(result: Any) -> Any:
    """A traced result as one vector of real numbers."""
    if isinstance(result, tuple | list):
        return np.concatenate([real_parts(item) for item in result] or [np.zeros(0)])
    flat = np.ravel(result)
    return np.concatenate([np.real(flat), np.imag(flat)]) if np.iscomplexobj(result) else flat * 1.0


def outcome(program: Any, x: Any, rng: Any) -> str:
    """How a call compares with its plain value and differences."""
    layouts: list[Any] = []

    def observed(x: Any) -> Any:
        result = program(x)
        layouts.append([layout(leaf, x) for leaf in leaves(result)])
        return result

    try:
        value = observed(x)
    except Exception:
        try:
            jvp(program, (x,), (np.ones_like(x),))
        except Exception:
            return "rejected by both"
        return "WRONG: accepted what the library rejects"
    u = rng.normal(size=np.shape(x))
    u = (u + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else u).astype(np.result_type(x))[()]
    try:
        traced, tangent = jvp(observed, (x,), (u,))
    except EffgradError:
        return "refused"
    except Exception as error:
        return f"RAW: {type(error).__name__}"
    if getattr(program, "unset", False):
        return "no defined value"
    if not same(traced, value):
        # Powers that begin with random vectors.
        defined = all(same(program(x), value) for _ in range(9))
        return "WRONG: value" if defined else "no defined value"
    if layouts[0] != layouts[1] and not program.overwrites:  # a result may lie in an argument's place
        return "LAYOUT: strides or sharing"
    if rng.random() < 0.1 and (wrong := of_compiled_value(program, x, u, value)):
        return wrong
    numbers = all(np.asarray(leaf).dtype.kind in "biufc" for leaf in leaves(value))
    if not numbers or not np.size(parts(value)) or not np.isfinite(parts(value)).all():
        return "no differences"
    return compared(program, x, u, value, tangent, rng)


def layout(result: Any, x: Any) -> Any:
    """The strides of a result, and whether it shares memory with the argument."""
    if np.ndim(result) == 0 or np.size(result) == 0 or not hasattr(result, "strides"):
        return None
    steps = [step for step, n in zip(result.strides, result.shape, strict=True) if n > 1]
    return steps, bool(np.ndim(x) and np.shares_memory(result, x))


def leaves(result: Any) -> Any:
    if isinstance(result, tuple | list):
        for item in result:
            yield from leaves(item)
    else:
        yield result


def same(a: Any, b: Any) -> bool:
    """Whether results are equal to the bit, in shape and in dtype."""
    if isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def laid_as(x: Any, y: Any) -> Any:
    """The elements of y in the order in memory of those of x."""
    if not np.ndim(x) or x.flags.forc:
        return np.asarray(y, order="F" if np.ndim(x) and x.flags.fnc else "C")[()]
    low = sum(min(step, 0) * (n - 1) for step, n in zip(x.strides, x.shape, strict=True))
    high = sum(max(step, 0) * (n - 1) for step, n in zip(x.strides, x.shape, strict=True))
    memory = np.empty((high - low) // x.itemsize + 1, x.dtype)
    result = np.lib.stride_tricks.as_strided(memory[-low // x.itemsize :], x.shape, x.strides)
    result[...] = y
    return result


def compared(program: Any, x: Any, u: Any, value: Any, tangent: Any, rng: Any) -> str:
    if program.single or np.result_type(x).char in "fF" or any(np.result_type(y).char in "fF" for y in leaves(value)):
        return "right in value (single precision)"
    weights, given = rng.normal(size=np.size(parts(value))), x

    def scalar(x: Any) -> Any:
        y = real_parts(program(x))
        return np.sum(weights * (y + 0.3 * y * y))

    try:
        expected, error = directional(lambda x: scalar(laid_as(given, x)), x, u, step=0.005)
    except Exception:  # beside the point the library rejects it: a quantile above 1
        return "differences undecided"
    try:
        reverse = np.real(np.sum(np.conj(grad(scalar)(x)) * u))
        forward = jvp(scalar, (x,), (u,))[1]
    except EffgradError:
        return "refused"
    except Exception as caught:
        return f"RAW: reverse {type(caught).__name__}"
    if not np.isfinite(expected) or error > 1e-6 * (1 + abs(expected)):
        return "differences undecided"
    size = 1e-5 * (1 + abs(expected))
    if abs(forward - expected) > size >= abs(forward - reverse) and is_of_one_side(scalar, x, u, forward):
        return "right, on one side of a kink"
    if not abs(forward - expected) <= size:
        return "NAN: forward" if np.isnan(forward) else "WRONG: forward"
    if not abs(reverse - expected) <= size:
        return "NAN: reverse" if np.isnan(reverse) else "WRONG: reverse"
    if rng.random() < 1 / 6:  # one in ten of all calls that are drawn
        return of_compiled(scalar, x, u, expected, size)
    return of_second_order(scalar, x, u, rng)


def is_of_one_side(scalar: Any, x: Any, u: Any, slope: Any, step: float = 1e-6) -> bool:
    """Whether a slope is that to one side of a kink, by differences to each side."""
    here = scalar(x)
    sides = [(4 * scalar(x + h * u) - 3 * here - scalar(x + 2 * h * u)) / (2 * h) for h in (step, -step)]
    size = 1e-4 * (1 + abs(slope))
    return abs(sides[0] - sides[1]) > 10 * size and min(abs(side - slope) for side in sides) < size


def of_compiled_value(program: Any, x: Any, u: Any, value: Any) -> str:
    """What is wrong with the compiled value, outside derivatives and in one: shape and dtype are the library's."""
    for run in (program, lambda x: jvp(program, (x,), (u,))[0]):
        try:
            found = compile(run, "numpy")(x)
        except EffgradError:
            continue
        except Exception as caught:
            return f"RAW: compiled {type(caught).__name__}"
        if not alike(found, value, getattr(program, "single", False)):
            return "WRONG: compiled value"
    return ""


def alike(a: Any, b: Any, single: bool) -> bool:
    """Whether results have equal shapes and dtypes, and elements equal up to rounding, of `single` precision or not."""
    if isinstance(b, tuple | list):
        return len(a) == len(b) and all(alike(x, y, single) for x, y in zip(a, b, strict=True))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype or b.dtype.kind not in "fc":
        return same(a, b)
    near = float(np.finfo(np.float32 if single else b.dtype).eps) ** 0.5
    return np.allclose(a, b, rtol=near, atol=near * np.max(np.abs(b[np.isfinite(b)]), initial=1e-3), equal_nan=True)


def of_compiled(scalar: Any, x: Any, u: Any, expected: Any, size: Any) -> str:
    try:
        found = np.real(np.sum(np.conj(compile(grad(scalar), "numpy")(x)) * u))
    except EffgradError:
        return "right, compiling refused"
    except Exception as caught:
        return f"RAW: compiled {type(caught).__name__}"
    return "right, compiled" if abs(found - expected) <= size else "WRONG: compiled"


def of_second_order(scalar: Any, x: Any, u: Any, rng: Any) -> str:
    def along(x: Any) -> Any:
        return np.real(np.sum(np.conj(grad(scalar)(x)) * u))

    try:
        second = jvp(along, (x,), (u,))[1]
        expected, error = directional(lambda y: along(laid_as(x, y)), x, u, step=0.005)
    except EffgradError:
        return "right, second order refused"
    except Exception as caught:
        return f"RAW: second order {type(caught).__name__}"
    if not np.isfinite(expected) or error > 1e-5 * (1 + abs(expected)):
        return "right, second differences undecided"
    if abs(second - expected) <= 1e-4 * (1 + abs(expected)):
        return "right"
    return "NAN: second order" if np.isnan(second) else "WRONG: second order"


class Late(BaseException):
    """A call takes too long."""


def limited(judge: Any, seconds: float) -> Any:
    """A judge that gives up after some seconds of processor time."""

    def late(*_: Any) -> None:
        raise Late

    def run(*args: Any) -> str:
        signal.signal(signal.SIGVTALRM, late)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            return str(judge(*args))
        except Late:
            return "given up"
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rejected", action="store_true", help="give a fifth of the calls an option of no class")
    parser.add_argument("--table", choices=("calls", "rows"), default="calls")
    options = parser.parse_args()
    table = all_options(CALLS) if options.table == "calls" else row_calls.calls(function_of)
    paths = [path for path in table if options.only in path]
    if options.table == "rows":
        paths = list(np.random.default_rng(options.seed).permutation(paths))
    counts: collections.Counter[str] = collections.Counter()
    shown: dict[tuple[str, str], tuple[int, str]] = {}
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        for index in range(options.first, options.first + options.count):
            rng = np.random.default_rng([options.seed, index])
            path = paths[index % len(paths)]
            program, text, x = drawn(path, rng, table, options.rejected)
            if x is None:
                counts["nothing to trace"] += 1
                continue
            found = limited(outcome, options.seconds)(program, x, rng)
            counts[found] += 1
            if sum(counts.values()) % 1000 == 0:
                print(f"{index + 1 - options.first} calls, {sum(n for n, _ in shown.values())} to look at", flush=True)
            if found[:3] in ("WRO", "RAW", "NAN", "LAY"):
                times, first = shown.get((found, path), (0, text))
                shown[found, path] = times + 1, min(first, text, key=len)
                if not times:
                    print(f"{found:28} {index} {text[:400]}", flush=True)
    for (found, path), (times, text) in sorted(shown.items()):
        print(f"{found:28} {path} ({times} times): {text[:400]}")
    for found, times in counts.most_common():
        print(f"{times:8} {found}")


if __name__ == "__main__":
    main()
