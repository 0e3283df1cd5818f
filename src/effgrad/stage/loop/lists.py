"""Lists that a loop appends to, as rows of one array, if the program only reads or stacks the list afterwards.

    xs = [x]
    for t in range(n):
        x = f(x)
        xs.append(x)
    return np.array(xs)

The source alone proves that no other name refers to the list. It is made in the block of the loop, and each mention of
its name is an append or has one of the forms in `_read`. After the loop the name is bound to the array.
"""

import ast
import inspect
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from effgrad.program.own_lists import kept_inside, mentions
from effgrad.program.used_up import released, taken
from effgrad.stage.loop import planes
from effgrad.stage.loop.affine import Affine, NotCaptured, affine
from effgrad.stage.loop.desugar import jumps, leaves, origin
from effgrad.stage.loop.evaluator import Evaluator, Kind
from effgrad.stage.loop.frames import FactFound, Frame
from effgrad.stage.loop.names import path_to, writes_after
from effgrad.stage.loop.operands import (
    Complex,
    Growing,
    Lazy,
    Value,
    View,
    flat,
    is_pythons,
    may_be_in_place,
    whole_view,
)

# Functions that give the same result for an array of rows and for the list of these rows.
READERS = {
    np.array, np.asarray, np.stack, np.vstack, np.hstack, np.concatenate, np.sum, np.mean, np.max, np.min, np.amax,
    np.amin, np.std, np.var, np.prod, np.cumsum, np.diff, sum, max, min, len, zip, enumerate, reversed, list, tuple,
    released, taken,
}  # fmt: skip


def appended(statements: Sequence[ast.stmt]) -> list[str]:
    """The name in each statement `name.append(value)`, with repetitions."""
    return [name for s in statements for name in [_appended(s)] if name is not None]


def _appended(s: ast.AST) -> str | None:
    call = s.value if isinstance(s, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    f = call.func
    is_append = isinstance(f, ast.Attribute) and f.attr == "append" and isinstance(f.value, ast.Name)
    return f.value.id if is_append else None  # type: ignore[attr-defined]


def only_grows(frame: Frame, loop: ast.For, name: str) -> bool:
    """Whether a list is made in the loop's block before it, only grows in the loop, and is only read elsewhere."""
    function = frame.source.node
    path = path_to(frame.source.body, loop)
    if not path or jumps(loop.body, ast.Break) or jumps(loop.body, ast.Continue) or leaves(loop):
        return False
    statements, place, _ = path[-1]
    makers = [s for s in statements[:place] if _makes(s, name)]
    reads = {id(x) for x in _read(function, frame, name)}
    known = {id(x) for s in makers for x in mentions(s, name)} | reads
    for s in loop.body:
        if _appended(s) == name:
            f, value = s.value.func, s.value.args[0]  # type: ignore[attr-defined]
            known.update(map(id, mentions(f, name)))
            known -= {*map(id, mentions(value, name))} - reads
    return len(makers) == 1 and not kept_inside(function, name) and known.issuperset(map(id, mentions(function, name)))


def _makes(s: ast.stmt, name: str) -> bool:
    """Whether a statement is `name = [...]`, possibly as a part of a tuple assignment."""
    if not isinstance(s, ast.Assign) or len(s.targets) != 1:
        return False
    pair: tuple[ast.expr, ast.expr] = s.targets[0], s.value
    several = all(isinstance(x, ast.Tuple) for x in pair)
    targets, values = (x.elts for x in pair) if several else ([x] for x in pair)  # type: ignore[attr-defined]
    if len(targets) != len(values):
        return False
    return any(
        isinstance(t, ast.Name) and t.id == name and isinstance(v, ast.List)
        for t, v in zip(targets, values, strict=True)
    )


def _read(function: ast.AST, frame: Frame, name: str) -> Iterator[ast.Name]:
    """The mentions of a list in places where an array of its rows can stand for it."""
    for x in ast.walk(function):
        if (
            isinstance(x, ast.Subscript)
            and isinstance(x.ctx, ast.Load)
            and not isinstance(x.slice, ast.Slice | ast.Tuple)
        ):
            yield from _itself(x.value, name)
        elif isinstance(x, ast.For | ast.comprehension):
            yield from _itself(x.iter, name)
        elif isinstance(x, ast.Call) and _is_reader(x.func, frame):
            for arg in x.args:
                yield from _itself(arg, name)


def _itself(node: ast.AST, name: str) -> list[ast.Name]:
    return [node] if isinstance(node, ast.Name) and node.id == name else []


def _is_reader(f: ast.expr, frame: Frame) -> bool:
    """Whether an expression is one of `READERS`, by itself or as a part of a module."""
    name = f.value if isinstance(f, ast.Attribute) else f
    if not isinstance(name, ast.Name):
        return False
    try:
        value = frame[name.id]
    except NotCaptured:
        return False
    value = getattr(value, f.attr, None) if isinstance(f, ast.Attribute) and inspect.ismodule(value) else value
    return any(value is reader for reader in READERS)


class Lists:
    """The lists that grow in one loop."""

    def __init__(self, c: Evaluator, s: ast.For, frame: Frame, steps: range | None) -> None:
        self.c, self.s, self.frame, self.steps = c, s, frame, steps
        self.grown: dict[str, Growing | Complex] = {}
        names = appended(s.body)
        for name in dict.fromkeys(names):
            if isinstance(frame.own.get(name), list) and steps is not None and abs(steps.step) == 1:
                if only_grows(frame, origin(s), name):
                    self.grown[name] = self.growing(name, names.count(name), len(steps))
        frame.own.update(self.grown)

    def growing(self, name: str, each: int, steps: int) -> Growing | Complex:
        """Make the growing list of a name, with the items that it has before the loop."""
        key = origin(self.s), f"items of {name}"
        kind, items = self.c.facts.get(key), [self.c.lift(x) for x in self.frame.own[name]]
        kind = self.c.kind(items[0]) if kind is None and items else kind
        if isinstance(kind, Complex):
            pairs = [planes.as_planes(self.c, x) for x in items]
            return Complex(*[self.grown_from(key, kind[k], [p[k] for p in pairs], each, steps) for k in range(2)])
        return self.grown_from(key, kind, items, each, steps)

    def grown_from(self, key: Any, kind: Kind | None, items: Sequence[Value], each: int, steps: int) -> Growing:
        """A growing list of items of a kind; it has no memory yet if the kind is not known."""
        if kind is None:
            return Growing(key, None, Affine(), each)
        name = key[1].split()[-1]
        view = whole_view(self.c.buffer(name, [len(items) + each * steps, *kind.shape], kind.dtype))
        grown = Growing(key, view, Affine(), each)
        for item in items:
            append(self.c, grown, item)
        grown.first = grown.count
        return grown

    def begin(self, i: Affine) -> None:
        """Set the lengths of the lists at the beginning of a step whose loop variable is `i`."""
        steps = self.steps
        if steps is not None:
            for grown in flat(self.grown):
                grown.count = grown.first + (i - steps.start) * (steps.step * grown.each)

    def end(self) -> None:
        """Set the lengths of the lists after the loop, and check that no item is written to."""
        for grown in flat(self.grown):
            c, source = self.c, self.frame.source
            if grown.view is None:
                raise NotCaptured("a list that nothing is appended to")
            if any(value is not None and is_touched(c, value) for value in (name() for name in grown.named)):
                raise NotCaptured("an array is appended to a list, and written to")
            if grown.named and writes_after(source.body, origin(self.s)):
                raise NotCaptured(
                    "an array that has another name is appended to a list, and arrays are written to later"
                )
            grown.count = affine(grown.view.shape[0])


def append(c: Evaluator, grown: Growing | Complex, value: Value) -> None:
    """`list.append(value)`."""
    if isinstance(grown, Complex):
        for part, plane in zip(grown, planes.as_planes(c, value), strict=True):
            append(c, part, plane)
        return
    if planes.is_complex(value):
        raise FactFound(grown.key, c.kind(planes.as_planes(c, value)))
    if isinstance(value, tuple | list) or value is None:
        raise NotCaptured("a list of lists is appended to")
    if c.has_single and is_pythons(value):
        raise NotCaptured("a list of Python's numbers, which may meet values of single precision")
    lazy = c.lazy(value)
    if grown.view is None:
        raise FactFound(grown.key, Kind(lazy.shape, lazy.dtype, False))
    first, *axes = grown.view.axes
    row = View(grown.view.buffer, [grown.count, *grown.view.base[1:]], axes)
    if lazy.shape != row.shape:
        raise NotCaptured("items of a list have different shapes")
    common = np.result_type(lazy.dtype, row.dtype)
    if common != row.dtype:
        raise FactFound(grown.key, Kind(lazy.shape, common, False))  # planes never differ in type: all are float64
    if value_has_name(c, value):
        grown.named.append((lambda: value) if isinstance(value, View) else weakref.ref(value))
    c.assign(row, lazy)
    grown.count = grown.count + 1


def value_has_name(c: Evaluator, value: Value) -> bool:
    """Whether an array may have a name besides its position in a list."""
    if isinstance(value, View):
        return bool(value.axes) and not value.own
    return isinstance(value, Lazy) and bool(value.shape) and any(v is value for f in c.frames for v in f.own.values())


def is_touched(c: Evaluator, value: View | Lazy) -> bool:
    """Whether the program has assigned to elements of an array."""
    return value in c.touched or isinstance(value, View) and not c.class_of(value.buffer).isdisjoint(c.touched)


def is_append(f: Any) -> bool:
    """Whether a function is the `append` method of a list."""
    return isinstance(getattr(f, "__self__", None), list) and f.__name__ == "append"


def extend_now(c: Evaluator, items: list[Value], added: Sequence[Value]) -> None:
    """Extend a list that the current block has made, during capture, since both happen whenever the block runs."""
    if not c.makes(items):
        raise NotCaptured("an item is appended to a list that was made before the loop, or before a branch")
    items.extend(added)


def method(c: Evaluator, grown: Growing | Complex, name: str, args: Sequence[Value]) -> None:
    """Call a method of a growing list."""
    if name != "append" or len(args) != 1:
        raise NotCaptured(f"the method {name!r} of a list")
    if any(map(may_be_in_place, flat(args))):
        raise NotCaptured("an array without axes is appended to a list")
    append(c, grown, args[0])
