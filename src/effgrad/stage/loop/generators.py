"""Generator functions that a loop uses up: their bodies are captured, with the loop's body in place of each `yield`.

    for x in powers(a, 3):        p$ = 1.0
        total = total + x         for i$ in range(n$):
                                      x = p$
                                      total = total + x
                                      p$ = p$ * a$

That is what Python does, since the body of the loop runs between two steps of the generator. The names of the generator
get a suffix that no program contains. A `break` of the loop ends the generator as its own `return` does, so both become
flags.
"""

import ast
import copy
from collections.abc import Sequence
from typing import NoReturn

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.desugar import (
    Loop,
    assigned,
    broken,
    jumps,
    leaves,
    origin,
    stop,
    unless,
    when,
    without_jumps,
)
from effgrad.stage.loop.frames import Frame
from effgrad.stage.loop.operands import Iterated, Value
from effgrad.stage.loop.source import Source

# The most loops over generators that one capture writes out, as each copies the body of its loop.
MOST_WRITTEN_OUT = 64
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
# A generator that ends by them is an error, or treats a `break` of the loop in its own way; and what needs its frame.
REFUSED = frozenset(("StopIteration", "GeneratorExit", "super", "locals"))


class Generator(Iterated):
    """The result of a call of a generator function, before anything runs in it.

    Its arguments are among the names of the frame that calls it, so that a write to one of them is seen there too.
    """

    def __init__(
        self, key: Value, source: Source, args: dict[str, Value], caller: Frame, block: list[Value], outer: Frame | None
    ) -> None:  # fmt: skip
        self.block, self.is_used = block, False
        self.key, self.source, self.caller, self.outer = key, source, caller, outer
        self.names = set(args) | Frame(source, {}).local
        self.prefix = f"${id(self)}$"
        caller.own.update({self.prefix + name: value for name, value in args.items()})

    @property
    def items(self) -> NoReturn:  # type: ignore[override]
        """No loop has the items of a generator without running it."""
        raise NotCaptured(f"the generator {self.source.node.name!r}, which something else than a loop uses up")  # type: ignore[union-attr]

    def free(self) -> set[str]:
        """The names that the function may have from outside."""
        return {x.id for s in self.source.body for x in ast.walk(s) if isinstance(x, ast.Name)} - self.names

    def begin(self, frame: Frame, suffix: str) -> None:
        """Bind the arguments, and the names from outside, in the frame of the loop that uses the generator up."""
        for name in [n for n in self.caller.own if n.startswith(self.prefix)]:
            frame.own[name.removeprefix(self.prefix) + suffix] = self.caller.own.pop(name)
        around = self.outer or Frame(self.source, {})
        for name in self.free() if around is not frame else ():
            try:
                frame.own[name + suffix] = around[name]
            except NotCaptured:  # nor is a use of it
                continue


def called(
    key: Value, source: Source, args: dict[str, Value], caller: Frame, block: list[Value], outer: Frame | None = None
) -> Generator:
    """The result of a call of a generator function, whose code or tree is `key`."""
    nodes = [x for s in source.body for x in ast.walk(s)]
    if any(isinstance(x, ast.Global | ast.Nonlocal) for x in nodes):
        raise NotCaptured("a generator that binds names from outside it")
    if not REFUSED.isdisjoint(x.id for x in nodes if isinstance(x, ast.Name)):
        raise NotCaptured("a generator that knows how it ends, or that asks for its names")
    return Generator(key, source, args, caller, block, outer)


def is_generator(function: ast.AST) -> bool:
    """Whether a syntax tree is that of a generator function."""
    return isinstance(function, ast.FunctionDef) and any(map(yields, function.body))


def yields(node: ast.AST) -> bool:
    """Whether code contains a `yield`, not counting those of functions that it defines."""
    if isinstance(node, Definition):
        return False
    return isinstance(node, ast.Yield | ast.YieldFrom) or any(map(yields, ast.iter_child_nodes(node)))


def run(c: Value, s: ast.For, g: Generator, frame: Frame) -> None:
    """Capture a loop that uses up a generator."""
    alive = [f for f in (g.caller, g.outer) if f is not None]
    if g.is_used or not runs_once(c, g.block) or any(f not in c.frames for f in alive):
        raise NotCaptured("a generator that is used twice, or in another place than the one that makes it")
    g.is_used, around, line = True, frame.source, c.line
    statements, suffix = written_out(c.facts, s, g, g.names if g.outer is frame else g.names | g.free())
    g.begin(frame, suffix)
    tree = spliced(around.node, origin(s), statements)
    frame.source = Source(tree, tree.body, around.closed, around.globals)
    try:
        with frame.followed_by(frame.rest):
            c.body(statements, frame)
    finally:
        frame.source, c.line = around, line
    for name in [n for n in frame.own if n.endswith(suffix)]:
        del frame.own[name]


def runs_once(c: Value, block: list[Value]) -> bool:
    """Whether the innermost open block runs at most once where `block` runs: it is that one, or a branch in it."""
    inner = c.block
    for outer, _, repeated in reversed(c.around_blocks):
        if inner is block or repeated:
            break
        inner = outer
    return inner is block


def spliced(tree: Value, s: ast.stmt, statements: list[ast.stmt]) -> Value:
    """A copy of a tree in which some statements stand for one of it. Parts without that one are shared."""
    made = copy.copy(tree)
    for field, value in ast.iter_fields(tree):
        if isinstance(value, list) and any(x is s for part in value for x in ast.walk(part)):
            parts = [[x] if all(y is not s for y in ast.walk(x)) else statements if x is s else [
                spliced(x, s, statements)] for x in value]  # fmt: skip
            setattr(made, field, [x for part in parts for x in part])
    return made


def written_out(
    facts: dict[tuple[Value, str], Value], s: ast.For, g: Generator, renamed: set[str]
) -> tuple[list[ast.stmt], str]:
    """The statements that a loop over a generator means, and the suffix of the generator's names in them.

    They are made once, since facts about them are kept by their identity.
    """
    key: Value = (origin(s), g.key, *sorted(renamed)), "written out"
    if key not in facts:
        number = sum(what == "written out" for _, what in facts)
        if number >= MOST_WRITTEN_OUT:
            raise NotCaptured(f"more than {MOST_WRITTEN_OUT} loops over generators")
        writer = _Writer(s, f"${number}", renamed)
        facts[key] = writer.statements(g.source.body), writer.suffix
    found: tuple[list[ast.stmt], str] = facts[key]
    return found


class _Writer:
    """Makes the statements of one loop over a generator."""

    def __init__(self, s: ast.For, suffix: str, renamed: set[str]) -> None:
        self.s, self.suffix, self.renamed = s, suffix, renamed
        self.stops, self.left = jumps(s.body, ast.Break), f"$left{suffix}"
        self.count = 0

    def labelled(self, loop: ast.For) -> ast.For:
        self.count += 1
        loop.label = f"{self.count}{self.suffix}"  # type: ignore[attr-defined]
        return loop

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The generator's body as statements of the function that has the loop."""
        s = self.s
        made = [self.renamed_in(copy.deepcopy(x)) for x in body]
        made = broken(self.with_bodies(made), self.left)
        once = self.labelled(ast.copy_location(ast.For(s.target, s.iter, made, []), s))
        flags = [self.left, *([self.stopped] if self.stops else [])]
        done = [*[assigned(flag, ast.Constant(False), s) for flag in flags], *without_jumps(once)]
        orelse = copy.deepcopy(s.orelse)
        done += [unless(self.stopped, orelse, s)] if self.stops and orelse else orelse
        if any(map(leaves, done)) or any(map(yields, done)):
            raise NotCaptured("a `yield` inside another statement than a loop or a branch, or one with a value")
        for node in [x for y in done for x in ast.walk(y)]:
            if isinstance(node, Loop):
                vars(node).pop("origin", None)
                self.labelled(node)  # type: ignore[arg-type]
        return done

    @property
    def stopped(self) -> str:
        """The name of the flag that a `break` of the loop sets."""
        return f"$stopped{self.suffix}"

    def renamed_in(self, tree: ast.stmt) -> ast.stmt:
        """Add the suffix to the names of the generator."""
        for x in ast.walk(tree):
            for field in ("id", "arg", "name"):
                if getattr(x, field, None) in self.renamed and not isinstance(x, ast.keyword | ast.alias):
                    setattr(x, field, getattr(x, field) + self.suffix)
        return tree

    def with_bodies(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Replace each `yield` by the body of the loop, and the value of each `return` by nothing."""
        done: list[ast.stmt] = []
        for x in statements:
            value = x.value if isinstance(x, ast.Expr) else None
            if isinstance(x, ast.Return):
                done += [ast.copy_location(ast.Expr(x.value), x)] if x.value else []
                done.append(ast.copy_location(ast.Return(), x))
            elif isinstance(value, ast.Yield):
                done += self.body_for(value.value or ast.Constant(None), x)
            elif isinstance(value, ast.YieldFrom):
                item = ast.Name(f"$item{self.count}{self.suffix}", ast.Store())
                body = self.body_for(ast.Name(item.id, ast.Load()), x)
                done.append(ast.For(item, value.value, body, []))
            else:
                if isinstance(x, Loop | ast.If | ast.With):
                    x.body = self.with_bodies(x.body)
                if isinstance(x, Loop | ast.If):
                    x.orelse = self.with_bodies(x.orelse)
                done.append(x)
            ast.fix_missing_locations(ast.copy_location(done[-1], x))
        return done

    def body_for(self, value: ast.expr, at: ast.stmt) -> list[ast.stmt]:
        """The body of the loop for one item, with what follows its `break`."""
        loop = self.labelled(copy.deepcopy(ast.copy_location(ast.For(self.s.target, value, self.s.body, []), self.s)))
        bound = ast.copy_location(ast.Assign([loop.target], value), at)
        done = [ast.fix_missing_locations(bound), *without_jumps(loop)]
        if self.stops:
            mark = assigned(self.stopped, ast.Constant(True), at)
            done.append(when(stop(loop), [mark, ast.copy_location(ast.Return(), at)], at))
        return done
