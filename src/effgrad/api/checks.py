"""Checks of the inputs and outputs of a differentiated function, and of `argnums`."""

import operator
from collections.abc import Sequence

import numpy as np

from effgrad.arrays.layout import NUMERIC_KINDS, dtype_of
from effgrad.arrays.namespace import wrap
from effgrad.arrays.value import Tracer, constant, example, plain, to_operand
from effgrad.errors import NotDifferentiable
from effgrad.primitives.complexes import is_complex
from effgrad.vocabulary import Function, Tree, Value


def as_input(leaf: Value) -> Value:
    """Return a leaf as an input of the program; a plain array is copied, so that later writes do not change it."""
    if type(leaf) is float:
        return leaf
    leaf = to_operand(leaf)
    value = plain(leaf)
    if not is_floating(value):
        raise NotDifferentiable(_not_floating(value))
    return constant(leaf)


def _not_floating(value: Value) -> str:
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return f"an input is of type {dtype}; derivatives need floating point: pass x.astype(float)"
    name = type(value).__name__
    if type(value) in (int, bool):
        return f"an input is of type {name}; derivatives need floating point: pass {float(value)}"
    return f"an input is of type {name}; numbers and arrays have derivatives: choose them with argnums"


def is_number(leaf: Value) -> bool:
    """Whether a leaf is a number or an array of numbers, traced or plain."""
    number = isinstance(leaf, Tracer | int | float | complex | np.generic | np.ndarray)
    return number and dtype_of(leaf).kind in NUMERIC_KINDS


def is_floating(leaf: Value) -> bool:
    value = plain(leaf)
    return isinstance(value, float | complex) or getattr(getattr(value, "dtype", None), "kind", "") in ("f", "c")


def check_outputs(outputs: list[Value]) -> None:
    for output in outputs:
        dtype = getattr(plain(output), "dtype", None)
        if dtype is not None and dtype.kind not in NUMERIC_KINDS:
            raise NotDifferentiable(f"an output is an array of {dtype}: only numbers have derivatives")
        if not isinstance(plain(output), float | complex | int | np.generic | np.ndarray):
            what = "a function; mark it with effgrad.function" if callable(output) else f"a {type(output).__name__}"
            raise NotDifferentiable(f"an output is {what}: only numbers and arrays have derivatives")


def check_scalar(output: Tree, kind: str = "f") -> None:
    value = plain(output)
    if kind == "f" and type(value) in (float, np.float64):
        return
    shape = np.shape(value) if isinstance(value, float | int | np.generic | np.ndarray | complex) else None
    if shape is None or shape != () or np.result_type(value).kind != kind:
        what = f"an array of shape {shape}" if shape else f"{value!r} of type {type(value).__name__}"
        if kind == "c":
            raise NotDifferentiable(f"with holomorphic=True, f has to return one complex number; it returned {what}")
        hint = "; take its real part, or holomorphic=True" if shape == () and is_complex(value) else ""
        raise NotDifferentiable(f"grad needs a function that returns one real number; it returned {what}{hint}")


def check_holomorphic(derivatives: list[Value], turned: list[Value]) -> None:
    """Check that the derivative along i is i times that along 1 (Cauchy-Riemann)."""
    for one, i in zip(derivatives, turned, strict=True):
        if not is_complex(wrap(one)):
            raise NotDifferentiable("a holomorphic function has complex inputs: pass x.astype(complex)")
        a, b = example(wrap(one)) * 1j, example(wrap(i))
        eps = np.finfo(np.result_type(a)).eps
        if not np.allclose(a, b, rtol=eps**0.5, atol=eps**0.5, equal_nan=True):
            raise NotDifferentiable("the function is not holomorphic here: its derivatives along 1 and i do not agree")


def argument_numbers(argnums: int | Sequence[int]) -> int | list[int]:
    given: Value = argnums
    try:
        return operator.index(given) if np.ndim(given) == 0 else [operator.index(n) for n in given]
    except TypeError:
        raise ValueError(f"argnums is {argnums!r}; it has to be a number, or a sequence of numbers") from None


def split_arguments(args: tuple[Value, ...], argnums: int | list[int]) -> tuple[tuple[Value, ...], Function]:
    if type(argnums) is int and 0 <= argnums < len(args):
        return (args[argnums],), lambda inputs: [*args[:argnums], inputs[0], *args[argnums + 1 :]]
    numbers = [argnums] if isinstance(argnums, int) else argnums
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ValueError(f"argnums has {n}, but the function was called with {len(args)} positional arguments")
    if len(numbers) > 1 and len({n % len(args) for n in numbers}) < len(numbers):
        raise ValueError(f"argnums is {argnums}, which names an argument twice")

    def rebuild(inputs: Sequence[Value]) -> list[Value]:
        full = list(args)
        for n, value in zip(numbers, inputs, strict=True):
            full[n] = value
        return full

    return tuple(args[n] for n in numbers), rebuild
