"""Regions in machine code: compile a region, allocate its memory, and call it."""

import contextlib
import ctypes
import operator
from collections.abc import Generator, Mapping, Sequence

import numpy as np

from effgrad import forks
from effgrad.arrays.layout import address_of
from effgrad.errors import MemoryLimit
from effgrad.stage.loop.buffers import Buffer
from effgrad.stage.loop.ir import Apply, Region, Stack, writes_in
from effgrad.stage.loop.program import MOST_ROOM, NONE_APART, Apart
from effgrad.stage.loop.small_systems import Solution
from effgrad.stage.native import engine, products
from effgrad.stage.native.lowering import BEYOND, CHECKED, RAISED, Function
from effgrad.stage.native.saves import FULL
from effgrad.vocabulary import Value

# Straight-line code is vectorised in functions of at least `DIVISIONS` divisions and at most `PAIRED` lines. Divisions
# gain by it: particle of GradBench takes 0.75 of the time, but maxima of three numbers took 1.8 times as long.
DIVISIONS, PAIRED = 8, 4000
# The bounds of the bytes that a stack begins with, its estimated size; the system provides only pages that are used. A
# small first size costs time, because the region is rerun each time that a stack is full.
LEAST, MOST = 1 << 15, MOST_ROOM


class Executable:
    """A region in machine code, with its memory. Called with the region's arguments, it returns the outputs."""

    def __init__(self, region: Region, limit: int | None = None) -> None:
        self.region, self.limit = region, limit
        function = Function(region)
        kernels = {**function.kernels}
        name = f"effgrad_region_{function.text.digest()}"
        loaded = engine.engine()
        if f"declare i32 @{products.KERNEL}(ptr)" in function.text.declared:
            loaded.load({products.KERNEL: products.kernel(products.KERNEL)})
        loaded.load(kernels, interleaved=True, pairs=False)
        lines = function.text.lines
        pairs = len(lines) <= PAIRED and sum(" fdiv " in line for line in lines) >= DIVISIONS
        address = loaded.load({name: function.text}, interleaved=True, pairs=pairs)[name]
        self.order, self.applied, self.checks = function.order, function.applied, function.checks
        self.stacks: dict[Stack, np.ndarray] = dict.fromkeys(function.stacks, _NOTHING)
        # The bytes that the last run left on each stack.
        self.depths: dict[Stack, int] = {}
        self.lock = forks.lock()
        changed = writes_in(region.block)
        self.fresh = [b for b in dict.fromkeys(region.outputs) if b in changed or b not in region.inputs]
        self.direct = [b for b in region.inputs if b not in changed and b not in self.fresh]
        self.memory = {b: b.data if b.data is not None else np.zeros(b.shape, b.dtype) for b in self.order
                       if b not in self.direct and b not in self.fresh}  # fmt: skip
        self.given: Mapping[Stack, int] = {}
        self.error: BaseException | None = None
        calls = self.calls()
        next(calls)
        self.callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(calls.send)
        # The memory of each buffer, that of the results, and what to copy there before each run.
        self.current: dict[Buffer, np.ndarray] = {}
        self.results: dict[Buffer, np.ndarray] = {}
        self.copied: list[tuple[np.ndarray, np.ndarray]] = []
        # The arguments and the vector of results to which the function is bound.
        self.bound: Sequence[Value] = ()
        self.into: np.ndarray | None = None
        # The addresses of arguments and results change from run to run; those of other buffers stay.
        self.moving = [(k, b) for k, b in enumerate(self.order) if b not in self.memory]
        self.table = self.addresses()
        self.step = np.array([address, address_of(self.table)])
        self.run = engine.driver(address_of(self.step), 0, 1, False)

    def addresses(self) -> np.ndarray:
        """Return the table of addresses that the function takes: memory, stacks, calls; those that change are 0."""
        callback = ctypes.cast(self.callback, ctypes.c_void_p).value or 0
        own = [address_of(self.memory[b]) if b in self.memory else 0 for b in self.order]
        called = [callback, *map(products.address, _FLOATS)]
        return np.array([*own, *[0] * (2 * len(self.stacks)), *called], np.int64)

    def calls(self) -> Generator[int, int, None]:
        """Run the functions that NumPy computes: receive the number of each, and yield 0, or 1 after an error.

        A generator resumes inside its `try`. A function would have to enter its `try` first, and an exception that a
        signal handler (Ctrl-C) raises before that would be lost, because the caller is machine code.
        """
        code = 0
        while True:
            try:
                while True:
                    number = yield code
                    s, code = self.applied[number], 1
                    self.current[s.output][...] = s.function(*[self.argument(b, s) for b in s.inputs])
                    code = 0
            except GeneratorExit:
                return
            except BaseException as error:
                self.error, code = error, 1

    def argument(self, b: Buffer, s: Apply) -> Value:
        """Return the memory of a buffer for a `Solution`, which only reads it; other functions get a copy."""
        memory = self.current[b]
        return memory if isinstance(s.function, Solution) else memory.copy()[()]

    def __call__(
        self, *arguments: Value, into: np.ndarray | None = None, apart: Apart = NONE_APART
    ) -> list[np.ndarray]:
        """Run the region and return its outputs; with `into`, new float64 outputs are written there, one by one.

        The outputs in `apart`, by their number, are written to the vectors there instead. If it is given, even empty,
        nothing refers to the arguments and the results after the run.
        """
        with self.lock:
            while True:
                code = self.once(arguments, into, apart)
                if code == 0:
                    made = self.results
                    outputs = [made[b] if b in made else self.current[b].copy() for b in self.region.outputs]
                    if apart is not NONE_APART:
                        self.current, self.results, self.copied, self.bound, self.into = {}, {}, [], (), None
                    return outputs
                if code == BEYOND:
                    raise OverflowError("an integer in a compiled loop exceeds 64 bits; make it a float")
                if code >= CHECKED:
                    failed = self.checks[code - CHECKED]
                    raise failed.error(failed.message)
                if code == RAISED:
                    assert self.error is not None
                    error, self.error = self.error, None
                    raise error
                self.grow(list(self.stacks)[FULL - code])

    def grow(self, full: Stack) -> None:
        """Double the memory of a full stack, which is not one that the way forward of a pair has filled."""
        needed = 2 * sum(memory.nbytes for memory in self.stacks.values())
        # The system provides only pages that are written to, and at least half of the new memory is used: so twice the
        # limit may be reserved.
        if self.limit is not None and needed > 2 * self.limit:
            raise MemoryLimit(
                f"a loop keeps more than {self.limit / 1e6:.3g} MB for its reverse: give memory at least "
                f"{needed / 1e6:.3g} MB"
            )
        self.stacks[full] = np.empty(2 * self.stacks[full].size)

    def once(self, arguments: Sequence[Value], into: np.ndarray | None, apart: Apart) -> int:
        """Run the function once; return the code that says why it stopped."""
        if into is None or into is not self.into or any(map(operator.is_not, arguments, self.bound)):
            self.bind(arguments, into, apart)
        for memory, argument in self.copied:
            memory[...] = argument
        self.stacks = {s: kept if kept.size else _begun(s) for s, kept in self.stacks.items()}
        starts = {stack: address_of(kept) for stack, kept in self.stacks.items()}
        for k, (stack, start) in enumerate(starts.items()):
            first = len(self.order) + 2 * k
            self.table[first] = start + self.given.get(stack, 0)
            self.table[first + 1] = start + self.stacks[stack].nbytes
        with np.errstate(all="ignore") if self.applied else contextlib.nullcontext():
            code: int = self.run()
        tops = self.table[len(self.order) :: 2].tolist()
        self.depths = {stack: top - start for (stack, start), top in zip(starts.items(), tops, strict=False)}
        return code

    def bind(self, arguments: Sequence[Value], into: np.ndarray | None, apart: Apart) -> None:
        """Give the function the addresses of its arguments and of new results, or of those in `into` and `apart`.

        A program that gives its own memory in `into` gives the same arrays each time, which are bound once.
        """
        self.results = {b: np.empty(b.shape, b.dtype) for b in self.fresh}
        start = 0
        for number, b in enumerate(self.region.outputs):
            if into is not None and b in self.results and b.dtype == _FLOATS[0] and start + b.size <= into.size:
                vector = apart[number] if number in apart else into[start : start + b.size]
                self.results[b] = vector.reshape(b.shape)
            start += b.size
        self.current, self.copied = {**self.memory, **self.results}, []
        for b, argument in zip(self.region.inputs, arguments, strict=True):
            given = np.asarray(argument)
            if b not in self.current and given.dtype == b.dtype and given.flags.c_contiguous:
                self.current[b] = given.reshape(b.shape)
                continue
            self.current.setdefault(b, np.empty(b.shape, b.dtype))
            self.copied.append((self.current[b], given.reshape(b.shape)))
        for k, b in self.moving:
            self.table[k] = address_of(self.current[b])
        self.bound, self.into = (arguments, into) if into is not None else ((), None)


class Halves:
    """A region split into its way forward and its reverse; the stacks that `forward` fills are read by `backward`."""

    def __init__(self, there: Region, back: Region, limit: int | None = None) -> None:
        self.there, self.back = Executable(there, limit), Executable(back, limit)

    def forward(self, vector: np.ndarray | None, apart: Apart, *arguments: Value) -> list[np.ndarray]:
        """Return the outputs of the region, followed by the values that `backward` takes as its last arguments."""
        return self.there(*arguments, into=vector, apart=apart)

    def backward(self, vector: np.ndarray | None, apart: Apart, *arguments: Value) -> list[np.ndarray]:
        """Return the cotangents of the wanted inputs; `forward` must have run."""
        self.back.stacks = {stack: self.there.stacks.get(stack, kept) for stack, kept in self.back.stacks.items()}
        self.back.given = {stack: self.there.depths.get(stack, 0) for stack in self.back.stacks}
        return self.back(*arguments, into=vector, apart=apart)


_FLOATS = np.dtype(float), np.dtype(np.float32)
_NOTHING = np.empty(0)


def _begun(stack: Stack) -> np.ndarray:
    """Return the memory that a stack begins with."""
    return np.empty(min(max(stack.bytes, LEAST), MOST) // 8)
