"""Rules for NumPy's functions of several pieces, of which conditions choose one for each element."""

import functools
from typing import Any

import numpy as np

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.buffers import BOOL
from effgrad.stage.loop.concatenation import as_array
from effgrad.stage.loop.frames import Function
from effgrad.stage.loop.masks import assigned_under_mask, select
from effgrad.stage.loop.operands import Value
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Option


def _checked(c: Symbols, conditions: Value, pieces: Value, default: bool) -> None:
    """Raise unless there is a condition in truth values for each piece; with `default` the last piece has none."""
    if not isinstance(conditions, list | tuple) or not isinstance(pieces, list | tuple) or not conditions:
        raise NotCaptured("conditions or pieces that are no lists")
    if len(pieces) - len(conditions) not in ((0, 1) if default else (0,)):
        raise NotCaptured("another number of conditions than of pieces")
    if any(c.lazy(condition).dtype != BOOL for condition in conditions):
        raise NotCaptured("conditions that are no truth values")


@rule(np.select)
def _select(c: Symbols, condlist: Value, choicelist: Value, default: Value = 0) -> Value:
    _checked(c, condlist, choicelist, default=False)
    result, *choices = (as_array(c, value) for value in (default, *choicelist))
    if len({value.dtype for value in (result, *choices) if value.dtype.kind in "fc"}) > 1:
        raise NotCaptured("np.select of numbers of several precisions")
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = c.call(np.where, [condition, choice, result], {})
    return result


@rule(np.piecewise)
def _piecewise(c: Symbols, x: Value, condlist: Value, funclist: Value, *args: Value, **kw: Option) -> Value:
    _checked(c, condlist, funclist, default=True)
    value = as_array(c, x)
    if not value.shape or any(len(c.lazy(condition).shape) != len(value.shape) for condition in condlist):
        raise NotCaptured("np.piecewise of a number, or with a condition of another number of axes")
    conditions = [*condlist]
    if len(funclist) > len(conditions):
        any_of = functools.reduce(lambda a, b: c.call(np.logical_or, [a, b], {}), conditions)
        conditions.append(c.call(np.logical_not, [any_of], {}))
    result: Any = c.call(np.zeros_like, [value], {})
    for condition, piece in zip(conditions, funclist, strict=True):
        calls = isinstance(piece, Function) or callable(piece)
        part = c.call(piece, [select(c, value, condition), *args], kw) if calls else piece
        result = assigned_under_mask(c, as_array(c, result), condition, part)
        if result.dtype != value.dtype:
            raise NotCaptured("np.piecewise with pieces of another type than its argument")
    return result
