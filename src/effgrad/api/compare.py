"""A comparison of all modes on one program."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from effgrad.api.checks import as_input, check_scalar
from effgrad.api.counting import Counting
from effgrad.api.debug import debug_values
from effgrad.api.directional import jvp, second_order, taylor
from effgrad.api.gradient import grad
from effgrad.api.run import run
from effgrad.api.tracebacks import of_function
from effgrad.arrays.library_array import of_another_library
from effgrad.errors import NotDifferentiable
from effgrad.fast import REVERSE
from effgrad.modes.hessian import EdgePushing
from effgrad.primitives import cotangents
from effgrad.program import read
from effgrad.vocabulary import Tree, Value


@dataclass(frozen=True)
class Row:
    """The figures of one mode: directional derivative, operations performed below it, seconds, and peak bytes."""

    mode: str
    derivative: float | None
    operations: int
    seconds: float
    peak: int


@of_function
def compare(f: Callable[[Value], Value], x: Value) -> list[Row]:
    """Run `f` under every mode and print a table: derivative, operations performed, time and peak memory.

    Arguments:
        f: a function of one array or number that returns one real number.
        x: the point, a number or an array.

    The derivative is along the direction of ones, which every mode can compute. The operations are those that reach
    the handler below the mode. Time and memory are measured in runs without counting.

    Returns:
        The rows of the table, with the fields `mode`, `derivative`, `operations`, `seconds` and `peak`.

    Raises:
        EffgradError: the value of `f` under a derivative differs from NumPy's.

    >>> rows = compare(lambda x: np.sum(np.sin(x) ** 2), np.array([0.3, 0.7]))  # doctest: +ELLIPSIS
    mode                        derivative  operations         time        peak
    evaluate                                         3 ...
    >>> {row.derivative is None or round(row.derivative, 9) for row in rows} == {True, 1.550092203}
    True
    """
    if of_another_library(x):
        raise NotDifferentiable("compare measures programs over NumPy arrays: give it one of those")
    print(f"{'mode':26}{'derivative':>12}{'operations':>12}{'time':>13}{'peak':>12}")
    rows = []
    x = as_input(x)
    debug_values(f)(x)
    for mode, derivative_of in _modes(f, np.ones_like(x)).items():
        operations = run(Counting(), partial(_call, derivative_of), [(x,)], _count)
        start = time.perf_counter()
        derivative = derivative_of(x)
        seconds = time.perf_counter() - start
        tracemalloc.start()
        derivative_of(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row = Row(mode, None if mode == "evaluate" else float(derivative), operations, seconds, peak)
        rows.append(row)
        shown = "" if row.derivative is None else f"{row.derivative:.6g}"
        print(f"{mode:26}{shown:>12}{operations:>12}{seconds * 1e3:>10.3f} ms{peak / 1e3:>9.1f} kB")
    return rows


def _call(f: Callable[[Value], Value], inputs: list[Value]) -> Value:
    return f(inputs[0])


def _count(counting: Counting, _: list[Value], __: object) -> int:
    return len(counting.performed)


def _modes(f: Callable[[Value], Value], direction: Value) -> dict[str, Callable[[Value], Value]]:
    f = read(f)

    def scalar(x: Value) -> Value:
        output = f(x)
        check_scalar(output)
        return output

    def reverse(mode: str) -> Callable[[Value], Value]:
        return lambda x: np.sum(grad(f, mode=mode)(x))

    def hessian(x: Value) -> Value:
        def finish(activation: EdgePushing, shadows: list[int], output: Tree) -> Value:
            cotangent = activation.pull(output)[0][shadows[0]] if activation.owns(output) else None
            return 0.0 if cotangent is None else np.sum(cotangents.dense(cotangent))

        return run(EdgePushing(), lambda inputs: scalar(*inputs), [(x,)], finish)

    return {
        "evaluate": scalar,
        "forward": lambda x: jvp(f, (x,), (direction,))[1],
        **{mode: reverse(mode) for mode in REVERSE},
        "second_order": lambda x: second_order(f, x, direction)[1],
        "taylor": lambda x: taylor(f, [x, direction])[1],
        "hessian": hessian,
    }
