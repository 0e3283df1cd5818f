"""The rewriting of `match`: the subject is read, and the patterns `True` and `False` know traced truth values.

Python reads the attributes of a pattern of a class by compiled code, which calls properties as they are written. A
statement with such patterns becomes a chain of `if`, whose tests read the attributes by an operation.
"""

import ast

from effgrad.program.matches import Parts, Unwritten, chained, parts_of
from effgrad.program.stores import deleted
from effgrad.program.syntax import Reader, placed, rewrites, statements, tested


@rewrites(ast.Match)
def matched(reader: Reader, node: ast.Match) -> list[ast.stmt]:
    if any(isinstance(part, ast.MatchClass) and (part.patterns or part.kwd_attrs) for part in ast.walk(node)):
        try:
            return statements(reader, OfClasses(reader, node).chain())
        except Unwritten:
            pass
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


class OfClasses:
    """A `match` statement with patterns of classes as a chain of `if`."""

    def __init__(self, reader: Reader, node: ast.Match) -> None:
        self.reader, self.node = reader, node
        self.names: list[str] = []

    def chain(self) -> list[ast.stmt]:
        node, tupled = self.node, isinstance(self.node.subject, ast.Tuple)
        values = node.subject.elts if isinstance(node.subject, ast.Tuple) else [node.subject]
        if any(isinstance(value, ast.Starred) for value in values):
            raise Unwritten
        subjects: list[ast.expr] = [ast.Name(self.name(), ast.Load()) for _ in values]
        # Nothing that a body does may show the names, such as `locals()`: each body begins by deleting them.
        otherwise = ast.match_case(ast.MatchAs(), None, [ast.Pass()])
        forgets = [placed(ast.Delete([]), node.subject) for _ in (*node.cases, otherwise)]
        cases = [
            ast.match_case(case.pattern, case.guard, [forget, *case.body])
            for case, forget in zip((*node.cases, otherwise), forgets, strict=True)
        ]
        chain = chained(cases, subjects, not tupled, self.of_class)
        for forget in forgets:
            forget.targets = [ast.Name(name, ast.Del()) for name in self.names]
        given = [*values, *(ast.Constant(None) for _ in self.names[len(values) :])]
        bound = [ast.Assign([ast.Name(n, ast.Store())], value) for n, value in zip(self.names, given, strict=True)]
        placed_at = [ast.fix_missing_locations(placed(s, node.subject)) for s in bound]
        return [*placed_at, *map(ast.fix_missing_locations, chain)]

    def name(self) -> str:
        self.names.append(self.reader.temporary())
        return self.names[-1]

    def of_class(self, pattern: ast.MatchClass, subject: ast.expr) -> Parts:
        """The test that a value is of a class and has the attributes of a pattern, and the tests of the attributes."""
        keys = [ast.Constant(key) for key in (*range(len(pattern.patterns)), *pattern.kwd_attrs)]
        name, done = self.name(), {"done": True}
        read = self.reader.operation("class_parts", pattern, subject, pattern.cls, *keys)
        vars(read).update(done)
        bind = ast.NamedExpr(ast.Name(name, ast.Store()), read)
        test = placed(ast.Compare(bind, [ast.IsNot()], [ast.Constant(None)]), pattern)
        tests: list[ast.expr] = [test]
        names: dict[str, ast.expr] = {}
        for place, inner in enumerate((*pattern.patterns, *pattern.kwd_patterns)):
            part = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(place), ast.Load(), **done)
            more, bound = parts_of(inner, placed(part, inner), self.of_class)
            tests, names = [*tests, *more], names | bound
        return tests, names
