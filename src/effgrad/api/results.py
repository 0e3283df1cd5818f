"""Inputs and results at the edge of a derivative: results have the caller's structure, shapes, dtypes and library.

Arrays returned to the caller have memory of their own.
"""

from collections.abc import Sequence

import numpy as np

from effgrad.api.checks import as_input
from effgrad.arrays.layout import shape_of
from effgrad.arrays.library_array import LibraryArray
from effgrad.arrays.namespace import unwrap, wrap
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, Tracer, depends, evaluated, plain, released
from effgrad.effects import handled
from effgrad.primitives.blocks import basis_vectors
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.cotangents import typed
from effgrad.trees import DISCRETE, PLAIN, Structure
from effgrad.vocabulary import Shape, Value


def flatten_inputs(primals: tuple[Value, ...]) -> tuple[list[Value], Structure]:
    for primal in primals:
        if type(primal) not in PLAIN and isinstance(primal, DISCRETE):
            as_input(primal)  # raises an error: such a leaf is allowed only in a pytree beside others
    return flattened(primals)


def flattened(value: Value) -> tuple[list[Value], Structure]:
    """Return the leaves of a pytree in the form that programs and rules take, and its structure."""
    tree = Structure(value)
    return tree.leaves if tree.flat else [wrap(leaf) for leaf in tree.leaves], tree


def unflatten(tree: Structure, leaves: Sequence[Value], inside: bool | None = None) -> Value:
    """Return a pytree of results. Unless `inside` a derivative, wrapped arrays of other libraries are unwrapped."""
    inside = handled(Smooth) if inside is None else inside
    return tree.unflatten(leaves if inside else [unwrap(leaf) for leaf in leaves])


def as_direction(direction: Value, value: Value) -> Value:
    """Return a tangent or cotangent in the library and the precision of its value."""
    if type(direction) is float and type(value) is float:
        return direction
    inner, given = plain(value), wrap(direction)
    if type(inner) is LibraryArray:
        return inner.owner.as_direction(given, inner)
    # For a complex direction of a real value the caller raises an error.
    return given if is_complex(given) and not is_complex(inner) else typed(given, inner)


def is_real_array(leaf: Value) -> bool:
    return type(leaf) is np.ndarray and leaf.dtype.kind == "f"


def like(derivative: Value, primal: Value, given: set[int] | None = None) -> Value:
    """Return a derivative in the shape and dtype of its primal, in memory of its own; `given` as in `Library.like`."""
    return derivative if type(derivative) is type(primal) is float else _like(derivative, primal, given)


def _like(derivative: Value, primal: Value, given: set[int] | None) -> Value:
    value = plain(primal)
    if type(value) is LibraryArray:
        return value.owner.like(derivative, value, given)
    derivative = released(derivative)
    if derivative is None:
        return np.zeros_like(value) if isinstance(value, np.ndarray) else value.__class__(0)
    if is_complex(derivative) and not is_complex(value):
        derivative = np.real(derivative)
    if type(inner := plain(derivative)) is LibraryArray and not depends(derivative):
        if inner.owner.lazy:
            return inner.owner.like(derivative, value)
        derivative = inner.owner.numpy(inner.primal)  # a NumPy input met constants of another library
    if isinstance(derivative, Tracer):
        if value.__class__ is float and not isinstance(derivative, Traced):
            return evaluated(float, derivative)
        return derivative if derivative.dtype == np.result_type(value) else derivative.astype(np.result_type(value))
    if isinstance(value, np.ndarray):
        spread = derivative if np.shape(derivative) == value.shape else np.broadcast_to(derivative, value.shape)
        return np.array(spread, dtype=value.dtype)
    return value.__class__(derivative)


def directions(leaves: list[Value], chosen: int) -> Value:
    """Iterate over lists of zeros like the leaves, in which one element of the chosen leaf after another is 1."""
    zeros = [like(None, leaf) for leaf in leaves]
    for basis in basis_vectors(shape_of(leaves[chosen])):
        yield [*zeros[:chosen], like(basis, leaves[chosen]), *zeros[chosen + 1 :]]


def joined(parts: list[Value], axis: int, shape: Shape, leaf: Value) -> Value:
    """Stack the derivatives for single elements to an array of a shape; without any it has the dtype of the leaf."""
    if not shape:
        return parts[0]
    stacked = np.stack([wrap(part) for part in parts], axis) if parts else like(None, leaf)
    return np.reshape(stacked, shape)
