"""Runs of an optimiser: evaluations are counted, timed and shown. An interrupted run returns the best point so far."""

import time
from collections.abc import Callable

from scipy.optimize import Bounds, OptimizeResult
from scipy.sparse import issparse

from effgrad.api.checks import is_number
from effgrad.arrays.labelled import without_labels
from effgrad.arrays.layout import dtype_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import to_operand
from effgrad.errors import EffgradError, NotDifferentiable
from effgrad.program import read
from effgrad.stage import compile as compiled_program
from effgrad.toolbox.frozen import joined, parted
from effgrad.trees import flatten
from effgrad.vocabulary import Function, Value

# The seconds of evaluation after which a program is compiled, and those after which a derivative is staged as NumPy
# code. Staging takes as long as some thirty evaluations.
PATIENCE, STAGED = 0.3, 0.015


class Result(OptimizeResult):  # type: ignore[misc]
    """SciPy's result, with `x` in the structure of the start.

    Beside SciPy's fields, `supplied` says which derivatives were given to SciPy, and how. `history` has the value of
    each evaluation, and `plot()` draws it.
    """

    def plot(self, axes: Value = None) -> Value:
        """Draw the value of each evaluation and the best so far, on the given matplotlib axes or new ones."""
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
    """The unknowns of an optimiser: a pytree of numbers and arrays, and the same numbers as one vector."""

    def __init__(self, start: Value) -> None:
        leaves, self.tree = flatten(start)
        leaves = list(map(to_operand, leaves))
        for leaf in leaves:
            if not is_number(leaf):
                kind = f"an array of {leaf.dtype}" if isinstance(leaf, np.ndarray) else f"a {type(leaf).__name__}"
                raise NotDifferentiable(f"the start, or a part of it, is {kind}: unknowns are numbers and their arrays")
        if any(dtype_of(leaf).kind == "c" for leaf in leaves):
            raise NotDifferentiable("the start is complex: give real and imaginary parts as unknowns of their own")
        leaves = [np.asarray(leaf, float) if dtype_of(leaf).kind in "iub" else leaf for leaf in leaves]
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.vector = np.array(joined(leaves), float)
        self.is_vector = type(start) is np.ndarray and start.ndim == 1
        if not self.vector.size:
            raise NotDifferentiable("the start has no numbers: there is nothing to optimise")

    def unflatten(self, x: Value) -> Value:
        return self.tree.unflatten(parted(x, self.shapes))

    def bounds(self, given: Value) -> Value:
        """Return bounds for SciPy. Those for a vector are SciPy's; others are like the start, with pairs for leaves."""
        listed = isinstance(given, list | tuple) and len(given) == self.vector.size
        if self.is_vector or given is None or isinstance(given, Bounds | np.ndarray) or listed:
            return given
        try:
            pairs = map(_pair, self.tree.spec.flatten_up_to(given), self.shapes)
            return Bounds(*map(np.concatenate, zip(*pairs, strict=True)))
        except (TypeError, ValueError):
            raise NotDifferentiable(
                f"the bounds {given!r} do not fit the start: give a pytree like it with a tuple (low, high) in the "
                "place of each number or array, or with a list of such tuples, one for each element"
            ) from None

    def limits(self, given: Value) -> Value:
        """Return bounds of `least_squares` for SciPy: a dictionary as in `bounds`, or a lower and an upper part.

        Each part is a number, or as many numbers as there are unknowns, or a pytree like the start.
        """
        if isinstance(given, dict):
            return self.bounds(given)
        if isinstance(given, Bounds):
            return given
        try:
            lower, upper = map(self._side, given)
        except (TypeError, ValueError):
            raise NotDifferentiable(
                f"the bounds {given!r} do not fit the start: give (lower, upper), each a number or a pytree like the "
                "start with numbers in the place of its leaves"
            ) from None
        return lower, upper

    def _side(self, given: Value) -> Value:
        plain = isinstance(given, float | int | np.generic | np.ndarray)
        if self.is_vector or plain or (isinstance(given, list | tuple) and len(given) == self.vector.size):
            return given
        leaves = zip(self.tree.spec.flatten_up_to(given), self.shapes, strict=True)
        return np.concatenate([np.ravel(np.broadcast_to(np.asarray(leaf, float), shape)) for leaf, shape in leaves])

    def of_vector(self, f: Function) -> Function:
        """Return `f` as a function of the vector, whose result is no table of pandas or xarray."""
        f = read(f)
        if self.is_vector:
            return lambda x, *args: without_labels(f(x, *args))
        return lambda x, *args: without_labels(f(self.unflatten(x), *args))


def _pair(given: Value, shape: tuple[int, ...]) -> tuple[Value, Value]:
    """Return the bounds of a leaf as two vectors. They are a tuple (low, high), or a list of such tuples."""
    low, high = given if isinstance(given, tuple) else zip(*given, strict=True)

    def vector(bound: Value, without: float) -> Value:
        filled = [without if x is None else x for x in np.ravel(np.asarray(bound, object))]
        return np.ravel(np.broadcast_to(np.reshape(np.array(filled, float), np.shape(bound)), shape))

    return vector(low, -np.inf), vector(high, np.inf)


class Timed:
    """A function that is compiled after it has run for long, if the compiled program returns the same result.

    `hasten` makes the compiled program. A derivative with only one path is first staged as NumPy code. `decided` says
    that the function is not replaced any more.
    """

    def __init__(self, f: Function, hasten: Function = compiled_program, is_derivative: bool = False) -> None:
        self.f, self.source, self.hasten = f, f, hasten
        self.stage = is_derivative and hasten is compiled_program
        self.seconds, self.compiled, self.decided = 0.0, False, False

    def __call__(self, *args: Value) -> Value:
        start = time.perf_counter()
        result = self.f(*args)
        self.seconds += time.perf_counter() - start
        if self.decided:
            return result
        if self.seconds > PATIENCE:
            self.decided = True
            self.compiled = self._replace(self.hasten(self.source), args, result)
        elif self.stage and self.seconds > STAGED:
            self.stage = False
            program = compiled_program(self.source, "numpy")
            if self._replace(program, args, result) and program.branches:
                self.f = self.source
        return result

    def _replace(self, program: Function, args: tuple[Value, ...], result: Value) -> bool:
        """Replace the function by a program if this returns the same result; return whether it does."""
        try:
            again = program(*args)
        except Exception:  # a program that runs as Python may be impossible to stage
            return False
        pairs = zip(flatten(again)[0], flatten(result)[0], strict=True)
        if not all(_like(one, other) for one, other in pairs):
            return False
        self.f = program
        return True


def _like(one: Value, other: Value) -> bool:
    if issparse(one):
        return one.nnz == other.nnz and _like(one.data, other.data)
    return np.allclose(one, other, rtol=1e-6, atol=1e-12, equal_nan=True)


class Evaluations:
    """The evaluations of the function in one run. They are counted and shown, and the best point is kept.

    `beside` are the derivatives that SciPy calls apart from the function. All are compiled if they take long.
    """

    def __init__(
        self, f: Function, args: tuple[Value, ...], progress: bool, size: Function = float, is_derivative: bool = False
    ) -> None:
        self.f = Timed(f, is_derivative=is_derivative)
        self.args, self.size = args if isinstance(args, tuple) else (args,), size
        self.further: list[Timed] = []
        self.history: list[float] = []
        self.last: Value = None
        self.best: tuple[float, Value, Value] = (np.inf, None, None)
        self.bar = _bar() if progress else None

    def timed(self, f: Function, hasten: Function = compiled_program) -> Function:
        """Return a further function of the unknowns, which is compiled too if it takes long."""
        function = Timed(f, hasten, True)
        self.further.append(function)
        return lambda *given: function(*given, *self.args)

    @property
    def compiled(self) -> bool:
        """Whether one of the functions has been compiled."""
        return any(function.compiled for function in (self.f, *self.further))

    def stay_uncompiled(self) -> None:
        """Compile no function here, for runs whose functions are compiled on the workers."""
        for function in (self.f, *self.further):
            function.decided = True

    @property
    def length(self) -> int:
        """The number of elements that the last evaluation returned."""
        return int(np.size(self.last))

    def run(self, solve: Callable[[], Value], interrupted: Callable[[float, Value, Value], Value]) -> Value:
        """Let SciPy solve; after an interrupt, return what `interrupted` makes of the best evaluation so far.

        It is given the size of the result, the point, and the result.
        """
        with self:
            try:
                return solve()
            except KeyboardInterrupt:
                if self.best[1] is None:
                    raise
                return interrupted(*self.best)

    def __call__(self, x: Value, *given: Value) -> Value:
        result = self.f(x, *given, *self.args)
        if self.last is None:
            _require_real(result)
        self.last = result
        found = result[0] if type(result) is tuple else result
        value = self.size(found)
        self.history.append(value)
        if value < self.best[0] or self.best[1] is None:
            self.best = (value, np.array(x), found)
        if self.bar is not None:
            self.bar.update(self.task, advance=1, value=f"{self.best[0]:.6g}")
        return result

    def __enter__(self) -> "Evaluations":
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task("optimising", total=None, value="")
        return self

    def __exit__(self, *_: Value) -> None:
        if self.bar is not None:
            self.bar.stop()


def _require_real(result: Value) -> None:
    """Check that the first result consists of real numbers; later results are of the same kind."""
    for leaf in flatten(result)[0]:
        kind = dtype_of(leaf).kind if isinstance(leaf, float | int | complex | np.generic | np.ndarray) else type(leaf)
        if kind not in ("f", "i", "u"):
            what = f"a {type(leaf).__name__}" if kind != "c" else "complex numbers"
            instead = "; return real and imaginary parts" if kind == "c" else ""
            raise NotDifferentiable(f"the function returns {what}, and an optimiser takes real numbers{instead}")


def _bar() -> Value:
    try:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        raise EffgradError("a progress bar needs rich: pip install 'effgrad[optimize]'") from None
    return Progress(
        SpinnerColumn(), TextColumn("{task.completed} evaluations, best {task.fields[value]}"), TimeElapsedColumn(),
        transient=True,
    )  # fmt: skip


def observe(
    evaluations: Evaluations, unknowns: Unknowns, supplied: str, solve: Callable[[], Value], size: str = "fun"
) -> Result:  # fmt: skip
    """Let SciPy solve, and return its result, or after an interrupt the best point so far.

    `size` is SciPy's name for the number that the optimiser makes small.
    """

    def interrupted(value: float, x: Value, found: Value) -> Result:
        count = len(evaluations.history)
        message = f"interrupted; x is the best point of {count} evaluations"
        return Result({"x": x, size: value, "fun": found}, success=False, status=-1, message=message, nfev=count)

    result = Result(evaluations.run(solve, interrupted))
    result.x = unknowns.unflatten(result.x)
    result.supplied = supplied + (" (compiled)" if evaluations.compiled else "")
    result.history = evaluations.history
    return result
