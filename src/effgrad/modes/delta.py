"""Delta reverse mode: dual numbers whose tangent is a term, evaluated once for all inputs.

The tangent of a result is not a number but a *delta term*, which says how forward mode would have added and scaled:

* a variable: the name of the tangent of an input, or of an earlier result;
* `Scale(operation, argument, name)`: a linear map of a tangent, kept as its transpose;
* `Add(terms)`: a sum; the empty sum is Zero.

A term used twice would be evaluated twice, and shared terms make trees of exponential size. So every operation binds
its term to a fresh name (`Let`) and goes on with the name. The bindings form a list in the order of creation. The
evaluation walks the list once from its end, and transposes take the cotangent of each name to the names in its term.
Krawiec, Peyton Jones, Krishnaswami, Ellis, Eisenberg and Fitzgibbon 2022, sections 5 to 7.
"""

from collections.abc import Iterable
from typing import NamedTuple

from effgrad.modes.mode import Operation
from effgrad.modes.walk import ListMode
from effgrad.vocabulary import Cotangent, Value


class Scale(NamedTuple):
    """The derivative of an operation with respect to one argument, as a linear map applied to the tangent of a name."""

    operation: Operation
    argument: int
    name: int

    def pull(self, cotangent: Cotangent) -> Cotangent:
        return self.operation.shares([self.argument], cotangent)[0]


class Add(NamedTuple):
    """A sum of terms; it is Zero if there are none."""

    terms: tuple[Scale, ...]


class Delta(ListMode):
    """Delta reverse mode; a value's shadow is the name of its delta term."""

    def record(self, operation: Operation) -> int:
        names = enumerate(operation.shadows)
        return self.let(Add(tuple([Scale(operation, index, name) for index, name in names if name is not None])))

    def let(self, term: Add) -> int:
        """Bind a term to a fresh name, which all its uses share."""
        return self.append(term)

    def back(self, term: Add, cotangent: Cotangent) -> Iterable[tuple[int, Value]]:
        for scale in term.terms:
            part = scale.pull(cotangent)
            if part is not None:
                yield scale.name, part
