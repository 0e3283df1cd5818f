"""Inference from the syntax: the names in a function that are certainly numbers, whose operators stay Python's."""

import ast
from typing import Any

from effgrad.vocabulary import Object

# Functions whose results are numbers, and never arrays.
NUMERIC_CALLS = frozenset(("len", "int", "float", "bool", "range"))

# Classes for which `isinstance` of a traced value agrees with that of its plain value, so that it is not rewritten.
CONCRETE = frozenset(
    """int float complex bool str bytes list tuple dict set type
    ndarray generic number integer floating matrix""".split()
)


def yields_number(node: Any, numbers: frozenset[str]) -> bool:
    match node:
        case ast.Constant(value):
            return type(value) in (int, float, bool, complex, str)
        case ast.Name(name):
            return name in numbers
        case ast.BinOp(ast.Constant(str() | bytes()), ast.Mod(), _):
            return False
        case ast.BinOp(left, _, right):
            return yields_number(left, numbers) and yields_number(right, numbers)
        case ast.UnaryOp(_, operand):
            return yields_number(operand, numbers)
        case ast.Compare(left, _, others):
            return all(yields_number(part, numbers) for part in (left, *others))
        case ast.Attribute(_, name):
            return name in ("ndim", "size")
        case ast.Subscript(ast.Attribute(_, "shape"), index):
            return not isinstance(index, ast.Slice)
        case ast.Call(ast.Name(name), _, []):
            return name in NUMERIC_CALLS - {"range"}
    return False


def is_concrete(kind: ast.AST) -> bool:
    """Whether all classes in the second argument of `isinstance` have names in `CONCRETE`."""
    if isinstance(kind, ast.Tuple):
        return all(map(is_concrete, kind.elts))
    name = kind.id if isinstance(kind, ast.Name) else kind.attr if isinstance(kind, ast.Attribute) else ""
    return name in CONCRETE


def may_be_truths(node: ast.Compare, of_library: bool) -> bool:
    """Whether the operands of `is` may be truth values; those of a library are its sentinels, if none is written."""
    parts = (node.left, *node.comparators)
    if any(isinstance(part, ast.Constant) and type(part.value) is not bool for part in parts):
        return False
    return not of_library or any(isinstance(part, ast.Constant | ast.Compare) for part in parts)


def numbers_in(function: Any) -> frozenset[str]:
    """The names that a function binds only to numbers, as the greatest consistent set."""
    if isinstance(function, ast.Lambda):
        return frozenset()
    bindings = _bindings(function)
    given = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
    numbers = frozenset(bindings.values) - bindings.unknown - given
    while True:
        kept = frozenset(
            name for name in numbers
            if all(value is None or yields_number(value, numbers) for value in bindings.values[name])
        )  # fmt: skip
        if kept == numbers:
            return numbers
        numbers = kept


def lists_in(function: Any) -> frozenset[str]:
    """The local names that a function binds to a new list, or none if it appends to none and replaces no items."""
    if not any(map(changes_list, ast.walk(function))):
        return frozenset()
    bindings = _bindings(function)
    lists = {name for name, values in bindings.values.items() if any(map(is_new_list, values))}
    return frozenset(lists - bindings.unknown)


def changes_list(node: ast.AST) -> bool:
    """Whether a node is the method `append` or the target of an assignment to an item."""
    return isinstance(node, ast.Attribute) and node.attr == "append" or (
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))  # fmt: skip


def is_new_list(value: ast.expr | None) -> bool:
    """Whether an expression makes a list: `[...]`, a comprehension, or `[...] * n`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return isinstance(value.left, ast.List) or isinstance(value.right, ast.List)
    return isinstance(value, ast.List | ast.ListComp)


def values_of(function: ast.FunctionDef, name: str) -> list[ast.expr | None]:
    """The expressions that a function binds a local name to; none if it is bound otherwise too."""
    bindings = _bindings(function)
    given = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
    return [] if name in bindings.unknown | given else bindings.values.get(name, [])


def _bindings(function: Any) -> "Bindings":
    bindings = Bindings()
    for statement in [] if isinstance(function, ast.Lambda) else function.body:
        bindings.visit(statement)
    return bindings


class Bindings(ast.NodeVisitor):
    """The expressions that each name of a function is bound to, and the names bound in other ways.

    None stands for a number that no expression gives: a counter of `range`, or a length unpacked from a `shape`.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[ast.expr | None]] = {}
        self.unknown: set[str] = set()

    def visit_Assign(self, node: ast.Assign) -> None:
        for place in node.targets:
            sizes = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
            if isinstance(place, ast.Name):
                self.bind(place, node.value)
            elif isinstance(place, ast.Tuple) and sizes and all(isinstance(item, ast.Name) for item in place.elts):
                for item in place.elts:
                    self.bind(item, None)
            elif isinstance(place, ast.Tuple) and isinstance(node.value, ast.Tuple):
                self.pairwise(place, node.value)
            else:
                self.visit(place)
        self.visit(node.value)

    def pairwise(self, places: ast.Tuple, values: ast.Tuple) -> None:
        parts = (*places.elts, *values.elts)
        if len(places.elts) != len(values.elts) or any(isinstance(part, ast.Starred) for part in parts):
            self.visit(places)
            return
        for place, value in zip(places.elts, values.elts, strict=True):
            if isinstance(place, ast.Name):
                self.bind(place, value)
            else:
                self.visit(place)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.bind(node.target, node.value)
        self.visit(node.value)

    def visit_For(self, node: ast.For) -> None:
        counts = isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name)
        if counts and node.iter.func.id == "range" and isinstance(node.target, ast.Name):  # type: ignore[attr-defined]
            self.bind(node.target, None)
        else:
            self.visit(node.target)
        for part in (node.iter, *node.body, *node.orelse):
            self.visit(part)

    def bind(self, place: Object, value: ast.expr | None) -> None:
        self.values.setdefault(place.id, []).append(value)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.unknown.add(node.id)

    def visit_FunctionDef(self, node: Any) -> None:
        self.unknown.add(node.name)
        # An inner function may bind names of this one that it declares `nonlocal`.
        self.unknown.update(name for part in ast.walk(node) if isinstance(part, ast.Nonlocal) for name in part.names)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        stored = (part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
        self.unknown.update((node.name, *(part.id for part in stored)))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        return

    def visit_Global(self, node: Any) -> None:
        self.unknown.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_alias(self, node: ast.alias) -> None:
        self.unknown.add((node.asname or node.name).partition(".")[0])

    def visit_MatchAs(self, node: Any) -> None:
        self.unknown.add(node.name or "")
        self.generic_visit(node)

    visit_MatchStar = visit_ExceptHandler = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.unknown.add(node.rest or "")
        self.generic_visit(node)
