"""The parts that the three languages share: nodes with places, reading by a grammar, errors with line and column.

A language is a grammar and a class of `Reader` with one method for each rule; the method makes the rule's node.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, NamedTuple, Self


class Place(NamedTuple):
    """The line and column of a node in its file, both counted from 1."""

    line: int
    column: int


class CalculusError(Exception):
    """The base of the errors of the calculi; the message ends with the place, if it is known."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        self.place = place
        super().__init__(message if place is None else f"line {place.line}, column {place.column}: {message}")


class IllFormed(CalculusError):
    """A text that is not a program."""


class IllTyped(CalculusError):
    """A program that breaks a rule of the type system; the message has the rule and the term."""


class Stuck(CalculusError):
    """A program that cannot take a step and is not finished; well-typed programs never are."""


class TooManySteps(CalculusError):
    """A program that did not finish within the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"not finished after {limit} steps; raise the limit with --steps, or steps= in Python")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Node:
    """A piece of syntax; its place does not count when nodes are compared."""

    place: Place | None = dataclasses.field(default=None, compare=False, repr=False)

    def parts(self) -> tuple[Any, ...]:
        """The fields, in the order of the definition, without the place."""
        kind: Any = type(self)
        return tuple([getattr(self, name) for name in _names(kind)])

    def rebuilt(self, change: Callable[[Any], Any]) -> Self:
        """The same node with every node among its fields, or in a tuple of them, changed."""
        return type(self)(*[_changed(part, change) for part in self.parts()], place=self.place)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.name != "place")


def _changed(part: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(part, Node):
        return change(part)
    return tuple(_changed(item, change) for item in part) if type(part) is tuple else part


class Reader:
    """Reads a language: the method named after a rule of the grammar makes its node from the place and the parts."""

    grammar: str
    starts: tuple[str, ...]

    @cached_property
    def _parser(self) -> Any:
        try:
            import lark
        except ImportError as error:
            raise ImportError("reading a calculus needs lark: pip install 'effgrad[papers]'") from error
        return lark.Lark(self.grammar, parser="lalr", propagate_positions=True, start=list(self.starts))

    def read(self, text: str, start: str) -> Any:
        """The node of a text; raises `IllFormed` with the place and what would fit there."""
        parser = self._parser
        from lark import Tree, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

        try:
            tree = parser.parse(text, start=start)
        except UnexpectedCharacters as error:
            raise IllFormed(f"unexpected {error.char!r}", Place(error.line, error.column)) from None
        except (UnexpectedToken, UnexpectedEOF) as error:
            raise _unexpected(error, text, parser) from None
        # Bottom up and not by recursion: a program may be nested deeper than Python's stack.
        made: dict[int, Any] = {}
        for node in tree.iter_subtrees():
            parts = [made[id(c)] if isinstance(c, Tree) else c for c in node.children]
            place = None if node.meta.empty else Place(node.meta.line, node.meta.column)
            made[id(node)] = getattr(self, str(node.data))(place, *parts)
        return made[id(tree)]


def _unexpected(error: Any, text: str, parser: Any) -> IllFormed:
    lines = text.split("\n")
    end = Place(len(lines), len(lines[-1]) + 1)
    token: Any = getattr(error, "token", None)
    at_end = token is None or token.type == "$END"
    known = {t.name: t.pattern.value for t in parser.terminals if t.pattern.type == "str"}
    expected = sorted({known.get(name, name.lower().replace("_", " ")) for name in error.expected})
    shown = ", ".join(expected[:8]) + (", ..." if len(expected) > 8 else "")
    if at_end:
        return IllFormed(f"unexpected the end; expected {shown}", end)
    return IllFormed(f"unexpected {str(token)!r}; expected {shown}", Place(token.line, token.column))


def pointed(error: CalculusError, text: str) -> str:
    """An error's message with the line of the text that it is about, marked with a caret."""
    lines = text.split("\n")
    place: Place | None = error.place
    if place is None:
        return str(error)
    return f"{error}\n  {lines[place.line - 1]}\n  {' ' * (place.column - 1)}^"


@contextmanager
def deep() -> Iterator[None]:
    """Room for recursion over programs that are nested some ten thousand deep; Python's own limit is a thousand."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 10**5))
    try:
        yield
    except RecursionError:
        raise CalculusError("the program is nested too deeply; bind its parts to names") from None
    finally:
        sys.setrecursionlimit(before)
