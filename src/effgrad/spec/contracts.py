"""`contracts()`: the protocol of `Smooth` and the invariants of 002 section 8, checked while a program runs.

The proof of de Vilhena and Pottier 2023 keeps a ghost: the context K, the list of the operations performed so far, each
bound to the name of its result. Here the ghost is a list beside each activation of a mode. A mode is checked from
outside, by what it keeps with its values; none of it knows of the checks, and broken copies are checked as well.

* Protocol (definition 8.10). An operation is answered once, with a value of this activation under a new name.
* Forward invariant (8.7). The primal of a value u is the value of K[u]. In forward mode, its tangent is that of K[u].
* Backward invariant (8.8). When K is K1; K2, the operations of K2 processed and those of K1 pending, the cotangent
  that waits at a value u of K1 is the derivative of K2[y] with respect to u. Lemma 6.3 says how that changes when the
  last operation of K1 becomes the first of K2; so the operations are processed from the last to the first, none left
  out.

Values are checked as numbers: under nested derivatives the ghost computes with the plain ones. Operators on Python
floats that a mode writes out for speed go to its clause while contracts are on.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, Tracer, owned_by, plain
from effgrad.effects import Handler, observed
from effgrad.errors import EffgradError
from effgrad.modes.rerun import values_of
from effgrad.primitives import cotangents
from effgrad.spec.differentiation import Number


class ContractBroken(EffgradError, AssertionError):
    """A mode broke the protocol of `Smooth`, or an invariant of differentiation."""

    code = "S2"


@contextmanager
def contracts() -> Iterator[None]:
    """A context in which every derivative is checked step by step; `ContractBroken` names what does not hold.

    Every operation is computed once more, and so is its part of the reverse pass.

    >>> import numpy as np
    >>> from effgrad import grad
    >>> with contracts():
    ...     grad(lambda x: np.sum(np.sin(x) ** 2), mode="continuation")(np.array([0.0, 0.5]))
    array([0.        , 0.84147098])
    """
    with observed(_check):
        yield


def _check(activation: Any) -> None:
    # By name, so that copies of a mode are checked too.
    names = [base.__name__ for base in type(activation).__mro__]
    for mode, checks in _CHECKS.items():
        if mode in names:
            kind: Any = type(activation)
            activation.__class__ = _checked(kind, checks)
            return


@functools.cache
def _checked(mode: Any, checks: Any) -> Any:
    return type(mode.__name__, (checks, mode), {"__module__": mode.__module__, "__doc__": mode.__doc__})


class Binding:
    """One operation of the context K, with the numbers that it was given and gave."""

    def __init__(self, place: int, primitive: Any, params: Any, primals: list[Any], sources: list[Any]) -> None:
        self.place, self.primitive, self.params, self.primals, self.sources = place, primitive, params, primals, sources
        self.value: Any = None

    def __repr__(self) -> str:
        return f"operation {self.place}, {self.primitive.name}"


class Ghost:
    """The context K of one activation, and the derivatives of K2[y] with respect to the values of K1."""

    def __init__(self) -> None:
        self.bindings: dict[Any, Binding] = {}
        self.values: dict[Any, Any] = {}
        self.shadows: dict[Any, Any] = {}
        self.inputs: dict[Any, Any] = {}
        self.made = 0
        self.begin()

    def begin(self) -> None:
        """A reverse pass begins: K2 is empty."""
        self.derivatives: dict[Any, Any] = {}
        self.processed: set[Any] = set()
        self.step: Any = None

    def bind(self, primitive: Any, args: Any, params: Any, shadows: list[Any], result: Any) -> None:
        """K becomes K; let u = primitive(args)."""
        sources = [None if shadow is None else name(shadow) for shadow in shadows]
        for arg, shadow, source in zip(args, shadows, sources, strict=True):
            if source is not None and source not in self.values:  # an input, or the result of a checkpoint
                self.values[source], self.shadows[source] = _number(arg), shadow
        primals = [_number(a) if s is None else self.values[s] for a, s in zip(args, sources, strict=True)]
        binding = Binding(self.made, primitive, params, primals, sources)
        u = name(result.shadow)
        if u in self.values:
            raise ContractBroken(f"{binding} was answered with a value under the name of another one")
        _same(f"forward invariant: the value of {binding}", primitive.function(*primals, **params), result.primal)
        binding.value = self.values[u] = _number(result.primal)
        self.bindings[u], self.shadows[u] = binding, result.shadow
        self.made += 1

    def send(self, u: Any, cotangent: Any) -> None:
        """A share of the derivative with respect to u."""
        if cotangent is not None:
            self.derivatives[u] = cotangents.add(self.derivatives.get(u), _copied(cotangent))

    def begin_step(self, u: Any, cotangent: Any) -> None:
        """The last operation of K1 is about to become the first of K2."""
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
        _same(f"backward invariant: the cotangent of {binding}", expected, cotangent)
        self.step = u
        self.derivatives.pop(u, None)
        self.processed.add(u)
        if expected is None:
            return
        for index, source in enumerate(binding.sources):
            if source is not None:
                args = (index, expected, binding.value, *binding.primals)
                self.send(source, binding.primitive.pull(*args, **binding.params))

    def end_step(self, read: Callable[[Any], Any]) -> None:
        """It has: the cotangents that wait at its arguments are the new derivatives."""
        if self.step is None:
            return
        binding, self.step = self.bindings[self.step], None
        for source in dict.fromkeys(binding.sources):
            if source is not None:
                what = f"backward invariant: the cotangent that waits at an argument of {binding}"
                _same(what, self.derivatives.get(source), read(source))

    def rerun(self, before: list[Any], again: list[Any]) -> None:
        """The results of a checkpoint, recorded now: the derivatives go to their new names."""
        for old, new in zip(before, again, strict=True):
            if name(old) != name(new):
                self.send(name(new), self.derivatives.pop(name(old), None))

    def forget(self, first: int) -> None:
        """The record of a checkpoint is dropped: its names, from the first on, are free."""
        for u in [u for u in self.values if type(u) is int and u >= first]:
            for table in (self.values, self.shadows, self.bindings, self.derivatives):
                table.pop(u, None)
            self.processed.discard(u)

    def finish(self, variables: list[Any], found: list[Any]) -> None:
        """K1 is empty: what waits at the variables is the derivative of the program."""
        for u in self.derivatives:
            if u not in self.inputs:
                what = self.bindings.get(u, "the checkpoint of a result, or what a result was made of,")
                raise ContractBroken(f"backward invariant: {what} was never processed")
        for variable, cotangent in zip(variables, found, strict=True):
            _same("backward invariant: the cotangent of an input", self.derivatives.get(name(variable)), cotangent)


def name(shadow: Any) -> Any:
    """The name of a value: a position on a tape, the name of a term, or the identity of a cell or backpropagator."""
    shadow = getattr(shadow, "name", shadow)
    return shadow if type(shadow) is int else ("object", id(shadow))


def _below(activation: Any, value: Any) -> Any:
    return value.primal if owned_by(value, activation) else value


def _number(value: Any) -> Any:
    return _copied(plain(value))


def _copied(value: Any) -> Any:
    if type(value) is cotangents.Scattered:
        return cotangents.Scattered(value.shape, [(index, _copied(piece)) for index, piece in value.pieces])
    if type(value) is cotangents.Block:
        return cotangents.Block(value.shape, value.index, _copied(value.value))
    if type(value) is cotangents.Masked:
        return cotangents.Masked(_number(value.value), _number(value.mask))
    value = plain(value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _same(what: str, expected: Any, actual: Any) -> None:
    expected, actual = _settled(expected), _settled(actual)
    if expected is None and actual is None or isinstance(expected, Tracer) or isinstance(actual, Tracer):  # or staged
        return
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


def _settled(cotangent: Any) -> Any:
    return plain(cotangents.dense(_copied(cotangent))) if cotangent is not None else None


def _value(number: Any, like: Number) -> Any:
    return like.dictionary.zero if number is None else number.value


class _Checked(Handler[Smooth]):
    """The common part of the checks of all modes: a ghost, and the protocol of an operation."""

    ghost: Ghost

    def enter(self) -> None:
        super().enter()
        self.ghost = Ghost()

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Any:
        # As they are now: an array that is written to later names another value.
        shadows = [a.shadow if owned_by(a, self) else None for a in args]
        result = super().apply(primitive, *args, **params)  # type: ignore[misc]
        if not owned_by(result, self):
            raise ContractBroken(f"protocol: {primitive.name} was answered with a value of no or another derivative")
        if not isinstance(plain(result), Tracer):
            self.answered(primitive, args, params, shadows, result)
        # The class without operators of its own, whose operations all come here.
        return Traced(self, result.primal, result.shadow)

    def variable(self, *args: Any) -> Any:
        variable = super().variable(*args)  # type: ignore[misc]
        self.ghost.inputs[name(variable.shadow)] = variable.shadow
        return Traced(self, variable.primal, variable.shadow)

    def answered(self, primitive: Any, args: Any, params: Any, shadows: list[Any], result: Any) -> None:
        if result.shadow is not None and self.recorded(result.shadow) and getattr(self, "recording", True):
            self.ghost.bind(primitive, args, params, shadows, result)

    def recorded(self, shadow: Any) -> bool:
        inherited = getattr(super(), "recorded", None)
        return inherited is None or bool(inherited(shadow))

    def run(self, thunk: Callable[[], Any]) -> Any:
        """A checkpoint: its results get other names when it is run again."""
        inner = thunk.args[0]  # type: ignore[attr-defined]
        first: list[Any] = []
        names: list[Any] = []

        @functools.wraps(inner.func)
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            parts = values_of(self, result)
            if names:
                self.ghost.rerun(names, [part.shadow for part in parts])
            first.extend(parts)
            return result

        again = functools.partial(thunk.func, functools.partial(watched))  # type: ignore[attr-defined]
        result = super().run(again)  # type: ignore[misc]
        names.extend(part.shadow for part in first)
        return result


class _Tangents(_Checked):
    """Forward modes: the tangent of a result is the sum of what each argument's tangent makes of it."""

    def answered(self, primitive: Any, args: Any, params: Any, shadows: list[Any], result: Any) -> None:
        primals = [_number(_below(self, a)) for a in args]
        what = f"forward invariant: the value of {primitive.name}"
        value = primitive.function(*primals, **params)
        _same(what, value, result.primal)
        tangent = None
        for index, shadow in enumerate(shadows):
            given = _first(shadow)
            if given is not None:
                part = primitive.push(index, _number(given), value, *primals, **params)
                tangent = part if tangent is None else tangent if part is None else tangent + part
        if _first(result.shadow) is not NotImplemented:
            _same(f"forward invariant: the tangent of {primitive.name}", tangent, _first(result.shadow))


def _first(shadow: Any) -> Any:
    """The tangent, in a mode of first or second order; a series has coefficients of its own."""
    if type(shadow) is tuple:
        return shadow[0]
    return shadow if shadow is None or isinstance(shadow, Tracer) or hasattr(shadow, "__mul__") else NotImplemented


class _Reverse(_Checked):
    """The common part of the checks of reverse modes."""

    def seed(self, value: Any, cotangent: Any) -> None:
        super().seed(value, cotangent)  # type: ignore[misc]
        self.ghost.send(name(value.shadow), cotangent)

    def cotangents(self, variables: list[Any]) -> list[Any]:
        found: list[Any] = super().cotangents(variables)  # type: ignore[misc]
        self.ghost.finish(variables, found)
        return found


class _Pending(_Reverse):
    """A cell for each value, and a pending clause for each operation."""

    _pending: list[Any]

    def answered(self, primitive: Any, args: Any, params: Any, shadows: list[Any], result: Any) -> None:
        super().answered(primitive, args, params, shadows, result)
        if name(result.shadow) in self.ghost.bindings:
            self._pending[-1] = _Clause(self.ghost, self._pending[-1], result.shadow)


class _Clause:
    """A pending clause of an operation, with its steps checked."""

    def __init__(self, ghost: Ghost, clause: Any, cell: Any) -> None:
        self.ghost, self.clause, self.cell = ghost, clause, cell
        self.throw, self.close = clause.throw, clause.close

    def __next__(self) -> Any:
        ghost = self.ghost
        ghost.begin_step(name(self.cell), self.cell.cotangent)
        try:
            return next(self.clause)
        except StopIteration:
            ghost.end_step(lambda source: ghost.shadows[source].cotangent)
            raise


class _Backpropagators(_Reverse):
    """A backpropagator for each value."""

    def backpropagator(self, call: Callable[[Any], None] | None) -> Any:
        if call is None:
            return super().backpropagator(call)  # type: ignore[misc]
        made: list[Any] = []

        def watched(cotangent: Any) -> None:
            ghost = self.ghost
            ghost.begin_step(name(made[0]), cotangent)
            call(cotangent)
            ghost.end_step(lambda source: ghost.shadows[source].waiting)

        made.append(super().backpropagator(watched))  # type: ignore[misc]
        return made[0]


class _Operations(list[Any]):
    """A tape, or a list of terms: reading an entry is the beginning of its step."""

    reading: Callable[[int], None] | None = None

    def __getitem__(self, index: Any) -> Any:
        if self.reading is not None and type(index) is int:
            self.reading(index)
        return super().__getitem__(index)


class _Listed(_Checked):
    """A list of operations, which the reverse pass reads, and a list of cotangents."""

    def enter(self) -> None:
        super().enter()
        self.entries = _Operations()

    def pull(self, seeds: list[tuple[Any, Any]], variables: list[Any]) -> list[Any]:
        """A reverse pass, of which there may be several."""
        self.ghost.begin()
        for place, cotangent in seeds:
            self.ghost.send(name(place), cotangent)
        found: list[Any] = super().pull(seeds, variables)  # type: ignore[misc]
        self.ghost.finish(variables, found)
        return found

    def walk(self, collected: list[Any], first: int) -> None:
        ghost = self.ghost

        def reading(index: int) -> None:
            index %= len(self.entries)
            ghost.end_step(collected.__getitem__)
            ghost.begin_step(index, collected[index])

        outer, self.entries.reading = self.entries.reading, reading
        try:
            super().walk(collected, first)  # type: ignore[misc]
        finally:
            self.entries.reading = outer
        ghost.end_step(collected.__getitem__)
        if outer is not None:
            ghost.forget(first)


_CHECKS: dict[str, type] = {
    "Taped": _Listed,
    "Delta": _Listed,
    "Continuation": _Backpropagators,
    "Reverse": _Pending,
    "Forward": _Tangents,
    "SecondOrder": _Tangents,
}
