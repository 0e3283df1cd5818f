"""Run a graph as machine code: a small native driver runs its kernels, with calls of NumPy between them."""

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad import forks
from effgrad.arrays.layout import address_of
from effgrad.stage.graph import Graph
from effgrad.stage.loop.pairing import INTO
from effgrad.stage.loop.program import NONE_APART, Apart
from effgrad.stage.native import engine, products
from effgrad.stage.native.arena import ALIGNMENT
from effgrad.stage.native.executable import Executable as Executable
from effgrad.stage.native.executable import Halves as Halves
from effgrad.stage.native.interrupts import PATIENCE
from effgrad.stage.native.kernels import Kernel, signature, text
from effgrad.stage.native.lanes import split_lanes
from effgrad.stage.native.placed_calls import written
from effgrad.stage.native.plan import Plan
from effgrad.stage.native.scalars import Body
from effgrad.stage.native.shared_constants import constants_to_memory
from effgrad.stage.native.steps import Call, Fused, Product
from effgrad.stage.native.storage import Buffer, Storage
from effgrad.stage.native.tape import INTERPRETER, Tape, interpreter, suits
from effgrad.stage.native.triangles import triangles_to_where
from effgrad.stage.nodes import GUARD, UNRULED, GuardFailed, Node, check_shape, fill, is_expected
from effgrad.vocabulary import Function, Value

# If the different straight-line kernels have more operations than this together, they are interpreted as tapes instead
# of being compiled.
MOST_COMPILED = 20_000


class Native:
    """A compiled program. Called with the leaves of the inputs, it returns the leaves of the outputs."""

    def __init__(self, graph: Graph, flush_subnormals: bool = False, repeated: bool = False) -> None:
        self.control = engine.control() if flush_subnormals and engine.X86 else None
        graph = constants_to_memory(split_lanes(triangles_to_where(graph)))
        plan = self.plan = Plan(graph, repeated)
        self.lock = forks.lock()
        self.arena = np.zeros(plan.arena + ALIGNMENT, np.uint8)
        start = -address_of(self.arena) % ALIGNMENT
        self.arena = self.arena[start:]
        self.origin = address_of(self.arena)
        # For arguments and results that are used in place: the positions in the table of arguments where their
        # addresses are written in each call, and the offsets added to them.
        self.uses: dict[Buffer, list[tuple[int, int]]] = {buffer: [] for buffer in plan.direct}
        # The places of those arguments in the lists of what calls of loops read.
        self.lent: dict[Buffer, list[tuple[list[Value], int, Storage]]] = {}
        self.load()
        # The memory of results that loops write apart, by the number of the loop's step and that of its output.
        self.parts: dict[int, dict[int, np.ndarray]] = {step.number: {} for step, _ in plan.apart.values()}
        self.segments = self.segmented()
        self.inputs: list[Value] = [self.input(number) for number in range(len(graph.inputs))]
        # A loop reads the outputs of its body in the arena.
        outputs = list(zip(plan.outputs, graph.outputs, strict=True)) if not repeated else []
        places = {i: self.pointing(o.buffer) for i, (o, _) in enumerate(outputs) if self.in_place(o)}
        places |= {i: self.parting(*part) for i, part in plan.apart.items()}
        self.fresh = {i: self.memory(put, outputs[i][1]) for i, put in places.items()}
        self.results = [self.fresh.get(i) or self.result(o, node) for i, (o, node) in enumerate(outputs)]
        self.calls = any(isinstance(step, Call) for step in plan.steps)

    def load(self) -> None:
        """Compile the new kernels, and build the table of steps: the address of each step and of its arguments."""
        steps = [step for step in self.plan.steps if not isinstance(step, Call)]
        different: dict[Value, int] = {}
        keys = [
            different.setdefault(signature(step.kernel), len(different)) if isinstance(step, Fused) else step.kernel
            for step in steps
        ]
        kernels = {key: step.kernel for key, step in zip(keys, steps, strict=True) if isinstance(step, Fused)}
        self.tapes = _tapes(kernels)
        self.slots = np.zeros(max((len(tape.slots) for tape in self.tapes.values()), default=0))
        names, bodies = _texts(kernels, self.tapes, {step.kernel for step in steps if isinstance(step, Product)})
        self.kernels = len(bodies)
        addresses = engine.engine().load(bodies)
        arguments: list[int] = []
        table = []
        for key, step in zip(keys, steps, strict=True):
            table += [addresses[names[key]], 8 * len(arguments)]
            if key in self.tapes:
                arguments += self.tapes[key].header(self.slots)
            for storage in self.plan.operands[step.number]:
                arguments.append(self.address(storage, len(arguments)))
            if isinstance(step, Product):
                arguments += step.numbers
        self.arguments = np.array(arguments or [0], np.int64)
        self.table = np.array(table or [0, 0], np.int64)
        self.table[1::2] += address_of(self.arguments)

    def address(self, storage: Storage, position: int) -> int:
        """The address of an operand; 0 if it changes from call to call, and is written to the table by each call."""
        buffer = storage.buffer
        if buffer in self.uses:
            self.uses[buffer].append((position, storage.offset))
            return 0
        start = self.origin + buffer.place if buffer.array is None else address_of(buffer.array)
        return start + storage.offset

    def segmented(self) -> list[Callable[[], None]]:
        """Return functions that run the steps in order: sequences of machine code, and the calls between them."""
        segments: list[Callable[[], None]] = []
        first = number = work = 0
        for step in self.plan.steps:
            if not isinstance(step, Call):
                number += 1
                work += _operations(step)
                if work > PATIENCE:  # Python handles signals, such as Ctrl-C, between two segments
                    segments.append(self.run(first, number))
                    first, work = number, 0
            else:
                if number > first:
                    segments.append(self.run(first, number))
                first = number
                segments.append(self.call(step))
        if number > first:
            segments.append(self.run(first, number))
        return segments

    def run(self, first: int, last: int) -> Callable[[], None]:
        """Return a function that runs a sequence of machine code steps."""
        steps = engine.driver(address_of(self.table), first, last, self.control is not None)

        def segment() -> None:
            failed = steps()
            if failed:
                raise GuardFailed(failed - 1, self.value(self.plan.checked[failed - 1])[()])

        return segment

    def value(self, storage: Storage) -> np.ndarray:
        """Return the memory of a value as an array."""
        buffer, view = storage.buffer, storage.view
        memory = self.arena if buffer.array is None else buffer.array
        offset = storage.offset + (buffer.place if buffer.array is None else 0)
        return np.ndarray(view.shape, view.dtype, memory.data, offset, view.strides)

    def call(self, step: Call) -> Callable[[], None]:
        """Return a function that calls NumPy, or compares a guard in Python."""
        node = step.node
        lent = [i for i, s in enumerate(step.inputs) if isinstance(s, Storage) and s.buffer in self.uses]
        values = [
            self.value(s) if isinstance(s, Storage) and i not in lent else s for i, s in enumerate(step.inputs)
        ]
        args, slots = values[: len(node.args)], values[len(node.args) :]
        if node.primitive is GUARD:
            position = next(i for i, s in enumerate(self.plan.checked) if s is step.inputs[0])
            (value,) = args

            def check() -> None:
                if not is_expected(value[()] if value.shape == () else value, node.expected):
                    raise GuardFailed(position, value.copy()[()])

            return check
        assert step.result is not None
        result = self.value(step.result)
        if node.primitive.function in INTO:
            apart: Apart = self.parts.get(step.number, {} if lent else NONE_APART)
            for i in lent:
                self.lent.setdefault(step.inputs[i].buffer, []).append((args, i, step.inputs[i]))
            into = functools.partial(node.primitive.function, **node.params, apart=apart, vector=result)
            return lambda: into(*args)
        direct = written(node, args, result)
        if direct is not None:
            return direct
        function = _with_numbers(node)
        checked = node.primitive.kind == UNRULED or node.dtype.kind in "US"  # a longer text would be cut off
        complex_numbers = node.dtype.kind == "c"

        def apply() -> None:
            value = function(*args, **fill(node.params, slots))
            if checked:
                check_shape(node, value)
            elif np.iscomplexobj(value) != complex_numbers:  # the dtype of a matrix's root depends on its elements
                raise GuardFailed(-1, np.result_type(value))
            result[...] = value

        return apply

    def input(self, number: int) -> Callable[[Value, Value], Value]:
        """Return a function that passes an input to the steps; it has the arguments of `array.__setitem__`."""
        storage = self.plan.inputs[number]
        if storage.buffer in self.uses:
            put = self.pointing(storage.buffer)

            def point(_: Value, leaf: Value) -> Value:
                leaf = np.ascontiguousarray(leaf)
                put(leaf)
                self.lend(storage.buffer, leaf)
                return leaf

            return point
        if storage.buffer.first < 0:
            return _ignore
        setitem: Function = self.value(storage).__setitem__
        return setitem

    def pointing(self, buffer: Buffer) -> Callable[[np.ndarray | None], None]:
        """Return a function that writes the address of the memory of a buffer to the table of arguments."""
        arguments, last = self.arguments, 0
        places, offsets = np.array(self.uses[buffer], np.int64).reshape(-1, 2).T.copy()

        def put(memory: np.ndarray | None) -> None:
            nonlocal last
            address = last if memory is None else address_of(memory)
            if address != last:
                arguments[places] = offsets + address
                last = address

        return put

    def lend(self, buffer: Buffer, memory: np.ndarray | None) -> None:
        """Pass an argument of the program to the loops that read it where the caller has it, or forget it."""
        for args, i, storage in self.lent.get(buffer, ()):
            shape, dtype, strides = storage.view.shape, storage.view.dtype, storage.view.strides
            args[i] = None if memory is None else np.ndarray(shape, dtype, memory, storage.offset, strides)

    def parting(self, step: Call, number: int) -> Callable[[np.ndarray | None], None]:
        """Return a function that lets a loop write an output to the memory of a result, or forgets that memory."""
        parts = self.parts[step.number]

        def put(memory: np.ndarray | None) -> None:
            parts.pop(number, None)
            if memory is not None:
                parts[number] = memory.reshape(-1)

        return put

    def in_place(self, output: Value) -> bool:
        """Whether an output is written directly to the array that a call returns."""
        return isinstance(output, Storage) and output.buffer in self.uses

    def memory(self, put: Callable[[np.ndarray | None], None], node: Node) -> Callable[[], np.ndarray]:
        """Return a function that makes the memory for a result, and passes it to `put`.

        The memory of one of the last two results is reused, if nothing refers to it any more. Pages that are new to a
        process cost more than filling them, and a caller often drops a result only when the next one replaces it.
        """
        memories = [np.empty(node.shape, node.dtype)]

        def fresh() -> np.ndarray:
            put(None)
            for number in range(len(memories)):
                if sys.getrefcount(memories[number]) == _UNUSED:
                    memory = memories[number]
                    break
            else:
                memory = np.empty(node.shape, node.dtype)
                memories[:] = [*memories[-1:], memory]
            put(memory)
            return memory[...]

        return fresh

    def result(self, output: Value, node: Any) -> Callable[[], Value]:
        """Return a function that copies one result out of the program's memory."""
        if not isinstance(output, Storage):
            return lambda: output.copy() if isinstance(output, np.ndarray) else output
        value = self.value(output)
        if issubclass(node.kind, np.ndarray):
            return value.copy
        return value.item if node.kind in (float, int, bool, complex) else lambda: value[()]

    def prepare(self, leaves: Sequence[Value]) -> tuple[list[Value], dict[int, Value]]:
        """Pass the inputs to the steps, and make the large outputs; the caller keeps both alive while the steps run."""
        kept = [put(..., leaf) for put, leaf in zip(self.inputs, leaves, strict=True)]
        return kept, {i: make() for i, make in self.fresh.items()}

    def __call__(self, *leaves: Value) -> list[Value]:
        with self.lock:
            _kept, direct = self.prepare(leaves)
            if self.calls:
                self.run_segments(self.segments)
            else:
                for segment in self.segments:
                    segment()
            if not direct:
                return [make() for make in self.results]
            return [direct[i] if i in direct else make() for i, make in enumerate(self.results)]

    def run_segments(self, segments: Sequence[Callable[[], None]]) -> None:
        """Run segments with the floating-point settings that calls of NumPy need, then restore the caller's."""
        before = self.control[0]() if self.control else 0
        try:
            with np.errstate(all="ignore"):
                for segment in segments:
                    segment()
        finally:
            for buffer in self.lent:
                self.lend(buffer, None)
            if self.control:
                self.control[1](before)


def _texts(
    kernels: dict[Value, Kernel], tapes: dict[Value, Tape], multiplying: set[str]
) -> tuple[dict[Value, str], dict[str, Body]]:
    """Return the name of each kernel by its key, and the texts by name; a kernel's name is the hash of its text."""
    names: dict[Value, str] = {key: INTERPRETER for key in tapes}
    bodies: dict[str, Body] = {INTERPRETER: interpreter()} if tapes else {}
    names.update((name, name) for name in multiplying)
    bodies.update((name, products.kernel(name)) for name in sorted(multiplying))
    for key, kernel in kernels.items():
        if key not in tapes:
            body = Body(vector=bool(engine.WIDTHS) and bool(kernel.shape))
            text(kernel, body)
            names[key] = f"effgrad_{body.digest()}"
            bodies[names[key]] = body
    return names, bodies


def _operations(step: Fused | Product) -> int:
    """Estimate the work of a machine code step, in operations of a kernel; those of a product are 16 times as fast."""
    if isinstance(step, Fused):
        return math.prod(step.kernel.shape) * len(step.kernel.nodes)
    return int(step.node.size * step.node.args[0].shape[-1]) // 16


def _tapes(kernels: dict[Value, Kernel]) -> dict[Value, Tape]:
    """Return the tapes that replace straight-line kernels, if too many different operations would be compiled."""
    straight = {key: kernel for key, kernel in kernels.items() if suits(kernel)}
    if sum(len(kernel.nodes) for kernel in straight.values()) <= MOST_COMPILED:
        return {}
    return {key: Tape(kernel) for key, kernel in straight.items()}


def _references() -> int:
    """The reference count of an array held only by a list; measured here because it depends on the Python version."""
    memories = [np.empty(0)]
    return sys.getrefcount(memories[0])


_UNUSED = _references()


def _with_numbers(node: Node) -> Function:
    """Return a node's function of the arrays in memory: Python's numbers are of arrays of no axes there.

    Beside arrays they adopt the arrays' dtype, which an array of no axes would not.
    """
    function: Function = node.primitive.function
    places = [i for i, a in enumerate(node.args) if type(a) is Node and a.kind in (int, float, complex, bool)]
    if not places or len(node.args) == 1:
        return function

    def of_arrays(*args: Value, **params: Value) -> Value:
        given = list(args)
        for i in places:
            given[i] = args[i].item()
        return function(*given, **params)

    return of_arrays


def _ignore(_: Value, leaf: Value) -> None:
    """Take an input that no step reads."""


def program(graph: Graph, flush_subnormals: bool = False) -> Native:
    """Compile the graph to machine code."""
    return Native(graph, flush_subnormals)
