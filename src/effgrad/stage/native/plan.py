"""The plan of a native program: its steps and their operands, the lifetime of each value, and the layout of memory."""

from collections.abc import Callable

import numpy as np

from effgrad.stage.graph import Graph
from effgrad.stage.loop import buffers as loop_buffers
from effgrad.stage.loop.pairing import INTO, with_parts
from effgrad.stage.native.arena import IN_PLACE_BYTES, LENT_BYTES, laid_out
from effgrad.stage.native.kernels import operand
from effgrad.stage.native.placement import Placement
from effgrad.stage.native.scalars import dtype_of
from effgrad.stage.native.steps import Call, Fused, Product, Step
from effgrad.stage.native.storage import Buffer, Storage
from effgrad.stage.nodes import Node
from effgrad.vocabulary import Value


class Plan:
    """A program to run: `steps` in order, and the storage of `inputs`, `outputs` and guarded values (`checked`).

    `operands` has the operands of each machine code step, by its number. The `direct` buffers are arguments and results
    that are used in place. All other values are in an arena of `arena` bytes, where buffers share memory if their
    lifetimes do not overlap.

    `apart` has the large results, by their number, that a loop writes to memory of their own: its step, and the number
    of its output.

    A `repeated` program is the body of a loop. All its inputs and outputs are in the arena, and none overlaps another.
    """

    def __init__(self, graph: Graph, repeated: bool = False) -> None:
        placement = Placement(graph)
        outputs = [placement.copied(o) for o in graph.outputs] if repeated else graph.outputs
        self.outputs: list[Value] = [placement.stored(o) if type(o) is Node else o for o in outputs]
        self.steps, self.inputs, self.checked = placement.steps, placement.inputs, placement.checked
        self.operands = _operands(self.steps, placement.stored)
        self.find_lifetimes(repeated)
        self.direct = [] if repeated else self.used_in_place(placement.buffers)
        self.apart = {} if repeated else self.written_apart()
        own = {*self.direct, *(b for b in placement.buffers if b.array is not None or b.first < 0)}
        self.arena = laid_out([b for b in placement.buffers if b not in own])

    def storages(self, step: Step) -> list[Storage]:
        """Return the storages that a step reads and writes."""
        if isinstance(step, Call):
            return [s for s in (*step.inputs, step.result) if isinstance(s, Storage)]
        return self.operands[step.number]

    def find_lifetimes(self, repeated: bool) -> None:
        """Set the lifetime of each buffer."""
        for step in self.steps:
            for storage in self.storages(step):
                storage.buffer.extend_lifetime(step.number)
        end = len(self.steps)
        for kept in (*self.outputs, *self.checked):
            if isinstance(kept, Storage):
                kept.buffer.extend_lifetime(end)
        for given in self.inputs:
            given.buffer.first = 0
            if repeated:
                given.buffer.extend_lifetime(end)

    def used_in_place(self, buffers: list[Buffer]) -> list[Buffer]:
        """Return the buffers of large arguments and results that only machine code accesses.

        Calls of loops are machine code as far as they read arguments of at least `LENT_BYTES`.
        """
        returned = [o.buffer for o in self.outputs if isinstance(o, Storage)]
        calls = [step for step in self.steps if isinstance(step, Call)]
        called = {s.buffer for step in calls for s in self.storages(step) if not is_lent(step, s)}
        return [
            b for b in buffers if b.size >= IN_PLACE_BYTES and b not in called and b.array is None
            and (returned.count(b) == 1 and self.whole_output(b) if b.source is None else b not in returned)
        ]  # fmt: skip

    def written_apart(self) -> dict[int, tuple[Call, int]]:
        """Return the large results that are an output of a loop which nothing else reads."""
        found: dict[int, tuple[Call, int]] = {}
        read = [s for step in self.steps for s in self.storages(step)]
        read += [o for o in (*self.outputs, *self.checked) if isinstance(o, Storage)]
        for step in self.steps:
            program = with_parts(step.node) if isinstance(step, Call) else None
            if program is not None and isinstance(step, Call) and step.result is not None:
                result = step.result
                users = [s for s in read if s.buffer is result.buffer]
                users.remove(result)  # the loop's own
                for number, b in enumerate(program.region.outputs):
                    first = result.offset + 8 * program.starts[number]
                    if _is_large(b) and program.region.outputs.count(b) == 1:
                        found.update(dict.fromkeys(self.only_outputs(users, first, 8 * b.size), (step, number)))
        return found

    def only_outputs(self, users: list[Storage], first: int, size: int) -> list[int]:
        """Return the number of the result that is so many bytes of a buffer, if nothing else uses these; or nothing."""
        users = [s for s in users if _meets(s, first, first + size)]
        return [
            number for number, o in enumerate(self.outputs) if users == [o]
            and o.offset == first and o.view.nbytes == size and o.view.flags.c_contiguous
        ]  # fmt: skip

    def whole_output(self, buffer: Buffer) -> bool:
        """Whether a result is the whole of a buffer, in C order."""
        (storage,) = [o for o in self.outputs if isinstance(o, Storage) and o.buffer is buffer]
        view = storage.view
        return bool(view.flags.c_contiguous and view.nbytes == buffer.size)


def is_lent(step: Call, storage: Storage) -> bool:
    """Whether a call is a loop that can read an argument of the program where the caller has it."""
    buffer = storage.buffer
    return step.node.primitive.function in INTO and buffer.source is not None and buffer.size >= LENT_BYTES


def _is_large(b: loop_buffers.Buffer) -> bool:
    """Whether a buffer of a loop has float64, and too many to copy."""
    return bool(b.dtype == np.dtype(float)) and 8 * b.size >= IN_PLACE_BYTES


def _meets(storage: Storage, first: int, last: int) -> bool:
    """Whether a view uses bytes of its buffer from `first` up to `last`."""
    view = storage.view
    spans = [(n - 1) * stride for n, stride in zip(view.shape, view.strides, strict=True)]
    low = storage.offset + sum(span for span in spans if span < 0)
    high = storage.offset + sum(span for span in spans if span > 0) + view.itemsize
    return bool(view.size) and low < last and high > first


def _operands(steps: list[Step], stored: Callable[[Value], Storage]) -> dict[int, list[Storage]]:
    """Return the operands of each machine code step; a value that one kernel reads from another is stored there."""
    operands = {}
    for step in steps:
        if isinstance(step, Fused):
            operands[step.number] = _read(step, stored)
        elif isinstance(step, Product):
            operands[step.number] = step.operands
    for step in steps:
        if isinstance(step, Fused):
            operands[step.number] += _written(step)
    return operands


def _read(step: Fused, stored: Callable[[Value], Storage]) -> list[Storage]:
    """Register the kernel's reads and return their storage."""
    kernel, members = step.kernel, step.members
    seen: set[int] = set()
    found = []

    def read(arg: Value, indirect: bool = False) -> None:
        key = ~id(arg) if indirect else id(arg)
        if key in seen or (arg in members if type(arg) is Node else not np.ndim(arg)):
            return
        seen.add(key)
        storage = stored(arg)
        strides = (0,) * len(kernel.shape) if indirect else storage.strides(kernel.shape)
        kernel.reads.append((arg, operand(dtype_of(arg), strides, size=storage.view.size if indirect else 0)))
        found.append(storage)

    for node in kernel.nodes:
        if kernel.gathers and node in kernel.gathers:
            source, places = kernel.gathers[node]
            read(source, indirect=True)
            read(places)
        else:
            for arg in node.args:  # `read` is not called for members, most of the arguments in long programs
                if id(arg) not in seen and type(arg) is not float and not (type(arg) is Node and arg in members):
                    read(arg)
    for value, _, _, where in step.collected:
        read(value)
        read(where)
    return found


def _written(step: Fused) -> list[Storage]:
    """Register the kernel's writes and return their storage."""
    kernel = step.kernel
    kernel.writes += [(node, operand(node.dtype, s.strides(kernel.shape))) for node, s in step.stored.items()]
    for value, _, target, places in step.collected:
        if places is not None:
            kernel.places[len(kernel.writes)] = places
        kernel.writes.append((value, target))
    return [*step.stored.values(), *(storage for _, storage, _, _ in step.collected)]
