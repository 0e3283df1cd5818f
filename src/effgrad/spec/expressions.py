"""Expressions in tagless-final style, and the mathematical expressions that they denote.

An expression is a function of a dictionary (zero, one, add, mul) and a value. It computes with the numbers that it is
given and cannot inspect them. It may use loops, branches and state. De Vilhena and Pottier 2023, section 1, figures 1
to 3.

An expression denotes an element of the free semiring on one generator X, which is a polynomial with natural
coefficients, section 6.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from effgrad.vocabulary import Value

V = TypeVar("V")


@dataclass(frozen=True)
class Dictionary(Generic[V]):
    """The operations of a semiring on numbers of one type."""

    zero: V
    one: V
    add: Callable[[V, V], V]
    mul: Callable[[V, V], V]


Numbers = Dictionary[Any]


class Expression(Protocol):
    """An expression of one variable, polymorphic in the type of numbers and in the effects of their operations."""

    def __call__(self, dictionary: Dictionary[V], x: V, /) -> V: ...


class MapExpression(Protocol):
    """An expression of n variables with a list of results, polymorphic in the type of numbers."""

    def __call__(self, dictionary: Numbers, /, *xs: Value) -> list[Value]: ...


class Polynomial:
    """An element of the free semiring, as a table of its natural coefficients, except zeros, by exponent.

    A polynomial can be called with a dictionary and a value to evaluate it, so it is an expression too.

    >>> (X + 1) ** 2, ((X + 1) ** 2).derivative()
    (X^2 + 2 X + 1, 2 X + 2)
    """

    __slots__ = ("coefficients",)

    def __init__(self, coefficients: dict[int, int]) -> None:
        self.coefficients = {k: c for k, c in sorted(coefficients.items(), reverse=True) if c}

    def __add__(self, other: "Polynomial | int") -> "Polynomial":
        total = dict(self.coefficients)
        for k, c in _polynomial(other).coefficients.items():
            total[k] = total.get(k, 0) + c
        return Polynomial(total)

    def __mul__(self, other: "Polynomial | int") -> "Polynomial":
        product: dict[int, int] = {}
        for j, b in _polynomial(other).coefficients.items():
            for k, c in self.coefficients.items():
                product[j + k] = product.get(j + k, 0) + b * c
        return Polynomial(product)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, n: int) -> "Polynomial":
        return monomial(n)(FREE, self)

    def derivative(self) -> "Polynomial":
        return Polynomial({k - 1: k * c for k, c in self.coefficients.items() if k})

    def __call__(self, dictionary: Dictionary[V], x: V) -> V:
        total = dictionary.zero
        for k, c in self.coefficients.items():
            total = dictionary.add(total, dictionary.mul(natural(dictionary, c), monomial(k)(dictionary, x)))
        return total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.coefficients == other.coefficients

    def __hash__(self) -> int:
        return hash(tuple(self.coefficients.items()))

    def __repr__(self) -> str:
        return " + ".join(_term(k, c) for k, c in self.coefficients.items()) or "0"


def _term(k: int, c: int) -> str:
    power = "" if k == 0 else "X" if k == 1 else f"X^{k}"
    return f"{c} {power}" if c > 1 and power else power or str(c)


def _polynomial(value: Polynomial | int) -> Polynomial:
    return Polynomial({0: value}) if isinstance(value, int) else value


X = Polynomial({1: 1})
FREE: Dictionary[Polynomial] = Dictionary(Polynomial({}), Polynomial({0: 1}), Polynomial.__add__, Polynomial.__mul__)


def monomial(k: int) -> Expression:
    """Return the expression x^k, computed by squaring in a loop over mutable variables.

    A derivative sees none of the loop and the variables. De Vilhena and Pottier 2023, figure 3.

    >>> monomial(5)(FREE, X)
    X^5
    """

    def expression(dictionary: Dictionary[V], x: V) -> V:
        result, rest = dictionary.one, k
        while rest > 0:
            result = dictionary.mul(result, dictionary.one if rest % 2 == 0 else x)
            x = dictionary.mul(x, x)
            rest //= 2
        return result

    return expression


def natural(dictionary: Dictionary[V], n: int) -> V:
    """Return the number n of a semiring, 1 + 1 + ... + 1, computed by doubling."""
    total, power = dictionary.zero, dictionary.one
    while n:
        if n % 2:
            total = dictionary.add(total, power)
        power, n = dictionary.add(power, power), n // 2
    return total


def opaque(e: Expression) -> Expression:
    """Return the same expression, which now gets operations that do not show which dictionary is behind them."""

    def expression(dictionary: Dictionary[V], x: V) -> V:
        def add(a: V, b: V) -> V:
            return dictionary.add(a, b)

        def mul(a: V, b: V) -> V:
            return dictionary.mul(a, b)

        return e(Dictionary(dictionary.zero, dictionary.one, add, mul), x)

    return expression
