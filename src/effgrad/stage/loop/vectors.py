"""Functions of NumPy that a region computes by a definition in Python, which capture reads as it reads the program.

The definitions are for vectors of real numbers; for other arguments NumPy is called.
"""

import inspect
from typing import Any

import numpy as np

from effgrad.stage.loop import fancy
from effgrad.stage.loop.operands import Lazy, Value, View, symbolic
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Function


def _cumsum(a: Value) -> Value:
    sums, total = np.zeros_like(a), 0.0
    for i in range(len(a)):
        total = total + a[i]
        sums[i] = total
    return sums


def _cumprod(a: Value) -> Value:
    products, total = np.zeros_like(a), 1.0
    for i in range(len(a)):
        total = total * a[i]
        products[i] = total
    return products


def _prod(a: Value) -> Value:
    total = a.dtype.type(1.0)
    for i in range(len(a)):
        total = total * a[i]
    return total


def _convolve(a: Value, v: Value) -> Value:
    result = np.zeros(len(a) + len(v) - 1, a.dtype)
    for i in range(len(v)):
        result[i : i + len(a)] += v[i] * a
    return result


def _trapezoid(y: Value, x: Value) -> Value:
    return np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2.0)


def _unit_trapezoid(y: Value) -> Value:
    return np.sum((y[1:] + y[:-1]) / 2.0)


def _vdot(a: Value, b: Value) -> Value:
    return a @ b


def _cross(a: Value, b: Value) -> Value:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _average(a: Value, weights: Value) -> Value:
    total = np.sum(weights)
    if total == 0.0:
        raise ZeroDivisionError("weights sum to zero")
    return np.sum(a * weights) / total


def is_vector(a: Value) -> bool:
    """Whether an argument is an array of real numbers with one axis and at least one element."""
    kind = isinstance(a, View | Lazy | np.ndarray) and a.dtype.kind == "f"
    return kind and len(a.shape) == 1 and a.shape[0] != 0


def _rule(f: Any, *definitions: Function, size: int | None = None) -> Any:
    """Make the rule of a function of vectors, maybe of one size, from its definition for each number of arguments."""
    by_count = {len(inspect.signature(definition).parameters): definition for definition in definitions}

    def run(c: Symbols, *args: Value, **kwargs: Value) -> Value:
        given = [*args, *kwargs.values()] if set(kwargs) <= {"weights"} else []
        fits = all(is_vector(a) and size in (None, a.shape[0]) for a in given)
        if len(given) in by_count and fits and symbolic(given):
            return c.inline(by_count[len(given)], given, {})
        return fancy.applied(c, f, args, kwargs) if symbolic([args, *kwargs.values()]) else f(*args, **kwargs)

    return rule(f)(run)


_sums = _rule(np.cumsum, _cumsum)
_products = _rule(np.cumprod, _cumprod)
_product = _rule(np.prod, _prod)
_convolution = _rule(np.convolve, _convolve)
_conjugated = _rule(np.vdot, _vdot)
_across = _rule(np.cross, _cross, size=3)
_weighted = _rule(np.average, _average)
_integral = _rule(np.trapezoid, _unit_trapezoid, _trapezoid)
