"""Functions of Python that make iterators, as generator functions of which capture reads the source."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from effgrad.vocabulary import Value

T = TypeVar("T")


def numbered(items: Iterable[T], number: int) -> Iterator[tuple[int, T]]:
    """`enumerate`."""
    for item in items:
        yield number, item
        number += 1


def mapped(f: Callable[[T], Value], items: Iterable[T]) -> Iterator[Value]:
    """`map` of one iterable."""
    for item in items:
        yield f(item)


def filtered(f: Callable[[T], Value], items: Iterable[T]) -> Iterator[T]:
    """`filter`."""
    for item in items:
        if f(item):
            yield item


def beside(items: Iterable[T], others: Sequence[Value], count: int) -> Iterator[tuple[T, Value]]:
    """`zip(items, others)`, where `others` has `count` items: it asks for one of `items` before it sees the end."""
    k = 0
    for item in items:
        if k >= count:
            return
        yield item, at(others, k)
        k += 1


def after(others: Sequence[Value], items: Iterable[T], count: int) -> Iterator[tuple[Value, T]]:
    """`zip(others, items)`, where `others` has `count` items."""
    if count <= 0:
        return
    k = 0
    for item in items:
        yield at(others, k), item
        k += 1
        if k >= count:
            return


def first(items: Iterable[T], count: int) -> Iterator[T]:
    """`itertools.islice(items, count)`."""
    if count <= 0:
        return
    k = 0
    for item in items:
        yield item
        k += 1
        if k >= count:
            return


def taken_while(f: Callable[[T], Value], items: Iterable[T]) -> Iterator[T]:
    """`itertools.takewhile`."""
    for item in items:
        if not f(item):
            return
        yield item


def chained(first: Iterable[T], second: Iterable[T]) -> Iterator[T]:
    """`itertools.chain` of two iterables."""
    for item in first:
        yield item
    for item in second:
        yield item


def counted(number: float, step: float) -> Iterator[float]:
    """`itertools.count`."""
    while True:
        yield number
        number += step


def elements(array: Value) -> Iterator[tuple[tuple[int, ...], Value]]:
    """`np.ndenumerate`."""
    for point in np.ndindex(np.shape(array)):
        yield point, array[point]


def some(items: Iterable[Value]) -> bool:
    """`any`."""
    for item in items:
        if item:
            return True
    return False


def every(items: Iterable[Value]) -> bool:
    """`all`."""
    for item in items:
        if not item:
            return False
    return True


def at(items: Sequence[T], k: int) -> T:
    """An item; in a capture also one of what has an item for each number."""
    return items[k]
