"""Loops as operations: `scan`, `fori` and `while_`, for loops that are too long to be unrolled.

Run by Python they are Python's loops. In a compiled function each is one loop of machine code, whatever the number of
its steps. In a reverse mode the carries of `memory` steps are kept, and the others recomputed (binomial checkpointing:
Griewank 1992, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation").
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from effgrad.arrays.value import example, plain, staging
from effgrad.effects import handled
from effgrad.modes.checkpoint import Checkpoint, Recompute, checkpoint
from effgrad.stage import loops
from effgrad.stage.binomial import default_memory, split
from effgrad.stage.graph import Graph
from effgrad.stage.iterate import iterate, unpacked

__all__ = ["fori", "scan", "while_"]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False, memory: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Carry a value along the first axis of arrays: ``carry, y = f(carry, x)`` for each ``x`` of `xs`.

    Arguments:
        f: a function from a carry and a row of `xs` to the next carry and a row of the results, all pytrees. It does
            nothing else, and the carry keeps its structure, shapes and dtypes.
        init: the first carry.
        xs: a pytree of arrays with a common first axis, or None.
        length: the number of steps, needed where `xs` has no arrays.
        reverse: begin with the last row; the results are in the order of `xs`.
        memory: how many carries a reverse mode keeps at a time, at least 2. By default about ``sqrt(2 * length)``: each
            step is then run at most three times; more where a compiled function has room for them. With `length` and
            more, nothing is run twice.

    Returns the last carry, and the results stacked along a new first axis (None where `f` returns None for them).
    Raises `ValueError` if the lengths do not agree, or `memory` is less than 2.

    >>> from effgrad import grad, loop
    >>> def total(xs):
    ...     return loop.scan(lambda carry, x: (carry + x**2, carry), 0.0, xs)[0]
    >>> total(np.array([1.0, 2.0, 3.0])), grad(total)(np.array([1.0, 2.0, 3.0]))
    (np.float64(14.0), array([2., 4., 6.]))
    """
    rows, xs_tree = optree.tree_flatten(xs)
    lengths = {np.shape(plain(row))[0] for row in rows} | ({length} if length is not None else set())
    if len(lengths) != 1:
        raise ValueError(f"scan needs one length; the arrays of xs and the argument `length` say {sorted(lengths)}")
    (count,) = lengths
    _check_memory(memory)

    def step(carry: Any, row: list[Any]) -> tuple[Any, Any]:
        return f(carry, xs_tree.unflatten(row))

    staged = _staged(step, init, rows, count, reverse, memory)
    if staged is not None:
        return staged
    order = range(count)[::-1] if reverse else range(count)
    carry, ys = _steps(lambda carry, i: step(carry, [row[i] for row in rows]), init, order, memory)
    ys = ys[::-1] if reverse else ys
    return carry, optree.tree_map(lambda *parts: np.stack(parts), *ys) if ys else None


def fori(lower: int, upper: int, body: Callable[[int, Any], Any], init: Any, memory: int | None = None) -> Any:
    """``for i in range(lower, upper): carry = body(i, carry)``, beginning with `init`; the last carry.

    `body` and `memory` are as for `scan`.

    >>> from effgrad import grad, loop
    >>> grad(lambda x: loop.fori(0, 3, lambda i, y: y * x, 1.0))(2.0)
    12.0
    """
    numbers = np.arange(lower, max(lower, upper))
    _check_memory(memory)
    staged = _staged(lambda carry, row: (body(row[0], carry), None), init, [numbers], len(numbers), False, memory)
    if staged is not None:
        return staged[0]
    return _steps(lambda carry, i: (body(i, carry), None), init, range(lower, upper), memory)[0]


def while_(
    cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, memory: int | None = None
) -> Any:  # fmt: skip
    """``while cond(carry): carry = body(carry)``, beginning with `init`; the last carry.

    `body` and `memory` are as for `scan`; `cond` returns one truth value. In a reverse mode the steps are counted
    first, by running them once more.

    >>> from effgrad import grad, loop
    >>> def root(a):
    ...     return loop.while_(lambda x: np.abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
    >>> round(root(4.0), 6), round(grad(root)(4.0), 6)
    (2.0, 0.25)
    """
    _check_memory(memory)
    staged = _staged(lambda carry, row: (body(carry), None), init, [], None, False, memory, cond)
    if staged is not None:
        return staged[0]

    def run() -> tuple[Any, int]:
        carry, count = init, 0
        while cond(carry):
            carry, count = body(carry), count + 1
        return carry, count

    if not handled(Checkpoint):
        return run()[0]
    count = checkpoint(lambda: run()[1])
    return _steps(lambda carry, _: (body(carry), None), init, range(count), memory)[0]


def _check_memory(memory: int | None) -> None:
    if memory is not None and memory < 2:
        raise ValueError(f"memory is {memory}; a reverse mode has to keep the carries of two steps at least")


def _steps(
    step: Callable[[Any, int], tuple[Any, Any]], carry: Any, order: range, memory: int | None
) -> tuple[Any, list[Any]]:
    """`step(carry, i)` for each number in order; the last carry, and the results.

    What comes before a snapshot is a checkpoint: it is recomputed when the steps after it have been reversed.
    """
    if not handled(Checkpoint) or (memory is not None and memory >= len(order)):
        results = []
        for i in order:
            carry, result = step(carry, i)
            results.append(result)
        return carry, results

    def run(carry: Any, order: range, snapshots: int) -> tuple[Any, list[Any]]:
        results: list[Any] = []
        while len(order) > 1:
            ahead = split(len(order), max(snapshots, 1))
            carry, some = checkpoint(run, carry, order[:ahead], snapshots)
            results += some
            order, snapshots = order[ahead:], snapshots - 1
        for i in order:
            carry, result = step(carry, i)
            results.append(result)
        return carry, results

    return run(carry, order, memory or default_memory(len(order)))


class _Changes(Exception):
    """The carry changes its structure, shapes or dtypes; `leaves` are those that it would have."""

    def __init__(self, leaves: list[Any] | None) -> None:
        self.leaves = leaves


def _staged(
    step: Callable[[Any, list[Any]], tuple[Any, Any]], init: Any, rows: list[Any], count: int | None, reverse: bool,
    memory: int | None, cond: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any] | None:  # fmt: skip
    """The loop as one operation of the program that is being staged; None where it has to be unrolled.

    That is where nothing is staged, where the body takes paths that depend on values, or where the carry does not keep
    its types.
    """
    if not handled(Recompute) or count == 0 or not all(map(_typed, rows)):
        return None
    leaves, tree = optree.tree_flatten(init)
    leaves = [_number(leaf) for leaf in leaves]
    if not all(map(_typed, leaves)):
        return None
    structure: list[Any] = []

    def inside(carry: list[Any], row: list[Any]) -> list[Any]:
        after, results = step(tree.unflatten(carry), row)
        new, new_tree = optree.tree_flatten(after)
        structure[:] = ys, results_tree = optree.tree_flatten(results)
        new, ys = [_number(leaf) for leaf in new], [_number(y) for y in ys]
        if new_tree != tree or any(np.shape(plain(a)) != np.shape(plain(b)) for a, b in zip(new, carry, strict=True)):
            raise _Changes(None)
        kinds = [np.result_type(example(leaf)) for leaf in new]
        if kinds != [np.result_type(example(leaf)) for leaf in carry]:
            raise _Changes(kinds)
        return [*new, *ys, *([cond(after)] if cond else [])]

    test = None
    try:
        values, graph = loops.body(inside, leaves, [example(row)[0] for row in rows])
    except _Changes as changes:
        if changes.leaves is None:
            return None
        # A sum that begins with 0 becomes a float: it may as well begin with 0.0.
        leaves = [_cast(leaf, dtype) for leaf, dtype in zip(leaves, changes.leaves, strict=True)]
        try:
            values, graph = loops.body(inside, leaves, [example(row)[0] for row in rows])
        except _Changes:
            return None
    if cond is not None:
        asked, test = loops.body(lambda carry: [cond(tree.unflatten(carry))], leaves)
        graph = Graph([*test.inputs[: len(asked)], *graph.inputs], graph.nodes, graph.outputs)
        values = [*asked, *values]
        if test.guards or not _truth(test.outputs[0]):
            return None
    if graph.guards or not all(map(_typed, graph.outputs)):
        return None
    tested = (len(test.inputs) - len(leaves), len(leaves)) if test else (0, 0)
    memory = memory or _carries_within([*values, *leaves, *rows], leaves)
    loop = loops.shared(loops.Loop(graph, len(values), len(leaves), count, reverse, memory, test, tested))
    packed = iterate(*values, *leaves, *rows, loop=loop)
    types = [loops.like(output).dtype for output in graph.outputs]
    parts = unpacked(packed, loop.shapes, types if count is not None else [*types[:-1], np.dtype(np.int64)])
    results = parts[len(leaves) :] if count is not None else []
    return tree.unflatten(parts[: len(leaves)]), structure[1].unflatten(results)


def _carries_within(inputs: list[Any], carry: list[Any]) -> int | None:
    """How many carries may be kept under the limit of memory of the program that is staged, None without one."""
    limits = getattr(staging(inputs), "limits", [])
    return max(2, min(limits) // (2 * max(sum(np.asarray(example(c)).nbytes for c in carry), 8))) if limits else None


def _number(leaf: Any) -> Any:
    """A leaf of a carry: Python's integers and truth values change from step to step, so they are values too."""
    return np.bool_(leaf) if type(leaf) is bool else np.int64(leaf) if type(leaf) is int else leaf


def _typed(leaf: Any) -> bool:
    value = leaf if hasattr(leaf, "dtype") else example(leaf)
    return isinstance(value, float) or getattr(value, "dtype", None) in loops.TYPES


def _truth(output: Any) -> bool:
    return bool(loops.like(output).shape == () and loops.like(output).dtype == np.dtype(bool))


def _cast(leaf: Any, dtype: Any) -> Any:
    same = np.result_type(example(leaf)) == dtype
    return leaf if same else leaf.astype(dtype) if hasattr(leaf, "astype") else dtype.type(leaf)
