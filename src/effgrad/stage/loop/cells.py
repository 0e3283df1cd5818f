"""The cells of a loop: the names that it carries from step to step, in memory that is written at the end of each."""

import ast
from typing import Any

import numpy as np

from effgrad.stage.loop.affine import Affine, NotCaptured
from effgrad.stage.loop.evaluator import Evaluator, common_type
from effgrad.stage.loop.frames import Frame, Retyped
from effgrad.stage.loop.ir import Apply, Block, Buffer, Map, load, walk, written
from effgrad.stage.loop.values import SYMBOLIC, Lazy, View, whole_view

UNBOUND: Any = object()


class Cell:
    """The memory of a name that a loop carries."""

    def __init__(self, view: View, weak: bool) -> None:
        self.view, self.weak = view, weak

    def holds(self, value: Any) -> bool:
        """Whether a value is what the cell has."""
        if self.view.axes:
            return value is self.view
        e = value.value if isinstance(value, Lazy) else None
        if isinstance(value, Affine) and len(value.terms) == 1 and value == Affine(0, ((value.terms[0][0], 1),)):
            e = value.terms[0][0]
        return e is load(self.view.buffer, ())


class Cells:
    """The cells of a loop: names that it carries (`inner`), and those that are only read after it (`outer`)."""

    def __init__(
        self, capture: Evaluator, loop: ast.stmt, frame: Frame, inner: set[str], outer: set[str], names: set[str]
    ) -> None:
        self.capture, self.loop, self.outer, self.names = capture, loop, outer, names
        self.inner: dict[str, Any] = {}
        self.initial: dict[str, Any] = {}
        for name in sorted(inner):
            value = capture.lift(frame.own[name])
            self.initial[name] = value
            self.inner[name] = self.cells(value, name)
            frame.own[name] = self.symbols(self.inner[name])
        self.out: dict[str, Any] = {}

    def cells(self, value: Any, name: str) -> Any:
        """A cell for a value: a view, and whether it is Python's number; of a tuple, cells; else the value itself."""
        capture = self.capture
        if isinstance(value, tuple):
            return tuple(self.cells(v, f"{name}_{k}") for k, v in enumerate(value))
        if not isinstance(value, (*SYMBOLIC, bool, int, float, np.generic)):
            return value
        lazy = capture.lazy(value)
        dtype = capture.retyped.get((self.loop, name), lazy.dtype)
        view = whole_view(capture.buffer(name.strip("$"), lazy.shape, dtype), lazy.shape)
        capture.assign(view, lazy)
        if not view.axes:
            capture.private.add(view.buffer)
        return Cell(view, lazy.weak)

    def symbols(self, cell: Any) -> Any:
        """The value of a cell."""
        if isinstance(cell, tuple):
            return tuple(map(self.symbols, cell))
        if not isinstance(cell, Cell):
            return cell
        return cell.view if cell.view.axes else self.capture.symbol(load(cell.view.buffer, ()), cell.weak)

    def update(self, frame: Frame) -> None:
        """At the end of a step, let the cells have the names' values."""
        values = [(name, cell, frame.own.get(name, UNBOUND)) for name, cell in self.inner.items()]
        self.check_aliases(values)
        for name in self.outer:
            if name not in frame.own:
                raise NotCaptured(f"{name!r} is bound in some steps only")
            self.out[name] = self.copied(frame.own[name], name)
        pairs = [p for name, cell, value in values for p in self.pairs(cell, value, name)]
        # All are read before the first is written.
        lazies = [(name, cell, self.capture.lazy(value)) for name, cell, value in pairs]
        for name in self.names:
            frame.own.pop(name, None)
        del pairs, values
        while lazies:
            name, cell, value = lazies.pop(0)
            self.assign(cell, value, name)

    def pairs(self, cell: Any, value: Any, name: str) -> list[tuple[str, "Cell", Any]]:
        if isinstance(cell, tuple):
            if not isinstance(value, tuple) or len(value) != len(cell):
                raise NotCaptured(f"{name!r} changes its structure")
            numbered = enumerate(zip(cell, value, strict=True))
            return [p for k, (c, v) in numbered for p in self.pairs(c, v, f"{name}_{k}")]
        if value is cell or (isinstance(cell, Cell) and cell.holds(value)):
            return []
        if not isinstance(cell, Cell) or value is UNBOUND:
            raise NotCaptured(f"{name!r} is bound to something else in each step")
        if not isinstance(value, (*SYMBOLIC, bool, int, float, np.generic)):
            raise NotCaptured(f"{name!r} becomes a {type(value).__name__}")
        return [(name, cell, value)]

    def assign(self, cell: "Cell", value: Lazy, name: str) -> None:
        capture, view = self.capture, cell.view
        if value.shape != view.shape:
            raise NotCaptured(f"{name!r} changes its shape from {view.shape} to {value.shape}")
        common = common_type([Lazy((), (), load(Buffer("", (), view.dtype), ()), cell.weak), value])
        if common != view.dtype:
            raise Retyped((self.loop, name), common)
        capture.assign(view, value)

    def copied(self, value: Any, name: str) -> Any:
        """The value of a name that is only read after the loop, kept in each step."""
        if isinstance(value, tuple):
            return tuple(self.copied(v, name) for v in value)
        if not isinstance(value, (*SYMBOLIC,)):
            return value
        lazy = self.capture.lazy(value)
        view = self.capture.store(lazy, name.strip("$"))
        return view if view.axes else self.capture.symbol(load(view.buffer, ()), lazy.weak)

    def check_aliases(self, values: list[tuple[str, Any, Any]]) -> None:
        """Raise where a cell, which is a copy, would hide that a name shares memory that is written."""
        writes = {b for s in walk(self.capture.block) for b in written(s)}
        made = _made_inside(self.capture.block)
        views = [(name, value.buffer) for name, _, value in values if isinstance(value, View)]
        for name, cell, value in values:
            if not isinstance(cell, Cell) or not cell.view.axes or value is cell.view:
                continue
            first, own = self.initial[name], cell.view.buffer
            if own in writes and isinstance(first, View) and not first.own:
                raise NotCaptured(f"{name!r} is bound to a new array in each step, and written to before")
            if not isinstance(value, View):
                continue
            source = value.buffer
            if source is not own and source not in made and not writes.isdisjoint((source, own)):
                raise NotCaptured(f"{name!r} is bound to an array that has another name and is written to")
            if own in writes and any(b is source for other, b in views if other != name):
                raise NotCaptured(f"{name!r} and another name are bound to one array that is written to")

    def after(self, frame: Frame) -> None:
        """After the loop: carried names have their cells, others are gone."""
        for name in self.names:
            if name not in self.inner:
                frame.own.pop(name, None)
        frame.own.update(self.out)
        frame.own.update({name: self.symbols(cell) for name, cell in self.inner.items()})


def _made_inside(block: Block) -> set[Buffer]:
    """The buffers that a block begins by writing: what they held before the step is nobody's."""
    seen: set[Buffer] = set()
    made: set[Buffer] = set()
    for s in walk(block):
        for b in written(s):
            if b not in seen and (isinstance(s, Apply) or (isinstance(s, Map) and not s.stores[0].adds)):
                made.add(b)
            seen.add(b)
    return {b for b in made if "_" in b.name and not b.name.startswith("x_")}
