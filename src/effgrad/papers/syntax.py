"""The parts that the three languages share: nodes with places, reading by a grammar, errors with line and column.

A language is a module of node classes, a grammar whose rules are named after them, and a `Reader` that combines both.
"""

import dataclasses
import string
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, dataclass_transform

from effgrad.vocabulary import Object

# A value at run time: a number of any type that has Python's operators, a pair, a list, a function.
Value: TypeAlias = Any


class Place(NamedTuple):
    """The line and column of a node in its file, both counted from 1."""

    line: int
    column: int


class CalculusError(Exception):
    """The base of the errors of the calculi. The message begins with the place, if it is known."""

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


@dataclass_transform(frozen_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Node:
    """A piece of syntax; each kind of it is a frozen data class. Comparisons of nodes ignore their places.

    A term may contain types, which are nodes of another `sort`; a traversal visits only nodes of the sort that it began
    with. `form` is the format string of a node's concrete syntax. A number in it is the least level that the part there
    may have: a part of a lower `level` is put in parentheses.
    """

    place: Place | None = dataclasses.field(default=None, compare=False, repr=False)

    sort: ClassVar[str] = "term"
    form: ClassVar[str]
    level: ClassVar[int] = 9
    # For each field in which names are bound, the fields that hold these names.
    scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True)(cls)

    def __str__(self) -> str:
        return self.written()

    def written(self, level: int = 0) -> str:
        """The node in the concrete syntax, in parentheses if its level is lower than the given one."""
        text = self.text()
        return f"({text})" if self.level < level else text

    def text(self) -> str:
        # A list comprehension calls `_written` from Python, which takes no space on the C stack: nodes may nest deeply.
        parts = iter(self.parts())
        return "".join(
            [text if wants is None else text + _written(next(parts), wants) for text, wants in _pieces(self.form)]
        )

    def fields(self) -> list[tuple[str, Object]]:
        """The names and values of the fields, in the order of the definition, without the place."""
        kind: Any = type(self)
        return [(name, getattr(self, name)) for name in _names(kind)]

    def parts(self) -> tuple[Object, ...]:
        """The values of the fields."""
        kind: Any = type(self)
        return tuple([getattr(self, name) for name in _names(kind)])

    def nodes(self) -> list[Object]:
        """The nodes of this node's sort in its fields, also those inside tuples."""
        return self._nodes(self.parts())

    def _nodes(self, parts: tuple[object, ...]) -> list[Object]:
        found = []
        for part in parts:
            if type(part) is tuple:
                found += self._nodes(part)
            elif isinstance(part, Node) and part.sort == self.sort:
                found.append(part)
        return found

    def all(self) -> Iterator[Self]:
        """Yield this node and all nodes below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.nodes())

    def replaced(self, **parts: Object) -> Self:
        """Return a copy of the node with new values for some fields."""
        return dataclasses.replace(self, **parts)

    def rebuilt(self, change: Callable[[Object], Object]) -> Self:
        """Return a copy of the node with `change` applied to each of its `nodes`."""
        return type(self)(*[self.changed(part, change) for part in self.parts()], place=self.place)

    def changed(self, part: object, change: Callable[[object], object]) -> Object:
        """Return a field's value with `change` applied to every node of this sort in it."""
        if type(part) is tuple:
            return tuple([self.changed(item, change) for item in part])
        return change(part) if isinstance(part, Node) and part.sort == self.sort else part

    @cached_property
    def free(self) -> frozenset[str]:
        """The variables that occur free. They are cached, since substitution asks for them at every node."""
        found = _CLOSED
        for name, part in self.__dict__.items():
            inner = _CLOSED
            if isinstance(part, Node):
                inner = part.free
            elif type(part) is tuple:
                inner = inner.union(*[item.free for item in part if isinstance(item, Node)])
            if inner:
                found |= inner.difference(self.bound_in(name)) if name in self.scopes else inner
        return found

    def bound_in(self, field: str) -> list[str]:
        """The names that are bound in a field."""
        return [getattr(self, name) for name in self.scopes.get(field, ())]

    def rebuilt_inside(self, change: Callable[[Object, list[str]], Object]) -> Self:
        """Do the same as `rebuilt`, but call `change` also with the names that this node binds around the part."""

        def field(name: str, part: object) -> Object:
            bound = self.bound_in(name)
            return self.changed(part, lambda node: change(node, bound))

        return type(self)(*[field(name, part) for name, part in self.fields()], place=self.place)

    def renamed(self, names: dict[str, str], fresh: Callable[[str], str]) -> Self:
        """Return a copy with the free variables renamed by `names`, and every bound name replaced by a `fresh` one."""
        binders = [field for fields in self.scopes.values() for field in fields]
        new = {name: fresh(name) for name in dict.fromkeys([getattr(self, field) for field in binders])}
        whole = self.rebuilt_inside(lambda node, bound: node.renamed(names | {n: new[n] for n in bound}, fresh))
        return whole.replaced(**{field: new[getattr(self, field)] for field in binders})


class Variable(Node):
    """The use of a name."""

    name: str
    form = "{}"

    @cached_property
    def free(self) -> frozenset[str]:
        return frozenset({self.name})

    def renamed(self, names: dict[str, str], fresh: Callable[[str], str]) -> Self:
        return self.replaced(name=names.get(self.name, self.name))


_CLOSED = frozenset[str]()


@cache
def _names(kind: Object) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.name != "place")


@cache
def _pieces(form: str) -> list[tuple[str, str | None]]:
    """The pieces of a form: literal text, and the format of the field after it, which is None if no field follows."""
    return [(literal, wants) for literal, _, wants, _ in string.Formatter().parse(form)]


def _written(part: object, wants: str) -> str:
    """The text of a node's field: of a node, of a tuple of nodes, or of a name.

    `wants` is the field's format: for a node the least level, for a tuple the separator.
    """
    if isinstance(part, Node):
        return part.written(int(wants or 0))
    return (wants or ", ").join([_written(item, "") for item in part]) if type(part) is tuple else str(part)


class Type(Node):
    """A type; arrows have level 0, sums 1, products 2."""

    sort = "type"


class Base(Type):
    """A type without parts, by its name."""

    name: str
    form = "{}"


class Product(Type):
    left: Type
    right: Type
    form, level = "{:3} * {:2}", 2


class Arrow(Type):
    argument: Type
    result: Type
    form, level = "{:1} -> {}", 0


def power(type_: Type, n: int) -> Type:
    """The n-fold product of a type: nested pairs to the right."""
    return type_ if n == 1 else Product(type_, power(type_, n - 1))


class Reader:
    """Reads the texts of a language. Each rule of the grammar makes a node of the class that it is named after.

    If the reader has a method of the rule's name, this makes the node instead, from the place and the parts.
    """

    grammar: str
    starts: tuple[str, ...]
    terms: tuple[ModuleType, ...]

    @cached_property
    def kinds(self) -> dict[str, Object]:
        """The classes of nodes by the names of their rules."""
        named = [item for module in self.terms for item in vars(module).items()]
        return {name.lower(): kind for name, kind in named if isinstance(kind, type)}

    def make(self, rule: str, place: Place | None, parts: list[object]) -> Object:
        """Make the node of a rule from its parts."""
        method = getattr(self, rule, None)
        return self.kinds[rule](*parts, place=place) if method is None else method(place, *parts)

    @cached_property
    def _parser(self) -> Object:
        try:
            import lark
        except ImportError as error:
            raise ImportError("reading a calculus needs lark: pip install 'effgrad[papers]'") from error
        return lark.Lark(self.grammar, parser="lalr", propagate_positions=True, start=list(self.starts))

    def read(self, text: str, start: str) -> Object:
        """Return the node of a text; raise `IllFormed` with the place and the tokens expected there."""
        parser = self._parser
        from lark import Tree, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

        try:
            tree = parser.parse(text, start=start)
        except UnexpectedCharacters as error:
            raise IllFormed(f"unexpected {error.char!r}", Place(error.line, error.column)) from None
        except (UnexpectedToken, UnexpectedEOF) as error:
            raise _unexpected(error, text, parser) from None
        # The loop goes bottom up. A recursion would fail on programs that are nested deeper than Python's stack.
        made: dict[int, Object] = {}
        for node in tree.iter_subtrees():
            parts = [made[id(c)] if isinstance(c, Tree) else None if c is None else str(c) for c in node.children]
            place = None if node.meta.empty else Place(node.meta.line, node.meta.column)
            made[id(node)] = self.make(str(node.data), place, parts)
        return made[id(tree)]


def _unexpected(error: Any, text: str, parser: Object) -> IllFormed:
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
    """An error's message, the line of the text that it is about, and a caret under the column."""
    lines = text.split("\n")
    place: Place | None = error.place
    if place is None:
        return str(error)
    return f"{error}\n  {lines[place.line - 1]}\n  {' ' * (place.column - 1)}^"


@contextmanager
def deep() -> Iterator[None]:
    """Allow recursion over programs that are nested some ten thousand deep; Python's default limit is a thousand."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 10**5))
    try:
        yield
    except RecursionError:
        raise CalculusError("the program is nested too deeply; bind its parts to names") from None
    finally:
        sys.setrecursionlimit(before)
