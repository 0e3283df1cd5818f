"""Switches of the right-hand side of a differential equation: its jumps and kinks along a solution.

Usually the derivative of a solution is that of its smooth pieces. But if the time of a jump moves with the parameters
or the state, the state has a kink there and the derivative has a jump (the saltation of Filippov, Differential
Equations with Discontinuous Righthand Sides, 1988). The second derivative has one if a kink moves. Steps become short
where the right-hand side is not smooth, so only short steps are examined. Each is halved repeatedly. If the right-hand
side does not become linear in it, it is not smooth there. The comparisons in the staged right-hand side that change
there decide whether the switch moves.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from effgrad.arrays.reach import np
from effgrad.errors import NoRule
from effgrad.primitives.kinks import derivative_order
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GUARD, Node
from effgrad.toolbox.frozen import number
from effgrad.toolbox.integrators import Trajectory
from effgrad.toolbox.slopes import Slope
from effgrad.vocabulary import Value

# A step is short if it is less than this part of the longest step. HALVINGS halvings show whether a function is smooth
# in it, and mostly FEW suffice.
SHORT, HALVINGS, FEW = 0.1, 12, 4
# A kink keeps at least these parts of its curvature per length after all halvings, and after FEW; a smooth function
# keeps less. JUMPED is the size of a jump, relative to the largest slope.
KINKED, BENT, JUMPED = 0.02, 0.2, 1e-6
# Functions that are not smooth where their two arguments are equal, or their only argument is zero.
KINKS = frozenset(("maximum", "minimum", "fmax", "fmin", "absolute", "fabs"))


class Point(NamedTuple):
    """A time and the state there."""

    t: float
    y: Value


def refuse_moving_switches(slope: Slope, path: Trajectory, name: str) -> None:
    """Raise `NoRule` if the requested derivative has jumps, which the steps of a path do not account for."""
    order = derivative_order(path.end)
    if order > 2 and _has_moving_switches(slope, path):
        raise NoRule(
            f"{name} has third derivatives for right-hand sides without kinks and branches that depend on the state or "
            "on what is differentiated: a derivative of this one may jump where its steps do not show it"
        )
    second = order > 1
    steps = [(p, q) for p, q in itertools.pairwise(_points(path)) if p.t != q.t]
    longest = max([abs(stop.t - start.t) for start, stop in steps], default=0.0)
    size = max([_largest(stop.y - start.y) / abs(stop.t - start.t) for start, stop in steps], default=0.0)
    for start, stop in [(p, q) for p, q in steps if abs(q.t - p.t) < SHORT * longest]:
        jumps, low, high = _narrowed(slope, start, stop, size)
        if jumps is None or (not jumps and not second) or not _moves(slope, low, high):
            continue
        what, rule = ("jumps", "a derivative rule") if jumps else ("has a kink", "a second derivative")
        raise NoRule(
            f"{name} has {rule} for right-hand sides whose switches do not move with what is differentiated; this one "
            f"{what} near t = {low.t:.6g}: stop there by an event, and start again"
        )


def _points(path: Trajectory) -> list[Point]:
    states = [path.start, *(step.end for step in path.steps)]
    return [Point(float(t), np.asarray(number(y), float)) for t, y in zip(path.grid.times, states, strict=True)]


def _narrowed(slope: Slope, low: Point, high: Point, size: float) -> tuple[bool | None, Point, Point]:
    """Return whether the slope jumps (True) or has a kink (False) between two points, or neither (None), and where.

    The place is a pair of closer points.
    """
    f_low, f_high = slope(*low), slope(*high)
    bends: list[float] = []
    for _ in range(HALVINGS):
        middle = Point((low.t + high.t) / 2, (low.y + high.y) / 2)
        quarters = [Point((p.t + middle.t) / 2, (p.y + middle.y) / 2) for p in (low, high)]
        f_middle, (f_left, f_right) = slope(*middle), [slope(*p) for p in quarters]
        left, right = (_bend(a, b, f_middle) for a, b in ((f_low, f_left), (f_high, f_right)))
        bend = max(_bend(f_low, f_middle, f_high), left, right)
        if bend <= 1e3 * np.finfo(float).eps * size:
            if len(bends) < FEW:
                return None, low, high
            break  # the switch is at one of the points, so the bends found before decide
        bends.append(bend / abs(high.t - low.t))
        if len(bends) == FEW and bends[-1] < BENT * bends[0]:
            return None, low, high
        if left >= right:
            high, f_high = middle, f_middle
        else:
            low, f_low = middle, f_middle
    if _largest(f_high - f_low) > JUMPED * size:
        return True, low, high
    return (False if max(bends[-3:]) > KINKED * max(bends[:3]) else None), low, high


def _bend(first: Value, middle: Value, last: Value) -> float:
    return _largest(first - 2 * middle + last)


def _largest(values: Value) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _moving(closed: Sequence[Value], graph: Graph) -> set[Node]:
    """Return the values of a staged right-hand side that depend on the state, or on closed-over values."""
    moving = set(graph.inputs) - {graph.inputs[len(closed)]}
    for node in graph:
        if moving.intersection(node.inputs):
            moving.add(node)
    return moving


def _has_moving_switches(slope: Slope, path: Trajectory) -> bool:
    staged = slope.staged(*_points(path)[0])
    return staged is None or any(node in _moving(*staged) for node, _ in _decisions(staged[1]))


def _moves(slope: Slope, low: Point, high: Point) -> bool:
    """Whether the switch between two points depends on more than the time: on the state, or on closed-over values."""
    staged = slope.staged(*low)
    return staged is None or switch_moves(*staged, low, high) is True


def switch_moves(closed: Sequence[Value], graph: Graph, low: Sequence[Value], high: Sequence[Value]) -> bool | None:
    """Whether a decision of a staged function that differs between two points depends on more than the first argument.

    The result is None if no decision differs. `low` and `high` are the arguments at the two points.
    """
    moving = _moving(closed, graph)
    decisions = list(_decisions(graph))
    unguarded = [node for node in graph if node.primitive is not GUARD]
    sides = Graph(graph.inputs, unguarded, [side for _, pair in decisions for side in pair])
    values = [number(value) for value in closed]
    below, above = (sides(*values, *point) for point in (low, high))
    changed = []
    for (node, _), *pairs in zip(decisions, _pairs(below), _pairs(above), strict=True):
        one, other = (side if than is None else np.greater(side, than) for side, than in pairs)
        if not np.array_equal(one, other):
            changed.append(node in moving)
    return any(changed) if changed else None


def _pairs(values: list[Value]) -> Iterator[tuple[Value, Value]]:
    return zip(values[::2], values[1::2], strict=True)


def _decisions(graph: Graph) -> Iterator[tuple[Node, tuple[Value, Value]]]:
    """Yield the nodes that change in steps or have a kink, each with the values that decide on which side it is.

    The decision is the first value if the second is None, and otherwise whether the first is larger than the second.
    """
    for node in graph:
        if node.primitive is GUARD:
            yield node, (node.args[0], None)
        elif node.primitive.kind == "constant":
            yield node, (node, None)
        elif node.primitive.name in KINKS:
            yield node, (node.args[0], node.args[1] if len(node.args) > 1 else 0.0)
