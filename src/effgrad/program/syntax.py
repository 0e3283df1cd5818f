"""The rewriting of Python's syntax to calls of operations: a table from classes of nodes to rules.

`f(a)` becomes `@.call(f)(a)`, `a + b` becomes `@.add(a, b)`, `a[i] = v` becomes `@.setitem(v, a, i)`, where `@` is the
module `effgrad.program.operations` as a constant of the code. Rewritten code evaluates the same expressions as Python,
in the same order. Each new node has the position of the node that it replaces, so tracebacks and debuggers show the
user's lines. An operation on values that are certainly numbers (counters, lengths, literals) stays Python's own.

To add a form of syntax, write a function of the reader and the node, and register it with `@rewrites(ast.Node)`.
"""

import ast
import copy
import os
from collections.abc import Callable
from typing import Any, TypeVar

from effgrad.program.direct import class_tests, conjunction, is_key, names_of, on_one_line
from effgrad.program.numerals import is_concrete, lists_in, may_be_truths, numbers_in, yields_number
from effgrad.vocabulary import Object

# The string constant that stands for the module of operations until the code is linked. No program contains it.
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
# Functions that inspect the frame of their caller or only a type, or start a debugger. Calls of them are not rewritten.
PLAIN_CALLS = frozenset((
    "super", "issubclass", "len", "locals", "globals", "vars", "dir", "id", "eval", "exec",
    "callable", "breakpoint",
))  # fmt: skip
# Parts of the paths of libraries: of this package, whose rules test for traced values, and of installed packages.
LIBRARY_PATHS = (os.path.dirname(os.path.dirname(__file__)) + os.sep, "site-packages", "dist-packages")
# Parts of the paths of libraries of arrays, which ask for protocols by the type of a value.
OF_PROTOCOLS = (LIBRARY_PATHS[0], *map(f"{os.sep}{{}}{os.sep}".format, ("dask", "array_api_strict", "cupy", "sparse")))
# Attributes of an array that do not depend on its elements.
OUTLINE = frozenset(("shape", "ndim", "size", "dtype"))

Rule = Callable[["Reader", Any], Any]
forms: dict[type[ast.AST], Rule] = {}


def rewrites(*kinds: type[ast.AST]) -> Callable[[Rule], Rule]:
    """Register a function as the rule for nodes of some classes."""

    def enter(rule: Rule) -> Rule:
        forms.update(dict.fromkeys(kinds, rule))
        return rule

    return enter


class Reader(ast.NodeTransformer):
    """Rewrites one top-level statement of a module, given the names that the module imports."""

    def __init__(self, lines: list[str], file: str, imported: set[str], call: str) -> None:
        self.lines, self.file, self.imported, self.call = lines, file, imported, call
        self.of_library = call != "call" or any(place in file for place in OF_PROTOCOLS)
        # The names in the innermost function that are certainly numbers, the names that it binds to lists, and whether
        # its loops ask the handlers how to run.
        self.numbers: frozenset[str] = frozenset()
        self.lists: frozenset[str] = frozenset()
        self.asks = False
        # Whether the expression being rewritten also stays unchanged behind a guard (`effgrad.program.direct`).
        self.stays = False
        self.names = 0
        # The values that replace placeholder strings in the compiled code.
        self.constants: dict[str, Object] = {}

    def read(self, statement: ast.stmt) -> list[ast.stmt]:
        result = self.visit(statement)
        return result if isinstance(result, list) else [result]

    def visit(self, node: ast.AST) -> Object:
        rule = forms.get(type(node))
        if hasattr(node, "done"):  # it needs no rewriting
            return node
        return self.generic_visit(node) if rule is None else rule(self, node)

    def operation(self, name: str, at: ast.AST, *args: ast.expr) -> ast.expr:
        """Return a call of an operation, at the position of the node that it replaces."""
        line, column = at.lineno, at.col_offset  # type: ignore[attr-defined]
        # The position ends on its first line, because Python attributes a method call to the attribute's last line.
        place = {"lineno": line, "col_offset": column, "end_lineno": line, "end_col_offset": column}
        function = ast.Attribute(ast.Constant(OPERATIONS, **place), name, ast.Load(), **place)
        return placed(ast.Call(function, list(args), []), at)

    def directly(self, node: Any, otherwise: Callable[[], ast.expr]) -> ast.expr:
        """Return an expression rewritten by `otherwise`, and unchanged for values whose operators are Python's own."""
        names = None if self.stays or not on_one_line(node) else names_of(node, self.numbers)
        if not names:
            return otherwise()
        before = copy.deepcopy(node)
        self.stays = True
        read = otherwise()
        self.stays = False
        return placed(ast.IfExp(conjunction(class_tests(names, "DIRECT", self.named)), before, read), node)

    def named(self, name: str) -> ast.expr:
        """Return an expression for an attribute of the module of operations."""
        return ast.Attribute(ast.Constant(OPERATIONS), name, ast.Load())

    def read_now(self, node: ast.expr) -> ast.expr:
        """Return an expression for the value of `node`, where an array's current elements are read from its memory."""
        if self.yields_number(node) or isinstance(node, ast.Compare | ast.Lambda | ast.JoinedStr):
            return node
        return self.operation("read", node, node)

    def constant(self, value: object) -> str:
        """Return the placeholder string for a value that becomes a constant of the code."""
        text = f"@effgrad {len(self.constants)}"
        self.constants[text] = value
        return text

    def temporary(self) -> str:
        self.names += 1
        return f"@{self.names}"

    def yields_number(self, node: ast.AST) -> bool:
        """Whether an expression is certainly a number or a string, so that its operators are Python's."""
        return yields_number(node, self.numbers)


Node = TypeVar("Node", bound=ast.AST)


def placed(node: Node, at: ast.AST) -> Node:
    """Return a new node, with it and its new children at the position of another node."""
    ast.copy_location(node, at)
    for child in ast.iter_child_nodes(node):
        if not hasattr(child, "lineno"):
            placed(child, at)
    return node


def first_line(node: Any) -> int:
    """The line on which a statement or a lambda begins, including its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([int(node.lineno), *(decorator.lineno for decorator in decorators)])


# Expressions


@rewrites(ast.Call)
def call(reader: Reader, node: ast.Call) -> Object:
    if isinstance(node.func, ast.Attribute):
        # Rewrite the object but not the look-up of the method, which `call` resolves.
        node.func.value = reader.visit(node.func.value)
    else:
        node.func = reader.visit(node.func)
    node.args = [reader.visit(arg) for arg in node.args]
    node.keywords = [reader.visit(keyword) for keyword in node.keywords]
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    # A library tests a type to follow a protocol, which a traced value implements (copy, Dask, pandas).
    asks_protocol = name in ("type", "isinstance") and reader.of_library
    asks_class = name == "isinstance" and len(node.args) == 2 and is_concrete(node.args[1])
    if name not in PLAIN_CALLS and not asks_protocol and not asks_class:
        node.func = resolved(reader, node.func)
    elif name in ("eval", "exec") and node.args and not isinstance(node.args[0], ast.Starred):
        node.args[0] = reader.operation("text", node.args[0], node.func, node.args[0])
    return node


def resolved(reader: Reader, function: ast.expr) -> ast.expr:
    """Return the expression for the target of a function: it is looked up among the known ones before `call`."""
    target = reader.operation(reader.call, function, function)
    if reader.call != "call" or not (isinstance(function, ast.Name) or is_of_module(reader, function)):
        return target
    identity = ast.Call(reader.named("identity"), [copy.deepcopy(function)], [])
    return placed(ast.BoolOp(ast.Or(), [ast.Call(reader.named("known"), [identity], []), target]), function)


def is_of_module(reader: Reader, node: ast.AST) -> bool:
    """Whether an expression is an imported name, or an attribute of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in reader.imported


@rewrites(ast.Attribute)
def attribute(reader: Reader, node: ast.Attribute) -> Object:
    is_known = is_of_module(reader, node)
    reader.generic_visit(node)
    stored = not isinstance(node.ctx, ast.Load)
    if is_known or stored or node.attr.startswith("__"):
        return node
    read = reader.operation("attribute", node, node.value, ast.Constant(node.attr))
    if node.attr not in OUTLINE or not isinstance(node.value, ast.Name) or not on_one_line(node):
        return read
    return placed(ast.IfExp(conjunction(class_tests([node.value], "DIRECT", reader.named)), node, read), node)


@rewrites(ast.BinOp)
def binary(reader: Reader, node: ast.BinOp) -> ast.AST:
    if reader.yields_number(node):
        return reader.generic_visit(node)

    def read() -> ast.expr:
        reader.generic_visit(node)
        return reader.operation(BINARY[type(node.op)], node, node.left, node.right)

    return reader.directly(node, read)


@rewrites(ast.UnaryOp)
def unary(reader: Reader, node: ast.UnaryOp) -> ast.AST:
    plain = reader.yields_number(node)
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
    by_identity = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
    if reader.yields_number(node) or by_identity:
        reader.generic_visit(node)
        truths = by_identity and len(node.ops) == 1 and may_be_truths(node, reader.of_library)
        return identical(reader, node) if truths else node
    return reader.directly(node, lambda: compared(reader, node))


def identical(reader: Reader, node: ast.Compare) -> ast.expr:
    answer = reader.operation("same", node, node.left, node.comparators[0])
    return answer if isinstance(node.ops[0], ast.Is) else placed(ast.UnaryOp(ast.Not(), answer), node)


def compared(reader: Reader, node: ast.Compare) -> ast.expr:
    reader.generic_visit(node)
    if len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
        return reader.operation(COMPARE[type(node.ops[0])], node, node.left, node.comparators[0])
    if len(node.ops) == 1:
        holds = reader.operation("contains", node, node.left, node.comparators[0])
        return holds if isinstance(node.ops[0], ast.In) else placed(ast.UnaryOp(ast.Not(), holds), node)
    # A chain of comparisons stays Python's own, on the current values of the operands.
    node.left = reader.read_now(node.left)
    node.comparators = [reader.read_now(other) for other in node.comparators]
    return node


@rewrites(ast.BoolOp)
def logical(reader: Reader, node: ast.BoolOp) -> ast.BoolOp:
    *first, last = node.values
    node.values = [*(reader.read_now(reader.visit(value)) for value in first), reader.visit(last)]
    return node


def truth(reader: Reader, test: ast.expr) -> ast.expr:
    """Return an expression whose truth Python can test in place of `test`."""
    decided = reader.yields_number(test) or isinstance(test, ast.Compare) or _is_negation(test)
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
    """Return the test of a branch rewritten, with each operand of `and`, `or` and `not` tested for truth."""
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
    tests = class_tests([before.value], "DIRECT", reader.named)
    tests += class_tests([*names.values()], "KEYS", reader.named)
    return placed(ast.IfExp(conjunction(tests), before, read), node)


def key(reader: Reader, index: ast.expr) -> ast.expr:
    """Return the index in brackets as an expression that can stand outside of them."""
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
    """Return the expression for the object that a loop iterates over."""
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
    if reader.yields_number(node.value):
        return placed(ast.JoinedStr([node]), node)
    how = ast.Constant(chr(node.conversion) if node.conversion > 0 else "")
    return reader.operation("formatted", node.value, node.value, how, node.format_spec or ast.Constant(""))


# Statements


@rewrites(ast.AnnAssign)
def annotated(reader: Reader, node: ast.AnnAssign) -> ast.AnnAssign:
    node.value = node.value and reader.visit(node.value)
    return node


@rewrites(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
def function(reader: Reader, node: Any) -> Object:
    outside, reader.numbers = (reader.numbers, reader.lists), numbers_in(node)
    reader.lists = lists_in(node)
    class_tests, reader.asks = reader.asks, isinstance(node, ast.FunctionDef) and reader.call == "call"
    if isinstance(node, ast.Lambda):
        node.body = reader.visit(node.body)
    else:
        node.body = statements(reader, node.body)
    (reader.numbers, reader.lists), reader.asks = outside, class_tests
    defaults(reader, node.args)
    if not isinstance(node, ast.Lambda):
        made = [reader.visit(decorator) for decorator in node.decorator_list]
        node.decorator_list = [reader.operation(reader.call, decorator, decorator) for decorator in made]
    return node


@rewrites(ast.ClassDef)
def class_block(reader: Reader, node: ast.ClassDef) -> ast.ClassDef:
    class_tests, reader.asks = reader.asks, False
    reader.generic_visit(node)
    reader.asks = class_tests
    return node


def defaults(reader: Reader, args: ast.arguments) -> None:
    args.defaults = [reader.visit(default) for default in args.defaults]
    args.kw_defaults = [default and reader.visit(default) for default in args.kw_defaults]
