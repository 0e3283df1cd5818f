"""The ghost state of a derivative, a list of the operations performed so far, by which `contracts` checks a mode.

It is the context K in the proof of de Vilhena and Pottier 2023, in which each operation is bound to the name of its
result.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.arrays.value import Tracer, plain
from effgrad.errors import EffgradError
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import Primitive
from effgrad.spec.differentiation import Number
from effgrad.vocabulary import Cotangent, Params, Value


class ContractBroken(EffgradError, AssertionError):
    """A mode broke the protocol of `Smooth`, or an invariant of differentiation."""

    code = "S2"


class Binding:
    """One operation of the context K, with its arguments and its value as numbers."""

    def __init__(
        self, place: int, primitive: Primitive, params: Params, primals: list[Value], sources: list[Value]
    ) -> None:
        self.place, self.primitive, self.params, self.primals, self.sources = place, primitive, params, primals, sources
        self.value: Value = None

    def __repr__(self) -> str:
        return f"operation {self.place}, {self.primitive.name}"


class Ghost:
    """The context K of one activation, and the derivatives of K2[y] with respect to the values of K1.

    In a reverse pass K is K1; K2, where the operations of K1 are pending and those of K2 have been processed.
    """

    def __init__(self) -> None:
        self.bindings: dict[Value, Binding] = {}
        self.values: dict[Value, Value] = {}
        self.shadows: dict[Value, Value] = {}
        self.inputs: dict[Value, Value] = {}
        self.made = 0
        self.begin()

    def begin(self) -> None:
        """Begin a reverse pass, with an empty K2."""
        self.derivatives: dict[Value, Value] = {}
        self.processed: set[Value] = set()
        self.step: Value = None

    def bind(self, primitive: Any, args: Value, params: Any, shadows: list[Value], result: Value) -> None:
        """Extend K by `let u = primitive(args)`."""
        sources = [None if shadow is None else name(shadow) for shadow in shadows]
        for arg, shadow, source in zip(args, shadows, sources, strict=True):
            if source is not None and source not in self.values:  # an input, or the result of a checkpoint
                self.values[source], self.shadows[source] = as_number(arg), shadow
        primals = [as_number(a) if s is None else self.values[s] for a, s in zip(args, sources, strict=True)]
        binding = Binding(self.made, primitive, params, primals, sources)
        u = name(result.shadow)
        if u in self.values:
            raise ContractBroken(f"{binding} was answered with a value under the name of another one")
        check_same(f"forward invariant: the value of {binding}", primitive.function(*primals, **params), result.primal)
        binding.value = self.values[u] = as_number(result.primal)
        self.bindings[u], self.shadows[u] = binding, result.shadow
        self.made += 1

    def send(self, u: Value, cotangent: Cotangent) -> None:
        """Add a share to the derivative with respect to u."""
        if cotangent is not None:
            self.derivatives[u] = cotangents.add(self.derivatives.get(u), _copied(cotangent))

    def begin_step(self, u: object, cotangent: object) -> None:
        """Check that u is the last operation of K1, and make it the first of K2."""
        binding = self.bindings.get(u)
        if binding is None:  # an input, or the result of a checkpoint
            return
        if u in self.processed:
            raise ContractBroken(f"backward invariant: {binding} was processed twice")
        expected = self.derivatives.get(u)
        later = [b for v in self.derivatives if (b := self.bindings.get(v)) and b.place > binding.place]
        if later:
            last = max(later, key=lambda b: b.place)
            raise ContractBroken(f"backward invariant: {binding} was processed before {last}")
        check_same(f"backward invariant: the cotangent of {binding}", expected, cotangent)
        self.step = u
        self.derivatives.pop(u, None)
        self.processed.add(u)
        if expected is None:
            return
        for index, source in enumerate(binding.sources):
            if source is not None:
                args = (index, expected, binding.value, *binding.primals)
                self.send(source, binding.primitive.pull(*args, **binding.params))

    def end_step(self, read: Callable[[Value], Value]) -> None:
        """Check that the cotangents that wait at the operation's arguments are the new derivatives."""
        if self.step is None:
            return
        binding, self.step = self.bindings[self.step], None
        for source in dict.fromkeys(binding.sources):
            if source is not None:
                what = f"backward invariant: the cotangent that waits at an argument of {binding}"
                check_same(what, self.derivatives.get(source), read(source))

    def rerun(self, before: list[object], again: list[object]) -> None:
        """Move the derivatives of a checkpoint's results to the names that they have got in its rerun."""
        for old, new in zip(before, again, strict=True):
            if name(old) != name(new):
                self.send(name(new), self.derivatives.pop(name(old), None))

    def forget(self, first: int) -> None:
        """Drop the record of a checkpoint, whose names begin at `first`, so that these names can be reused."""
        for u in [u for u in self.values if type(u) is int and u >= first]:
            for table in (self.values, self.shadows, self.bindings, self.derivatives):
                table.pop(u, None)
            self.processed.discard(u)

    def finish(self, variables: list[object], found: list[object]) -> None:
        """Check at the end, when K1 is empty, that the cotangents of the variables are the program's derivative."""
        for u in self.derivatives:
            if u not in self.inputs:
                what = self.bindings.get(u, "the checkpoint of a result, or what a result was made of,")
                raise ContractBroken(f"backward invariant: {what} was never processed")
        for variable, cotangent in zip(variables, found, strict=True):
            check_same("backward invariant: the cotangent of an input", self.derivatives.get(name(variable)), cotangent)


def name(shadow: Value) -> Value:
    """Return a value's name: its position on a tape, its term's name, or its cell's or backpropagator's identity."""
    shadow = getattr(shadow, "name", shadow)
    return shadow if type(shadow) is int else ("object", id(shadow))


def as_number(value: Value) -> Value:
    """Return a copy of a value as plain numbers."""
    return _copied(plain(value))


def _copied(value: Value) -> Value:
    if type(value) is cotangents.Scattered:
        return cotangents.Scattered(value.shape, [(index, _copied(piece)) for index, piece in value.pieces])
    if type(value) is cotangents.Block:
        return cotangents.Block(value.shape, value.index, _copied(value.value))
    if type(value) is cotangents.Masked:
        return cotangents.Masked(as_number(value.value), as_number(value.mask))
    value = plain(value)
    return value.copy() if isinstance(value, np.ndarray) else value


def check_same(what: str, expected: Value, actual: Value) -> None:
    """Raise `ContractBroken` if two numbers, arrays or cotangents differ by more than rounding."""
    expected, actual = _dense(expected), _dense(actual)
    if expected is None and actual is None or isinstance(expected, Tracer) or isinstance(actual, Tracer):
        return  # staged values cannot be compared
    number = actual if expected is None else expected
    if isinstance(number, Number):
        agree = _value(expected, number) == _value(actual, number)
    elif not isinstance(number, np.ndarray | np.generic | float | complex):
        agree = (0 if expected is None else expected) == (0 if actual is None else actual)
    else:
        a, b = (np.zeros(np.shape(number)) if x is None else np.asarray(x) for x in (expected, actual))
        scale = np.max(np.abs(a[np.isfinite(a)]), initial=0.0)
        agree = np.allclose(a, b, rtol=1e-7, atol=1e-9 * scale, equal_nan=True)
    if not agree:
        raise ContractBroken(f"{what} is {actual}, and should be {expected}")


def _dense(cotangent: object) -> Value:
    return plain(cotangents.dense(_copied(cotangent))) if cotangent is not None else None


def _value(number: Value, like: Number) -> Value:
    return like.dictionary.zero if number is None else number.value
