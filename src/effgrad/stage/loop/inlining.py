"""Calls of the user's functions, whose bodies are captured."""

import ast
import inspect
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from effgrad.program.used_up import is_new
from effgrad.stage.loop import generators
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.augmented import Augmented
from effgrad.stage.loop.desugar import jumps
from effgrad.stage.loop.frames import Facts, Frame, Function, Returned
from effgrad.stage.loop.operands import Value
from effgrad.stage.loop.source import Source, made_source, source_of


class Inlining(Augmented):
    """Calls of functions whose source is known; `Capture` adds the other calls."""

    body: Callable[[Sequence[ast.stmt], Frame], None]

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.line = 0
        self.file = "a loop"
        # Names that the loop binds, and the lines of the function around it: closures made there hold stale values.
        self.rebound: frozenset[str] = frozenset()
        self.around = range(0)
        # The generators from outside the loop that it uses up.
        self.consumed: list[Value] = []

    def inline(self, function: Callable[..., Any], args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
        """Call a user's function by capturing its body."""
        source = source_of(function)
        code = function.__code__
        self.check_closure(code, source)
        values = inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
        values.apply_defaults()
        if code.co_flags & inspect.CO_GENERATOR:
            return generators.called(code, source, dict(values.arguments), self.frames[-1], self.block)
        return self.run(Frame(source, dict(values.arguments)))

    def check_closure(self, code: CodeType, source: Source) -> None:
        """Raise if a function has a variable of the loop's function that the loop binds."""
        is_inside = code.co_filename == self.file and code.co_firstlineno in self.around
        if is_inside and not self.rebound.isdisjoint(source.closed):
            raise NotCaptured(f"{code.co_name!r} closes over a name that the loop binds")

    def begun(self, g: Value, s: ast.For) -> generators.Generator:
        """A generator that the program has made, and that has not begun, for the outermost loop, which uses it up."""
        if self.around_blocks or jumps(s.body, ast.Break) or not is_new(g) or g in self.consumed:
            raise NotCaptured("a generator from before the loop that the loop may not use up")
        self.consumed.append(g)
        source, args = made_source(g)
        self.check_closure(g.gi_code, source)
        return generators.called(g.gi_code, source, args, self.frames[-1], self.block)

    def run(self, frame: Frame) -> Value:
        if self.calls > 100:
            raise NotCaptured("functions that call themselves")
        outer_line = self.line
        self.calls += 1
        around = self.frames[-1] if self.frames else frame
        self.places.move(around.own, frame.own)
        self.frames.append(frame)
        try:
            if isinstance(frame.source.node, ast.Lambda):
                return self.expression(frame.source.node.body, frame)
            self.body(frame.source.body, frame)
        except Returned as r:
            return r.value
        finally:
            self.line = outer_line
            self.calls -= 1
            self.places.move(self.frames.pop().own, around.own)
        return None

    def apply(self, f: Function, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
        """Call a function that the captured program has defined."""
        a = f.node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs:
            raise NotCaptured("an inner function with starred or keyword-only arguments")
        names = [x.arg for x in a.args]
        own = dict(zip(names[len(names) - len(f.defaults) :], f.defaults, strict=True))
        by_position = dict(zip(names, args, strict=False))
        own |= by_position | kwargs
        if set(own) != set(names) or len(args) > len(names) or set(by_position) & set(kwargs):
            raise NotCaptured("the arguments of an inner function")
        body = f.node.body if isinstance(f.node, ast.FunctionDef) else []
        if any(isinstance(x, ast.Nonlocal | ast.Global) for b in body for x in ast.walk(b)):
            raise NotCaptured("an inner function that binds names outside")
        source = Source(f.node, body, {}, {})
        if generators.is_generator(f.node):
            return generators.called(f.node, source, own, self.frames[-1], self.block, f.frame)
        return self.run(Frame(source, own, f.frame))
