"""Runs of an optimiser: its evaluations are counted, timed and shown; interrupted, it gives the best point so far."""

import time
from collections.abc import Callable
from typing import Any, TypeAlias

from scipy.optimize import OptimizeResult

from effgrad.arrays.reach import np
from effgrad.arrays.value import plain
from effgrad.errors import EffgradError, NotDifferentiable
from effgrad.program import read
from effgrad.stage import compile as compiled_program
from effgrad.toolbox.compressed import raveled
from effgrad.trees import flatten

Value: TypeAlias = Any
Function: TypeAlias = Callable[..., Value]

PATIENCE = 0.3  # seconds of evaluation after which a program is compiled


class Result(OptimizeResult):  # type: ignore[misc]
    """SciPy's result, with `x` in the structure of the start.

    Beside SciPy's fields: `supplied` says which derivatives were given to SciPy, and how; `history` has the value of
    each evaluation; `plot()` draws it.
    """

    def plot(self, axes: Value = None) -> Value:
        """Draw the value of each evaluation and the best so far (on matplotlib axes, made if there are none)."""
        try:
            import matplotlib.pyplot as plt
        except ModuleNotFoundError:
            raise EffgradError("a plot needs matplotlib: pip install 'effgrad[optimize]'") from None
        axes = plt.subplots()[1] if axes is None else axes
        values = np.asarray(self.history, float)
        values = values - min(0.0, np.nanmin(values)) if len(values) else values
        numbers = np.arange(1, len(values) + 1)
        axes.semilogy(numbers, np.maximum(values, 1e-300), ".", label="an evaluation")
        axes.semilogy(numbers, np.maximum(np.fmin.accumulate(values), 1e-300), "-", label="the best so far")
        axes.set(xlabel="evaluation", ylabel="value")
        axes.legend()
        return axes


class Unknowns:
    """A pytree of numbers and arrays as one vector."""

    def __init__(self, start: Value) -> None:
        leaves, self.tree = flatten(start)
        leaves = [np.asarray(leaf, float) if np.result_type(plain(leaf)).kind in "iub" else leaf for leaf in leaves]
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)]).tolist()
        self.vector = np.array(raveled(leaves), float)
        if not self.vector.size:
            raise NotDifferentiable("the start has no numbers: there is nothing to optimise")

    def unflatten(self, x: Value) -> Value:
        parts = zip(self.ends, self.ends[1:], self.shapes, strict=False)
        return self.tree.unflatten([x[a:b].reshape(shape) if shape else x[a] for a, b, shape in parts])

    def of_vector(self, f: Function) -> Function:
        """`f` as a function of the vector."""
        f = read(f)
        return lambda x, *args: f(self.unflatten(x), *args)


class Evaluations:
    """The evaluations of one run: counted, timed, shown; the best is kept, and a slow program is compiled."""

    def __init__(self, f: Function, args: tuple[Value, ...], progress: bool, size: Function = float) -> None:
        self.f, self.args, self.size = f, args, size
        self.history: list[float] = []
        self.best: tuple[float, Value] = (np.inf, None)
        self.seconds, self.compiled, self.settled = 0.0, False, False
        self.bar = _bar() if progress else None

    def __call__(self, x: Value) -> Value:
        start = time.perf_counter()
        result = self.f(x, *self.args)
        self.seconds += time.perf_counter() - start
        value = self.size(result[0] if type(result) is tuple else result)
        self.history.append(value)
        if value < self.best[0] or self.best[1] is None:
            self.best = (value, np.array(x))
        if self.bar is not None:
            self.bar.update(self.task, advance=1, value=f"{self.best[0]:.6g}")
        if self.seconds > PATIENCE and not self.settled:
            self._compile(x, result)
        return result

    def _compile(self, x: Value, result: Value) -> None:
        """Go on with a compiled program, if there is one and it gives the same."""
        self.settled = True
        program = compiled_program(self.f)
        try:
            again = program(x, *self.args)
        except Exception:  # a program that runs may have no form as a graph
            return
        pairs = zip(flatten(again)[0], flatten(result)[0], strict=True)
        if all(np.allclose(a, b, rtol=1e-6, atol=1e-12, equal_nan=True) for a, b in pairs):
            self.f, self.compiled = program, True

    def __enter__(self) -> "Evaluations":
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task("optimising", total=None, value="")
        return self

    def __exit__(self, *_: Value) -> None:
        if self.bar is not None:
            self.bar.stop()


def _bar() -> Value:
    try:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        raise EffgradError("a progress bar needs rich: pip install 'effgrad[optimize]'") from None
    return Progress(
        SpinnerColumn(), TextColumn("{task.completed} evaluations, best {task.fields[value]}"), TimeElapsedColumn(),
        transient=True,
    )  # fmt: skip


def observe(evaluations: Evaluations, unknowns: Unknowns, supplied: str, solve: Callable[[], Value]) -> Result:
    """Let SciPy solve; an interrupt gives the best point so far."""
    with evaluations:
        try:
            result = Result(solve())
        except KeyboardInterrupt:
            value, x = evaluations.best
            if x is None:
                raise
            count = len(evaluations.history)
            message = f"interrupted; x is the best point of {count} evaluations"
            result = Result(x=x, fun=value, success=False, status=-1, message=message, nfev=count)
    result.x = unknowns.unflatten(result.x)
    result.supplied = supplied + (" (compiled)" if evaluations.compiled else "")
    result.history = evaluations.history
    return result
