"""Reverse mode: the adjoint of a region, as a region.

It runs the region, saving what will be needed, and then the adjoint of each statement in the opposite order, in place.
The cotangent of a buffer is a buffer of the same shape. A statement saves the elements that it overwrites only if an
adjoint that runs later reads them ("to be recorded": Hascoet, Naumann and Pascual 2005, "To be recorded analysis in
reverse-mode automatic differentiation"). Partials use the stored result instead of the operands where they can. The
result is a region, as is the tangent (`effgrad.stage.loop.tangents`), so they nest in any order.
"""

from collections.abc import Callable, Sequence

from effgrad.stage.loop import pulled_calls
from effgrad.stage.loop.activity import (
    depends,
    injective,
    never_overlap,
    overwritten_first,
    useful,
    varied,
    without_dead,
)
from effgrad.stage.loop.affine import Affine, NotCaptured, fresh
from effgrad.stage.loop.buffers import Buffer, Element, constant, index_loads, integer, load, loads
from effgrad.stage.loop.element import pull, replaced
from effgrad.stage.loop.ir import (
    Apply,
    Block,
    Branch,
    Check,
    Map,
    Pop,
    Push,
    Region,
    Repeat,
    Stack,
    Statement,
    Store,
    While,
    all_points,
    parts,
    read_buffers,
    reads,
    reads_in,
    rebuilt,
    walk,
    writes_in,
    zeroed,
)
from effgrad.stage.loop.schedule import Schedule, Stretches
from effgrad.stage.loop.segments import counted, named_once, restored, segmented, segmented_while


class Reversal:
    """The reverse of a region. `forward` saves what `backward` reads; `cotangents` has a buffer for each active buffer.

    The cotangents of the seeded outputs are inputs of `backward`, and those of the wanted inputs are its results.
    `schedule` gives the checkpoints of an outermost loop, or None to save what every step needs.
    """

    def __init__(
        self, region: Region, wanted: Sequence[Buffer],
        schedule: Callable[[Repeat | While], Schedule | Stretches | None] = lambda _: None,
    ) -> None:  # fmt: skip
        seeds = [b for b in region.outputs if b.smooth]
        active = varied(region.block, wanted) & useful(region.block, seeds)
        self.region, self.schedule = region, schedule
        self.cotangents = {
            b: Buffer(fresh(f"g_{b.name}_"), b.shape, b.dtype, cleared=b not in seeds)
            for b in region.buffers() if b in active
        }  # fmt: skip
        self.saves, self.saved_cotangents = Stack(), dict[Stack, Stack]()
        self.numbered: dict[Statement, tuple[int, int]] = {}
        self._number(region.block, 0)
        self.readers: dict[Buffer, list[int]] = {}
        for s in walk(region.block):
            self._note(s)
        self._note_places()
        for s in region.block:
            if isinstance(s, Repeat | While) and schedule(s):
                first = overwritten_first(body := self.again(s))
                self._read(s, [b for x in body for b in reads_in([x]) if b not in first])
        # For each `while` with checkpoints, one step with what it saves. And the cost: about how many bytes are saved,
        # and how often a step is run forward at most.
        self.records, self.cost = dict[While, Block](), (0, 1)
        self.forward, self.backward = self.block(region.block, None)

    def whole_region(self, wanted: Sequence[Buffer]) -> Region:
        """The region of both sweeps, from the inputs and the outputs' cotangents to the wanted inputs' cotangents."""
        seeds = [self.seed(b) for b in self.region.outputs if b.smooth]
        outputs = [self.result(b) for b in wanted]
        block = without_dead([*self.forward, *self.backward], outputs)
        return Region([*self.region.inputs, *seeds], outputs, block)

    def halves(self, wanted: Sequence[Buffer]) -> tuple[Region, Region] | None:
        """The two sweeps as two regions. Besides its outputs, the first returns the buffers that the second reads.

        The inputs of the second region are the inputs of the first, the cotangents of the smooth outputs, and those
        buffers. Both use the same stacks. None is returned if they cannot run apart, as the reverse sweep pushes on a
        common stack.
        """
        common = {s.stack for s in walk(self.forward) if isinstance(s, Push)}
        if any(isinstance(s, Push) and s.stack in common for s in walk(self.backward)):
            return None
        outputs, turn = [self.result(b) for b in wanted], Buffer("turn", ())
        mark: Statement = Map((), [Store(turn, (), constant(0.0))])
        block = without_dead([*self.forward, mark, *self.backward], [*outputs, *self.region.outputs, turn])
        forward, backward = block[: block.index(mark)], block[block.index(mark) + 1 :]
        changed = writes_in(forward)
        used = set(Region([], outputs, backward).buffers())
        kept = [b for b in Region(self.region.inputs, [], forward).buffers() if b in changed and b in used]
        seeds = [self.seed(b) for b in self.region.outputs if b.smooth]
        inputs = [b if b not in kept else Buffer(b.name, b.shape, b.dtype) for b in self.region.inputs]
        there = Region(self.region.inputs, [*self.region.outputs, *kept], forward)
        return there, Region([*inputs, *seeds, *kept], outputs, backward)

    def seed(self, output: Buffer) -> Buffer:
        """The buffer that receives the cotangent of an output."""
        return self.cotangents.get(output) or Buffer(fresh("unused"), output.shape, output.dtype)

    def result(self, wanted: Buffer) -> Buffer:
        """The buffer that holds the cotangent of an input at the end; for an inactive input it is zero."""
        if wanted in self.cotangents:
            return self.cotangents[wanted]
        return Buffer(fresh("zero"), wanted.shape, wanted.dtype, cleared=True)

    # What has to be saved

    def _number(self, block: Block, number: int) -> int:
        """Number the statements in textual order: each gets its own number and that of the last statement inside it."""
        for s in block:
            first, number = number, number + 1
            for part in parts(s):
                number = self._number(part, number)
            self.numbered[s] = first, number - 1
        return number

    def _read(self, s: Statement, buffers: Sequence[Buffer]) -> None:
        for b in buffers:
            self.readers.setdefault(b, []).append(self.numbered[s][0])

    def _note(self, s: Statement) -> None:
        """Note which primal buffers the adjoint of a statement reads."""
        if isinstance(s, Map):
            back = self.reverse_map(s)
            own = set(self.cotangents.values())
            self._read(s, [e.args[0] for e in reads(back[0]) if e.args[0] not in own] if back else [])
        elif isinstance(s, Apply):
            if s.output in self.cotangents:
                reading = getattr(s.function, "read_by_reverse", None)
                self._read(s, reading(s) if reading is not None else s.inputs)
        elif isinstance(s, Push | Pop):
            self._read(s, [e.args[0] for e in reads(s)])
        elif not isinstance(s, Check):  # the reverse of a `while` runs as many steps
            self._read(s, [s.count] if isinstance(s, While) else [e.args[0] for e in reads(s)])

    def _note_places(self) -> None:
        """Note the buffers that indices of saved elements are read from; the reverse sweep reads these to restore."""
        maps = [s for s in walk(self.region.block) if isinstance(s, Map)]
        places = {s: {e.args[0] for i in _places(s) for e in index_loads(i)} for s in maps}
        waiting = [s for s in maps if places[s]]
        while some := [s for s in waiting if any(t.buffer in self.readers for t in s.stores)]:
            for s in some:
                self._read(s, list(places[s]))
            waiting = [s for s in waiting if s not in some]

    def must_save(self, s: Statement, buffer: Buffer, top: Statement | None) -> bool:
        """Whether the adjoint of `s`, or an adjoint that may run after it, reads what `s` overwrites.

        These are the adjoints of the statements before `s`, of `s` itself, and of all in the outermost loop around `s`.
        What only the steps read that are rerun, each segment restores from its checkpoint.
        """
        here = self.numbered[s][0]
        first, last = self.numbered[top] if top is not None else (0, -1)
        rerun = first if isinstance(top, Repeat | While) and self.schedule(top) else None
        readers = [reader for reader in self.readers.get(buffer, ()) if reader != rerun]
        return any(reader <= here or first <= reader <= last for reader in readers)

    # The adjoint of one Map

    def reverse_map(self, m: Map) -> tuple[Map, bool] | None:
        """The adjoint of a Map, and whether it must run before overwritten values are restored; None if it is empty."""
        roots, own = [], {}
        for t in m.stores:
            if t.buffer in self.cotangents:
                seed = load(self.cotangents[t.buffer], t.indices)
                roots.append((t.value, seed))
                if not t.adds:
                    if not injective(t.indices, m.dims):
                        raise NotCaptured("elements are written more than once by one statement")
                    own[t.buffer, t.indices] = seed
        if not roots:
            return None
        found = pull(roots, lambda e: e.args[0] in self.cotangents)
        stores, overwritten = [], dict(own)
        for e, g in found.items():
            b, indices = e.args
            if (b, indices) in own:
                overwritten.pop((b, indices))
                if g is not own[b, indices]:
                    stores.append(Store(self.cotangents[b], indices, g))
            else:
                stores.append(Store(self.cotangents[b], indices, g, adds=True))
        for b, indices in overwritten:
            stores.append(Store(self.cotangents[b], indices, constant(0, b.dtype)))
        back = Map(m.dims, stores, m.place)
        return self._with_results(m, back) or (back, False)

    def _with_results(self, m: Map, back: Map) -> tuple[Map, bool] | None:
        """The adjoint with stored results read instead of their operands; None if it would read other values then."""
        results = {t.value: (t, _Marker(t)) for t in m.stores if not t.adds and _reads_result(t.value)}
        if not results:
            return None
        markers = {value: marker.element for value, (_, marker) in results.items()}
        stores = [Store(s.buffer, s.indices, replaced(s.value, markers), s.adds) for s in back.stores]
        left = loads([s.value for s in stores])
        changed = [(t.buffer, t.indices) for t in m.stores]
        if not any(e in markers.values() for e in left) or any(_meets(e, changed, m) for e in left):
            return None
        stored = {marker.element: load(t.buffer, t.indices) for t, marker in results.values()}
        again = [Store(s.buffer, s.indices, replaced(s.value, stored), s.adds) for s in stores]
        return Map(back.dims, again, m.place), True

    # Forward and back

    def block(self, block: Block, top: Statement | None) -> tuple[Block, Block]:
        """The statements with their saves, and their adjoints in reverse order; `top` is the outermost loop around."""
        forward: Block = []
        backward: list[Block] = []
        for number, s in enumerate(block):
            before = block[number - 1] if number else None
            there, back = self.statement(s, top, before)
            forward += there
            backward.append(back)
        return forward, [s for part in reversed(backward) for s in part]

    def statement(self, s: Statement, top: Statement | None, before: Statement | None) -> tuple[Block, Block]:
        if isinstance(s, Map):
            return self.map(s, top, before)
        if isinstance(s, Apply):
            return self.apply(s, top)
        if isinstance(s, Repeat):
            return self.repeat(s, top)
        if isinstance(s, Branch):
            (then, back), (other, other_back) = self.block(s.then, top), self.block(s.other, top)
            return [Branch(s.flag, then, other)], [Branch(s.flag, back, other_back)] if back or other_back else []
        if isinstance(s, While):
            return self.while_(s, top)
        if isinstance(s, Check):
            return [s], []
        return self.push(s) if isinstance(s, Push) else self.pop(s, top)

    def repeat(self, s: Repeat, top: Statement | None) -> tuple[Block, Block]:
        there, back = self.block(s.body, top or s)
        schedule = self.schedule(s) if top is None and back else None
        if isinstance(schedule, Schedule):
            saves: Block = [Push(self.saves, b, *all_points(b)) for b in self.state(s)]
            again = self.again(s)
            needed = writes_in(again) | {x.buffer for x in walk(there) if isinstance(x, Push)}
            return segmented(s, schedule, saves, (again, without_dead(there, needed)), back)
        reverse = Repeat(s.variable, s.start, s.stop, s.step, back, not s.backwards)
        return [rebuilt(s, [there])], [reverse] if back else []

    def map(self, s: Map, top: Statement | None, before: Statement | None) -> tuple[Block, Block]:
        saves: Block = []
        for t in s.stores:
            if self.must_save(s, t.buffer, top) and not _starts_sum(before, s):
                saves.append(Push(self.saves, t.buffer, depends(t.indices, s.dims), t.indices))
        back = self.reverse_map(s)
        reverse: Block = [back[0]] if back else []
        bring = restored(saves)
        return [*saves, s], [*reverse, *bring] if back and back[1] else [*bring, *reverse]

    def apply(self, s: Apply, top: Statement | None) -> tuple[Block, Block]:
        saves: Block = [Push(self.saves, s.output, *all_points(s.output))] if self.must_save(s, s.output, top) else []
        back: Block = []
        g = self.cotangents.get(s.output)
        if g is not None and hasattr(s.function, "reverse"):  # it reads the result, before that is restored
            back = [*s.function.reverse(s, self.cotangents), zeroed(g)]
            return [*saves, s], [*back, *restored(saves)]
        if g is not None:
            pulled, sums = pulled_calls.reverse(s, self.cotangents)
            back = [*pulled, zeroed(g), *sums]
        return [*saves, s], [*restored(saves), *back]

    def while_(self, s: While, top: Statement | None) -> tuple[Block, Block]:
        there, back = self.block(s.body, top or s)
        test, test_back = self.block(s.test, top or s)
        plan = self.schedule(s) if top is None and (back or test_back) else None
        if isinstance(plan, Stretches):
            self.records[s] = [*test, *there]
            kept: Block = [Push(self.saves, b, *all_points(b)) for b in self.state(s)]
            changed = sorted((writes_in([s]) - {s.count}) & self.readers.keys(), key=lambda b: b.name)
            held: Block = [Push(self.saves, b, *all_points(b)) for b in changed]
            return segmented_while(s, plan, kept, held, (test, there), (test_back, back), self.saves)
        saves: Block = [Push(self.saves, s.count, (), ())] if self.must_save(s, s.count, top) and top else []
        again: Block = [counted(integer(load(s.count, ())), [*back, *test_back], True)]
        return [*saves, While(s.count, test, s.flag, there)], [*test_back, *again, *restored(saves)]

    def push(self, s: Push) -> tuple[Block, Block]:
        g, came = self.cotangents.get(s.buffer), self.cotangents.get(s.stack.into.get(s.buffer, s.buffer))
        if came is None:
            return [s], []
        stack = self._cotangent_stack(s.stack)
        held = stack.into.setdefault(came, Buffer(fresh(f"held_{came.name}_"), came.shape, came.dtype))
        arrived: Block = []
        if g is not None:
            marks, part = named_once(s, load(held, s.indices))
            arrived = [*marks, Map(s.dims, [Store(g, s.indices, part, adds=True)])]
        return [s], [Pop(stack, held, s.dims, s.indices), *arrived]

    def pop(self, s: Pop, top: Statement | None) -> tuple[Block, Block]:
        saves: Block = []
        if self.must_save(s, s.buffer, top):
            saves = [Push(self.saves, s.buffer, s.dims, s.indices)]
        back = restored(saves)
        g = self.cotangents.get(s.buffer)
        if g is not None:
            gone = Map(s.dims, [Store(g, s.indices, constant(0, g.dtype))])
            back += [Push(self._cotangent_stack(s.stack), g, s.dims, s.indices), gone]
        return [*saves, s], back

    def _cotangent_stack(self, stack: Stack) -> Stack:
        return self.saved_cotangents.setdefault(stack, Stack())

    def again(self, s: Repeat | While) -> Block:
        """The part of a loop's body that the reverse sweep reruns, without sums that no adjoint in the loop reads."""
        body = [x for part in parts(s) for x in part]
        first, last = self.numbered[s]
        read = {b for b, at in self.readers.items() if any(first <= reader <= last for reader in at)}
        if isinstance(s, While) or any(isinstance(x, Push | Pop) for x in walk(body)):
            return body
        return without_dead(body, read)

    def state(self, s: Repeat | While) -> list[Buffer]:
        """The buffers that a checkpoint must hold: written in the loop, and read in it or by an adjoint outside it."""
        body = self.again(s)
        read = reads_in(body) | set(read_buffers(s))
        read |= {t.buffer for x in walk(body) if isinstance(x, Map) for t in x.stores if t.adds}
        first, last = self.numbered[s]
        outside = {b for b, at in self.readers.items() if any(not first <= reader <= last for reader in at)}
        return sorted(writes_in([s]) & (read - overwritten_first(body) | outside), key=lambda b: b.name)


def _places(m: Map) -> list[Affine]:
    """The integers that determine where a Map writes."""
    return [*[n for _, n in m.dims], *[i for t in m.stores for i in t.indices]]


def _meets(e: Element, places: Sequence[tuple[Buffer, tuple[Affine, ...]]], m: Map) -> bool:
    """Whether a load may read an element that is written at one of the given places."""
    return any(e.args[0] is b and (e.args[1] == p or not never_overlap(e.args[1], p, m.dims)) for b, p in places)


class _Marker:
    """A load that stands for a stored result, and is equal to no other load."""

    def __init__(self, t: Store) -> None:
        self.element: Element = load(Buffer("result", t.buffer.shape, t.buffer.dtype), t.indices)


def _reads_result(e: Element) -> bool:
    return not isinstance(e.op, str) and any(0 in places for places in e.op.read if places is not None)


def _starts_sum(before: Statement | None, s: Map) -> bool:
    """Whether `s` adds to an element that the statement before it set to a constant, and so has already saved."""
    if not isinstance(before, Map) or len(s.stores) != 1 or len(before.stores) != 1 or not s.stores[0].adds:
        return False
    start = before.stores[0]
    return start.buffer is s.stores[0].buffer and not start.adds and start.value.op == "constant"
