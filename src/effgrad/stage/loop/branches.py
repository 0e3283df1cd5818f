"""Branches on values: each side becomes a block, and names that they bind become cells that the side taken fills."""

import ast
import contextlib
from collections.abc import Callable, Iterator, Sequence

from effgrad.living import LivingSet
from effgrad.stage.loop import objects, planes
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.buffers import BOOL, Element, load
from effgrad.stage.loop.carried import Unknown
from effgrad.stage.loop.cells import UNBOUND
from effgrad.stage.loop.checking import Raised
from effgrad.stage.loop.containers import like, parts_of, same_structure
from effgrad.stage.loop.evaluator import Evaluator
from effgrad.stage.loop.frames import FactFound, Facts, Frame, Returned
from effgrad.stage.loop.ir import Block, Branch, Store
from effgrad.stage.loop.names import bound
from effgrad.stage.loop.number_classes import widest
from effgrad.stage.loop.operands import (
    NUMERIC,
    Complex,
    Lazy,
    OneOf,
    Value,
    View,
    classes_of,
    flat,
    views_in,
    whole_view,
)
from effgrad.vocabulary import Params


class Branches(Evaluator):
    """The branching statements of a captured program; `Capture` adds the other statements."""

    body: Callable[[Sequence[ast.stmt], Frame], None]

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.depth = 0
        # For each open block: the block around it, the lazy values made before it began, and whether it is a loop's
        # body.
        self.around_blocks: list[tuple[Block, LivingSet[Lazy], bool]] = []
        # The names before a branch and after its first side, while the other side is captured.
        self.scopes: list[dict[str, Value]] = []

    def flag(self, test: Element) -> Element:
        """Store a truth value in a new cell, and return the load of that cell."""
        cell = self.buffer("flag", (), BOOL)
        self.emit([], [Store(cell, (), test)])
        return load(cell, ())

    @contextlib.contextmanager
    def new_block(self, repeated: bool = False) -> Iterator[Block]:
        """Collect statements in a new block, which is the body of a loop if it is `repeated`."""
        (outer, self.block), (known, self.known) = (self.block, []), (self.known, self.lasting())
        self.depth += 1
        self.around_blocks.append((outer, LivingSet(self.lazies), repeated))
        try:
            yield self.block
        finally:
            self.block, self.known = outer, known
            self.depth -= 1
            self.around_blocks.pop()

    def home(self, value: Lazy) -> Block | None:
        """The block in which a value was made, if that is not the innermost open block; else None."""
        return next((block for block, before, _ in self.around_blocks if value in before), None)

    def has_other_names(self, value: Value, name: str, frame: Frame) -> bool:
        """Whether an array has names besides this one of a frame, or twins (see `effgrad.stage.loop.twins`)."""
        if any(isinstance(x, Lazy) and x in self.twins.others for x in flat([value])):
            return True
        named = [(own, n, v) for own in [*[f.own for f in self.frames], *self.scopes] for n, v in own.items()]
        parts = flat([value])
        others = [v for own, n, v in named if own is not frame.own or n != name]
        return any(x is part for v in others for x in flat([v]) for part in parts)

    def stored_at_home(self, value: View | Lazy) -> View:
        """Return an array as memory of the block that made it, so that a write in an inner block is seen afterwards."""
        if isinstance(value, View):
            return self.store(value)
        # An earlier step may have read the array before this write.
        if any(repeated and value in before for _, before, repeated in self.around_blocks):
            raise NotCaptured("an array from before it that a function, or another name, writes to")
        inner, self.block = self.block, self.home(value) or self.block
        try:
            return self.store(value)
        finally:
            self.block = inner

    def branch(self, test: Element, s: ast.If, frame: Frame) -> None:
        names = sorted(bound([s]))
        with frame.followed_by(frame.rest):
            self.merge(test, lambda: self.body(s.body, frame), lambda: self.body(s.orelse, frame), names, frame)

    def merge(
        self, test: Element, then: Callable[[], Value], other: Callable[[], Value], names: Sequence[str], frame: Frame
    ) -> None:
        """Capture both sides of a branch, and make the names that they bind cells, which the side taken fills."""
        flag = self.flag(test)
        self.materialize_all()
        before = dict(frame.own)
        blocks, after = [], []
        self.scopes.append(before)
        for run in (then, other):
            frame.own = dict(before)
            with self.new_block() as block:
                try:
                    run()
                except Returned:
                    raise NotCaptured("a `return` in one of two branches") from None
                except Raised:
                    frame.own = {}
                self.materialize_all()  # else a write on the other side would store a lazy value in its own block
            blocks.append(block)
            after.append(frame.own)
            self.scopes.append(frame.own)
        del self.scopes[-3:]
        after = [own or other for own, other in zip(after, reversed(after), strict=True)]
        frame.own = before
        for name in {**dict.fromkeys(names), **dict.fromkeys(self.places.bound(*after))}:
            a, b = (own.get(name, UNBOUND) for own in after)
            if a is UNBOUND or b is UNBOUND:
                frame.own.pop(name, None)
            else:
                self.bind_joined(a, b, blocks, name, [frame, *after])
        self.block.append(Branch(flag, *blocks))

    def bind_joined(self, a: Value, b: Value, blocks: list[Block], name: str, names: list[Value]) -> None:
        """Bind a name after a branch, given its values on both sides; without a cell for both, it must not be read."""
        frame = names[0]
        try:
            a, b = (a, b) if a is b else self.twins.current((a, b))
            frame.own[name] = a if a is b else self.joined(a, b, blocks, name, names)
        except NotCaptured as reason:
            if name not in frame.local:
                raise
            frame.own.pop(name, None)
            frame.lost[name] = str(reason)

    def check_known(self, a: Value, b: Value) -> None:
        """Capture again if one of two values is unknown: it will have the kind of the other one."""
        for unknown, other in ((a, b), (b, a)):
            if isinstance(unknown, Unknown):
                raise FactFound(unknown.key, self.kind(other))

    def alike(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Return the two values, both as planes if they are complex."""
        if planes.is_complex(a) is not planes.is_complex(b):
            raise NotCaptured("a number that is complex in one of two branches")
        return (planes.as_planes(self, a), planes.as_planes(self, b)) if planes.is_complex(a) else (a, b)

    def note_either(self, view: View, name: str, *values: View) -> None:
        """Note which arrays' elements a view may hold; it must not be written to if they may have other names."""
        arrays = {x.buffer for x in values}
        self.either[view.buffer] = arrays.union(*[self.either.get(x, set()) for x in arrays])
        if any(map(self.is_copy, values)):
            self.aliased.add(view.buffer)
            self.frozen[view.buffer] = f"{name!r} is one of two arrays, and written to"

    def joined(self, a: Value, b: Value, blocks: list[Block], name: str, names: list[Value]) -> Value:
        """The value of a name after a branch, given its values on both sides."""
        self.check_known(a, b)
        a, b = self.alike(a, b)
        if type(a) is type(b) and same_structure(a, b):
            pairs = zip(parts_of(a) or (), parts_of(b) or (), strict=True)
            parts = [self.joined(x, y, blocks, name, names) for x, y in pairs]
            return objects.either(like(a, map(self.certain, parts) if isinstance(a, Complex) else parts), a, b, self)
        if isinstance(a, bool | int | float | str) and type(a) is type(b) and a == b:
            return a
        objects.check_branches(a, b, name, self)
        if any(not isinstance(x, NUMERIC) for x in (a, b)):
            raise NotCaptured(f"{name!r} is something else in the two branches")
        view = self.filled_by_both(a, b, blocks, name)
        self.note_either(view, name, *views_in([a, b]))
        if not view.axes:
            self.private.add(view.buffer)
            return self.symbol(load(view.buffer, ()), classes_of(a) | classes_of(b))
        self.link_named(view, [x for x in (a, b) if isinstance(x, Lazy)], name, names)
        shared = [x for x in (a, b) if isinstance(x, View) and self.is_shared(x, names[0], name, *names[1:])]
        return self.one_of_arrays(view, shared, name)

    def link_named(self, view: View, values: Sequence[Lazy], name: str, names: Sequence[Value]) -> None:
        """Note that a cell may be one of those values that have a name besides `name` in a frame.

        The frame is the first of `names`, and the others are further tables of its names.
        """
        tables = [(f.own, f is names[0]) for f in self.frames] + [(own, True) for own in names[1:]]
        named = [x for own, here in tables for n, v in own.items() if n != name or not here for x in flat(v)]
        for value in values:
            if any(x is value for x in named):
                self.twins.link(view, value)

    def filled_by_both(self, a: Value, b: Value, blocks: list[Block], name: str) -> View:
        """A cell that each side of a branch fills with its value of a name."""
        lazies, classes = [self.lazy(x) for x in (a, b)], classes_of(a) | classes_of(b)
        shape = lazies[0].shape
        if shape != lazies[1].shape or shape and len(classes) > 1:
            raise NotCaptured(f"{name!r} has other shapes or types in the two branches")
        view = whole_view(self.buffer(name.strip("$"), shape, widest(classes)), shape)
        for lazy, block in zip(lazies, blocks, strict=True):
            outer, self.block = self.block, block
            self.assign(view, lazy)
            self.block = outer
        return view

    def one_of_arrays(self, view: View, shared: Sequence[View], name: str) -> View:
        """The value of a cell that a branch fills with one of two arrays.

        Neither the cell nor an array that has other names (`shared`) may be written any more, as the cell is a copy.
        """
        arrays = [v.buffer for v in shared]
        for buffer in arrays:
            self.frozen[buffer] = f"an array is written to that {name!r} may be"
            self.unite(buffer, view.buffer)
        if arrays:
            self.frozen[view.buffer] = f"{name!r} is one of two arrays, and written to"
        return view

    def call_one_of(self, f: OneOf, args: list[Value], kwargs: Params, first: int = 0) -> Value:
        """Call the function that an integer chooses, one of those from the `first` on."""
        frame, last = self.frames[-1], len(f.functions) - 1
        test = True if first == last else self.truth(self.compare(ast.Eq(), f.number, first))
        if isinstance(test, bool):
            return self.call(f.functions[first], args, kwargs) if test else self.call_one_of(f, args, kwargs, first + 1)

        def then() -> None:
            frame.own["$called"] = self.call(f.functions[first], args, kwargs)

        def other() -> None:
            frame.own["$called"] = self.call_one_of(f, args, kwargs, first + 1)

        self.merge(test, then, other, ["$called"], frame)
        return frame.own.pop("$called")

    def returned(self, test: Element, s: ast.If, rest: Sequence[ast.stmt], frame: Frame) -> Value:
        """The value of a function that returns on one side of a branch and goes on on the other."""

        def run(statements: Sequence[ast.stmt]) -> None:
            try:
                self.body(statements, frame)
            except Returned as r:
                frame.own["$returned"] = r.value
            else:
                raise NotCaptured("a function that returns nothing in one branch")

        self.merge(test, lambda: run([*s.body, *rest]), lambda: run([*s.orelse, *rest]), ["$returned"], frame)
        if "$returned" not in frame.own:
            raise NotCaptured("a function that returns nothing in one branch")
        return frame.own.pop("$returned")
