"""Functions that close over traced values, evaluated as if these were plain.

A solver runs on plain numbers, but its function may use traced values of a derivative around the solver: from a
closure, from `args`, from an object. `Frozen` is the innermost handler while the function runs. In every operation on
the function's argument it replaces such a value by its plain value.
"""

import copy
import itertools
import math

from effgrad.arrays.batched_value import Batched
from effgrad.arrays.labelled import without_labels
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.traced import Mutable, Traced
from effgrad.arrays.value import Tracer, depends, list_to_array, perform, plain
from effgrad.errors import NotDifferentiable
from effgrad.functions.scipy import sparse_elements
from effgrad.functions.scipy.sparse_value import TracedSparse
from effgrad.functions.scipy.tables import traced_inside
from effgrad.modes.batched import Batch
from effgrad.modes.evaluate import Evaluate
from effgrad.modes.forward import Forward
from effgrad.primitives.primitive import Primitive
from effgrad.trees import flatten, map_pytree
from effgrad.vocabulary import Function, Option, Value

# The number of columns of a Jacobian that are computed in one run.
WIDTH = 32


def number(value: Value) -> Value:
    """Return the number or array under all derivatives. In a staged program it is the example's, which adds a guard."""
    value = underived(value)
    return value.__array__()[()] if isinstance(value, Tracer) else value


def underived(value: Value) -> Value:
    """The value without derivatives; in a batch, also without those of the array that stands for all members."""
    value = plain(value)
    return Batched(value.owner, underived(value.primal), None) if type(value) is Batched else value


class Frozen(Evaluate):
    """Evaluate, and replace the traced values of all other derivatives by their plain values."""

    constant = staticmethod(number)


def frozen(f: Function) -> Function:
    """Return `f` with plain values for all that it closes over. Its first argument is a number or an array."""

    def evaluated(x: Value, *args: Value) -> Value:
        with Frozen() as activation:
            result = as_number_or_array(f(activation.variable(x), *args))
            return activation.primal(result)

    return evaluated


def as_number_or_array(value: Value) -> Value:
    """Return a function's result as a number or an array; it may be a list, a table, or an array that was filled."""
    if type(value) in (list, tuple):
        return list_to_array(value)
    if type(value) is Mutable:
        return copy.copy(value) if depends(value) else number(value)
    return without_labels(value)


def as_vector(value: Value) -> Value:
    """Return a function's result as a vector."""
    return np.reshape(as_number_or_array(value), (-1,))


def joined(leaves: list[Value]) -> Value:
    """Return one vector of the elements of numbers and arrays."""
    if not leaves:
        raise NotDifferentiable("there are no numbers to differentiate: the argument or the output has no leaves")
    parts = [np.reshape(leaf, (-1,)) for leaf in leaves]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def parted(z: Value, shapes: list[tuple[int, ...]]) -> list[Value]:
    """Return the arrays and numbers of the given shapes from the vector of their elements."""
    if len(shapes) == 1:
        return [np.reshape(z, shapes[0]) if shapes[0] else z[0]]
    ends = [*itertools.accumulate(map(math.prod, shapes))]
    parts = zip([0, *ends], ends, shapes, strict=False)
    return [np.reshape(z[start:end], shape) if shape else z[start] for start, end, shape in parts]


def order(value: Value) -> int:
    """Return the total order of the derivatives that trace a value, which is the sum over the nested handlers.

    Each handler counts as its attribute `order` says (2 for one that computes a Hessian), or as 1 if it has none.
    `counted` detects a handler that takes derivatives of higher order than this.
    """
    total, value = 0, as_number_or_array(value)
    while isinstance(value, Traced) or type(value) is Batched:
        total += 0 if type(value) is Batched else getattr(value.owner, "order", 1)
        value = as_number_or_array(value.primal)
    return total


def order_checked(value: Value) -> Value:
    """Return the value after an operation whose derivative raises an error if `order` has counted too few orders."""
    if not isinstance(value, Traced):
        return value
    owner = value.owner
    most = math.inf if hasattr(owner, "order") else order(value)
    return perform(COUNTED, value, most=most, mode=type(owner).__qualname__)


class OrderCheck(Primitive):
    """The identity. Its parameters `most` and `mode` are about the handler that takes its derivative."""

    __slots__ = ()

    def __call__(self, value: Value, **_: Value) -> Value:
        """Perform `counted` again with the parameters of the handler below, instead of those given here."""
        return order_checked(value)


def _passed(change: Value, y: Value, x: Value, **params: Option) -> Value:
    """Pass a tangent or a cotangent through `counted`, after a check of the order."""
    _check_order(x, **params)
    return change


COUNTED = OrderCheck("counted", lambda value, **params: np.positive(value), "general", (_passed,), (_passed,))
COUNTED.series = lambda value, **params: value


def _check_order(value: Value, most: float, mode: str) -> None:
    """Refuse a derivative of `counted` at a value that is traced by derivatives of order `most` or more.

    A handler of first order takes the derivative at values of the handlers below it. A handler of second order takes it
    also at values that one more derivative traces: the handler itself, or one that it has entered for this.
    """
    if order(value) >= most:
        raise NotDifferentiable(
            f"the handler {mode} takes derivatives of higher than first order, and the solution of an equation follows "
            f"its parameters to first order: set the attribute `order` of {mode} to the order of its derivatives"
        )


class Observed:
    """A function of the user for a solver: it takes and returns plain numbers.

    `traced` says whether the function has used traced values in a call so far. `first` are the arguments of the first
    call.
    """

    def __init__(self, f: Function, args: tuple[Value, ...] = ()) -> None:
        self.f, self.args, self.traced = f, args, traced_inside(args)
        self.first: tuple[Value, ...] = ()

    def __call__(self, *args: Value) -> Value:
        self.first = self.first or args
        if self.traced and hasattr(self.f, "at_primals"):
            return plain_tree(self.f.at_primals(*args, *plain_tree(self.args)))
        if self.traced:
            # Once the function is known to use traced values, none of its operations reaches the derivative around.
            with Frozen() as activation:
                # Numbers stay plain for functions that accept only these, such as those of the math module.
                given = [activation.variable(x) if isinstance(x, np.ndarray) else x for x in args]
                return plain_tree(without_labels(self.f(*given, *self.args)), activation)
        result = without_labels(self.f(*args, *self.args))
        if any(depends(leaf) or type(leaf) is TracedSparse for leaf in flatten(result)[0]):
            self.traced = True
        return plain_tree(result)


def plain_tree(tree: Value, activation: Frozen | None = None) -> Value:
    """Return a pytree of results with plain leaves."""

    def plain_leaf(leaf: Value) -> Value:
        if type(leaf) is TracedSparse:  # for example a sparse Jacobian that the user's function returns
            return _plain_sparse(leaf, plain_leaf)
        return number(leaf if activation is None else activation.primal(leaf))

    return map_pytree(plain_leaf, tree)


def _plain_sparse(matrix: TracedSparse, of: Function) -> Value:
    """Return SciPy's sparse matrix with the numbers that the function `of` makes of the stored values."""
    stored = matrix.stored()
    coo = stored.places.tocoo()
    values = sparse_elements.gathered(coo.data, np.asarray(of(stored.vector)))
    return type(coo)((values, sparse_elements.coordinates(coo)), shape=matrix.shape).asformat(matrix.format)


def jacobian_at(f: Function, x: Value) -> Value:
    """Return the Jacobian of a function from vectors to vectors, at a plain vector."""
    identity = np.eye(len(x), dtype=x.dtype)
    strips = [tangents_along(f, x, identity[start : start + WIDTH]) for start in range(0, len(x), WIDTH)]
    matrix = np.concatenate(strips).T
    if np.iscomplexobj(x):
        ones = np.ones((1, len(x)), complex)
        _check_holomorphic(tangents_along(f, x, 1j * ones)[0], matrix @ ones[0])
    return matrix


def slope_at(f: Function, x: Value) -> Value:
    """Return the derivative of an elementwise function at a plain number or array."""
    ones = np.ones((1, *np.shape(x)), np.result_type(x))
    slope = tangents_along(f, x, ones)[0]
    if np.iscomplexobj(x):
        _check_holomorphic(tangents_along(f, x, 1j * ones)[0], slope)
    return slope


def _check_holomorphic(turned: Value, change: Value) -> None:
    """Check that the change of a function along the imaginary unit i is i times its change along 1."""
    if not np.allclose(turned, 1j * change, rtol=1e-6, atol=1e-9, equal_nan=True):
        raise NotDifferentiable(
            "an equation for complex numbers is not holomorphic at its solution (it uses a conjugate, an absolute "
            "value or a real part): solve two equations, for the real and the imaginary part"
        )


def tangents_along(f: Function, x: Value, directions: Value) -> Value:
    """Return the tangents of a function's result along several directions, computed in one run."""
    with Batch(len(directions)) as batch, Forward() as forward:
        result = f(forward.variable(x, batch.variable(directions)))
        tangent = result.shadow if depends(result) else None
        return batch.results([np.zeros(shape_of(result)) if tangent is None else tangent])[0]
