"""Loops of staged programs: the body is a graph of its own, and the loop one operation, run as often as it takes.

A `Loop` is a body: from constants, a carry and a row of data to the next carry and a row of results, in leaves. The
primitive `iterate` runs it and gives all results in one vector. Its derivatives are loops again: forward mode's has the
tangents in its carry; reverse mode's, `iterate_back`, goes over the steps backwards, with as many carries kept as it is
told and the others recomputed (binomial checkpointing: Griewank 1992; Griewank and Walther 2000, algorithm 799). In
higher orders, what is differentiated of `iterate_back` is its definition by two calls of `iterate`.
"""

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.smooth import cotangents
from effgrad.smooth.cotangents import flat_product
from effgrad.smooth.primitive import Primitive
from effgrad.smooth.traced import CONSTANT, example, plain
from effgrad.stage.graph import INPUT, UNRULED, Graph, Node, fill
from effgrad.stage.passes import optimised, structure
from effgrad.stage.python import executable
from effgrad.stage.stage import Stage, Staged, record, settled

# The types of leaves that a loop carries; all pass through a vector of float64.
TYPES = {np.dtype(float), np.dtype(np.float32), np.dtype(np.int64), np.dtype(bool)}
_EXACT = 2**53


class Body(Stage):
    """Stage the body of a loop: a value from around it becomes one of the loop's constants."""

    def enter(self) -> None:
        super().enter()
        self.lifted: dict[int, tuple[Any, Staged]] = {}

    def outer(self, value: Any) -> Staged:
        if id(value) not in self.lifted:
            inside = example(value)
            self.lifted[id(value)] = value, Staged(self, inside, Node(INPUT, (), {}, (), inside))
        return self.lifted[id(value)][1]


def body(step: Callable[..., Sequence[Any]], *groups: Sequence[Any]) -> tuple[list[Any], Graph]:
    """The graph of `step(*groups)` at examples, and the values that it closes over: the graph's first inputs."""
    with Body() as stage:
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
        if function is flat_product:
            values[node] = cotangents.product(*args)
        elif function is float:
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
        a, b = self.consts, self.consts + self.carry
        return [list(leaves[:a]), list(leaves[a:b]), list(leaves[b:])]

    @functools.cached_property
    def results(self) -> list[Any]:
        """The outputs of a step that are rows of results."""
        return self.graph.outputs[self.carry : len(self.graph.outputs) - (self.length is None)]

    @functools.cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of what the loop gives: the last carry, the results, and the number of steps if not known."""
        rows = () if self.length is None else [(self.length, *np.shape(like(r))) for r in self.results]
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
        return [_floating(o) for o in self.graph.outputs[: self.carry + len(self.results)]]

    def backward(self, wanted: tuple[int, ...]) -> "Loop":
        """A step of the reverse pass, for the cotangents of some arguments."""
        return _backward(self, wanted)

    def derive(self, key: Any, make: Callable[[], "Loop"]) -> "Loop":
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


# Carries that take no more bytes than this are all kept, unless told otherwise.
_ROOM = 1 << 24

# Loops of unknown length run so many steps at a time: in between, Python sees an interrupt.
_STRETCH = 1 << 20


def _forward(loop: Loop, leaves: Sequence[Any]) -> tuple[list[Any], list[Any], int]:
    """The last carry, the results, and the number of steps."""
    consts, carry, rows = loop.split(leaves)
    carry = [np.array(c, n.dtype) for c, n in zip(carry, loop.inputs[1], strict=True)]
    results = [np.empty((loop.length, *np.shape(like(r))), np.result_type(like(r))) for r in loop.results]
    if loop.length is None:
        return carry, results, _until(loop, consts, carry)
    rows = [row[::-1] for row in rows] if loop.reverse else rows
    ordered = [y[::-1] for y in results] if loop.reverse else results
    loop.steps.sweep(consts, carry, rows, ordered, [], loop.length)
    return carry, results, loop.length


def _until(loop: Loop, consts: list[Any], carry: list[Any]) -> int:
    """Run a loop until its condition fails; the number of steps."""
    assert loop.test is not None
    some, others = loop.tested
    count = 0
    with np.errstate(all="ignore"):
        while loop.test(*[np.asarray(c)[()] for c in consts[:some]], *[c[()] for c in carry[:others]])[0]:
            count += loop.steps.sweep(consts, carry, [], [], [], _STRETCH)
    return count


def like(value: Any) -> Any:
    """Something with the shape and type of an output."""
    return np.empty(value.shape, value.dtype) if type(value) is Node else np.asarray(value)


def _packed(parts: Sequence[Any]) -> np.ndarray:
    """All numbers in one vector."""
    for part in parts:
        if np.result_type(part).kind == "i" and np.size(part) and np.abs(part).max() > _EXACT:
            raise OverflowError("a compiled loop carries an integer beyond 2**53; turn compilation off for this loop")
    return np.concatenate([np.ravel(part) for part in parts], dtype=float, casting="unsafe")


def unpacked(vector: Any, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any]) -> list[Any]:
    """The parts of a vector, in their shapes and types."""
    parts, start = [], 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        end = start + math.prod(shape)
        part = vector[start:end].reshape(shape) if shape else vector[start]
        parts.append(part if dtype == np.dtype(float) else part.astype(dtype))
        start = end
    return parts


def _iterate(*leaves: Any, loop: Loop) -> np.ndarray:
    at_once = loop.whole(None)
    result = at_once(*leaves) if at_once else None
    if result is not None:
        return result
    carry, results, count = _forward(loop, leaves)
    return _packed([*carry, *results, *([count] if loop.length is None else [])])


def split(length: int, snapshots: int) -> int:
    """How many steps to advance before the next snapshot, so that reversing `length` steps runs the fewest."""
    if snapshots == 1:
        return length - 1
    times = 1
    while math.comb(snapshots + times, snapshots) < length:
        times += 1
    earlier, later = math.comb(snapshots + times - 1, snapshots), math.comb(snapshots + times - 2, snapshots - 1)
    return max(1, min(earlier, length - later))


def default_memory(length: int) -> int:
    """Carries to keep, unless told otherwise: as many as let every step be run at most three times."""
    return max(2, math.ceil(math.sqrt(2 * length)))


def _iterate_back(*leaves: Any, loop: Loop, wanted: tuple[int, ...]) -> np.ndarray:
    """The cotangents of the wanted arguments; the last argument is that of the packed results."""
    at_once = loop.whole(wanted)
    result = at_once(*leaves) if at_once else None
    if result is not None:
        return result
    *args, g = leaves
    consts, carry, rows = loop.split(args)
    carry = [np.array(c, n.dtype) for c, n in zip(carry, loop.inputs[1], strict=True)]
    count = loop.length
    if count is None:
        count = _until(loop, consts, [c.copy() for c in carry])
    back = _backward(loop, wanted)
    given = unpacked(np.asarray(g), loop.shapes, [np.dtype(float)] * len(loop.shapes))
    float_carry = [n.dtype.kind == "f" for n in loop.inputs[1]]
    pulled = [np.array(c, n.dtype) for c, n, f in zip(given, loop.inputs[1], float_carry, strict=False) if f]
    pulled += [np.zeros(n.shape, n.dtype) for n in loop.inputs[0] if _place(loop, n) in wanted]
    result_rows = [y for y, r in zip(given[loop.carry :], loop.results, strict=False) if _floating(r)]
    outputs = [
        np.empty((count, *n.shape), n.dtype) for n in loop.inputs[2] if _place(loop, n) in wanted
    ]  # fmt: skip

    def ordered(arrays: list[Any], start: int, stop: int) -> list[Any]:
        """The rows of steps `start` to `stop`."""
        return [(a[::-1] if loop.reverse else a)[start:stop] for a in arrays]

    room = _ROOM // max(sum(c.nbytes for c in carry), 1)
    memory = loop.memory or max(default_memory(count), room)
    # Half of the memory for the snapshots, half for a block of steps all of whose carries are kept.
    block = max(1, memory // 2) if memory < count else max(count, 1)
    pending, stop = [(0, carry, memory - block)], count
    kept = [np.empty((block, *n.shape), n.dtype) for n in loop.inputs[1]]
    while pending:
        start, carry, snapshots = pending.pop()
        while stop - start > block:
            pending.append((start, carry, snapshots))
            ahead = split(-(-(stop - start) // block), max(snapshots, 1)) * block
            carry = [c.copy() for c in carry]
            loop.steps.sweep(consts, carry, ordered(rows, start, start + ahead), [], [], ahead)
            start, snapshots = start + ahead, snapshots - 1
        size = stop - start
        current = [c.copy() for c in carry]
        scratch = [np.empty((size, *np.shape(like(r))), np.result_type(like(r))) for r in loop.results]
        loop.steps.sweep(consts, current, ordered(rows, start, stop), scratch, kept, size)
        back.steps.sweep(
            consts, pulled,
            [k[:size][::-1] for k in kept] + [x[::-1] for x in ordered([*rows, *result_rows], start, stop)],
            [x[::-1] for x in ordered(outputs, start, stop)], [], size,
        )  # fmt: skip
        stop = start
    carried = iter(pulled[: sum(float_carry)])
    by_place = {loop.consts + i: next(carried) for i, f in enumerate(float_carry) if f}
    by_place.update(zip([p for p in wanted if p < loop.consts], pulled[sum(float_carry) :], strict=True))
    by_place.update(zip([p for p in wanted if p >= loop.consts + loop.carry], outputs, strict=True))
    return _packed([by_place[place] for place in wanted])


def _place(loop: Loop, node: Node) -> int:
    return loop.graph.inputs.index(node)


def _floating(value: Any) -> bool:
    return bool(np.result_type(like(value)).kind == "f")


def _zeros(nodes: Sequence[Any]) -> list[Any]:
    return [np.zeros(n.shape, n.dtype)[()] for n in nodes]


def _ones(nodes: Sequence[Any]) -> list[Any]:
    """Examples of values; a Python number gives way to the types of others, as where the body was staged."""
    return [1.0 if getattr(n, "kind", None) is float else np.ones(n.shape, n.dtype)[()] for n in nodes]


def _dual(loop: Loop, active: tuple[int, ...]) -> Loop:
    """The loop whose carry has the tangents of all floating carries, given those of the active constants and rows."""

    def make() -> Loop:
        from effgrad.api import jvp

        consts, carry, rows = loop.inputs
        moving = [n for n in carry if n.dtype.kind == "f"]
        still = [n for n in loop.graph.inputs if n not in moving and _place(loop, n) not in active]
        pushed = [[n for n in group if _place(loop, n) in active] for group in (consts, rows)]

        def step(c: list[Any], s: list[Any], x: list[Any]) -> list[Any]:
            plain_values = [*c[: len(consts)], *s[: len(carry)], *x[: len(rows)]]
            values = dict(zip([*consts, *carry, *rows], plain_values, strict=True))
            tangents = [*c[len(consts) :], *s[len(carry) :], *x[len(rows) :]]
            varied = [*pushed[0], *moving, *pushed[1]]

            def f(*inside: Any) -> list[Any]:
                known = dict(zip(varied, inside, strict=True)) | {n: values[n] for n in still}
                return replay(loop.graph, [known[n] for n in loop.graph.inputs])

            outputs, derivatives = jvp(f, tuple(values[n] for n in varied), tuple(tangents))
            n, m = loop.carry, loop.carry + len(loop.results)
            smooth = [i for i, node in enumerate(carry) if node.dtype.kind == "f"]
            dresults = [d for d, r in zip(derivatives[n:m], loop.results, strict=True) if _floating(r)]
            return [*outputs[:n], *[derivatives[i] for i in smooth], *outputs[n:m], *dresults, *outputs[m:]]

        return loop.staged(
            step, _ones([*consts, *pushed[0]]), _ones([*carry, *moving]), _ones([*rows, *pushed[1]]), base=loop
        )

    return loop.derive(("dual", active), make)


def _backward(loop: Loop, wanted: tuple[int, ...]) -> Loop:
    """One step of the reverse pass: the carry is the cotangents of the floating carries and the wanted constants."""

    def make() -> Loop:
        from effgrad.api import vjp

        consts, carry, rows = loop.inputs
        moving = [n for n in carry if n.dtype.kind == "f"]
        totals = [n for n in consts if _place(loop, n) in wanted]
        pulled_rows = [n for n in rows if _place(loop, n) in wanted]
        varied = [*moving, *totals, *pulled_rows]
        smooth = [i for i, o in enumerate(loop.graph.outputs[: loop.carry + len(loop.results)]) if _floating(o)]
        results = [r for r in loop.results if _floating(r)]

        def step(c: list[Any], s: list[Any], x: list[Any]) -> list[Any]:
            values = dict(zip([*consts, *carry, *rows], [*c, *x[: len(carry) + len(rows)]], strict=True))

            def f(*inside: Any) -> list[Any]:
                known = values | dict(zip(varied, inside, strict=True))
                outputs = replay(loop.graph, [known[n] for n in loop.graph.inputs])
                return [outputs[i] for i in smooth]

            _, pullback = vjp(f, *[values[n] for n in varied])
            parts = pullback([*s[: len(moving)], *x[len(carry) + len(rows) :]])
            n, m = len(moving), len(moving) + len(totals)
            return [*parts[:n], *[a + b for a, b in zip(s[n:], parts[n:m], strict=True)], *parts[m:]]

        return loop.staged(
            step, _ones(consts), _ones([*moving, *totals]), _ones([*carry, *rows, *map(like, results)]),
            length=loop.length or 0,
        )  # fmt: skip

    return loop.derive(("back", wanted), make)


def _states(loop: Loop) -> Loop:
    """The loop whose results are the carries that its steps begin with."""

    def make() -> Loop:
        consts, carry, rows = loop.inputs

        def step(c: list[Any], s: list[Any], x: list[Any]) -> list[Any]:
            return [*replay(loop.graph, [*c, *s, *x])[: loop.carry], *s]

        return loop.staged(step, _ones(consts), _ones(carry), _ones(rows))

    return loop.derive("states", make)


def _counted(loop: Loop, args: Sequence[Any]) -> Loop:
    """A loop of unknown length as one of the length that it has for these arguments."""
    count = int(settled(iterate(*[plain(a) for a in args], loop=loop)[-1]))

    def make() -> Loop:
        fixed = Loop(loop.graph, loop.consts, loop.carry, count, loop.reverse, loop.memory)
        fixed.graph = fixed.graph.with_nodes(fixed.graph.nodes, fixed.graph.outputs[:-1])
        return fixed

    return loop.derive(("counted", count), make)


def _defined(*leaves: Any, loop: Loop, wanted: tuple[int, ...]) -> Any:
    """`iterate_back` by two loops: there, keeping the carries, and back."""
    *args, g = leaves
    if loop.length is None:
        loop, g = _counted(loop, args), g[:-1]
    states, step = _states(loop), _backward(loop, wanted)
    options = loop.length, not loop.reverse, None
    back = step.derive("turned", lambda: Loop(step.graph, step.consts, step.carry, *options))
    consts, carry, rows = loop.split(args)
    shapes = states.shapes
    kept = unpacked(iterate(*args, loop=states), shapes, [n.dtype for n in loop.inputs[1]] * 2)[loop.carry :]
    dtypes = [np.result_type(like(o)) for o in loop.graph.outputs]
    given = unpacked(g, loop.shapes, dtypes)
    moving = [c for c, n in zip(given, loop.inputs[1], strict=False) if n.dtype.kind == "f"]
    totals = _zeros([n for n in loop.inputs[0] if _place(loop, n) in wanted])
    result_rows = [y for y, r in zip(given[loop.carry :], loop.results, strict=True) if _floating(r)]
    packed = iterate(*consts, *moving, *totals, *kept, *rows, *result_rows, loop=back)
    names = [n for n in loop.inputs[1] if n.dtype.kind == "f"]
    names += [n for n in (*loop.inputs[0], *loop.inputs[2]) if _place(loop, n) in wanted]
    parts, start = {}, 0
    for name, shape in zip(names, back.shapes, strict=True):
        parts[_place(loop, name)] = packed[start : start + math.prod(shape)]
        start += math.prod(shape)
    return np.concatenate([parts[place] for place in wanted])


def _push(tangents: list[Any], args: list[Any], params: dict[str, Any]) -> Any:
    loop: Loop = params["loop"]
    consts, carry, rows = loop.inputs
    nodes = loop.graph.inputs
    known = [t if n.dtype.kind == "f" else None for t, n in zip(tangents, nodes, strict=True)]
    inside = range(loop.consts, loop.consts + loop.carry)
    active = tuple(i for i, t in enumerate(known) if t is not None and i not in inside)
    dual = _dual(loop, active)
    if dual.graph.guards:
        return _pushed(_unrolled, tangents, args, params)
    moving = [
        np.zeros(n.shape, n.dtype)[()] if known[i] is None else known[i]
        for i, n in zip(inside, carry, strict=True) if n.dtype.kind == "f"
    ]  # fmt: skip
    c, s, x = loop.split(args)
    tc, _, tx = loop.split(known)
    packed = iterate(
        *c, *[t for t in tc if t is not None], *s, *moving, *x, *[t for t in tx if t is not None], loop=dual
    )  # fmt: skip
    sizes = [math.prod(shape) for shape in dual.shapes]
    starts = np.cumsum([0, *sizes])
    derivative = iter([
        *range(loop.carry, loop.carry + len(moving)),
        *range(loop.carry + len(moving) + len(loop.results), len(sizes) - (loop.length is None)),
    ])  # fmt: skip
    parts = []
    for node, shape in zip([*carry, *loop.results, None], [*loop.shapes, ()], strict=False):
        if node is not None and _floating(node):
            place = next(derivative)
            parts.append(packed[starts[place] : starts[place + 1]])
        elif node is not None or loop.length is None:
            parts.append(np.zeros(math.prod(shape)))
    return np.concatenate(parts)


def _pull(wanted: list[int], g: Any, args: list[Any], params: dict[str, Any]) -> list[Any]:
    loop: Loop = params["loop"]
    nodes = loop.graph.inputs
    smooth = tuple(i for i in wanted if nodes[i].dtype.kind == "f")
    if not smooth:
        return [None] * len(wanted)
    if _backward(loop, smooth).graph.guards:
        return _pulled(_unrolled, wanted, g, args, params)
    packed = iterate_back(*args, cotangents.dense(g), loop=loop, wanted=smooth)
    shapes = [np.shape(plain(args[i])) for i in smooth]
    parts = dict(zip(smooth, unpacked(packed, shapes, [nodes[i].dtype for i in smooth]), strict=True))
    return [parts.get(i) for i in wanted]


def _unrolled(*leaves: Any, loop: Loop) -> Any:
    """`iterate` step by step, for bodies whose derivative takes a path that depends on values."""
    fixed = _counted(loop, leaves) if loop.length is None else loop
    assert fixed.length is not None
    consts, carry, rows = loop.split(leaves)
    results: list[Any] = [None] * fixed.length
    for i in reversed(range(fixed.length)) if loop.reverse else range(fixed.length):
        out = replay(fixed.graph, [*consts, *carry, *[row[i] for row in rows]])
        carry, results[i] = out[: loop.carry], out[loop.carry :]
    stacked = [np.stack(row) for row in zip(*results, strict=True)] if results else []
    count = [float(fixed.length)] if loop.length is None else []
    return np.concatenate([np.ravel(part) * 1.0 for part in [*carry, *stacked, *count]])


def _pushed(definition: Any, tangents: list[Any], args: list[Any], params: dict[str, Any]) -> Any:
    """The tangent of a primitive from its definition."""
    from effgrad.api import jvp

    moved = [i for i, t in enumerate(tangents) if t is not None and np.result_type(plain(args[i])).kind == "f"]

    def f(*inside: Any) -> Any:
        known = dict(zip(moved, inside, strict=True))
        return definition(*[known.get(i, a) for i, a in enumerate(args)], **params)

    return jvp(f, tuple(args[i] for i in moved), tuple(tangents[i] for i in moved))[1]


def _pulled(definition: Any, wanted: list[int], g: Any, args: list[Any], params: dict[str, Any]) -> list[Any]:
    """The cotangents of a primitive's arguments from its definition."""
    from effgrad.api import vjp

    moved = [i for i in wanted if np.result_type(plain(args[i])).kind == "f"]

    def f(*inside: Any) -> Any:
        known = dict(zip(moved, inside, strict=True))
        return definition(*[known.get(i, a) for i, a in enumerate(args)], **params)

    parts = dict(zip(moved, vjp(f, *[args[i] for i in moved])[1](cotangents.dense(g)), strict=True))
    return [parts.get(i) for i in wanted]


iterate = Primitive("iterate", _iterate, "general", (), ())
iterate.push_jointly, iterate.pull_jointly = _push, _pull
iterate_back = Primitive("iterate_back", _iterate_back, "general", (), ())
iterate_back.push_jointly = functools.partial(_pushed, _defined)
iterate_back.pull_jointly = functools.partial(_pulled, _defined)
