"""The right-hand side of a differential equation on plain numbers, compiled after it was evaluated often enough.

A solver evaluates it thousands of times for one derivative. Its program is staged once for each solution, which takes
milliseconds. Equal graphs share their compiled programs, so that a second solution compiles nothing, and uses the
compiled programs sooner.
"""

import functools
import importlib.util
from collections.abc import Callable
from typing import NamedTuple

from effgrad.api import jacobian, jvp
from effgrad.arrays.reach import np
from effgrad.arrays.value import Smooth, depends
from effgrad.effects import handled
from effgrad.errors import EffgradError
from effgrad.modes.forward import Forward
from effgrad.stage.closures import body, replay
from effgrad.stage.compiled import compile
from effgrad.stage.graph import Graph
from effgrad.stage.passes import structure
from effgrad.toolbox.frozen import Frozen, jacobian_at, number
from effgrad.vocabulary import Function, Value

# After FEW evaluations, which take as long as staging, its compiled programs are looked up. After OFTEN evaluations it
# is compiled.
FEW, OFTEN = 10, 100
# The Jacobian of a larger system is not compiled.
LARGEST = 300


class Programs(NamedTuple):
    """The compiled functions of t, y and the values that the right-hand side closes over.

    They are the slope, its Jacobian, and the same for the equation together with its variation.
    """

    value: Function
    jacobian: Function
    variation: Function
    variation_jacobian: Function


class _Structured:
    """A graph as a key: it equals every graph of the same structure."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.key = graph, structure(graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Structured) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Compiled:
    """The compiled programs of a graph, whose inputs are the closed-over values, t and y.

    `wanted` says that a solution has compiled them.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.wanted = graph, False

    @functools.cached_property
    def programs(self) -> Programs:
        return _programs(self.graph)


@functools.lru_cache(64)
def _compiled(structured: _Structured) -> Compiled:
    return Compiled(structured.graph)


def _programs(graph: Graph) -> Programs:
    def value(t: Value, y: Value, *closed: Value) -> Value:
        return replay(graph, [*closed, t, y])[0]

    def of_y(t: Value, y: Value, *closed: Value) -> Value:
        return jacobian(lambda y: value(t, y, *closed))(y)

    def variation(t: Value, both: Value, *closed: Value) -> Value:
        n = len(both) // 2
        return np.concatenate(jvp(lambda y: value(t, y, *closed), (both[:n],), (both[n:],)))

    def of_both(t: Value, both: Value, *closed: Value) -> Value:
        return jacobian(lambda both: variation(t, both, *closed))(both)

    backend = "native" if importlib.util.find_spec("llvmlite") else "numpy"
    return Programs(*[compile(f, backend) for f in (value, of_y, variation, of_both)])


def closed_graph(f: Function, *given: Value) -> tuple[list[Value], Graph] | None:
    """Return the values that `f` closes over, and its graph of these and its arguments; None if it cannot be staged."""
    try:
        return body(lambda inside: [f(*inside)], list(given))
    except (EffgradError, TypeError):
        return None


def uses_derivatives(f: Function, *given: Value) -> bool:
    """Whether a function uses traced values of a derivative around it, even if only in comparisons."""
    staged = closed_graph(f, *given) if handled(Smooth) else None
    return staged is not None and any(map(depends, staged[0]))


class Slope:
    """The right-hand side of y' = f(t, y) on plain numbers; traced values that `f` closes over become plain."""

    def __init__(self, f: Function) -> None:
        self.f, self.count = f, 0
        self.found: Compiled | None = None
        self.programs: Programs | None = None
        self.closed: list[Value] = []

    def __call__(self, t: float, y: Value) -> Value:
        """Return the slope."""
        if self._compiled(t, y):
            return self.programs.value(float(t), y, *self.closed)  # type: ignore[union-attr]
        with Frozen() as activation:
            return activation.primal(self.f(t, activation.variable(y)))

    def jacobian(self, t: float, y: Value) -> Value:
        """Return the Jacobian of the slope with respect to y."""
        if self.programs is not None and len(y) <= LARGEST:
            return self.programs.jacobian(float(t), y, *self.closed)
        return jacobian_at(lambda y: self(t, y), y)

    def variation(self, t: float, both: Value) -> Value:
        """Return the slopes of y and of a tangent of y, in one vector; `both` is the vector of y and its tangent."""
        n = len(both) // 2
        if self._compiled(t, both[:n]):
            return self.programs.variation(float(t), both, *self.closed)  # type: ignore[union-attr]
        with Forward() as forward:
            slope = self(t, forward.variable(both[:n], both[n:]))
        tangent = slope.shadow if depends(slope) and slope.shadow is not None else np.zeros(n)
        return np.concatenate([np.asarray(number(slope)), tangent])

    def variation_jacobian(self) -> Callable[[float, Value], Value] | None:
        """Return the Jacobian of `variation` as a function, or None if it is not compiled."""
        if self.programs is None:
            return None
        return lambda t, both: self.programs.variation_jacobian(float(t), both, *self.closed)  # type: ignore[union-attr]

    def _compiled(self, t: float, y: Value) -> bool:
        if self.programs is None and not depends(y):
            self.count += 1
            if self.count == FEW:
                self._find(t, y)
            if self.found is not None and (self.found.wanted or self.count >= OFTEN):
                self.found.wanted, self.programs = True, self.found.programs
        return self.programs is not None and not depends(y)

    def staged(self, t: float, y: Value) -> tuple[list[Value], Graph] | None:
        """Return the values that `f` closes over, and its graph of these, t and y; None if `f` cannot be staged."""
        return closed_graph(self.f, float(t), np.array(y))

    def _find(self, t: float, y: Value) -> None:
        """Look up the compiled programs by the graph of `f`. If `f` branches or cannot be staged, it has none."""
        closed, graph = self.staged(t, y) or ([], None)
        if graph is not None and not graph.guards and graph.outputs[0].dtype == float:
            self.closed, self.found = [number(value) for value in closed], _compiled(_Structured(graph))
