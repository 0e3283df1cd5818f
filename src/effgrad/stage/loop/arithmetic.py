"""Python's operators and comparisons on symbolic values."""

import ast
import contextlib
import operator

import numpy as np

from effgrad.stage.loop import masks, planes
from effgrad.stage.loop.affine import Affine, NotCaptured, affine
from effgrad.stage.loop.element import cast, primitive_of
from effgrad.stage.loop.ir import BOOL, INT
from effgrad.stage.loop.operands import SYMBOLIC, Complex, Lazy, Masked, Value, symbolic
from effgrad.stage.loop.symbols import MOST_UNROLLED, Symbols
from effgrad.vocabulary import Function

OPERATIONS: dict[type, tuple[Function, Value]] = {
    ast.Add: (operator.add, np.add), ast.Sub: (operator.sub, np.subtract), ast.Mult: (operator.mul, np.multiply),
    ast.Div: (operator.truediv, np.divide), ast.Pow: (operator.pow, np.power), ast.Mod: (operator.mod, np.mod),
    ast.FloorDiv: (operator.floordiv, np.floor_divide), ast.MatMult: (operator.matmul, None),
    ast.BitAnd: (operator.and_, np.bitwise_and), ast.BitOr: (operator.or_, np.bitwise_or),
    ast.BitXor: (operator.xor, np.bitwise_xor), ast.LShift: (operator.lshift, np.left_shift),
    ast.RShift: (operator.rshift, np.right_shift),
}  # fmt: skip
COMPARISONS: dict[type, tuple[Function, Value]] = {
    ast.Lt: (operator.lt, np.less), ast.LtE: (operator.le, np.less_equal), ast.Gt: (operator.gt, np.greater),
    ast.GtE: (operator.ge, np.greater_equal), ast.Eq: (operator.eq, np.equal), ast.NotEq: (operator.ne, np.not_equal),
}  # fmt: skip
PLAIN: dict[type, Function] = {
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


class Operators(Symbols):
    """The operators of a captured program; `Evaluator` adds its expressions."""

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        plain, ufunc = OPERATIONS[type(op)]
        if planes.some([a, b]) and symbolic([a, b]):
            return planes.binary(self, op, a, b)
        if isinstance(a, Masked) or isinstance(b, Masked):
            return masks.mapped(self, ufunc, [a, b])
        if not isinstance(a, SYMBOLIC) and not isinstance(b, SYMBOLIC):
            return plain(a, b)
        return self.binary_of(op, a, b)

    def binary_of(self, op: ast.operator, a: Value, b: Value) -> Value:
        """Apply an operator to real numbers and arrays, at least one of which is symbolic."""
        plain, ufunc = OPERATIONS[type(op)]
        if ufunc is None:
            return self.matmul(a, b)
        if not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and is_python_bool(a) and is_python_bool(b):
            a, b = self.as_integer(a), self.as_integer(b)
        whole = [isinstance(x, Affine | int) and not isinstance(x, bool) for x in (a, b)]
        if all(whole) and isinstance(op, ast.Add | ast.Sub | ast.Mult):
            with contextlib.suppress(NotCaptured):
                return plain(affine(a), affine(b))
        if all(whole) and isinstance(op, ast.FloorDiv | ast.Mod | ast.Mult):
            return self.affine_of(self.elementwise(primitive_of(ufunc), a, b))  # type: ignore[arg-type]
        return self.elementwise(primitive_of(ufunc), a, b)  # type: ignore[arg-type]

    def as_integer(self, value: Value) -> Lazy:
        """A truth value of Python's as the integer that it is in arithmetic."""
        return self.number(cast(self.lazy(value).value, INT), True)

    def compare(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        if type(op) in PLAIN:
            return self.compare_plainly(op, a, b)
        plain, ufunc = COMPARISONS[type(op)]
        if planes.some([a, b]) and symbolic([a, b]):
            return planes.compared(self, op, a, b)
        if not isinstance(a, SYMBOLIC) and not isinstance(b, SYMBOLIC):
            return plain(a, b)
        if all(isinstance(x, Affine | int) for x in (a, b)):
            low, high = (bound(affine(a) - affine(b)) for bound in (self.ranges.lower, self.ranges.upper))
            for answer in (True, False):
                if _decided(op, low, high) is answer:
                    return answer
        return self.elementwise(primitive_of(ufunc), a, b)  # type: ignore[arg-type]

    def compare_plainly(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """Return the value of `is` or `in`; among known items, a symbolic one is compared with each."""
        if isinstance(op, ast.Is | ast.IsNot):
            if b is None or not (symbolic([a]) or symbolic([b])):
                return PLAIN[type(op)](a, b) if not isinstance(a, (*SYMBOLIC, Complex)) else isinstance(op, ast.IsNot)
            raise NotCaptured("`is` of values that the loop computes")
        if not (symbolic([a]) or symbolic([b])):
            return PLAIN[type(op)](a, b)
        if not isinstance(b, tuple | list | range | dict | set | frozenset) or len(b) > MOST_UNROLLED:
            raise NotCaptured("`in` of values that the loop computes")
        inside = isinstance(op, ast.In)
        answers = [self.compare(ast.Eq() if inside else ast.NotEq(), a, item) for item in b]
        return self.all_of(answers, not inside) if answers else not inside


def is_python_bool(value: Value) -> bool:
    """Whether a number is a truth value of Python's, which is an integer in arithmetic; NumPy's is not."""
    return isinstance(value, bool) or (isinstance(value, Lazy) and value.weak and value.dtype == BOOL)


def _decided(op: ast.cmpop, low: int | None, high: int | None) -> bool | None:
    """Return True if `d op 0` holds for all `d` from `low` to `high`, False if for none, None if for some."""
    below, above = high is not None and high < 0, low is not None and low > 0
    never_above, never_below = high is not None and high <= 0, low is not None and low >= 0
    zero = low == high == 0
    yes, no = {
        ast.Lt: (below, never_below), ast.LtE: (never_above, above), ast.Gt: (above, never_above),
        ast.GtE: (never_below, below), ast.Eq: (zero, below or above), ast.NotEq: (below or above, zero),
    }[type(op)]  # fmt: skip
    return True if yes else False if no else None
