"""A cache of the targets of callables."""

import copy
import functools
import weakref

from effgrad.vocabulary import Function, Object


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


class Standing(functools.partial):  # type: ignore[type-arg]
    """A rewritten function that an iterator holds; a pickle of the iterator holds the program's own function."""

    original: Function

    def __new__(cls, target: Object, original: Function) -> "Standing":
        made = super().__new__(cls, target)
        made.original = original
        return made

    def __reduce__(self) -> Object:
        return copy.copy, (self.original,)  # a copy of a function is the function
