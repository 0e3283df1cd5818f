"""Expressions of which Python runs a part: `and`, `or` and `a if test else b`."""

import ast
import contextlib
from collections.abc import Callable, Iterable, Sequence

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.arithmetic import Operators
from effgrad.stage.loop.buffers import BOOL, Element, constant, load
from effgrad.stage.loop.frames import Frame
from effgrad.stage.loop.ir import Block, Branch, Store
from effgrad.stage.loop.names import bound
from effgrad.stage.loop.operands import SYMBOLIC, Lazy, Value, View, symbolic
from effgrad.stage.loop.places import Places
from effgrad.stage.loop.symbols import truth_classes


class Choices(Operators):
    """Truth values and choices between expressions; `Evaluator` adds the other expressions."""

    expression: Callable[[ast.expr, Frame], Value]
    new_block: Callable[[], contextlib.AbstractContextManager[Block]]
    places: Places
    merge: Callable[[Element, Callable[[], Value], Callable[[], Value], Sequence[str], Frame], None]

    def condition(self, e: ast.expr, frame: Frame) -> Value:
        """Return the value of an expression of which only the truth counts."""
        if not isinstance(e, ast.BoolOp):
            return self.expression(e, frame)
        return self.connected([(v, frame) for v in e.values], isinstance(e.op, ast.And), self.condition)

    def _BoolOp(self, e: ast.BoolOp, frame: Frame) -> Value:
        """The value of `a or b` is `a if a else b`, with `a` evaluated once; that of truth values is connected."""
        first, *others = e.values
        every, value = isinstance(e.op, ast.And), self.expression(first, frame)
        if self.is_truth(value) and all(self.is_test(v, frame) for v in others):
            return self.connected([(v, frame) for v in e.values], every, lambda v, frame: (
                value if v is first else self.expression(v, frame)))  # fmt: skip
        name = ast.copy_location(ast.Name(f"$operand{e.lineno}_{e.col_offset}_{len(others)}", ast.Load()), first)
        rest = ast.copy_location(ast.BoolOp(e.op, others), e) if len(others) > 1 else others[0]
        frame.own[name.id] = value
        choice = ast.copy_location(ast.IfExp(name, *((rest, name) if every else (name, rest))), e)
        result = self.expression(choice, frame)
        frame.own.pop(name.id)
        return result

    def is_truth(self, value: Value) -> bool:
        """Whether a symbolic value is certainly one truth value."""
        kind = self.lazy(value) if isinstance(value, View | Lazy) else None
        return kind is not None and kind.doubt is None and kind.dtype == BOOL and not kind.shape

    def is_test(self, e: ast.expr, frame: Frame) -> bool:
        """Whether an expression is seen to be one truth value before it is evaluated."""
        if isinstance(e, ast.BoolOp):
            return all(self.is_test(v, frame) for v in e.values)
        if isinstance(e, ast.Name):
            return isinstance(value := frame.own.get(e.id), bool) or self.is_truth(value)
        return isinstance(e, ast.Compare) or isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not)

    def connected(
        self, operands: Iterable[tuple[ast.expr, Frame]], every: bool, operand: Callable[[ast.expr, Frame], Value]
    ) -> Value:  # fmt: skip
        """Return the value of `and`, or of `or`, of operands that `operand` evaluates."""
        results: list[Value] = []
        for v, frame in operands:
            value = self.operand(v, results, every, frame, operand)
            if not isinstance(value, SYMBOLIC) and bool(value) is not every:
                if not results:
                    return value
                results.append(value)
                break
            results.append(value)
        if not symbolic(results):
            return results[-1] if results else None
        if operand != self.condition and not all(isinstance(value, bool | View | Lazy) for value in results):
            raise NotCaptured("the value of `and` or `or` of numbers")
        return self.all_of(results, every)

    def operand(
        self, e: ast.expr, before: list[Value], every: bool, frame: Frame, evaluate: Callable[[ast.expr, Frame], Value]
    ) -> Value:
        """The value of one operand of `and` or `or`. An operand that adds statements becomes a block of a branch.

        So it runs, and may raise, only if Python runs it. The value is then that of all operands so far, and `before`
        is emptied.
        """
        if not symbolic(before):
            return evaluate(e, frame)
        if names := bound([e]):
            return self.binding_operand(e, before, every, frame, evaluate, sorted(names))
        self.materialize_all()
        with self.new_block() as block, self.places.unchanged():
            value = evaluate(e, frame)
        if not block:
            return value
        so_far, cell = self.buffer("flag", (), BOOL), self.buffer("flag", (), BOOL)
        self.emit([], [Store(so_far, (), self.tested(lambda: self.all_of(before, every)))])
        self.emit([], [Store(cell, (), load(so_far, ()))])
        outer, self.block = self.block, block
        self.emit([], [Store(cell, (), self.tested(lambda: value))])
        self.block = outer
        self.block.append(Branch(load(so_far, ()), block, []) if every else Branch(load(so_far, ()), [], block))
        classes = truth_classes([*before, value])
        before.clear()
        return self.one_of(load(cell, ()), classes)

    def binding_operand(
        self, e: ast.expr, before: list[Value], every: bool, frame: Frame, evaluate: Callable[[ast.expr, Frame], Value],
        names: list[str],
    ) -> Value:  # fmt: skip
        """The value of one operand of `and` or `or` that binds names, if Python runs it; `before` is emptied."""
        so_far = self.tested(lambda: self.all_of(before, every))
        operands = list(before)

        def run() -> None:
            value = evaluate(e, frame)
            operands.append(value)
            if not isinstance(value, bool | View | Lazy):
                raise NotCaptured("the value of `and` or `or` of numbers")
            frame.own["$operand"] = self.number(self.tested(lambda: value), True)

        def leave() -> None:
            frame.own["$operand"] = not every

        self.merge(so_far, *((run, leave) if every else (leave, run)), ["$operand", *names], frame)
        before.clear()
        return self.one_of(self.lazy(frame.own.pop("$operand")).value, truth_classes(operands))

    def tested(self, test: Callable[[], Value]) -> Element:
        """The truth value of what `test` returns, as an expression."""
        going = self.truth(test())
        return constant(going, BOOL) if isinstance(going, bool) else going

    def _IfExp(self, e: ast.IfExp, frame: Frame) -> Value:
        test = self.truth(self.condition(e.test, frame))
        if isinstance(test, bool):
            return self.expression(e.body if test else e.orelse, frame)

        def chosen(side: ast.expr) -> Callable[[], None]:
            def run() -> None:
                frame.own["$chosen"] = self.expression(side, frame)

            return run

        self.merge(test, chosen(e.body), chosen(e.orelse), ["$chosen", *bound([e.body, e.orelse])], frame)
        return frame.own.pop("$chosen")
