"""The rewriting of `match`: the subject is read, and the patterns `True` and `False` know traced truth values."""

import ast

from effgrad.program.stores import deleted
from effgrad.program.syntax import Reader, placed, rewrites, statements, tested


@rewrites(ast.Match)
def matched(reader: Reader, node: ast.Match) -> list[ast.stmt]:
    singletons = Singletons(reader, node)
    node.subject = reader.operation("read", node.subject, reader.visit(node.subject))
    for case in node.cases:
        case.pattern = singletons.visit(case.pattern)
        case.guard = case.guard and tested(reader, case.guard)
        case.body = statements(reader, case.body)
    return [*singletons.bound, node, *(deleted(name, node) for name in singletons.names)]


class Singletons(ast.NodeTransformer):
    """Replaces the patterns `True` and `False` by classes, to which names are bound before the `match` statement."""

    def __init__(self, reader: Reader, at: ast.Match) -> None:
        self.reader, self.at = reader, at
        self.names: list[str] = []
        self.bound: list[ast.stmt] = []

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> ast.pattern:
        if node.value is None:
            return node
        self.names.append(name := self.reader.temporary())
        binding = ast.Assign([ast.Name(name, ast.Store())], self.reader.named(f"{node.value}Pattern"))
        self.bound.append(placed(binding, self.at.subject))
        return placed(ast.MatchClass(ast.Name(name, ast.Load()), [], [], []), node)
