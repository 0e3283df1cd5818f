"""Batches of a program (`vmap`), and its derivative at a point as a linear map (`linearize`)."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import optree

from effgrad import program
from effgrad.api import vjp
from effgrad.api.checks import is_number
from effgrad.api.run import run_batched
from effgrad.api.singular import undefined
from effgrad.api.tracebacks import derivative, of_function
from effgrad.arrays.layout import address_of, is_dense, memory_like, ndim_of, shape_of
from effgrad.arrays.marks import marking, refuse_marked
from effgrad.arrays.namespace import unwrap, wrap
from effgrad.arrays.reach import np
from effgrad.arrays.value import Smooth, Tracer, constant, outline, plain, released, to_operand
from effgrad.effects import handled
from effgrad.errors import NotBatched
from effgrad.modes.batched import Batch
from effgrad.trees import DISCRETE, Structure, flatten
from effgrad.vocabulary import Value

P = ParamSpec("P")
# At most this many members are run alone because their derivatives are NaN. Each takes as long as a large batch.
MOST_ALONE = 100
# An axis, None for an argument that all members share, or a container of these.
Axes = Any


@of_function
def vmap(
    f: Callable[P, Value], in_axes: Axes = 0, out_axes: Axes = 0, *, axis_size: int | None = None
) -> Callable[P, Value]:
    """Return a function that applies `f` to every member of a batch, in one run.

    The program of `f` is written for one member. It runs once, on values that have the shape of one member and stand
    for all members; each operation is carried out for the whole batch. Batches nest, and combine with derivatives and
    compiled programs in any order. For example, `vmap(grad(loss), in_axes=(None, 0))` computes a gradient per sample.
    If a derivative of a member is NaN, `f` runs for it alone and finds the limit if there is one (for 100 members at
    most).

    Arguments:
        f: a function of pytrees of numbers and arrays, in plain NumPy.
        in_axes: the axis of each argument that counts the members; None for an argument that all members share. Give
            one number (or None) for all arguments, or a sequence with an item for each. An item may be a pytree in the
            argument's structure.
        out_axes: the axis of each result that counts the members, in the same form; None for a result that all members
            share.
        axis_size: the number of members; needed only if `in_axes` names no axis at all.

    Keyword arguments are batched along their axis 0.

    Returns:
        A function of the same arguments; each of its results has one more axis, at the position in `out_axes`.

    Raises:
        NotBatched: the arguments have different numbers of members, or lack the axis. Or the program uses a value that
            differs among the members in an `if`, an index or a count, or makes arrays whose shapes would differ.

    The names and the order of the arguments are those of `jax.vmap`.

    >>> vmap(np.dot)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([3., 4.])
    >>> vmap(grad(lambda w, x: (w @ x) ** 2), in_axes=(None, 0))(np.array([1.0, 2.0]), np.eye(2))
    array([[2., 0.],
           [0., 4.]])
    """

    read = program.read(f)

    @derivative(vmap, f, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size)
    def batched(*args: P.args, **kwargs: P.kwargs) -> Value:
        leaves, tree = flatten((args, kwargs))
        leaves = [_checked(wrap(to_operand(leaf))) for leaf in leaves]
        axes = _argument_axes(in_axes, args, kwargs)

        def run(batch: Batch) -> tuple[list[Value], Structure, list[int | None], bool]:
            inputs = [
                leaf if axis is None else batch.variable(_axis_first(leaf, axis))
                for leaf, axis in zip(leaves, axes, strict=True)
            ]
            given, named = tree.unflatten(inputs)
            outputs, output_tree = flatten(read(*given, **named))
            places = _prefix(out_axes, output_tree.unflatten([0.0] * len(outputs)), "out_axes")
            results = [_result(batch, o, axis) for o, axis in zip(outputs, places, strict=True)]
            return results, output_tree, places, batch.differentiated

        results, output_tree, places, differentiated = run_batched(_count(leaves, axes, axis_size), run)
        if handled(Smooth):
            return output_tree.unflatten(results)

        def alone(place: int) -> list[Value]:
            rows = [leaf if axis is None else _rows(leaf, axis)[place] for leaf, axis in zip(leaves, axes, strict=True)]
            given, named = tree.unflatten(rows)
            return flatten(f(*given, **named))[0]

        if differentiated and any(map(undefined, results)):
            _complete(results, places, alone)
        return output_tree.unflatten([unwrap(r) for r in results])

    return batched


def _checked(leaf: Value) -> Value:
    if not is_number(leaf):
        raise NotBatched(f"an argument is of type {type(leaf).__name__}: only numbers and arrays have a batch")
    return leaf


def _argument_axes(in_axes: Axes, args: Sequence[Value], kwargs: dict[str, Value]) -> list[int | None]:
    """Return the axis of each leaf of the arguments that counts the members."""
    if in_axes is None or isinstance(in_axes, int):
        in_axes = (in_axes,) * len(args)
    if not isinstance(in_axes, tuple | list) or len(in_axes) != len(args):
        raise NotBatched(
            f"in_axes is {in_axes!r} for {len(args)} positional arguments; give one axis for all, or a tuple of one "
            "(or None) for each"
        )
    axes: list[int | None] = []
    for own, arg in zip(in_axes, args, strict=True):
        if type(arg) not in DISCRETE:
            axes += _prefix(own, arg, "in_axes")
        elif own is not None:
            raise NotBatched(f"an argument is {arg!r}, which has no axis {own!r}; give None in its place in in_axes")
    return axes + [0] * len(flatten(kwargs)[0])


def _prefix(axes: Axes, tree: Value, name: str) -> list[int | None]:
    """Return the axis of each leaf of a pytree, from axes given for the whole pytree or for its parts."""
    leaves, structure = flatten(tree)
    if axes is None or isinstance(axes, int | np.integer):
        return [axes if axes is None else operator.index(axes)] * len(leaves)
    try:
        like = structure.unflatten([_LEAF] * len(leaves))
        spread = optree.broadcast_prefix(axes, like, none_is_leaf=True)
    except (ValueError, TypeError) as error:
        raise NotBatched(f"{name} is {axes!r}, whose structure does not fit: {error}") from None
    # An integer or a string in a container is part of the structure and not a leaf.
    parts = zip(spread, optree.tree_leaves(like, none_is_leaf=True), strict=True)
    return [axis for axis, part in parts if part is _LEAF]


_LEAF = object()


def _count(leaves: Sequence[Value], axes: Sequence[int | None], size: int | None) -> int:
    """Return the number of members, which must be the same for all arguments."""
    counts: dict[int, str] = {} if size is None else {operator.index(size): "axis_size"}
    for place, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        shape = shape_of(leaf)
        if not -len(shape) <= axis < len(shape):
            raise NotBatched(
                f"leaf {place} of the arguments has shape {shape} and no axis {axis} for the members of the batch; "
                "give None in its place in in_axes if all members share it"
            )
        counts.setdefault(shape[axis], f"leaf {place} of shape {shape} along axis {axis}")
    if len(counts) > 1:
        said = ", ".join(f"{n} members in {where}" for n, where in counts.items())
        raise NotBatched(f"the arguments have different numbers of members: {said}")
    if not counts:
        raise NotBatched("in_axes names no axis, so the number of members is not known: give axis_size")
    return next(iter(counts))


def _axis_first(leaf: Value, axis: int) -> Value:
    """Return an argument with the batch axis first: a copy, unless it is traced, safe from later writes.

    The members lie in memory one after the other, each with its axes in the same order as in the argument, and with
    gaps where it has some there: on that depends whether NumPy takes what is made of a member for a Fortran array.
    """
    if isinstance(leaf, Tracer):
        return _one_after_another(np.moveaxis(constant(leaf), axis, 0))
    if marking:
        refuse_marked(leaf)
    moved = np.moveaxis(leaf, axis, 0)
    if moved.ndim == 1 or not moved.size:
        return np.ascontiguousarray(moved)
    member = memory_like(moved[0])
    low, high = np.lib.array_utils.byte_bounds(member)
    start = address_of(member) - low
    memory = np.empty(len(moved) * (high - low), np.uint8)
    members: Value = np.ndarray(moved.shape, moved.dtype, memory, start, (high - low, *member.strides))
    members[...] = moved
    return members


def _one_after_another(members: Value) -> Value:
    """Return a traced batch whose members lie in memory one after the other: a copy if they do not."""
    strides: Value = np.abs(outline(members).strides)
    if len(members) == 1 or strides.max() == strides[0]:
        return members
    order = [0, *sorted(range(1, members.ndim), key=lambda k: -strides[k])]
    laid = np.transpose(members, order)
    if is_dense(outline(members)[0]):
        return np.transpose(laid.copy(), np.argsort(order))
    with_gaps = np.pad(laid, [(0, 0), *[(0, 1)] * (members.ndim - 1)])
    return np.transpose(with_gaps[tuple(map(slice, laid.shape))], np.argsort(order))


def _rows(array: Value, axis: int) -> Value:
    return np.moveaxis(array, axis, 0)


def _complete(results: list[Value], axes: Sequence[int | None], alone: Callable[[int], list[Value]]) -> None:
    """Put the results of a member alone in place of NaN: a derivative has its limit there, which no batch computes."""
    rows = {}
    for k, axis in enumerate(axes):
        if axis is not None and undefined(results[k]):
            results[k] = results[k].copy()
            rows[k] = _rows(results[k], axis)
    broken = sorted({int(place) for row in rows.values() for place in np.nonzero(np.isnan(row))[0]})
    for place in broken[:MOST_ALONE]:
        found = alone(place)
        for k, row in rows.items():
            row[place] = np.where(np.isnan(row[place]), found[k], row[place])


def _result(batch: Batch, output: Value, axis: int | None) -> Value:
    value = released(batch.primal(wrap(output)))
    if not is_number(value):
        raise NotBatched(f"an output is a {type(output).__name__}: only numbers and arrays of them have a batch")
    if axis is None:
        if batch.owns(output):
            raise NotBatched("out_axes is None for an output that differs among the members; name an axis for it")
        return value
    if not batch.owns(output):
        value = np.broadcast_to(value, (batch.count, *shape_of(value))).copy()
    if not -ndim_of(value) <= axis < ndim_of(value):
        raise NotBatched(f"out_axes names axis {axis} of an output of {ndim_of(value)} axes, with the batch's")
    return np.moveaxis(value, 0, axis) if axis else value


class LinearMap:
    """The derivative of a function at a point, as a linear map that is applied without running the function again.

    `linear(*tangents)` returns the tangent of the result for tangents of the arguments. `linear.transpose(cotangent)`
    returns a tuple of cotangents of the arguments for a cotangent of the result.
    """

    def __init__(self, push: Callable[..., Value], transpose: Callable[[Value], tuple[Value, ...]]) -> None:
        self._push, self.transpose = push, transpose

    def __call__(self, *tangents: Value) -> Value:
        return self._push(tangents)[0]


@of_function
def linearize(f: Callable[..., Value], *primals: Value) -> tuple[Value, LinearMap]:
    """Return the value of `f` at `primals`, and its derivative there as a linear map.

    `f` runs once. The map may be applied any number of times, forward along tangents and, by its `transpose`, back from
    cotangents. It keeps the record of a reverse pass of `f` in memory. The name and the order of the arguments are
    JAX's.

    Arguments:
        f: a function of pytrees of floats and arrays.
        primals: the arguments of `f`. The map takes a tangent for each of them, of the same structure and shapes.

    Returns:
        A pair of the value of `f` and a `LinearMap`: called with a tangent for each primal it returns that of the
        output, and its `transpose`, called with a cotangent of the output, returns a tuple of those of the primals.

    Raises:
        NotDifferentiable: arguments, tangents or cotangents as for `vjp`.

    Radul, Paszke, Frostig, Johnson and Maclaurin, You only linearize once (2023).

    >>> value, linear = linearize(lambda x: x**3, 2.0)
    >>> value, linear(1.0), linear.transpose(1.0)
    (8.0, 12.0, (12.0,))
    """
    value, pullback = vjp(f, *primals)
    # The pullback is linear, so the pullback of the pullback, taken at any point, is the map forward.
    leaves, tree = flatten(value)
    zeros = [
        np.zeros(np.shape(inner), np.result_type(inner, 0.0))[()] if hasattr(inner, "dtype") else 0.0
        for inner in map(plain, leaves)
    ]
    return value, LinearMap(vjp(pullback, tree.unflatten(zeros))[1], pullback)
