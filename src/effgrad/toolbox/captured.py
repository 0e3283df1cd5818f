"""The user's functions as graphs of their arguments and of the traced values that they close over.

A solver that a compiled program calls back runs when the values that its function closes over belong to a program that
has long been staged. So the function is run once for its operations (`effgrad.stage.closures`): what it closes over
becomes an input of the graph, and the graph is the function for any values of it. Where the function branches on its
argument it has one graph for each path; the guards say which.

This is closure conversion by tracing: Johnsson, Lambda lifting (1985); as JAX does it for its `custom_root`.
"""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import optree
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

from effgrad import program
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, depends, example, plain
from effgrad.effects.effect import frames
from effgrad.errors import EffgradError, EscapedValue, StagingWarning, warn
from effgrad.stage.closures import ClosedStage, replay
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GUARD, GuardFailed
from effgrad.stage.paths import Path, Paths
from effgrad.stage.python import executable
from effgrad.stage.stage import Stage, is_dynamic
from effgrad.toolbox.frozen import gathered
from effgrad.vocabulary import Function, Tree, Value

# The results of so many calls of a solver are kept, for the derivatives that ask for them again.
KEPT = 256
# The most elements of a sparse Jacobian that is made an array.
LARGEST = 4_000_000
# Arguments of SciPy's functions that are called for what they do, or that say how to compute.
LEFT = frozenset(("callback", "method", "full_output", "disp"))


class Grown(Exception):
    """A function has been found to close over more traced values than the operation in progress has arguments."""


class NotCaptured(Exception):
    """A function is not one of a few graphs."""


class Closure:
    """The traced values that a call depends on, in the order in which they were found, and the functions in it."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.functions: dict[int, Captured] = {}
        self.results: dict[Any, Value] = {}

    @property
    def alive(self) -> bool:
        """Whether the program or the batch that the values belong to still runs."""
        return all(value.owner.alive for value in map(plain, self.values) if isinstance(value, Tracer))

    @property
    def opaque(self) -> bool:
        """Whether a value belongs to a staged program or a batch, which cannot look into a solver."""
        return any(isinstance(plain(value), Tracer) for value in self.values)

    def place(self, value: Value) -> int:
        """The number of a value among those of the closure, where it is entered if it is new."""
        for number, known in enumerate(self.values):
            if known is value:
                return number
        self.values.append(value)
        return len(self.values) - 1

    def current(self, value: Value, values: Sequence[Value]) -> Value:
        """The value that stands for a traced value of the call now."""
        number = self.place(value)
        if number >= len(values):
            raise Grown
        return values[number]

    def converted(self, tree: Value, values: Sequence[Value]) -> Value:
        """Arguments of the call for other values of the closure: traced values and functions are replaced."""
        if isinstance(tree, Bounds):
            return Bounds(self.converted(tree.lb, values), self.converted(tree.ub, values), tree.keep_feasible)
        if isinstance(tree, LinearConstraint | NonlinearConstraint):
            return self._constraint(tree, values)
        if isinstance(tree, Tracer):
            return self.current(tree, values) if depends(tree) else gathered(tree)
        if isinstance(tree, dict):
            return {key: item if key in LEFT else self.converted(item, values) for key, item in tree.items()}
        if type(tree) in (list, tuple):
            return type(tree)([self.converted(item, values) for item in tree])
        if callable(tree) and not isinstance(tree, type):
            if id(tree) not in self.functions:
                self.functions[id(tree)] = Captured(tree, self)
            return self.functions[id(tree)].bound(values)
        return tree

    def _constraint(self, given: Value, values: Sequence[Value]) -> Value:
        lower, upper = self.converted((given.lb, given.ub), values)
        if isinstance(given, LinearConstraint):
            return LinearConstraint(self.converted(given.A, values), lower, upper, given.keep_feasible)
        constraint: Function = NonlinearConstraint
        fun, jac, hess = self.converted((given.fun, given.jac, given.hess), values)
        return constraint(
            fun, lower, upper, jac, hess, given.keep_feasible, given.finite_diff_rel_step,
            given.finite_diff_jac_sparsity,
        )  # fmt: skip

    def remembered(self, values: Sequence[Value]) -> Callable[[Callable[[], Value]], tuple[Value, bool]]:
        """A function that computes the solver's result for these values once.

        It also says whether the result was known and is to be differentiated: then no function of the user has shown
        in this run what it uses.
        """
        key = tuple(_bytes(example(value)) for value in values)

        def result(compute: Callable[[], Value]) -> tuple[Value, bool]:
            known = key in self.results
            if not known:
                if len(self.results) >= KEPT:
                    self.results.pop(next(iter(self.results)), None)
                self.results[key] = compute()
            return self.results[key], known and any(map(depends, values))

        return result


def _operations() -> int:
    """The number of operations of the staged programs around."""
    count, frame = 0, frames.get()
    while frame is not None:
        count += len(frame.activation.nodes) if isinstance(frame.activation, Stage) else 0
        frame = frame.below
    return count


def _bytes(value: Value) -> bytes:
    return np.asarray(value).tobytes()


class Program(NamedTuple):
    """One path of a function, as a program of what it closes over and of its arguments.

    `graph` has no guards; `run` is the function of plain numbers, which has them if it is `guarded`; `places` are those
    of the closed values that it reads.
    """

    graph: Graph
    run: Callable[..., list[Value]]
    guarded: bool
    places: list[int]

    def outputs(self, values: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
        """The leaves of the result on this path."""
        if any(place >= len(values) for place in self.places):
            raise Grown
        given = [*[values[place] for place in self.places], *inputs]
        traced = any(map(depends, given))
        if not traced or self.guarded:
            outputs = self.run(*map(example, given))
            if not traced:
                return [value.copy() if isinstance(value, np.ndarray) else value for value in outputs]
        return replay(self.graph, given)


class Capture(ClosedStage):
    """Stage a function whose closed values stand for others."""

    def __init__(self, closure: Closure, values: Sequence[Value]) -> None:
        super().__init__()
        self.closure, self.given = closure, values

    def inside(self, value: Value) -> Value:
        number = self.closure.place(value)
        return example(self.given[number] if number < len(self.given) else value)


class Captured:
    """One function of the user, by its paths for arguments of each type."""

    def __init__(self, f: Function, closure: Closure) -> None:
        self.f, self.closure = f, closure
        self.read = program.read(f)
        self.paths: dict[Any, Paths] = {}

    def bound(self, values: Sequence[Value]) -> Function:
        """The function for some values of what it closes over; its `at_primals` is the one for their plain values."""

        @functools.wraps(self.f)
        def called(*args: Value, **kwargs: Value) -> Value:
            return self.called(values, args, kwargs)

        plain_values = [*map(plain, values)]
        if not any(isinstance(value, Tracer) for value in plain_values):
            called.at_primals = lambda *args: self.called(plain_values, args, {})  # type: ignore[attr-defined]
        return called

    def called(self, values: Sequence[Value], args: Value, kwargs: Value) -> Value:
        """The result of the function, by the path that it takes."""
        given: Value = (args, kwargs)
        found, tree = optree.tree_flatten(given)
        leaves = [gathered(leaf) for leaf in found]
        key = tree, *map(_type, leaves)
        if key not in self.paths:
            independent, result = self._plainly(leaves, tree)
            if independent:
                return self.f(*args, **kwargs) if any(map(depends, leaves)) else result
        inputs = [leaf for leaf in leaves if is_dynamic(example(leaf))]
        paths = self.paths.setdefault(key, Paths(self._name, frozenset()))
        known = paths.run((values, inputs))
        if known is not None:
            path, outputs = known
            return path.result(outputs)
        if paths.full:
            warn(
                f"{self._name}, which a solver calls, takes more than {paths.number} paths for arguments of one type: "
                "a compiled program is staged again for each other one (np.where selects without a path)",
                StagingWarning,
            )
            raise NotCaptured
        try:
            paths.add(self.capture(values, leaves, tree), leaves)
        except (EffgradError, TypeError) as error:
            raise NotCaptured from error
        return self.called(values, args, kwargs)

    @property
    def _name(self) -> str:
        return getattr(self.f, "__name__", type(self.f).__name__)

    def _plainly(self, leaves: list[Value], tree: Tree) -> tuple[bool, Value]:
        """Whether the function, on plain numbers, has nothing to do with the closed values, and its result.

        A branch on one of them is an operation of the staged program around, though the result is a plain number.
        """
        args, kwargs = optree.tree_unflatten(tree, list(map(example, leaves)))
        before = _operations()
        try:
            result = self.f(*args, **kwargs)
        except EscapedValue:  # of a program that has been staged
            return False, None
        return _operations() == before and not any(map(depends, optree.tree_leaves(result))), result

    def capture(self, values: Sequence[Value], leaves: list[Value], tree: Tree) -> Path:
        """The path that the function takes for arguments with these leaves."""
        if not self.closure.alive:  # a compiled program runs: it is staged again for this path
            raise GuardFailed(-1, self.f)
        start = time.perf_counter()
        with Capture(self.closure, values) as stage:
            given = [stage.variable(value) if is_dynamic(value) else value for value in map(example, leaves)]
            args, kwargs = optree.tree_unflatten(tree, given)
            outputs, structure = optree.tree_flatten(self.read(*args, **kwargs))
            kept = [stage.argument(gathered(_dense(leaf))) for leaf in outputs]
        places = [self.closure.place(value) for value, _ in stage.lifted.values()]
        lifted = [inside.shadow for _, inside in stage.lifted.values()]
        graph = Graph([*lifted, *stage.inputs], stage.nodes, kept, structure)
        guarded = bool(graph.guards)
        unguarded = graph.with_nodes([node for node in graph if node.primitive is not GUARD], graph.outputs)
        made = Program(unguarded, executable(graph), guarded, places)
        return Path(graph, made.outputs, time.perf_counter() - start)


def _dense(leaf: Value) -> Value:
    """A sparse Jacobian as an array, which solvers take as well: a sparse matrix is no value of a staged program."""
    if not hasattr(leaf, "tocsr"):
        return leaf
    if np.prod(leaf.shape) > LARGEST:
        raise NotCaptured
    return leaf.toarray()


def _type(leaf: Value) -> Any:
    value = example(leaf)
    if not is_dynamic(value):
        return type(value), value
    return isinstance(value, np.ndarray), np.shape(value), np.result_type(value)
