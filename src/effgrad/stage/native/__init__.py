"""A graph as machine code: kernels run by a small native driver, and calls of NumPy between them."""

import hashlib
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.stage.graph import GUARD, UNRULED, Graph, GuardFailed, check_shape, fill, same
from effgrad.stage.native import engine, products
from effgrad.stage.native.kernels import Kernel, signature, text
from effgrad.stage.native.lanes import apart
from effgrad.stage.native.plan import Plan
from effgrad.stage.native.scalars import Body
from effgrad.stage.native.steps import Call, Fused, Product
from effgrad.stage.native.storage import Buffer, Storage
from effgrad.stage.native.tape import INTERPRETER, Tape, interpreter, suits

# More different straight-line operations than this are not compiled, but recorded on tapes and interpreted.
MOST_COMPILED = 20_000


class Native:
    """A compiled program: called with the leaves of the inputs, it returns those of the outputs."""

    def __init__(self, graph: Graph, flush_subnormals: bool = False, repeated: bool = False) -> None:
        self.control = engine.control() if flush_subnormals and engine.X86 else None
        graph = apart(graph)
        plan = self.plan = Plan(graph, repeated)
        self.lock = threading.Lock()
        self.arena = np.zeros(plan.arena + 64, np.uint8)
        start = -self.arena.__array_interface__["data"][0] % 64
        self.arena = self.arena[start:]
        # Where the addresses of arguments and results that are used where they are go: positions in the table of
        # arguments, and offsets.
        self.uses: dict[Buffer, list[tuple[int, int]]] = {buffer: [] for buffer in plan.direct}
        self.load()
        self.segments = self.segmented()
        self.inputs: list[Any] = [self.input(number, node) for number, node in enumerate(graph.inputs)]
        # A loop reads the outputs of its body where they are.
        results = zip(plan.outputs, graph.outputs, strict=True) if not repeated else ()
        self.results = [self.result(o, kind) for o, kind in results]
        self.fresh = [(i, make) for i, make in enumerate(self.results) if make.__name__ == "fresh"]
        self.calls = any(isinstance(step, Call) for step in plan.steps)

    def load(self) -> None:
        """Compile what is new, and make the table of the steps: the address of each and of its arguments."""
        steps = [step for step in self.plan.steps if not isinstance(step, Call)]
        different: dict[Any, int] = {}
        keys = [
            different.setdefault(signature(step.kernel), len(different)) if isinstance(step, Fused) else products.KERNEL
            for step in steps
        ]
        kernels = {key: step.kernel for key, step in zip(keys, steps, strict=True) if isinstance(step, Fused)}
        self.tapes = _tapes(kernels)
        self.slots = np.zeros(max((len(tape.slots) for tape in self.tapes.values()), default=0))
        names: dict[Any, str] = {key: INTERPRETER for key in self.tapes}
        bodies: dict[str, Body] = {INTERPRETER: interpreter()} if self.tapes else {}
        if products.KERNEL in keys:
            names[products.KERNEL] = products.KERNEL
            bodies[products.KERNEL] = products.kernel()
        chosen: list[str] = []
        for key, step in zip(keys, steps, strict=True):
            if isinstance(step, Fused) and key not in names:
                body = Body(vector=bool(engine.WIDTHS) and bool(step.kernel.shape))
                text(step.kernel, body)
                digest = hashlib.sha256("\n".join(body.lines).encode()).hexdigest()
                name = names[key] = f"effgrad_{digest[:32]}"
                bodies[name] = body
            chosen.append(names[key])
        addresses = engine.engine().load(bodies)
        arguments: list[int] = []
        starts = []
        arena = _address(self.arena)
        for key, step in zip(keys, steps, strict=True):
            starts.append(len(arguments))
            if key in self.tapes:
                arguments += self.tapes[key].header(self.slots)
            for buffer, offset in self.plan.offsets[step.number]:
                if buffer in self.uses:
                    self.uses[buffer].append((len(arguments), offset))
                    arguments.append(0)
                else:
                    start = arena + buffer.place if buffer.array is None else _address(buffer.array)
                    arguments.append(start + offset)
            if isinstance(step, Product):
                arguments += step.numbers
        self.arguments = np.array(arguments or [0], np.int64)
        base = _address(self.arguments)
        table = [x for name, start in zip(chosen, starts, strict=True) for x in (addresses[name], base + 8 * start)]
        self.table = np.array(table or [0], np.int64)
        self.kernels = len(bodies)

    def segmented(self) -> list[Callable[[], None]]:
        """Runs of machine code, and the calls between them."""
        segments: list[Callable[[], None]] = []
        first = number = 0
        for step in self.plan.steps:
            if not isinstance(step, Call):
                number += 1
            else:
                if number > first:
                    segments.append(self.run(first, number))
                first = number
                segments.append(self.call(step))
        if number > first:
            segments.append(self.run(first, number))
        return segments

    def run(self, first: int, last: int) -> Callable[[], None]:
        steps = engine.driver(_address(self.table), first, last, self.control is not None)

        def segment() -> None:
            failed = steps()
            if failed:
                raise GuardFailed(failed - 1, self.value(self.plan.checked[failed - 1])[()])

        return segment

    def value(self, storage: Storage) -> np.ndarray:
        """The memory of a value as an array."""
        buffer, view = storage.buffer, storage.view
        memory = self.arena if buffer.array is None else buffer.array
        offset = storage.offset + (buffer.place if buffer.array is None else 0)
        return np.ndarray(view.shape, view.dtype, memory.data, offset, view.strides)

    def call(self, step: Call) -> Callable[[], None]:
        node = step.node
        values = [self.value(s) if isinstance(s, Storage) else s for s in step.inputs]
        args, slots = values[: len(node.args)], values[len(node.args) :]
        if node.primitive is GUARD:
            position = next(i for i, s in enumerate(self.plan.checked) if s is step.inputs[0])
            (value,) = args

            def check() -> None:
                if not same(value[()] if value.shape == () else value, node.expected):
                    raise GuardFailed(position, value.copy()[()])

            return check
        assert step.result is not None
        result, function = self.value(step.result), node.primitive.function
        if node.primitive.kind == UNRULED:

            def checked() -> None:
                value = function(*args, **fill(node.params, slots))
                check_shape(node, value)
                result[...] = value

            return checked

        def apply() -> None:
            result[...] = function(*args, **fill(node.params, slots))

        return apply

    def input(self, number: int, node: Any) -> Callable[[Any, Any], Any]:
        """What puts an input where the steps read it, called as `array.__setitem__` is."""
        storage = self.plan.storage[id(node)]
        if storage.buffer in self.uses:
            put = self.pointing(storage.buffer)

            def point(_: Any, leaf: Any) -> Any:
                leaf = np.ascontiguousarray(leaf)
                put(_address(leaf))
                return leaf

            return point
        if storage.buffer.first < 0:
            return _ignore
        setitem: Callable[..., Any] = self.value(storage).__setitem__
        return setitem

    def pointing(self, buffer: Buffer) -> Callable[[int], None]:
        """What puts the address of a buffer where the steps read it."""
        arguments, last = self.arguments, 0
        places, offsets = np.array(self.uses[buffer], np.int64).reshape(-1, 2).T.copy()

        def put(address: int) -> None:
            nonlocal last
            if address != last:
                arguments[places] = offsets + address
                last = address

        return put

    def result(self, output: Any, node: Any) -> Callable[[], Any]:
        if not isinstance(output, Storage):
            return lambda: output.copy() if isinstance(output, np.ndarray) else output
        if output.buffer in self.uses and output.buffer.source is None and output.buffer.array is None:
            put, memories = self.pointing(output.buffer), [np.empty(node.shape, node.dtype)]

            def fresh() -> Any:
                # The memory of the last result or the one before it, whichever nothing refers to any more: pages that
                # are new to a process cost more than filling them does, and a caller often drops a result only when
                # the next one replaces it.
                for number in range(len(memories)):
                    if sys.getrefcount(memories[number]) == _UNUSED:
                        memory = memories[number]
                        break
                else:
                    memory = np.empty(node.shape, node.dtype)
                    memories[:] = [*memories[-1:], memory]
                put(_address(memory))
                return memory[...]

            return fresh
        value = self.value(output)
        if issubclass(node.kind, np.ndarray):
            return value.copy
        return value.item if node.kind in (float, int, bool, complex) else lambda: value[()]

    def prepare(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
        """Put the inputs where the steps read them, and make the large outputs; both must live while the steps run."""
        kept = [put(..., leaf) for put, leaf in zip(self.inputs, leaves, strict=True)]
        return kept, {i: make() for i, make in self.fresh} if self.fresh else {}

    def __call__(self, *leaves: Any) -> list[Any]:
        with self.lock:
            _kept, direct = self.prepare(leaves)
            if self.calls:
                self.settled(self.segments)
            else:
                for segment in self.segments:
                    segment()
            if not direct:
                return [make() for make in self.results]
            return [direct[i] if i in direct else make() for i, make in enumerate(self.results)]

    def settled(self, segments: Sequence[Callable[[], None]]) -> None:
        """Run segments with the floating-point settings that calls of NumPy need, and put the caller's back."""
        before = self.control[0]() if self.control else 0
        try:
            with np.errstate(all="ignore"):
                for segment in segments:
                    segment()
        finally:
            if self.control:
                self.control[1](before)


def _tapes(kernels: dict[Any, Kernel]) -> dict[Any, Tape]:
    """The tapes that take the place of straight-line code, where there is too much different code to compile."""
    straight = {key: kernel for key, kernel in kernels.items() if suits(kernel)}
    if sum(len(kernel.nodes) for kernel in straight.values()) <= MOST_COMPILED:
        return {}
    return {key: Tape(kernel) for key, kernel in straight.items()}


def _references() -> int:
    """The references to an array that only a list has, and the function that asks."""
    memories = [np.empty(0)]
    return sys.getrefcount(memories[0])


_UNUSED = _references()


def _ignore(_: Any, leaf: Any) -> None:
    """An input on which nothing depends."""


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def program(graph: Graph, flush_subnormals: bool = False) -> Native:
    """The graph compiled to machine code."""
    return Native(graph, flush_subnormals)
