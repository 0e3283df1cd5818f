"""Rewrite Python's syntax as calls of operations: the table from a kind of node to what it becomes.

`f(a)` becomes `@.call(f)(a)`, `a + b` becomes `@.add(a, b)`, `a[i] = v` becomes `@.setitem(v, a, i)`, where `@` is the
module `effgrad.program.operations` as a constant of the code. What an operation evaluates, and in which order, is what
Python evaluates; each new node has the position of the one that it replaces, so tracebacks and debuggers show the
user's lines. An operation on values that are certainly numbers (counters, lengths, literals) stays Python's own.

To add a form of syntax, write a function of the reader and the node, and enter it with `@rewrites(ast.Node)`.
"""

import ast
import copy
import os
from collections.abc import Callable
from typing import Any, TypeVar

from effgrad.program.direct import asked, both, is_key, names_of, on_one_line
from effgrad.program.numerals import is_concrete, is_number, lists_in, numbers_in
from effgrad.vocabulary import Object

# The constant that stands for the module of operations until the code is linked; no program has it as a text.
OPERATIONS = "@effgrad.program.operations"
BINARY: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
UNARY: dict[type, str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
COMPARE: dict[type, str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
# These ask about the frame that calls them or about a type only, or start a debugger: a call of them stays Python's.
PLAIN_CALLS = frozenset((
    "super", "issubclass", "len", "locals", "globals", "vars", "dir", "id", "eval", "exec",
    "callable", "breakpoint",
))  # fmt: skip
# In the paths of libraries: this package, whose rules ask for the class of a traced value, and what is installed.
LIBRARY_PATHS = (os.path.dirname(os.path.dirname(__file__)) + os.sep, "site-packages", "dist-packages")
# Attributes that an array has of its own, whatever is written to it.
OUTLINE = frozenset(("shape", "ndim", "size", "dtype"))

Rule = Callable[["Reader", Any], Any]
forms: dict[type[ast.AST], Rule] = {}


def rewrites(*kinds: type[ast.AST]) -> Callable[[Rule], Rule]:
    """Enter a function as the rule for nodes of some kinds."""

    def enter(rule: Rule) -> Rule:
        forms.update(dict.fromkeys(kinds, rule))
        return rule

    return enter


class Reader(ast.NodeTransformer):
    """Rewrites one statement at the top of a module, given the names that the module imports."""

    def __init__(self, lines: list[str], file: str, imported: set[str], call: str) -> None:
        self.lines, self.file, self.imported, self.call = lines, file, imported, call
        # The names of the innermost function that are certainly numbers, and whether its loops ask.
        self.numbers: frozenset[str] = frozenset()
        self.lists: frozenset[str] = frozenset()
        self.asks = False
        # Whether an expression is read that also stays as it stands (`effgrad.program.direct`).
        self.stays = False
        self.names = 0
        # What stands in the code for a text that no program has.
        self.constants: dict[str, Object] = {}

    def read(self, statement: ast.stmt) -> list[ast.stmt]:
        result = self.visit(statement)
        return result if isinstance(result, list) else [result]

    def visit(self, node: ast.AST) -> Object:
        rule = forms.get(type(node))
        return self.generic_visit(node) if rule is None else rule(self, node)

    def operation(self, name: str, at: ast.AST, *args: ast.expr) -> ast.expr:
        """A call of an operation, at the position of the node that it replaces."""
        line, column = at.lineno, at.col_offset  # type: ignore[attr-defined]
        # On one line: Python counts a call of an attribute to the line on which that ends.
        place = {"lineno": line, "col_offset": column, "end_lineno": line, "end_col_offset": column}
        function = ast.Attribute(ast.Constant(OPERATIONS, **place), name, ast.Load(), **place)
        return placed(ast.Call(function, list(args), []), at)

    def directly(self, node: Any, otherwise: Callable[[], ast.expr]) -> ast.expr:
        """An expression as it stands if the values of its names are of classes with Python's own operators."""
        names = None if self.stays or not on_one_line(node) else names_of(node, self.numbers)
        if not names:
            return otherwise()
        before = copy.deepcopy(node)
        self.stays = True
        read = otherwise()
        self.stays = False
        return placed(ast.IfExp(both(asked(names, "DIRECT", self.named)), before, read), node)

    def named(self, name: str) -> ast.expr:
        """An operation itself, or another constant of their module."""
        return ast.Attribute(ast.Constant(OPERATIONS), name, ast.Load())

    def read_now(self, node: ast.expr) -> ast.expr:
        """An expression, read: the array is what its memory holds at this moment."""
        if self.is_number(node) or isinstance(node, ast.Compare | ast.Lambda | ast.JoinedStr):
            return node
        return self.operation("read", node, node)

    def constant(self, value: object) -> str:
        """The text that stands for a value that becomes a constant of the code."""
        text = f"@effgrad {len(self.constants)}"
        self.constants[text] = value
        return text

    def temporary(self) -> str:
        self.names += 1
        return f"@{self.names}"

    def is_number(self, node: ast.AST) -> bool:
        """Whether an expression is certainly a number or a text, so that its operators are Python's."""
        return is_number(node, self.numbers)


Node = TypeVar("Node", bound=ast.AST)


def placed(node: Node, at: ast.AST) -> Node:
    """A new node and its new parts, at the position of another."""
    ast.copy_location(node, at)
    for child in ast.iter_child_nodes(node):
        if not hasattr(child, "lineno"):
            placed(child, at)
    return node


def first_line(node: Any) -> int:
    """The line at which a statement or a lambda begins, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([int(node.lineno), *(decorator.lineno for decorator in decorators)])


# Expressions


@rewrites(ast.Call)
def call(reader: Reader, node: ast.Call) -> Object:
    if isinstance(node.func, ast.Attribute):
        # The object, but not the method: `call` finds that.
        node.func.value = reader.visit(node.func.value)
    else:
        node.func = reader.visit(node.func)
    node.args = [reader.visit(arg) for arg in node.args]
    node.keywords = [reader.visit(keyword) for keyword in node.keywords]
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    # A library asks for a type to follow a protocol, which a traced value has (copy, Dask, pandas).
    of_library = reader.call != "call" or any(place in reader.file for place in LIBRARY_PATHS)
    asks_protocol = name in ("type", "isinstance") and of_library
    asks_class = name == "isinstance" and len(node.args) == 2 and is_concrete(node.args[1])
    if name not in PLAIN_CALLS and not asks_protocol and not asks_class:
        node.func = resolved(reader, node.func)
    elif name in ("eval", "exec") and node.args and not isinstance(node.args[0], ast.Starred):
        node.args[0] = reader.operation("text", node.args[0], node.func, node.args[0])
    return node


def resolved(reader: Reader, function: ast.expr) -> ast.expr:
    """The expression for what is called in the place of a function: it is known, or `call` finds it."""
    target = reader.operation(reader.call, function, function)
    root: ast.AST = function
    while isinstance(root, ast.Attribute):
        root = root.value
    if reader.call != "call" or not (isinstance(function, ast.Name) or is_module(reader, root)):
        return target
    identity = ast.Call(reader.named("identity"), [copy.deepcopy(function)], [])
    return placed(ast.BoolOp(ast.Or(), [ast.Call(reader.named("known"), [identity], []), target]), function)


def is_module(reader: Reader, root: ast.AST) -> bool:
    return isinstance(root, ast.Name) and root.id in reader.imported


@rewrites(ast.Attribute)
def attribute(reader: Reader, node: ast.Attribute) -> Object:
    root: ast.AST = node
    while isinstance(root, ast.Attribute):
        root = root.value
    reader.generic_visit(node)
    stored = not isinstance(node.ctx, ast.Load)
    if is_module(reader, root) or stored or node.attr.startswith("__"):
        return node
    read = reader.operation("attribute", node, node.value, ast.Constant(node.attr))
    if node.attr not in OUTLINE or not isinstance(node.value, ast.Name) or not on_one_line(node):
        return read
    return placed(ast.IfExp(both(asked([node.value], "DIRECT", reader.named)), node, read), node)


@rewrites(ast.BinOp)
def binary(reader: Reader, node: ast.BinOp) -> ast.AST:
    if reader.is_number(node):
        return reader.generic_visit(node)

    def read() -> ast.expr:
        reader.generic_visit(node)
        return reader.operation(BINARY[type(node.op)], node, node.left, node.right)

    return reader.directly(node, read)


@rewrites(ast.UnaryOp)
def unary(reader: Reader, node: ast.UnaryOp) -> ast.AST:
    plain = reader.is_number(node)
    if isinstance(node.op, ast.Not):
        node.operand = truth(reader, node.operand)
        return node
    if plain:
        return reader.generic_visit(node)

    def read() -> ast.expr:
        reader.generic_visit(node)
        return reader.operation(UNARY[type(node.op)], node, node.operand)

    return reader.directly(node, read)


@rewrites(ast.Compare)
def compare(reader: Reader, node: ast.Compare) -> ast.AST:
    if reader.is_number(node) or all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return reader.generic_visit(node)
    return reader.directly(node, lambda: compared(reader, node))


def compared(reader: Reader, node: ast.Compare) -> ast.expr:
    reader.generic_visit(node)
    if len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
        return reader.operation(COMPARE[type(node.ops[0])], node, node.left, node.comparators[0])
    if len(node.ops) == 1:
        holds = reader.operation("contains", node, node.left, node.comparators[0])
        return holds if isinstance(node.ops[0], ast.In) else placed(ast.UnaryOp(ast.Not(), holds), node)
    # A chain: Python's own, of what the operands hold.
    node.left = reader.read_now(node.left)
    node.comparators = [reader.read_now(other) for other in node.comparators]
    return node


@rewrites(ast.BoolOp)
def logical(reader: Reader, node: ast.BoolOp) -> ast.BoolOp:
    *first, last = node.values
    node.values = [*(reader.read_now(reader.visit(value)) for value in first), reader.visit(last)]
    return node


def truth(reader: Reader, test: ast.expr) -> ast.expr:
    """An expression whose truth Python asks."""
    decided = reader.is_number(test) or isinstance(test, ast.Compare) or _is_negation(test)
    result: ast.expr = reader.visit(test)
    if decided or isinstance(result, ast.Compare | ast.Lambda | ast.JoinedStr):
        return result
    return reader.operation("truth", result, result)


def _is_negation(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


@rewrites(ast.IfExp, ast.If)
def condition(reader: Reader, node: Any) -> Object:
    node.test = tested(reader, node.test)
    for name in ("body", "orelse"):
        part = getattr(node, name)
        setattr(node, name, statements(reader, part) if isinstance(part, list) else reader.visit(part))
    return node


def tested(reader: Reader, test: ast.expr) -> ast.expr:
    """The test of a branch: `and`, `or` and `not` ask each of their parts."""
    if isinstance(test, ast.BoolOp):
        test.values = [tested(reader, value) for value in test.values]
        return test
    return truth(reader, test)


def statements(reader: Reader, body: list[ast.stmt]) -> list[ast.stmt]:
    return [new for statement in body for new in reader.read(statement)]


@rewrites(ast.Assert)
def assertion(reader: Reader, node: ast.Assert) -> ast.Assert:
    node.test, node.msg = tested(reader, node.test), node.msg and reader.visit(node.msg)
    return node


@rewrites(ast.Subscript)
def subscript(reader: Reader, node: ast.Subscript) -> ast.AST:
    starred = isinstance(node.slice, ast.Tuple) and any(isinstance(e, ast.Starred) for e in node.slice.elts)
    if not isinstance(node.ctx, ast.Load) or starred:
        return reader.generic_visit(node)
    names: dict[str, ast.Name] = {}
    direct = isinstance(node.value, ast.Name) and on_one_line(node) and is_key(node.slice, reader.numbers, names)
    before = copy.deepcopy(node)
    reader.generic_visit(node)
    read = reader.operation("getitem", node, node.value, key(reader, node.slice))
    if not direct or not isinstance(before.value, ast.Name):
        return read
    questions = [*asked([before.value], "DIRECT", reader.named), *asked([*names.values()], "KEYS", reader.named)]
    return placed(ast.IfExp(both(questions), before, read), node)


def key(reader: Reader, index: ast.expr) -> ast.expr:
    """Return the index in brackets as an expression of its own."""
    if isinstance(index, ast.Slice):
        parts = [part or ast.Constant(None) for part in (index.lower, index.upper, index.step)]
        return reader.operation("slice", index, *parts)
    if isinstance(index, ast.Tuple):
        index.elts = [key(reader, item) for item in index.elts]
    return index


@rewrites(ast.Starred, ast.YieldFrom)
def starred(reader: Reader, node: Any) -> Object:
    if isinstance(node, ast.Starred) and not isinstance(node.ctx, ast.Load):
        return reader.generic_visit(node)
    node.value = iterated(reader, node.value)
    return node


def iterated(reader: Reader, node: ast.expr) -> ast.expr:
    """Return the expression that a loop goes through."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        result: ast.expr = reader.visit(node)
        return result
    return reader.operation("iterate", node, reader.visit(node))


@rewrites(ast.JoinedStr)
def joined(reader: Reader, node: ast.JoinedStr) -> ast.expr:
    parts = [formatted(reader, part) if isinstance(part, ast.FormattedValue) else part for part in node.values]
    if not any(isinstance(part, ast.Call) for part in parts):
        return node
    return reader.operation("joined", node, *parts)


def formatted(reader: Reader, node: ast.FormattedValue) -> ast.expr:
    reader.generic_visit(node)
    if reader.is_number(node.value):
        return placed(ast.JoinedStr([node]), node)
    how = ast.Constant(chr(node.conversion) if node.conversion > 0 else "")
    return reader.operation("formatted", node.value, node.value, how, node.format_spec or ast.Constant(""))


# Statements


@rewrites(ast.Match)
def matched(reader: Reader, node: ast.Match) -> ast.Match:
    node.subject = reader.operation("read", node.subject, reader.visit(node.subject))
    for case in node.cases:
        case.guard = case.guard and tested(reader, case.guard)
        case.body = statements(reader, case.body)
    return node


@rewrites(ast.AnnAssign)
def annotated(reader: Reader, node: ast.AnnAssign) -> ast.AnnAssign:
    node.value = node.value and reader.visit(node.value)
    return node


@rewrites(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
def function(reader: Reader, node: Any) -> Object:
    outside, reader.numbers = (reader.numbers, reader.lists), numbers_in(node)
    reader.lists = lists_in(node)
    asked, reader.asks = reader.asks, isinstance(node, ast.FunctionDef) and reader.call == "call"
    if isinstance(node, ast.Lambda):
        node.body = reader.visit(node.body)
    else:
        node.body = statements(reader, node.body)
    (reader.numbers, reader.lists), reader.asks = outside, asked
    defaults(reader, node.args)
    if not isinstance(node, ast.Lambda):
        made = [reader.visit(decorator) for decorator in node.decorator_list]
        node.decorator_list = [reader.operation(reader.call, decorator, decorator) for decorator in made]
    return node


@rewrites(ast.ClassDef)
def class_block(reader: Reader, node: ast.ClassDef) -> ast.ClassDef:
    asked, reader.asks = reader.asks, False
    reader.generic_visit(node)
    reader.asks = asked
    return node


def defaults(reader: Reader, args: ast.arguments) -> None:
    args.defaults = [reader.visit(default) for default in args.defaults]
    args.kw_defaults = [default and reader.visit(default) for default in args.kw_defaults]
