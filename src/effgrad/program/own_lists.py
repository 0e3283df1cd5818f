"""Lists that one local name refers to, and whose items a function replaces: `states[k] = f(states[k])`.

No other name can refer to such a list, so the assignment is as good as one of a new list to the name. Handlers that
capture a loop carry the name from step to step. The targets of these assignments are marked (`replaces`).
"""

import ast
from collections.abc import Iterator

from effgrad.program.numerals import is_new_list, values_of

# Functions of Python and NumPy that only read a list given to them.
READERS = frozenset((
    "array", "asarray", "stack", "vstack", "hstack", "column_stack", "concatenate", "sum", "mean", "max", "min", "prod",
    "cumsum", "diff", "any", "all", "len", "zip", "enumerate", "reversed", "list", "tuple", "sorted", "range",
))  # fmt: skip
# Those of them that read it later.
ITERATORS = frozenset(("zip", "enumerate", "reversed"))
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def replaces(node: ast.AST, others: bool = False) -> bool:
    """Whether a node is the target of an assignment that replaces an item of a list with one name.

    An augmented assignment may change the item in place instead. With `others`, some assignment has to be another one.
    """
    return is_item(node) and isinstance(node.ctx, ast.Store) and (node.replaced or not others)  # type: ignore[attr-defined]


def is_item(node: ast.AST) -> bool:
    """Whether a node is an item of a list with one name, some item of which is replaced."""
    return hasattr(node, "replaced")


def mark_replaced(function: ast.AST) -> None:
    """Mark the items of lists with one name, if some item is assigned to.

    A mark is whether some assignment to items of that list is not augmented.
    """
    if not isinstance(function, ast.FunctionDef):
        return
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    items: dict[str, list[ast.Subscript]] = {}
    for x in ast.walk(function):
        if isinstance(x, ast.Subscript) and _is_at_place(x):
            items.setdefault(x.value.id, []).append(x)  # type: ignore[attr-defined]
    for name, own in items.items():
        targets = [parents[x] for x in own if isinstance(x.ctx, ast.Store)]
        if targets and _has_one_name(function, name, parents):
            for x in own:
                x.replaced = not all(isinstance(s, ast.AugAssign) for s in targets)  # type: ignore[attr-defined]


def _is_at_place(x: ast.Subscript) -> bool:
    """Whether a subscript is of a name, at one place."""
    return isinstance(x.value, ast.Name) and not isinstance(x.slice, ast.Slice | ast.Tuple)


def _has_one_name(function: ast.FunctionDef, name: str, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a name is only bound to new lists, and only read in ways that give them no other name."""
    values = values_of(function, name)
    if not values or not all(map(is_new_list, values)):
        return False
    return all(_is_harmless(x, parents) for x in mentions(function, name)) and not kept_inside(function, name)


def kept_inside(function: ast.AST, name: str) -> bool:
    """Whether a nested function or class mentions a name."""
    return any(mentions(x, name) for x in ast.walk(function) if isinstance(x, Scope) and x is not function)


def mentions(node: ast.AST, name: str) -> list[ast.Name]:
    """The places in a node where a name is read or bound."""
    return [x for x in ast.walk(node) if isinstance(x, ast.Name) and x.id == name]


def _is_harmless(mention: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a mention binds the name, or reads or replaces items, or gives the list to a function that only reads."""
    parent = parents[mention]
    if isinstance(mention.ctx, ast.Store):  # what it is bound to is known to be new
        statement = parents[parent] if isinstance(parent, ast.Tuple) else parent
        return not isinstance(statement, ast.Assign) or len(statement.targets) == 1
    if isinstance(parent, ast.Subscript) and parent.value is mention:
        return isinstance(parent.ctx, ast.Load) or _is_at_place(parent) and isinstance(parent.ctx, ast.Store)
    if isinstance(parent, ast.Attribute):
        call = parents[parent]
        return parent.attr == "append" and isinstance(call, ast.Call) and isinstance(parents[call], ast.Expr)
    if isinstance(parents[parent] if isinstance(parent, ast.Tuple) else parent, ast.Return):
        return True
    return _is_used_up(mention, parents) and not _is_replaced_meanwhile(mention, parents)


def _is_used_up(iterable: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a list, or an iterator made of it, is only read, and has been read when its statement ends."""
    holder = parents[iterable]
    if isinstance(holder, ast.For):
        return holder.iter is iterable
    if isinstance(holder, ast.comprehension):
        made = parents[holder]
        return holder.iter is iterable and (not isinstance(made, ast.GeneratorExp) or _is_used_up(made, parents))
    f = holder.func if isinstance(holder, ast.Call) and iterable in holder.args else None
    name = f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""
    return name in READERS and (name not in ITERATORS or _is_used_up(holder, parents))


def _is_replaced_meanwhile(mention: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a loop goes over the list, or over what functions make of it, and replaces items other than its own."""
    iterated: ast.AST = mention
    while isinstance(parents[iterated], ast.Call):
        iterated = parents[iterated]
    loop = parents[iterated]
    if not isinstance(loop, ast.For) or loop.iter is not iterated:
        return False
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else None
    counter = first.id if isinstance(first, ast.Name) and _numbers_items(iterated, mention) else None
    stored = [x for s in loop.body for x in _items_of(s, mention.id) if isinstance(x.ctx, ast.Store)]
    return not all(isinstance(x.slice, ast.Name) and x.slice.id == counter for x in stored)


def _numbers_items(iterated: ast.AST, mention: ast.Name) -> bool:
    """Whether an expression is `enumerate(items)` or `enumerate(zip(items, ...))`."""
    match iterated:
        case ast.Call(ast.Name("enumerate"), [inside], []):
            return inside is mention or isinstance(inside, ast.Call) and mention in inside.args and (
                isinstance(inside.func, ast.Name) and inside.func.id == "zip")  # fmt: skip
    return False


def _items_of(node: ast.AST, name: str) -> Iterator[ast.Subscript]:
    return (x for x in ast.walk(node) if isinstance(x, ast.Subscript) and _is_at_place(x) and x.value.id == name)  # type: ignore[attr-defined]
