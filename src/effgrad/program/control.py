"""Control flow of the user's functions as operations: a loop asks the running handlers how it is to be run.

`read(f)` gives the function that asks: its code is the user's, read once per code object, with each `for` and
`while` asking `Control.loops` first and each call reading the function that it calls. Where nothing is handled, or the
answer is None, the loop is Python's own. Functions of effgrad are read through what they close over, so the function
inside `effgrad.grad(f)` asks too.
"""

import ast
import functools
import inspect
import linecache
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from effgrad.effects import Effect, handled, operation


class Control(Effect):
    """The effect of control flow."""

    @operation
    def loops(self) -> "Callable[[Loop, Mapping[str, Any], Mapping[str, Any]], dict[str, Any] | None] | None":
        """A function that runs a loop: given the loop, the names of its function and the globals it returns the names
        that the loop has bound, or None if Python has to run it."""


class Loop:
    """A loop of a function that was read: its statement, and the function's."""

    def __init__(self, function: ast.FunctionDef, statement: ast.For | ast.While, file: str) -> None:
        self.function, self.statement, self.file = function, statement, file
        self.bound = sorted(_bound(statement))


def read(f: Any) -> Any:
    """The function that asks how its loops are to be run; anything that cannot be read is returned as it is."""
    if isinstance(f, functools.partial):
        return functools.partial(read(f.func), *map(_read_argument, f.args), **f.keywords)
    if isinstance(f, types.MethodType):
        inside = read(f.__func__)
        return f if inside is f.__func__ else types.MethodType(inside, f.__self__)
    if not isinstance(f, types.FunctionType) or _is_library(f):
        return f
    if f.__module__ is not None and f.__module__.split(".")[0] == "effgrad":
        return _closed_again(f, f.__code__, {name: _read_argument(v) for name, v in _closed(f).items()})
    code = _rewritten(f.__code__)
    if code is None:
        return f
    hooks = {_LOOP: functools.partial(_run, f.__globals__), _READ: read}
    return _closed_again(f, code, hooks)


def _read_argument(value: Any) -> Any:
    return read(value) if isinstance(value, types.FunctionType | types.MethodType | functools.partial) else value


def _is_library(f: types.FunctionType) -> bool:
    root = (f.__module__ or "").split(".")[0]
    return root in ("numpy", "scipy") or (root in sys.stdlib_module_names and root != "__main__")


def _closed(f: types.FunctionType) -> dict[str, Any]:
    """The values of the names that a function closes over, as far as they are bound."""
    found = {}
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def _closed_again(f: types.FunctionType, code: types.CodeType, values: Mapping[str, Any]) -> Any:
    """A function with other code, whose free names that have `values` have these."""
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    if code is f.__code__ and all(values[n] is v for n, v in _closed(f).items()):
        return f
    closure = tuple(types.CellType(values[n]) if n in values else cells[n] for n in code.co_freevars)
    made = types.FunctionType(code, f.__globals__, f.__name__, f.__defaults__, closure)
    made.__kwdefaults__, made.__qualname__, made.__module__ = f.__kwdefaults__, f.__qualname__, f.__module__
    made.__dict__.update(f.__dict__)
    return made


def _run(names_outside: Mapping[str, Any], loop: Loop, names: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ask how a loop is to be run, and run it so; None if Python has to."""
    run = Control.loops() if handled(Control) else None
    own = {name: value for name, value in names.items() if not name.startswith("@")}
    return None if run is None else run(loop, own, names_outside)


_LOOP, _READ = "@loop", "@read"
_UNREADABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
# Functions that look at the frame that calls them.
_OF_FRAMES = {"super", "locals", "globals", "vars", "eval", "exec", "dir"}


@functools.lru_cache(maxsize=4096)
def _rewritten(code: types.CodeType) -> types.CodeType | None:
    """The code of a function that asks, or None if its source is not known or there is nothing to ask."""
    node = None if code.co_flags & _UNREADABLE else tree_of(code)
    if node is None or isinstance(node, ast.AsyncFunctionDef) or _needs_its_class(node, code):
        return None
    reader = _Reader(node, code.co_filename)
    inner = reader.function()
    if not reader.changed:
        return None
    free = list(code.co_freevars)
    returned = ast.Return(ast.Name(inner.name, ast.Load()))
    outer = _function("@outer", _parameters([_LOOP, _READ, *free]), [inner, returned])
    module = ast.fix_missing_locations(ast.copy_location(ast.Module([outer], []), node))
    try:
        made = compile(module, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    (factory,) = [c for c in made.co_consts if isinstance(c, types.CodeType)]
    (found,) = [c for c in factory.co_consts if isinstance(c, types.CodeType) and c.co_name == inner.name]
    if not set(found.co_freevars) <= {_LOOP, _READ, *free}:
        return None
    return found.replace(co_name=code.co_name, co_consts=reader.with_loops(found.co_consts))


def _needs_its_class(node: ast.AST, code: types.CodeType) -> bool:
    """Whether a function's code is another outside its class: `super()`, and names that begin with two underscores."""
    names = {str(getattr(x, "attr", None) or getattr(x, "id", "")) for x in ast.walk(node)}
    return "__class__" in code.co_freevars or any(n.startswith("__") and not n.endswith("__") for n in names)


def _function(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, arguments, body, [])
    made.type_params = []  # type: ignore[attr-defined]
    return made


def _parameters(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


class _Reader(ast.NodeTransformer):
    """Makes the tree of a function that asks; the tree of the source stays as it is."""

    def __init__(self, node: ast.Lambda | ast.FunctionDef, file: str) -> None:
        self.node, self.file = node, file
        self.loops: dict[str, Loop] = {}
        self.changed = False

    def function(self) -> ast.FunctionDef:
        node = self.node
        body: list[ast.stmt]
        if isinstance(node, ast.Lambda):
            body = [ast.copy_location(ast.Return(self.visit(_copy(node.body))), node.body)]
        else:
            body = self.block(node.body)
        arguments = _copy(node.args)
        arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
        arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]
        for a in (*arguments.args, *arguments.posonlyargs, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if a is not None:
                a.annotation = None
        name = node.name if isinstance(node, ast.FunctionDef) else "@lambda"
        return ast.copy_location(_function(name, arguments, body), node)

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements, with loops that ask."""
        done: list[ast.stmt] = []
        for s in statements:
            if isinstance(s, ast.For | ast.While):
                done += self.asking(s)
            else:
                found: Any = self.visit(_copy_head(s))
                for field in ("body", "orelse", "finalbody"):
                    inside = getattr(s, field, None)
                    own_scope = isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                    if inside and isinstance(inside[0], ast.stmt):
                        setattr(found, field, [_copy(x) for x in inside] if own_scope else self.block(inside))
                done.append(found)
        return done

    def asking(self, s: ast.For | ast.While) -> list[ast.stmt]:
        """`names = @loop(this, locals())`, then either the names or the loop."""
        original: Any = self.visit(_copy_head(s))
        original.body, original.orelse = self.block(s.body), self.block(s.orelse)
        if not isinstance(self.node, ast.FunctionDef):
            return [original]
        self.changed = True
        loop = Loop(self.node, s, self.file)
        mark = f"@loop {id(self.node)} {len(self.loops)}"
        self.loops[mark] = loop
        names = f"@names{len(self.loops)}"
        asked = _expression(f"LOOP({mark!r}, locals())").value
        asked.func = ast.Name(_LOOP, ast.Load())
        kept: list[ast.stmt] = []
        for name in loop.bound:
            (taken,) = ast.parse(f"if {name!r} in NAMES:\n    {name} = NAMES[{name!r}]").body
            kept.append(_renamed(taken, names))
        if any(isinstance(x, ast.Return) for x in ast.walk(s)):
            (left,) = ast.parse("if NAMES.get('$left', False):\n    return NAMES['$result']").body
            kept.append(_renamed(left, names))
        test = _renamed(_expression("NAMES is None").value, names)
        choice = ast.If(test, [original], kept)
        store = ast.Assign([ast.Name(names, ast.Store())], asked)
        return [ast.fix_missing_locations(ast.copy_location(x, s)) for x in (store, choice)]

    def with_loops(self, constants: tuple[Any, ...]) -> tuple[Any, ...]:
        """The constants of the code, with the loops for what stood for them."""
        return tuple([self.loops[c] if isinstance(c, str) and c in self.loops else c for c in constants])

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _OF_FRAMES):
            self.changed = True
            function = ast.Call(ast.Name(_READ, ast.Load()), [node.func], [])
            node.func = ast.fix_missing_locations(ast.copy_location(function, node.func))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node


def _expression(text: str) -> Any:
    return ast.parse(text).body[0]


def _renamed(node: Any, name: str) -> Any:
    for x in ast.walk(node):
        if isinstance(x, ast.Name) and x.id == "NAMES":
            x.id = name
    return node


def _copy(node: Any) -> Any:
    """A copy of a tree."""
    if isinstance(node, list):
        return [_copy(x) for x in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{name: _copy(value) for name, value in ast.iter_fields(node)})
    return ast.copy_location(made, node)


def _copy_head(s: ast.stmt) -> Any:
    """A copy of a statement without the blocks inside, which are left empty."""
    made = type(s)()
    for name, value in ast.iter_fields(s):
        block = isinstance(value, list) and bool(value) and isinstance(value[0], ast.stmt)
        setattr(made, name, [] if block else _copy(value))
    return ast.copy_location(made, s)


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a loop binds."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting.extend(ast.iter_child_nodes(node))
    return found


# Sources


def tree_of(code: types.CodeType) -> ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The syntax tree that a code object was compiled from, or None."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    functions = _functions("".join(lines), code.co_filename)
    candidates = [n for n in functions if _first_line(n) == code.co_firstlineno and _name(n) == code.co_name]
    if len(candidates) > 1:
        candidates = [n for n in candidates if _holds(n, code)]
    return candidates[0] if len(candidates) == 1 else None


@functools.lru_cache(maxsize=64)
def _functions(text: str, name: str) -> list[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        tree = ast.parse(text, name)
    except SyntaxError:
        return []
    return [n for n in ast.walk(tree) if isinstance(n, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef)]


def _first_line(node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *[d.lineno for d in decorators]])


def _name(node: ast.AST) -> str:
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else "<lambda>"


def _holds(node: ast.AST, code: types.CodeType) -> bool:
    """Whether the instructions of a code object come from inside a tree: of lambdas in one line, one does."""
    body: Any = node.body if isinstance(node, ast.Lambda) else node
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None]
    return bool(places) and all(start <= p < end for p in places if p[1] or p[0] != start[0])
