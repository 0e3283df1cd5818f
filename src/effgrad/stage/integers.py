"""Arithmetic of a staged program's integers, with the results of Python's integers, which never overflow.

A program's integers have 64 bits. An operation whose result always fits is recorded. For any other operation the
integers are guarded, and Python computes the result; the path is then valid for these integers only.
"""

import operator
from collections.abc import Callable, Sequence

import numpy as np

from effgrad.arrays.layout import dtype_of, extremes
from effgrad.stage.nodes import INPUT, SMALL, Node
from effgrad.stage.staged_value import Staged, constant_primitive, example_value, guarded_value, record
from effgrad.vocabulary import DType, Function, Params, Value

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
# The bits of a double's significand: longer integers are rounded when they meet floats.
_EXACT = 53
# Python's sequences, which multiplication by an integer repeats: the operator must be left to them.
_SEQUENCES = {list, tuple, str, bytes, bytearray}
_DIVIDING = {operator.floordiv, operator.mod, operator.truediv}


def is_integer(value: Value) -> bool:
    return type(value) is int or type(value) is Staged and type(value.primal) is int


def _bits(value: Value) -> int:
    """Return the largest number of bits that an integer may have."""
    node = value.shadow if type(value) is Staged else value
    if type(node) is not Node:
        return int(node).bit_length()
    unknown = (SMALL - 1).bit_length() if node.primitive is INPUT else 64
    bits: int = value.owner.bits.get(node, unknown)
    return bits


def _method(name: str, reflected: bool) -> Value:
    function, special = getattr(operator, f"__{name}__"), f"__{'r' * reflected}{name}__"
    usual: Function = getattr(Staged, special)
    bits_of: Callable[[int, int], int] = _BITS.get(function, lambda a, b: 64)

    def operate(self: Staged, other: Value, *modulus: Value) -> Value:
        if modulus:
            return pow(guarded_value(self), guarded_value(other), *map(guarded_value, modulus))
        if type(self.primal) is not int or not is_integer(other):
            return NotImplemented if type(self.primal) is int and type(other) in _SEQUENCES else usual(self, other)
        a, b = (other, self) if reflected else (self, other)
        bits = bits_of(_bits(a), _bits(b))
        rounded = function is operator.truediv and max(_bits(a), _bits(b)) > _EXACT
        if bits > 63 or rounded or (function in _DIVIDING and b == 0):
            return function(guarded_value(a), guarded_value(b))
        result = usual(self, other)
        if type(result) is Staged and type(result.primal) is int:
            result.owner.bits[result.shadow] = bits
        return result

    return operate


def _unary(name: str) -> Value:
    usual: Function = getattr(Staged, name)

    def operate(self: Staged) -> Value:
        result = usual(self)
        if type(self.primal) is int and type(result) is Staged:
            result.owner.bits[result.shadow] = _bits(self)
        return result

    return operate


def _comparison(name: str) -> Value:
    usual: Function = getattr(Staged, name)

    def compare(self: Staged, other: Value) -> Value:
        if type(self.primal) is int and type(example_value(other)) is float and _bits(self) > _EXACT:
            return getattr(guarded_value(self), name)(guarded_value(other))
        if type(self.primal) is float and is_integer(other) and _bits(other) > _EXACT:
            return getattr(guarded_value(self), name)(guarded_value(other))
        return usual(self, other)

    return compare


def _inverted(self: Value) -> Value:
    if type(self.primal) is int:
        return -1 - self
    return _logical(self)


def _of_value(name: str) -> Value:
    return lambda self, *args, **options: getattr(guarded_value(self), name)(*args, **options)


for _name in ("bit_length", "bit_count", "as_integer_ratio", "to_bytes"):
    setattr(Staged, _name, _of_value(_name))
_logical, Staged.__invert__ = Staged.__invert__, _inverted  # type: ignore[method-assign]
for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow", "lshift", "rshift", "and", "or", "xor"):
    for _reflected in (False, True):
        setattr(Staged, f"__{'r' * _reflected}{_name}__", _method(_name, _reflected))
for _name in ("__neg__", "__abs__"):
    setattr(Staged, _name, _unary(_name))
for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(Staged, _name, _comparison(_name))


def from_numpy(value: Staged) -> Value:
    """Return a NumPy integer of a program as Python's, which never overflows."""
    bits = 8 * value.dtype.itemsize
    if bits > 16 and not guarded_value((value > -SMALL) & (value < SMALL)):
        return guarded_value(value).item()
    number = record(constant_primitive(int), value)
    if type(number) is Staged:
        number.owner.bits[number.shadow] = min(bits, (SMALL - 1).bit_length())
    return number


def beside(args: Sequence[Value], params: Params) -> Sequence[Value]:
    """Return the arguments of an operation, with a guard that Python's integers among them fit NumPy's integers.

    An integer that does not fit is replaced by its value, for which NumPy has its own rules and errors.
    """
    arrays = [a for a in map(example_value, args) if isinstance(a, np.ndarray | np.generic)]
    dtype = np.dtype(params.get("dtype") or (np.result_type(*map(dtype_of, arrays)) if arrays else int))
    if dtype.kind not in "iu" or dtype == np.int64:
        return args
    return [_fitting(a, dtype) if type(a) is Staged and type(a.primal) is int else a for a in args]


def _fitting(value: Staged, dtype: DType) -> Value:
    least, largest = extremes(dtype)
    bits = _bits(value)
    if dtype.kind == "i" and (1 << bits) - 1 <= largest:
        return value
    fits = value >= least
    if largest < 1 << bits:
        fits = fits & (value <= largest)
    return value if guarded_value(fits) else guarded_value(value)
