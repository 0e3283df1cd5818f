"""The programs of a compiled function for arguments of one type, one program for each path that was taken."""

import logging
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.errors import StagingWarning, warn
from effgrad.stage.attempts import depends_on_values
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GuardFailed, ancestors, answer
from effgrad.vocabulary import Value

# This logger says, at level INFO, what is staged, for which arguments, and how long it took.
LOGGER = logging.getLogger("effgrad.stage")

# After this many paths for arguments of one type, a function runs as plain Python.
MOST_PATHS = 64
# So it does after as many new paths, one after the other, that the arguments which they are staged for do not take.
MOST_MISSED = 3
# A report lists at most this many lines under each title.
MOST_LISTED = 12

Program = Callable[..., list[Any]]


def _described(leaves: Sequence[Value]) -> str:
    """Describe the types of a program's arguments, for the log."""
    kinds = [
        f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, np.ndarray) else type(leaf).__name__ for leaf in leaves
    ]
    return ", ".join(kinds[:6]) + (f" and {len(kinds) - 6} more" if len(kinds) > 6 else "")


class Path:
    """One path: its program, the answers of its guards, and the function that builds the result from the outputs."""

    __slots__ = ("answers", "differentiated", "graph", "looping", "program", "result", "seconds", "unrolled")

    def __init__(self, graph: Graph, program: Program, seconds: float, unrolled: Sequence[str] = ()) -> None:
        self.graph, self.program, self.seconds, self.differentiated = graph, program, seconds, graph.differentiated
        # The line of each loop that Python has unrolled, and the reason.
        self.unrolled = unrolled
        # The function that builds the result from the outputs.
        self.result = operator.itemgetter(0) if graph.tree.is_leaf() else graph.tree.unflatten
        if graph.arrangement:
            self.result = lambda outputs: graph.tree.unflatten(graph.arrangement.seen(outputs))
        self.looping = any(node.primitive.yields is not None for node in graph)
        self.answers = tuple(answer(guard.expected) for guard in graph.guards)


def titled_lines(title: str, lines: Sequence[str]) -> list[str]:
    """Return a title and the lines under it; nothing if there are no lines."""
    shown = [*lines[:MOST_LISTED], *["..."] * (len(lines) > MOST_LISTED)]
    return [f"{title}:", *(f"  {line}" for line in shown)] if lines else []


class Paths:
    """The known paths for arguments of one type, found by the answers of the guards that lead to them."""

    def __init__(self, name: str, integers: frozenset[int]) -> None:
        # The positions, among the leaves, of the integers that are inputs.
        self.name, self.integers = name, integers
        self.known: dict[tuple[Value, ...], Path] = {}
        self.all: list[Path] = []
        self.latest: Path | None = None
        # How many paths were staged, and how many of the last were not taken by their own arguments.
        self.number = self.missed = 0
        # Whether a warning has said that the function runs as plain Python.
        self.warned = False
        # Whether a derivative has a memory limit of its own, and whether a program has exceeded one.
        self.limited = self.over_limit = False

    def add(self, path: Path, leaves: Sequence[Value]) -> None:
        """Store the path that these arguments take."""
        self.number += 1
        LOGGER.info(
            "%s: staged in %.2f s for %s: %d operations, %d guards, path %d",
            self.name, path.seconds, _described(leaves), len(path.graph.nodes), len(path.answers), self.number,
        )  # fmt: skip
        self.latest = path
        self.all.append(path)
        for length in range(len(path.answers) + 1):
            self.known.setdefault(path.answers[:length], path)

    def forget(self) -> None:
        """Drop all paths, before one program for all of them is added."""
        self.known.clear()
        self.all.clear()

    def run(self, leaves: Sequence[Value]) -> tuple[Path, list[Any]] | None:
        """Return the path that these leaves take, and its outputs; None if the path is not known.

        An operation that raises an error ends a path as a guard does: the program may catch the error.
        """
        path = self.latest
        tried: set[Path] = set()  # not `set[Path]()`, which takes a quarter of a microsecond
        while path is not None:
            try:
                outputs = path.program(*leaves)
            except GuardFailed as failed:
                guarded = failed.position >= 0
                before = path.answers[: failed.position]
                following = self.known.get((*before, answer(failed.value))) if guarded else None
            except Exception as error:
                if path.looping or not depends_on_values(error):  # a loop's errors are not those of its steps
                    raise
                guarded, following = False, None
            else:
                self.latest, self.missed = path, 0
                return path, outputs
            tried.add(path)
            if following in tried or not guarded:
                # No answers lead to the path of an error, or of a result of another shape: try all others.
                following = next((other for other in reversed(self.all) if other not in tried), None)
            path = following
        return None

    @property
    def full(self) -> bool:
        """Whether the function has the largest number of paths that are kept, or no path that is taken again."""
        return self.number >= MOST_PATHS or self.missed >= MOST_MISSED

    def exhausted(self, names: Callable[[], Sequence[str]]) -> bool:
        """Whether there are too many paths; the first time, warn, and name the inputs that the paths depend on."""
        if not self.full:
            return False
        if not self.warned:
            depends = "depends too often on" if self.number == MOST_PATHS else "depends on the last digits of"
            taken = f"has taken {self.number} different paths for arguments of one type, and now runs as plain Python"
            asked = f"its control flow {depends} {self._asked(names())} (np.where selects without a path)"
            warn(f"{self.name} {taken}: {asked}", StagingWarning)
            self.warned = True
        return True

    def _asked(self, names: Sequence[str]) -> str:
        """Describe the inputs that decide the first guard at which the paths part."""
        paths = list(set(self.known.values()))
        guards = zip(*(path.graph.guards for path in paths), strict=False)
        parting = next((g for g in guards if len({answer(guard.expected) for guard in g}) > 1), None)
        if parting is None:
            return "its inputs"
        inputs = paths[0].graph.inputs
        found = [names[i] for i, node in enumerate(inputs) if node in ancestors(parting[0])]
        return f"its argument{'s' * (len(found) > 1)} {', '.join(found)}"
