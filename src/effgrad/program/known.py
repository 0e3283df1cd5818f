"""A cache of the targets of callables.

A target of a function in Python shares the function's globals and cells, and that of a class may refer to the class.
So a target may keep its callable alive, and is kept for ever only where the callable lives for ever: in a module.
"""

import copy
import functools
import sys
import weakref
from types import FunctionType

from effgrad.arrays.written import running
from effgrad.program.rewritten import ON_DEMAND, SOURCES, root_of
from effgrad.vocabulary import Function, Object

# The callables kept at most for a session: closures, of which a program may make one in each step, and others.
CLOSURES, OTHERS = 64, 1024


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

    def keep_function(self, f: FunctionType, target: Object) -> Object:
        """Keep the target of a function in Python, for the session only if it may keep the function alive."""
        if f.__closure__:
            # Other targets than rewritten functions have copies of the cells, whose contents may change.
            shares = type(target) is FunctionType and id(target.__code__) in SOURCES.rewritten
            return self.keep_for_session(f, target, CLOSURES) if shares else target
        return self.keep(f, target) if is_of_module(f) else self.keep_for_session(f, target, OTHERS)

    def keep_class(self, c: type, target: Object) -> Object:
        """Keep the target of a class, for the session only if it is a class of the program."""
        lasts = root_of(c.__module__) in LASTING
        return self.keep(c, target) if lasts else self.keep_for_session(c, target, OTHERS)

    def keep_for_session(self, f: Function, target: Object, most: int) -> Object:
        """Keep a target no longer than the session, which keeps at most so many of its kind."""
        session = running()
        if session is not None:
            session.closures = session.closures or Passing(self.targets)
            session.closures.keep(f, target, most)
        return target


# The packages whose classes live as long as the process.
LASTING = ON_DEMAND | {"builtins", "effgrad"}


def is_of_module(f: FunctionType) -> bool:
    """Whether a function's globals are those of an imported module, which live as long as the process."""
    module = sys.modules.get(f.__globals__.get("__name__", ""))
    return module is not None and module.__dict__ is f.__globals__


class Passing:
    """The functions and classes whose targets are kept for a session, none of them longer than it lives."""

    def __init__(self, targets: dict[int, Object]) -> None:
        self.targets = targets
        self.living: dict[int, dict[int, Object]] = {CLOSURES: {}, OTHERS: {}}

    def keep(self, f: Function, target: Object, most: int) -> None:
        living, key = self.living[most], id(f)
        if len(living) < most:
            living[key] = weakref.ref(f, functools.partial(self.targets.pop, key))
            self.targets[key] = target

    def forget(self) -> None:
        for living in self.living.values():
            for key in living:
                self.targets.pop(key, None)


class Standing(functools.partial):  # type: ignore[type-arg]
    """A rewritten function that an iterator holds; a pickle of the iterator holds the program's own function."""

    original: Function

    def __new__(cls, target: Object, original: Function) -> "Standing":
        made = super().__new__(cls, target)
        made.original = original
        return made

    def __reduce__(self) -> Object:
        return copy.copy, (self.original,)  # a copy of a function is the function
