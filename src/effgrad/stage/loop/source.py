"""The source of the user's functions: their syntax trees, and the names that they read from outside."""

import ast
import inspect
import types
from dataclasses import dataclass

from effgrad.program.control import tree_of
from effgrad.program.matches import without_matches
from effgrad.program.own_lists import mark_replaced
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.operands import Value
from effgrad.vocabulary import Function


@dataclass(eq=False)
class Source:
    """A function's syntax tree and body, the variables that it closes over, and its globals."""

    node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
    body: list[ast.stmt]
    closed: dict[str, Value]
    globals: dict[str, Value]


def source_of(function: Function) -> Source:
    """The source of a Python function; raises `NotCaptured` if it is not available."""
    if not isinstance(function, types.FunctionType):
        raise NotCaptured(f"a call of {getattr(function, '__name__', function)!r}, which has no Python source")
    node = tree_of(function.__code__)
    if node is None or isinstance(node, ast.AsyncFunctionDef):
        raise NotCaptured(f"the source of {function.__name__!r} is not known")
    if function.__code__.co_flags & (inspect.CO_ASYNC_GENERATOR | inspect.CO_COROUTINE):
        raise NotCaptured(f"{function.__name__!r} is asynchronous")
    node = without_matches(node)
    mark_replaced(node)
    body = node.body if not isinstance(node, ast.Lambda) else []
    closed = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            closed[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return Source(node, body, closed, function.__globals__)


def made_source(g: Value) -> tuple[Source, dict[str, Value]]:
    """The source of a generator that has not begun, and its arguments."""
    code, frame = g.gi_code, g.gi_frame
    node = tree_of(code)
    if not isinstance(node, ast.FunctionDef) or frame is None:
        raise NotCaptured(f"the source of {code.co_name!r} is not known")
    names = inspect.getargs(code)
    args = [*names.args, *[name for name in (names.varargs, names.varkw) if name]]
    node = without_matches(node)
    mark_replaced(node)
    values = frame.f_locals
    closed = {name: values[name] for name in code.co_freevars if name in values}
    return Source(node, node.body, closed, frame.f_globals), {name: values[name] for name in args}
