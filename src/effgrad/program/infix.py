"""The operators of rewritten code: Python's own for numbers, arrays and traced values, else the program's methods.

Python's own operator is right for the classes in `DIRECT`, which are tested first. Arrays are among them until one
holds traced numbers. Other operands are read, and a method that a class of the program defines in Python is rewritten.
"""

import decimal
import numbers
import operator
from collections import deque
from collections.abc import Callable

import numpy as np

from effgrad.arrays.ndarray import left_computes, right_decides
from effgrad.arrays.operator_ufuncs import COMPARISONS, SIGNS
from effgrad.arrays.value import Tracer
from effgrad.arrays.written import memories
from effgrad.program.buffer_objects import compared, is_buffer
from effgrad.program.classes import DIRECT, OPERANDS, is_builtin
from effgrad.program.coercion import coerced, is_of_library
from effgrad.program.duck_arrays import defines_ufuncs, ufunc_of
from effgrad.program.listed import gathered
from effgrad.program.managers import method_of
from effgrad.program.object_arrays import holds_objects, mixed
from effgrad.program.own_numbers import is_own_number, read_number, read_operand
from effgrad.program.subclasses import perform_any, read_arrays
from effgrad.vocabulary import Function, Object


def _declines(one: object, other: object) -> Object:
    return NotImplemented


def _compiled(one: object, name: str) -> Object:
    """Return the method of an operand that is not in Python; a metaclass may answer for names that no class defines."""
    return getattr(type(one), name) if any(name in vars(base) for base in type(one).__mro__) else _declines


# The operators are generated as text, because `operate(a, b)` would cost one more call for every operator.
_BINARY = """
def {name}(a, b):
    if type(a) in DIRECT and type(b) in DIRECT:
        return a {symbol} b
    return carefully(a, b)
"""
AUGMENTED = """
def {name}(a, b):
    if type(a) in OPERANDS and type(b) in DIRECT:
        a {symbol}= b
        return a
    return carefully(a, b)
"""


def written_out(text: str, operate: Callable[..., object], carefully: object) -> Object:
    """Compile an operator that is Python's own for operands of the classes in `DIRECT`, and else calls `carefully`."""
    name = operate.__name__
    symbol = SIGNS[name.strip("_")].partition(" ")[0]
    scope = {"DIRECT": DIRECT, "OPERANDS": OPERANDS, "carefully": carefully}
    exec(compile(text.format(name=name, symbol=symbol), "<operators of programs>", "exec"), scope)
    return scope[name]


def _binary(name: str, other_way: str = "") -> Object:
    """Return a binary operator. `other_way` names the second operand's method if it is not `__r...__`."""
    operate, method, compares = getattr(operator, name), f"__{name.strip('_')}__", name in COMPARISONS
    reflected = f"__{other_way}__" if other_way else f"__r{method[2:]}"

    def carefully(a: object, b: object) -> Object:
        given = a, b
        if memories:
            if keeps_items(name, a, b):
                return operate(a, b)
            a, b = read_operand(a), read_operand(b)
        if is_builtin(a) and is_builtin(b):
            if memories and (holds_objects(a) or holds_objects(b) or mixed(a, b)):
                return ufunc_of(name)(a, b)
            return operate(operand_for(b, a), operand_for(a, b))
        if memories and compares and is_buffer(a) and is_buffer(b):
            a, b = compared(a, b)
        return by_methods(operate, a, b, method, reflected, given)

    return written_out(_BINARY, operate, carefully)


def operand_for(array: object, operand: object) -> Object:
    """Return an operand beside `array`: if that is an array, an operand that holds traced values is one too."""
    return gathered(coerced(operand)) if isinstance(array, np.ndarray) else operand


def keeps_items(name: str, a: object, b: object) -> bool:
    """Whether an operator joins or repeats lists, tuples or dictionaries, whose items stay the program's objects."""
    if name == "mul":
        return any(_is_sequence(one) and isinstance(count, int | np.integer) for one, count in ((a, b), (b, a)))
    return name == "add" and _is_sequence(a) and _is_sequence(b) or name == "or_" and type(a) is type(b) is dict


def _is_sequence(value: object) -> bool:
    """Whether a value is a list, a tuple, a named one too, or a deque, with Python's own operators."""
    named = isinstance(value, tuple) and (type(value).__add__, type(value).__mul__) == (tuple.__add__, tuple.__mul__)
    return named or type(value) in (list, deque)


def operand_in_place(a: object, b: object) -> Object:
    """Return the second operand of an augmented assignment; the items of one that a container stores stay its own."""
    stored = isinstance(b, list | tuple | dict | deque) and type(a) not in OPERANDS and not isinstance(a, np.ndarray)
    return b if stored else operand_for(a, read_arrays(b))


def by_methods(
    operate: Callable[..., object], a: object, b: object, method: str, reflected: str, given: tuple[object, object]
) -> Object:
    """Apply an operator to objects by their methods written in Python, each called once in the order of Python.

    These methods are given the operands as in the program, `given`, which they may store.
    """
    called = False
    steps = [(one, other, name, None if is_builtin(one) else method_of(type(one), name))
             for one, other, name in tries(operate, a, b, method, reflected)]  # fmt: skip
    in_python = any(found is not None for *_, found in steps)
    for one, other, name, found in steps:
        if numpy_asks(one, other, found):
            return ufunc_of(operate.__name__)(a, b)
        if in_python and _computes(one, other, found):
            break
        if not in_python or is_builtin(one):
            continue
        result, called = _compiled(one, name)(one, other) if found is None else found(one, given[one is a]), True
        if result is not NotImplemented:
            return result
    # A number's methods may be called twice.
    known = not called or _is_number(a) or _is_number(b)
    if not known:
        return without_methods(operate, a, b)
    a, b = read_number(a), read_number(b)
    return perform_any(operate, _beside(b, a), _beside(a, b))


def _beside(other: Object, operand: Object) -> Object:
    """Return an operand beside an object of the program: NumPy's numbers ask for its `__array__` alone."""
    if isinstance(other, np.generic):
        return coerced(operand) if hasattr(type(operand), "__array__") else operand
    return operand_for(other, operand)


def _computes(one: Object, other: Object, found: Object) -> bool:
    """Whether an operand has the operator of a number, not `found` in Python, which computes with the other one."""
    return left_computes(one, other) if isinstance(one, Tracer) else is_own_number(one) and found is None


def _converts(one: Object, other: Object) -> bool:
    """Whether an operator of NumPy's arrays or numbers makes an array of an object of the program that is no number."""
    if is_builtin(other) or is_of_library(other):
        return False
    known = isinstance(other, np.ndarray | np.generic | numbers.Number | decimal.Decimal)
    return not known and not right_decides(other) and (np.ndim(one) > 0 or hasattr(type(other), "__array__"))


def _is_number(value: Object) -> bool:
    return isinstance(value, Tracer) or is_own_number(value)


def numpy_asks(one: Object, other: Object, found: Object) -> bool:
    """Whether an operator's method is NumPy's and calls the ufunc, which an operand's class decides or is made for.

    `found` is the method if it is in Python.
    """
    if not isinstance(one, np.ndarray | np.generic) or found is not None:
        return False
    known = is_builtin(other) or isinstance(other, np.ndarray)
    itself = known and not isinstance(one, Tracer) and defines_ufuncs(one)
    return defines_ufuncs(other) or itself or _converts(one, other)


def tries(operate: Function, a: Object, b: Object, method: str, reflected: str) -> list[tuple[Object, Object, str]]:
    """Return the (operand, other operand, method name) that Python tries, in its order.

    The second operand comes first if its class is a subclass with a different reflected method. An arithmetic operator
    does not try it at all if both operands are of one type (the Python Language Reference, 3.3.8).
    """
    compares = method.strip("_") in COMPARISONS
    steps = [(a, b, method), (b, a, reflected)]
    if type(b) is type(a):
        return steps if compares else steps[:1]
    number = np.generic if is_own_number(a) or not is_own_number(b) else a.__class__
    kind: type = type(a) if not isinstance(a, Tracer) else np.ndarray if a.ndim else number
    if not isinstance(b, Tracer) and issubclass(type(b), kind):
        if compares or getattr(type(b), reflected, None) is not getattr(kind, reflected, None):
            steps.reverse()
    return steps


def without_methods(operate: Callable[..., object], a: object, b: object) -> bool:
    """Compare by identity, or raise Python's error, when all methods have returned `NotImplemented`."""
    if operate in (operator.eq, operator.ne):
        return (a is b) == (operate is operator.eq)
    names = f"'{type(a).__name__}' and '{type(b).__name__}'"
    name = operate.__name__.strip("_")
    if name in COMPARISONS:
        raise TypeError(f"'{SIGNS[name]}' not supported between instances of {names}")
    raise TypeError(f"unsupported operand type(s) for {SIGNS[name]}: {names}")


def _unary(name: str) -> Object:
    operate, method = getattr(operator, name), f"__{name}__"

    def operation(a: Object) -> Object:
        if memories:
            a = read_operand(a)
        found = None if is_builtin(a) else method_of(type(a), method)
        if found is not None:
            return found(a)
        asks = isinstance(a, np.ndarray) and (defines_ufuncs(a) or bool(memories) and holds_objects(a))
        return ufunc_of(name)(a) if asks else perform_any(operate, read_number(a))

    return operation


add, sub, mul, truediv = map(_binary, ("add", "sub", "mul", "truediv"))
floordiv, mod, pow, matmul = map(_binary, ("floordiv", "mod", "pow", "matmul"))
and_, or_, xor, lshift, rshift = map(_binary, ("and_", "or_", "xor", "lshift", "rshift"))
neg, pos, invert = map(_unary, ("neg", "pos", "invert"))


lt, gt = _binary("lt", "gt"), _binary("gt", "lt")
le, ge = _binary("le", "ge"), _binary("ge", "le")
eq, ne = _binary("eq", "eq"), _binary("ne", "ne")
