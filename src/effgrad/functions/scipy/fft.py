"""Rules for `scipy.fft`: the Fourier transforms, by NumPy's, and the eight cosine and sine transforms.

The matrix of each cosine or sine transform is an orthogonal matrix, scaled as a whole and, in some types, in its first
or last row or column. The orthogonal transform is a primitive. Its transpose is an orthogonal transform, too: types 2
and 3 are transposes of each other, and types 1 and 4 of themselves.
"""

import inspect

import scipy.fft

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.functions.scipy.tables import constant, rules_of
from effgrad.primitives.complexes import conj
from effgrad.primitives.fourier import with_length
from effgrad.primitives.primitive import Primitive, linear
from effgrad.vocabulary import Axes, Axis, Function, Option, Reached, Value

OPPOSITE = {1: 1, 2: 3, 3: 2, 4: 4}


def _orthogonal(x: Value, kind: str, type: int, axis: int) -> Value:
    return getattr(scipy.fft, kind)(x, type, axis=axis, norm="ortho")


orthogonal: Primitive = linear(
    _orthogonal,
    lambda g, x, kind, type, axis: orthogonal(g, kind=kind, type=OPPOSITE[type], axis=axis),
    name="dct",
)


def _ends(kind: str, type: int, n: int, axis: int, ndim: int) -> tuple[Value, Value]:
    """The scales of the columns and of the rows of the unnormalised matrix, beside the scale of the whole matrix."""
    columns, rows = np.ones(n), np.ones(n)
    end = 0 if kind == "dct" else n - 1
    if kind == "dct" and type == 1:
        columns[[0, -1]], rows[[0, -1]] = np.sqrt(0.5), np.sqrt(2.0)
    elif type == 2:
        rows[end] = np.sqrt(2.0)
    elif type == 3:
        columns[end] = np.sqrt(0.5)
    shape = [n if i == axis % ndim else 1 for i in range(ndim)]
    return columns.reshape(shape), rows.reshape(shape)


def _transform(kind: str, inverse: bool) -> Function:
    def rule(
        x: Value, type: int = 2, n: Value = None, axis: int = -1, norm: Option = None
    ) -> Value:
        x = with_length(np.asarray(x), n, axis)
        type = OPPOSITE[type] if inverse else type
        if norm == "ortho":
            return orthogonal(x, kind=kind, type=type, axis=axis)
        length = shape_of(x)[axis]
        columns, rows = _ends(kind, type, length, axis, ndim_of(x))
        period = 2 * (length + ({"dct": -1, "dst": 1}[kind] if type == 1 else 0))
        scale = np.sqrt(period) / (period if (norm == "forward") != inverse else 1)
        return scale * rows * orthogonal(columns * x, kind=kind, type=type, axis=axis)

    return rule


def along_several(one: Value) -> Function:
    """Return the transform along several axes, made from the transform along one axis."""

    def rule(x: Value, type: int = 2, s: Value = None, axes: Axes = None, norm: Option = None) -> Value:
        if axes is None:
            axes = np.arange(ndim_of(x)) if s is None else np.arange(-np.size(s), 0)
        axes = [int(axis) for axis in np.atleast_1d(axes)]
        lengths = [None] * len(axes) if s is None else np.atleast_1d(s).tolist()
        for axis, n in zip(axes, lengths, strict=True):
            x = one(x, type, n, axis, norm)
        return x

    return rule


def _as_numpy(name: str) -> Function:
    function, several = getattr(np.fft, name), name.endswith(("n", "2"))
    where = "axes" if several else "axis"

    default = inspect.signature(getattr(scipy.fft, name)).parameters[where].default

    def of_one(x: Value, n: Value = None, axis: Axis = default, norm: Option = None) -> Value:
        return function(np.asarray(x), n, axis, norm)

    def of_several(x: Value, s: Value = None, axes: Axis = default, norm: Option = None) -> Value:
        return function(np.asarray(x), s, axes, norm)

    return of_several if several else of_one


def _hermitian(name: str) -> Function:
    """Return a transform with Hermitian symmetry: the conjugate's real transform in the opposite direction."""
    default = inspect.signature(getattr(scipy.fft, name)).parameters["axes"].default

    def rule(x: Value, s: Value = None, axes: Axes = default, norm: Option = None) -> Value:
        norm = {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)
        x = np.asarray(x)
        if s is not None and axes is None:
            axes = tuple(range(-np.size(s), 0))
        return conj(np.fft.rfftn(x, s, axes, norm)) if name[0] == "i" else np.fft.irfftn(conj(x), s, axes, norm)

    return rule


ONE = {"dct": _transform("dct", False), "idct": _transform("dct", True), "dst": _transform("dst", False),
       "idst": _transform("dst", True)}  # fmt: skip
RULES: list[Reached] = rules_of(scipy.fft, {
    **{name: _as_numpy(name) for name in (
        "fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2",
        "rfft2", "irfft2")},
    **{name: _hermitian(name) for name in ("hfft2", "hfftn", "ihfft2", "ihfftn")},
    **ONE, **{f"{name}n": along_several(rule) for name, rule in ONE.items()},
    "next_fast_len": constant(scipy.fft.next_fast_len), "prev_fast_len": constant(scipy.fft.prev_fast_len),
})  # fmt: skip
