"""`break`, `continue` and `return` in loops, rewritten as assignments to flags and tests of the flags.

Each loop has its own flags, whose names no program can contain. `return` sets two names that all loops of a function
share.
"""

import ast
from collections.abc import Sequence

from effgrad.program.control import LEFT as LEFT
from effgrad.program.control import RESULT as RESULT
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.operands import Value

Loop = ast.For | ast.While


def jumps(statements: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether the body of a loop contains a jump of that loop, not counting the jumps of loops inside it."""
    for s in statements:
        if isinstance(s, kind):
            return True
        if isinstance(s, Loop):
            if jumps(s.orelse, kind):
                return True
        elif any(jumps(getattr(s, field, None) or [], kind) for field in ("body", "orelse", "finalbody")):
            return True
    return False


def leaves(s: ast.stmt) -> bool:
    """Whether a statement contains a `return` of its function."""
    if isinstance(s, ast.FunctionDef | ast.ClassDef):
        return False
    blocks = [getattr(s, field, None) or [] for field in ("body", "orelse", "finalbody")]
    return isinstance(s, ast.Return) or any(leaves(x) for block in blocks for x in block)


def skip(loop: Loop) -> str:
    """The name of the flag that a loop's `continue` sets."""
    return f"$skip{label(loop)}"


def stop(loop: Loop) -> str:
    """The name of the flag that a loop's `break` sets."""
    return f"$stop{label(loop)}"


def label(loop: Loop) -> str:
    """A text that tells apart loops of which one may be inside the other."""
    return getattr(origin(loop), "label", f"{loop.lineno}_{loop.col_offset}")


def origin(loop: Value) -> Value:
    """The loop of the source code that a rewritten loop was made from."""
    return getattr(loop, "origin", loop)


def without_returns(loop: Loop) -> tuple[list[ast.stmt], Loop]:
    """Rewrite a loop that may return as one with `break`. Return the statements before it, and the loop.

    After the loop, the name `LEFT` holds whether it has returned, and `RESULT` what.
    """
    return [assigned(LEFT, ast.Constant(False), loop)], _breaking(loop)


def result_of(loop: Loop) -> ast.stmt:
    """`if LEFT: return RESULT`, or `return RESULT` after a loop that ends in no other way."""
    value = ast.copy_location(ast.Return(_name(RESULT, loop)), loop)
    is_endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    if is_endless and not jumps(loop.body, ast.Break):
        return value
    return ast.copy_location(ast.If(_name(LEFT, loop), [value], []), loop)


def _breaking(loop: Loop, left: str = LEFT) -> Loop:
    fields: dict[str, Value] = {**dict(ast.iter_fields(loop)), "body": broken(loop.body, left)}
    made = ast.copy_location(type(loop)(**fields), loop)
    made.origin = origin(loop)  # type: ignore[union-attr]
    return made


def broken(statements: Sequence[ast.stmt], left: str = LEFT) -> list[ast.stmt]:
    """The body of a loop in which `return` sets the flag `left`, and `break` follows it in all loops.

    What is returned is kept if the flag is `LEFT`, that of the function.
    """
    done: list[ast.stmt] = []
    for s in statements:
        if isinstance(s, ast.Return):
            value = s.value or ast.copy_location(ast.Constant(None), s)
            done += [assigned(RESULT, value, s)] if left == LEFT else []
            done += [assigned(left, ast.Constant(True), s), ast.copy_location(ast.Break(), s)]
        elif isinstance(s, ast.If) and leaves(s):
            done.append(ast.copy_location(ast.If(s.test, broken(s.body, left), broken(s.orelse, left)), s))
        elif isinstance(s, Loop) and leaves(s):
            done += [_breaking(s, left), when(left, [ast.Break()], s)]
        else:
            done.append(s)
    return done


def without_jumps(loop: Loop) -> list[ast.stmt]:
    """The body of a loop in which `continue` sets the skip flag, and `break` both flags.

    The statements after a jump run only if the skip flag is not set.
    """
    body = loop.body
    some = jumps(body, ast.Break), jumps(body, ast.Continue)
    if not any(some):
        return list(body)
    start = [_flag(skip(loop), False, body[0]), *([_flag(stop(loop), False, body[0])] if some[0] else [])]
    return [*start, *_guarded(body, loop)]


def _guarded(statements: Sequence[ast.stmt], loop: Loop) -> list[ast.stmt]:
    done: list[ast.stmt] = []
    for number, s in enumerate(statements):
        if isinstance(s, ast.Continue):
            return [*done, _flag(skip(loop), True, s)]
        if isinstance(s, ast.Break):
            return [*done, _flag(skip(loop), True, s), _flag(stop(loop), True, s)]
        if isinstance(s, ast.If) and (jumps([s], ast.Break) or jumps([s], ast.Continue)):
            then, other = _guarded(s.body, loop), _guarded(s.orelse, loop)
            done.append(ast.copy_location(ast.If(s.test, then, other), s))
            rest = _guarded(statements[number + 1 :], loop)
            if rest:
                done.append(unless(skip(loop), rest, s))
            return done
        done.append(s)
    return done


def with_test_inside(loop: ast.While) -> ast.While:
    """Rewrite `while test: body` as a loop whose body begins with the test, so that the body binds the test's names."""
    if loop.orelse:
        raise NotCaptured("`:=` in the test of a loop with `else`")
    leave = ast.If(ast.UnaryOp(ast.Not(), loop.test), [ast.Break()], [])
    made = ast.While(ast.Constant(True), [leave, *loop.body], [])
    for node in (leave, leave.test, leave.body[0], made, made.test):
        ast.copy_location(node, loop)
    made.origin = origin(loop)  # type: ignore[attr-defined]
    return made


def nested(loop: ast.For, names: Sequence[str]) -> ast.For:
    """Rewrite a loop over all combinations of the items of the named iterables as nested loops."""
    items = [f"$item{name}" for name in names]
    targets = ast.copy_location(ast.Tuple([_name(i, loop) for i in items], ast.Load()), loop)
    body = [ast.copy_location(ast.Assign([loop.target], targets), loop), *loop.body]
    for name, item in reversed(list(zip(names, items, strict=True))):
        target = ast.copy_location(ast.Name(item, ast.Store()), loop)
        made = ast.copy_location(ast.For(target, _name(name, loop), body, []), loop)
        made.origin = origin(loop)  # type: ignore[attr-defined]
        body = [made]
    return made


def exchanged(body: Sequence[ast.stmt]) -> list[str] | None:
    """The names that a body exchanges (`a, b = b, a`) and binds nowhere else, or None."""
    for s in body:
        names = _exchange(s)
        if names:
            others = [x for o in body if o is not s for x in ast.walk(o)]
            written = {x.target for x in others if isinstance(x, ast.AugAssign)}  # `a += b` writes to the array
            bound = [x for x in others if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)]
            return names if not any(x.id in names for x in bound if x not in written) else None
    return None


def _exchange(s: ast.stmt) -> list[str] | None:
    """The names that a statement like `a, b = b, a` exchanges, or None."""
    if not isinstance(s, ast.Assign) or len(s.targets) > 1:
        return None
    before, after = (getattr(side, "elts", []) for side in (s.value, s.targets[0]))
    if not all(isinstance(x, ast.Name) for x in (*before, *after)):
        return None
    names = [x.id for x in after]
    return names if len(set(names)) == len(names) > 1 and sorted(names) == sorted(x.id for x in before) else None


def _name(name: str, at: ast.stmt) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _flag(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    return assigned(name, ast.Constant(value), at)


def when(name: str, statements: list[ast.stmt], at: ast.stmt) -> ast.If:
    """Statements that run if a flag is set."""
    return ast.fix_missing_locations(ast.copy_location(ast.If(_name(name, at), statements, []), at))


def unless(name: str, statements: list[ast.stmt], at: ast.stmt) -> ast.If:
    """Statements that run if a flag is not set."""
    test = ast.copy_location(ast.UnaryOp(ast.Not(), _name(name, at)), at)
    return ast.copy_location(ast.If(test, statements, []), at)


def assigned(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    """An assignment to a name."""
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    value = value if hasattr(value, "lineno") else ast.copy_location(value, at)
    return ast.copy_location(ast.Assign([target], value), at)
