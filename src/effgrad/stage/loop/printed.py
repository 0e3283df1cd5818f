"""Texts in a captured loop: f-strings of known values, and calls of `print`.

What a compiled program does besides returning a value happens when it is staged, and the steps of a captured loop are
not run then. So `print` shows nothing; the values in its arguments are captured all the same, as they may have effects.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.choices import Choices
from effgrad.stage.loop.frames import Frame
from effgrad.vocabulary import Object

# The conversions of an f-string's fields, by their number in the syntax tree.
CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, 114: repr, 115: str, 97: ascii}


class Texts(Choices):
    """The parts of an `Evaluator` that make texts."""

    expression: Callable[[ast.expr, Frame], Any]
    prints = False  # whether a call of `print` was captured

    def _JoinedStr(self, e: ast.JoinedStr, frame: Frame) -> str:
        return "".join(self.expression(part, frame) for part in e.values)

    def _FormattedValue(self, e: ast.FormattedValue, frame: Frame) -> str:
        value = self.expression(e.value, frame)
        if not isinstance(value, str | int | float | complex | np.generic | None):
            raise NotCaptured("the text of a value that the loop computes")
        spec = "" if e.format_spec is None else self.expression(e.format_spec, frame)
        return format(CONVERSIONS[e.conversion](value), spec)

    def capture_print(self, e: ast.Call, frame: Frame) -> None:
        """Capture a call of `print`, which has no effect but those of its arguments."""
        self.prints = True
        for argument in (*e.args, *[k.value for k in e.keywords]):
            for value in _values_in(argument, lambda name: self.expression(name, frame)):
                self.expression(value, frame)


def _values_in(e: ast.expr, function: Callable[[ast.Name], Object]) -> Iterator[ast.expr]:
    """Iterate over the values that a text is made of: those in f-strings, in `"%g" % x`, `"{}".format(x)`, `str(x)`."""
    match e:
        case ast.JoinedStr(parts):
            inside = parts
        case ast.FormattedValue(value, _, form):
            inside = [value] if form is None else [value, form]
        case ast.Starred(value):
            inside = [value]
        case ast.BinOp(ast.Constant(str()), ast.Mod(), value):
            inside = value.elts if isinstance(value, ast.Tuple) else [value]
        case ast.BinOp(left, ast.Add(), right) if _is_text(left, function) or _is_text(right, function):
            inside = [left, right]
        case ast.Call(ast.Attribute(ast.Constant(str()), "format"), values, keywords):
            inside = [*values, *[k.value for k in keywords]]
        case ast.Call(ast.Name(), values) if _is_text(e, function):
            inside = values
        case _:
            yield e
            return
    for part in inside:
        yield from _values_in(part, function)


def _is_text(e: ast.expr, function: Callable[[ast.Name], Object]) -> bool:
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name):
        return function(e.func) in (str, repr, format)
    return isinstance(e, ast.JoinedStr) or (isinstance(e, ast.Constant) and isinstance(e.value, str))
