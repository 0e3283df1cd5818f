"""`sum` and `list` of generators as loops: the running handlers are asked how to run them, as for loops of programs."""

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Iterable
from types import CodeType, GeneratorType
from typing import TypeVar

from effgrad.program.control import Loop, loops, tree_of
from effgrad.vocabulary import Value

T = TypeVar("T")


def sum_of_a_generator(items: Iterable[T], result: Value) -> Value:
    """`sum`."""
    for item in items:
        result = result + item
    return result


def list_of_a_generator(items: Iterable[T]) -> list[T]:
    """`list`."""
    found = []
    for item in items:
        found.append(item)
    released(found)
    return taken(found)


def released(items: list[T]) -> None:
    """From here on the caller may change the items: a capture takes a call like this for a change of any of them."""


def taken(items: list[T]) -> list[T]:
    """The items of a list that is no longer needed; in a capture also those of an array that stands for it."""
    return items


@functools.lru_cache(maxsize=256)
def loop_of(function: Callable[..., Value], code: CodeType | None = None) -> Loop | None:
    """The loop in one of these functions, one for each `code` of a generator; None if its source is not available."""
    tree = tree_of(function.__code__)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)] if tree else []
    lines = linecache.getlines(function.__code__.co_filename)
    return Loop(lines, function.__code__.co_filename, found[0], frozenset(("found",))) if found else None


def is_new(items: Value) -> bool:
    """Whether a value is a generator that has not begun."""
    return type(items) is GeneratorType and inspect.getgeneratorstate(items) == inspect.GEN_CREATED


def by_handlers(function: Callable[..., Value], items: Value, **names: Value) -> dict[str, Value] | None:
    """The names after the loop of one of these functions over a generator; None if Python has to run it."""
    if not is_new(items) or (run := loops()) is None or (loop := loop_of(function, items.gi_code)) is None:
        return None
    return run(loop, {"items": items, **names}, function.__globals__)


def sum_of(items: Value, start: Value) -> Value:
    """The sum of a generator's items, by a handler; None if Python has to add them up."""
    found = by_handlers(sum_of_a_generator, items, result=start)
    return None if not found else found["result"]


def items_of(items: Value) -> Value:
    """The items of a generator, if a handler lists them; any other value is returned unchanged."""
    found = by_handlers(list_of_a_generator, items, found=[])
    return items if not found else [found["found"][k] for k in range(len(found["found"]))]
