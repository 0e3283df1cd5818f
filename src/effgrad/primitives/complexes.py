"""Complex numbers: the primitives that lead from complex to real and back, and functions written with them.

A cotangent g of a complex value z means dL = Re(g dz), so that rules of holomorphic functions hold unchanged. Only the
real part of a real value's cotangent counts. It is taken where a complex value becomes real, and at the inputs. `grad`
gives the conjugate of g, the direction of steepest ascent.
Kreutz-Delgado 2009, The complex gradient operator and the CR-calculus.
"""

from typing import Any

import numpy as np

from effgrad.arrays.counterparts import any_type
from effgrad.arrays.handle import ComplexPart
from effgrad.arrays.layout import dtype_of, ndim_of, without_axes
from effgrad.arrays.traced import always_view
from effgrad.arrays.value import FUNCTIONS, UFUNCS, Tracer, decided, evaluated, example, plain
from effgrad.errors import NoRule
from effgrad.primitives.elementwise import absolute
from effgrad.primitives.given import as_computed, value_with_derivative
from effgrad.primitives.primitive import linear
from effgrad.vocabulary import Function, Value


def is_complex(x: Value) -> bool:
    value = plain(x)
    if type(value) is np.ndarray:  # the dtype is read directly, since np.result_type takes longer than an operation
        return bool(value.dtype.kind == "c")
    return type(value) is not float and np.result_type(value).kind == "c"


def _by_element(function: Function, transpose: Function, name: str) -> Any:
    """Return a real-linear function of each element by itself."""
    return linear(function, transpose, name=name, by_element=True, counterpart=any_type(name[:4]))


real = _by_element(lambda z: np.real(z), lambda g, z: np.real(g), "real")
imag = _by_element(lambda z: np.imag(z), lambda g, z: -1j * np.real(g), "imag")
conjugate = _by_element(lambda z: np.conjugate(z), lambda g, z: np.conjugate(g), "conjugate")


_REAL = ComplexPart(real, lambda z, part: part + 1j * imag(z))
_IMAG = ComplexPart(imag, lambda z, part: real(z) + 1j * part)


def _real(val: object) -> Value:
    return always_view(real(val), val, _REAL) if is_complex(val) else val


def _imag(val: object) -> Value:
    if is_complex(val):
        return always_view(imag(val), val, _IMAG)
    if not ndim_of(val):
        return evaluated(np.imag, val)
    form = example(val, form=True)
    return np.imag(form) if type(form) is np.ndarray else np.zeros_like(plain(val))  # NumPy's cannot be written to


def conj(x: Value) -> Value:
    """Return the complex conjugate; for a real value it is the value itself."""
    return conjugate(x) if is_complex(x) else x


def _conjugated(x: Value) -> Value:
    """Return `np.conjugate(x)`, which is a new array for a real one too."""
    return conjugate(x) if is_complex(x) else x.copy("K")


def squared(x: Value) -> Value:
    """Return the square of the absolute value."""
    return np.real(x) ** 2 + np.imag(x) ** 2 if is_complex(x) else x * x


def _absolute(x: Value) -> Value:
    if not is_complex(x):
        return absolute(x)
    size, value = np.hypot(real(x), imag(x)), plain(x)
    # np.abs rounds differently from np.hypot.
    return size if isinstance(value, Tracer) else value_with_derivative(size, np.abs(value))


def _sign(x: Value) -> Value:
    return _complex_sign(x) if is_complex(x) else evaluated(np.sign, x)


def _direction(x: Value) -> Value:
    size = np.abs(x)
    zero = plain(size) == 0
    if decided(zero):
        return x * 0.0 if zero else x / size
    return np.where(zero, 0.0, x / np.where(zero, 1.0, size))


_complex_sign = as_computed(np.sign, _direction)


def _angle(z: Value, deg: bool = False) -> Value:
    angle = np.arctan2(np.imag(z), np.real(z)) if is_complex(z) else evaluated(_angle_of_real, z)
    return angle * (180 / np.pi) if deg else angle


def _angle_of_real(x: Value) -> Value:
    return np.arctan2(0, x)


def _real_if_close(a: Value, tol: float = 100) -> Value:
    a = a if isinstance(plain(a), np.ndarray) else without_axes(a)
    if not is_complex(a):
        return a
    small = tol * np.finfo(dtype_of(a)).eps if tol > 1 else tol
    return np.real(a) if np.all(np.abs(np.imag(plain(a))) < small) else a


def require_real(x: Value, name: str) -> Value:
    """Return the argument of a function whose rule holds for real arrays only, or raise `NoRule`."""
    if is_complex(x):
        raise NoRule(f"{name} of a complex array has no derivative rule; of a real array it has one")
    return x


UFUNCS.enter({np.absolute: _absolute, np.conjugate: _conjugated, np.sign: _sign})
FUNCTIONS.enter({np.real: _real, np.imag: _imag, np.angle: _angle, np.real_if_close: _real_if_close})
