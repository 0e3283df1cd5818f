"""A loop of a few numbers, with the loops inside it, as one function that keeps them in registers.

Arrays in such a body are so small that each element is a value of its own: moving elements costs nothing, and a
nested loop is a loop in the same function. A reverse pass reads the carries of its loop from a scratch memory, where
the loop that computes its result leaves them if it is in the same body.
"""

import ctypes
import hashlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.stage.graph import Graph
from effgrad.stage.iterate import iterate, iterate_back
from effgrad.stage.loops import Loop, like
from effgrad.stage.native import engine
from effgrad.stage.native.elements import Elements, Unsuited, Values
from effgrad.stage.native.scalars import COMPARING, TYPES, Body, dtype_of, literal
from effgrad.stage.native.storage import address_of
from effgrad.stage.nodes import Node

# Arrays of more elements, and functions of more operations, are left to kernels.
MOST_ELEMENTS, MOST_OPERATIONS = 64, 4000
# The scratch memory, in numbers; a reverse pass that needs more goes step by step, and recomputes.
ROOM = 1 << 21
# Loops of unknown length ask whether to go on after so many steps, so that they can be interrupted.
PATIENCE = 1 << 20

_INTERRUPTED, _FULL, _INEXACT = 1, 2, 3


def whole(loop: Loop, wanted: tuple[int, ...] | None = None) -> "Whole | None":
    """The function that runs a loop, or its reverse pass for the `wanted` arguments; None where it is too large."""
    try:
        return Whole(loop, wanted)
    except Unsuited:
        return None


class Whole:
    """A loop in machine code: called with the arguments of `iterate`, or of `iterate_back`."""

    def __init__(self, loop: Loop, wanted: tuple[int, ...] | None) -> None:
        nodes = loop.graph.inputs
        types, self.shapes = [TYPES[node.dtype] for node in nodes], [node.shape for node in nodes]
        if wanted is not None:
            types.append("double")
            self.shapes.append((sum(map(math.prod, loop.shapes)),))
        self.floating = [kind in ("double", "float") for kind in types]
        writer = _Writer()
        self.size = writer.function(loop, wanted, types, list(map(math.prod, self.shapes)))
        self.room = ROOM if any("ptr %scratch," in line for line in writer.body.lines) else 0
        digest = hashlib.sha256("\n".join(writer.body.lines).encode()).hexdigest()
        address = engine.engine().load({f"effgrad_{digest[:32]}": writer.body})[f"effgrad_{digest[:32]}"]
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        # Python's lock is kept: where the function asks, an interrupt becomes an exception of this call.
        self.run = ctypes.PYFUNCTYPE(number, pointer, pointer, pointer, number, pointer)(address)
        self.unused: list[_Workspace] = []

    def __call__(self, *leaves: Any) -> np.ndarray | None:
        """The result; None if the scratch memory does not suffice."""
        # Two runs at once, of threads or of what an interrupt calls, have memories of their own.
        try:
            workspace = self.unused.pop()
        except IndexError:
            workspace = _Workspace(self)
        try:
            for view, leaf in zip(workspace.views, leaves, strict=True):
                view[...] = leaf
            code = self.run(*workspace.addresses)
            if code == _INEXACT:
                raise OverflowError(
                    "a compiled loop carries an integer beyond 2**53; turn compilation off for this loop"
                )
            return None if code == _FULL else workspace.result.copy()
        finally:
            self.unused.append(workspace)


class _Workspace:
    """The memory of a run: a view of each argument, the result, and what the function is called with."""

    def __init__(self, whole: Whole) -> None:
        ends = np.cumsum([0, *map(math.prod, whole.shapes)]).tolist()
        given, scratch = np.empty(ends[-1]), np.empty(whole.room)
        integers = given.view(np.int64)
        self.views = [
            (given if floating else integers)[start:end].reshape(shape)
            for floating, shape, start, end in zip(whole.floating, whole.shapes, ends, ends[1:], strict=False)
        ]
        self.result = np.empty(whole.size)
        self.kept = given, scratch
        self.addresses = *map(address_of, (given, self.result, scratch)), whole.room, address_of(_SERVICES)


# What a long loop calls now and then: see whether there was an interrupt, and let other threads run.
_CALLED = ("PyErr_CheckSignals", "PyEval_SaveThread", "PyEval_RestoreThread")
_SERVICES = np.array([ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _CALLED])
_ASK = """
define internal i64 @KERNEL.ask(ptr %services) noinline {
  %check = load ptr, ptr %services
  %b = getelementptr ptr, ptr %services, i64 1
  %save = load ptr, ptr %b
  %c = getelementptr ptr, ptr %services, i64 2
  %restore = load ptr, ptr %c
  %state = call ptr %save()
  call void %restore(ptr %state)
  %code = call i32 %check()
  %wide = sext i32 %code to i64
  ret i64 %wide
}
"""


class _Writer:
    """Writes graphs as straight lines, and their loops as loops."""

    def __init__(self) -> None:
        self.body = Body()
        self.elements = Elements(self.body)
        self.labels = itertools.count()
        self.block = "entry"
        self.operations = 0

    def function(self, loop: Loop, wanted: tuple[int, ...] | None, types: list[str], sizes: list[int]) -> int:
        """The function of a loop; the size of its result."""
        body = self.body
        body.lines += [
            _ASK, "define i64 @KERNEL(ptr noalias %given, ptr noalias %result, ptr noalias %scratch, i64 %room,",
            "                   ptr %services) {", "entry:", "  %patience = alloca i64",
            f"  store i64 {PATIENCE}, ptr %patience",
        ]  # fmt: skip
        places, leaves = itertools.count(), []
        for kind, size in zip(types, sizes, strict=True):
            leaves.append([self.load("%given", str(next(places)), kind) for _ in range(size)])
        if wanted is None:
            (result,), _ = self.forward(loop, [(loop, leaves)], "0")
        else:
            result = self.back(loop, leaves[:-1], leaves[-1], wanted, None, "0")
        for place, value in enumerate(result):
            self.store(value, "double", "%result", str(place))
        body.lines.append("  ret i64 0")
        for label, code in (("interrupted", _INTERRUPTED), ("full", _FULL), ("inexact", _INEXACT)):
            body.lines += [f"{label}:", f"  ret i64 {code}"]
        body.lines.append("}")
        return len(result)

    # Memory and jumps

    def load(self, base: str, place: str, kind: str) -> str:
        stored = {"double": "double", "float": "double"}.get(kind, "i64")
        address = self.body.do(f"getelementptr i64, ptr {base}, i64 {place}")
        return self.converted(self.body.do(f"load {stored}, ptr {address}"), stored, kind)

    def store(self, value: str, kind: str, base: str, place: str) -> None:
        stored = {"double": "double", "float": "double"}.get(kind, "i64")
        address = self.body.do(f"getelementptr i64, ptr {base}, i64 {place}")
        self.body.lines.append(f"  store {stored} {self.converted(value, kind, stored)}, ptr {address}")

    def converted(self, value: str, source: str, target: str) -> str:
        return self.body.convert(value, source, target)

    def start(self, label: str) -> None:
        self.body.lines.append(f"{label}:")
        self.block = label

    def unless(self, condition: str, failed: str) -> None:
        """Go on, or leave the function where a condition fails."""
        going = f"L{next(self.labels)}"
        self.body.lines.append(f"  br i1 {condition}, label %{going}, label %{failed}")
        self.start(going)

    def repeated(
        self, begin: str, carried: list[tuple[str, str]], inside: Callable[[list[str]], tuple[list[str], str]]
    ) -> list[str]:
        """A loop that begins if `begin` holds: `inside` makes of the values that are carried, pairs of a type and
        the first, the next ones and the condition on which it goes on. The last ones."""
        head, out, before = f"L{next(self.labels)}", f"L{next(self.labels)}", self.block
        self.body.lines.append(f"  br i1 {begin}, label %{head}, label %{out}")
        self.start(head)
        phis = [self.body.name() for _ in carried]
        at = len(self.body.lines)
        values, again = inside(phis)
        self.body.lines[at:at] = [
            f"  {phi} = phi {kind} [ {first}, %{before} ], [ {value}, %{self.block} ]"
            for phi, (kind, first), value in zip(phis, carried, values, strict=True)
        ]
        last = self.block
        self.body.lines.append(f"  br i1 {again}, label %{head}, label %{out}")
        self.start(out)
        return [
            self.body.do(f"phi {kind} [ {first}, %{before} ], [ {value}, %{last} ]")
            for (kind, first), value in zip(carried, values, strict=True)
        ]

    def asked(self) -> None:
        """Ask now and then whether to go on."""
        body = self.body
        left = body.do(f"sub i64 {body.do('load i64, ptr %patience')}, 1")
        body.lines.append(f"  store i64 {left}, ptr %patience")
        ask, on = f"L{next(self.labels)}", f"L{next(self.labels)}"
        body.lines.append(f"  br i1 {body.do(f'icmp sgt i64 {left}, 0')}, label %{on}, label %{ask}")
        self.start(ask)
        stop = body.do("call i64 @KERNEL.ask(ptr %services)")
        body.lines.append(f"  store i64 {PATIENCE}, ptr %patience")
        body.lines.append(f"  br i1 {body.do(f'icmp eq i64 {stop}, 0')}, label %{on}, label %interrupted")
        self.start(on)

    # Loops

    def forward(
        self, root: Loop, runs: list[tuple[Loop, list[Values]]], top: str, keep: bool = False
    ) -> tuple[list[Values], str]:
        """Runs of a loop: the packed results of each, and where the scratch memory is free after them.

        Each run is a loop and its arguments: those of `root`, or of a loop that has it as its base and the same
        arguments but for tangents. They are one loop, in which what they have in common is computed once.
        With `keep`, the carry that each step begins with goes to the scratch memory from `top` on.
        """
        if root.length is not None or root.inputs[2] or root.results:
            raise Unsuited
        assert root.test is not None
        parts: list[tuple[Loop, list[Values]]] = [(loop, leaves[: loop.consts]) for loop, leaves in runs]
        carries = [loop.split(leaves)[1] for loop, leaves in runs]
        consts, carry = parts[0][1][: root.consts], carries[0][: root.carry]
        some, others = root.tested
        begin = self.graph(root.test, [*consts[:some], *carry[:others]], top)[0][0]
        moving = [loop.inputs[1][root.carry :] for loop, _ in runs]
        nodes = [*root.inputs[1], *itertools.chain(*moving)]
        kinds = [TYPES[n.dtype] for n in nodes for _ in range(n.size)]
        width = sum(n.size for n in root.inputs[1])

        def step(values: list[str]) -> tuple[list[str], str]:
            *flat, at, count = values
            self.asked()
            if keep:
                end = self.body.do(f"add i64 {at}, {width}")
                self.unless(self.body.do(f"icmp sle i64 {end}, %room"), "full")
                for i, (value, kind) in enumerate(zip(flat[:width], kinds, strict=False)):
                    self.store(value, kind, "%scratch", self.body.do(f"add i64 {at}, {i}"))
                at = end
            state = _grouped(flat, nodes)
            own, rest = state[: root.carry], iter(state[root.carry :])
            new = self.typed_graph(root.graph, [*consts, *own], at, root.inputs[1])
            for (loop, given), more in zip(parts, moving, strict=True):
                if more:
                    inputs = [*given, *own, *itertools.islice(rest, len(more))]
                    new[len(new) - 1 : -1] = self.typed_graph(loop.graph, inputs, at, loop.inputs[1])[root.carry : -1]
            return [*itertools.chain(*new[:-1]), at, self.body.do(f"add i64 {count}, 1")], new[-1][0]

        starts = itertools.chain(*carry, *[tangents for c in carries for tangents in c[root.carry :]])
        first = [*zip(kinds, starts, strict=True), ("i64", top), ("i64", "0")]
        *flat, top, count = self.repeated(begin, first, step)
        last, results = iter(self.packed(flat, kinds)), []
        own, count = list(itertools.islice(last, width)), self.packed([count], ["i64"])[0]
        for more in moving:
            results.append([*own, *itertools.islice(last, sum(n.size for n in more)), count])
        return results, top

    def typed_graph(self, graph: Graph, inputs: Sequence[Values], top: str, nodes: Sequence[Node]) -> list[Values]:
        """Return `graph` with its first outputs in the types of these nodes."""
        outputs = self.graph(graph, inputs, top)
        typed = zip(outputs, graph.outputs, nodes, strict=False)
        new = [[self.converted(v, _kind(o), TYPES[n.dtype]) for v in part] for part, o, n in typed]
        return [*new, *outputs[len(new) :]]

    def packed(self, values: Values, types: list[str]) -> Values:
        """Numbers as doubles, which must hold them."""
        for value, kind in zip(values, types, strict=True):
            if kind == "i64":
                size = self.body.do(f"call i64 @llvm.abs.i64(i64 {value}, i1 false)")
                self.body.declared.add("declare i64 @llvm.abs.i64(i64, i1)")
                self.unless(self.body.do(f"icmp ule i64 {size}, {2**53}"), "inexact")
        return [self.converted(v, kind, "double") for v, kind in zip(values, types, strict=True)]

    def back(
        self, loop: Loop, leaves: list[Values], given: Values, wanted: tuple[int, ...], kept: tuple[str, str] | None,
        top: str,
    ) -> Values:  # fmt: skip
        """The reverse pass of a loop, whose steps are `kept` from one place of the scratch memory to another."""
        if loop.memory is not None:
            raise Unsuited
        start, end = kept or (top, self.forward(loop, [(loop, leaves)], top, keep=True)[1])
        top = end if kept is None else top
        back = loop.backward(wanted)
        consts, carry, _ = loop.split(leaves)
        nodes = loop.inputs[1]
        width = sum(len(part) for part in carry)
        moving = [n.dtype.kind == "f" for n in nodes]
        seeds = [part for part, f in zip(_grouped(given, nodes), moving, strict=True) if f]
        totals = [[literal(0, TYPES[n.dtype])] * n.size for n in back.inputs[1][len(seeds) :]]
        carried = back.inputs[1]
        kinds = [TYPES[n.dtype] for n in carried for _ in range(n.size)]
        first = [
            *[self.converted(v, "double", TYPES[n.dtype]) for n, s in zip(carried, seeds, strict=False) for v in s],
            *itertools.chain(*totals),
        ]  # fmt: skip

        def step(values: list[str]) -> tuple[list[str], str]:
            *flat, at = values
            at = self.body.do(f"sub i64 {at}, {width}")
            places, state = itertools.count(), []
            for n in nodes:
                offsets = [self.body.do(f"add i64 {at}, {next(places)}") for _ in range(n.size)]
                state.append([self.load("%scratch", offset, TYPES[n.dtype]) for offset in offsets])
            new = self.typed_graph(back.graph, [*consts, *_grouped(flat, carried), *state], top, carried)
            return [*itertools.chain(*new), at], self.body.do(f"icmp sgt i64 {at}, {start}")

        begin = self.body.do(f"icmp sgt i64 {end}, {start}")
        *flat, _ = self.repeated(begin, [*zip(kinds, first, strict=True), ("i64", end)], step)
        found = dict(zip(loop.pulled(wanted), _grouped(self.packed(flat, kinds), carried), strict=True))
        return [v for place in wanted for v in found[place]]

    # Straight lines

    def graph(self, graph: Graph, inputs: Sequence[Values], top: str) -> list[Values]:
        """The outputs of a graph; its loops may use the scratch memory from `top` on."""
        values: dict[int, Values] = {id(n): v for n, v in zip(graph.inputs, inputs, strict=True)}
        kept: dict[Any, tuple[str, str] | None] = {
            _run(n.params["loop"], n.args[:-1]): None for n in graph if n.primitive is iterate_back
        }
        together, going = _together(graph), _conjuncts(graph.outputs[-1])

        def arguments(node: Node) -> list[Any]:
            return [values[id(a)] if type(a) is Node else _literals(a) for a in node.args]

        def place(node: Node) -> None:
            nonlocal top
            self.operations += max(node.size, 1)
            if node.size > MOST_ELEMENTS or self.operations > MOST_OPERATIONS or node.dtype not in TYPES:
                raise Unsuited
            if node.primitive is iterate:
                root, members, before = together[node]
                for other in before:
                    if id(other) not in values:
                        place(other)
                loops = [(n.params["loop"], self.fitted(arguments(n), n)) for n in members]
                run, start = _run(root, members[0].args), top
                results, top = self.forward(root, loops, top, keep=run in kept)
                values.update((id(n), result) for n, result in zip(members, results, strict=True))
                if run in kept:
                    kept[run] = start, top
            elif node.primitive is iterate_back:
                loop, wanted, *args = node.params["loop"], node.params["wanted"], *arguments(node)
                run = _run(loop, node.args[:-1])
                values[id(node)] = self.back(loop, self.fitted(args, node), args[-1], wanted, kept[run], top)
            else:
                args = arguments(node)
                if node.primitive.name == "where" and (node.args[0] in going or _counts(node.args[0])):
                    self.body.guessed.update(args[0])
                values[id(node)] = self.elements.operation(node, args)

        for node in graph:
            if id(node) not in values:
                place(node)
        return [
            values[id(o)] if type(o) is Node else [literal(v, _kind(o)) for v in _literals(o)] for o in graph.outputs
        ]

    def fitted(self, args: list[Any], node: Node) -> list[Values]:
        """The arguments of a loop in the types of its inputs."""
        pairs = zip(args, node.args, node.params["loop"].graph.inputs, strict=False)
        return [[self.elements.typed(v, a, TYPES[n.dtype]) for v in part] for part, a, n in pairs]


def _conjuncts(condition: Any) -> set[Any]:
    """Return the facts that a loop's condition implies: they hold in all steps but the last."""
    if type(condition) is not Node or condition.dtype.kind != "b":
        return set()
    if condition.primitive.name in ("and_", "bitwise_and", "logical_and"):
        return set.union({condition}, *map(_conjuncts, condition.args))
    return {condition}


def _counts(condition: Any) -> bool:
    """Whether a condition compares integers, which in a loop of numbers count its steps."""
    if type(condition) is not Node or condition.primitive.name not in COMPARING:
        return False
    return all(dtype_of(a).kind == "i" for a in condition.args)


def _run(loop: Loop, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return a key that two runs of a loop share: the loop, and its first values."""
    return loop, *[id(a) if type(a) is Node else repr(a) for a in args]


def _together(graph: Graph) -> dict[Node, tuple[Loop, list[Node], list[Node]]]:
    """For each loop of a graph those that run with it, in one loop: itself, and what has it as its base.

    With them, the loop that is the base of the others, and what has to be computed before.
    """
    runs: dict[Any, list[Node]] = {}
    for node in graph:
        if node.primitive is iterate:
            loop = node.params["loop"]
            runs.setdefault(_run(loop, node.args), []).append(node)
            if loop.base is not None:
                consts, carry, _ = loop.split(node.args)
                args = [*consts[: loop.base.consts], *carry[: loop.base.carry]]
                runs.setdefault(_run(loop.base, args), []).append(node)
    together: dict[Node, tuple[Loop, list[Node], list[Node]]] = {}
    for (root, *_), members in runs.items():
        members = [n for n in members if n not in together]
        before = _before(graph, members)
        if len(members) > 1 and before.isdisjoint(members):
            ordered = sorted(members, key=lambda n: n.params["loop"] is not root)
            together.update(dict.fromkeys(members, (root, ordered, [n for n in graph if n in before])))
    for node in graph:
        if node.primitive is iterate and node not in together:
            together[node] = node.params["loop"], [node], []
    return together


def _before(graph: Graph, nodes: list[Node]) -> set[Node]:
    """Return the nodes that some nodes depend on."""
    found: set[Node] = set()
    waiting = [a for n in nodes for a in n.inputs]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.inputs
    return found - set(graph.inputs)


def _grouped(flat: Sequence[str], nodes: Sequence[Node]) -> list[Values]:
    """Values one after another, as those of each node."""
    rest = iter(flat)
    return [list(itertools.islice(rest, n.size)) for n in nodes]


def _literals(value: Any) -> list[Any]:
    """The elements of a constant."""
    if np.size(value) > MOST_ELEMENTS:
        raise Unsuited
    return [value] if np.ndim(value) == 0 else list(np.ravel(value))


def _kind(output: Any) -> str:
    return TYPES[output.dtype] if type(output) is Node else TYPES[np.result_type(like(output))]
