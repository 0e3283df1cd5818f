"""The types of values and of computations in MAM and EFF, and how they are written.

Sigal 2024, section 7.2, figures 7.3 and 7.19, after Forster, Kammar, Lindley and Pretnar 2019.
"""

from collections.abc import Mapping
from typing import TypeAlias

from effgrad.papers import syntax
from effgrad.papers.syntax import Arrow as Arrow
from effgrad.papers.syntax import Base as Base
from effgrad.papers.syntax import Product as Product
from effgrad.papers.syntax import Type as Type

ValueType: TypeAlias = Type
ComputationType: TypeAlias = Type


class Variable(Type):
    """A type variable."""

    name: str
    form = "{}"


class Variant(Type):
    cases: tuple[tuple[str, ValueType], ...]

    def text(self) -> str:
        return f"<{', '.join(f'{label} {type_}' for label, type_ in self.cases)}>"


class Ref(Type):
    """The type of a reference to a value in the store."""

    item: ValueType
    form = "Ref {:3}"


class U(Type):
    """The type of a suspended computation, with the operations it may perform."""

    effect: frozenset[str]
    type: ComputationType

    def text(self) -> str:
        return f"U[{', '.join(sorted(self.effect))}] {self.type.written(3)}"


class F(Type):
    """The type of a computation that returns a value."""

    type: ValueType
    form = "F {:3}"


class Both(Type):
    """The type of a pair of computations, of which one will be run."""

    left: ComputationType
    right: ComputationType
    form, level = "{:3} & {:3}", 0


UNIT, R, Z = Base("1"), Base("R"), Base("Z")
BOOL = Variant((("true", UNIT), ("false", UNIT)))
Effect = frozenset[str]
# The types of the parameter and the result of every operation, by its name.
Operations = Mapping[str, tuple[ValueType, ValueType]]


def power(type_: ValueType, n: int) -> ValueType:
    """The n-fold product; the unit type for n = 0."""
    return syntax.power(type_, n) if n else UNIT
