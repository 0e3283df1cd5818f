"""Capture of Python's expressions, with one method for each kind of syntax node."""

import ast
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from effgrad.arrays.value import Tracer, contiguous, example
from effgrad.arrays.written import memory_of
from effgrad.program.own_numbers import is_own_number
from effgrad.stage.loop import (
    asked,
    builtin,
    concatenation,
    contractions,
    fancy,
    folds,
    library,
    masks,
    pieces,
    planes,
    small_systems,
    vectors,
)
from effgrad.stage.loop.affine import Affine, NotCaptured, as_constant
from effgrad.stage.loop.arithmetic import is_python_bool, is_python_integer
from effgrad.stage.loop.buffers import Buffer, constant
from effgrad.stage.loop.containers import is_immutable, like, parts_of
from effgrad.stage.loop.element import element, primitive_of
from effgrad.stage.loop.frames import Facts, Frame, Function
from effgrad.stage.loop.ir import Block
from effgrad.stage.loop.objects import check_read
from effgrad.stage.loop.operands import (
    Axis,
    Complex,
    Extent,
    Growing,
    Lazy,
    Masked,
    Method,
    Plane,
    Value,
    View,
    as_array_of,
    broadcast,
    flat,
    is_pythons,
    read,
    symbolic,
    views_in,
    whole_view,
)
from effgrad.stage.loop.places import PLACES, STALE, Places, getter
from effgrad.stage.loop.printed import Texts
from effgrad.stage.loop.registry import rules_in
from effgrad.stage.loop.source import Source
from effgrad.stage.loop.special_methods import UNARY, method_of
from effgrad.stage.loop.values import WRITTEN
from effgrad.vocabulary import DType, Params

# The functions of Python and NumPy that capture handles by rules.
MODULES = asked, builtin, fancy, folds, library, concatenation, pieces, contractions, small_systems, planes, vectors
RULES = {f: run for module in MODULES for f, run in rules_in(vars(module)).items()}


def _item(value: Value, key: Value) -> Value:
    """An item of a known object. A view of an array without axes would lose what is written to it."""
    found = value[key]
    if isinstance(value, np.ndarray) and not value.ndim and isinstance(found, np.ndarray):
        raise NotCaptured("a view of an array without axes")
    return found


class Kind(NamedTuple):
    """The facts about a value that are known before it is computed."""

    shape: tuple[Extent, ...]
    dtype: DType
    weak: bool


class Evaluator(Texts):
    """The expressions of a captured program; `Branches` and `Capture` add statements."""

    bind: Callable[[ast.expr, Value, Frame], None]

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.inputs: list[tuple[Value, Buffer]] = []
        self.lifted: dict[int, tuple[Value, Value]] = {}
        # The frames of the functions being captured.
        self.frames: list[Frame] = []
        # The attributes and items that the loops assign.
        self.places: Places = self.facts.setdefault(PLACES, Places())
        # The lists that the program makes, by identity, with the blocks that make them.
        self.lists: dict[int, tuple[Value, Block]] = {}

    def lift(self, value: Value) -> Value:
        """Return a value from outside the loop as a symbolic one; what is known at capture is returned unchanged."""
        if id(value) in self.lists:
            return value
        if value is STALE:
            value()  # raises
        if type(value) in (tuple, list) or is_immutable(value):
            return self.lift_parts(value)
        if is_own_number(value):
            raise NotCaptured(f"a number of the class {type(value).__name__}")
        is_array = isinstance(value, np.ndarray) and (value.ndim > 0 or value.dtype.kind in "fc" or memory_of(value))
        if not isinstance(value, Tracer):
            if not is_array:
                return self.noted(value)  # complex numbers too
            if type(value) not in (np.ndarray, np.memmap):  # it may define the operators
                raise NotCaptured(f"an array of the class {type(value).__name__}")
        if id(value) not in self.lifted:
            changes = isinstance(value, Tracer) or value.dtype.kind in "fc" or (id(value), WRITTEN) in self.facts
            found = self.input(value) if changes else self.table_view(value) if value.dtype.kind in "iub" else value
            self.lifted[id(value)] = value, as_array_of(found, value)
        return self.lifted[id(value)][1]

    def lift_parts(self, value: Value) -> Value:
        """Lift the parts of a container; one that cannot change and has only known parts stays the same object."""
        parts = parts_of(value) or []
        lifted = list(map(self.lift, parts))
        same = type(value) is not list and all(map(operator.is_, parts, lifted))
        return value if same else like(value, lifted)

    def input(self, value: Value) -> Value:
        """Make a new input of the region."""
        like = example(value, form=True)
        dtype = np.result_type(like)
        if dtype.kind == "c":
            return Complex(*[self.real_input(Plane(value, k), like, planes.component(dtype)) for k in (False, True)])
        return self.real_input(value, like, dtype)

    def real_input(self, value: Value, like: Value, dtype: DType) -> View | Lazy:
        """Make an input of real numbers: a value, or one plane of a complex one."""
        buffer = self.buffer("x", np.shape(like), dtype, narrow=True)
        self.inputs.append((value, buffer))
        buffer.order = "C" if contiguous(value.value if isinstance(value, Plane) else value) else "F"
        if np.shape(like):
            return whole_view(buffer)
        self.private.add(buffer)  # else a branch that reads it first would store it in a block of its own
        return self.number(read(buffer, ()), is_pythons(like))

    def is_shared(
        self, view: View, frame: Frame, name: str, *others: Mapping[str, Value], copied: bool = False
    ) -> bool:
        """Whether the memory of a view has a name besides `name` in `frame`; `others` are further tables of names.

        With `copied` only copies of it count, in which a write to the view would not be seen.
        """
        members = self.class_of(view.buffer) - ({view.buffer} if copied else set())
        if any(b in members for _, b in self.inputs):
            return True
        values = [v for f in self.frames for n, v in f.own.items() if (f, n) != (frame, name)]
        values += [f.frame.own for f in flat(values) if isinstance(f, Function) and f.frame not in self.frames]
        values += [v for own in others for n, v in own.items() if n != name]
        return any(v.buffer in members for v in views_in(values))

    def is_copy(self, view: View) -> bool:
        """Whether a view may be a loop's copy of an array that has another name before the loop."""
        return not self.aliased.isdisjoint(self.class_of(view.buffer))

    def seen(self, value: Value) -> Value:
        """Return a value as an operation reads it: a growing list becomes the array of its items."""
        if isinstance(value, Complex) and isinstance(value.real, Growing):
            return Complex(*map(self.seen, value))
        if not isinstance(value, Growing):
            return value
        if value.view is None:
            raise NotCaptured("an empty list is read")
        first, *others = value.view.axes
        items = Axis(first.axis, first.step, as_constant(value.count))
        return View(value.view.buffer, value.view.base, [items, *others])

    def kind(self, value: Value) -> Value:
        """The structure, shapes and types of a value, from which `blank` makes a value of zeros."""
        if (parts := parts_of(value)) is not None:
            return like(value, map(self.kind, parts))
        if value is None:
            return None
        lazy = self.certain(self.lazy(value))
        return Kind(lazy.shape, lazy.dtype, lazy.weak)

    def blank(self, kind: Value) -> Value:
        """A value of zeros of the given kind."""
        if (parts := parts_of(kind)) is not None and not isinstance(kind, Kind):
            return like(kind, map(self.blank, parts))
        if kind is None:
            return None
        zero = Lazy((), (), constant(0, kind.dtype), kind.weak)
        return self.store(broadcast(zero, kind.shape)) if kind.shape else zero

    def expression(self, e: ast.expr, frame: Frame) -> Value:
        handler = getattr(self, f"_{type(e).__name__}", None)
        if handler is None:
            raise NotCaptured(f"`{type(e).__name__.lower()}` in an expression")
        return handler(e, frame)

    def _Constant(self, e: ast.Constant, frame: Frame) -> Value:
        return e.value

    def _Name(self, e: ast.Name, frame: Frame) -> Value:
        return self.twins.current(self.lift(frame[e.id]))

    def _BinOp(self, e: ast.BinOp, frame: Frame) -> Value:
        return self.binary(e.op, self.expression(e.left, frame), self.expression(e.right, frame))

    def _UnaryOp(self, e: ast.UnaryOp, frame: Frame) -> Value:
        if isinstance(e.op, ast.Not):
            truth = self.truth(self.condition(e.operand, frame))
            if isinstance(truth, bool):
                return not truth
            return self.number(element(primitive_of(np.logical_not), truth), True)  # type: ignore[arg-type]
        value = self.expression(e.operand, frame)
        if symbolic(value) and (method := method_of(value, UNARY[type(e.op)])) is not None:
            return self.inline(method, [value], {})
        if isinstance(value, Lazy) and is_python_bool(value) and is_python_integer(value):
            value = self.as_integer(value)
        if isinstance(e.op, ast.UAdd):
            return value
        ufunc = np.negative if isinstance(e.op, ast.USub) else np.invert
        if isinstance(value, Lazy):
            return self.elementwise(primitive_of(ufunc), value)  # type: ignore[arg-type]
        if isinstance(value, View | Masked | Complex):
            return self.call(ufunc, [value], {})
        return -value if isinstance(e.op, ast.USub) else -value - 1 if isinstance(value, Affine) else ~value

    def _Compare(self, e: ast.Compare, frame: Frame) -> Value:
        check_binding(e.comparators[1:])
        values = [self.expression(v, frame) for v in (e.left, *e.comparators)]
        results = [self.compare(op, a, b) for op, a, b in zip(e.ops, values, values[1:], strict=False)]
        return results[0] if len(results) == 1 else self.all_of(results, True)

    def _NamedExpr(self, e: ast.NamedExpr, frame: Frame) -> Value:
        value = self.expression(e.value, frame)
        self.bind(e.target, value, frame)
        return frame.own[e.target.id]

    def _Attribute(self, e: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.expression(e.value, frame), e.attr)

    def attribute(self, value: Value, key: str) -> Value:
        """`value.key`."""
        if isinstance(value, Masked | Growing) or isinstance(value, Complex) and isinstance(value.real, Growing):
            return Method(value, key)
        if isinstance(value, View | Lazy | Complex):
            return library.attribute(self, value, key)
        check_read(value, key)
        if inspect.ismodule(value) and key in vars(value):  # a module may have another class while a derivative runs
            return vars(value)[key]
        if type(value) is not dict and (name := self.places.name(value, key)) is not None:
            return self.held(name)
        function = getter(value, key)
        if function is not None and symbolic(value):
            return self.call(function, [value], {})
        try:
            return self.lift(getattr(value, key))
        except NotCaptured:
            if function is None:
                raise
            return self.call(function, [value], {})

    def held(self, name: str) -> Value:
        """The value that a place has at this point of the program."""
        return self.twins.current(self.lift(self.frames[-1].own[name]))

    def current(self, value: Value) -> Value:
        """A container of arguments that are taken apart, with the items that its dictionaries have at this point."""
        if isinstance(value, dict):
            names = [self.places.name(value, key) for key in value]
            items = zip(value.values(), names, strict=True)
            return like(value, [self.current(item) if name is None else self.held(name) for item, name in items])
        return like(value, map(self.current, value)) if type(value) in (list, tuple) else self.lift(value)

    def _Subscript(self, e: ast.Subscript, frame: Frame) -> Value:
        return self.subscript(self.seen(self.expression(e.value, frame)), self.expression(e.slice, frame))

    def subscript(self, value: Value, key: Value) -> Value:
        """`value[key]`."""
        if symbolic([value, key]) and (method := method_of(value, "__getitem__")) is not None:
            return self.inline(method, [value, key], {})
        if isinstance(value, np.ndarray) and symbolic([key]):
            value = planes.as_planes(self, value) if value.dtype.kind == "c" else self.table_view(value)
        if isinstance(value, Complex):
            return Complex(*[self.subscript(p, key) for p in value])
        if type(value) is dict and not symbolic([key]) and (name := self.places.name(value, key)) is not None:
            return self.held(name)
        if not isinstance(value, View | Lazy):
            return self.item_at(value, key) if symbolic([key]) else self.lift(_item(value, key))
        if masks.is_mask(key):
            return masks.select(self, value, key)
        if fancy.is_fancy(key):
            return fancy.gather(self, value, key)
        return self.index(value, key)

    def _Slice(self, e: ast.Slice, frame: Frame) -> Value:
        return slice(*[None if p is None else self.expression(p, frame) for p in (e.lower, e.upper, e.step)])

    def _Tuple(self, e: ast.Tuple, frame: Frame) -> Value:
        return tuple(self._elements(e.elts, frame))

    def _List(self, e: ast.List, frame: Frame) -> Value:
        return self.own(self._elements(e.elts, frame))

    def _Dict(self, e: ast.Dict, frame: Frame) -> Value:
        found: dict[Value, Value] = {}
        for key, value in zip(e.keys, e.values, strict=True):
            item = self.expression(value, frame)
            found |= item if key is None else {self.expression(key, frame): item}
        return self.own(found)

    def _DictComp(self, e: ast.DictComp, frame: Frame) -> Value:
        found = {}
        for inner in self.turns(e, frame):
            key = self.expression(e.key, inner)
            found[key] = self.expression(e.value, inner)
        return self.own(found)

    def own(self, items: Value) -> Value:
        """Register a list or a dictionary that this block makes, so that the block may change it."""
        self.lists[id(items)] = items, self.block
        return items

    def makes(self, items: Value) -> bool:
        """Whether the current block has made a list or a dictionary."""
        return self.lists.get(id(items), (None, None))[1] is self.block

    def _elements(self, nodes: Sequence[ast.expr], frame: Frame) -> list[Value]:
        found: list[Value] = []
        for n in nodes:
            found += self.items(self.expression(n.value, frame)) if isinstance(n, ast.Starred) else [
                self.expression(n, frame)]  # fmt: skip
        return found

    def _Lambda(self, e: ast.Lambda, frame: Frame) -> Any:
        return Function(frame, e, [self.expression(d, frame) for d in e.args.defaults])

    def _Call(self, e: ast.Call, frame: Frame) -> Value:
        f = self.expression(e.func, frame)
        if f is print:
            return self.capture_print(e, frame)
        if (f is any or f is all) and len(e.args) == 1 and isinstance(e.args[0], ast.GeneratorExp):
            return self.quantified(e.args[0], f is all, frame)
        args = self._elements(e.args, frame)
        kwargs: Params = {}
        for k in e.keywords:
            kwargs |= {k.arg: self.expression(k.value, frame)} if k.arg else self.expression(k.value, frame)
        return self.call(f, args, kwargs)

    def quantified(self, e: ast.GeneratorExp, every: bool, frame: Frame) -> Value:
        """`all` or `any` of a generator: each item runs only if Python runs it, as the operands of `and` and `or`."""
        answer = self.connected(((e.elt, inner) for inner in self.turns(e, frame)), every, self.condition)
        return self.weakened(answer) if isinstance(answer, Lazy) else every if answer is None else bool(answer)

    def _ListComp(self, e: ast.ListComp, frame: Frame) -> Value:
        return self.own([self.expression(e.elt, inner) for inner in self.turns(e, frame)])

    def _GeneratorExp(self, e: ast.GeneratorExp, frame: Frame) -> Value:
        turns = self.turns(e, frame)
        return self.iterator(self.expression(e.elt, inner) for inner in turns)

    def turns(self, e: ast.ListComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Iterator[Frame]:
        """The names in each turn of a comprehension of known items: a scope inside `frame`, the same in all turns."""
        check_binding([e])
        inner = Frame(Source(frame.source.node, [], {}, {}), {}, frame)
        return self._turns(e.generators, inner, self.every(self.expression(e.generators[0].iter, frame)))

    def _turns(self, loops: Sequence[ast.comprehension], inner: Frame, items: Iterator[Value]) -> Iterator[Frame]:
        g, *others = loops
        for item in items:
            self.bind(g.target, item, inner)
            tests = [self.truth(self.condition(t, inner)) for t in g.ifs]
            if not all(isinstance(t, bool) for t in tests):
                raise NotCaptured("a comprehension that tests values")
            if all(tests) and others:
                yield from self._turns(others, inner, self.every(self.expression(others[0].iter, inner)))
            elif all(tests):
                yield inner


def check_binding(nodes: Sequence[ast.AST]) -> None:
    """Raise if `:=` binds a name in code that may not run, or that runs in a scope of its own."""
    if any(isinstance(x, ast.NamedExpr) for n in nodes for x in ast.walk(n)):
        raise NotCaptured("`:=` where it may not run once")
