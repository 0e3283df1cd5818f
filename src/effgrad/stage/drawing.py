"""A graph as an SVG drawing: a box for each operation, a row for each distance from the inputs."""

from collections import defaultdict
from html import escape

from effgrad.stage.graph import GUARD, Graph, Node

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 132, 34, 16, 34
_FILL = {"input": "#dbeafe", "guard": "#fde68a", "output": "#dcfce7"}


def svg(graph: Graph) -> str:
    """The drawing; operations that reach the output are above it, results of the program are green, guards yellow."""
    nodes = [*graph.inputs, *graph.nodes]
    row: dict[Node, int] = {}
    rows: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        row[node] = 1 + max((row[i] for i in node.inputs), default=-1)
        rows[row[node]].append(node)
    widest = max((len(r) for r in rows.values()), default=1)
    width = widest * (_WIDTH + _GAP_X) + _GAP_X
    place: dict[Node, tuple[float, float]] = {}
    for number, members in rows.items():
        start = (width - len(members) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for i, node in enumerate(members):
            place[node] = start + i * (_WIDTH + _GAP_X), _GAP_Y + number * (_HEIGHT + _GAP_Y)
    edges = [_edge(place[i], place[node]) for node in nodes for i in node.inputs]
    boxes = [_box(node, *place[node], output=any(o is node for o in graph.outputs)) for node in nodes]
    height = len(rows) * (_HEIGHT + _GAP_Y) + _GAP_Y
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11" text-anchor="middle">', *edges, *boxes, "</svg>",
    ])  # fmt: skip


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y, u, v = start[0] + _WIDTH / 2, start[1] + _HEIGHT, end[0] + _WIDTH / 2, end[1]
    return f'<path d="M{x},{y} C{x},{y + _GAP_Y} {u},{v - _GAP_Y} {u},{v}" fill="none" stroke="#94a3b8"/>'


def _box(node: Node, x: float, y: float, output: bool) -> str:
    fill = _FILL.get("output" if output else node.primitive.name, "#f1f5f9")
    name = f"{node.primitive.name} {node.expected!r}"[:22] if node.primitive is GUARD else node.primitive.name
    shape = "×".join(map(str, node.shape)) or "scalar"
    return (
        f'<g><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{fill}" stroke="#64748b"/>'
        f'<text x="{x + _WIDTH / 2}" y="{y + 14}" font-weight="bold">{escape(name)}</text>'
        f'<text x="{x + _WIDTH / 2}" y="{y + 27}" fill="#475569">{node.dtype} {shape}</text></g>'
    )
