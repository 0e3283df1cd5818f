"""Tables to which modules add rows that nobody changes, so that each fact is stated in one place."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn


class Registry(dict[Any, Any]):
    """A table in which each key is entered once and its row never changes."""

    __slots__ = ()

    def enter(self, rows: Mapping[object, object] | Iterable[object]) -> None:
        """Enter rows, or keys alone with the row True; raise ValueError for a key that has a row already."""
        for key, row in (rows if isinstance(rows, Mapping) else dict.fromkeys(rows, True)).items():
            if key in self:
                raise ValueError(f"there is a row for {key!r} already")
            super().__setitem__(key, row)

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("rows of a registry are entered once, and stay")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse
