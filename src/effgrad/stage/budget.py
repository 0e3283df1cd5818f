"""The memory limit of a compiled program, checked before it runs: the program's memory is known by then."""

from collections.abc import Sequence

from effgrad.errors import MemoryLimit
from effgrad.fast.spilling import LOGGER
from effgrad.stage.graph import Graph
from effgrad.stage.loop.pairing import reverses
from effgrad.vocabulary import Function


def check_limit(graph: Graph, program: Function, limits: Sequence[int], seconds: float) -> None:
    """Raise `MemoryLimit` if a program takes more memory than its limit; otherwise log what keeping to it costs."""
    limit = min([*limits, *([] if graph.limit is None else [graph.limit])], default=None)
    if limit is None:
        return
    plan = getattr(program, "plan", None)  # programs of the "numpy" backend have no plan
    values = sum(node.size * 8 for node in graph) if plan is None else plan.arena
    loops = reverses(graph)
    needed = values + sum(loop.saved for loop in loops)
    if needed > limit:
        raise MemoryLimit(
            f"the compiled program takes {needed / 1e6:.3g} MB, over the limit of {limit / 1e6:.3g} MB: give memory at "
            f"least {needed / 1e6:.3g} MB"
        )
    LOGGER.info(
        "a compiled program of %d operations within %.3g MB: %.3g MB for values, %.3g MB saved in loops, each step of "
        "which is evaluated at most %d times; compiled in %.3g s",
        len(graph), limit / 1e6, values / 1e6, (needed - values) / 1e6,
        max((loop.evaluations for loop in loops), default=1), seconds,
    )  # fmt: skip
