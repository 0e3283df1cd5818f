"""Delta reverse mode: dual numbers whose tangent is a term, evaluated once for all inputs.

The tangent of a result is not a number but a *delta term*, what forward mode would have added and scaled:

* `Var(name)`: the tangent of an input, or of an earlier result;
* `Scale(pull, term)`: a linear map of a tangent, kept as its transpose;
* `Add(terms)`: a sum; the empty sum is Zero.

A term used twice would be evaluated twice, and shared terms make trees of exponential size. So every operation binds
its term to a fresh name (`Let`) and goes on with a variable. The bindings form a list in the order of creation, and
`evaluate` walks it once from its end: transposes take the cotangent of each name to the names in its term.
Krawiec, Peyton Jones, Krishnaswami, Ellis, Eisenberg and Fitzgibbon 2022, sections 5 to 7.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from effgrad.arrays.value import KINDS, Smooth, Traced, constant, owned
from effgrad.effects import Handler
from effgrad.modes.region import Checkpoint, Region, leaked
from effgrad.primitives import cotangents


@dataclass(slots=True)
class Var:
    """The tangent bound to a name."""

    name: int


@dataclass(slots=True)
class Scale:
    """A linear map of a tangent, by its transpose."""

    pull: Callable[[Any], Any]
    term: Var


@dataclass(slots=True)
class Add:
    """The sum of tangents; Zero if there is none."""

    terms: tuple[Scale, ...]


@dataclass(slots=True)
class Rerun:
    """The tangents of a checkpointed part's results, as bindings that are made when they are needed."""

    region: Region
    names: tuple[int, ...]


ZERO = Add(())


class Delta(Handler[Smooth, Checkpoint]):
    """Delta reverse mode; a traced value's shadow is a variable, the name of its delta term."""

    def enter(self) -> None:
        self.bindings: list[Add | Rerun] = []
        self.recording = True
        self.seeds: list[tuple[Var, Any]] = []

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        primals = [self.primal(a) for a in args]
        result = primitive(*primals, **params)
        if not self.recording:
            return Traced(self, result, None)

        def scale(index: int, term: Var) -> Scale:
            if term is None:
                raise leaked()
            return Scale(lambda g: primitive.pull_all([index], g, result, primals, params)[0], term)

        terms = [scale(i, a.shadow) for i, a in enumerate(args) if type(a) in KINDS and a.owner is self]
        return Traced(self, result, self.let(Add(tuple(terms))))

    def run(self, thunk: Callable[[], Any]) -> Any:
        """A checkpoint: the bindings of its operations are made when the evaluation comes to it."""
        if not self.recording:
            return thunk()
        region = Region(self, thunk, lambda part: part.shadow is None, recording=False)
        first = len(self.bindings) + 1
        self.bindings.append(Rerun(region, tuple(range(first, first + len(region.parts)))))
        for part in region.parts:
            part.shadow = self.let(ZERO)
        return region.result

    def let(self, term: Add) -> Var:
        """Bind a term to a fresh name, for all its uses to share."""
        self.bindings.append(term)
        return Var(len(self.bindings) - 1)

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation; what is not owned here is a constant."""
        return value.primal if type(value) in KINDS and value.owner is self else constant(value)

    def variable(self, primal: Any) -> Traced:
        """An input of the program: a name of its own, bound to nothing."""
        return Traced(self, primal, self.let(ZERO))

    def seed(self, value: Traced, cotangent: Any) -> None:
        """Let the evaluation begin with a cotangent of a value."""
        if owned(value, self).shadow is None:
            raise leaked()
        self.seeds.append((value.shadow, cotangent))

    def cotangents(self, variables: list[Var]) -> list[Any]:
        """The cotangents of the variables."""
        return self.pull(self.seeds, variables)

    def pull(self, seeds: list[tuple[Var, Any]], variables: list[Var]) -> list[Any]:
        """The cotangents of the variables from those of some values; any number of times."""
        collected: list[Any] = [None] * len(self.bindings)
        for variable, cotangent in seeds:
            collected[variable.name] = cotangents.add(collected[variable.name], cotangent)
        self.evaluate(collected, 0)
        return [collected[variable.name] for variable in variables]

    def evaluate(self, collected: list[Any], first: int) -> None:
        """Take the cotangents of the names from the last down to `first` to the names in their terms."""
        for name in range(len(self.bindings) - 1, first - 1, -1):
            term = self.bindings[name]
            if isinstance(term, Rerun):
                self._evaluate_again(collected, term)
            elif collected[name] is not None and term is not ZERO:
                for scale in term.terms:
                    part = scale.pull(collected[name])
                    if part is not None:
                        target = scale.term.name
                        collected[target] = cotangents.add(collected[target], part)
                collected[name] = None

    def _evaluate_again(self, collected: list[Any], rerun: Rerun) -> None:
        given = [collected[name] for name in rerun.names]
        if all(cotangent is None for cotangent in given):
            return
        end = len(self.bindings)
        parts = rerun.region.again()
        collected.extend([None] * (len(self.bindings) - end))
        for part, cotangent in zip(parts, given, strict=True):
            if cotangent is not None:
                collected[part.shadow.name] = cotangents.add(collected[part.shadow.name], cotangent)
        self.evaluate(collected, end)
        del self.bindings[end:], collected[end:]
