"""`match` statements as chains of `if`, for handlers that read programs.

A subject is evaluated once, into a name that no program can contain; so are the items of a subject that is a tuple. A
statement with patterns besides values, alternatives, captures and tuples is left as it is.
"""

import ast
import copy
import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

Tree = TypeVar("Tree", bound=ast.AST)


class Unwritten(Exception):
    """A pattern has no form as a test."""


def without_matches(tree: Tree) -> Tree:
    """Return a copy of a tree whose `match` statements are chains of `if`, or the tree itself if it has none."""
    if not any(isinstance(x, ast.Match) for x in ast.walk(tree)):
        return tree
    return _Chains().visit(copy.deepcopy(tree))  # type: ignore[no-any-return]


class _Chains(ast.NodeTransformer):
    def visit_Match(self, s: ast.Match) -> list[ast.stmt] | ast.Match:
        self.generic_visit(s)
        items = s.subject.elts if isinstance(s.subject, ast.Tuple) else None
        name = f"$match{s.lineno}_{s.col_offset}"
        names = [name] if items is None else [f"{name}_{k}" for k in range(len(items))]
        values = [s.subject] if items is None else items
        try:
            chain = chained(s.cases, [ast.Name(n, ast.Load()) for n in names], items is None)
        except Unwritten:
            return s
        made: list[ast.stmt] = [ast.Assign([ast.Name(n, ast.Store())], v) for n, v in zip(names, values, strict=True)]
        return [ast.fix_missing_locations(ast.copy_location(x, s)) for x in [*made, *chain]]


# The tests that a pattern means, and the names that it binds, with what they are bound to.
Parts = tuple[list[ast.expr], dict[str, ast.expr]]
# The parts of a pattern of a class, a sequence or a mapping for a subject.
OfClass = Callable[[ast.pattern, ast.expr], Parts]


def _unwritten(pattern: ast.pattern, subject: ast.expr) -> Parts:
    raise Unwritten


def chained(
    cases: Sequence[ast.match_case], subject: Sequence[ast.expr], single: bool, of_class: OfClass = _unwritten
) -> list[ast.stmt]:
    """The statements that run the first of the cases whose pattern and guard hold.

    `of_class` gives the parts of a pattern of a class, a sequence or a mapping, which has no form as tests without it.
    """
    if not cases:
        return []
    case, *others = cases
    parts = functools.partial(parts_of, of_class=of_class)
    here = copy.deepcopy(subject)  # whose positions are to be those of the pattern
    tests, names = parts(case.pattern, here[0]) if single else _of_items(case.pattern, here, parts)
    binds: list[ast.stmt] = [ast.Assign([ast.Name(n, ast.Store())], value) for n, value in names.items()]
    for s in binds:
        ast.copy_location(s, case.pattern)
    rest = chained(others, subject, single, of_class)
    if case.guard is not None and tests and binds:  # Python binds the names before it asks the guard, which may fail
        if of_class is _unwritten:
            raise Unwritten
        tests += [ast.List([ast.NamedExpr(ast.Name(n, ast.Store()), value)], ast.Load()) for n, value in names.items()]
        binds = []
    if case.guard is not None:
        return [*binds, _if([*tests, case.guard], case.body, rest)]
    body = [*binds, *case.body]
    return [_if(tests, body, rest)] if tests else body


def _if(tests: list[ast.expr], body: list[ast.stmt], rest: list[ast.stmt]) -> ast.If:
    return ast.copy_location(ast.If(_all(tests), body, rest), tests[0])


def _of_items(pattern: ast.pattern, items: Sequence[ast.expr], parts: Callable[..., Parts]) -> Parts:
    """The tests that a pattern means for a tuple of these items, and the names that it binds."""
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
        return [], {}
    if isinstance(pattern, ast.MatchOr):
        return _either([_of_items(p, items, parts) for p in pattern.patterns], pattern)
    if not isinstance(pattern, ast.MatchSequence) or any(isinstance(p, ast.MatchStar) for p in pattern.patterns):
        raise Unwritten
    if len(pattern.patterns) != len(items):
        return [ast.copy_location(ast.Constant(False), pattern)], {}
    found = [parts(p, item) for p, item in zip(pattern.patterns, items, strict=True)]
    return [test for tests, _ in found for test in tests], {n: v for _, names in found for n, v in names.items()}


def parts_of(pattern: ast.pattern, subject: ast.expr, of_class: OfClass) -> Parts:
    """The tests that a pattern means for a subject, and the names that it binds."""
    if isinstance(pattern, ast.MatchAs):
        tests, names = ([], {}) if pattern.pattern is None else parts_of(pattern.pattern, subject, of_class)
        return tests, names | ({pattern.name: subject} if pattern.name is not None else {})
    if isinstance(pattern, ast.MatchOr):
        return _either([parts_of(p, subject, of_class) for p in pattern.patterns], pattern)
    if isinstance(pattern, ast.MatchValue):
        return [_located(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern)], {}
    if isinstance(pattern, ast.MatchSingleton):
        return [_located(ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)]), pattern)], {}
    return of_class(pattern, subject)


def _either(found: Sequence[Parts], pattern: ast.pattern) -> Parts:
    """The test that one of several patterns, which bind no names, holds."""
    if any(names for _, names in found):
        raise Unwritten
    if any(not tests for tests, _ in found):
        return [], {}
    return [_located(ast.BoolOp(ast.Or(), [_all(tests) for tests, _ in found]), pattern)], {}


def _all(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])


def _located(e: ast.expr, pattern: ast.pattern) -> ast.expr:
    return ast.fix_missing_locations(ast.copy_location(e, pattern))
