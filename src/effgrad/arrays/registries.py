"""A table of rows that modules enter and nobody changes: a fact stands in one place."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn


class Registry(dict[Any, Any]):
    """Rows by what they are about: each is entered once, and stays."""

    __slots__ = ()

    def enter(self, rows: Mapping[object, object] | Iterable[object]) -> None:
        """Enter rows, or keys of which nothing more is said; ValueError where there is a row already."""
        for key, row in (rows if isinstance(rows, Mapping) else dict.fromkeys(rows, True)).items():
            if key in self:
                raise ValueError(f"there is a row for {key!r} already")
            super().__setitem__(key, row)

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("rows of a registry are entered once, and stay")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse
