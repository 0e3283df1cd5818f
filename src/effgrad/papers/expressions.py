"""Expressions: symbolic smooth functions, differentiated by the chain rule.

EFF uses them as base constants (the sets Op_n of Sigal 2024, section 8.2, closed under partial derivatives). The
differential tests use their derivatives as the expected results. An expression is a graph, and each shared node is
visited once. The partials of the functions are those of the table in `lam/primitives.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from effgrad.papers.lam.primitives import CONSTANTS
from effgrad.papers.lam.reading import parse
from effgrad.papers.lam.semantics import Interpreter
from effgrad.papers.syntax import Value
from effgrad.vocabulary import Object

Operator = Callable[["Operators", Value], Object]


def _binary(name: str) -> tuple[Operator, Operator]:
    """Return the methods of an operator with the object on the left, and on the right."""
    return lambda self, other: self.call(name, self, other), lambda self, other: self.call(name, other, self)


class Operators:
    """A base class that maps Python's operators, and the smooth functions as methods (`x.sin()`), to `call`."""

    def call(self, name: str, *arguments: Value) -> Object:
        """Apply an operator or function of the table to arguments."""
        raise NotImplementedError

    __add__, __radd__ = _binary("+")
    __sub__, __rsub__ = _binary("-")
    __mul__, __rmul__ = _binary("*")
    __truediv__, __rtruediv__ = _binary("/")

    def __neg__(self) -> Object:
        return self.call("negate", self)

    def __getattr__(self, name: str) -> Object:
        if name not in CONSTANTS or CONSTANTS[name].kind != "smooth":
            raise AttributeError(name)
        return lambda *others: self.call(name, self, *others)


class Expression(Operators):
    """A symbolic number, which supports Python's operators.

    Expressions are compared by identity, so that shared nodes are recognised.
    """

    def call(self, name: str, *arguments: Value) -> Expression:
        return _call(name, *arguments)

    def __lt__(self, other: Value) -> bool:
        """Compare at the samples of the arguments, so that a program takes the branch that it takes there."""
        first, second = (sampled(e) if isinstance(e, Expression) else e for e in (self, other))
        return bool(first < second)

    def __str__(self) -> str:
        return shown(self)


@dataclass(frozen=True, eq=False)
class Number(Expression):
    value: Value


@dataclass(frozen=True, eq=False)
class Argument(Expression):
    """The argument with an index, counted from 1. `sample` is the number for it at which branches are decided."""

    index: int
    sample: Value = None


@dataclass(frozen=True, eq=False)
class Call(Expression):
    name: str
    arguments: tuple[Expression, ...]


def _call(name: str, *arguments: Value) -> Expression:
    """Return a call, simplified if an argument is the constant 0 or 1, as is common in derivatives."""
    parts = tuple(a if isinstance(a, Expression) else Number(a) for a in arguments)
    known = [part.value if isinstance(part, Number) else None for part in parts]
    match name, known:
        case ("+", [0, _]) | ("*", [1, _]):
            return parts[1]
        case ("+", [_, 0]) | ("-", [_, 0]) | ("*", [_, 1]) | ("/", [_, 1]):
            return parts[0]
        case ("*", [0, _]) | ("*", [_, 0]) | ("/", [0, _]):
            return Number(0)
        case ("-", [0, _]):
            return Call("negate", parts[1:])
    return Call(name, parts)


def function(names: Sequence[str], text: str) -> Expression:
    """Parse a function body in the syntax of `lam`, as an expression of the named arguments.

    >>> print(function(["x", "y"], "x * sin y"))
    x1 * sin x2
    """
    scope = {name: Argument(i) for i, name in enumerate(names, 1)}
    result = Interpreter(reals=Number).value(parse(text), scope)
    return result if isinstance(result, Expression) else Number(result)


def value(expression: Expression, arguments: Sequence[Value], reals: Callable[[Value], Value] = float) -> Value:
    """Evaluate an expression at a point, over any type of numbers; `reals` converts literals to it."""

    def at(node: Expression, of: Callable[[Expression], Value]) -> Value:
        return arguments[node.index - 1] if isinstance(node, Argument) else _result(node, of, reals)

    return _visit(expression, at)


def _result(node: Expression, of: Callable[[Expression], Value], reals: Callable[[Value], Value]) -> Value:
    """The value of a number or a call; `of` returns the values of the call's arguments."""
    match node:
        case Number(number):
            return reals(number)
        case Call(name, (one,)):
            return CONSTANTS[name].meaning(of(one))
        case Call(name, (first, second)):
            return CONSTANTS[name].meaning((of(first), of(second)))
    raise AssertionError(node)


def sampled(expression: Expression) -> Value:
    """Evaluate an expression at the samples of its arguments."""

    def at(node: Expression, of: Callable[[Expression], Value]) -> Value:
        return node.sample if isinstance(node, Argument) else _result(node, of, lambda number: number)

    return _visit(expression, at)


def partial(expression: Expression, index: int) -> Expression:
    """Return the partial derivative with respect to the argument with an index.

    >>> print(partial(function(["x", "y"], "x * sin (x * y)"), 2))
    x1 * (cos (x1 * x2) * x1)
    """

    def at(node: Expression, of: Callable[[Expression], Value]) -> Value:
        match node:
            case Argument(i):
                return Number(int(i == index))
            case Call(name, parts):
                total: Expression = Number(0)
                for rule, part in zip(_partials(name), parts, strict=True):
                    total = total + value(rule, parts, Number) * of(part)
                return total
        return Number(0)

    result: Expression = _visit(expression, at)
    return result


@cache
def _partials(name: str) -> tuple[Expression, ...]:
    row = CONSTANTS[name].partials[0]
    return tuple(function([f"x{i}" for i in range(1, len(row) + 1)], text) for text in row)


def _visit(root: Expression, at: Callable[[Expression, Callable[[Expression], Value]], Value]) -> Value:
    """Call `at` once for each node, after its parts, and return the result for the root.

    `at` receives the node and a function that returns the results of its parts. The traversal is a loop, since a
    recursion over deep expressions would exceed Python's limit.
    """
    done: dict[Expression, Value] = {}
    todo = [root]
    while todo:
        node = todo[-1]
        waiting = [p for p in node.arguments if p not in done] if isinstance(node, Call) and node not in done else []
        if waiting:
            todo += waiting
            continue
        todo.pop()
        if node not in done:
            done[node] = at(node, done.__getitem__)
    return done[root]


_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}


def shown(expression: Expression, names: Sequence[str] = (), level: int = 0) -> str:
    """The text of an expression in the syntax of `lam`; arguments without a name are x1, x2, ...

    An expression whose precedence is below `level` is put in parentheses.
    """
    match expression:
        case Number(number):
            text = str(float(number)) if isinstance(number, Fraction | int) else str(number)
            return f"({text})" if text.startswith("-") and level else text
        case Argument(index):
            return names[index - 1] if index <= len(names) else f"x{index}"
        case Call(name, (left, right)) if name in _LEVEL:
            own = _LEVEL[name]
            text = f"{shown(left, names, own)} {name} {shown(right, names, own + 1)}"
            return f"({text})" if own < level else text
        case Call(name, parts):
            text = f"{name} {shown(parts[0], names, 4)}" if len(parts) == 1 else (
                f"{name} ({', '.join(shown(part, names) for part in parts)})")  # fmt: skip
            return f"({text})" if level > 3 else text
    raise AssertionError(expression)
