"""Functions with rules in captured loops: values are those of NumPy, and derivatives those of differences."""

import math
import warnings

import numpy as np
import pytest

from effgrad import compile, grad

SQUARE = np.arange(4.0).reshape(2, 2)


def loops(step, start=0.3):
    """The sum of `step(total, i)` over enough steps that the loop is captured."""

    def f(x):
        total = x
        for i in range(40):
            total = 0.5 * total + step(x, i)
        return total

    return f


def annotated(x, i):
    half: float = 0.5 * x
    return half


def complex_step(function):
    return lambda x, i: np.real(function(x + 1j * (0.2 + 0.01 * i))) + np.imag(function(1j * x + 0.4))


REAL = {
    "tensordot": lambda x, i: np.sum(np.tensordot(x * np.ones((2, 3)), np.arange(3.0) + x, axes=1)),
    "tensordot of two axes": lambda x, i: np.tensordot(x * np.ones((2, 3)), x + np.ones((3, 2)), ([0, 1], [1, 0])),
    "einsum of three": lambda x, i: np.einsum("i,ij,j->", x * np.ones(2), np.ones((2, 3)) + x, np.arange(3.0)),
    "column_stack": lambda x, i: np.sum(np.column_stack([x * np.arange(3.0), np.ones(3)]) ** 2),
    "append along an axis": lambda x, i: np.sum(np.append(x * np.ones((1, 2)), np.ones((1, 2)), 0) ** 2),
    "full": lambda x, i: np.sum(np.full(3, x) ** 2),
    "ones_like": lambda x, i: np.sum(np.ones_like(x * np.ones(3)) * x),
    "zeros_like": lambda x, i: np.sum(np.zeros_like(x * np.ones(3)) + x),
    "min": lambda x, i: np.min(np.arange(3.0) + x),
    "maximum.reduce": lambda x, i: np.sum(np.maximum.reduce(x * SQUARE)),
    "add.reduce": lambda x, i: np.sum(np.add.reduce(x * SQUARE) ** 2),
    "reversed": lambda x, i: sum(k * y for k, y in enumerate(reversed([x, x * x, 1.0]))),
    "int": lambda x, i: x * int(0.5 * i),
    "bool": lambda x, i: x if bool(i % 2) else x * x,
    "abs of an integer": lambda x, i: x * abs(i - 20),
    "tuple": lambda x, i: tuple(x * np.arange(2.0))[1],
    "flatten": lambda x, i: np.sum((x * np.ones((2, 2))).flatten() ** 2),
    "size and ndim": lambda x, i: x * (x * np.ones((2, 3))).size * (x * np.ones(2)).ndim,
    "annotated": annotated,
    **{f.__name__: lambda x, i, f=f: f(x) for f in (
        math.sin, math.cos, math.tan, math.exp, math.sqrt, math.tanh, math.sinh, math.cosh, math.log1p, math.expm1,
        math.fabs, math.log, math.asin, math.acos, math.atan)},
    **{f.__name__: lambda x, i, f=f: f(x, 1.5) for f in (math.hypot, math.copysign, math.pow, math.atan2)},
    "floor and ceil": lambda x, i: x * (math.floor(i / 3) + math.ceil(i / 7)),
}  # fmt: skip
COMPLEX = {
    f.__name__: complex_step(f)
    for f in (np.exp, np.log, np.sqrt, np.sin, np.cos, np.sinh, np.cosh, np.conj, np.square, np.reciprocal)
} | {
    "negative": complex_step(lambda z: -z),
    "quotient": complex_step(lambda z: (1.0 + z) / (2.0 - z)),
    "real divisor": complex_step(lambda z: z / 3.0),
    "cube": complex_step(lambda z: z**3),
    "power": complex_step(lambda z: z**1.7),
    "full": complex_step(lambda z: np.sum(np.full(2, 1j) * z)),
    "transpose": complex_step(lambda z: np.sum((z * SQUARE).T[0])),
    "size": complex_step(lambda z: z * (z * np.ones(3)).size),
}


@pytest.mark.parametrize("step", [*REAL.values(), *COMPLEX.values()], ids=[*REAL, *[f"complex {n}" for n in COMPLEX]])
def test_a_rule_of_a_captured_loop_is_right(step):
    f, x, h = loops(step), 0.37, 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = compile(f)(x), compile(grad(f))(x)
    assert value == pytest.approx(f(x), rel=1e-13)
    assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-7, abs=1e-9)
