"""Truth values: the truth of an object, and the comparison of a truth value with `True` and `False` by `is`.

A compiled program or a batch computes `x > 0` as a traced value, where Python has one of its two objects.
"""

import numpy as np

from effgrad.arrays.value import Tracer
from effgrad.arrays.written import read
from effgrad.program.classes import DIRECT, is_builtin
from effgrad.program.managers import method_of
from effgrad.vocabulary import Object


def truth(value: Object) -> Object:
    """Return a value whose truth Python can test in place of `value`."""
    if type(value) in DIRECT:
        return value
    if is_builtin(value):
        return read(value)
    found = method_of(type(value), "__bool__")
    return read(value) if found is None else found(value)


def same(a: Object, b: Object) -> bool:
    """Return `a is b`, where the object of a traced truth value is the one that Python's comparison gives."""
    if a is b or not (isinstance(a, Tracer) or isinstance(b, Tracer)):
        return a is b
    return decided(a, b) is decided(b, a)


def decided(value: Object, other: Object) -> Object:
    """Return the truth value that a traced one stands for, beside another of Python's or of NumPy's class."""
    kind: type = value.__class__
    traced = isinstance(value, Tracer) and kind in (bool, np.bool_) and other.__class__ is kind
    return kind(bool(value)) if traced else value


class Singleton(type):
    """The class of the patterns `True` and `False` of a `match` statement, which compare by `is`."""

    value: bool

    def __instancecheck__(cls, subject: Object) -> bool:
        return same(subject, cls.value)


class TruePattern(metaclass=Singleton):
    value = True


class FalsePattern(metaclass=Singleton):
    value = False
