"""The types of MAM and EFF, and how they are shown: types of values and of computations.

Sigal 2024, section 7.2, figures 7.3 and 7.19, after Forster, Kammar, Lindley and Pretnar 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Variable:
    """A type variable."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Base:
    """A base type of the signature; `1` is the unit type."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Product:
    left: ValueType
    right: ValueType

    def __str__(self) -> str:
        left = f"({self.left})" if isinstance(self.left, Product) else str(self.left)
        return f"{left} * {self.right}"


@dataclass(frozen=True, slots=True)
class Variant:
    cases: tuple[tuple[str, ValueType], ...]

    def __str__(self) -> str:
        return f"<{', '.join(f'{label} {type_}' for label, type_ in self.cases)}>"


@dataclass(frozen=True, slots=True)
class Ref:
    """The type of a reference to a value in the store."""

    item: ValueType

    def __str__(self) -> str:
        return f"Ref ({self.item})" if isinstance(self.item, Product) else f"Ref {self.item}"


@dataclass(frozen=True, slots=True)
class U:
    """The type of a suspended computation, with the operations it may perform."""

    effect: frozenset[str]
    type: ComputationType

    def __str__(self) -> str:
        return f"U[{', '.join(sorted(self.effect))}] {_small(self.type)}"


@dataclass(frozen=True, slots=True)
class F:
    """The type of a computation that returns a value."""

    type: ValueType

    def __str__(self) -> str:
        return f"F ({self.type})" if isinstance(self.type, Product) else f"F {self.type}"


@dataclass(frozen=True, slots=True)
class Arrow:
    argument: ValueType
    result: ComputationType

    def __str__(self) -> str:
        return f"{self.argument} -> {self.result}"


@dataclass(frozen=True, slots=True)
class Both:
    """The type of a pair of computations, of which one will be run."""

    left: ComputationType
    right: ComputationType

    def __str__(self) -> str:
        return f"{_small(self.left)} & {_small(self.right)}"


def _small(type_: ComputationType) -> str:
    return str(type_) if isinstance(type_, F) else f"({type_})"


ValueType = Variable | Base | Product | Variant | Ref | U
ComputationType = F | Arrow | Both

UNIT, R, Z = Base("1"), Base("R"), Base("Z")
BOOL = Variant((("true", UNIT), ("false", UNIT)))
Effect = frozenset[str]
# The parameter and the result of every operation.
Operations = Mapping[str, tuple[ValueType, ValueType]]


def type_parts(type_: Any) -> tuple[Any, ...]:
    """The types directly inside a type."""
    match type_:
        case Product(left, right) | Both(left, right) | Arrow(left, right):
            return left, right
        case Variant(cases):
            return tuple(item for _, item in cases)
        case U(_, inner) | F(inner) | Ref(inner):
            return (inner,)
    return ()
