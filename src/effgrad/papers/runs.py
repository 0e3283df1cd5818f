"""Runs of many generated programs, in one process or in several, whose results are added up."""

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
    """The results of a run of programs. Every field is a number, counter or list, so that two results can be added."""

    programs: int = 0
    failures: list[Value] = field(default_factory=list)

    def add(self, other: Self) -> None:
        for name, results in vars(other).items():
            setattr(self, name, getattr(self, name) + results)


def each_chunk(work: Callable[..., Results], programs: int, jobs: int, *given: Value) -> Iterator[Value]:
    """Yield the results of `work(first, last, *given)` for chunks of the numbers up to `programs`, in order.

    With more than one job the chunks run in that many processes.
    """
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
