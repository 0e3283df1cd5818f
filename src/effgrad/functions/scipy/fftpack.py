"""Rules for `scipy.fftpack`: transforms of `scipy.fft` under older conventions, and operators on periodic sequences."""


import scipy.fftpack

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.functions.scipy.fft import ONE, OPPOSITE, along_several
from effgrad.functions.scipy.tables import constant, require, rules_of, traced_inside
from effgrad.primitives.fourier import with_length
from effgrad.vocabulary import Axis, Function, Option, Reached, Shape, Value


def _rfft(x: Value, n: Value = None, axis: int = -1) -> Value:
    """The real and imaginary parts of half the spectrum in turn, without the imaginary parts that are always zero."""
    x = np.moveaxis(with_length(np.asarray(x), n, axis), axis, -1)
    count = shape_of(x)[-1]
    half = np.fft.rfft(x)
    parts = np.reshape(np.stack([np.real(half), np.imag(half)], axis=-1), (*shape_of(x)[:-1], -1))
    kept = np.delete(np.arange(shape_of(parts)[-1]), 1)[:count]
    return np.moveaxis(parts[..., kept], -1, axis)


def _irfft(x: Value, n: Value = None, axis: int = -1) -> Value:
    x = np.moveaxis(with_length(np.asarray(x), n, axis), axis, -1)
    count = shape_of(x)[-1]
    first, nothing = x[..., :1], np.zeros((*shape_of(x)[:-1], 1))
    real = np.concatenate([first, x[..., 1::2]], axis=-1)
    imag = np.concatenate([nothing, x[..., 2::2], *([nothing] if count % 2 == 0 else [])], axis=-1)
    return np.moveaxis(np.fft.irfft(real + 1j * imag, count), -1, axis)


def _cosines(name: str) -> Function:
    """Return the rule of a cosine or sine transform; an inverse is the opposite type, scaled by nothing but `norm`."""
    one, inverse = ONE[name.removeprefix("i").removesuffix("n")], name[0] == "i"

    def rule(x: Value, type: int = 2, n: Value = None, axis: int = -1, norm: Option = None) -> Value:
        return one(x, OPPOSITE[type] if inverse else type, n, axis, norm)

    def several(x: Value, type: int = 2, shape: Shape | None = None, axes: Axis = None, norm: Option = None) -> Value:
        return along_several(rule)(x, type, shape, axes, norm)

    return several if name[-1] == "n" else rule


def _operator(name: str) -> Function:
    """Return the rule of a linear operator on periodic sequences: a product with the operator's matrix."""
    function = getattr(scipy.fftpack, name)

    def rule(x: Value, *args: Value, **options: Option) -> Value:
        require(not traced_inside((args, options)), f"fftpack.{name}", "its first argument only")
        x = np.asarray(x)
        columns = [function(row, *args, **options) for row in np.eye(shape_of(x)[0])]
        return np.matmul(np.stack(columns, axis=1), x)

    return rule


def _of_one(name: str) -> Function:
    return lambda x, n=None, axis=-1: getattr(np.fft, name)(np.asarray(x), n, axis)


def _of_several(name: str) -> Function:
    default = (-2, -1) if name[-1] == "2" else None
    return lambda x, shape=None, axes=default: getattr(np.fft, f"{name[:-1]}n")(
        np.asarray(x), shape, range(-np.size(shape), 0) if axes is None and shape is not None else axes
    )


PERIODIC = "diff tilbert itilbert hilbert ihilbert cs_diff sc_diff ss_diff cc_diff shift".split()
RULES: list[Reached] = rules_of(scipy.fftpack, {
    "fft": _of_one("fft"), "ifft": _of_one("ifft"), "rfft": _rfft, "irfft": _irfft,
    **{name: _of_several(name) for name in ("fftn", "ifftn", "fft2", "ifft2")},
    **{name: _cosines(name) for kind in ("dct", "dst") for name in (kind, f"i{kind}", f"{kind}n", f"i{kind}n")},
    **{name: _operator(name) for name in PERIODIC},
    "next_fast_len": constant(scipy.fftpack.next_fast_len),
})  # fmt: skip
