"""All modes on one program, side by side."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from effgrad.arrays.namespace import of_another_library
from effgrad.arrays.value import KINDS
from effgrad.errors import NotDifferentiable
from effgrad.modes.ends import check_scalar, entered
from effgrad.modes.explain import Counting
from effgrad.modes.hessian import EdgePushing
from effgrad.primitives import cotangents
from effgrad.program.interception import intercepted


@dataclass(frozen=True)
class Row:
    """One mode: its directional derivative, the operations it performs below, seconds, and peak bytes."""

    mode: str
    derivative: float | None
    operations: int
    seconds: float
    peak: int


def compare(f: Callable[[Any], Any], x: Any) -> list[Row]:
    """Run `f` under every mode and print a table: derivative, operations performed, time and peak memory.

    Arguments:
        f: a function of one array or number that returns one real number.
        x: where.

    The derivative is along the direction of ones, which every mode has. Operations are those that reach the handler
    below; time and memory are of one run without counting. Returns the rows.

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
    x = entered(x)
    for mode, run in _modes(f, np.ones_like(x)).items():
        with intercepted(), Counting() as counting:
            run(counting.variable(x))
            operations = len(counting.performed)
        start = time.perf_counter()
        derivative = run(x)
        seconds = time.perf_counter() - start
        tracemalloc.start()
        run(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row = Row(mode, None if mode == "evaluate" else float(derivative), operations, seconds, peak)
        rows.append(row)
        shown = "" if row.derivative is None else f"{row.derivative:.6g}"
        print(f"{mode:26}{shown:>12}{operations:>12}{seconds * 1e3:>10.3f} ms{peak / 1e3:>9.1f} kB")
    return rows


def _modes(f: Callable[[Any], Any], direction: Any) -> dict[str, Callable[[Any], Any]]:
    from effgrad import api
    from effgrad.modes import REVERSE

    def scalar(x: Any) -> Any:
        output = f(x)
        check_scalar(output)
        return output

    def reverse(mode: str) -> Callable[[Any], Any]:
        return lambda x: np.sum(api.grad(f, mode=mode)(x))

    def hessian(x: Any) -> Any:
        with intercepted(), EdgePushing() as activation:
            variable = activation.variable(x)
            name, output = variable.shadow, scalar(variable)
            cotangent = activation.pull(output)[0][name] if type(output) in KINDS else None
        return 0.0 if cotangent is None else np.sum(cotangents.dense(cotangent))

    return {
        "evaluate": scalar,
        "forward": lambda x: api.jvp(f, (x,), (direction,))[1],
        **{mode: reverse(mode) for mode in REVERSE},
        "second_order": lambda x: api.second_order(f, x, direction)[1],
        "taylor": lambda x: api.taylor(f, [x, direction])[1],
        "hessian": hessian,
    }
