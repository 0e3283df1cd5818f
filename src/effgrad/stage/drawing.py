"""A graph as an SVG drawing, with a box for each operation and a row for each distance from the inputs."""

from effgrad.api.boxes import Box, draw
from effgrad.stage.nodes import GUARD, Node, Recorded

_FILL = {"input": "#dbeafe", "guard": "#fde68a", "output": "#dcfce7"}


def svg(graph: Recorded) -> str:
    """Return the drawing. Each operation stands above those that read it; outputs are green, and guards yellow."""
    nodes = [*graph.inputs, *graph.nodes]
    place = {node: i for i, node in enumerate(nodes)}
    outputs = {id(output) for output in graph.outputs}
    return draw([
        Box(_lines(node), _FILL.get("output" if id(node) in outputs else node.primitive.name, "#f1f5f9"),
            [place[i] for i in node.inputs])
        for node in nodes
    ])  # fmt: skip


def _lines(node: Node) -> list[str]:
    name = f"{node.primitive.name} {node.expected!r}" if node.primitive is GUARD else node.primitive.name
    return [name, f"{node.dtype} {'×'.join(map(str, node.shape)) or 'scalar'}"]
