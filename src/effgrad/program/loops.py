"""The rewriting of loops: each first asks the running handlers how to run it (`effgrad.program.control`)."""

import ast

from effgrad.program.control import LEFT, RESULT, Loop
from effgrad.program.stores import deleted, iterated_values, target
from effgrad.program.syntax import Reader, iterated, placed, rewrites, statements, tested
from effgrad.vocabulary import Object


@rewrites(ast.For)
def for_loop(reader: Reader, node: ast.For) -> Object:
    loop = Loop(reader.lines, reader.file, node, reader.lists)
    node.target = reader.visit(node.target)
    node.iter = iterated_values(reader, node.target, iterated(reader, node.iter))
    stores: list[ast.stmt] = []
    node.target = target(reader, node.target, stores)
    node.body = [*stores, *statements(reader, node.body)]
    node.orelse = statements(reader, node.orelse)
    return ask_handlers(reader, loop, node)


@rewrites(ast.While)
def while_loop(reader: Reader, node: ast.While) -> Object:
    loop = Loop(reader.lines, reader.file, node, reader.lists)
    node.test = tested(reader, node.test)
    node.body, node.orelse = statements(reader, node.body), statements(reader, node.orelse)
    return ask_handlers(reader, loop, node)


def ask_handlers(reader: Reader, loop: Loop, node: ast.For | ast.While) -> list[ast.stmt] | ast.stmt:
    """Return `@1 = (@1 := @.loops()) and @1(loop, @.locals(), @.globals())`, and a branch on its result.

    If that is None, the loop itself runs; else the names that it has bound are assigned.
    """
    if not reader.asks:
        return node
    name = reader.temporary()
    asked = placed(ast.NamedExpr(ast.Name(name, ast.Store()), reader.operation("loops", node)), node)
    scope = [reader.operation("locals", node), reader.operation("globals", node)]
    answer = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(reader.constant(loop)), *scope], [])
    ask = ast.Assign([ast.Name(name, ast.Store())], ast.BoolOp(ast.And(), [asked, answer]))
    unanswered = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [ast.Constant(None)])
    taken = [_when(name, bound, ast.Assign([ast.Name(bound, ast.Store())], _item(name, bound))) for bound in loop.bound]
    if any(isinstance(part, ast.Return) for part in ast.walk(node)):
        taken.append(_when(name, LEFT, ast.If(_item(name, LEFT), [ast.Return(_item(name, RESULT))], [])))
    taken = taken or [ast.Pass()]
    return [placed(ask, node), placed(ast.If(unanswered, [node], taken), node), deleted(name, node)]


def _item(names: str, name: str) -> ast.expr:
    return ast.Subscript(ast.Name(names, ast.Load()), ast.Constant(name), ast.Load())


def _when(names: str, name: str, then: ast.stmt) -> ast.stmt:
    """Return `if "name" in names: then`."""
    return ast.If(ast.Compare(ast.Constant(name), [ast.In()], [ast.Name(names, ast.Load())]), [then], [])
