"""A drawing (SVG) of boxes with lines of text and edges between them, one row for each distance from the inputs."""

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _LINE, _GAP_X, _GAP_Y, _LETTERS = 132, 13, 16, 34, 22


class Box(NamedTuple):
    """A box: its lines, the first in bold, its colour, and the indices of the boxes that it is computed from."""

    lines: Sequence[str]
    fill: str
    inputs: Sequence[int] = ()
    # The indices of the boxes of another activation whose values this one's value stands for.
    aliases: Sequence[int] = ()


def draw(boxes: Sequence[Box]) -> str:
    """Return the drawing of boxes; in the list, each box comes after its inputs and aliases."""
    rows: dict[int, list[int]] = defaultdict(list)
    row: list[int] = []
    for place, box in enumerate(boxes):
        row.append(1 + max((row[i] for i in (*box.inputs, *box.aliases)), default=-1))
        rows[row[place]].append(place)
    width = max((len(r) for r in rows.values()), default=1) * (_WIDTH + _GAP_X) + _GAP_X
    height = max((len(box.lines) for box in boxes), default=0) * _LINE + 8
    corners: dict[int, tuple[float, float]] = {}
    for number, members in rows.items():
        start = (width - len(members) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for i, place in enumerate(members):
            corners[place] = start + i * (_WIDTH + _GAP_X), _GAP_Y + number * (height + _GAP_Y)
    edges = [
        _edge(corners[i], corners[place], height, dashed)
        for place, box in enumerate(boxes)
        for sources, dashed in ((box.inputs, False), (box.aliases, True)) for i in sources
    ]  # fmt: skip
    whole = len(rows) * (height + _GAP_Y) + _GAP_Y
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" height="{whole}" '
        'font-family="sans-serif" font-size="11" text-anchor="middle">',
        *edges, *[_drawn(box, *corners[place], height) for place, box in enumerate(boxes)], "</svg>",
    ])  # fmt: skip


def _edge(start: tuple[float, float], end: tuple[float, float], height: int, dashed: bool) -> str:
    x, y, u, v = start[0] + _WIDTH / 2, start[1] + height, end[0] + _WIDTH / 2, end[1]
    style = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<path d="M{x},{y} C{x},{y + _GAP_Y} {u},{v - _GAP_Y} {u},{v}" fill="none" stroke="#94a3b8"{style}/>'


def _drawn(box: Box, x: float, y: float, height: int) -> str:
    texts = [
        f'<text x="{x + _WIDTH / 2}" y="{y + 14 + _LINE * i}" {style}>{escape(line[:_LETTERS])}</text>'
        for i, line in enumerate(box.lines)
        for style in ('font-weight="bold"' if i == 0 else 'fill="#475569"',)
    ]
    rectangle = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{height}" rx="6" fill="{box.fill}" stroke="#64748b"/>'
    return f"<g>{rectangle}{''.join(texts)}</g>"
