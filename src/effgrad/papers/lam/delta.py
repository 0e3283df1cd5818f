"""Delta terms, which the reverse translations use as tangents, and their evaluation.

`evaluate` visits each node of a term once and adds cotangents to a map from names, so its cost is linear in the size of
the term. It uses a list of pending nodes instead of recursion, since a program of n operations makes a chain of n
nested `Let`. Krawiec et al. 2022, figures 7, 8 and 11.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from effgrad.vocabulary import Object


@dataclass(frozen=True, slots=True)
class Zero:
    """The zero tangent."""


@dataclass(frozen=True, slots=True)
class OneHot:
    """The tangent of one component of the input, counted from 1."""

    index: int


@dataclass(frozen=True, slots=True)
class Scale:
    factor: Any
    delta: "Delta"


@dataclass(frozen=True, slots=True)
class Add:
    left: "Delta"
    right: "Delta"


@dataclass(frozen=True, slots=True)
class Var:
    """The delta term that is bound to a name."""

    name: int


@dataclass(frozen=True, slots=True)
class Let:
    name: int
    bound: "Delta"
    body: "Delta"


Delta = Zero | OneHot | Scale | Add | Var | Let


@dataclass
class State:
    """The state of the monad M: the next free name, and the bindings so far, the oldest first."""

    free: int
    bindings: list[tuple[int, Delta]] = field(default_factory=list)

    def let(self, delta: Delta) -> int:
        """`deltaLet`: bind a delta term to a fresh name, and return the name."""
        name, self.free = self.free, self.free + 1
        self.bindings.append((name, delta))
        return name

    def wrapped(self, delta: Delta) -> Delta:
        """Return a delta term inside a `Let` for each binding, the newest innermost."""
        for name, bound in reversed(self.bindings):
            delta = Let(name, bound, delta)
        return delta


def evaluate(factor: Object, delta: Delta, given: dict[int, object], visit: Callable[[], None]) -> dict[int, Object]:
    """`eval`: return the map `given`, plus the contributions of a delta term, times a factor, to its free names.

    `visit` is called for each node, to count the work.
    """
    collected = dict(given)
    todo: list[tuple[Object, Delta]] = [(factor, delta)]
    while todo:
        factor, delta = todo.pop()
        visit()
        if isinstance(factor, _Pending):
            if factor.name not in collected:
                continue
            factor = collected.pop(factor.name)
        match delta:
            case Scale(by, inner):
                todo.append((factor * by, inner))
            case Add(left, right):
                todo += [(factor, right), (factor, left)]
            case Var(name) | OneHot(name):
                collected[name] = collected[name] + factor if name in collected else factor
            case Let(name, bound, body):
                todo += [(_Pending(name), bound), (factor, body)]
    return collected


@dataclass(frozen=True, slots=True)
class _Pending:
    """The factor of a binding, which is the cotangent that its body will have contributed to its name."""

    name: int
