"""A cache of the targets of callables."""

import copy
import functools
import weakref
from types import FunctionType

from effgrad.arrays.written import running
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Function, Object

CLOSURES = 64  # kept at most for a session


class Known:
    """The targets of resolved callables by the callable's id, each kept as long as the callable lives."""

    def __init__(self) -> None:
        self.targets: dict[int, Object] = {}
        self.living: dict[int, Object] = {}

    def keep(self, f: Function, target: Object) -> Object:
        key = id(f)
        try:
            gone = functools.partial(self.targets.pop, key), functools.partial(self.living.pop, key)
            self.living[key] = [weakref.ref(f, forget) for forget in gone]
        except TypeError:  # it allows no weak references: a function of NumPy's, which lives as long as NumPy
            self.living[key] = f
        self.targets[key] = target
        return target

    def keep_for_session(self, f: Function, target: Object) -> Object:
        """Keep a closure's target, which shares the cells, and so may hold the closure, no longer than the session.

        Only a session's first closures are kept: a program may make one in each step, over large arrays.
        """
        session = running()
        # Other targets than rewritten functions have copies of the cells, whose contents may change.
        if session is not None and type(target) is FunctionType and id(target.__code__) in SOURCES.rewritten:
            session.closures = session.closures or Closures(self)
            if len(session.closures.keys) < CLOSURES:
                session.closures.keys.append(id(f))
                self.keep(f, target)
        return target


class Closures:
    """The closures whose targets are kept for a session."""

    def __init__(self, known: Known) -> None:
        self.known, self.keys = known, list[int]()

    def forget(self) -> None:
        for key in self.keys:
            self.known.targets.pop(key, None)
            self.known.living.pop(key, None)


class Standing(functools.partial):  # type: ignore[type-arg]
    """A rewritten function that an iterator holds; a pickle of the iterator holds the program's own function."""

    original: Function

    def __new__(cls, target: Object, original: Function) -> "Standing":
        made = super().__new__(cls, target)
        made.original = original
        return made

    def __reduce__(self) -> Object:
        return copy.copy, (self.original,)  # a copy of a function is the function
