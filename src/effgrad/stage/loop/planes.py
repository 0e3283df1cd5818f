"""Complex numbers in a captured program, as pairs of real planes, so that regions and their derivatives are real.

Functions that move elements act on both planes, and products are products of planes. Elementwise functions have the
formulas below, which are captured from their source as the user's functions are.
"""

import ast
import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from effgrad.program.resolve import call
from effgrad.stage.loop import fancy, operands
from effgrad.stage.loop.affine import NotCaptured, fresh
from effgrad.stage.loop.buffers import Buffer, constant
from effgrad.stage.loop.containers import parts_of
from effgrad.stage.loop.element import cast, primitive_of
from effgrad.stage.loop.ir import Apply, Block, added
from effgrad.stage.loop.operands import Complex, Lazy, Masked, Method, Value, View, common_type, flat
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.small_systems import MOST_UNKNOWNS, ComplexSolution
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import DType, Entry, Function, Params

# Functions that move elements or add them up act on each plane.
MOVING = {
    np.sum, np.mean, np.transpose, np.reshape, np.ravel, np.swapaxes, np.expand_dims, np.squeeze, np.flip, np.copy,
    np.broadcast_to, np.triu, np.tril, np.diag, np.trace, np.roll, np.cumsum, np.diff, np.moveaxis, np.repeat, np.tile,
    np.fft.fftshift, np.fft.ifftshift, np.ascontiguousarray, np.add.reduce,
}  # fmt: skip
JOINING = {np.array, np.asarray, np.concatenate, np.hstack, np.vstack, np.stack, np.block, np.where}
PRODUCTS = {np.dot, np.matmul, np.outer, np.inner, np.kron, np.tensordot, np.einsum}
BY_UFUNC: dict[Value, type[ast.operator]] = {
    np.add: ast.Add, np.subtract: ast.Sub, np.multiply: ast.Mult, np.divide: ast.Div, np.power: ast.Pow,
    np.true_divide: ast.Div,
}  # fmt: skip


def is_complex(value: Value) -> bool:
    """Whether a value, symbolic or not, is complex."""
    if isinstance(value, Complex | complex | np.complexfloating):
        return True
    return isinstance(value, np.ndarray) and value.dtype.kind == "c"


def has_complex(values: Value) -> bool:
    """Whether a value is complex or contains a complex value; a pair of planes counts as one value."""
    if is_complex(values):
        return True
    return any(map(has_complex, parts_of(values) or ()))


def component(dtype: Any) -> DType:
    """The type of the planes of a complex type."""
    return np.dtype(np.float32) if np.dtype(dtype) == np.dtype(np.complex64) else np.dtype(float)


def as_planes(c: Symbols, value: Value) -> Complex:
    """Return a number or an array as complex."""
    if isinstance(value, Complex):
        return value
    if isinstance(value, complex | np.complexfloating):
        return Complex(c.lazy(value.real), c.lazy(value.imag))
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        return Complex(c.plane_table(value, False), c.plane_table(value, True))
    if isinstance(value, list | tuple):
        return joined(c, np.array, [value], {})
    real = c.certain(value) if isinstance(value, View | Lazy) else c.operand_of(value)
    weak = isinstance(real, Lazy) and real.weak
    zero = c.number(constant(0.0, real.dtype if real.dtype.kind == "f" else float), weak)
    return Complex(real, operands.broadcast(zero, real.shape))


def _pair(c: Symbols, real: Value, imag: Value) -> Complex:
    """A new complex array of two planes of one shape and type, which shares no memory with another array."""
    shape = tuple(operands.broadcast_shape([real.shape, imag.shape]))
    parts = [x if x.shape == shape else operands.broadcast(x, shape) for x in map(c.lazy, (real, imag))]
    return _in_type(c, parts, common_type(parts))


def _in_type(c: Symbols, parts: Sequence[Lazy], dtype: DType) -> Complex:
    """Planes converted to a type."""
    return Complex(*[
        x if x.dtype == dtype else c.new_lazy(x.names, x.shape, cast(x.value, dtype), x.weak) for x in parts
    ])  # fmt: skip


def filled(c: Symbols, shape: Sequence[Value], value: Value, dtype: Any = complex, like: Lazy | None = None) -> Complex:
    """A new complex array filled with one number."""
    views = [c.new(shape, component(dtype), like) for _ in range(2)]
    for view, part in zip(views, as_planes(c, 0.0 if value is None else value), strict=True):
        c.assign(view, part)
        view.own = True
    return Complex(*views)


def copied(c: Symbols, value: Value, dtype: Any = None) -> Complex:
    """A copy of a complex array or number, converted if a type is given."""
    found = as_planes(c, value)
    if dtype is not None:
        found = _in_type(c, [c.lazy(p) for p in found], component(dtype))
    return Complex(*map(c.copy, found)) if found.real.shape else found


# Operators


def binary(c: Symbols, op: ast.operator, a: Value, b: Value) -> Value:
    """Apply an operator to operands at least one of which is complex."""
    if any(isinstance(x, Masked) for v in (a, b) for x in flat([v])):
        raise NotCaptured("complex elements that a mask selects")
    if isinstance(op, ast.MatMult):
        return product(c, np.matmul, [a, b], {})
    if isinstance(op, ast.Pow) and isinstance(b, int | float) and b in _POWERS:
        return _pair(c, *c.inline(_POWERS[b], list(as_planes(c, a)), {}))
    if isinstance(op, ast.Pow) and not has_complex(b):
        return _pair(c, *c.inline(_powered, [*as_planes(c, a), b], {}))
    if isinstance(op, ast.Pow):
        raise NotCaptured("a complex power")
    if isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        return _arithmetic(c, op, as_planes(c, a), as_planes(c, b), not has_complex(b))
    raise NotCaptured(f"`{type(op).__name__}` of complex numbers")


def _arithmetic(c: Symbols, op: ast.operator, x: Complex, y: Complex, divisor_real: bool) -> Complex:
    """Apply an operator to both planes. As in NumPy a real operand has a plane of zeros, which has a sign."""
    if isinstance(op, ast.Add | ast.Sub):
        return _pair(c, *[c.binary(op, p, q) for p, q in zip(x, y, strict=True)])
    if isinstance(op, ast.Mult):
        return _pair(c, *c.inline(_multiplied, [*x, *y], {}))
    return _pair(c, *c.inline(_divided_by_real, [*x, y.real], {}) if divisor_real else c.inline(_divided, [*x, *y], {}))


def compared(c: Symbols, op: ast.cmpop, a: Value, b: Value) -> Value:
    """`a == b` or `a != b`."""
    if not isinstance(op, ast.Eq | ast.NotEq):
        raise NotCaptured("an order of complex numbers")
    x, y = as_planes(c, a), as_planes(c, b)
    parts = [c.compare(op, p, q) for p, q in zip(x, y, strict=True)]
    return c.elementwise(primitive_of(np.logical_and if isinstance(op, ast.Eq) else np.logical_or), *parts)  # type: ignore[arg-type]


# Formulas of planes, captured from their source as the user's functions are


Real = float | np.ndarray
Planes = tuple[Real, Real]


def _multiplied(a: Real, b: Real, c: Real, d: Real) -> Planes:
    return a * c - b * d, a * d + b * c


def _divided(a: Real, b: Real, c: Real, d: Real) -> Planes:
    """Smith's algorithm, as NumPy divides."""
    wide = np.abs(c) >= np.abs(d)
    most, least = np.where(wide, c, d), np.where(wide, d, c)
    ratio = least / most
    scale = 1.0 / (most + least * ratio)
    return np.where(wide, a + b * ratio, a * ratio + b) * scale, np.where(wide, b - a * ratio, b * ratio - a) * scale


def _divided_by_real(a: Real, b: Real, c: Real) -> Planes:
    zero = np.copysign(0.0, c)
    return (a + b * zero) / c, (b - a * zero) / c


def _reciprocal(x: Real, y: Real) -> Planes:
    return _divided(1.0, 0.0, x, y)


def _squared(x: Real, y: Real) -> Planes:
    return x * x - y * y, x * y + y * x


def _cubed(x: Real, y: Real) -> Planes:
    a, b = _squared(x, y)
    return _multiplied(a, b, x, y)


def _powered(x: Real, y: Real, p: Real) -> Planes:
    size, angle = np.hypot(x, y) ** p, p * np.arctan2(y, x)
    return size * np.cos(angle), size * np.sin(angle)


def _exp(x: Real, y: Real) -> Planes:
    size = np.exp(x)
    return size * np.cos(y), size * np.sin(y)


def _log(x: Real, y: Real) -> Planes:
    return np.log(np.hypot(x, y)), np.arctan2(y, x)


def _sqrt(x: Real, y: Real) -> Planes:
    large = np.sqrt((np.hypot(x, y) + np.abs(x)) / 2)
    small = y / np.where(large == 0, 1.0, 2 * large)
    return np.where(x >= 0, large, np.abs(small)), np.where(x >= 0, small, np.copysign(large, y))


def _sin(x: Real, y: Real) -> Planes:
    return np.sin(x) * np.cosh(y), np.cos(x) * np.sinh(y)


def _cos(x: Real, y: Real) -> Planes:
    return np.cos(x) * np.cosh(y), -(np.sin(x) * np.sinh(y))


def _sinh(x: Real, y: Real) -> Planes:
    return np.sinh(x) * np.cos(y), np.cosh(x) * np.sin(y)


def _cosh(x: Real, y: Real) -> Planes:
    return np.cosh(x) * np.cos(y), np.sinh(x) * np.sin(y)


def _conjugate(x: Real, y: Real) -> Planes:
    return x, -y


def _negative(x: Real, y: Real) -> Planes:
    return -x, -y


_POWERS: dict[float, Function] = {2: _squared, 3: _cubed, -1: _reciprocal, 0.5: _sqrt}
TO_COMPLEX: dict[Value, Function] = {
    np.exp: _exp, np.log: _log, np.sqrt: _sqrt, np.sin: _sin, np.cos: _cos, np.sinh: _sinh, np.cosh: _cosh,
    np.conj: _conjugate, np.negative: _negative, np.square: _squared, np.reciprocal: _reciprocal,
}  # fmt: skip
TO_REAL: dict[Value, Function] = {
    np.absolute: lambda x, y: np.hypot(x, y), abs: lambda x, y: np.hypot(x, y), np.angle: lambda x, y: np.arctan2(y, x),
    np.real: lambda x, y: x, np.imag: lambda x, y: y,
}  # fmt: skip


# Calls


def called(c: Symbols, f: Function, args: list[Value], kwargs: Params) -> Value:
    """Call a library's function with a complex argument."""
    if f in BY_UFUNC and len(args) == 2 and not kwargs:
        return binary(c, BY_UFUNC[f](), *args)
    if f in TO_COMPLEX and len(args) == 1 and not kwargs:
        return _pair(c, *c.inline(TO_COMPLEX[f], list(as_planes(c, args[0])), {}))
    if f in TO_REAL and len(args) == 1 and not kwargs:
        return c.inline(TO_REAL[f], list(as_planes(c, args[0])), {})
    if f in MOVING and is_complex(args[0]):
        return Complex(*[c.call(f, [p, *args[1:]], kwargs) for p in as_planes(c, args[0])])
    if f in JOINING:
        if kwargs.get("dtype") not in (None, complex, np.complex128):
            raise NotCaptured(f"{f.__name__} of complex numbers in another type")
        return joined(c, f, args, {k: v for k, v in kwargs.items() if k != "dtype"})
    if f in PRODUCTS:
        return product(c, f, args, kwargs)
    if f in OTHERS:
        return OTHERS[f](c, *args, **kwargs)
    raise NotCaptured(f"{getattr(f, '__name__', f)} of complex numbers")


def _full_like(first: Value, c: Symbols, value: Value) -> Complex:
    real = as_planes(c, value).real
    return Complex(c.call(first, [real], {}), c.call(np.zeros_like, [real], {}))


def joined(c: Symbols, f: Function, args: Sequence[Value], kwargs: Params) -> Complex:
    """Call a function that joins arrays on each plane; real arrays have a second plane of zeros."""
    skipped = 1 if f is np.where else 0

    def plane(value: Value, k: int) -> Value:
        if isinstance(value, list | tuple) and not isinstance(value, Complex):
            return [plane(v, k) for v in value]
        return as_planes(c, value)[k]

    def one(k: int) -> Value:
        first = plane(args[skipped], k)
        second = [plane(args[2], k)] if f is np.where else list(args[1:])
        return c.call(f, [*args[:skipped], first, *second], kwargs)

    return Complex(one(0), one(1))


def product(c: Symbols, f: Any, args: Sequence[Value], kwargs: Params) -> Value:
    """Call a function that is linear in each of its two arrays."""
    first = 1 if f is np.einsum else 0
    if f is np.einsum and len(args) == 2:
        return Complex(*[c.call(f, [args[0], p], kwargs) for p in as_planes(c, args[1])])
    if len(args) < first + 2 or (f is np.einsum and len(args) != 3):
        raise NotCaptured(f"{f.__name__} of complex arrays and others")
    before, (a, b), after = list(args[:first]), args[first : first + 2], list(args[first + 2 :])

    def run(x: Value, y: Entry) -> Value:
        return c.call(f, [*before, x, y, *after], kwargs)

    x, y = as_planes(c, a), as_planes(c, b)
    if not is_complex(b):
        return Complex(run(x.real, y.real), run(x.imag, y.real))
    if not is_complex(a):
        return Complex(run(x.real, y.real), run(x.real, y.imag))
    return Complex(
        c.binary(ast.Sub(), run(x.real, y.real), run(x.imag, y.imag)),
        c.binary(ast.Add(), run(x.real, y.imag), run(x.imag, y.real)),
    )


def _rows(a: Complex) -> int:
    n = a.real.shape[-1]
    if not isinstance(n, int):
        raise NotCaptured("the inverse of a matrix whose shape changes")
    return n


def solution(c: Symbols, a: Complex, b: Complex) -> Complex:
    """The solution of a complex linear system; a small one is solved as a real system of twice the size."""
    n = _rows(a)
    if 2 * n > MOST_UNKNOWNS and len(a.real.shape) == 2:
        planes = [c.stacked(list(x)) for x in (a, b)]
        result = fancy.applied(c, ComplexSolution(), planes, {}, fresh=True)
        return Complex(c.index(result, 0), c.index(result, 1))
    matrix = c.call(np.block, [[[a.real, c.call(np.negative, [a.imag], {})], [a.imag, a.real]]], {})
    found = c.call(np.linalg.solve, [matrix, c.call(np.concatenate, [[b.real, b.imag]], {})], {})
    return Complex(c.index(found, slice(0, n)), c.index(found, slice(n, 2 * n)))


def method(c: Symbols, value: Complex, name: str, args: list[Value], kwargs: Params) -> Value:
    """Call a method of a complex array or number."""
    if name in ("conj", "conjugate"):
        return called(c, np.conj, [value], {})
    if name in ("copy", "sum", "mean", "ravel", "flatten", "reshape", "transpose", "swapaxes", "squeeze", "item"):
        return Complex(*[c.call(Method(p, name), list(args), dict(kwargs)) for p in value])
    if name == "dot":
        return product(c, np.dot, [value, *args], {})
    if name == "astype" and np.dtype(args[0]).kind == "c":
        return copied(c, value, args[0])
    raise NotCaptured(f"the method {name!r} of a complex array")


# Fourier transforms


class Transform:
    """A Fourier transform of both planes, stacked. It defines its own adjoint: the inverse transform, scaled."""

    def __init__(self, inverse: bool, axis: int, scale: float = 1.0) -> None:
        self.inverse, self.axis, self.scale = inverse, axis, scale
        self.__name__ = "ifft" if inverse else "fft"

    def __call__(self, x: Value) -> Value:
        result = call(np.fft.ifft if self.inverse else np.fft.fft)(x[0] + 1j * x[1], axis=self.axis) * self.scale
        return call(np.stack)([np.real(result), np.imag(result)])

    def read_by_reverse(self, s: Apply) -> list[Buffer]:
        return []

    def reverse(self, s: Apply, cotangents: Mapping[Buffer, Buffer]) -> Block:
        """The statements that add to the cotangent of the planes."""
        (x,), g = s.inputs, cotangents[s.output]
        n = x.shape[1:][self.axis]
        part, other = Buffer(fresh("part"), x.shape, x.dtype), self.scale * (1 / n if self.inverse else n)
        back = replace(s, function=Transform(not self.inverse, self.axis, other), inputs=(g,), output=part)
        return [back, added(cotangents[x], part)]


def _transformed(inverse: bool, c: Symbols, a: Value, n: Entry = None, axis: int = -1, norm: Value = None) -> Complex:
    if n is not None or norm not in (None, "backward"):
        raise NotCaptured("a Fourier transform of another length or norm")
    result = fancy.applied(c, Transform(inverse, axis), [c.stacked(list(as_planes(c, a)))], {}, fresh=True)
    return Complex(c.index(result, 0), c.index(result, 1))


_fft = rule(np.fft.fft)(functools.partial(_transformed, False))
_ifft = rule(np.fft.ifft)(functools.partial(_transformed, True))


@rule(complex)
def _complex(c: Symbols, real: Value = 0.0, imag: Value = None) -> Value:
    if imag is None:
        return as_planes(c, c.call(float, [real], {}) if not is_complex(real) else real)
    if has_complex((real, imag)):
        return binary(c, ast.Add(), real, binary(c, ast.Mult(), 1j, imag))
    return _pair(c, *[c.operand_of(c.call(float, [part], {})) for part in (real, imag)])


# The remaining functions of complex arguments.
OTHERS: dict[Value, Function] = {
    complex: _complex, len: lambda c, value: as_planes(c, value).real.shape[0],
    np.linalg.solve: lambda c, a, b: solution(c, as_planes(c, a), as_planes(c, b)),
    np.linalg.inv: lambda c, a: solution(c, as_planes(c, a), as_planes(c, np.eye(_rows(a)))),
    np.vdot: lambda c, a, b: product(c, np.dot, [c.call(np.conj, [a], {}), b], {}),
    np.equal: lambda c, a, b: compared(c, ast.Eq(), a, b), np.not_equal: lambda c, a, b: compared(c, ast.NotEq(), a, b),
    **{f: functools.partial(_full_like, f) for f in (np.zeros_like, np.empty_like, np.ones_like)},
    np.fft.fft: _fft, np.fft.ifft: _ifft,
}  # fmt: skip
