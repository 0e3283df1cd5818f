"""The rewriting of syntax that binds names: assignments, augmented assignments, comprehensions and `with`.

An assignment to an item or an attribute becomes an operation. If such a target is inside a tuple, its value is first
bound to a temporary name, which begins with @ and so cannot occur in the program.
"""

import ast
import copy
from collections.abc import Iterator
from typing import Any

from effgrad.program.direct import class_tests, conjunction, names_of, on_one_line
from effgrad.program.syntax import BINARY, Reader, iterated, key, placed, rewrites, statements, tested
from effgrad.vocabulary import Object


@rewrites(ast.With, ast.AsyncWith)
def with_block(reader: Reader, node: ast.With | ast.AsyncWith) -> Object:
    stores: list[ast.stmt] = []
    name = "context" if isinstance(node, ast.With) else "context_async"
    for item in node.items:
        item.context_expr = reader.operation(name, item.context_expr, reader.visit(item.context_expr))
        if item.optional_vars is not None:
            item.optional_vars = target(reader, reader.visit(item.optional_vars), stores)
    node.body = [*stores, *statements(reader, node.body)]
    return node


@rewrites(ast.Assign)
def assign(reader: Reader, node: ast.Assign) -> Object:
    reader.generic_visit(node)
    if len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript | ast.Attribute):
        return store(reader, node.targets[0], node.value, node)
    patterns = [place for place in node.targets if isinstance(place, ast.Tuple | ast.List)]
    if patterns and len(node.targets) > 1:
        return _chained(reader, node)
    if patterns:
        node.value = unpacked(reader, patterns[0], node.value)
    stores: list[ast.stmt] = []
    node.targets = [target(reader, place, stores) for place in node.targets]
    return [node, *stores] if stores else node


def unpacked(reader: Reader, place: ast.Tuple | ast.List, value: ast.expr) -> ast.expr:
    """Return the expression for the value unpacked into a target. A literal tuple is left to Python."""
    shape = pattern(place)
    if isinstance(value, ast.Tuple | ast.List) and not any(isinstance(part, tuple) for part in shape):
        return value
    return reader.operation("unpacked", value, value, ast.Constant(shape))


def iterated_values(reader: Reader, place: Object, values: ast.expr) -> ast.expr:
    """Return the expression that a loop iterates over, which prepares each item if the target unpacks it."""
    if not isinstance(place, ast.Tuple | ast.List):
        return values
    return reader.operation("each_unpacked", values, values, ast.Constant(pattern(place)))


@rewrites(ast.AsyncFor)
def async_loop(reader: Reader, node: ast.AsyncFor) -> Object:
    reader.generic_visit(node)
    node.iter = reader.operation("iterate_async", node.iter, node.iter)
    return node


@rewrites(ast.Await)
def await_(reader: Reader, node: ast.Await) -> Object:
    node.value = reader.operation("awaited", node.value, reader.visit(node.value))
    return node


@rewrites(ast.comprehension)
def comprehension(reader: Reader, node: ast.comprehension) -> Object:
    node.target, node.ifs = reader.visit(node.target), [tested(reader, test) for test in node.ifs]
    if node.is_async:
        node.iter = reader.operation("iterate_async", node.iter, reader.visit(node.iter))
    else:
        node.iter = iterated_values(reader, node.target, iterated(reader, node.iter))
    return node


def pattern(place: Object) -> Object:
    """The shape of a target as a constant: a tuple for a tuple or list, ... for a starred target, else None."""
    if isinstance(place, ast.Tuple | ast.List):
        return tuple(map(pattern, place.elts))
    return ... if isinstance(place, ast.Starred) else None


@rewrites(ast.Set)
def elements(reader: Reader, node: ast.Set) -> ast.Set:
    node.elts = [_key(reader, part) for part in node.elts]
    return node


@rewrites(ast.Dict)
def items(reader: Reader, node: ast.Dict) -> ast.Dict:
    node.keys = [part and _key(reader, part) for part in node.keys]
    node.values = [reader.visit(part) for part in node.values]
    return node


@rewrites(ast.SetComp, ast.DictComp)
def comprehended(reader: Reader, node: ast.SetComp | ast.DictComp) -> ast.expr:
    if isinstance(node, ast.SetComp):
        node.elt = _key(reader, node.elt)
    else:
        node.key, node.value = _key(reader, node.key), reader.visit(node.value)
    node.generators = [reader.visit(part) for part in node.generators]
    return node


def _key(reader: Reader, node: ast.expr) -> ast.expr:
    """Rewrite a key of a set or a dictionary."""
    plain = isinstance(node, ast.Constant | ast.JoinedStr | ast.Starred) or reader.yields_number(node)
    read = reader.visit(node)
    return read if plain else reader.operation("as_key", node, read)


@rewrites(ast.Delete)
def delete(reader: Reader, node: ast.Delete) -> Object:
    result: list[ast.stmt] = []
    for place in flattened(node.targets):
        reader.generic_visit(place)
        if isinstance(place, ast.Subscript):
            gone = reader.operation("delitem", place, place.value, key(reader, place.slice))
        elif isinstance(place, ast.Attribute) and not place.attr.startswith("__"):
            gone = reader.operation("delattribute", place, place.value, ast.Constant(place.attr))
        else:
            result.append(placed(ast.Delete([place]), node))
            continue
        result.append(placed(ast.Expr(gone), node))
    return result or node


def flattened(places: list[ast.expr]) -> Iterator[ast.expr]:
    for place in places:
        if isinstance(place, ast.Tuple | ast.List):
            yield from flattened(place.elts)
        else:
            yield place


def deleted(name: str, at: ast.AST) -> ast.stmt:
    """Return the deletion of a temporary name after its use, so that the program's arrays do not live longer."""
    return placed(ast.Delete([ast.Name(name, ast.Del())]), at)


def _chained(reader: Reader, node: ast.Assign) -> list[ast.stmt]:
    """Split `a = b, c = value` into successive assignments, since only some of the targets unpack the value."""
    name = reader.temporary()
    result: list[ast.stmt] = [placed(ast.Assign([ast.Name(name, ast.Store())], node.value), node)]
    for place in node.targets:
        value: ast.expr = placed(ast.Name(name, ast.Load()), node)
        if isinstance(place, ast.Tuple | ast.List):
            value = unpacked(reader, place, value)
        stores: list[ast.stmt] = []
        result += [placed(ast.Assign([target(reader, place, stores)], value), node), *stores]
    return [*result, deleted(name, node)]


def target(reader: Reader, place: Object, stores: list[ast.stmt]) -> Object:
    """Return a target without items and attributes, and append the assignments to them to `stores`.

    Each part of such a target becomes a temporary name, so that the parts are assigned in Python's order.
    """
    if isinstance(place, ast.Name) or not any(isinstance(x, ast.Subscript | ast.Attribute) for x in ast.walk(place)):
        return place
    return renamed(reader, place, stores)


def renamed(reader: Reader, place: Object, stores: list[ast.stmt]) -> Object:
    if isinstance(place, ast.Tuple | ast.List):
        place.elts = [renamed(reader, item, stores) for item in place.elts]
        return place
    if isinstance(place, ast.Starred):
        place.value = renamed(reader, place.value, stores)
        return place
    name = reader.temporary()
    value = placed(ast.Name(name, ast.Load()), place)
    if isinstance(place, ast.Name):
        stores.append(placed(ast.Assign([ast.Name(place.id, ast.Store())], value), place))
    else:
        stores.append(store(reader, place, value, place))
    stores.append(deleted(name, place))
    return placed(ast.Name(name, ast.Store()), place)


def store(reader: Reader, place: Object, value: ast.expr, at: ast.AST) -> ast.stmt:
    """Return an assignment to an item or an attribute. It evaluates the value, the holder and the key in this order."""
    if isinstance(place, ast.Subscript):
        return placed(ast.Expr(reader.operation("setitem", at, value, place.value, key(reader, place.slice))), at)
    if place.attr.startswith("__"):  # Python may mangle the name in a class
        return placed(ast.Assign([place], value), at)
    return placed(ast.Expr(reader.operation("setattribute", at, value, place.value, ast.Constant(place.attr))), at)


@rewrites(ast.AugAssign)
def augmented(reader: Reader, node: ast.AugAssign) -> Object:
    plain = reader.yields_number(node.target) and reader.yields_number(node.value)
    if isinstance(node.target, ast.Name) and not plain and on_one_line(node):
        names = names_of(node.value, reader.numbers)
        if names is not None:
            return directly(reader, node, names)
    reader.generic_visit(node)
    name, place = "i" + BINARY[type(node.op)].strip("_"), node.target
    if plain:
        return node
    if isinstance(place, ast.Name):
        before = ast.copy_location(ast.Name(place.id, ast.Load()), place)
        return placed(ast.Assign([place], reader.operation(name, node, before, node.value)), node)
    if isinstance(place, ast.Attribute) and place.attr.startswith("__"):
        return node
    if isinstance(place, ast.Subscript):
        place.slice = key(reader, place.slice)
    if isinstance(node.value, ast.Name | ast.Constant):
        return _updated_at_once(reader, name, node)
    return _updated_in_steps(reader, name, node)


def directly(reader: Reader, node: ast.AugAssign, names: list[ast.Name]) -> ast.stmt:
    """Return `s += a * x` also unchanged, for an `s` that is a number or a traced value: not an array to write to."""
    target: Object = node.target
    before, place = copy.deepcopy(node), ast.copy_location(ast.Name(target.id, ast.Load()), target)
    questions = class_tests([place], "OPERANDS", reader.named)
    questions += class_tests([name for name in names if name.id != target.id], "DIRECT", reader.named)
    reader.stays = True
    value = reader.visit(node.value)
    reader.stays = False
    name = "i" + BINARY[type(node.op)].strip("_")
    read = placed(ast.Assign([target], reader.operation(name, node, copy.copy(place), value)), node)
    return placed(ast.If(conjunction(questions), [before], [read]), node)


def _updated_at_once(reader: Reader, name: str, node: Any) -> ast.stmt:
    """Return `a[i] += b` as one operation, since evaluating the value `b` cannot change `a[i]`."""
    place = node.target
    if isinstance(place, ast.Subscript):
        update = reader.operation("item_" + name, node, place.value, place.slice, node.value)
    else:
        update = reader.operation("attribute_" + name, node, place.value, ast.Constant(place.attr), node.value)
    return placed(ast.Expr(update), node)


def _updated_in_steps(reader: Reader, name: str, node: Any) -> list[ast.stmt]:
    """Return `a[i] += f()` in steps, since Python reads the item before it evaluates the value."""
    place = node.target
    parts = {reader.temporary(): place.value}
    if isinstance(place, ast.Subscript):
        parts[reader.temporary()] = place.slice
    loads: list[ast.expr] = [placed(ast.Name(part, ast.Load()), node) for part in parts]
    if isinstance(place, ast.Attribute):
        loads.append(placed(ast.Constant(place.attr), node))
    kind = "item" if isinstance(place, ast.Subscript) else "attribute"
    before = reader.operation("getitem" if kind == "item" else "attribute", node, *loads)
    after = reader.operation(name, node, before, node.value)
    stored = reader.operation("set" + kind, node, after, *loads)
    return [
        *(placed(ast.Assign([ast.Name(part, ast.Store())], value), node) for part, value in parts.items()),
        placed(ast.Expr(stored), node),
        *(deleted(part, node) for part in parts),
    ]
