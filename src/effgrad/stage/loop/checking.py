"""Statements that raise errors or control floating-point warnings: `raise`, `assert`, `with np.errstate(...)`."""

import ast

import numpy as np

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.buffers import BOOL, constant
from effgrad.stage.loop.evaluator import Evaluator
from effgrad.stage.loop.frames import Frame
from effgrad.stage.loop.operands import Value


class Raised(NotCaptured):
    """Capture has reached a `raise`, so the statements that follow in the block are unreachable."""


def raise_(c: Evaluator, s: ast.Raise, frame: Frame) -> None:
    """`raise Error("a text")`."""
    e, args = (s.exc.func, s.exc.args) if isinstance(s.exc, ast.Call) else (s.exc, [])
    error = None if e is None else c.expression(e, frame)
    if not isinstance(error, type) or not issubclass(error, Exception) or len(args) > 1:
        raise NotCaptured("`raise`")
    c.check(constant(False, BOOL), _text(args[0], c, frame) if args else "", error)
    raise Raised("`raise`, which every step comes to")


def assert_(c: Evaluator, s: ast.Assert, frame: Frame) -> None:
    """`assert test, "a text"`."""
    test = c.truth(c.condition(s.test, frame))
    if test is not True:
        flag = constant(False, BOOL) if isinstance(test, bool) else test
        c.check(flag, _text(s.msg, c, frame) if s.msg else "", AssertionError)


def _text(e: ast.expr, c: Evaluator, frame: Frame) -> str:
    """The text of an error, in which the placeholders of an f-string, and computed texts, appear as source text."""
    if isinstance(e, ast.Constant):
        return str(e.value)
    if isinstance(e, ast.JoinedStr):
        return "".join(map(_part, e.values))
    known = c.expression(e, frame) if isinstance(e, ast.Name) else None
    return known if isinstance(known, str) else f"{{{ast.unparse(e)}}}"


def _part(e: ast.expr) -> str:
    return f"{{{ast.unparse(e.value)}}}" if isinstance(e, ast.FormattedValue) else str(ast.literal_eval(e))


def with_(c: Value, s: ast.With, frame: Frame) -> None:
    """`with np.errstate(...)`, which matters only for NumPy's warnings."""
    for item in s.items:
        call = item.context_expr
        known = isinstance(call, ast.Call) and c.expression(call.func, frame) is np.errstate
        if not known or any(not isinstance(k.value, ast.Constant) for k in call.keywords):  # type: ignore[attr-defined]
            raise NotCaptured("`with`")
        if any(k.value.value in ("raise", "call") for k in call.keywords):  # type: ignore[attr-defined]
            raise NotCaptured("`with np.errstate`, which raises")
    with frame.followed_by(frame.rest):
        c.body(s.body, frame)
