"""The source of the user's functions: their syntax trees, and the names that they read from around."""

import ast
import functools
import inspect
import linecache
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from effgrad.stage.loop.affine import NotCaptured


@dataclass(eq=False)
class Source:
    """A function's tree and body, what it closes over, and its globals."""

    node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
    body: list[ast.stmt]
    closed: dict[str, Any]
    globals: dict[str, Any]


def source_of(function: Callable[..., Any]) -> Source:
    """The source of a Python function; raises `NotCaptured` if it is not known."""
    if not isinstance(function, types.FunctionType):
        raise NotCaptured(f"a call of {getattr(function, '__name__', function)!r}, which has no Python source")
    node = tree_of(function.__code__)
    if node is None or isinstance(node, ast.AsyncFunctionDef):
        raise NotCaptured(f"the source of {function.__name__!r} is not known")
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        raise NotCaptured(f"{function.__name__!r} is a generator")
    body = node.body if not isinstance(node, ast.Lambda) else []
    closed = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            closed[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return Source(node, body, closed, function.__globals__)


def tree_of(code: types.CodeType) -> ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The syntax tree that a code object was compiled from, or None."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    functions = _functions("".join(lines), code.co_filename)
    candidates = [n for n in functions if _first_line(n) == code.co_firstlineno and _name(n) == code.co_name]
    if len(candidates) > 1:
        candidates = [n for n in candidates if _holds(n, code)]
    return candidates[0] if len(candidates) == 1 else None


@functools.lru_cache(maxsize=64)
def _functions(text: str, name: str) -> list[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        tree = ast.parse(text, name)
    except SyntaxError:
        return []
    return [n for n in ast.walk(tree) if isinstance(n, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef)]


def _first_line(node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *[d.lineno for d in decorators]])


def _name(node: ast.AST) -> str:
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else "<lambda>"


def _holds(node: ast.AST, code: types.CodeType) -> bool:
    """Whether the instructions of a code object come from inside a tree: of lambdas in one line, one does."""
    body: Any = node.body if isinstance(node, ast.Lambda) else node
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None]
    inside = [p for p in places if start <= p < end]
    return bool(inside) and len(inside) >= len([p for p in places if p[1] or p[0] != start[0]])
