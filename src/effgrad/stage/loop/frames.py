"""The names of the functions that are being captured."""

import ast
import builtins
import contextlib
import functools
from collections.abc import Iterator, Sequence

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.names import bound
from effgrad.stage.loop.source import Source
from effgrad.vocabulary import Value

# Facts about a program that a capture finds: the wider type of a carried name, the kind of a loop's result, and others.
Facts = dict[tuple[Value, str], Value]


class FactFound(Exception):
    """Capture must begin again, with a fact noted that it has found."""

    def __init__(self, key: tuple[Value, str], fact: Value) -> None:
        self.key, self.fact = key, fact


class Returned(Exception):
    """Capture of a function has reached its `return`."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Frame:
    """The names of a function that is being captured."""

    def __init__(self, source: Source, own: dict[str, Value], outer: "Frame | None" = None) -> None:
        # For a function that the captured program has defined, `outer` is the frame that defines it.
        self.source, self.own, self.outer = source, own, outer
        # The statements that follow the current one within a step of the loop, and those of them that follow its block.
        self.rest: Sequence[ast.stmt] = ()
        self.after: Sequence[ast.stmt] = ()
        # For the names of which two branches leave values that no cell can hold, why that is so.
        self.lost: dict[str, str] = {}

    @contextlib.contextmanager
    def followed_by(self, statements: Sequence[ast.stmt]) -> Iterator[None]:
        """Within this context a block is captured that the given statements follow."""
        outer, self.after = self.after, statements
        try:
            yield
        finally:
            self.after = outer

    @functools.cached_property
    def local(self) -> set[str]:
        """The names that the function binds anywhere, so that they never mean a variable from outside it."""
        nodes = [x for s in self.source.body for x in ast.walk(s) if isinstance(x, ast.Global | ast.Nonlocal)]
        return bound(self.source.body).difference(*[x.names for x in nodes])

    def __getitem__(self, name: str) -> Value:
        if name not in self.own and name in self.local:
            raise NotCaptured(self.lost.get(name, f"the name {name!r} is bound in some steps or branches only"))
        if name not in self.own and self.outer is not None:
            return self.outer[name]
        for names in (self.own, self.source.closed, self.source.globals):
            if name in names:
                return names[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NotCaptured(f"the name {name!r} may not be bound here")


class Function:
    """A function that the captured program has defined."""

    def __init__(self, frame: Frame, node: ast.Lambda | ast.FunctionDef, defaults: Sequence[Value]) -> None:
        self.frame, self.node, self.defaults = frame, node, defaults
