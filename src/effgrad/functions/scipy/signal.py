"""Rules for `scipy.signal`: convolutions in any number of dimensions, recursive filters, and linear transforms.

A recursive filter convolves with its numerator, and then solves the recursion a * y = x for its denominator a. That
recursion is a primitive, whose transpose is the same recursion backward in time.
"""

import inspect
from typing import Any

import scipy.signal
import scipy.special

from effgrad.arrays.layout import PYTHON_NUMBERS, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, plain, plain_tree
from effgrad.errors import NoRule
from effgrad.functions.numpy.padding import pad
from effgrad.functions.numpy.sets import leading_zeros
from effgrad.functions.scipy import banded
from effgrad.functions.scipy.ranks import SIGNAL_RULES
from effgrad.functions.scipy.tables import (
    Calling,
    Running,
    by_matrix,
    python_of,
    reals,
    require,
    rules_of,
    traced_inside,
)
from effgrad.primitives import cotangents
from effgrad.primitives.complexes import conj
from effgrad.primitives.given import with_value
from effgrad.primitives.kinks import without
from effgrad.primitives.primitive import Primitive, general, linear
from effgrad.vocabulary import Axes, Axis, Cotangent, Function, Option, Reached, Value

# Convolutions.


def _window(x: Value, axes: Axes, first: Value, size: Value) -> Value:
    """The part of an array that, along each of the axes, begins at `first` and has `size` elements."""
    index = [slice(None)] * ndim_of(x)
    for axis, start, count in zip(axes, first, size, strict=True):
        index[axis] = slice(start, start + count)
    return x[tuple(index)]


def _convolved_back(g: Cotangent, target: Value, other: Value, axes: Axes, method: str) -> Value:
    whole = convolve(g, np.flip(other, axes), axes=axes, method=method)
    first = [shape_of(other)[axis] - 1 for axis in axes]
    return cotangents.unbroadcast(_window(whole, axes, first, [shape_of(target)[axis] for axis in axes]), target)


def _convolve_value(a: Value, b: Value, axes: Axes, method: str) -> Value:
    if len(axes) < np.ndim(a) or method == "fft":
        return scipy.signal.fftconvolve(a, b, axes=axes)
    if method == "direct" and np.ndim(a) == 2 and np.result_type(a, b).char in "fdFD":
        return scipy.signal.convolve2d(a, b)  # which takes an eighth of the time
    return scipy.signal.convolve(a, b, method=method)


convolve: Primitive = linear(
    _convolve_value,
    lambda g, a, b, axes, method: _convolved_back(g, a, b, axes, method),
    lambda g, a, b, axes, method: _convolved_back(g, b, a, axes, method),
    name="convolve",
)


def crop_to_mode(full: object, a: Value, b: Value, mode: str, axes: Axes) -> Value:
    """The part of a full convolution that a mode asks for."""
    sizes = [(shape_of(a)[axis], shape_of(b)[axis]) for axis in axes]
    if mode == "full":
        return full
    if mode == "same":
        return _window(full, axes, [(n - 1) // 2 for _, n in sizes], [m for m, _ in sizes])
    if mode == "valid":
        return _window(full, axes, [min(pair) - 1 for pair in sizes], [abs(m - n) + 1 for m, n in sizes])
    raise ValueError(f"mode is {mode!r}; choose 'full', 'same' or 'valid'")


def _convolve(in1: Value, in2: Value, mode: str = "full", method: str = "auto") -> Value:
    in1, in2 = np.asarray(in1), np.asarray(in2)
    axes = tuple(range(ndim_of(in1)))
    if not axes:
        return in1 * in2
    if 0 in (size_of(in1), size_of(in2)):
        raise NoRule("scipy.signal.convolve and correlate of an empty array have no derivative rule: leave it out")
    return crop_to_mode(convolve(in1, in2, axes=axes, method=method), in1, in2, mode, axes)


def _fftconvolve(in1: Value, in2: Value, mode: str = "full", axes: Axis = None) -> Value:
    in1, in2 = np.asarray(in1), np.asarray(in2)
    ndim = ndim_of(in1)
    if 0 in (size_of(in1), size_of(in2)):
        return np.zeros(0)
    axes = tuple(range(ndim)) if axes is None else tuple(int(i) % ndim for i in np.atleast_1d(axes))
    return crop_to_mode(convolve(in1, in2, axes=axes, method="fft"), in1, in2, mode, axes)


def _correlate(in1: Value, in2: Value, mode: str = "full", method: str = "auto") -> Value:
    return _convolve(in1, np.flip(conj(np.asarray(in2))), mode, method)


def _convolve2d(in1: Value, in2: Value, mode: str = "full", boundary: str = "fill", fillvalue: Value = 0) -> Value:
    in1, in2 = np.asarray(in1), np.asarray(in2)
    if mode == "valid" and shape_of(in1) < shape_of(in2):
        in1, in2 = in2, in1
    if boundary in ("fill", "pad") and type(fillvalue) in PYTHON_NUMBERS and fillvalue == 0:
        return _convolve(in1, in2, mode, "direct")
    around = [(n - 1, n - 1) for n in shape_of(in2)]
    if boundary in ("fill", "pad"):
        padded = pad(in1, around, constant_values=fillvalue)
    else:
        beyond: Any = "wrap" if boundary in ("wrap", "circular") else "symmetric"
        padded = np.pad(in1, around, mode=beyond)
    full = _convolve(padded, in2, "valid", "direct")
    return crop_to_mode(full, in1, in2, mode, (0, 1))


def _correlate2d(in1: Value, in2: Value, mode: str = "full", boundary: str = "fill", fillvalue: object = 0) -> Value:
    if mode == "valid" and shape_of(in1) < shape_of(in2):
        # SciPy exchanges the arrays before it takes the conjugate of the second one.
        return np.flip(_correlate2d(in2, in1, mode, boundary, fillvalue))
    turned = np.flip(conj(np.asarray(in2)))
    if mode != "same":
        return _convolve2d(in1, turned, mode, boundary, fillvalue)
    # For a kernel of even length n, a correlation is centred at n // 2 and a convolution at (n - 1) // 2.
    full = _convolve2d(in1, turned, "full", boundary, fillvalue)
    return _window(full, (0, 1), [n // 2 for n in shape_of(in2)], shape_of(in1))


# Recursive filters, along the last axis.


def _delayed_products(g: Cotangent, y: Value, a: Value) -> Value:
    """The sum of g[n] y[n - delay] over all n and rows, for each delay."""
    n = shape_of(y)[-1]
    return np.stack([np.sum(g[..., k:] * y[..., : n - k]) for k in range(shape_of(a)[0])])


def _recursive_by_denominator(g: Cotangent, y: Value, a: Value, x: Value) -> Value:
    return -_delayed_products(_backward(a, g), y, a)


def _backward(a: Value, g: Cotangent) -> Value:
    return np.flip(recursive(a, np.flip(g, -1)), -1)


# The solution y of a * y = x, for each row of x.
recursive: Primitive = general(
    lambda a, x: scipy.signal.lfilter([1.0], a, x),
    jvp=(lambda t, y, a, x: -recursive(a, _taps(t, y)), lambda t, y, a, x: recursive(a, t)),
    vjp=(_recursive_by_denominator, lambda g, y, a, x: _backward(a, g)),
    name="lfilter",
)


def _taps(b: Value, x: Value) -> Value:
    """The causal convolution of a short filter with each row: a sum of delayed rows."""
    n, count = shape_of(x)[-1], max(min(shape_of(b)[0], shape_of(x)[-1]), 1)
    before = np.zeros((*shape_of(x)[:-1], count - 1))
    padded = np.concatenate([before, x], axis=-1) if count > 1 else x
    parts = [b[k] * padded[..., count - 1 - k : count - 1 - k + n] for k in range(count)]
    return sum(parts[1:], parts[0])


def lfilter(b: Value, a: Value, x: Value, axis: int = -1, zi: object = None) -> Value:
    b, a, x = np.atleast_1d(b), np.atleast_1d(a), np.asarray(x)
    x, n = np.moveaxis(x, axis, -1), shape_of(x)[axis]
    order = max(shape_of(a)[0], shape_of(b)[0]) - 1
    # The initial state is the contribution of earlier inputs to the next outputs.
    if zi is None:
        y = recursive(a, _taps(b, x))
        return np.moveaxis(y, -1, axis)
    zi = np.moveaxis(np.asarray(zi), axis, -1)
    ahead = np.concatenate([x, np.zeros((*shape_of(x)[:-1], order))], axis=-1)
    state = np.concatenate([zi, np.zeros((*shape_of(zi)[:-1], n))], axis=-1)
    forced = _taps(b, ahead) + state * a[0]
    y = recursive(a, forced[..., :n])
    silent = np.concatenate([y, np.zeros((*shape_of(y)[:-1], order))], axis=-1)
    final = (forced - _taps(a, silent))[..., n:] / a[0]
    return np.moveaxis(y, -1, axis), np.moveaxis(final, -1, axis)


def _lfilter_zi(b: Value, a: Value) -> Value:
    """The initial state in which a filter's output for the constant input 1 is constant."""
    b, a = np.atleast_1d(b) / a[0], np.atleast_1d(a) / a[0]
    n = max(shape_of(a)[0], shape_of(b)[0])
    a, b = (np.concatenate([c, np.zeros(n - shape_of(c)[0])]) for c in (a, b))
    first = np.arange(n - 1) == 0
    return np.linalg.solve(np.eye(n - 1) - np.eye(n - 1, k=1) + a[1:, None] * first, b[1:] - a[1:] * b[0])


def _sosfilt(sos: Value, x: Value, axis: int = -1, zi: Value = None) -> Value:
    sos, final = np.asarray(sos), []
    for k in range(shape_of(sos)[0]):
        b, a = sos[k, :3], sos[k, 3:]
        if zi is None:
            x = lfilter(b, a, x, axis)
        else:
            x, state = lfilter(b, a, x, axis, zi[k])
            final.append(state)
    return x if zi is None else (x, np.stack(final))


def _sosfilt_zi(sos: Value) -> Value:
    scale, states = 1.0, []
    for k in range(shape_of(sos)[0]):
        b, a = sos[k, :3], sos[k, 3:]
        states.append(scale * _lfilter_zi(b, a))
        scale = scale * np.sum(b) / np.sum(a)
    return np.stack(states)


def _deconvolve(signal: Value, divisor: Value) -> Value:
    signal, divisor = np.atleast_1d(signal), np.atleast_1d(divisor)
    count = shape_of(signal)[0] - shape_of(divisor)[0] + 1
    if count < 1:
        return [], signal
    impulse = np.zeros(count)
    impulse[0] = 1.0
    quotient = lfilter(signal, divisor, impulse)
    return quotient, signal - _convolve(divisor, quotient, "full", "direct")


def _unique_roots(p: Value, tol: float = 1e-3, rtype: str = "min") -> tuple[Value, Value]:
    p = np.asarray(p)
    apart = evaluated(lambda p: len(scipy.signal.unique_roots(p, tol, rtype)[0]) == len(p), p)
    require(bool(apart), "signal.unique_roots", "roots that are apart; where they meet, they are not smooth")
    return p, np.ones(shape_of(p), int)


# Linear functions of a signal.


def _hilbert(x: Value, N: Value = None, axis: int = -1) -> Value:
    n = shape_of(x)[axis] if N is None else N
    weight = np.where(np.arange(n) < (n + 1) // 2, 2.0, 0.0)
    weight[0] = 1.0
    if n % 2 == 0:
        weight[n // 2] = 1.0
    spectrum = np.fft.fft(np.asarray(x), n, axis)
    shape = [1] * ndim_of(x)
    shape[axis] = n
    return np.fft.ifft(spectrum * weight.reshape(shape), axis=axis)


def _by_matrix(name: str) -> Function:
    """Return the rule of a function that is linear along an axis; its other arguments are constants."""
    function = getattr(scipy.signal, name)
    default = inspect.signature(function).parameters["axis"].default

    def rule(x: Value, *args: Value, **kwargs: Option) -> Value:
        require(not traced_inside((args, kwargs)), f"signal.{name}", "its first argument only")
        if name == "savgol_filter":
            reals("signal.savgol_filter", x)
        positional = inspect.signature(function).bind(x, *args, **kwargs).arguments
        axis = positional.get("axis", default)
        rest = {key: value for key, value in positional.items() if key not in ("x", "axis")}
        return by_matrix(lambda rows: function(rows, axis=0, **rest), np.asarray(x), axis)

    return rule


def _upfirdn(
    h: Value, x: Value, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Option = 0
) -> Value:
    require(not traced_inside(h) and mode == "constant" and cval == 0, "signal.upfirdn", "x, padded with zeros")
    return by_matrix(lambda rows: scipy.signal.upfirdn(h, rows, up, down, axis=0), x, axis)


# Functions with a shortcut.


# Older versions of SciPy leave the first coefficient out.
_DIVIDES = scipy.signal.lfiltic([1.0], [2.0, 1.0], [1.0])[0] == -0.5


def _lfiltic(b: Value, a: Value, y: Value, x: Value = None) -> Value:
    first = np.ravel(a)[0] if _DIVIDES else 1.0
    return _PYTHON["lfiltic"](np.asarray(b) / first, np.asarray(a) / first, y, x)


def _lp2hp(b: Value, a: Value, wo: Value = 1.0) -> Value:
    """The high pass of frequency 1, and then a filter of the same kind with another frequency."""
    return scipy.signal.lp2lp(*_PYTHON["lp2hp"](b, a, 1.0), wo)


def _normalize(b: Value, a: Value) -> Value:
    """A filter whose leading coefficients, where they are 0 and so left out, have no derivative."""
    num, den = _PYTHON["normalize"](b, a)
    rows = b if np.ndim(b) and np.ndim(b[0]) else [np.atleast_1d(b)]
    lost = [row[: max(len(row) - shape_of(num)[-1], 0)] for row in rows]
    return without(num, *lost, leading_zeros(a)), without(den, leading_zeros(a))


def _without_zeros(name: str, step: int) -> Function:
    """The definition of a function that leaves out zeros at the beginning of its polynomials, or (-1) at their end."""

    def definition(b: Value, a: Value, *args: Option, **options: Option) -> Value:
        lost = [leading_zeros(np.atleast_1d(p)[::step]) for p in (b, a)]
        return tuple(without(part, *lost) for part in _PYTHON[name](b, a, *args, **options))

    return definition


def _solveh_banded(ab: Value, b: Value, calc_logdet: Option = False) -> tuple[Value, Value, int]:
    """A banded system of `whittaker_henderson`, and the logarithm of its determinant."""
    logdet = 2 * np.sum(np.log(banded.RULES["cholesky_banded"](ab, lower=True)[0])) if calc_logdet else 0.0
    return banded.RULES["solveh_banded"](ab, b, lower=True), logdet, 0


def _lsim(system: Value, U: Value, T: Value, X0: Value = None, interp: Option = True) -> Value:
    """The response to an input of zeros: that to an input of ones less that of the system at rest to ones."""
    found = _PYTHON["lsim"](system, U, T, X0, interp)
    if not traced_inside(U) or np.any(plain(U)):
        return found
    ones = np.ones(shape_of(U))
    _, y, x = _PYTHON["lsim"](system, U + ones, T, X0, interp)
    _, rest_y, rest_x = _PYTHON["lsim"](system, ones, T, None, interp)
    return T, *with_value((y - rest_y, x - rest_x), plain_tree(found[1:]), "lsim")


_lsim.runs_python = True  # type: ignore[attr-defined]


def _chirp_phase(
    t: Value, f0: Value, t1: Value, f1: Value, method: str = "linear", vertex_zero: Option = True
) -> Value:
    """The phase of a sweep; between equal frequencies, that of the usual formula with its limits."""
    if plain(f0) != plain(f1) or method[:3] not in ("log", "lo", "hyp"):
        return _python_of_phase(t, f0, t1, f1, method, vertex_zero)
    require(method[:3] != "hyp", "signal.chirp", "frequencies that differ, where the sweep is hyperbolic")
    part = np.asarray(t) / t1
    return 2 * np.pi * f0 * t * scipy.special.exprel(np.log(f1 / f0) * part)


_python_of_phase = python_of(scipy.signal._waveforms._chirp_phase)
# Functions that leave out zeros at an end of their polynomials.
TRIMMING = {"bilinear": 1, "residue": 1, "residuez": -1}
_PYTHON = {
    name: python_of(getattr(scipy.signal, name)) for name in ("lfiltic", "lp2hp", "lsim", "normalize", *TRIMMING)
}
_SMOOTHING: Value = vars(scipy.signal).get("_whittaker")  # from SciPy 1.18 on
RULES: list[Reached] = [
    *((scipy.signal, name, Running(getattr(scipy.signal, name), definition)) for name, definition in {
        "lfiltic": _lfiltic, "lp2hp": _lp2hp, "normalize": _normalize,
        **{name: _without_zeros(name, step) for name, step in TRIMMING.items()},
    }.items()),
    *(rules_of(_SMOOTHING, {"_solveh_banded": _solveh_banded}) if _SMOOTHING else ()),
    (scipy.signal, "lsim", Calling(_lsim)),
    (scipy.signal._waveforms, "_chirp_phase", Running(scipy.signal._waveforms._chirp_phase, _chirp_phase)),
    *rules_of(scipy.signal, {
        "convolve": _convolve, "correlate": _correlate, "fftconvolve": _fftconvolve, "oaconvolve": _fftconvolve,
        "convolve2d": _convolve2d, "correlate2d": _correlate2d, "lfilter": lfilter, "lfilter_zi": _lfilter_zi,
        "sosfilt": _sosfilt, "sosfilt_zi": _sosfilt_zi, "deconvolve": _deconvolve, "hilbert": _hilbert,
        "upfirdn": _upfirdn, "unique_roots": _unique_roots,
        **{name: _by_matrix(name) for name in ("resample", "resample_poly", "decimate", "savgol_filter", "czt")},
    }),
    *SIGNAL_RULES,
]  # fmt: skip
