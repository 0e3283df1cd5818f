"""Python's operators and comparisons on symbolic values."""

import ast
import contextlib
import functools
import operator
from collections.abc import Callable, Sequence

import numpy as np

from effgrad.arrays.operator_ufuncs import BY_OPERATOR
from effgrad.stage.loop import masks, planes
from effgrad.stage.loop.affine import Affine, NotCaptured, affine
from effgrad.stage.loop.buffers import BOOL, index
from effgrad.stage.loop.element import primitive_of
from effgrad.stage.loop.number_classes import NumberClass
from effgrad.stage.loop.operands import SYMBOLIC, Lazy, Masked, Value, View, symbolic
from effgrad.stage.loop.special_methods import BINARY, COMPARED, COMPARISONS, OPERATORS, method_of, run_by_python
from effgrad.stage.loop.symbols import MOST_UNROLLED, Symbols
from effgrad.vocabulary import Function

# Python's function of each operator, and NumPy's.
OPERATIONS: dict[type, tuple[Function, Value]] = {
    op: (getattr(operator, f"__{name}__"), BY_OPERATOR[name]) for op, name in (OPERATORS | COMPARISONS).items()
}
PLAIN: dict[type, Function] = {
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


# The most factors of a power that is written as a product.
MOST_FACTORS = 8
_POWERS_OF_TWO = frozenset(2**k for k in range(63))


class Operators(Symbols):
    """The operators of a captured program; `Evaluator` adds its expressions."""

    inline: Callable[[Function, Sequence[Value], dict[str, Value]], Value]

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        """Apply an operator to two values."""
        plain, ufunc = OPERATIONS[type(op)]
        if symbolic([a, b]) and (found := self.by_method(BINARY[type(op)], a, b)) is not NotImplemented:
            return found
        if planes.has_complex([a, b]) and symbolic([a, b]):
            return planes.binary(self, op, a, b)
        if isinstance(a, Masked) or isinstance(b, Masked):
            return masks.mapped(self, ufunc, [a, b])
        if not isinstance(a, SYMBOLIC) and not isinstance(b, SYMBOLIC):
            return plain(a, b)
        return self.binary_of(op, a, b)

    def by_method(self, names: tuple[str, str], a: Value, b: Value) -> Value:
        """The result of an operator by a method that the program defines, or `NotImplemented`."""
        pairs = [(a, b, names[0]), (b, a, names[1])]
        if type(a) is not type(b) and issubclass(type(b), type(a)):
            pairs.reverse()
        for value, other, name in pairs:
            method = method_of(value, name)
            if method is not None and isinstance(other, View) and other.shape:
                raise NotCaptured(f"an operator of {type(value).__name__!r} and an array")
            if method is not None and (found := self.inline(method, [value, other], {})) is not NotImplemented:
                return found
        return NotImplemented

    def binary_of(self, op: ast.operator, a: Value, b: Value) -> Value:
        """Apply an operator to real numbers and arrays, at least one of which is symbolic."""
        plain, ufunc = OPERATIONS[type(op)]
        if ufunc is np.matmul:
            return self.matmul(a, b)
        of_bits = isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and (is_python_bool(a) or is_python_bool(b))
        are_integers = may_be_python_integer(a) and may_be_python_integer(b) and not isinstance(op, ast.Div)
        if are_integers and not of_bits and is_python_integer(a) and is_python_integer(b):
            return self.of_integers(op, self.as_integer(a), self.as_integer(b))
        return self.elementwise(primitive_of(ufunc), a, b)  # type: ignore[arg-type]

    def as_integer(self, value: Value) -> Affine:
        """An integer or a truth value of Python's as the integer that it is in arithmetic."""
        return self.snapshot(value) if isinstance(value, Lazy) else affine(value)

    def of_integers(self, op: ast.operator, a: Affine, b: Affine) -> Affine:
        """Apply an operator to two of Python's integers, whose result may need more than 64 bits."""
        plain, ufunc = OPERATIONS[type(op)]
        low, high = self.ranges.lower(b), self.ranges.upper(b)
        if isinstance(op, ast.Pow):
            return self.power(a, b, low, high)
        if isinstance(op, ast.LShift | ast.RShift) and (low is None or low < 0):
            raise NotCaptured("a shift whose size may be negative")
        if isinstance(op, ast.LShift):
            return self.of_integers(ast.Mult(), a, self.power(affine(2), b, low, high))
        if isinstance(op, ast.Add | ast.Sub | ast.Mult):
            with contextlib.suppress(NotCaptured):
                return affine(plain(a, b))
        operands: list[Value] = [a, b]
        if _reads_low_bits(op, a, b):
            operands = [Lazy((), (), index(x), True) for x in (a, b)]
        result = self.affine_of(self.elementwise(primitive_of(ufunc), *operands))  # type: ignore[arg-type]
        fits = isinstance(op, ast.Mod | ast.FloorDiv) or None not in (
            self.ranges.lower(result), self.ranges.upper(result))  # fmt: skip
        return self.within_range(result) if fits else self.stored_integer(index(result))

    def power(self, a: Affine, b: Affine, low: int | None, high: int | None) -> Affine:
        """A power of two of Python's integers, whose exponent is in a range; a negative one would give a float."""
        if low is None or low < 0:
            raise NotCaptured("a power of integers whose exponent may be negative")
        if low == high and low <= MOST_FACTORS:
            return functools.reduce(functools.partial(self.of_integers, ast.Mult()), [a] * low, affine(1))
        least, most = self.ranges.lower(a), self.ranges.upper(a)
        if high is None or least is None or most is None or max(abs(least), abs(most)) ** min(high, 64) >= 2**63:
            raise NotCaptured("a power of integers that may exceed 64 bits")
        if least == most and high < 64:
            table = self.table_view(np.array([least**k for k in range(high + 1)]))
            return self.as_integer(self.weakened(self.index(table, b)))
        return self.stored_integer(self.elementwise(primitive_of(np.power), a, b).value)  # type: ignore[arg-type]

    def compare(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """Compare two values."""
        if type(op) in PLAIN:
            return self.compare_plainly(op, a, b)
        plain, ufunc = OPERATIONS[type(op)]
        if planes.has_complex([a, b]) and symbolic([a, b]):
            return planes.compared(self, op, a, b)
        if symbolic([a, b]) and (found := self.by_method(COMPARED[type(op)], a, b)) is not NotImplemented:
            return found
        if not isinstance(a, SYMBOLIC) and not isinstance(b, SYMBOLIC):
            return self.compare_items(op, a, b) if symbolic([a, b]) else plain(a, b)
        if all(isinstance(x, Affine | int) for x in (a, b)):
            low, high = (bound(affine(a) - affine(b)) for bound in (self.ranges.lower, self.ranges.upper))
            for answer in (True, False):
                if _decided(op, low, high) is answer:
                    return answer
        return self.elementwise(primitive_of(ufunc), a, b)  # type: ignore[arg-type]

    def compare_items(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """Compare two containers with symbolic items, for being equal or not."""
        if not isinstance(op, ast.Eq | ast.NotEq) or type(a) not in (tuple, list) or type(a) is not type(b):
            raise NotCaptured("a comparison of containers of values that the loop computes")
        if len(a) != len(b):
            return isinstance(op, ast.NotEq)
        answers = [self.compare(op, x, y) for x, y in zip(a, b, strict=True)]
        answer = self.all_of(answers, isinstance(op, ast.Eq))
        return self.weakened(answer) if isinstance(answer, Lazy) else answer

    def compare_plainly(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """Return the value of `is` or `in`; among known items, a symbolic one is compared with each."""
        if b is None and isinstance(op, ast.Is | ast.IsNot) or not symbolic([a, b]):
            return PLAIN[type(op)](a, b)
        if isinstance(op, ast.Is | ast.IsNot):
            raise NotCaptured("`is` of values that the loop computes")
        run_by_python(b, "__contains__", "__iter__")
        if not isinstance(b, tuple | list | range | dict | set | frozenset) or len(b) > MOST_UNROLLED:
            raise NotCaptured("`in` of values that the loop computes")
        inside = isinstance(op, ast.In)
        answers = [self.compare(ast.Eq() if inside else ast.NotEq(), a, item) for item in b]
        answer = self.all_of(answers, not inside) if answers else not inside
        return self.weakened(answer) if isinstance(answer, Lazy) else answer


def _reads_low_bits(op: ast.operator, a: Affine, b: Affine) -> bool:
    """Whether an operator reads at most 63 bits of each operand, so that higher ones may be lost before."""
    if isinstance(op, ast.BitAnd):
        return any(not x.terms and 0 <= x.constant < 2**63 for x in (a, b))
    return isinstance(op, ast.Mod) and not b.terms and b.constant in _POWERS_OF_TWO


def is_python_integer(value: Value) -> bool:
    """Whether a number is an integer of Python's, or a truth value, but not one of NumPy's."""
    if isinstance(value, Lazy) and value.doubt:
        return value.doubt.are_python_integers()
    return isinstance(value, Affine | int) or (isinstance(value, Lazy) and value.weak and value.dtype.kind in "bi")


def may_be_python_integer(value: Value) -> bool:
    """Whether a number may be an integer or a truth value of Python's."""
    if isinstance(value, Lazy) and value.doubt:
        return any(c.weak and c.dtype.kind in "bi" for c in value.doubt.classes)
    return is_python_integer(value)


def is_python_bool(value: Value) -> bool:
    """Whether a number is, or may be, a truth value of Python's, which is an integer in arithmetic; NumPy's is not."""
    if isinstance(value, Lazy) and value.doubt:
        return NumberClass(BOOL, True) in value.doubt.classes
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
