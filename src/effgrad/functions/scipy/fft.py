"""`scipy.fft`: NumPy's transforms, and the cosine and sine transforms.

In each of the eight, the matrix is an orthogonal one with its first or last row, or column, and the whole of it scaled.
The orthogonal one is a primitive, and its transpose is one of them: type 2 of type 3, each other of itself.
"""

from typing import Any

import numpy as np
import scipy.fft

from effgrad.arrays.value import plain
from effgrad.functions.scipy.tables import constant, require
from effgrad.primitives.fourier import _resized
from effgrad.primitives.joining import shape_of
from effgrad.primitives.primitive import Primitive, linear

OPPOSITE = {1: 1, 2: 3, 3: 2, 4: 4}


def _orthogonal(x: Any, kind: str, type: int, axis: int) -> Any:
    return getattr(scipy.fft, kind)(x, type, axis=axis, norm="ortho")


orthogonal: Primitive = linear(
    _orthogonal,
    lambda g, x, kind, type, axis: orthogonal(g, kind=kind, type=OPPOSITE[type], axis=axis),
    name="dct",
)


def _ends(kind: str, type: int, n: int, axis: int, ndim: int) -> tuple[Any, Any]:
    """The scales of the columns and of the rows of the matrix without norm, apart from that of the whole."""
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


def _transform(kind: str, inverse: bool) -> Any:
    name = f"i{kind}" if inverse else kind

    def rule(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        require(orthogonalize is None, f"fft.{name}", "orthogonalize=None")
        x = _resized(np.asarray(x), n, axis)
        type = OPPOSITE[type] if inverse else type
        if norm == "ortho":
            return orthogonal(x, kind=kind, type=type, axis=axis)
        length = shape_of(x)[axis]
        columns, rows = _ends(kind, type, length, axis, np.ndim(plain(x)))
        period = 2 * (length + ({"dct": -1, "dst": 1}[kind] if type == 1 else 0))
        scale = np.sqrt(period) / (period if (norm == "forward") != inverse else 1)
        return scale * rows * orthogonal(columns * x, kind=kind, type=type, axis=axis)

    return rule


def _several(one: Any) -> Any:
    def rule(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, *_: Any, **__: Any) -> Any:
        if axes is None:
            axes = np.arange(np.ndim(plain(x))) if s is None else np.arange(-np.size(s), 0)
        axes = [int(axis) for axis in np.atleast_1d(axes)]
        lengths = [None] * len(axes) if s is None else np.atleast_1d(s).tolist()
        for axis, n in zip(axes, lengths, strict=True):
            x = one(x, type, n, axis, norm)
        return x

    return rule


def _as_numpy(name: str) -> Any:
    function, several = getattr(np.fft, name), name.endswith(("n", "2"))
    length, where = ("s", "axes") if several else ("n", "axis")

    def rule(x: Any, *args: Any, overwrite_x: bool = False, workers: Any = None, plan: Any = None, **named: Any) -> Any:
        named.update(zip((length, where, "norm"), args, strict=False))
        return function(np.asarray(x), **named)

    return rule


ONE = {"dct": _transform("dct", False), "idct": _transform("dct", True), "dst": _transform("dst", False),
       "idst": _transform("dst", True)}  # fmt: skip
RULES: list[tuple[Any, str, Any]] = [
    (scipy.fft, name, rule)
    for name, rule in {
        **{name: _as_numpy(name) for name in (
            "fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2",
            "rfft2", "irfft2")},
        **ONE, **{f"{name}n": _several(rule) for name, rule in ONE.items()},
        "next_fast_len": constant(scipy.fft.next_fast_len), "prev_fast_len": constant(scipy.fft.prev_fast_len),
    }.items()
]  # fmt: skip
