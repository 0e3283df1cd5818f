"""`break` and `continue` as assignments to flags, and tests of these."""

import ast
from collections.abc import Sequence

SKIP, STOP = "$skip", "$stop"


def jumps(statements: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether statements of a loop's body contain a jump of that loop; those of loops inside are their own."""
    for s in statements:
        if isinstance(s, kind):
            return True
        if isinstance(s, ast.For | ast.While):
            if jumps(s.orelse, kind):
                return True
        elif any(jumps(getattr(s, field, None) or [], kind) for field in ("body", "orelse", "finalbody")):
            return True
    return False


def without_jumps(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop in which `continue` sets one flag and `break` both; what follows is run if none is set."""
    some = jumps(body, ast.Break), jumps(body, ast.Continue)
    if not any(some):
        return list(body)
    start = [_set(SKIP, False, body[0]), *([_set(STOP, False, body[0])] if some[0] else [])]
    return [*start, *_guarded(body)]


def _guarded(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    done: list[ast.stmt] = []
    for number, s in enumerate(statements):
        if isinstance(s, ast.Continue):
            return [*done, _set(SKIP, True, s)]
        if isinstance(s, ast.Break):
            return [*done, _set(SKIP, True, s), _set(STOP, True, s)]
        if isinstance(s, ast.If) and (jumps([s], ast.Break) or jumps([s], ast.Continue)):
            then, other = _guarded(s.body), _guarded(s.orelse)
            done.append(ast.copy_location(ast.If(s.test, then, other), s))
            rest = _guarded(statements[number + 1 :])
            if rest:
                test = ast.copy_location(ast.UnaryOp(ast.Not(), _name(SKIP, s)), s)
                done.append(ast.copy_location(ast.If(test, rest, []), s))
            return done
        done.append(s)
    return done


def _name(name: str, at: ast.stmt) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _set(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    return ast.copy_location(ast.Assign([target], ast.copy_location(ast.Constant(value), at)), at)
