"""Explanations of what a mode does to a program: its operations, their handlers, the record, and the derivatives.

The mode itself runs, with a listener (`effgrad.api.listening`), above an evaluation that handles the operations which
the mode's clauses perform. The reverse pass shown is the code that a source transformation would have generated.
Sigal 2024, listing 4.6.
"""

import ast
import inspect
import linecache
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from effgrad.api.checks import check_scalar
from effgrad.api.explanation import Explanation, Shown, Source, Step
from effgrad.api.listening import Listener
from effgrad.api.records import plain_value, shown
from effgrad.api.results import flattened
from effgrad.api.run import run
from effgrad.api.tracebacks import of_function
from effgrad.effects.handler import observed
from effgrad.modes import READABLE, EdgePushing, Evaluate, Forward, SecondOrder, Taylor
from effgrad.modes.mode import Mode
from effgrad.primitives.complexes import conj, is_complex
from effgrad.program import read
from effgrad.vocabulary import Activation, Cotangent, Function, Shadow, Tree, Value

ORDER = 3  # the order of Taylor mode
GAP = 3  # the largest gap between shown lines of the program that is shown too, though no step is in it


class Row(NamedTuple):
    """How a mode is explained: a function that makes its handler, one from a direction to the further arguments of an
    input, and one that reads the derivatives."""

    make: Callable[[], Mode]
    beside: Callable[[Value], tuple[Value, ...]]
    read: Callable[[Value, list[Value], Value], Callable[[], dict[str, Value]]]


def _nothing(activation: object, shadows: list[Shadow], output: Tree) -> Callable[[], dict[str, Value]]:
    return dict


def _forward(*names: str) -> Function:
    """Return a function that reads the derivatives along the direction from the shadows of the outputs."""

    def read(activation: Activation, _: list[Value], output: Tree) -> Callable[[], dict[str, Value]]:
        found = {}
        leaves = flattened(output)[0]
        for place, leaf in enumerate(leaves):
            which = f" of output {place + 1}" if len(leaves) > 1 else ""
            shadow = leaf.shadow if activation.owns(leaf) else None
            parts = [shadow] if len(names) == 1 else [shadow and shadow[k] for k in range(len(names))]
            for name, part in zip(names, parts, strict=True):
                if name:
                    found[name + which] = 0.0 if part is None else part
        return lambda: found

    return read


def _reverse(activation: Activation, shadows: list[Shadow], output: Tree) -> Callable[[], dict[str, Value]]:
    check_scalar(output)
    if activation.owns(output):
        activation.seed(output, 1.0)

    def read() -> dict[str, Value]:
        pulled = enumerate(activation.cotangents(shadows), 1)
        return {f"d/dx{i}": 0.0 if part is None else part for i, part in pulled}

    return read


def _hessian(activation: EdgePushing, names: list[int], output: Tree) -> Callable[[], dict[str, Value]]:
    check_scalar(output)
    cotangents, pairs = activation.pull(output) if activation.owns(output) else ([None] * (len(names) + 1), {})
    found = {f"d/dx{i}": cotangents[name] for i, name in enumerate(names, 1)}
    for i, one in enumerate(names, 1):
        for j, other in enumerate(names[:i], 1):
            block: Any = pairs.get(one, {}).get(other)
            found[f"d2/dx{j}dx{i}"] = block.toarray() if hasattr(block, "toarray") else block
    return lambda: {name: 0.0 if part is None else part for name, part in found.items()}


MODES: dict[str, Row] = {
    "evaluate": Row(Evaluate, lambda u: (), _nothing),
    "forward": Row(Forward, lambda u: (u,), _forward("d/dt")),
    "second_order": Row(SecondOrder, lambda u: (u,), _forward("d/dt", "d2/dt2")),
    "taylor": Row(lambda: Taylor(ORDER), lambda u: ((u,),), _forward("", *[f"y{k}" for k in range(1, ORDER + 1)])),
    "hessian": Row(EdgePushing, lambda u: (), _hessian),
    **{name: Row(mode, lambda u: (), _reverse) for name, mode in READABLE.items()},
}


@of_function
def explain(
    f: Function, *args: Value, mode: str = "reverse", direction: Sequence[Value] | None = None
) -> Explanation:
    """Print what a mode does to `f(*args)`, and return it as data.

    Arguments:
        f: a function that returns one real number (for forward modes, any numbers and arrays).
        args: numbers and arrays; the printed text calls them x1, x2, ...
        mode: the name of a module of `effgrad.modes`: "evaluate", "forward", "second_order", "taylor" (to order 3),
            "hessian", or a reverse mode as for `grad`.
        direction: for forward modes, a tangent for each argument; by default, ones.

    A line shows an operation, its value, the record that the mode keeps with it (a tangent, a cell, a tape entry, a
    term, a backpropagator), the handler that takes the operation, and the operations that this handler performs. `<r>`
    is the cotangent of r, and `d2 f(a, b)` the derivative of f with respect to its second argument. Checkpoints that
    run again, and derivatives inside `f`, have lines of their own.

    Returns:
        An `Explanation`: `text()` is the printed text, `graph()` a drawing (SVG), `steps` the list of steps, and
        `data()` all of it for `json.dumps`.

    Raises:
        NotDifferentiable: an input is not floating-point, or the output is not one real number in a reverse mode or
            mode "hessian".
        ValueError: the mode is unknown.

    >>> steps = explain(lambda x: x * x * 3.0, 2.0).steps
    forward pass
      x1                               = 2            cell             by Reverse
      r1 = multiply(x1, x1)            = 4            cell             by Reverse, which performs multiply(2, 2): by Evaluate
      r2 = multiply(r1, 3)             = 12           cell             by Reverse, which performs multiply(4, 3): by Evaluate
    reverse pass
      <r2> := 1
      <r1> := <r1> + d1 multiply(4, 3) * <r2>                      now 3
      <x1> := <x1> + d1 multiply(2, 2) * <r1>                      now 6
      <x1> := <x1> + d2 multiply(2, 2) * <r1>                      now 12
    derivatives
      d/dx1 = 12
    >>> [(step.name, step.value.text, step.record) for step in steps if step.kind == "apply" and step.name]
    [('r1', '4', 'cell'), ('r2', '12', 'cell')]
    """  # noqa: E501
    explanation = explained(f, args, mode, direction)
    print(explanation.text())
    return explanation


def explained(
    f: Function, args: Sequence[Value], mode: str = "reverse", direction: Sequence[Value] | None = None
) -> Explanation:
    """Return the explanation that `explain` prints."""
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}; the modes are {', '.join(MODES)}")
    row, below, reading = MODES[mode], mode != "evaluate", read(f)
    listener = Listener(below)
    along = [np.ones_like(arg)[()] for arg in args] if direction is None else list(direction)
    inputs = [(arg, *row.beside(part)) for arg, part in zip(args, along, strict=True)]

    def program(inputs: list[Value]) -> Tree:
        return reading(*inputs)

    def outcome(activation: object, shadows: list[Shadow], output: Tree) -> tuple[list[Shown], Value]:
        return [shown(leaf) for leaf in flattened(output)[0]], row.read(activation, shadows, output)

    def above(_: Value, __: list[Value], inner: list[Value]) -> tuple[list[Shown], dict[str, Shown]]:
        given = [(x, *beside) for x, (_, *beside) in zip(inner, inputs, strict=True)]
        value, derivatives = run(row.make(), program, given, outcome)
        of = {f"d/dx{i}": arg for i, arg in enumerate(args, 1)}
        return value, {name: shown(_gradient(part, of.get(name, part))) for name, part in derivatives().items()}

    try:
        with observed(listener.activated):
            if below:
                value, derivatives = run(Evaluate(), list, [(arg,) for arg in args], above)
            else:
                value, derivatives = above(None, [], list(args))
    finally:
        listener.asking = None  # the frame refers to this one, which would be a cycle
    return Explanation(
        mode, getattr(f, "__name__", repr(f)), int(below), 0 if below else None, listener.activations, listener.steps,
        value, derivatives, _sources(f, listener.steps),
    )  # fmt: skip


def _gradient(cotangent: Cotangent, of: object) -> Value:
    """Return a cotangent as `grad` would: real for a real argument, steepest ascent for a complex one."""
    value = plain_value(cotangent)
    return conj(value) if is_complex(of) else np.real(value) if is_complex(value) else value


def _sources(f: Function, steps: list[Step]) -> list[Source]:
    """The lines of the program: those of the function `f` and of the functions that contain steps."""
    lines: dict[str, set[int]] = {}
    try:
        text, first = inspect.getsourcelines(f)
        lines[inspect.getfile(f)] = set(range(first, first + len(text)))
    except (OSError, TypeError):  # typed at a prompt, or made by other code
        pass
    for step in steps:
        if step.line is not None:
            lines.setdefault(step.line[0], set()).add(step.line[1])
    return [source for file, numbers in lines.items() for source in _parts(file, numbers)]


def _parts(file: str, numbers: set[int]) -> Iterator[Source]:
    """Iterate over lines of a file with the functions around them, in parts without gaps of more than `GAP` lines."""
    text = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell of a notebook
        tree = ast.Module([], [])
    wanted = set(numbers)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            inside = range(node.lineno, node.end_lineno + 1)
            wanted |= set(inside) if wanted.intersection(inside) else set()
    part: list[int] = []
    for number in [*sorted(wanted), math.inf]:
        if part and number > part[-1] + GAP:
            shown_lines = [linecache.getline(file, n).rstrip() for n in range(part[0], part[-1] + 1)]
            if any(shown_lines):
                yield Source(file, part[0], shown_lines)
            part = []
        part.append(int(number) if number < math.inf else 0)
