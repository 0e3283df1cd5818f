"""The public functions for Jacobians and Hessians: `jacobian`, `hessian`, `hvp`."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np
import scipy

from effgrad.api.checks import argument_numbers, check_holomorphic, check_scalar, split_arguments
from effgrad.api.directional import jvp
from effgrad.api.gradient import grad, record_pullback
from effgrad.api.results import (
    directions,
    flatten_inputs,
    flattened,
    is_real_array,
    joined,
    like,
    unflatten,
)
from effgrad.api.run import run, run_batched
from effgrad.api.singular import completed
from effgrad.api.tracebacks import derivative, of_function
from effgrad.arrays.layout import shape_of
from effgrad.arrays.library_array import LibraryArray, of_another_library
from effgrad.arrays.namespace import unwrap, wrap
from effgrad.arrays.value import Smooth, Tracer, plain
from effgrad.effects import handled
from effgrad.errors import NotDifferentiable
from effgrad.modes.batched import Batch
from effgrad.modes.hessian import EdgePushing
from effgrad.primitives.complexes import is_complex
from effgrad.program import read
from effgrad.trees import Structure, flatten
from effgrad.vocabulary import Function, Option, Tangent, Tree, Value

P = ParamSpec("P")


def jacobian(f: Callable[P, object], argnums: int | Sequence[int] = 0, mode: str | None = None) -> Callable[P, Value]:
    """The Jacobian of a function of pytrees, with a block of output shape + input shape for each pair of leaves.

    `mode` is "forward" (a run for every 32 input elements), "reverse" (a reverse pass for every 32 output elements), or
    None for the cheaper of the two by the number of elements. Inside another derivative, and for values other than
    floats and real NumPy arrays, each element takes a pass of its own.

    Returns a function of the same arguments. Its result has the structure of the output, with the structure of the
    differentiated argument (with a sequence for `argnums`, a tuple of them) in place of each leaf. With respect to a
    complex argument the function has to be holomorphic. Raises `NotDifferentiable` as `grad` does for inputs, and
    `ValueError` for an unknown mode.

    >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"mode is {mode!r}; choose 'forward', 'reverse' or None")
    program, numbers = read(f), argument_numbers(argnums)

    @derivative(jacobian, f, argnums=argnums, mode=mode)
    def matrix(*args: P.args, **kwargs: P.kwargs) -> Value:
        chosen, rebuild = split_arguments(args, numbers)
        blocks = assembled(*args, **kwargs)
        return completed(blocks, lambda *x: assembled(*rebuild(x), **kwargs), chosen, lambda: program(*args, **kwargs))

    def assembled(*args: Value, **kwargs: Option) -> Value:
        chosen, rebuild = split_arguments(args, numbers)
        leaves, tree = flatten_inputs(chosen)
        output_tree, blocks = _blocks(lambda *inputs: program(*rebuild(inputs), **kwargs), chosen, leaves, tree, mode)
        parts = [unflatten(tree, row) for row in blocks]
        return output_tree.unflatten([p if isinstance(numbers, list) else p[0] for p in parts])

    return matrix


Blocks = tuple[Structure, list[list[Any]]]


def _blocks(f: Function, primals: tuple[Value, ...], leaves: list[Value], tree: Structure, mode: str | None) -> Blocks:
    """Return the structure of the output of `f`, and the Jacobian as a row of blocks for each output leaf."""
    at_once = bool(leaves) and not handled(Smooth) and _are_real(leaves)
    if mode == "forward" and at_once:
        return _columns(f, leaves, tree)
    pullback: Any = None
    if mode == "forward":  # avoids a record of the whole program, which may be why forward mode was chosen
        value = jvp(f, primals, tree.unflatten([like(None, leaf) for leaf in leaves]))[0]
    else:
        value, pullback = record_pullback(f, primals, "taped")
    outputs, output_tree = flattened(value)
    wide = _elements(leaves) < _elements(outputs)
    if at_once and mode is None and wide:
        return _columns(f, leaves, tree)
    if mode == "forward" or (mode is None and wide) or any(map(is_complex, leaves)):
        return output_tree, _column_by_column(f, primals, leaves, tree, outputs)
    if outputs and at_once and _are_real(outputs):
        return output_tree, _rows(pullback, outputs, output_tree, leaves)
    return output_tree, _row_by_row(pullback, outputs, output_tree, leaves)


def _are_real(values: list[Value]) -> bool:
    """Return whether values are floats and real arrays."""
    return all(type(x) is float or is_real_array(x) for x in values)


def _column_by_column(
    f: Function, primals: tuple[Value, ...], leaves: list[Value], tree: Structure, outputs: list[Value]
) -> list[list[Value]]:
    """Return the blocks of a Jacobian, by one run of forward mode for each element of the inputs."""
    columns = [
        [_column(f, primals, tree, direction, is_complex(leaves[k])) for direction in directions(leaves, k)]
        for k in range(len(leaves))
    ]
    return [
        [joined([c[j] for c in columns[k]], -1, shape_of(y) + shape_of(x), x) for k, x in enumerate(leaves)]
        for j, y in enumerate(outputs)
    ]


def _row_by_row(pullback: Function, outputs: list[Value], tree: Structure, leaves: list[Value]) -> list[list[Value]]:
    """Return the blocks of a Jacobian, by one pull for each element of the outputs."""
    rows = [
        [_row(pullback, tree, seed, is_complex(outputs[j])) for seed in directions(outputs, j)]
        for j in range(len(outputs))
    ]
    return [
        [joined([r[k] for r in rows[j]], 0, shape_of(y) + shape_of(x), x) for k, x in enumerate(leaves)]
        for j, y in enumerate(outputs)
    ]


def _elements(values: list[Value]) -> int:
    return sum(math.prod(shape_of(value)) for value in values)


# The number of columns of a Jacobian computed at once. Each column costs the memory of a tangent for every value.
WIDTH = 32


def _columns(f: Function, leaves: list[Value], tree: Structure) -> Blocks:
    """Return the result of `_blocks`, by batched forward mode."""
    values: list[Value] = []

    def pushed(directions: list[Value]) -> list[Value]:
        value, tangent = jvp(f, tree.unflatten(leaves), tree.unflatten(directions))
        values[:] = flatten(value)
        return flatten(tangent)[0]

    rows, ends = _along_each(leaves, pushed), np.cumsum([np.size(leaf) for leaf in leaves]).tolist()
    outputs, output_tree = values
    return output_tree, [
        [_block(part[end - np.size(leaf) : end], value, leaf) for leaf, end in zip(leaves, ends, strict=True)]
        for part, value in zip(rows, outputs, strict=True)
    ]


def _rows(pullback: Value, outputs: list[Value], output_tree: Structure, leaves: list[Value]) -> list[list[Value]]:
    """Return the rows of blocks of a Jacobian, by batched reverse passes."""
    columns = _along_each(outputs, lambda seeds: flatten(pullback(output_tree.unflatten(seeds)))[0])
    ends = np.cumsum([np.size(output) for output in outputs]).tolist()
    return [
        [_row_block(part[end - np.size(out) : end], out, leaf) for part, leaf in zip(columns, leaves, strict=True)]
        for out, end in zip(outputs, ends, strict=True)
    ]


def _row_block(rows: Value, output: Tree, leaf: Value) -> Value:
    block = np.reshape(rows, np.shape(output) + np.shape(leaf))
    return np.array(block, np.result_type(leaf)) if block.ndim else leaf.__class__(block[()])


def _along_each(leaves: list[Value], derivative: Callable[[list[Value]], list[Value]]) -> list[Value]:
    """Apply a linear map to each unit vector of some leaves; the results' first axis counts the unit vectors."""
    sizes = [np.size(leaf) for leaf in leaves]
    ends = np.cumsum(sizes).tolist()
    strips: list[list[Value]] = []
    for start in range(0, max(ends[-1], 1), WIDTH):
        numbers = np.arange(start, min(start + WIDTH, ends[-1]))
        basis = [
            np.equal(numbers[:, None] - (end - size), np.arange(size)).reshape(len(numbers), *np.shape(leaf))
            for leaf, size, end in zip(leaves, sizes, ends, strict=True)
        ]
        basis = [part.astype(np.result_type(leaf)) for part, leaf in zip(basis, leaves, strict=True)]

        def strip(batch: Batch, basis: list[Value] = basis) -> list[Value]:
            return batch.results(derivative([batch.variable(part) for part in basis]))

        strips.append(run_batched(len(numbers), strip))
    return [np.concatenate(parts) for parts in zip(*strips, strict=True)]


def _block(rows: Value, value: Value, leaf: Value) -> Value:
    """Return the block for one output and one input leaf, from the derivatives along the leaf's elements."""
    if not np.shape(leaf):
        return like(rows[0], value)
    if is_complex(rows) and not is_complex(value):
        rows = rows.real
    dtype = np.result_type(plain(value) if len(rows) else leaf)
    columns, shape = np.moveaxis(rows, 0, -1), np.shape(value) + np.shape(leaf)
    if type(columns) is LibraryArray:  # the program uses arrays of another library from its closure
        return unwrap(np.reshape(columns, shape))
    return np.array(columns, dtype, order="C").reshape(shape)


def _column(
    f: Function, primals: tuple[Value, ...], tree: Structure, direction: list[Value], holomorphic: bool
) -> list[Value]:
    """The derivative of every output leaf along one input element."""
    column = flatten(jvp(f, primals, tree.unflatten(direction))[1])[0]
    if holomorphic:
        turned = flatten(jvp(f, primals, tree.unflatten([d * 1j for d in direction]))[1])[0]
        check_holomorphic(column, turned)
    return column


def _row(pullback: Value, tree: Structure, seed: list[Value], complex_output: bool) -> list[Value]:
    """The derivatives of one output element; for a complex one, a second pass gives the imaginary part."""
    row = flatten(pullback(tree.unflatten(seed)))[0]
    if complex_output:
        turned = flatten(pullback(tree.unflatten([s * 1j for s in seed])))[0]
        row = [wrap(a) - 1j * wrap(b) for a, b in zip(row, turned, strict=True)]
    return row


@of_function
def hvp(f: Function, x: Value, v: Value, *args: Value, **kwargs: Option) -> Value:
    """The Hessian of `f(x, *args, **kwargs)` in `x` times `v`, by forward over reverse mode, at the cost of a few runs.

    Arguments:
        f: a function that returns one real number, in plain NumPy.
        x: the point, a pytree of floats and arrays.
        v: the direction, a pytree in the structure and shapes of `x`.
        args: further arguments of `f`, held fixed.
        kwargs: keyword arguments of `f`, held fixed.

    Returns:
        The product, a pytree like `x`.

    Raises:
        NotDifferentiable: `f` or `x` is rejected as by `grad`, or `v` does not match `x`.

    Pearlmutter, Fast exact multiplication by the Hessian (1994).

    >>> hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    return jvp(lambda x: grad(f)(x, *args, **kwargs), (x,), (v,))[1]


def hessian(
    f: Callable[P, object], argnums: int | Sequence[int] = 0, mode: str | None = None, sparse: bool = False
) -> Callable[P, Value]:
    """The Hessian of a scalar function.

    Arguments:
        f: a function that returns one real number.
        argnums: as for `grad`.
        mode: None for forward over reverse mode, with a run for every 32 input elements and the structure of
            `jacobian(grad(f))`; or "hessian" for edge pushing in one reverse pass, which needs one array (or number)
            as its input and pays off if the Hessian is sparse.
        sparse: return a SciPy sparse array of shape (n, n), where n is the size of the input; implies mode "hessian".

    Raises `NotDifferentiable` as `grad` does. Sigal 2024, section 5.1; Gower and Mello 2012.

    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    >>> hessian(lambda x: np.sum(x[1:] * x[:-1]), sparse=True)(np.ones(1000)).nnz
    1998
    """
    if mode not in (None, "hessian"):
        raise ValueError(f"mode is {mode!r}; choose 'hessian', or 'star' or 'acyclic' with sparse=True, or None")
    if mode is None and not sparse:
        return derivative(hessian, f, argnums=argnums)(jacobian(grad(f, argnums), argnums, mode="forward"))
    program, numbers = read(f), argument_numbers(argnums)
    if isinstance(numbers, list):
        raise ValueError("edge pushing takes the Hessian with respect to one argument: give argnums as one number")

    @derivative(hessian, f, argnums=argnums, mode=mode, sparse=sparse)
    def pushed(*args: P.args, **kwargs: P.kwargs) -> Tangent:
        (x,), rebuild = split_arguments(args, numbers)
        if isinstance(x, list | tuple | dict):
            raise NotDifferentiable(
                f"edge pushing takes the Hessian with respect to an array or a number, not a {type(x).__name__}: "
                "pass an array, or leave out mode= and sparse="
            )
        if sparse and of_another_library(x):
            raise NotDifferentiable(
                "a sparse Hessian is an array of SciPy's, for NumPy's arrays: leave out sparse=True"
            )

        def hessian_at(x: Value, sparse: bool = False) -> Value:
            return _hessian_of(
                _push_edges(lambda value: program(*rebuild([value]), **kwargs), x), plain(wrap(x)), sparse
            )

        matrix = hessian_at(x, sparse)
        if sparse and not np.isnan(matrix.data).any():
            return matrix
        dense = matrix.toarray().reshape(np.shape(x) * 2) if sparse else matrix
        dense = completed(dense, hessian_at, (x,), lambda: program(*args, **kwargs), (2,))
        return scipy.sparse.csr_array(np.reshape(dense, matrix.shape)) if sparse else dense

    return pushed


def _push_edges(f: Callable[[Value], Value], x: Value) -> Value:
    """Return the Hessian of `f` as a matrix, or None where it is zero."""

    def program(inputs: list[Value]) -> Value:
        output = wrap(f(*inputs))
        check_scalar(output)
        return output

    def finish(activation: EdgePushing, shadows: list[int], output: Tree) -> Value:
        return activation.second_derivatives(output, shadows[0]) if activation.owns(output) else None

    return run(EdgePushing(), program, [(x,)], finish)


def _hessian_of(block: Value, value: Value, sparse: bool) -> Value:
    """Return a Hessian at a point as a dense or sparse array, in the library of the point."""
    size, shape, dtype = np.size(value), np.shape(value), np.result_type(value)
    if isinstance(block, Tracer):
        if sparse:
            raise NotDifferentiable("a sparse Hessian has no derivative; leave out sparse=True inside a derivative")
        block = np.reshape(block, shape + shape).astype(dtype, copy=False)
        return block if handled(Smooth) else unwrap(block)
    if sparse:
        kind = np.float32 if dtype == np.float16 else dtype  # SciPy has no sparse arrays of float16
        return scipy.sparse.csr_array((size, size) if block is None else block, dtype=kind)
    if type(value) is LibraryArray:  # the function is linear, so the Hessian is zero
        return unwrap(like(None, np.multiply.outer(value, value)))
    dense = np.zeros((size, size)) if block is None else scipy.sparse.csr_array(block).toarray()
    number = float if type(value) is float else dtype.type
    return like(dense.reshape(shape + shape), np.zeros(shape + shape, dtype)) if shape else number(dense[0, 0])
