"""Rules for the functions of Python's module `math` on symbolic values."""

import ast
import functools
import math

import numpy as np

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.element import primitive_of
from effgrad.stage.loop.operands import Value, symbolic
from effgrad.stage.loop.registry import is_symbolic, rule
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Function

# Those that NumPy has under another name.
NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}


def _of_math(f: Function, c: Symbols, *args: Value) -> Value:
    if not is_symbolic(*args):
        return f(*args)
    primitive = primitive_of(getattr(np, NAMES.get(f.__name__, f.__name__)))
    if primitive is None or len(args) > 2:
        raise NotCaptured(f"math.{f.__name__}")
    return c.elementwise(primitive, *args)


# The functions of `math` that NumPy has too.
_RULES = [rule(f)(functools.partial(_of_math, f)) for f in (
    math.sin, math.cos, math.tan, math.exp, math.sqrt, math.tanh, math.sinh, math.cosh,
    math.log1p, math.expm1, math.fabs, math.hypot, math.copysign, math.pow, math.atan2, math.asin, math.acos,
    math.atan, math.isnan, math.isinf, math.isfinite,
)]  # fmt: skip


@rule(math.log)
def _log(c: Symbols, x: Value, *base: Value) -> Value:
    if not is_symbolic(x, *base):
        return math.log(x, *base)
    found = [_of_math(math.log, c, a) for a in (x, *base)]
    return found[0] if not base else c.binary(ast.Div(), *found)


@rule(math.prod)
def _prod(c: Symbols, values: Value, start: Value = 1) -> Value:
    items = c.items(values)
    if not symbolic([*items, start]):
        return math.prod(items, start=start)
    return functools.reduce(functools.partial(c.binary, ast.Mult()), items, start)
