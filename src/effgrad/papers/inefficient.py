"""Two correct but slow predecessors of delta reverse mode, which show why that mode names its terms.

* `Vectors`: dual numbers whose tangent is the vector of the derivatives with respect to all inputs. One pass gives the
  gradient, but the cost of each operation is proportional to the number of inputs.
* `Trees`: the tangent is a delta term, evaluated once at the end. The evaluation costs as much as the term is large.
  The term contains the term of a value once for each use of the value, so n doublings make 2^n terms.

Both are for programs on numbers. `costs` compares their work with that of `delta`.
Krawiec, Peyton Jones, Krishnaswami, Ellis, Eisenberg and Fitzgibbon 2022, sections 5.1 and 5.2.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.api.counting import Counting
from effgrad.arrays.traced import Traced
from effgrad.modes.delta import Delta
from effgrad.modes.mode import Mode
from effgrad.papers.lam.delta import Add, OneHot, Scale
from effgrad.vocabulary import Object, Tangent


class Duals(Mode, abc.ABC):
    """Dual numbers over some kind of tangent. Subclasses define its scaling and addition, and count their work."""

    def enter(self) -> None:
        self.count = 0

    def apply(self, primitive: Any, *args: Object, **params: Object) -> Traced:
        primals = [self.primal(a) for a in args]
        result = primitive(*primals, **params)
        tangent = None
        for index, arg in enumerate(args):
            partial = primitive.push(index, 1.0, result, *primals, **params) if self.owns(arg) else None
            if partial is not None:
                part = self.scaled(arg.shadow, partial)
                tangent = part if tangent is None else self.added(tangent, part)
        return Traced(self, result, self.zero if tangent is None else tangent)

    @abc.abstractmethod
    def gradient(self, f: Callable[..., object], inputs: Sequence[float]) -> tuple[list[float], int]:
        """Return the gradient of a function of numbers, and the count of the work for it."""

    @abc.abstractmethod
    def scaled(self, tangent: Tangent, partial: Object) -> Object:
        """A tangent times a partial."""

    @abc.abstractmethod
    def added(self, first: object, second: object) -> Object:
        """The sum of two tangents."""

    zero: Any = None


class Vectors(Duals):
    """Section 5.1: a tangent is a vector with one number for each input. The work is the numbers computed for these."""

    def scaled(self, tangent: Tangent, partial: Object) -> Object:
        self.count += np.size(tangent)
        return tangent * partial

    def added(self, first: Object, second: Object) -> Object:
        self.count += np.size(first)
        return first + second

    def gradient(self, f: Callable[..., Object], inputs: Sequence[float]) -> tuple[list[float], int]:
        with self as activation:
            activation.zero = np.zeros(len(inputs))
            one_hot = np.eye(len(inputs))
            output = f(*[Traced(activation, x, u) for x, u in zip(inputs, one_hot, strict=True)])
            tangent = output.shadow if activation.owns(output) else activation.zero
        return list(map(float, tangent)), activation.count


class Trees(Duals):
    """Section 5.2: a tangent is a term without names. The work is the number of terms evaluated."""

    def scaled(self, tangent: Tangent, partial: Object) -> Object:
        return Scale(partial, tangent)

    def added(self, first: Object, second: Object) -> Object:
        return Add(first, second)

    def gradient(self, f: Callable[..., Object], inputs: Sequence[float]) -> tuple[list[float], int]:
        with self as activation:
            output = f(*[Traced(activation, x, OneHot(place)) for place, x in enumerate(inputs, 1)])
            gradient = [0.0] * len(inputs)
            pending = [(1.0, output.shadow)] if activation.owns(output) else []
            while pending:
                cotangent, term = pending.pop()
                activation.count += 1
                match term:
                    case OneHot(place):
                        gradient[place - 1] += cotangent
                    case Scale(factor, inner):
                        pending.append((cotangent * factor, inner))
                    case Add(first, second):
                        pending += [(cotangent, second), (cotangent, first)]
        return gradient, activation.count


def costs(f: Callable[..., object], inputs: Sequence[float]) -> dict[str, int]:
    """Return the cost of a gradient by each method, for a function of numbers.

    The costs are the number of operations of the program, of numbers that `Vectors` computes for tangents, and of terms
    that `Trees` and `Delta` evaluate.

    >>> def doubled(x, times=20):
    ...     for _ in range(times):
    ...         x = x + x
    ...     return x
    >>> costs(doubled, [1.0])
    {'operations': 20, 'vectors': 60, 'trees': 4194301, 'delta': 40}
    """
    with Counting() as counting:
        f(*map(counting.variable, inputs))
    with Delta() as delta:
        f(*map(delta.variable, inputs))
    return {
        "operations": len(counting.performed),
        "vectors": Vectors().gradient(f, inputs)[1],
        "trees": Trees().gradient(f, inputs)[1],
        "delta": sum(len(term.terms) for term in delta.entries if term is not None),
    }
