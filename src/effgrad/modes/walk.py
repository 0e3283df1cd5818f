"""The common part of the reverse modes whose record is a list, walked back once for each reverse pass."""

import abc
from collections.abc import Iterable
from typing import Any, NamedTuple

from effgrad.modes.backward import ReverseMode
from effgrad.modes.rerun import CheckpointRun
from effgrad.primitives import cotangents
from effgrad.vocabulary import Cotangent, Entry, Value


class ListMode(ReverseMode):
    """A reverse mode whose record is a list, and whose shadows are positions in it.

    The reverse pass is one walk back along the list, with the cotangents in a parallel list. It may be repeated.
    """

    def enter(self) -> None:
        self.entries: Any = []
        self.seeds: list[tuple[int, Value]] = []

    def append(self, entry: Entry) -> int:
        self.entries.append(entry)
        return len(self.entries) - 1

    def input(self) -> int:
        return self.append(None)

    def rerun(self, first: CheckpointRun) -> range:
        place = len(self.entries) + 1
        names = range(place, place + len(first.parts))
        self.append(Rerun(first, names))
        self.entries += [None] * len(names)
        return names

    def seed(self, value: Value, cotangent: Cotangent) -> None:
        self.seeds.append((self.seeded(value), cotangent))

    def cotangents(self, shadows: list[int]) -> list[Cotangent]:
        return self.pull(self.seeds, shadows)

    def pull(self, seeds: list[tuple[int, object]], shadows: list[int]) -> list[Cotangent]:
        """Return the cotangents of the inputs from those of some values; this may be called any number of times."""
        collected = self.no_cotangents()
        for name, cotangent in seeds:
            collected[name] = cotangents.add(collected[name], cotangent)
        self.walk(collected, 0)
        return [collected[name] for name in shadows]

    def no_cotangents(self) -> Value:
        """Return a list, or an object used like one, with a cotangent for each entry, at first None."""
        return [None] * len(self.entries)

    def walk(self, collected: Value, first: int) -> None:
        """Walk back from the end of the list to the entry `first`.

        The entries of a rerun part (`first` is not 0) are walked only once, and dropped on the way.
        """
        entries = self.entries
        for name in range(len(entries) - 1, first - 1, -1):
            entry = entries[name]
            if type(entry) is Rerun:
                entry = None  # otherwise this frame would keep the entry alive while the checkpoint is walked
                self.walk_again(collected, name, once=first > 0)
            elif entry is not None:
                self.pass_on(collected, name, entry)
                if first:
                    entries[name] = None

    def pass_on(self, collected: Value, name: int, entry: object) -> None:
        """Pass the cotangent of an operation's result on to its arguments."""
        cotangent = collected[name]
        if cotangent is not None:
            collected[name] = None
            for target, part in self.back(entry, cotangent):
                collected[target] = cotangents.add(collected[target], part)

    def walk_again(self, collected: Value, name: int, once: bool) -> None:
        """Rerun a checkpoint, recording it at the end of the list, walk back over its record, and drop the record."""
        rerun = self.entries[name]
        given = [collected[name] for name in rerun.names]
        if all(cotangent is None for cotangent in given):
            return
        end = len(self.entries)
        parts = rerun.first.again()
        collected.extend([None] * (len(self.entries) - end))
        for result, part, cotangent in zip(rerun.names, parts, given, strict=True):
            collected[result] = None
            if cotangent is not None:
                collected[part.shadow] = cotangents.add(collected[part.shadow], cotangent)
        if once:
            self.entries[name] = None
        # Checkpoints may nest deeply, so while inner ones are walked, this frame keeps nothing of the outer one.
        del rerun, parts, given
        part = cotangent = None
        self.walk(collected, end)
        del self.entries[end:], collected[end:]

    @abc.abstractmethod
    def back(self, entry: Entry, cotangent: Cotangent) -> Iterable[tuple[int, Value]]:
        """Return pairs of an argument's name and its share of the cotangent."""


class Rerun(NamedTuple):
    """The entry of a checkpoint: its first run, and the names of the parts of its result."""

    first: CheckpointRun
    names: range
