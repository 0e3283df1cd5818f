"""Contracts: the protocol of `Smooth` and the invariants of a correctness proof, checked while a program runs.

The proof of de Vilhena and Pottier 2023, section 8, keeps a ghost state: the context K, the list of the operations
performed so far, each bound to the name of its result. Here a ghost of this kind accompanies each activation of a mode.
A mode is checked from outside, by the shadows that it keeps with its values. It does not know of the checks, and broken
copies of a mode can be checked as well.

* Protocol (definition 8.10). An operation is answered once, with a value of this activation under a new name.
* Forward invariant (8.7). The primal of a value u is the value of K[u]. In forward mode, its tangent is that of K[u].
* Backward invariant (8.8). Let K be K1; K2, where the operations of K2 have been processed and those of K1 are pending.
  Then the cotangent that waits at a value u of K1 is the derivative of K2[y] with respect to u. Lemma 6.3 says how this
  derivative changes when the last operation of K1 becomes the first of K2. So all operations are processed, from the
  last to the first.

Values are checked as numbers, so under nested derivatives the ghost computes with the plain numbers. While contracts
are on, operators that a mode writes out for Python floats go to its clause.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, Tracer, owned_by, plain
from effgrad.effects import Handler, observed
from effgrad.modes.rerun import values_of
from effgrad.spec.ghost import ContractBroken as ContractBroken
from effgrad.spec.ghost import Ghost, as_number, check_same, name
from effgrad.vocabulary import Activation, Cotangent, Index, Value


@contextmanager
def contracts() -> Iterator[None]:
    """Open a context in which every derivative is checked step by step; `ContractBroken` names a broken invariant.

    Every operation, and its part of the reverse pass, is computed a second time.

    >>> import numpy as np
    >>> from effgrad import grad
    >>> with contracts():
    ...     grad(lambda x: np.sum(np.sin(x) ** 2), mode="continuation")(np.array([0.0, 0.5]))
    array([0.        , 0.84147098])
    """
    with observed(_check):
        yield


def _check(activation: object) -> None:
    # Modes are recognised by name, so that copies of a mode are checked too.
    names = [base.__name__ for base in type(activation).__mro__]
    for mode, checks in _CHECKS.items():
        if mode in names:
            kind: Any = type(activation)
            activation.__class__ = _checked(kind, checks)
            return


@functools.cache
def _checked(mode: Value, checks: Value) -> Value:
    return type(mode.__name__, (checks, mode), {"__module__": mode.__module__, "__doc__": mode.__doc__})


def _below(activation: Activation, value: Value) -> Value:
    return value.primal if owned_by(value, activation) else value


class _Checked(Handler[Smooth]):
    """The common part of the checks of all modes: a ghost, and the protocol of an operation."""

    ghost: Ghost

    def enter(self) -> None:
        super().enter()
        self.ghost = Ghost()

    def apply(self, primitive: Any, *args: Value, **params: object) -> Value:
        # The shadows are read now, because a later write into an array gives it another value and shadow.
        shadows = [a.shadow if owned_by(a, self) else None for a in args]
        result = super().apply(primitive, *args, **params)  # type: ignore[misc]
        if not owned_by(result, self):
            raise ContractBroken(f"protocol: {primitive.name} was answered with a value of no or another derivative")
        if not isinstance(plain(result), Tracer):
            self.answered(primitive, args, params, shadows, result)
        # `Traced` has no fast operators, so all operations on the result come here.
        return Traced(self, result.primal, result.shadow)

    def variable(self, *args: object) -> Value:
        variable = super().variable(*args)  # type: ignore[misc]
        self.ghost.inputs[name(variable.shadow)] = variable.shadow
        return Traced(self, variable.primal, variable.shadow)

    def answered(self, primitive: object, args: object, params: object, shadows: list[object], result: Value) -> None:
        if result.shadow is not None and self.recorded(result.shadow) and getattr(self, "recording", True):
            self.ghost.bind(primitive, args, params, shadows, result)

    def recorded(self, shadow: object) -> bool:
        inherited = getattr(super(), "recorded", None)
        return inherited is None or bool(inherited(shadow))

    def run(self, thunk: Callable[[], Value]) -> Value:
        """Run a checkpoint, and tell the ghost the new names that its results get in a rerun."""
        inner = thunk.args[0]  # type: ignore[attr-defined]
        first: list[Value] = []
        names: list[Value] = []

        @functools.wraps(inner.func)
        def watched(*args: object, **kwargs: object) -> Value:
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
    """The checks of forward modes: a result's tangent is the sum of the pushes of the arguments' tangents."""

    def answered(self, primitive: Any, args: Value, params: Any, shadows: list[Value], result: Value) -> None:
        primals = [as_number(_below(self, a)) for a in args]
        what = f"forward invariant: the value of {primitive.name}"
        value = primitive.function(*primals, **params)
        check_same(what, value, result.primal)
        tangent = None
        for index, shadow in enumerate(shadows):
            given = _first(shadow)
            if given is not None:
                part = primitive.push(index, as_number(given), value, *primals, **params)
                tangent = part if tangent is None else tangent if part is None else tangent + part
        if _first(result.shadow) is not NotImplemented:
            check_same(f"forward invariant: the tangent of {primitive.name}", tangent, _first(result.shadow))


def _first(shadow: Value) -> Value:
    """Return the tangent in a shadow of a mode of first or second order, and NotImplemented for other shadows."""
    if type(shadow) is tuple:
        return shadow[0]
    return shadow if shadow is None or isinstance(shadow, Tracer) or hasattr(shadow, "__mul__") else NotImplemented


class _Reverse(_Checked):
    """The common part of the checks of reverse modes."""

    def seed(self, value: Value, cotangent: Cotangent) -> None:
        super().seed(value, cotangent)  # type: ignore[misc]
        self.ghost.send(name(value.shadow), cotangent)

    def cotangents(self, variables: list[object]) -> list[Value]:
        found: list[Value] = super().cotangents(variables)  # type: ignore[misc]
        self.ghost.finish(variables, found)
        return found


class _Pending(_Reverse):
    """The checks of a mode with a cell for each value and a pending clause for each operation."""

    _pending: list[Value]

    def answered(self, primitive: Any, args: Value, params: Any, shadows: list[Value], result: Value) -> None:
        super().answered(primitive, args, params, shadows, result)
        if name(result.shadow) in self.ghost.bindings:
            self._pending[-1] = _Clause(self.ghost, self._pending[-1], result.shadow)


class _Clause:
    """The pending clause of an operation, whose step of the reverse pass is checked."""

    def __init__(self, ghost: Ghost, clause: Any, cell: Value) -> None:
        self.ghost, self.clause, self.cell = ghost, clause, cell
        self.throw, self.close = clause.throw, clause.close

    def __next__(self) -> Value:
        ghost = self.ghost
        ghost.begin_step(name(self.cell), self.cell.cotangent)
        try:
            return next(self.clause)
        except StopIteration:
            ghost.end_step(lambda source: ghost.shadows[source].cotangent)
            raise


class _Backpropagators(_Reverse):
    """The checks of a mode with a backpropagator for each value."""

    def backpropagator(self, call: Callable[[object], None] | None) -> Value:
        if call is None:
            return super().backpropagator(call)  # type: ignore[misc]
        made: list[Value] = []

        def watched(cotangent: object) -> None:
            ghost = self.ghost
            ghost.begin_step(name(made[0]), cotangent)
            call(cotangent)
            ghost.end_step(lambda source: ghost.shadows[source].waiting)

        made.append(super().backpropagator(watched))  # type: ignore[misc]
        return made[0]


class _Operations(list[Any]):
    """A tape, or a list of terms, that calls `reading` when an entry is read, which begins the entry's step."""

    reading: Callable[[int], None] | None = None

    def __getitem__(self, index: Index) -> Value:
        if self.reading is not None and type(index) is int:
            self.reading(index)
        return super().__getitem__(index)


class _Listed(_Checked):
    """The checks of a mode with a list of operations, which the reverse pass reads, and a list of cotangents."""

    def enter(self) -> None:
        super().enter()
        self.entries = _Operations()

    def pull(self, seeds: list[tuple[Value, Value]], variables: list[Value]) -> list[Value]:
        """Run a reverse pass, of which there may be several."""
        self.ghost.begin()
        for place, cotangent in seeds:
            self.ghost.send(name(place), cotangent)
        found: list[Value] = super().pull(seeds, variables)  # type: ignore[misc]
        self.ghost.finish(variables, found)
        return found

    def walk(self, collected: list[Value], first: int) -> None:
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
