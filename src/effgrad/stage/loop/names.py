"""Liveness of names: a loop carries those that its body reads before it binds them, or that are read after it."""

import ast
from collections.abc import Sequence

from effgrad.program.own_lists import mentions, replaces

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def bound(statements: Sequence[ast.AST]) -> set[str]:
    """The names that statements bind, without those in the scopes of functions and comprehensions inside.

    A list with one name is bound to a new one where an item is replaced (`effgrad.program.own_lists`).
    """
    found: set[str] = set()
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        if isinstance(node, ast.Subscript) and replaces(node):
            found.add(node.value.id)  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def reads(node: ast.AST | Sequence[ast.AST], name: str) -> bool:
    """Whether code mentions the value of a name, or deletes it, for which the name must have a value."""
    statements = [node] if isinstance(node, ast.AST) else node
    deleted = any(isinstance(x, ast.Delete) and any(mentions(t, name) for t in x.targets) for x in statements)
    return deleted or count_reads(statements, name) > 0


def count_reads(statements: Sequence[ast.AST], name: str) -> int:
    """How often code mentions the value of a name."""
    return sum(_reads_in(s, name) for s in statements)


def _reads_in(node: ast.AST, name: str) -> int:
    """`count_reads` of a node. A function or a comprehension inside may have a name of its own that is spelled so."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    inside: Sequence[ast.AST] = ()
    if isinstance(node, Function) and name in _own_names(node):
        inside = node.body if isinstance(node.body, list) else [node.body]
    elif isinstance(node, Comprehension) and name in bound([g.target for g in node.generators]):
        return _reads_in(node.generators[0].iter, name)
    return sum(_reads_in(x, name) for x in ast.iter_child_nodes(node) if x not in inside)


def _own_names(function: Function) -> set[str]:
    """The names of arguments of a function, and those that it binds inside it."""
    a, body = function.args, function.body if isinstance(function.body, list) else []
    args = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None}
    outside = [x for s in body for x in ast.walk(s) if isinstance(x, ast.Global | ast.Nonlocal)]
    return (args | bound(body)).difference(*[x.names for x in outside])


def exposed(statements: Sequence[ast.stmt], name: str, sure: bool = False) -> tuple[bool, bool]:
    """Whether a name may be read before it is bound, and whether it is certainly bound afterwards."""
    for s in statements:
        if sure:
            return False, True
        if isinstance(s, ast.For | ast.While | ast.If):
            before, sure = _exposed_in_blocks(s, name)
            if before:
                return True, sure
        elif reads(s, name) or (isinstance(s, ast.AugAssign) and _binds(s.target, name)):
            return True, sure
        elif isinstance(s, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return False, isinstance(s, ast.Return | ast.Raise)
        elif isinstance(s, ast.Assign):
            sure = any(_binds(t, name) for t in s.targets)
        elif isinstance(s, ast.AnnAssign):
            sure = s.value is not None and _binds(s.target, name)
    return False, sure


def _exposed_in_blocks(s: ast.For | ast.While | ast.If, name: str) -> tuple[bool, bool]:
    """`exposed` for a statement that contains blocks."""
    if reads(s.iter if isinstance(s, ast.For) else s.test, name):
        return True, False
    target = isinstance(s, ast.For) and _binds(s.target, name)
    then, other = exposed(s.body, name, target), exposed(s.orelse, name)
    # A loop may run no step, so only an `if` binds a name for certain.
    sure = isinstance(s, ast.If) and (then[1] or _leaves(s.body)) and (other[1] or _leaves(s.orelse))
    return then[0] or other[0], sure


def _leaves(statements: Sequence[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Return | ast.Raise)


def _binds(target: ast.AST, name: str) -> bool:
    return any(isinstance(x.ctx, ast.Store) for x in mentions(target, name))


def read_after(body: Sequence[ast.stmt], loop: ast.stmt, name: str) -> bool:
    """Whether the value of a name at the end of `loop`, a statement somewhere in `body`, may be read later."""
    path = path_to(body, loop)
    for statements, place, holder in reversed(path):
        first, sure = exposed(statements[place + 1 :], name)
        if first:
            return True
        if sure:
            return False
        if isinstance(holder, ast.For | ast.While):
            # After its last statement the outer loop's body starts again.
            if isinstance(holder, ast.While) and reads(holder.test, name):
                return True
            if exposed(holder.body, name, isinstance(holder, ast.For) and _binds(holder.target, name))[0]:
                return True
    return False


def writes_after(body: Sequence[ast.stmt], loop: ast.stmt) -> bool:
    """Whether an array may be written to after `loop`, a statement somewhere in `body`."""
    path = path_to(body, loop)
    later = [s for statements, place, _ in path for s in statements[place + 1 :]]
    holders = [holder for _, _, holder in path if isinstance(holder, ast.For | ast.While)]
    return any(_writes(x) for s in (*later, *holders) for x in ast.walk(s))


def _writes(x: ast.AST) -> bool:
    if isinstance(x, ast.Expr):  # a call as a statement is made for its effect
        return isinstance(x.value, ast.Call)
    if isinstance(x, ast.AugAssign) or (isinstance(x, ast.keyword) and x.arg == "out"):
        return True
    return isinstance(x, ast.Subscript) and isinstance(x.ctx, ast.Store)


def path_to(
    statements: Sequence[ast.stmt], loop: ast.stmt, holder: ast.stmt | None = None
) -> list[tuple[Sequence[ast.stmt], int, ast.stmt | None]]:
    """The path to a statement: each block around it, outermost first, the position in it, and its own statement."""
    for place, s in enumerate(statements):
        if s is loop:
            return [(statements, place, holder)]
        for field in ("body", "orelse", "finalbody"):
            inside = getattr(s, field, None)
            if isinstance(inside, list) and inside and isinstance(inside[0], ast.stmt):
                found = path_to(inside, loop, s)
                if found:
                    return [(statements, place, holder), *found]
        for part in (*getattr(s, "handlers", []), *getattr(s, "cases", [])):
            found = path_to(part.body, loop, s)
            if found:
                return [(statements, place, holder), *found]
    return []


# NumPy's functions that write to their first argument, and array methods that write to their array.
_WRITERS = frozenset(("at", "copyto", "put", "putmask", "place", "fill_diagonal", "fill", "sort", "itemset"))


def written_arrays(body: Sequence[ast.stmt]) -> set[str]:
    """The names of arrays that statements write to in place, as far as the syntax shows it."""
    nodes = [x for s in body for x in ast.walk(s)]
    places: list[ast.expr] = [x for x in nodes if isinstance(x, ast.Subscript) and isinstance(x.ctx, ast.Store)]
    places += [x.target for x in nodes if isinstance(x, ast.AugAssign)]
    for call in (x for x in nodes if isinstance(x, ast.Call)):
        places += [k.value for k in call.keywords if k.arg == "out"]
        if isinstance(call.func, ast.Attribute) and call.func.attr in _WRITERS:
            places += [call.func.value, *call.args[:1]]
    return {name for place in places for name in _base(place)}


def _base(place: ast.expr) -> set[str]:
    """The name of the array that an expression such as `a[i].T` is a part of."""
    while isinstance(place, ast.Subscript | ast.Attribute):
        place = place.value
    return {place.id} if isinstance(place, ast.Name) else set()
