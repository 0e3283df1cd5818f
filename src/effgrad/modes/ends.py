"""What a program may be given and what it may return: the checks at both ends of a derivative."""

from typing import Any

import numpy as np

from effgrad.arrays.value import constant, ordinary, plain
from effgrad.errors import NotDifferentiable
from effgrad.primitives.complexes import is_complex


def entered(leaf: Any) -> Any:
    """A leaf as the program sees it: a copy of a plain array, so that nobody's later write can reach it."""
    if type(leaf) is float:
        return leaf
    leaf = ordinary(leaf)
    value = plain(leaf)
    if not is_floating(value):
        dtype = getattr(value, "dtype", None)
        name = dtype if dtype is not None else type(value).__name__
        raise NotDifferentiable(f"an input is of type {name}; derivatives need floating point: pass x.astype(float)")
    return constant(leaf)


def is_floating(leaf: Any) -> bool:
    value = plain(leaf)
    return isinstance(value, float | complex) or getattr(getattr(value, "dtype", None), "kind", "") in ("f", "c")


def check_outputs(outputs: list[Any]) -> None:
    for output in outputs:
        if not isinstance(plain(output), float | complex | int | np.generic | np.ndarray):
            what = "a function; mark it with effgrad.function" if callable(output) else f"a {type(output).__name__}"
            raise NotDifferentiable(f"an output is {what}: only numbers and arrays have derivatives")


def check_scalar(output: Any, kind: str = "f") -> None:
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
