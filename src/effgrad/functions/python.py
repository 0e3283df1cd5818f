"""Rules for Python's own functions of numbers: `math`, `cmath` and the constructors of numbers."""

import cmath
import math
from typing import Any

import numpy as np
import scipy.special

from effgrad.arrays.reach import as_array
from effgrad.arrays.value import Tracer, plain, plain_tree
from effgrad.primitives.given import as_computed

# The names of `math` and `cmath`, and those of NumPy's functions that are the same.
SAME = {
    **{name: name for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log2", "log10", "log1p", "sqrt", "fabs", "hypot",
        "degrees", "radians", "copysign", "fmod", "cbrt", "exp2", "isnan", "isinf", "isfinite", "nextafter",
    )},
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": "arctan2", "pow": "power", "prod": "prod",
}  # fmt: skip


def _constant(f: Any) -> Any:
    """A function whose result is constant almost everywhere."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        return f(*plain_tree(args), **plain_tree(kwargs))

    rule.constant = True  # type: ignore[attr-defined]
    return rule


def _log(x: Any, *base: Any) -> Any:
    return np.log(x) / np.log(base[0]) if base else np.log(x)


def _hypot(*sides: Any) -> Any:
    return np.sqrt(sum(side * side for side in sides)) if len(sides) != 2 else np.hypot(*sides)


def _modf(x: Any) -> tuple[Any, Any]:
    whole = np.trunc(plain(x))
    return x - whole, whole


def _frexp(x: Any) -> tuple[Any, int]:
    exponent = math.frexp(float(plain(x)))[1]
    return x * 2.0**-exponent, exponent


def _float(value: Any = 0.0) -> Any:
    if np.ndim(plain(value)):
        float(np.zeros(np.shape(plain(value))))  # an array of several elements is no number: NumPy's own error
        value = np.reshape(value, ())
    kind = np.result_type(plain(value)).kind
    if kind == "c":
        raise TypeError("can't convert complex to float")
    if kind in "iub":
        value = value * 1.0
    return value[()] if isinstance(plain(value), np.ndarray) else value


def _double(value: Any = 0.0) -> Any:
    """`np.float64(value)`, which is an array where it is given one."""
    array = as_array(value)
    # Python's number becomes NumPy's, which division by zero makes infinite.
    return array if np.ndim(plain(array)) else np.positive(_float(value))


def _type(*args: Any) -> Any:
    """The class of one value, that of what a traced one stands for; or a new class."""
    return args[0].__class__ if len(args) == 1 else type(*args)


def _complex(real: Any = 0.0, imag: Any = 0.0) -> Any:
    return real + 1j * imag


def _is_whole(number: Any) -> bool:
    return type(number) is not float and np.result_type(number).kind in "iub"


def _numeric(original: Any, same: Any) -> Any:
    """NumPy's function in the place of one of numbers; of integers, which no derivative is about, the original."""

    def rule(*args: Any) -> Any:
        whole = all(_is_whole(plain(a)) for a in args if isinstance(a, Tracer))
        return original(*args) if whole else same(*args)

    return rule


def _named(module: Any) -> list[tuple[Any, str, Any]]:
    return [
        (module, name, _numeric(vars(module)[name], getattr(np, same)))
        for name, same in SAME.items() if name in vars(module)
    ]  # fmt: skip


RULES: list[tuple[Any, str, Any]] = [
    *_named(math),
    *_named(cmath),
    (math, "log", _numeric(math.log, _log)),
    (cmath, "log", _log),
    (math, "hypot", _numeric(math.hypot, _hypot)),
    (math, "fsum", sum),
    (math, "dist", lambda p, q: np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))),
    (math, "sumprod", lambda p, q: sum(a * b for a, b in zip(p, q, strict=True))),
    (math, "fma", lambda x, y, z: x * y + z),
    (math, "ldexp", as_computed(math.ldexp, lambda x, i: x * 2.0**i)),
    (math, "remainder", as_computed(math.remainder, lambda x, y: x - y * np.rint(plain(x) / plain(y)))),
    (math, "modf", _modf),
    (math, "frexp", _frexp),
    (math, "erf", _numeric(math.erf, scipy.special.erf)),
    (math, "erfc", _numeric(math.erfc, scipy.special.erfc)),
    (math, "gamma", _numeric(math.gamma, scipy.special.gamma)),
    (math, "lgamma", _numeric(math.lgamma, scipy.special.gammaln)),
    *((math, name, _constant(getattr(math, name))) for name in ("floor", "ceil", "trunc", "isclose")),
    (cmath, "phase", np.angle),
    (cmath, "polar", lambda z: (np.abs(z), np.angle(z))),
    (cmath, "rect", lambda r, phi: r * np.exp(1j * phi)),
]
# Classes: the constructors of integers and truth values round, those of floating point numbers keep a traced value.
CLASSES: dict[Any, Any] = {
    **{kind: _constant(kind) for kind in (int, bool, range, np.int64, np.int32, np.intp, np.bool_)},
    float: _float, np.float64: _double, np.longdouble: _double,
    **dict.fromkeys((complex, np.complex128), _complex),
    type: _type,
}
