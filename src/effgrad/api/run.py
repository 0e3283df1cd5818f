"""The run of a function under a mode: the one place that enters a mode."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from effgrad.api.checks import as_input, check_outputs
from effgrad.api.results import flattened
from effgrad.arrays.common_memory import common_places, together
from effgrad.arrays.handle import ArrayHandle
from effgrad.arrays.layout import exact_duplicate
from effgrad.arrays.value import Tracer, constant, released
from effgrad.effects.confined import run_confined
from effgrad.modes.batched import Batch
from effgrad.modes.higher_order import Function
from effgrad.modes.mode import Mode
from effgrad.program.user_code import run_handled
from effgrad.trees import Structure
from effgrad.vocabulary import Activation, Shadow, Tree, Value

Result = TypeVar("Result")


def run(
    mode: Mode,
    f: Callable[[list[Value]], object],
    inputs: Iterable[tuple[Value, ...]],
    finish: Callable[[Value, list[Value], Value], Result],
) -> Result:
    """Run a function under a mode.

    Arguments:
        mode: the handler; the function runs under an activation of it.
        f: the program, a function of a list of values.
        inputs: for each value its primal, followed by the mode's further arguments (a tangent, coefficients).
        finish: reads the result while the activation is alive; its arguments are the activation, the shadows of the
            inputs and the output of `f`.

    Returns what `finish` returns. Raises `NotDifferentiable` if a primal is not of floating point.
    """
    return run_confined(_run, mode, f, inputs, finish)


def _run(
    mode: Mode,
    f: Callable[[list[Value]], object],
    inputs: Iterable[tuple[Value, ...]],
    finish: Callable[[object, list[Value], object], Result],
) -> Result:
    def program(activation: Activation) -> Result:
        variables = [activation.variable(as_input(primal), *beside) for primal, *beside in inputs]
        # Read the shadows before the program runs: an input that the program writes to has another shadow later.
        shadows = [variable.shadow for variable in variables]
        return finish(activation, shadows, f(variables))

    return run_handled(mode, program)


def run_batched(count: int, program: Callable[[Batch], Result]) -> Result:
    """Return the result of a program that is called with an activation of batched evaluation for `count` members."""
    return run_confined(run_handled, Batch(count), program)


class Outputs(NamedTuple):
    """The leaves of a program's output: their values outside the derivative, and their shadows (None for constants)."""

    tree: Structure
    values: list[Value]
    shadows: list[Shadow]


def read_outputs(activation: Mode, _: list[Value], output: Tree) -> Outputs:
    """Return the outputs of a program, checked to be numbers, arrays or functions."""
    leaves, tree = flattened(output)
    check_outputs([leaf for leaf in leaves if type(leaf) is not Function])
    shadows = [leaf.shadow if activation.owns(leaf) else None for leaf in leaves]
    tree.leaves = outside(activation, leaves)  # what the program made need not live until the derivative ends
    return Outputs(tree, tree.leaves, shadows)


def outside(activation: Mode, leaves: Sequence[Value]) -> list[Value]:
    """Return results of a program for the code around the derivative, which may write to them.

    Those with values of the derivative in their memory are copied, and others are themselves.
    """
    around = [_around(activation, leaf) for leaf in leaves]
    own = [leaf if it is None else None for leaf, it in zip(leaves, around, strict=True)]
    pairs = zip(around, own, strict=True)
    values = [it if mine is None else _copied(released(activation.primal(mine))) for it, mine in pairs]
    return together(values, common_places(own))


def _around(activation: Mode, leaf: Value) -> Value:
    """Return the object that a result is in the code around a derivative; None for a value of the derivative."""
    handle: Value = getattr(leaf, "handle", None) if isinstance(leaf, Tracer) else None
    if activation.owns(leaf) or (handle is not None and not handle.storage.is_around(activation)):
        return None
    return handle.array if type(handle) is ArrayHandle else released(leaf)


def _copied(value: Value) -> Value:
    return exact_duplicate(value) if type(value) is np.ndarray else constant(value)
