"""Arithmetic of a staged program's integers, with the results of Python's integers, which never overflow.

A program's integers have 64 bits. An operation whose result always fits is recorded. For any other operation the
integers are guarded, and Python computes the result; the path is then valid for these integers only.
"""

import operator
from collections.abc import Callable

from effgrad.stage.arguments import SMALL
from effgrad.stage.staged_value import Staged, guarded_value
from effgrad.vocabulary import Function, Value

# The largest number of bits of a result, from the numbers of bits of the two arguments.
_BITS: dict[Function, Callable[[int, int], int]] = {
    operator.add: lambda a, b: max(a, b) + 1,
    operator.sub: lambda a, b: max(a, b) + 1,
    operator.mul: lambda a, b: a + b,
    operator.floordiv: lambda a, b: a + 1,
    operator.mod: lambda a, b: b,
    operator.truediv: lambda a, b: 0,
    operator.and_: max,
    operator.or_: max,
    operator.xor: max,
}
# Python's sequences, which multiplication by an integer repeats: the operator must be left to them.
_SEQUENCES = {list, tuple, str, bytes, bytearray}
_DIVIDING = {operator.floordiv, operator.mod, operator.truediv}


def is_integer(value: Value) -> bool:
    return type(value) is int or type(value) is Staged and type(value.primal) is int


def _bits(value: Value) -> int:
    """Return the largest number of bits that an integer may have."""
    if type(value) is int:
        return value.bit_length()
    bits: int = value.owner.bits.get(value.shadow, (SMALL - 1).bit_length())
    return bits


def _method(name: str, reflected: bool) -> Value:
    function, special = getattr(operator, f"__{name}__"), f"__{'r' * reflected}{name}__"
    usual: Function = getattr(Staged, special)
    bits_of: Callable[[int, int], int] = _BITS.get(function, lambda a, b: 64)

    def operate(self: Staged, other: Value) -> Value:
        if type(self.primal) is not int or not is_integer(other):
            return NotImplemented if type(self.primal) is int and type(other) in _SEQUENCES else usual(self, other)
        a, b = (other, self) if reflected else (self, other)
        bits = bits_of(_bits(a), _bits(b))
        if bits > 63 or (function in _DIVIDING and b == 0):
            return function(guarded_value(a), guarded_value(b))
        result = usual(self, other)
        if type(result) is Staged and type(result.primal) is int:
            result.owner.bits[result.shadow] = bits
        return result

    return operate


def _inverted(self: Value) -> Value:
    if type(self.primal) is int:
        return -1 - self
    return _logical(self)


_logical, Staged.__invert__ = Staged.__invert__, _inverted  # type: ignore[method-assign]
for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow", "lshift", "rshift", "and", "or", "xor"):
    for _reflected in (False, True):
        setattr(Staged, f"__{'r' * _reflected}{_name}__", _method(_name, _reflected))
