"""Loops of staged programs: the body is a graph of its own, and the loop one operation, run as often as it takes.

A `Loop` is a body: from constants, a carry and a row of data to the next carry and a row of results, in leaves. Other
loops are made from it: one that carries tangents with it, and the steps of its reverse pass.
"""

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.api import jvp, vjp
from effgrad.arrays.value import CONSTANT, example
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import INPUT, UNRULED, Node, dtype_of, fill, shape_of
from effgrad.stage.passes import optimised, structure
from effgrad.stage.python import executable
from effgrad.stage.stage import Stage
from effgrad.stage.staged_value import Staged, record

# The types of leaves that a loop carries; all pass through a vector of float64.
TYPES = {np.dtype(float), np.dtype(np.float32), np.dtype(np.int64), np.dtype(bool)}


class LoopStage(Stage):
    """Stage the body of a loop: a value from around it becomes one of the loop's constants."""

    def enter(self) -> None:
        super().enter()
        self.lifted: dict[int, tuple[Any, Staged]] = {}

    def outer(self, value: Any) -> Staged:
        if id(value) not in self.lifted:
            inside = self.inside(value)
            self.lifted[id(value)] = value, Staged(self, inside, Node(INPUT, (), {}, (), inside))
        return self.lifted[id(value)][1]

    def inside(self, value: Any) -> Any:
        """The example for a value from around the body."""
        return example(value)


def body(step: Callable[..., Sequence[Any]], *groups: Sequence[Any]) -> tuple[list[Any], Graph]:
    """The graph of `step(*groups)` at examples, and the values that it closes over: the graph's first inputs."""
    with LoopStage() as stage:
        inputs = [[stage.variable(example(leaf)) for leaf in group] for group in groups]
        outputs = [stage.argument(leaf) for leaf in step(*inputs)]
    values = [value for value, _ in stage.lifted.values()]
    lifted = [inside.shadow for _, inside in stage.lifted.values()]
    return values, Graph([*lifted, *stage.inputs], stage.nodes, outputs)


def replay(graph: Graph, leaves: Sequence[Any]) -> list[Any]:
    """Perform the operations of a graph on other values, which derivatives and programs may look at."""
    values: dict[Node, Any] = dict(zip(graph.inputs, leaves, strict=True))
    for node in graph:
        args = [values[a] if type(a) is Node else a for a in node.args]
        params = fill(node.params, [values[s] for s in node.slots])
        function = node.primitive.function
        if function is float:
            (values[node],) = args
        elif node.primitive.kind == UNRULED or isinstance(function, np.ufunc) or function in CONSTANT:
            values[node] = (node.primitive if node.primitive.kind == "elementwise" else function)(*args, **params)
        elif node.primitive.kind == "constant":
            values[node] = record(node.primitive, *args, **params)
        else:
            values[node] = node.primitive(*args, **params)
    return [values[o] if type(o) is Node else o for o in graph.outputs]


class Loop:
    """What is done in a step, and how often.

    The graph's inputs are `consts`, then `carry`, then a row of each of the data; its outputs the next carry, a row of
    each result, and where `length` is None whether to go on. `test`, a graph of the first constants and carries
    (`tested` says how many), tells whether to begin. A loop that carries tangents has the one without as its `base`,
    whose constants and carry are the first of its own.
    """

    def __init__(
        self, graph: Graph, consts: int, carry: int, length: int | None, reverse: bool, memory: int | None,
        test: Graph | None = None, tested: tuple[int, int] = (0, 0), base: "Loop | None" = None,
    ) -> None:  # fmt: skip
        self.graph, self.base = optimised(graph), base
        self.consts, self.carry, self.length, self.reverse, self.memory = consts, carry, length, reverse, memory
        self.test, self.tested = test, tested
        self.derived: dict[Any, Loop] = {}
        self.functions: dict[Any, Callable[..., np.ndarray | None] | None] = {}

    @functools.cached_property
    def inputs(self) -> list[list[Node]]:
        """The constants, the carry, the rows."""
        return self.split(self.graph.inputs)

    def split(self, leaves: Sequence[Any]) -> list[list[Any]]:
        """Arguments as constants, carry and rows."""
        a, b = self.consts, self.consts + self.carry
        return [list(leaves[:a]), list(leaves[a:b]), list(leaves[b:])]

    @functools.cached_property
    def results(self) -> list[Any]:
        """The outputs of a step that are rows of results."""
        return self.graph.outputs[self.carry : len(self.graph.outputs) - (self.length is None)]

    @functools.cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of what the loop gives: the last carry, the results, and the number of steps if not known."""
        rows = () if self.length is None else [(self.length, *shape_of(r)) for r in self.results]
        return [*(n.shape for n in self.inputs[1]), *rows, *([()] if self.length is None else [])]

    @functools.cached_property
    def steps(self) -> "Steps":
        """What runs the steps: machine code if there is llvmlite."""
        try:
            from effgrad.stage.native.loops import NativeSteps
        except ModuleNotFoundError:
            return Steps(self)
        return NativeSteps(self)

    def whole(self, wanted: tuple[int, ...] | None) -> "Callable[..., np.ndarray | None] | None":
        """What runs all steps at once, or back for the `wanted` arguments, if the loop is one of a few numbers."""
        if wanted not in self.functions:
            try:
                from effgrad.stage.native.whole import whole
            except ModuleNotFoundError:
                self.functions[wanted] = None
            else:
                self.functions[wanted] = whole(self, wanted)
        return self.functions[wanted]

    @functools.cached_property
    def smooth(self) -> list[bool]:
        """Which of the outputs of a step, but for its condition, have derivatives."""
        return [floating(o) for o in self.graph.outputs[: self.carry + len(self.results)]]

    def dual(self, active: tuple[int, ...]) -> "Loop":
        """The loop that carries the tangents of all floating carries too, given those of the active other arguments."""
        return self.derive(("dual", active), lambda: _dual(self, active))

    def backward(self, wanted: tuple[int, ...]) -> "Loop":
        """The steps of the reverse pass: it carries the cotangents of the floating carries and the wanted constants,
        and its results are those of the wanted rows."""
        return self.derive(("back", wanted), lambda: _backward(self, wanted))

    def pulled(self, wanted: tuple[int, ...]) -> list[int]:
        """The arguments whose cotangents the reverse pass gives, in its order."""
        floating_carries = [self.consts + i for i, n in enumerate(self.inputs[1]) if n.dtype.kind == "f"]
        first_row = self.consts + self.carry
        return [*floating_carries, *[i for i in wanted if i < self.consts], *[i for i in wanted if i >= first_row]]

    def states(self) -> "Loop":
        """The loop whose results are the carries that its steps begin with."""
        return self.derive("states", lambda: _states(self))

    def derive(self, key: Any, make: Callable[[], "Loop"]) -> "Loop":
        """A loop that is made of this one, once."""
        if key not in self.derived:
            self.derived[key] = make()
        return self.derived[key]

    def staged(self, step: Callable[..., Sequence[Any]], *groups: Sequence[Any], **fields: Any) -> "Loop":
        """Another loop over the same steps; `groups` are examples of its constants, carry and rows."""
        values, graph = body(step, *groups)
        assert not values
        options = {"length": self.length, "reverse": self.reverse, "memory": self.memory, **fields}
        if options["length"] is None:
            options.setdefault("test", self.test)
            options.setdefault("tested", self.tested)
        return shared(Loop(graph, len(groups[0]), len(groups[1]), **options))


# Equal loops are one, so that what runs them, and their derivatives, is made once.
_LOOPS: weakref.WeakValueDictionary[Any, Loop] = weakref.WeakValueDictionary()


def shared(loop: Loop) -> Loop:
    """The loop, or one that was made before and does the same."""
    test = loop.test and structure(loop.test)
    fields = loop.consts, loop.carry, loop.length, loop.reverse, loop.memory, test, loop.tested, loop.base
    return _LOOPS.setdefault((structure(loop.graph), *fields), loop)


class Steps:
    """Runs the steps of a loop, one call of NumPy for an operation."""

    def __init__(self, loop: Loop) -> None:
        self.loop, self.run = loop, executable(loop.graph)

    def sweep(
        self, consts: list[Any], carry: list[Any], rows: list[Any], results: list[Any], states: list[Any], count: int
    ) -> int:
        """Run at most `count` steps, which change `carry`; how many were run.

        `rows` are read; each step's incoming carry goes to `states`, if they are kept, and its results to `results`.
        """
        carried, until = len(carry), self.loop.length is None
        with np.errstate(all="ignore"):
            for i in range(count):
                for state, value in zip(states, carry, strict=False):
                    state[i] = value
                out = self.run(*consts, *[c[()] for c in carry], *[row[i] for row in rows])
                for target, value in zip(carry, out, strict=False):
                    target[...] = value
                for target, value in zip(results, out[carried:], strict=False):
                    target[i] = value
                if until and not out[-1]:
                    return i + 1
        return count


def like(value: Any) -> Any:
    """Something with the shape and type of an output."""
    return np.empty(value.shape, value.dtype) if type(value) is Node else np.asarray(value)


def floating(value: Any) -> bool:
    """Whether an output is of floating point, and so may have derivatives."""
    return bool(dtype_of(value).kind == "f")


def _ones(nodes: Sequence[Any]) -> list[Any]:
    """Examples of values; a Python number gives way to the types of others, as where the body was staged."""
    return [1.0 if getattr(n, "kind", None) is float else np.ones(n.shape, n.dtype)[()] for n in nodes]


def _dual(loop: Loop, active: tuple[int, ...]) -> Loop:

    consts, carry, rows = loop.inputs
    moving = [n for n in carry if n.dtype.kind == "f"]
    still = [n for i, n in enumerate(loop.graph.inputs) if n not in moving and i not in active]
    pushed_consts = [consts[i] for i in active if i < loop.consts]
    pushed_rows = [loop.graph.inputs[i] for i in active if i >= loop.consts + loop.carry]
    varied = [*pushed_consts, *moving, *pushed_rows]
    n, m = loop.carry, loop.carry + len(loop.results)

    def step(c: list[Any], s: list[Any], x: list[Any]) -> list[Any]:
        plain_values = [*c[: len(consts)], *s[: len(carry)], *x[: len(rows)]]
        values = dict(zip([*consts, *carry, *rows], plain_values, strict=True))
        tangents = [*c[len(consts) :], *s[len(carry) :], *x[len(rows) :]]

        def f(*inside: Any) -> list[Any]:
            known = dict(zip(varied, inside, strict=True)) | {n: values[n] for n in still}
            return replay(loop.graph, [known[n] for n in loop.graph.inputs])

        outputs, derivatives = jvp(f, tuple(values[n] for n in varied), tuple(tangents))
        pushed_carry = [d for d, node in zip(derivatives, carry, strict=False) if node.dtype.kind == "f"]
        pushed_results = [d for d, r in zip(derivatives[n:m], loop.results, strict=True) if floating(r)]
        return [*outputs[:n], *pushed_carry, *outputs[n:m], *pushed_results, *outputs[m:]]

    examples = _ones([*consts, *pushed_consts]), _ones([*carry, *moving]), _ones([*rows, *pushed_rows])
    return loop.staged(step, *examples, base=loop)


def _backward(loop: Loop, wanted: tuple[int, ...]) -> Loop:

    consts, carry, rows = loop.inputs
    varied = [loop.graph.inputs[i] for i in loop.pulled(wanted)]
    n = sum(node.dtype.kind == "f" for node in carry)
    m = n + sum(i < loop.consts for i in wanted)
    smooth = [i for i, is_smooth in enumerate(loop.smooth) if is_smooth]
    results = [like(r) for r in loop.results if floating(r)]

    def step(c: list[Any], s: list[Any], x: list[Any]) -> list[Any]:
        values = dict(zip([*consts, *carry, *rows], [*c, *x[: len(carry) + len(rows)]], strict=True))

        def f(*inside: Any) -> list[Any]:
            known = values | dict(zip(varied, inside, strict=True))
            outputs = replay(loop.graph, [known[n] for n in loop.graph.inputs])
            return [outputs[i] for i in smooth]

        _, pullback = vjp(f, *[values[node] for node in varied])
        parts = pullback([*s[:n], *x[len(carry) + len(rows) :]])
        return [*parts[:n], *[a + b for a, b in zip(s[n:], parts[n:m], strict=True)], *parts[m:]]

    examples = _ones(consts), _ones(varied[:m]), _ones([*carry, *rows, *results])
    return loop.staged(step, *examples, length=loop.length or 0)


def _states(loop: Loop) -> Loop:
    consts, carry, rows = loop.inputs

    def step(c: list[Any], s: list[Any], x: list[Any]) -> list[Any]:
        return [*replay(loop.graph, [*c, *s, *x])[: loop.carry], *s]

    return loop.staged(step, _ones(consts), _ones(carry), _ones(rows))
