"""Weak tables: each entry lasts only as long as its object lives.

The tables of the module `weakref` remove a dead entry by a callback written in Python. The callback may run between any
two instructions, and an interrupt that arrives within it is lost. Here only C code runs when an object dies.
"""

import functools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")
Name = TypeVar("Name")


class LivingTable(Generic[Key, Item]):
    """A mapping whose keys are objects, compared by identity and held weakly. It iterates in the order of insertion."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Key], Item]] = {}

    def __setitem__(self, key: Key, item: Item) -> None:
        place = id(key)
        self._entries[place] = weakref.ref(key, functools.partial(self._entries.pop, place)), item

    def __contains__(self, key: object) -> bool:
        entry = self._entries.get(id(key))
        return entry is not None and entry[0]() is key

    def get(self, key: Key) -> Item | None:
        """The item of an object, or None."""
        return self._entries[id(key)][1] if key in self else None

    def discard(self, key: Key) -> None:
        """Remove an object, if it is there."""
        if key in self:
            self._entries.pop(id(key), None)

    def clear(self) -> None:
        self._entries.clear()

    def __iter__(self) -> Iterator[Key]:
        alive = (known() for known, _ in list(self._entries.values()))
        return (key for key in alive if key is not None)

    def __len__(self) -> int:
        return len(self._entries)


class LivingSet(LivingTable[Key, None]):
    """A set of objects, compared by identity and held weakly."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        super().__init__()
        for key in keys:
            self.add(key)

    def add(self, key: Key) -> None:
        """Add an object."""
        if key not in self:
            self[key] = None


class LivingItems(dict[Name, "weakref.ref[Item]"]):
    """A mapping of names to objects that it holds weakly; an entry lasts as long as its object lives."""

    def enter(self, name: Name, item: Item) -> Item:
        """Enter an object by a name, and return it."""
        self[name] = weakref.ref(item, functools.partial(self.pop, name))
        return item

    def item(self, name: Name) -> Item | None:
        """The object that has a name, or None."""
        known = self.get(name)
        return None if known is None else known()


def forgetting(table: dict[Name, Item], name: Name) -> Callable[..., object]:
    """Return a weak reference's callback that drops a table entry. It runs no Python code that could be interrupted."""
    return functools.partial(table.pop, name)


def for_each_living(compute: Callable[[Key], Item]) -> Callable[[Key], Item]:
    """Return a function of one object that remembers each result as long as the object lives."""
    results: dict[int, Item] = {}
    living: dict[int, list[object]] = {}

    @functools.wraps(compute)
    def remembered(key: Key) -> Item:
        place = id(key)
        try:
            return results[place]
        except KeyError:
            result = compute(key)
        living[place] = [weakref.ref(key, functools.partial(table.pop, place)) for table in (results, living)]
        results[place] = result
        return result

    return remembered
