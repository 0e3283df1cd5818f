"""Runs of many generated programs, in one process or in several, and the sums of their results."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from typing import Self

from effgrad.papers.syntax import Value

CHUNK = 50


@dataclass
class Results:
    """The results of a run of programs: numbers, counters and lists, which are added."""

    programs: int = 0
    failures: list[Value] = field(default_factory=list)

    def add(self, other: Self) -> None:
        for name, results in vars(other).items():
            setattr(self, name, getattr(self, name) + results)


def each_chunk(work: Callable[..., Results], programs: int, jobs: int, *given: Value) -> Iterator[Value]:
    """The results of `work(first, last, *given)` for every few of so many programs, in their order."""
    firsts = range(0, programs, CHUNK)
    lasts = [min(first + CHUNK, programs) for first in firsts]
    arguments = firsts, lasts, *map(repeat, given)
    if jobs <= 1:
        yield from map(work, *arguments)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"))
    try:
        yield from pool.map(work, *arguments)
    finally:
        pool.shutdown(cancel_futures=True)
