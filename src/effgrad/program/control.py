"""Control flow of the user's functions as operations: a loop asks the running handlers how to run it.

In rewritten code each `for` and `while` first performs `Control.loops`. If no handler is running, or the answer is
None, Python runs the loop. No syntax tree is kept: a loop is parsed again when a handler asks for its tree.
"""

import ast
import functools
import linecache
import types
from collections.abc import Callable, Mapping
from typing import Any

from effgrad.effects import Effect, handled, operation
from effgrad.program.matches import without_matches
from effgrad.program.numerals import changes_list
from effgrad.program.own_lists import mark_replaced
from effgrad.program.syntax import first_line

# Extra keys in the names that a loop has bound: `LEFT` says that it ended by `return`, with the value `RESULT`.
LEFT, RESULT = "$left", "$result"
Run = Callable[["Loop", Mapping[str, Any], Mapping[str, Any]], "dict[str, Any] | None"]


class Control(Effect):
    """The effect of control flow."""

    @operation
    def loops(self) -> "Run | None":
        """Return a function that runs a loop, or None.

        Given the loop and the local and global names, it returns the names that the loop has bound, or None if Python
        has to run the loop.
        """


def loops() -> Run | None:
    """Return the function with which a handler runs loops, or None if Python runs them."""
    return Control.loops() if handled(Control) else None


class Loop:
    """A loop of a rewritten function: its position in a file, and the names that it binds."""

    def __init__(self, lines: list[str], file: str, node: ast.For | ast.While, lists: frozenset[str]) -> None:
        self.lines, self.file, self.bound = lines, file, sorted(_bound(node, lists))
        self.place = _place(node)

    @functools.cached_property
    def _trees(self) -> tuple[ast.FunctionDef, ast.For | ast.While]:
        functions = _functions("".join(self.lines), self.file)
        for function in reversed(functions):  # the innermost ones come last
            if isinstance(function, ast.FunctionDef) and function.lineno <= self.place[1] <= (function.end_lineno or 0):
                function = without_matches(function)
                mark_replaced(function)
                for node in ast.walk(function):
                    if isinstance(node, ast.For | ast.While) and self.place == _place(node):
                        return function, node
        raise LookupError(f"no loop at line {self.place[1]} of {self.file}")

    @property
    def function(self) -> ast.FunctionDef:
        """The syntax tree of the innermost function that contains the loop, not rewritten."""
        return self._trees[0]

    @property
    def statement(self) -> ast.For | ast.While:
        """The syntax tree of the loop, not rewritten."""
        return self._trees[1]


def _place(node: ast.For | ast.While) -> tuple[type, int, int]:
    return type(node), node.lineno, node.col_offset


def _bound(statement: ast.stmt, lists: frozenset[str]) -> set[str]:
    """The names that a loop binds, and those in `lists` that it changes: a handler may bind them to other values."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name is not None:
            found.add(node.name)
        if changes_list(node) and isinstance(node.value, ast.Name):  # type: ignore[attr-defined]
            found |= lists & {node.value.id}  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def tree_of(code: types.CodeType) -> ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The syntax tree that a code object was compiled from, or None."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    functions = _functions("".join(lines), code.co_filename)
    candidates = [n for n in functions if first_line(n) == code.co_firstlineno and _name(n) == code.co_name]
    if len(candidates) > 1:
        candidates = [n for n in candidates if _holds(n, code)][-1:]  # the innermost of nested lambdas comes last
    return candidates[0] if len(candidates) == 1 else None


@functools.lru_cache(maxsize=64)
def _functions(text: str, name: str) -> list[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        tree = ast.parse(text, name)
    except SyntaxError:
        return []
    return [n for n in ast.walk(tree) if isinstance(n, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef)]


def _name(node: ast.AST) -> str:
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else "<lambda>"


def _holds(node: ast.AST, code: types.CodeType) -> bool:
    """Whether the instructions of a code object lie inside a tree, which tells apart the lambdas on one line."""
    body: Any = node.body if isinstance(node, ast.Lambda) else node
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None]
    return bool(places) and all(start <= p < end for p in places if p[1] or p[0] != start[0])
