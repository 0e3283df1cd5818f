"""The `Stage` handler: run a program, and record its operations as a graph.

The program runs on example values, so its control flow and shapes are those of plain Python; every operation on a
value that depends on the inputs is recorded. A derivative inside the program performs its operations in this handler,
which is below it, and so leaves the derivative program in the graph. This is the reified secondary program that Sigal
2021, section 4.2, leaves as future work.

When Python needs a concrete value, in `if`, `range` or an index, it gets the example's value, and a guard is recorded.
The graph is the program of one path, and its guards check that the path is taken.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from effgrad import program
from effgrad.api.tracebacks import boundary, of_function
from effgrad.arrays import value as traced
from effgrad.arrays.layout import DOUBLES, NUMERIC_KINDS, duplicate, in_form_of, native, same_elements
from effgrad.arrays.library_array import LibraryArray, of_another_library
from effgrad.arrays.value import Smooth, owned_by
from effgrad.effects import Handler
from effgrad.effects.confined import run_confined
from effgrad.errors import NoRule, NotStaged, user_frame
from effgrad.modes.checkpoint import Recompute
from effgrad.nested import with_parts
from effgrad.primitives.product import einsum
from effgrad.program.control import Control
from effgrad.program.user_code import run_handled
from effgrad.stage import deferred
from effgrad.stage.attempts import attempt, depends_on_values
from effgrad.stage.deferred import DEFERRED_SIZE, force
from effgrad.stage.graph import Graph
from effgrad.stage.integers import beside, from_numpy
from effgrad.stage.moves import repeated_constant
from effgrad.stage.nodes import GUARD, INPUT, NONE, UNRULED, Node, Slot, fill
from effgrad.stage.passes import PASSES, Simplifier
from effgrad.stage.staged_value import Staged, constant_primitive, example_value, guarded_value, part_primitive, record
from effgrad.trees import with_dataclasses
from effgrad.vocabulary import Function, Option, Params, Tree, Value

# The parameters of moves whose integers may be values that the program computes.
_INDICES = {"index", "indices"}
_USUAL = {float, np.float64, np.ndarray}
_OPERANDS = {Node, float, int}
_new: Any = object.__new__


class Stage(Handler[Smooth, Recompute, Control]):
    """Record the program as a graph; a staged value's shadow is its node."""

    holder = Staged

    def __init__(self, recorder: Simplifier | None = None, run_loop: Value = None) -> None:
        # The recorder keeps the operations; by default, without simplifying them. `run_loop` performs a loop as one
        # operation.
        self.recorder, self.run_loop = recorder, run_loop

    def loops(self) -> Value:
        return self.run_loop

    def enter(self) -> None:
        # The user's frame that has asked for the program; its id stays unique, as it lives as long as this activation.
        self.caller = id(user_frame())
        self.inputs: list[Node] = []
        # The numbers of the checkpoint reruns that are active (0: none), and how many reruns have begun.
        self.open, self.runs = [0], 0
        recorder = self.recorder or Simplifier()
        self.nodes, self.add = recorder.nodes, recorder.add
        self.guarded: dict[Node, Value] = {}
        # The largest numbers of bits that results of operations on Python's integers may have.
        self.bits: dict[Node, int] = {}
        # Whether a derivative is taken in the program, and the memory limits of the derivatives that have one.
        self.differentiated = False
        self.limits: list[int] = getattr(self.run_loop, "limits", [])
        self.constants: dict[int, tuple[Value, Value, Value]] = {}

    def variable(self, example: Value) -> Staged:
        """Add an input to the program, and return its staged value."""
        example = native(example)
        node = Node(INPUT, (), {}, (), example)
        self.inputs.append(node)
        return Staged(self, example, node)

    def apply(self, primitive: Any, *args: Value, **params: Option) -> Value:
        if len(args) == 2 and not params and (value := self.of_two(primitive, *args)) is not None:
            return value
        if any([type(a) is Staged and type(a.primal) is int for a in args]):
            args = tuple(beside(args, params))
        slots: list[Staged] = []
        inside, values = self._parameters(primitive, params, slots) if params else (NONE, NONE)
        broadcast = primitive.kind == "elementwise" or primitive is einsum
        read = [self.read(a, broadcast) for a in args]
        kept, read_slots = tuple([kept for _, kept in read]), tuple([s.shadow for s in slots])
        try:
            result = deferred.result(primitive, [example for example, _ in read], values)
        except Exception as error:
            self.raised(error, primitive, kept, inside, read_slots)
            raise
        return self.recorded(primitive, result, kept, inside, read_slots)

    def of_two(self, primitive: Any, a: Value, b: Value) -> Value:
        """Apply a primitive to two arguments that are nodes or Python numbers; None for any other arguments.

        This is a faster `apply` for the operations that long programs mostly consist of.
        """
        x, i = (a.primal, a.shadow) if type(a) is Staged and a.owner is self else (a, a)
        y, j = (b.primal, b.shadow) if type(b) is Staged and b.owner is self else (b, b)
        if type(i) not in _OPERANDS or type(j) not in _OPERANDS:
            return None
        floats = type(x) in DOUBLES and type(y) in DOUBLES
        if not floats and (type(x) is int) != (type(y) is int) and not (type(x) in _OPERANDS and type(y) in _OPERANDS):
            return None
        try:
            result = primitive.function(x, y) if floats else deferred.result(primitive, (x, y), NONE)
        except Exception as error:
            self.raised(error, primitive, (i, j), NONE, ())
            raise
        return self.recorded(primitive, result, (i, j))

    def read(self, a: Value, broadcast: bool) -> tuple[Value, Value]:
        """Return the example's value of an argument, and the node or constant that stands for it in the graph."""
        if owned_by(a, self):
            return a.primal, a.shadow
        if type(a) in _OPERANDS:
            return a, a
        if self.is_outer(a):
            a = self.outer(a)
        kept = self.argument(a, broadcast)
        return self.example_of(a), kept

    def example_of(self, value: Value) -> Value:
        """Return the example's value of a constant; for an array, the copy kept: the program may write to the array."""
        value = example_value(value)
        known, kept, _ = self.constants.get(id(value), (None, None, None))
        return kept if type(value) is np.ndarray and known is value and value.flags.c_contiguous else value

    def recorded(
        self, primitive: Any, result: Value, args: tuple[Value, ...], params: Params = NONE,
        slots: tuple[Node, ...] = (),
    ) -> Value:  # fmt: skip
        """Record a new node, whose value on the example is `result`, and return its staged value."""
        if isinstance(result, np.ndarray) and result.dtype.kind == "O":
            raise NotStaged(f"{primitive.name} returns an array of objects; a program has arrays of numbers")
        if type(result) not in _USUAL and not isinstance(result, np.ndarray | np.generic | float | int | complex):
            if isinstance(result, tuple | list) and primitive.kind in ("constant", UNRULED):
                parts = [part_primitive(primitive, i) for i in range(len(result))]
                taken = [self.recorded(p, r, args, params, slots) for p, r in zip(parts, result, strict=True)]
                return with_parts(result, taken)
            raise NoRule(f"{primitive.name} returns a {type(result).__name__}, which cannot be staged")
        node = Node(primitive, args, params, slots, result)
        node.run = self.open[-1]
        if primitive.code is None and not (primitive.moves or primitive.places) or node.dtype.kind == "c":
            node.place = self.place()  # it may stay a call of NumPy
        staged = _new(Staged)
        staged.owner, staged.primal, staged.shadow = self, result, self.add(node)
        return self.guard(staged) if node.dtype.kind in "US" else staged  # the path depends on every text

    def raised(self, error: Exception, primitive: Any, args: Any, params: Params, slots: tuple[Node, ...]) -> None:
        """Record that an operation raises an error, which the program may catch."""
        if self.alive and depends_on_values(error):
            kind: Any = type(error)
            node = Node(attempt(primitive, kind), args, params, slots, np.True_)
            self.guard(Staged(self, np.True_, self.add(node)))

    def place(self) -> str:
        """Return the user's line that runs now, as `file:line`; empty in a reverse pass, which has no lines."""
        frame = user_frame()
        if frame is None or id(frame) == self.caller:
            return ""
        return f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def begin(self) -> None:
        self.runs += 1
        self.open.append(self.runs)

    def end(self) -> None:
        self.open.pop()

    def evaluated(self, function: Function, *args: Value) -> Value:
        """Record a function with no derivative."""
        if function is int:
            return from_numpy(*args)
        if self.alive and all([type(a) is float or owned_by(a, self) for a in args]):
            return self.apply(constant_primitive(function), *args)
        return record(constant_primitive(function), *args)

    def argument(self, value: Value, broadcast: bool = False) -> Value:
        """Return an argument as the graph keeps it: a node, or a constant that no later write can change.

        With `broadcast`, a constant that repeats along axes, such as a tangent that is the same for all rows, is kept
        once and broadcast.
        """
        if self.is_outer(value):
            value = self.outer(value)
        value = traced.plain(value)
        if type(value) is Staged:
            return value.shadow
        if type(value) is LibraryArray:
            raise NotStaged(f"a staged program closes over an array of {value.owner.name}: give it NumPy arrays")
        if not isinstance(value, np.ndarray):
            return value
        original, kept, once = self.constants.get(id(value), (None, None, None))
        if original is not value or not _same(kept, value):
            kept = native(value.copy())
            kept.flags.writeable = False
            once = distinct(kept)
            self.constants[id(value)] = value, kept, once
        if once is kept or not broadcast:
            return kept
        return self.add(repeated_constant(once, kept))

    def is_outer(self, value: Value) -> bool:
        """Whether a value belongs to a derivative or a staged program around this one."""
        return traced.depends(value) and value.owner.serial < self.serial

    def outer(self, value: Value) -> Staged:
        """Refuse a value of a derivative or program around this one, which would be taken as a constant."""
        raise NotStaged(
            "a staged function closes over a value of a derivative, or of another staged function, around it; pass it "
            "as an argument"
        )

    def guard(self, value: Staged) -> Value:
        """Answer Python's question about a value from the example, and record that the path depends on it."""
        node = value.shadow
        if self.alive and type(node) is Node and node not in self.guarded:
            example = value.value_below()
            guard = Node(GUARD, (node,), NONE, (), example)
            guard.expected = np.array(example) if isinstance(example, np.ndarray) else example
            self.guarded[node] = self.add(guard)
        return value.value_below()

    def _parameters(self, primitive: Any, params: Params, slots: list[Staged]) -> tuple[dict[str, Value], ...]:
        """Return the parameters of a node, and those for the run on the example."""
        moves = primitive.moves or primitive.places
        inside = {name: self._parameter(value, moves and name in _INDICES, slots) for name, value in params.items()}
        return inside, fill(inside, [s.value_below() for s in slots])

    def _parameter(self, tree: Tree, indexes: bool, slots: list[Staged]) -> Value:
        """Return a parameter with each staged value replaced by a slot, or guarded and replaced by its example value.

        Staged integers go into slots if the parameter `indexes`.
        """
        if type(tree) in (tuple, list):
            return type(tree)(self._parameter(item, indexes, slots) for item in tree)
        if type(tree) is slice:
            return slice(*[guarded_value(p) if type(p) is Staged else p for p in (tree.start, tree.stop, tree.step)])
        if type(tree) is Staged:
            if indexes and tree.dtype.kind in "iu" and type(tree.shadow) is Node:
                slots.append(tree)
                return Slot(len(slots) - 1)
            return guarded_value(tree)
        return duplicate(tree) if isinstance(tree, np.ndarray) else tree

    def finish(self, output: Value) -> Graph:
        """Return the graph of the recorded program, with the leaves of `output` as its outputs."""
        leaves, tree = with_dataclasses(output)
        for leaf in map(example_value, leaves):
            if not isinstance(leaf, np.ndarray | np.generic | float | int | complex | str | bytes):
                raise NotStaged(
                    f"a staged program returned a {type(leaf).__name__}; return numbers, arrays, containers"
                )
        return Graph(self.inputs, self.nodes, [self.output(leaf) for leaf in leaves], tree)

    def output(self, leaf: Value) -> Value:
        """Return the node of a result. What simpler nodes stand for may be a number for an array without axes."""
        node, example = self.argument(leaf), example_value(leaf)
        if type(node) is not Node:
            return in_form_of(example, node)
        made = isinstance(example, np.ndarray)
        if node.shape or issubclass(node.kind, np.ndarray) == made:
            return node
        return self.add(Node(constant_primitive(np.asarray if made else _number), (node,), NONE, (), example))


@of_function
def stage(f: Function, passes: Sequence[str] = (), show: bool = False) -> Callable[..., Graph]:
    """Record the program of `f` as a graph: `stage(f)(*args)` runs `f` on example arguments.

    Floats and arrays are inputs of the graph; integers, strings and other leaves are part of the program. The graph is
    the program of the path that the example takes. A derivative inside `f` is recorded with it.

    Arguments:
        f: a function of pytrees, in plain NumPy.
        passes: names of passes over the graph, run in this order; `effgrad.stage.passes.PASSES` has them all.
        show: print the program as Python source before the passes and after each.

    Returns:
        A function of the same arguments that returns a `Graph`. Calling the graph runs the program on other numbers;
        its `to_python()` returns source code, and notebooks show it as a drawing.

    Raises:
        NotStaged: an argument or a result cannot be part of a program.
        ValueError: a pass is unknown.

    >>> import effgrad
    >>> graph = effgrad.stage(effgrad.grad(lambda x: x**3), passes=["algebra", "dead"])(2.0)
    >>> graph(3.0)
    [27.0]
    >>> print(graph.to_python())
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def program(x0):
        return float(3 * (x0 * x0))
    <BLANKLINE>
    """
    unknown = [name for name in passes if name not in PASSES]
    if unknown:
        raise ValueError(f"there is no pass {unknown[0]!r}; choose from {', '.join(PASSES)}")

    @boundary
    def recorded(*args: Value, **kwargs: Option) -> Graph:
        leaves, tree = with_dataclasses((args, kwargs))
        graph = staged(f, leaves, tree)[0]
        for name in ("", *passes):
            graph = PASSES[name](graph) if name else graph
            if show:
                print(f"# {name or 'as recorded'}: {len(graph)} operations\n{graph.to_python()}")
        return graph

    return recorded


def is_dynamic(leaf: Value) -> bool:
    """Whether a leaf of the arguments is an input of the graph; anything else is part of the program."""
    return isinstance(leaf, np.ndarray | np.generic | float | complex) and np.result_type(leaf).kind in NUMERIC_KINDS


def staged(
    f: Function, leaves: Sequence[Value], tree: Tree, recorder: Simplifier | None = None, run_loop: Value = None,
    integers: frozenset[int] = frozenset(),
) -> tuple[Graph, list[Value]]:  # fmt: skip
    """Run `f` on the arguments with these leaves; return its graph, and the leaves of its result, for `values`.

    The integers at the positions `integers` are inputs too.
    """
    for leaf in leaves:
        if isinstance(leaf, np.ndarray) and not is_dynamic(leaf):
            raise NotStaged(f"an argument is an array of {leaf.dtype}; a program takes arrays of numbers")
    if any(map(of_another_library, leaves)):
        raise NotStaged("a staged or compiled program takes NumPy arrays: those of other libraries are not compiled")
    inputs = [i in integers or is_dynamic(leaf) for i, leaf in enumerate(leaves)]
    return run_confined(_staged, program.read(f), leaves, inputs, tree, recorder, run_loop)


def _same(kept: np.ndarray, value: np.ndarray) -> bool:
    """Whether an array still equals the copy that was kept. Floats are compared by their bits, which is faster."""
    if kept.dtype == value.dtype and value.dtype.kind == "f" and value.dtype.itemsize in (4, 8):
        whole = np.dtype(f"i{value.dtype.itemsize}")
        return np.array_equal(kept.view(whole), value.view(whole))
    return same_elements(kept, value)


def _staged(
    f: Function, leaves: Sequence[Value], dynamic: Sequence[bool], tree: Tree, recorder: Simplifier | None,
    run_loop: Value,
) -> tuple[Graph, list[Value]]:
    def program(stage: Stage) -> tuple[Graph, list[Value]]:
        inputs = [stage.variable(leaf) if one else leaf for leaf, one in zip(leaves, dynamic, strict=True)]
        called: Any = optree.tree_unflatten(tree, inputs)
        args, kwargs = called
        output = f(*args, **kwargs)
        graph = stage.finish(output)
        # The function is not run again for limits at singular points if it has a long loop: in Python it would take
        # minutes.
        loops = any("program" in n.params and n.params["program"].is_long for n in graph)
        graph.differentiated = stage.differentiated and not loops
        graph.limit = min(stage.limits, default=None)
        return graph, [_kept(traced.plain(leaf)) for leaf in with_dataclasses(output)[0]]

    return run_handled(Stage(recorder, run_loop), program)


def _number(value: np.ndarray) -> Value:
    return value[()]


def _kept(leaf: Value) -> Value:
    """Return a leaf of a result as a copy that no later write can change."""
    return leaf.copy()[()] if type(leaf) is np.ndarray else leaf


def distinct(value: np.ndarray) -> np.ndarray:
    """Return the first part of a large array along each axis along which all parts are the same to the bit."""
    if value.size < DEFERRED_SIZE or value.dtype.kind not in "fiub" or value.itemsize > 8:
        return value
    for axis in range(value.ndim):
        bits = np.moveaxis(value.view(f"u{value.itemsize}"), axis, 0)
        if np.array_equal(bits[-1], bits[0]) and (bits == bits[0]).all():
            value = value[(slice(None),) * axis + (slice(1),)].copy()
    return value


def values(leaves: list[Value]) -> list[Value]:
    """Return the values of the leaves of a result on the example."""
    return [force(leaf.primal) if type(leaf) is Staged else leaf for leaf in leaves]
