"""The public functions of forward modes: `jvp`, `second_order`, `taylor`."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.api.checks import is_floating
from effgrad.api.results import as_direction, flatten_inputs, like, unflatten
from effgrad.api.run import read_outputs, run
from effgrad.api.singular import completed, value_of
from effgrad.api.tracebacks import of_function
from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.namespace import wrap
from effgrad.arrays.value import Tracer, plain, to_operand
from effgrad.errors import NotDifferentiable
from effgrad.fast import FastForward, FastSecondOrder
from effgrad.modes.higher_order import Function, function
from effgrad.modes.mode import Mode
from effgrad.modes.taylor import Taylor
from effgrad.primitives.complexes import is_complex
from effgrad.program import read
from effgrad.trees import flatten
from effgrad.vocabulary import Params, Value


@of_function
def jvp(f: Callable[..., object], primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    """The value of `f` at `primals`, and its derivative in the direction `tangents`, by forward mode.

    Arguments:
        f: a function of pytrees, in plain NumPy.
        primals: a sequence of the arguments of `f`.
        tangents: a sequence of pytrees, each in the structure and shapes of its primal.

    Returns:
        A pair of pytrees in the structure of `f`'s output: the value, and the tangent.

    Raises:
        NotDifferentiable: the tangents do not have the structure and shapes of the primals.

    Sigal 2021, section 3.2.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (9.0, 6.0)
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise NotDifferentiable("jvp takes tuples of arguments and of their tangents: jvp(f, (x,), (t,))")
    f = read(f)
    leaves, tree = flatten_inputs(tuple(primals))
    inputs = []
    directions = tree.flatten_up_to(tuple(tangents))
    for leaf, direction in zip(map(to_operand, leaves), map(to_operand, directions), strict=True):
        leaf = _number("a primal", leaf)
        _check_shape("a tangent", _number("a tangent", direction), "primal", leaf)
        if is_complex(direction) and not is_complex(leaf):
            raise NotDifferentiable("a tangent is complex and its primal is not: pass x.astype(complex)")
        inputs.append((leaf, as_direction(direction, plain(leaf))))
    outputs = run(FastForward(), lambda inputs: f(*tree.unflatten(inputs)), inputs, read_outputs)
    values, derivatives = outputs.values, []
    for place, (value, part) in enumerate(zip(values, outputs.shadows, strict=True)):
        if type(value) is Function:
            values[place], derivative = _function_output(f, primals, tangents, place)
        else:
            derivative = like(part, value)
        derivatives.append(derivative)
    value, derivative = unflatten(outputs.tree, values), unflatten(outputs.tree, derivatives)
    value = value_of(value, f, *primals)
    return value, completed(derivative, lambda *x: jvp(f, x, tangents)[1], primals, lambda: value)


def _number(what: str, leaf: Value) -> Value:
    """Return a leaf of a point or a direction, or raise an error if it is not a number or an array."""
    if not isinstance(leaf, float | Tracer | np.ndarray | np.generic | int | complex):
        raise NotDifferentiable(f"{what} is of type {type(leaf).__name__}; numbers and arrays have derivatives")
    return leaf


def _check_shape(what: str, direction: Value, of: str, leaf: Value) -> None:
    given, wanted = shape_of(direction), shape_of(leaf)
    if given != wanted:
        raise NotDifferentiable(f"{what} has shape {given}, its {of} {wanted}")


def _function_output(
    f: Callable[..., object], primals: Sequence[Value], tangents: Sequence[Value], place: int
) -> tuple[Function, Function]:
    """Return a function that `f` returns, and its derivative, which differentiates `f` again at each call."""

    def applied(args: Sequence[Value], kwargs: Params) -> Callable[..., Any]:
        return lambda *inputs: flatten(f(*inputs))[0][place](*args, **kwargs)

    return (
        function(lambda *args, **kwargs: applied(args, kwargs)(*primals)),
        function(lambda *args, **kwargs: jvp(applied(args, kwargs), primals, tangents)[1]),
    )


@of_function
def second_order(f: Callable[..., object], x: Value, direction: Value = None) -> tuple[Value, Value, Value]:
    """The value of `f` at `x`, and its first and second derivative along a direction, in one pass.

    Arguments:
        f: a function of one pytree.
        x: the point, a pytree.
        direction: a pytree like `x`; by default 1 if `x` is a single number.

    Returns:
        A triple of pytrees in the structure of `f`'s output: f(x), d/dt f(x + t u) and d2/dt2 f(x + t u) at t = 0.

    Raises:
        NotDifferentiable: `x` is not a number and no direction is given, or the direction does not match `x`.

    Sigal 2024, section 5.1.

    >>> second_order(lambda x: x**3, 2.0)
    (8.0, 12.0, 12.0)
    """
    if direction is None:
        if ndim_of(x) or not is_floating(x):
            raise NotDifferentiable("second_order at an array or a pytree needs a direction: second_order(f, x, u)")
        direction = 1.0
    return _along(FastSecondOrder(), f, x, lambda leaf, u: (leaf, u), direction, lambda shadow: shadow, 2)


@of_function
def taylor(f: Callable[..., object], coefficients: Sequence[Value], order: int | None = None) -> list[Value]:
    """The power series of `f(x(t))` up to an order, from the coefficients of x(t), in one pass.

    Arguments:
        f: a function of one pytree.
        coefficients: pytrees x0, x1, ... with x(t) = x0 + x1 t + ...; further coefficients are zero.
        order: the order of the last coefficient; by default that of the last one given.

    Returns:
        A list of the coefficients y0, ..., y_order, pytrees in the structure of `f`'s output; k! y_k is the k-th
        derivative in t.

    Raises:
        NotDifferentiable: the coefficients differ in structure or shape, or the point is not floating-point.
        ValueError: the order is negative.

    Griewank and Walther 2008, chapter 13.

    >>> list(map(float, taylor(np.exp, [0.0, 1.0], order=4)))
    [1.0, 1.0, 0.5, 0.16666666666666666, 0.041666666666666664]
    """
    if not isinstance(coefficients, tuple | list) or not coefficients:
        raise NotDifferentiable(
            "taylor takes a list of coefficients, the first of which is the point: taylor(f, [x0, x1])"
        )
    last = len(coefficients) - 1 if order is None else operator.index(order)
    if last < 0:
        raise ValueError(f"order is {order}; the order of a series is 0 or more")
    first, *others = coefficients

    def derivatives(series: Value) -> list[Value]:
        return [series[k] for k in range(1, last + 1)]

    return list(_along(Taylor(last), f, first, lambda leaf, *others: (leaf, others), *others, derivatives, last))


def _along(mode: Mode, f: Callable[..., object], x: Value, make: object, *rest: Value) -> tuple[Value, ...]:
    """Run `f` under a forward mode of higher order; return its value and the derivatives of the output.

    `rest` has the directions, the function that reads a shadow's derivatives, and their number.
    """
    f = read(f)
    value, *parts = _along_at(mode, f, x, make, *rest)
    value = value_of(value, f, x)
    orders = range(1, rest[-1] + 1) or (1,)
    return value, *completed(parts, lambda y: _along_at(mode, f, y, make, *rest)[1:], (x,), lambda: value, orders)


def _along_at(mode: Mode, f: Callable[..., object], x: Value, make: Value, *rest: Value) -> tuple[Value, ...]:
    *directions, derivatives, count = rest
    (*leaves,), tree = flatten_inputs((x,))
    moved = [
        [
            as_direction(_number("a direction", wrap(part)), plain(_number("an input", leaf)))
            for part, leaf in zip(tree.flatten_up_to((u,)), leaves, strict=True)
        ]
        for u in directions
    ]
    for leaf, *parts in zip(leaves, *moved, strict=True):
        for part in parts:
            _check_shape("a direction", part, "input", leaf)
    inputs = [make(leaf, *parts) for leaf, *parts in zip(leaves, *moved, strict=True)]
    outputs = run(mode, lambda inputs: f(*tree.unflatten(inputs)), inputs, read_outputs)
    parts = [
        [like(part, value) for part in ([None] * count if shadow is None else derivatives(shadow))]
        for shadow, value in zip(outputs.shadows, outputs.values, strict=True)
    ]
    return (unflatten(outputs.tree, outputs.values), *(unflatten(outputs.tree, p) for p in zip(*parts, strict=True)))
