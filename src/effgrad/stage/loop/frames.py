"""The names of the functions that are being captured."""

import ast
import builtins
import contextlib
from collections.abc import Iterator, Sequence

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.source import Source
from effgrad.vocabulary import Value


class Retyped(Exception):
    """Capture must begin again with a fact noted that it has found, such as a wider type of a carried name."""

    def __init__(self, key: tuple[Value, str], dtype: Value) -> None:
        self.key, self.dtype = key, dtype


class Returned(Exception):
    """Capture of a function has reached its `return`."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Frame:
    """The names of a function that is being captured."""

    def __init__(self, source: Source, own: dict[str, Value]) -> None:
        self.source, self.own = source, own
        # The statements that follow the current one within a step of the loop, and those of them that follow its block.
        self.rest: Sequence[ast.stmt] = ()
        self.after: Sequence[ast.stmt] = ()

    @contextlib.contextmanager
    def followed_by(self, statements: Sequence[ast.stmt]) -> Iterator[None]:
        """Within this context a block is captured that the given statements follow."""
        outer, self.after = self.after, statements
        try:
            yield
        finally:
            self.after = outer

    def __getitem__(self, name: str) -> Value:
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
