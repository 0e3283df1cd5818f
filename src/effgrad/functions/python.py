"""Rules for Python's own functions of numbers: the modules `math` and `cmath`, and the constructors of numbers."""

import cmath
import copy
import functools
import math
import operator
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import scipy.special
from numpy.exceptions import ComplexWarning

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of
from effgrad.arrays.reach import as_array
from effgrad.arrays.traced import as_pythons
from effgrad.arrays.value import UFUNCS, Tracer, example, plain, plain_tree, traced_inside
from effgrad.arrays.written import read
from effgrad.functions.numpy.iteration import iterator
from effgrad.functions.scipy.tables import Calling
from effgrad.primitives.given import as_computed
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.ufuncs import scaled
from effgrad.vocabulary import Function, Option, Reached, Value

# Names in `math` and `cmath`, with the names of the NumPy functions that compute the same.
SAME = {
    **{name: name for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log2", "log10", "log1p", "sqrt", "fabs",
        "degrees", "radians", "copysign", "fmod", "cbrt", "exp2", "nextafter",
    )},
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": "arctan2", "pow": "power",
}  # fmt: skip


def _constant(f: Function) -> Function:
    """Return the rule of a function whose result is piecewise constant: the function of the plain values."""

    def rule(*args: Value, **kwargs: Option) -> Value:
        return f(*plain_tree(args), **plain_tree(kwargs))

    rule.constant = True  # type: ignore[attr-defined]
    return rule


def _log(x: Value, *base: Value) -> Value:
    return np.log(x) / np.log(base[0]) if base else np.log(x)


def _hypot(*sides: Value) -> Value:
    return np.sqrt(sum(side * side for side in sides)) if len(sides) != 2 else np.hypot(*sides)


def _modf(x: Value) -> tuple[Value, Value]:
    whole = np.trunc(plain(x))
    return x - whole, whole


def _frexp(x: Value) -> tuple[Value, int]:
    exponent = math.frexp(float(plain(x)))[1]
    return scaled(x, -exponent), exponent


def _float(value: Value = 0.0) -> Value:
    value = _real_part(_one_number(value))
    if dtype_of(value).kind in "iub":
        value = value * 1.0
    return as_pythons(value[()] if isinstance(plain(value), np.ndarray) else value)


def _real_part(value: Value) -> Value:
    """Return the real part of a complex number of NumPy, with its warning; a complex number of Python is refused."""
    if dtype_of(value).kind != "c":
        return value
    if isinstance(example(value), complex) and not isinstance(example(value), np.generic):
        raise TypeError("must be real number, not complex")
    warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, stacklevel=2)
    return np.real(value)


def _float64(value: Value = 0.0) -> Value:
    """`np.float64(value)`, which returns an array for an array."""
    array = as_array(value)
    # `np.positive` makes a NumPy number of Python's: a NumPy number divided by zero is infinite and not an error.
    return array if ndim_of(array) else np.positive(_float(value))


def _cast_to(kind: type) -> Function:
    """Return the rule of a class of NumPy's numbers, which returns an array for an array."""
    return lambda value=0.0, *imag: (_complex(value, *imag) if imag else as_array(value)).astype(kind)[()]


def _type(*args: Value) -> Value:
    """`type`: the class of one argument, which for a traced value is that of its primal, or a new class of three."""
    return args[0].__class__ if len(args) == 1 else type(*args)


def _complex(real: Value = 0.0, imag: Value = 0.0) -> Value:
    return as_pythons(_one_number(real) + 1j * _one_number(imag))


class Broadcast:
    """`np.broadcast` of traced arrays: it has their common shape, and iterates over tuples of their elements."""

    def __init__(self, *arrays: Value) -> None:
        given = [as_array(a) if traced_inside(a) else np.asarray(a) for a in arrays]
        self.shape = np.broadcast_shapes(*map(shape_of, given))
        self.nd = self.ndim = len(self.shape)
        self.size, self.numiter = math.prod(self.shape), len(given)
        self.iters = tuple([np.ravel(np.broadcast_to(a, self.shape)) for a in given])

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return zip(*self.iters, strict=True)


def _is_whole(number: Value) -> bool:
    return type(number) is not float and np.result_type(number).kind in "iub"


def _numeric(original: Function, same: Value) -> Function:
    """Return the rule of a function of numbers: its own values and errors, and the derivative of NumPy's `same`.

    For integers, which have no derivative, the rule is the function itself. In a staged program, in a batch and over
    arrays of other libraries the rule is NumPy's function.
    """
    primitive = UFUNCS.get(same)
    row = _with_values(original, primitive) if type(primitive) is Primitive else as_computed(original, same)

    def rule(*args: Value) -> Value:
        if len(args) == 1 and type(plain(args[0])) is float:
            return row(*args)
        plains = [plain(a) for a in args]
        if all(type(p) is float for p in plains):
            return row(*args)
        numbers = list(map(_one_number, args))
        if all(_is_whole(p) for a, p in zip(args, plains, strict=True) if isinstance(a, Tracer)):
            return original(*numbers)
        return as_pythons(same(*numbers)) if any(isinstance(p, Tracer) for p in plains) else row(*numbers)

    return rule


def _with_values(original: Callable[..., object], primitive: Primitive) -> Value:
    """Return a copy of a primitive, with its derivative rule, that computes the values of numbers by `original`."""
    variant, of_arrays = copy.copy(primitive), primitive.function

    def function(*args: Value) -> Value:
        arrays = any(isinstance(a, np.ndarray) and a.ndim for a in args)
        return of_arrays(*args) if arrays else original(*args)

    variant.function, variant.known_reads = function, {}
    return variant


def _one_number(value: Value) -> Value:
    """Return a number, or the element of an array of one; raise NumPy's own error for an array of several."""
    if not ndim_of(value):
        return value
    float(np.zeros(shape_of(value)))
    return np.reshape(value, ())[()]


def _named(module: ModuleType) -> list[Reached]:
    taken = _of_complex if module is cmath else _of_real
    return [
        (module, name, taken(_numeric(vars(module)[name], getattr(np, same))))
        for name, same in SAME.items() if name in vars(module)
    ]  # fmt: skip


def _of_real(rule: Function) -> Function:
    return lambda *args: rule(*map(_real_part, args))


def _of_complex(rule: Function) -> Function:
    """Return a rule that makes real arguments complex, as `cmath` does: `cmath.sqrt(-x)` is not NaN."""
    return lambda *args: rule(*[arg if dtype_of(arg).kind == "c" else arg + 0j for arg in args])


_sum_of_list = as_computed(math.fsum, sum)


def _fsum(values: Value, /) -> Value:
    """Return `math.fsum` of any iterable; whether an item is traced shows only when all have been taken."""
    values = read(values)
    values = values if isinstance(values, Tracer) else list(values)
    return _sum_of_list(values) if traced_inside(values) else math.fsum(values)


# Functions that have no equal in NumPy: the value is the function's own, the derivative that of the definition here.
DEFINITIONS: dict[Value, dict[str, Value]] = {
    math: {
        "dist": lambda p, q: np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True))),
        "sumprod": lambda p, q: sum(a * b for a, b in zip(p, q, strict=True)),
        "prod": lambda values, start=1: functools.reduce(operator.mul, values, start),
        "fma": lambda x, y, z: x * y + z,
        "ldexp": scaled,
        "remainder": lambda x, y: x - y * np.rint(plain(x) / plain(y)),
        "modf": _modf,
        "frexp": _frexp,
    },
    cmath: {
        "log": _of_complex(_log),
        "phase": np.angle,
        "polar": lambda z: (np.abs(z), np.angle(z)),
        "rect": lambda r, phi: r * np.exp(1j * phi),
    },
}
OF_NUMBERS = {
    "log": _log, "hypot": _hypot, "erf": scipy.special.erf, "erfc": scipy.special.erfc, "gamma": scipy.special.gamma,
    "lgamma": scipy.special.gammaln,
}  # fmt: skip
STEPS = ("floor", "ceil", "trunc", "isclose", "isnan", "isinf", "isfinite")

RULES: list[Reached] = [
    *_named(math), (math, "fsum", Calling(_fsum)),
    *_named(cmath),
    *((math, name, _of_real(_numeric(getattr(math, name), same))) for name, same in OF_NUMBERS.items()),
    *(
        (module, name, as_computed(vars(module)[name], definition))
        for module, definitions in DEFINITIONS.items()
        for name, definition in definitions.items() if name in vars(module)
    ),
    *((math, name, _constant(getattr(math, name))) for name in STEPS),
    *((cmath, name, _constant(getattr(cmath, name))) for name in ("isclose", "isnan", "isinf", "isfinite")),
]  # fmt: skip
# Classes: constructors of integers and booleans give constants; those of floating-point numbers keep a traced value.
CLASSES: dict[Value, Value] = {
    **{kind: _constant(kind) for kind in (int, bool, range, np.int64, np.int32, np.intp, np.bool_)},
    float: _float, np.float64: _float64, complex: _complex,
    **{kind: _cast_to(kind) for kind in (
        np.float16, np.float32, np.longdouble, np.complex64, np.complex128, np.clongdouble,
    )},
    type: _type, np.nditer: Calling(iterator), np.broadcast: Broadcast,
}  # fmt: skip
