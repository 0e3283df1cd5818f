"""`effgrad.compile`: stage a function once for each structure, shapes and types of its arguments, and run the programs.

A program is one path through the function. Its guards notice, at run time, where another path begins. That path is
staged when it is first taken, and found again by the answers of the guards.
"""

import contextlib
import functools
import gc
import os
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, ParamSpec, TypeVar, cast

import numpy as np
import optree

from effgrad import forks
from effgrad.api.singular import undefined
from effgrad.api.tracebacks import boundary, of_function
from effgrad.arrays.value import any_traced
from effgrad.effects.collector import AGEING
from effgrad.errors import MemoryLimit, NotStaged, StagingWarning, warn
from effgrad.fast.spilling import parse_memory
from effgrad.program import read
from effgrad.stage.arguments import NO_INTEGERS, Integers, Key, flattened, most_different, named, typed, unhashable
from effgrad.stage.budget import check_limit
from effgrad.stage.graph import Graph
from effgrad.stage.layouts import Arrangement, arranged, owned
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.frame_loops import Loops
from effgrad.stage.loop.functions import performed_once
from effgrad.stage.loop.pairing import compile_loops, with_pairs
from effgrad.stage.nodes import GuardFailed
from effgrad.stage.passes import contracted, dead, simplifier
from effgrad.stage.paths import Path, Paths, Program, titled_lines
from effgrad.stage.python import executable
from effgrad.stage.stage import is_dynamic, staged, values
from effgrad.trees import with_dataclasses
from effgrad.vocabulary import Activation, Function, Option, Tree, Value

# After this many paths for arguments of one type, the function is captured as one region, if that is possible.
MANY_PATHS = 8
# Programs are made for at most this many types of arguments.
MOST_TYPES = 256


def numpy_program(graph: Graph, flush_subnormals: bool) -> Program:
    """Return a program that runs as Python source, with one NumPy call for each operation."""
    run = executable(graph)

    def program(*leaves: Value) -> list[Value]:
        with np.errstate(all="ignore"):
            outputs = run(*leaves)
        return owned(outputs, leaves)

    return program


_importing = forks.lock(waits=True)


def native_program(graph: Graph, flush_subnormals: bool) -> Program:
    """Return a program in machine code."""
    return _native().program(graph, flush_subnormals)  # type: ignore[no-any-return]


def _native() -> Value:
    """Import and return the package `native`.

    A fork waits for the import to end: the child could never finish an import that another thread had begun.
    """
    with _importing, _extra_named():
        from effgrad.stage import native
    return native


@contextlib.contextmanager
def _extra_named() -> Iterator[None]:
    """Raise an error that says what to install if llvmlite is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "llvmlite":
            raise
        raise NotStaged(
            "effgrad.compile needs llvmlite: pip install 'effgrad[compile]', or choose backend='numpy'"
        ) from None


BACKENDS: dict[str, Callable[[Graph, bool], Program]] = {"native": native_program, "numpy": numpy_program}


@contextlib.contextmanager
def _collection_paused() -> Iterator[None]:
    """Pause the garbage collector while a large graph is built.

    None of the graph is garbage, and collections would take a third of the time. At the end the new objects are moved
    to the oldest generation, so that no collection goes through them right after.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            AGEING.now()
            gc.enable()


P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """A compiled function; see `compile`."""

    def __init__(
        self, f: Callable[P, R], backend: str, flush_subnormals: bool, memory: str | int | None = None
    ) -> None:
        functools.update_wrapper(self, f)
        self.__name__ = getattr(f, "__name__", repr(f))  # a functools.partial has no name
        self.flush_subnormals = flush_subnormals
        self.off = os.environ.get("EFFGRAD_COMPILE") == "0"
        self.function: Function = f
        self.backend, self.memory = backend, memory
        self.limits = [] if memory is None else [parse_memory(memory)]
        self.types: dict[Key, Paths] = {}
        self.integers, self.full = Integers(), False
        self.lock = forks.lock()

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        leaves, tree = flattened(args, kwargs)
        if self.off:
            return cast(R, self.function(*args, **kwargs))
        # A derivative, or another staged program, goes through the function itself.
        if tree is not None and any_traced(leaves):
            return cast(R, read(self.function)(*args, **kwargs))
        with self.lock:
            return cast(R, self._run(leaves, tree))

    def __get__(self, instance: Value, owner: Activation = None) -> Value:
        """Bind a compiled method to its object, which becomes its first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {self.__name__}, {sum(paths.number for paths in self.types.values())} programs>"

    @property
    def branches(self) -> bool:
        """Whether any path has guards, and so depends on the values of its inputs."""
        return any(path.answers for paths in self.types.values() for path in paths.all)

    def __reduce__(self) -> Value:
        return compile, (self.function, self.backend, self.flush_subnormals, self.memory)

    def _run(self, leaves: Sequence[Value], tree: Tree) -> Value:
        paths, inputs = self._typed(leaves, tree)
        if paths is None:
            return self._by_function(leaves, tree)
        if paths.over_limit:
            return self._by_function(leaves, tree)
        try:
            found = paths.run(inputs)
        except MemoryLimit as error:  # a loop runs for more steps than it did when it was staged
            return self._within_limit(error, paths, leaves, tree)
        if found is not None:
            path, outputs = found
            if path.differentiated and any(map(undefined, outputs)):
                return self._by_function(leaves, tree)
            return path.result(outputs)
        if paths.exhausted(lambda: self._names(leaves, tree, paths.integers)):
            return self._by_function(leaves, tree)
        return self._on_new_path(paths, inputs, leaves, tree)

    def _typed(self, leaves: Sequence[Value], tree: Tree) -> tuple[Paths | None, Sequence[Value]]:
        """Return the paths for arguments of this type, or None if there are too many types; and the inputs."""
        key, inputs = typed(leaves, tree)
        try:
            paths = self.types.get(key)
        except TypeError:
            raise NotStaged(f"{self.__name__} was called with {unhashable(self.function, leaves, tree)}") from None
        integers = NO_INTEGERS if paths is not None else self.integers.changing(leaves, key)
        if integers:
            key, inputs = typed(leaves, tree, integers)
            paths = self.types.get(key)
        if paths is None and not self._full(leaves, tree):
            paths = self.types[key] = Paths(self.__name__, integers)
        return paths, inputs

    def _full(self, leaves: Sequence[Value], tree: Tree) -> bool:
        """Whether programs exist for as many types of arguments as are kept; warn the first time."""
        if len(self.types) < MOST_TYPES:
            return False
        if not self.full:
            self.full = True
            warn(
                f"{self.__name__} was compiled for {most_different(self.types, named(self.function, leaves, tree))}, "
                "and runs as plain Python for others: give it arguments of fewer shapes, or arrays for values",
                StagingWarning,
            )
        return True

    def _names(self, leaves: Sequence[Value], tree: Tree, integers: frozenset[int]) -> list[str]:
        """Return the names of the arguments that are inputs of programs."""
        names = named(self.function, leaves, tree)
        return [name for i, name in enumerate(names) if i in integers or is_dynamic(leaves[i])]

    def _on_new_path(self, paths: Paths, inputs: Sequence[Value], leaves: Sequence[Value], tree: Tree) -> Value:
        """Stage and compile the path that these arguments take, and return its result."""
        start, loops, given = time.perf_counter(), self._loops(), (leaves, tree)
        leaves, tree = given if tree is not None else with_dataclasses((leaves, {}))
        try:
            with _collection_paused():
                whole = self._whole(leaves, tree, paths)
                try:
                    graph, results, program = whole or self._staged(leaves, tree, loops, paths.integers)
                except NotCaptured as reason:  # the loop was captured, but not its derivative
                    loops = self._loops(f"{reason}, in the derivative of a loop")
                    graph, results, program = self._staged(leaves, tree, loops, paths.integers)
                except Exception:
                    if not paths.integers:
                        raise
                    return self._with_fixed(paths.integers, *given)
            paths.limited = graph.limit is not None and self._has_own(loops)
            check_limit(graph, program, self.limits, time.perf_counter() - start)
            path = Path(graph, program, time.perf_counter() - start, loops.unrolled)
            paths.add(path, leaves)
            outputs = program(*inputs)
        except MemoryLimit as error:
            paths.limited = self._has_own(loops)
            return self._within_limit(error, paths, *given)
        except GuardFailed:  # rounding decided a branch, and differs between the program and NumPy
            paths.missed += 1
            with self._settings():
                outputs = owned(values(results), inputs)
        if graph.differentiated and any(map(undefined, outputs)):
            return self._by_function(*given)
        return path.result(outputs)

    def _with_fixed(self, integers: frozenset[int], leaves: Sequence[Value], tree: Tree) -> Value:
        """Run with some integers as part of the program, as Python may need their values.

        They are inputs again if that raises an error too.
        """
        key = typed(leaves, tree)[0]
        self.integers.fix(leaves, key, integers)
        try:
            return self._run(leaves, tree)
        except Exception:
            self.integers.release(leaves, key, integers)
            raise

    def _whole(self, leaves: Sequence[Value], tree: Tree, paths: Paths) -> tuple[Graph, list[Value], Program] | None:
        """Return one program for all paths, the function as one region, once there are many paths; None otherwise."""
        if paths.number != MANY_PATHS or self.backend != "native":
            return None
        whole = functools.partial(performed_once, self.function)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StagingWarning)
                found = self._staged(leaves, tree, self._loops(), paths.integers, lambda *a, **k: whole(a, k))
        except Exception:  # an error of the function is raised again where Python runs it
            return None
        paths.forget()
        return found

    def _staged(
        self, leaves: Sequence[Value], tree: Tree, loops: Loops, integers: frozenset[int],
        function: Function | None = None,
    ) -> tuple[Graph, list[Value], Program]:
        """Return the graph for these arguments, the leaves of its result, and the program."""
        arrangement = Arrangement()
        arranging = arranged(function or self.function, arrangement)
        try:
            with self._settings():
                graph, results = staged(arranging, leaves, tree, simplifier(), loops, integers)
        except Exception:  # after a wrong capture any may come; the program raises its own when it is staged again
            if not loops.mistaken():
                raise
        if mistaken := loops.mistaken():
            loops.begin_again(mistaken)
            return self._staged(leaves, tree, loops, integers, function)
        loops.check_guards(len(graph.guards))
        graph.arrangement = arrangement
        graph = contracted(dead(graph))
        if loops.programs:
            graph = with_pairs(graph, _native().Halves)
            compile_loops(graph)
        return graph, results, BACKENDS[self.backend](graph, self.flush_subnormals)

    def _loops(self, reason: str = "") -> Loops:
        """Return the handler of a program's loops. It unrolls them all for the "numpy" backend, or with a reason."""
        if self.backend != "native":
            reason = f"backend={self.backend!r}, which runs one operation after the other"
        return Loops(None if reason else _native().Executable, self.limits, reason)

    def _has_own(self, loops: Loops) -> bool:
        """Whether a derivative in the program has a memory limit of its own."""
        return loops.limits != self.limits

    def _within_limit(self, error: MemoryLimit, paths: Paths, leaves: Sequence[Value], tree: Tree) -> Value:
        """Return the result of the uncompiled function, whose derivatives keep to their limit by a tape on disk.

        If no derivative has a memory limit of its own, the error is raised.
        """
        if not paths.limited:
            raise error
        paths.over_limit = True
        warn(f"{self.__name__} is not compiled, and keeps its tape on disk: {error}", StagingWarning)
        return self._by_function(leaves, tree)

    def _by_function(self, leaves: Sequence[Value], tree: Tree) -> Value:
        """Return the result of the uncompiled function, whose derivatives take limits where the program gives NaN."""
        if tree is None:
            return self.function(*leaves)
        args, kwargs = optree.tree_unflatten(tree, leaves)
        return self.function(*args, **kwargs)

    def _settings(self) -> contextlib.AbstractContextManager[None]:
        """Return a context with the program's floating-point settings, for its first run, which NumPy does."""
        if self.backend != "native" or not self.flush_subnormals:
            return contextlib.nullcontext()
        with _extra_named():
            from effgrad.stage.native.engine import flushed
        return flushed()

    def path(self, *args: Value, **kwargs: Option) -> Path:
        """Run the function on these arguments and return the path that they take, which is compiled if it is new."""
        self(*args, **kwargs)
        paths, _ = self._typed(*flattened(args, kwargs))
        if paths is None or paths.latest is None:
            raise NotStaged(f"{self.__name__} runs as plain Python for these arguments")
        return paths.latest

    def report(self, *args: Value, **kwargs: Option) -> str:
        """Describe the program for these arguments: its steps, their times, and the machine's ceilings."""
        path = self.path(*args, **kwargs)
        if self.backend != "native":
            text = f"{path.graph!r}, staged in {path.seconds:.3g} s, run by NumPy"
            return "\n".join([text, *titled_lines("unrolled", path.unrolled)])
        from effgrad.stage.native.report import report

        inputs = self._typed(*flattened(args, kwargs))[1]
        return report(path.program, inputs, path.seconds, path.unrolled)  # type: ignore[arg-type]


@of_function
def compile(  # noqa: A001 (the name users look for)
    f: Callable[P, R], backend: str = "native", flush_subnormals: bool = False, memory: str | int | None = None
) -> Compiled[P, R]:
    """Compile `f` to a program, which is staged at the first call with each type of arguments, then run without Python.

    Floats and arrays are the program's inputs; it is staged again for other shapes, dtypes and strings. An integer is
    part of the program until it comes with another value; from then on it is an input, and only where Python needs its
    value does the path depend on it. Python's control flow is followed: a path is compiled when it is first taken.
    Side effects of `f`, such as printing, happen when a path is staged, not when it runs. Everything that `f` reads
    besides its arguments (what it closes over, globals, random numbers) is constant. The arrays that it is given are
    copies, which it may write to.

    Arguments:
        f: a function of pytrees, in plain NumPy; it may take derivatives, or be a derivative.
        backend: "native" for machine code, which needs llvmlite, or "numpy" for one NumPy call for each operation.
        flush_subnormals: let the processor take numbers below 2.2e-308 as zero in machine code. Arithmetic with them
            is many times slower; weights that underflow, as in softmax, are often among them.
        memory: a limit for the memory of the program, as bytes or a text like "100 MB". Reverse mode in a loop that
            would save more than its part of the limit keeps states of the loop instead, and reruns the steps between
            them. Without a limit that is for more than 8 MB; or, up to 128 MB, for more than 2 sqrt(n) states of a
            loop of n steps, and where steps call NumPy. The logger "effgrad.memory" says how often. A derivative with
            a limit of its own, `compile(grad(f, memory="100 MB"))`, keeps to that limit; where a compiled program
            would need more, it runs uncompiled, with its tape on disk.

    Returns:
        A function of the same arguments and results; its `report()` says what was compiled and what was not.

    Raises:
        NotStaged: an argument cannot be part of a program, or a package is missing.
        MemoryLimit: the program would take more than `memory`.

    The environment variable ``EFFGRAD_COMPILE=0`` turns compilation off.

    >>> import effgrad
    >>> g = effgrad.compile(effgrad.grad(lambda x: x**3 if x > 0 else x))
    >>> g(2.0), g(3.0), g(-1.0)
    (12.0, 27.0, 1.0)
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; choose one of {', '.join(map(repr, BACKENDS))}")
    return Compiled(f, backend, flush_subnormals, memory)
