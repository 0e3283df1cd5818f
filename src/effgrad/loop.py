"""Loops as operations: `scan`, `fori` and `while_`, for loops that are too long to be unrolled.

Without compilation they run as Python loops. In a compiled function each becomes one loop of machine code, whatever the
number of its steps. In a reverse mode the carries of `memory` steps are kept, and those of all other steps are
recomputed. This is binomial checkpointing (Griewank 1992, "Achieving logarithmic growth of temporal and spatial
complexity in reverse automatic differentiation").
"""

from collections.abc import Callable

import numpy as np
import optree

from effgrad.effects import handled
from effgrad.errors import require_function
from effgrad.modes.checkpoint import Checkpoint, checkpoint
from effgrad.stage.binomial import default_memory, split
from effgrad.stage.loop.functions import (
    Rows,
    common_length,
    flat,
    in_tree,
    leaves_of,
    put,
    repeated,
    repeated_while,
    run_captured,
)
from effgrad.vocabulary import Tree, Value

__all__ = ["fori", "scan", "while_"]


def scan(
    f: Callable[[Tree, Tree], tuple[Tree, Tree]], init: Tree, xs: Tree = None, length: int | None = None,
    reverse: bool = False, memory: int | None = None,
) -> tuple[Tree, Tree]:  # fmt: skip
    """Carry a value along the first axis of arrays: ``carry, y = f(carry, x)`` for each ``x`` of `xs`.

    Arguments:
        f: a function from a carry and a row of `xs` to the next carry and a row of the results, all pytrees. It has no
            side effects, and the carry keeps its structure, shapes and dtypes.
        init: the first carry.
        xs: a pytree of arrays with a common first axis, or None.
        length: the number of steps, needed if `xs` has no arrays.
        reverse: begin with the last row; the results are in the order of `xs`.
        memory: how many carries a reverse mode keeps at a time, at least 2. The default is about ``sqrt(2 * length)``,
            with which each step runs at most three times; a compiled function keeps more if it has the memory. If it
            is at least `length`, no step runs twice.

    Returns:
        The last carry, and the results stacked along a new first axis (None where `f` returns None for them).

    Raises:
        ValueError: the lengths do not agree, or `memory` is less than 2.

    The name and the order of the arguments are those of `jax.lax.scan`.

    >>> from effgrad import grad, loop
    >>> def total(xs):
    ...     return loop.scan(lambda carry, x: (carry + x**2, carry), 0.0, xs)[0]
    >>> total(np.array([1.0, 2.0, 3.0])), grad(total)(np.array([1.0, 2.0, 3.0]))
    (np.float64(14.0), array([2., 4., 6.]))
    """
    require_function("loop.scan", f)
    rows, xs_tree = flat(xs)
    count = common_length(rows, length)
    _check_memory(memory)

    order = range(count)[::-1] if reverse else range(count)
    leaves, tree = flat(init)
    results = Rows(count)

    def pair(carry: Tree, x: Tree) -> tuple[Tree, Tree]:
        result = f(carry, x)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"loop.scan takes a function that returns a pair (carry, y); it returned {result!r}")
        return result[0], result[1]

    def step(i: int, leaves: list[Value]) -> list[Value]:
        carry, y = pair(in_tree(tree, leaves), in_tree(xs_tree, [row[i] for row in rows]))
        put(results, i, y)
        return leaves_of(tree, carry)

    found = run_captured(repeated, results, memory, step=step, carry=leaves, order=order) if count else None
    if found is not None:
        return in_tree(tree, found[0]), in_tree(results.tree, found[1])
    carry, ys = _steps(lambda carry, i: pair(carry, xs_tree.unflatten([row[i] for row in rows])), init, order, memory)
    ys = ys[::-1] if reverse else ys
    return carry, optree.tree_map(lambda *parts: np.stack(parts), *ys) if ys else None


def fori(lower: int, upper: int, body: Callable[[int, Tree], Tree], init: Tree, memory: int | None = None) -> Tree:
    """Run ``for i in range(lower, upper): carry = body(i, carry)``, beginning with `init`, and return the last carry.

    Arguments:
        lower: the first number.
        upper: the number after the last.
        body: a function from a number and a carry to the next carry, which keeps its structure, shapes and dtypes.
        init: the first carry, a pytree.
        memory: as for `scan`.

    Returns:
        The last carry.

    Raises:
        ValueError: `memory` is less than 2.

    >>> from effgrad import grad, loop
    >>> grad(lambda x: loop.fori(0, 3, lambda i, y: y * x, 1.0))(2.0)
    12.0
    """
    require_function("loop.fori", body)
    _check_memory(memory)
    leaves, tree = flat(init)
    order = range(lower, upper)

    def step(i: int, leaves: list[Value]) -> list[Value]:
        return leaves_of(tree, body(i, in_tree(tree, leaves)))

    found = run_captured(repeated, None, memory, step=step, carry=leaves, order=order) if order else None
    if found is not None:
        return in_tree(tree, found[0])
    return _steps(lambda carry, i: (body(i, carry), None), init, order, memory)[0]


def while_(
    cond: Callable[[Tree], Tree], body: Callable[[Tree], Tree], init: Tree, memory: int | None = None
) -> Tree:  # fmt: skip
    """Run ``while cond(carry): carry = body(carry)``, beginning with `init`, and return the last carry.

    In a reverse mode the loop first runs once without a record, to count its steps.

    Arguments:
        cond: a function from a carry to one truth value.
        body: a function from a carry to the next, which keeps its structure, shapes and dtypes.
        init: the first carry, a pytree.
        memory: as for `scan`.

    Returns:
        The last carry.

    Raises:
        ValueError: `memory` is less than 2.

    >>> from effgrad import grad, loop
    >>> def root(a):
    ...     return loop.while_(lambda x: np.abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
    >>> round(root(4.0), 6), round(grad(root)(4.0), 6)
    (2.0, 0.25)
    """
    require_function("loop.while_", cond, body)
    _check_memory(memory)
    leaves, tree = flat(init)

    def going(leaves: list[Value]) -> Tree:
        return cond(in_tree(tree, leaves))

    def step(leaves: list[Value]) -> list[Value]:
        return leaves_of(tree, body(in_tree(tree, leaves)))

    found = run_captured(repeated_while, None, memory, going=going, step=step, carry=leaves)
    if found is not None:
        return in_tree(tree, found[0])

    def run() -> tuple[Tree, int]:
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
    step: Callable[[Tree, int], tuple[Tree, Tree]], carry: Tree, order: range, memory: int | None
) -> tuple[Tree, list[Value]]:
    """Call `step(carry, i)` for each number in `order`, and return the last carry and the list of results.

    Under a reverse mode the steps before each snapshot form a checkpoint. They run again after the steps behind the
    snapshot have been reversed.
    """
    if not handled(Checkpoint) or (memory is not None and memory >= len(order)):
        results = []
        for i in order:
            carry, result = step(carry, i)
            results.append(result)
        return carry, results

    def run(carry: Tree, order: range, snapshots: int) -> tuple[Tree, list[Value]]:
        results: list[Value] = []
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
