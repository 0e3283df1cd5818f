"""The primitives that run a loop, `iterate`, and its reverse pass, `iterate_back`, with their derivatives.

`iterate` gives all results in one vector. Its derivatives are loops again: forward mode's has the tangents in its
carry; reverse mode's, `iterate_back`, goes over the steps backwards, with as many carries kept as it is told and the
others recomputed. In higher orders, what is differentiated of `iterate_back` is its definition by two calls of
`iterate`.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from effgrad.api import jvp, vjp
from effgrad.arrays.value import plain
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import Primitive
from effgrad.stage.binomial import default_memory, split
from effgrad.stage.loops import Loop, floating, replay
from effgrad.stage.nodes import dtype_of, shape_of
from effgrad.stage.staged_value import settled

# Doubles hold all whole numbers up to this.
_EXACT = 2**53
# Carries that take no more bytes than this are all kept, unless told otherwise.
_ROOM = 1 << 24
# Loops of unknown length run so many steps at a time: in between, Python sees an interrupt.
_STRETCH = 1 << 20


def _forward(loop: Loop, leaves: Sequence[Any]) -> tuple[list[Any], list[Any], int]:
    """The last carry, the results, and the number of steps."""
    consts, carry, rows = loop.split(leaves)
    carry = _copied(loop, carry)
    if loop.length is None:
        return carry, [], _until(loop, consts, carry)
    results = _rows(loop.length, loop.results)
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


def _packed(parts: Sequence[Any]) -> np.ndarray:
    """All numbers in one vector."""
    for part in parts:
        if np.result_type(part).kind == "i" and np.size(part) and np.abs(part).max() > _EXACT:
            raise OverflowError("a compiled loop carries an integer beyond 2**53; turn compilation off for this loop")
    return np.concatenate([np.ravel(part) for part in parts], dtype=float, casting="unsafe")


def _stretches(shapes: Sequence[tuple[int, ...]]) -> list[slice]:
    """Where in a vector each of its parts is."""
    ends = list(itertools.accumulate(map(math.prod, shapes), initial=0))
    return list(itertools.starmap(slice, itertools.pairwise(ends)))


def unpacked(vector: Any, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any]) -> list[Any]:
    """The parts of a vector, in their shapes and types."""
    parts = []
    for stretch, shape, dtype in zip(_stretches(shapes), shapes, dtypes, strict=True):
        part = vector[stretch].reshape(shape) if shape else vector[stretch.start]
        parts.append(part if dtype == np.dtype(float) else part.astype(dtype))
    return parts


def _iterate(*leaves: Any, loop: Loop) -> np.ndarray:
    """The last carry, the results and the number of steps, if it is not known, in one vector."""
    at_once = loop.whole(None)
    result = at_once(*leaves) if at_once else None
    if result is not None:
        return result
    carry, results, count = _forward(loop, leaves)
    return _packed([*carry, *results, *([count] if loop.length is None else [])])


def _iterate_back(*leaves: Any, loop: Loop, wanted: tuple[int, ...]) -> np.ndarray:
    """The cotangents of the wanted arguments; the last argument is that of the packed results."""
    at_once = loop.whole(wanted)
    result = at_once(*leaves) if at_once else None
    if result is not None:
        return result
    *args, g = leaves
    consts, carry, rows = loop.split(args)
    carry = _copied(loop, carry)
    count = loop.length if loop.length is not None else _until(loop, consts, _copied(loop, carry))
    given = unpacked(np.asarray(g), loop.shapes, [np.dtype(float)] * len(loop.shapes))
    pulled = [np.array(c, n.dtype) for c, n in zip(given, loop.inputs[1], strict=False) if n.dtype.kind == "f"]
    pulled += [np.zeros(loop.graph.inputs[i].shape, loop.graph.inputs[i].dtype) for i in wanted if i < loop.consts]
    outputs = _rows(count, [loop.graph.inputs[i] for i in wanted if i >= loop.consts + loop.carry])
    result_rows = [y for y, r in zip(given[loop.carry :], loop.results, strict=False) if floating(r)]
    _sweep_back(loop, wanted, consts, carry, rows, result_rows, pulled, outputs, count)
    by_place = dict(zip(loop.pulled(wanted), [*pulled, *outputs], strict=True))
    return _packed([by_place[place] for place in wanted])


def _sweep_back(
    loop: Loop, wanted: tuple[int, ...], consts: list[Any], carry: list[Any], rows: list[Any], result_rows: list[Any],
    pulled: list[Any], outputs: list[Any], count: int,
) -> None:  # fmt: skip
    """Run the steps and reverse them: `pulled`, the cotangents that are carried back, changes, and `outputs`, those of
    rows, are filled.

    Half of the memory is for the snapshots, half for a block of steps all of whose carries are kept.
    """
    back = loop.backward(wanted)

    def ordered(arrays: list[Any], start: int, stop: int) -> list[Any]:
        """The rows of steps `start` to `stop`."""
        return [(a[::-1] if loop.reverse else a)[start:stop] for a in arrays]

    memory = loop.memory or max(default_memory(count), _ROOM // max(sum(c.nbytes for c in carry), 1))
    block = max(1, memory // 2) if memory < count else max(count, 1)
    kept = _rows(block, loop.inputs[1])
    pending, stop = [(0, carry, memory - block)], count
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
        loop.steps.sweep(consts, current, ordered(rows, start, stop), _rows(size, loop.results), kept, size)
        back.steps.sweep(
            consts, pulled,
            [k[:size][::-1] for k in kept] + [x[::-1] for x in ordered([*rows, *result_rows], start, stop)],
            [x[::-1] for x in ordered(outputs, start, stop)], [], size,
        )  # fmt: skip
        stop = start


def _copied(loop: Loop, carry: list[Any]) -> list[np.ndarray]:
    """A carry in memory of its own, in the types of the loop."""
    return [np.array(c, n.dtype) for c, n in zip(carry, loop.inputs[1], strict=True)]


def _rows(count: int, values: Sequence[Any]) -> list[np.ndarray]:
    """Room for so many rows of each value."""
    return [np.empty((count, *shape_of(value)), dtype_of(value)) for value in values]


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
    states, step = loop.states(), loop.backward(wanted)
    options = loop.length, not loop.reverse, None
    back = step.derive("turned", lambda: Loop(step.graph, step.consts, step.carry, *options))
    consts, carry, rows = loop.split(args)
    shapes = states.shapes
    kept = unpacked(iterate(*args, loop=states), shapes, [n.dtype for n in loop.inputs[1]] * 2)[loop.carry :]
    given = unpacked(g, loop.shapes, [dtype_of(o) for o in loop.graph.outputs])
    moving = [c for c, n in zip(given, loop.inputs[1], strict=False) if n.dtype.kind == "f"]
    inputs = loop.graph.inputs
    totals = [np.zeros(inputs[i].shape, inputs[i].dtype)[()] for i in wanted if i < loop.consts]
    result_rows = [y for y, r in zip(given[loop.carry :], loop.results, strict=True) if floating(r)]
    packed = iterate(*consts, *moving, *totals, *kept, *rows, *result_rows, loop=back)
    places = dict(zip(loop.pulled(wanted), _stretches(back.shapes), strict=True))
    return np.concatenate([packed[places[i]] for i in wanted])


def _push(tangents: list[Any], args: list[Any], params: dict[str, Any]) -> Any:
    """The tangent of `iterate`, by a loop that carries the tangents too."""
    loop: Loop = params["loop"]
    consts, carry, rows = loop.inputs
    nodes = loop.graph.inputs
    known = [t if n.dtype.kind == "f" else None for t, n in zip(tangents, nodes, strict=True)]
    inside = range(loop.consts, loop.consts + loop.carry)
    active = tuple(i for i, t in enumerate(known) if t is not None and i not in inside)
    dual = loop.dual(active)
    if dual.graph.guards:
        return _push_definition(_unrolled, tangents, args, params)
    moving = [
        np.zeros(n.shape, n.dtype)[()] if known[i] is None else known[i]
        for i, n in zip(inside, carry, strict=True) if n.dtype.kind == "f"
    ]  # fmt: skip
    c, s, x = loop.split(args)
    tc, _, tx = loop.split(known)
    packed = iterate(
        *c, *[t for t in tc if t is not None], *s, *moving, *x, *[t for t in tx if t is not None], loop=dual
    )  # fmt: skip
    stretches = _stretches(dual.shapes)
    first_result = loop.carry + len(moving) + len(loop.results)
    derivatives = iter([*stretches[loop.carry :][: len(moving)], *stretches[first_result:]])
    parts = []
    for node, shape in zip([*carry, *loop.results, None], [*loop.shapes, ()], strict=False):
        if node is not None and floating(node):
            parts.append(packed[next(derivatives)])
        elif node is not None or loop.length is None:
            parts.append(np.zeros(math.prod(shape)))
    return np.concatenate(parts)


def _pull(wanted: list[int], g: Any, args: list[Any], params: dict[str, Any]) -> list[Any]:
    """The cotangents of the arguments of `iterate`, by `iterate_back`."""
    loop: Loop = params["loop"]
    nodes = loop.graph.inputs
    smooth = tuple(i for i in wanted if nodes[i].dtype.kind == "f")
    if not smooth:
        return [None] * len(wanted)
    if loop.backward(smooth).graph.guards:
        return _pull_definition(_unrolled, wanted, g, args, params)
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


def _push_definition(definition: Any, tangents: list[Any], args: list[Any], params: dict[str, Any]) -> Any:
    """The tangent of a primitive from its definition."""

    moved = [i for i, t in enumerate(tangents) if t is not None and np.result_type(plain(args[i])).kind == "f"]
    f = _restricted(definition, moved, args, params)
    return jvp(f, tuple(args[i] for i in moved), tuple(tangents[i] for i in moved))[1]


def _pull_definition(
    definition: Any, wanted: list[int], g: Any, args: list[Any], params: dict[str, Any]
) -> list[Any]:  # fmt: skip
    """The cotangents of a primitive's arguments from its definition."""

    moved = [i for i in wanted if np.result_type(plain(args[i])).kind == "f"]
    _, pullback = vjp(_restricted(definition, moved, args, params), *[args[i] for i in moved])
    parts = dict(zip(moved, pullback(cotangents.dense(g)), strict=True))
    return [parts.get(i) for i in wanted]


def _restricted(definition: Any, moved: list[int], args: list[Any], params: dict[str, Any]) -> Any:
    """The definition as a function of some of the arguments."""

    def f(*inside: Any) -> Any:
        known = dict(zip(moved, inside, strict=True))
        return definition(*[known.get(i, a) for i, a in enumerate(args)], **params)

    return f


iterate = Primitive("iterate", _iterate, "general", (), ())
iterate.push_jointly, iterate.pull_jointly = _push, _pull
iterate_back = Primitive("iterate_back", _iterate_back, "general", (), ())
iterate_back.push_jointly = functools.partial(_push_definition, _defined)
iterate_back.pull_jointly = functools.partial(_pull_definition, _defined)
