"""The user's functions as graphs, whose inputs are their arguments and the traced values that they close over.

A compiled program calls a solver back long after it was staged. By then the traced values that the solver's function
closes over are no longer alive. So the function is run once to record its operations (`effgrad.stage.closures`). The
values that it closes over become inputs of the graph, and the graph computes the function for any such values. A
function that branches on its argument has one graph for each path, and guards select the path.

This is closure conversion by tracing (Johnsson, Lambda lifting, 1985), as JAX does it for its `custom_root`.
"""

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import optree
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

from effgrad import program
from effgrad.arrays.batched_value import Batched
from effgrad.arrays.labelled import without_labels
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, depends, example, plain, traced_inside
from effgrad.effects.effect import activations, frames
from effgrad.errors import EffgradError, EscapedValue, NotBatched, StagingWarning, warn
from effgrad.functions.scipy.sparse_value import TracedSparse
from effgrad.modes.batched import Batch
from effgrad.stage.closures import ClosedStage, replay
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GuardFailed
from effgrad.stage.paths import Path, Paths
from effgrad.stage.python import executable
from effgrad.stage.stage import Stage, is_dynamic
from effgrad.stage.staged_value import guarded_value
from effgrad.toolbox.frozen import as_number_or_array
from effgrad.vocabulary import Function, Tree, Value

# The number of a member of each batch.
Members: TypeAlias = dict[Batch, int]
# The number of results of a solver that are kept, because derivatives need them again.
MOST_RESULTS = 256
# The most elements of a sparse Jacobian that is converted to a dense array.
LARGEST = 4_000_000
# Arguments of SciPy's functions that are not converted: callables with side effects, and options.
LEFT = frozenset(("callback", "method", "full_output", "disp"))


class NewClosedValue(Exception):
    """A function closes over more traced values than the operation in progress has arguments."""


class NotCaptured(Exception):
    """A function cannot be represented by a small number of graphs."""


class Closure:
    """The traced values that a solver's call depends on, in the order in which they were found.

    `functions` are the captured functions of the user, and `results` the solver's results for recent values.
    `matrices` has the elements of each sparse matrix among the arguments, after the matrix itself.
    """

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.functions: dict[int, Captured] = {}
        self.results: dict[Any, Value] = {}
        self.matrices: dict[int, tuple[Value, Value, Value]] = {}

    @property
    def alive(self) -> bool:
        """Whether the program or the batch that the values belong to still runs."""
        return all(value.owner.alive for value in map(plain, self.values) if isinstance(value, Tracer))

    @property
    def opaque(self) -> bool:
        """Whether a value belongs to a staged program or a batch, which cannot look into a solver."""
        return any(isinstance(plain(value), Tracer) for value in self.values)

    def place(self, value: Value) -> int:
        """Return the index of a value among the values of the closure; a new value is added."""
        for number, known in enumerate(self.values):
            if known is value:
                return number
        self.values.append(value)
        return len(self.values) - 1

    def current(self, value: Value, values: Sequence[Value]) -> Value:
        """Return the one of `values` that replaces a traced value of the call; raise `Grown` if there is none yet."""
        number = self.place(value)
        if number >= len(values):
            raise NewClosedValue
        return values[number]

    def converted(self, tree: Value, values: Sequence[Value]) -> Value:
        """Return arguments of the call with traced values, and functions that use them, replaced for other `values`."""
        if isinstance(tree, Bounds):
            return Bounds(self.converted(tree.lb, values), self.converted(tree.ub, values), tree.keep_feasible)
        if isinstance(tree, LinearConstraint | NonlinearConstraint):
            return self._constraint(tree, values)
        if type(tree) is TracedSparse:
            return self._sparse(tree, values)
        if isinstance(tree, Tracer):
            return self.current(tree, values) if depends(tree) else as_number_or_array(tree)
        if isinstance(tree, dict):
            return {key: item if key in LEFT else self.converted(item, values) for key, item in tree.items()}
        if type(tree) in (list, tuple):
            return type(tree)([self.converted(item, values) for item in tree])
        if callable(tree) and not isinstance(tree, type):
            if id(tree) not in self.functions:
                self.functions[id(tree)] = Captured(tree, self)
            return self.functions[id(tree)].bound(values)
        return tree

    def _sparse(self, matrix: TracedSparse, values: Sequence[Value]) -> TracedSparse:
        """Return a sparse matrix with its elements replaced, which are one value, and the same one in each call."""
        if id(matrix) not in self.matrices:
            stored = matrix.stored()
            self.matrices[id(matrix)] = matrix, stored.places, stored.vector
        _, places, vector = self.matrices[id(matrix)]
        return TracedSparse(places, self.converted(vector, values))

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
        """Return a function that computes the solver's result for these values once, and then returns the kept one.

        Beside the result it returns whether that was known and is to be differentiated. Then no function of the user
        was called in this run, so none could show which traced values it uses.
        """
        key = tuple(_bytes(example(value)) for value in values)

        def result(compute: Callable[[], Value]) -> tuple[Value, bool]:
            known = key in self.results
            if not known:
                if len(self.results) >= MOST_RESULTS:
                    self.results.pop(next(iter(self.results)), None)
                self.results[key] = compute()
            return self.results[key], known and any(map(depends, values))

        return result


def _operations() -> int:
    """Count the operations recorded so far by the staged programs around."""
    return sum(len(activation.nodes) for activation in activations(frames.get()) if isinstance(activation, Stage))


def _bytes(value: Value) -> bytes:
    return np.asarray(value).tobytes()


class Program(NamedTuple):
    """One path of a function, as a program of the values that it closes over and of its arguments.

    `run` computes it for plain numbers. `places` are the indices of the closure's values that it reads.
    """

    graph: Graph
    run: Callable[..., list[Value]]
    guarded: bool
    places: list[int]

    def outputs(self, values: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
        """Return the leaves of the result on this path."""
        if any(place >= len(values) for place in self.places):
            raise NewClosedValue
        given = [*[values[place] for place in self.places], *inputs]
        traced = any(map(depends, given))
        if not traced or self.guarded:
            outputs = self.run(*map(example, given))
            if not traced:
                return [value.copy() if isinstance(value, np.ndarray) else value for value in outputs]
        return replay(self.graph, given)


class Capture(ClosedStage):
    """Stage a function, with other values in place of the traced values that it closes over."""

    def __init__(self, closure: Closure, values: Sequence[Value]) -> None:
        super().__init__()
        self.closure, self.given = closure, values

    def outer_example(self, value: Value) -> Value:
        number = self.closure.place(value)
        if number < len(self.given):
            return example(self.given[number])
        return _of_members(value, self._members(value))

    def _members(self, value: Value) -> Members:
        """Return, for each batch that a value belongs to, the number of the first member that has the given values."""
        batches, inner = [], plain(value)
        while type(inner) is Batched:
            batches.append(inner.owner)
            inner = plain(inner.primal)
        known = [*zip(self.closure.values, map(_bytes, map(example, self.given)), strict=False)]
        for numbers in itertools.product(*(range(batch.count) for batch in batches)):
            members = dict(zip(batches, numbers, strict=True))
            if all(_bytes(_of_members(mine, members)) == given for mine, given in known):
                return members
        return {}

    def decide_outer(self, value: Value) -> Value:
        """Return what Python asks of a value in which the members of a batch may differ, for the path of one member."""
        return guarded_value(self.outer(value))


def _of_members(value: Value, members: Members) -> Value:
    """Return the value of the members with these numbers, and the example of any other batch."""
    value = plain(value)
    while type(value) is Batched and value.owner in members:
        value = plain(value.primal[members[value.owner]])
    return example(value)


class Captured:
    """One function of the user, as the paths that it takes for arguments of each type."""

    def __init__(self, f: Function, closure: Closure) -> None:
        self.f, self.closure = f, closure
        self.read = program.read(f)
        self.paths: dict[Any, Paths] = {}

    def bound(self, values: Sequence[Value]) -> Function:
        """Return the function for new `values` of its closure; `at_primals` is the function for their plain values."""

        @functools.wraps(self.f)
        def called(*args: Value, **kwargs: Value) -> Value:
            return self.called(values, args, kwargs)

        plain_values = [*map(plain, values)]
        if not any(isinstance(value, Tracer) for value in plain_values):
            called.at_primals = lambda *args: self.called(plain_values, args, {})  # type: ignore[attr-defined]
        return called

    def called(self, values: Sequence[Value], args: Value, kwargs: Value) -> Value:
        """Return the result of the function, computed by the program of the path that it takes."""
        given: Value = (args, kwargs)
        found, tree = optree.tree_flatten(given)
        leaves = [as_number_or_array(leaf) for leaf in found]
        key = tree, *map(_type, leaves)
        try:
            is_known = key in self.paths
        except TypeError as error:  # an object without a hash, which may change, is among the arguments
            raise NotCaptured from error
        if not is_known:
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
        """Return whether the function is independent of the closure's values, and its result on plain numbers.

        A branch on one of these values records an operation in the staged program around, though the result is plain.
        """
        args, kwargs = optree.tree_unflatten(tree, list(map(example, leaves)))
        before = _operations()
        try:
            result = without_labels(self.f(*args, **kwargs))
        except (EscapedValue, NotBatched):  # it uses a value of a program that has ended, or takes several paths
            return False, None
        return _operations() == before and not any(map(traced_inside, optree.tree_leaves(result))), result

    def capture(self, values: Sequence[Value], leaves: list[Value], tree: Tree) -> Path:
        """Stage the path that the function takes for arguments with these leaves."""
        if not self.closure.alive:  # the compiled program that runs now is staged again for this path
            raise GuardFailed(-1, self.f)
        start = time.perf_counter()
        with Capture(self.closure, values) as stage:
            given = [stage.variable(value) if is_dynamic(value) else value for value in map(example, leaves)]
            args, kwargs = optree.tree_unflatten(tree, given)
            outputs, structure = optree.tree_flatten(self.read(*args, **kwargs))
            kept = [stage.argument(as_number_or_array(_dense(leaf))) for leaf in outputs]
        places = [self.closure.place(value) for value, _ in stage.lifted.values()]
        lifted = [inside.shadow for _, inside in stage.lifted.values()]
        graph = Graph([*lifted, *stage.inputs], stage.nodes, kept, structure)
        made = Program(graph, executable(graph), bool(graph.guards), places)
        return Path(graph, made.outputs, time.perf_counter() - start)


def _dense(leaf: Value) -> Value:
    """Return a sparse Jacobian as a dense array. Solvers accept both, but staged programs have no sparse matrices."""
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
