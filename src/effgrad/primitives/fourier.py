"""Fourier transforms: two linear primitives along one axis, with which the other transforms are written.

The matrices of the transforms are symmetric, so `fft` and `ifft` are their own transposes.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from effgrad.arrays import library_matrices
from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.value import composed
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.given import all_as_computed
from effgrad.primitives.move import rearranging
from effgrad.primitives.primitive import linear
from effgrad.vocabulary import Function, Option, Value

fft: Any = linear(
    lambda a, axis, norm: np.fft.fft(a, None, axis, norm), lambda g, a, axis, norm: fft(g, axis=axis, norm=norm),
    name="fft", counterpart=library_matrices.fourier("fft"),
)  # fmt: skip
ifft: Any = linear(
    lambda a, axis, norm: np.fft.ifft(a, None, axis, norm), lambda g, a, axis, norm: ifft(g, axis=axis, norm=norm),
    name="ifft", counterpart=library_matrices.fourier("ifft"),
)  # fmt: skip


def with_length(a: Value, n: int | None, axis: int) -> Value:
    """Return an array cut or padded with zeros to length `n` along an axis."""
    length = shape_of(a)[axis]
    if n is None or n == length:
        return a
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    axis %= ndim_of(a)
    if n < length:
        return a[(slice(None),) * axis + (slice(n),)]
    return np.pad(a, [(0, n - length) if i == axis else (0, 0) for i in range(ndim_of(a))])


def _fft(a: Value, n: int | None = None, axis: int = -1, norm: Option = None, out: Option = None) -> Value:
    return fft(with_length(a, n, axis), axis=axis, norm=norm)


def _ifft(a: Value, n: int | None = None, axis: int = -1, norm: Option = None, out: Option = None) -> Value:
    return ifft(with_length(a, n, axis), axis=axis, norm=norm)


def _rfft(a: Value, n: int | None = None, axis: int = -1, norm: Option = None, out: Option = None) -> Value:
    if is_complex(a):
        raise TypeError("numpy.fft.rfft takes real input: use numpy.fft.fft")
    full = np.moveaxis(_fft(a, n, axis, norm), axis, -1)
    return np.moveaxis(full[..., : full.shape[-1] // 2 + 1], -1, axis)


def _irfft(a: Value, n: int | None = None, axis: int = -1, norm: Option = None, out: Option = None) -> Value:
    """Return the inverse transform of a Hermitian spectrum given by its first half; its other half is the conjugate."""
    n = 2 * (shape_of(a)[axis] - 1) if n is None else n
    half = np.moveaxis(with_length(a, n // 2 + 1, axis), axis, -1)
    # The first bin, and for an even length the last, are real in a Hermitian spectrum, so imaginary parts are ignored.
    first, last = np.real(half[..., :1]), n // 2 if n % 2 == 0 else n // 2 + 1
    middle = half[..., 1:last]
    end = [np.real(half[..., last:])] if n % 2 == 0 and n > 1 else []
    spectrum = np.concatenate([first, middle, *end, np.flip(np.conj(middle), -1)], axis=-1)
    return np.moveaxis(np.real(_ifft(spectrum, None, -1, norm)), -1, axis)


# The axes of a transform over several axes.
Axes: TypeAlias = Sequence[int] | None
_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _over(axes: Axes, s: Value, a: Value) -> tuple[list[int], list[Value]]:
    """Return the axes of a transform over several axes, and their lengths, even if an axis comes twice."""
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(ndim_of(a))
    axes = list(axes)
    shape = shape_of(a)
    return axes, [shape[axis] if n == -1 else n for axis, n in zip(axes, s or [-1] * len(axes), strict=True)]


def _several(one: Value, default: Value = None) -> Function:
    def rule(a: Value, s: Value = None, axes: Axes = default, norm: Option = None, out: Option = None) -> Value:
        chosen, lengths = _over(axes, s, a)
        for axis, n in zip(reversed(chosen), reversed(lengths), strict=True):
            a = one(a, n, axis, norm)
        return a

    return rule


def _rfftn(a: Value, s: Value = None, axes: Axes = None, norm: Option = None, out: Option = None) -> Value:
    chosen, lengths = _over(axes, s, a)
    a = _rfft(a, lengths[-1], chosen[-1], norm)
    for axis, n in zip(reversed(chosen[:-1]), reversed(lengths[:-1]), strict=True):
        a = _fft(a, n, axis, norm)
    return a


def _irfftn(a: Value, s: Value = None, axes: Axes = None, norm: Option = None, out: Option = None) -> Value:
    chosen, lengths = _over(axes, s, a)
    last = 2 * (lengths[-1] - 1) if s is None or s[-1] == -1 else lengths[-1]
    for axis, n in zip(chosen[:-1], lengths[:-1], strict=True):
        a = _ifft(a, n, axis, norm)
    return _irfft(a, last, chosen[-1], norm)


def _last_two(function: Function) -> Function:
    return lambda a, s=None, axes=(-2, -1), norm=None, out=None: function(a, s, axes, norm)


def _ihfft(a: Value, n: int | None = None, axis: int = -1, norm: Option = None, out: Option = None) -> Value:
    return np.conj(_rfft(a, n, axis, _OPPOSITE[norm]))


composed(all_as_computed({
    np.fft.fft: _fft, np.fft.ifft: _ifft, np.fft.rfft: _rfft, np.fft.irfft: _irfft,
    np.fft.ihfft: _ihfft, np.fft.fftn: _several(_fft), np.fft.ifftn: _several(_ifft),
    np.fft.fft2: _several(_fft, (-2, -1)), np.fft.ifft2: _several(_ifft, (-2, -1)), np.fft.rfftn: _rfftn,
    np.fft.irfftn: _irfftn, np.fft.rfft2: _last_two(_rfftn), np.fft.irfft2: _last_two(_irfftn),
}))  # fmt: skip
composed({np.fft.fftshift: rearranging(np.fft.fftshift), np.fft.ifftshift: rearranging(np.fft.ifftshift)})
