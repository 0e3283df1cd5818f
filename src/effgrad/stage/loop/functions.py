"""The loops of `effgrad.loop`, whose body is a function: they are captured as `for` and `while` loops are.

The source that is captured is that of `repeated` and `repeated_while`, whose carry is a list of leaves. The functions
that flatten the user's structures and keep the results of steps have rules here, which do the same to symbolic values.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import optree

from effgrad.arrays.layout import shape_of
from effgrad.program import control
from effgrad.program.used_up import loop_of
from effgrad.stage.loop.affine import NotCaptured, affine
from effgrad.stage.loop.evaluator import Evaluator
from effgrad.stage.loop.operands import Complex, Value, View, whole_view
from effgrad.stage.loop.registry import rule
from effgrad.trees import with_dataclasses


def repeated(step: Callable[..., Value], carry: list[Value], order: range) -> list[Value]:
    """Run a step for each number of a range; return the last carry."""
    for i in order:
        carry = step(i, carry)
    return carry


def repeated_while(going: Callable[..., Value], step: Callable[..., Value], carry: list[Value]) -> list[Value]:
    """Run a step while a test holds; return the last carry."""
    while going(carry):
        carry = step(carry)
    return carry


class Rows:
    """The results of a loop's steps: for each leaf an array in the region's memory, with a row for each step."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.views: list[View] = []
        self.tree: Value = None
        self.capture: Evaluator | None = None


def flat(value: Value) -> tuple[list[Value], Value]:
    """The leaves of a value, and its structure."""
    return with_dataclasses(value)


def common_length(rows: Sequence[Value], length: int | None) -> int:
    """The common length of arrays along their first axis, which must be `length` if that is given."""
    return one_length({shape_of(row)[0] for row in rows}, length)


def one_length(lengths: set[int], length: int | None) -> int:
    """The only length in a set; raises `ValueError` if there are several or none."""
    lengths = lengths | ({length} if length is not None else set())
    if len(lengths) != 1:
        raise ValueError(f"scan needs one length; the arrays of xs and the argument `length` say {sorted(lengths)}")
    return lengths.pop()


def run_captured(
    function: Callable[..., Value], rows: Rows | None, memory: int | None, **names: Value
) -> tuple[list[Value], list[Value]] | None:
    """Run one of the functions above as one operation of the program that is being compiled.

    Return the last carry and the results of the steps; None if nothing is compiled, or if Python has to run the loop.
    """
    run, loop = control.loops(), loop_of(function)
    found = run.of_functions(loop, names, rows, memory) if isinstance(run, Runner) and loop is not None else None
    return None if found is None else (found["carry"], found["rows"])


def performed_once(f: Callable[..., Value], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """Run a whole function as one operation of the program that is being compiled, and return its result.

    Both sides of its branches are part of the operation. Raises `NotCaptured` if a region cannot express the function.
    """
    results = Rows(1)

    def step(i: int, leaves: list[Value]) -> list[Value]:
        put(results, i, f(*args, **kwargs))
        return leaves

    found = run_captured(repeated, results, None, step=step, carry=[], order=range(1))
    if found is None:
        raise NotCaptured("something that a region cannot express")
    return in_tree(results.tree, [row[0] for row in found[1]])


@runtime_checkable
class Runner(Protocol):
    """The handler that runs the loops of a program that is being compiled."""

    def of_functions(
        self, loop: control.Loop, names: Mapping[str, Value], rows: Rows | None, memory: int | None
    ) -> dict[str, Value] | None:
        """Run a loop of `effgrad.loop`."""


def put(rows: Rows, i: int, value: Value) -> None:
    """Store the result of a step as a row; the rule below does it, during capture only."""
    raise NotImplementedError


def leaves_of(tree: Value, value: Value) -> list[Value]:
    """The leaves of a value whose structure must be `tree`."""
    leaves: list[Value] = tree.flatten_up_to(value)
    return leaves


def in_tree(tree: Value, leaves: list[Value]) -> Value:
    """Put leaves into a structure."""
    return tree.unflatten(leaves)


@rule(run_captured)
def _run_captured(
    c: Evaluator, function: Callable[..., Value], rows: Rows | None, memory: int | None, **names: Value
) -> tuple[list[Value], list[View]]:
    return c.inline(function, (), names), [] if rows is None else list(rows.views)


@rule(Rows)
def _rows(c: Evaluator, count: int) -> Rows:
    return Rows(count)


@rule(flat)
def _flat(c: Evaluator, value: Value) -> tuple[list[Value], Value]:
    return optree.tree_flatten(value, is_leaf=lambda x: isinstance(x, Complex))


@rule(common_length)
def _common_length(c: Evaluator, rows: Sequence[Value], length: int | None) -> int:
    return one_length({c.lazy(row).shape[0] for row in rows}, length)  # type: ignore[misc]


@rule(put)
def _put(c: Evaluator, rows: Rows, i: Value, value: Value) -> None:
    leaves, rows.tree = _flat(c, value)
    lazies = [c.lazy(leaf) for leaf in leaves]
    if rows.capture is not c:
        rows.capture = c
        rows.views = [whole_view(c.buffer("row", [rows.count, *x.shape], x.dtype)) for x in lazies]
    for view, lazy in zip(rows.views, lazies, strict=True):
        c.assign(View(view.buffer, [affine(i), *view.base[1:]], view.axes[1:]), lazy)


@rule(leaves_of)
def _leaves_of(c: Evaluator, tree: Value, value: Value) -> list[Value]:
    leaves: list[Value]
    leaves, found = _flat(c, value)
    if found != tree:
        raise NotCaptured("a carry that changes its structure")
    return leaves


@rule(in_tree)
def _in_tree(c: Evaluator, tree: Value, leaves: list[Value]) -> Value:
    return tree.unflatten(leaves)
