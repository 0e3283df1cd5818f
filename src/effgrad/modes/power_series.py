"""Truncated power series: their coefficients on demand, and the operations with closed formulas for these."""

from collections.abc import Callable, Iterator

import numpy as np

from effgrad.arrays.value import Tracer, plain
from effgrad.primitives.elementwise import add, divide, multiply, subtract
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Value

SMALL = 64  # elements of a constant that is compared with others


class Series:
    """A power series; `rule` computes each coefficient from earlier ones on demand, and `known` keeps them."""

    def __init__(self, first: Value, rule: Callable[[int], Value]) -> None:
        self.known, self.rule = [first], rule

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the coefficients that are known so far."""
        return iter(self.known)

    def __getitem__(self, k: int) -> Value:
        while len(self.known) <= k:
            self.known.append(self.rule(len(self.known)))
        return self.known[k]


def product(a: Series, b: Series) -> Callable[[int], Value]:
    """Return the rule of a product: each coefficient is a convolution."""
    return lambda k: sum((a[j] * b[k - j] for j in range(1, k + 1)), start=a[0] * b[k])


def quotient(a: Series, b: Series, value: Value) -> Series:
    """Return the series of a quotient, by that of its product with the divisor."""
    result = Series(value, lambda k: None)
    result.rule = lambda k: sum((-b[j] * result[k - j] for j in range(1, k + 1)), start=a[k]) / b[0]
    return result


def is_linear(primitive: Primitive, moving: list[Value]) -> bool:
    """Whether an operation is linear in the arguments that have series: a sum, or a constant multiple."""
    return primitive in (add, subtract, multiply) or primitive is divide and moving[1] is None


def coefficients(primitive: Primitive, moving: list[Value], primals: list[Value], k: int) -> Iterator[Value]:
    """Iterate over the coefficients of the arguments; a constant has the coefficient 0, but is a factor itself."""
    factor = primitive is multiply or primitive is divide
    for series, primal in zip(moving, primals, strict=True):
        yield series[k] if series is not None else primal if factor else zeros_of(primal)


def key_of(value: Value) -> object:
    """Return a constant as a key, or None for a large or a traced one, or one of another library's numbers."""
    if isinstance(value, Tracer) or np.size(value) > SMALL:
        return None
    value = np.asarray(value)
    return None if value.dtype.kind == "O" else (value.dtype, value.shape, value.tobytes())


def zeros_after(constant: object) -> Series:
    """Return the series of a constant."""
    return Series(constant, lambda k: zeros_of(constant))


def zeros_of(like: Value) -> Value:
    """Return zeros with the shape and dtype of a value; 0 for another library's number, such as a fraction."""
    like = plain(like)
    known = isinstance(like, Tracer | np.ndarray | np.generic | float | int | complex)
    return np.zeros(np.shape(like), np.result_type(like))[()] if known else 0
