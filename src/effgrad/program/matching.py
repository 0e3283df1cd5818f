"""The rewriting of `match`: the subject is read, and the patterns `True` and `False` know traced truth values.

Python reads the attributes of a pattern of a class by compiled code, which calls properties as they are written, and
the items of a sequence or a mapping likewise. A statement with such patterns becomes a chain of `if`, whose tests read
the parts by operations.
"""

import ast

from effgrad.program.matches import Parts, Unwritten, chained, parts_of
from effgrad.program.stores import deleted
from effgrad.program.syntax import Reader, placed, rewrites, statements, tested


@rewrites(ast.Match)
def matched(reader: Reader, node: ast.Match) -> list[ast.stmt]:
    single = not isinstance(node.subject, ast.Tuple)
    for tupled in (True, False)[single:] if any(map(_has_parts, ast.walk(node))) else ():
        try:
            return statements(reader, OfParts(reader, node).chain(tupled))
        except Unwritten:
            pass
    singletons = Singletons(reader, node)
    node.subject = reader.operation("read", node.subject, reader.visit(node.subject))
    for case in node.cases:
        case.pattern = singletons.visit(case.pattern)
        case.guard = case.guard and tested(reader, case.guard)
        case.body = statements(reader, case.body)
    return [*singletons.bound, node, *(deleted(name, node) for name in singletons.names)]


def _has_parts(part: ast.AST) -> bool:
    """Whether a pattern looks at parts of a value."""
    if isinstance(part, ast.MatchClass):
        return bool(part.patterns or part.kwd_attrs)
    return isinstance(part, ast.MatchSequence | ast.MatchMapping)


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


class OfParts:
    """A `match` statement with patterns of classes, sequences or mappings as a chain of `if`."""

    def __init__(self, reader: Reader, node: ast.Match) -> None:
        self.reader, self.node = reader, node
        self.names: list[str] = []

    def chain(self, tupled: bool) -> list[ast.stmt]:
        """Return the statements; the items of a subject that is a tuple are matched one by one if it is `tupled`."""
        node = self.node
        values = node.subject.elts if tupled and isinstance(node.subject, ast.Tuple) else [node.subject]
        if tupled and any(isinstance(value, ast.Starred) for value in values):
            raise Unwritten
        subjects: list[ast.expr] = [ast.Name(self.name(), ast.Load()) for _ in values]
        # Nothing that a body does may show the names, such as `locals()`: they are deleted on the line of its pattern.
        otherwise = ast.match_case(ast.MatchAs(), None, [ast.Pass()])
        forgets = [placed(ast.Delete([]), case.pattern) for case in (*node.cases, node.cases[-1])]
        cases = [
            ast.match_case(case.pattern, case.guard, [forget, *case.body])
            for case, forget in zip((*node.cases, otherwise), forgets, strict=True)
        ]
        chain = chained(cases, subjects, not tupled, self.of_part)
        for forget in forgets:
            forget.targets = [ast.Name(name, ast.Del()) for name in self.names]
        given = [*values, *(ast.Constant(None) for _ in self.names[len(values) :])]
        bound = [ast.Assign([ast.Name(n, ast.Store())], value) for n, value in zip(self.names, given, strict=True)]
        placed_at = [ast.fix_missing_locations(placed(s, node.subject)) for s in bound]
        return [*placed_at, *map(ast.fix_missing_locations, chain)]

    def name(self) -> str:
        self.names.append(self.reader.temporary())
        return self.names[-1]

    def of_part(self, pattern: ast.pattern, subject: ast.expr) -> Parts:
        """The tests that a pattern means for a value, and the names that it binds."""
        if isinstance(pattern, ast.MatchClass):
            keys = [ast.Constant(key) for key in (*range(len(pattern.patterns)), *pattern.kwd_attrs)]
            read = self.operation("class_parts", pattern, subject, pattern.cls, *keys)
            return self.of_read(read, [*pattern.patterns, *pattern.kwd_patterns], pattern)
        if isinstance(pattern, ast.MatchMapping):
            rest = ast.Constant(pattern.rest is not None)
            read = self.operation("mapping_parts", pattern, subject, rest, *pattern.keys)
            named: list[ast.pattern] = [] if pattern.rest is None else [ast.MatchAs(None, pattern.rest)]
            return self.of_read(read, [*pattern.patterns, *(placed(p, pattern) for p in named)], pattern)
        if isinstance(pattern, ast.MatchSequence):
            return self.of_sequence(pattern, subject)
        raise Unwritten

    def of_sequence(self, pattern: ast.MatchSequence, subject: ast.expr) -> Parts:
        """The parts of a pattern of a sequence, whose items Python asks for one by one only beside `*_`."""
        inner = pattern.patterns
        star = next((k for k, p in enumerate(inner) if isinstance(p, ast.MatchStar)), None)
        count = ast.Constant(len(inner) - (star is not None))
        test = self.operation("is_sequence", pattern, subject, count, ast.Constant(star is not None))
        if all(map(_is_wildcard, inner)):
            return [test], {}
        if star is not None and _is_wildcard(inner[star]):
            found = [self.at(subject, p, k - len(inner) * (k > star)) for k, p in enumerate(inner) if k != star]
        else:
            after = -1 if star is None else len(inner) - star - 1
            before = len(inner) if star is None else star
            read = self.operation("items", pattern, subject, ast.Constant(before), ast.Constant(after))
            found = [self.of_read(read, [_unstarred(p) for p in inner], pattern)]
        return [test, *(t for tests, _ in found for t in tests)], {n: v for _, names in found for n, v in names.items()}

    def at(self, subject: ast.expr, pattern: ast.pattern, place: int) -> Parts:
        """The parts of a pattern of one item, which is read when it is its turn."""
        if _is_wildcard(pattern):
            return [], {}
        read = self.operation("item_at", pattern, subject, ast.Constant(place))
        return self.of_read(ast.Tuple([read], ast.Load()), [pattern], pattern)

    def of_read(self, read: ast.expr, inner: list[ast.pattern], at: ast.pattern) -> Parts:
        """The test that a read gives parts and not None, and the parts of the patterns for them."""
        name, done = self.name(), {"done": True}
        vars(read).update(done)
        bind = ast.NamedExpr(ast.Name(name, ast.Store()), read)
        tests: list[ast.expr] = [placed(ast.Compare(bind, [ast.IsNot()], [ast.Constant(None)]), at)]
        names: dict[str, ast.expr] = {}
        for place, pattern in enumerate(inner):
            part = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(place), ast.Load(), **done)
            more, bound = parts_of(pattern, placed(part, pattern), self.of_part)
            tests, names = [*tests, *more], names | bound
        return tests, names

    def operation(self, name: str, pattern: ast.pattern, subject: ast.expr, *args: ast.expr) -> ast.expr:
        made = self.reader.operation(name, pattern, subject, *args)
        vars(made).update(done=True)
        return made


def _is_wildcard(pattern: ast.pattern) -> bool:
    kinds = isinstance(pattern, ast.MatchAs | ast.MatchStar) and pattern.name is None
    return kinds and getattr(pattern, "pattern", None) is None


def _unstarred(pattern: ast.pattern) -> ast.pattern:
    """Return the pattern of the list that a pattern with a star binds."""
    return placed(ast.MatchAs(None, pattern.name), pattern) if isinstance(pattern, ast.MatchStar) else pattern
