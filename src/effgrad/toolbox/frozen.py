"""Functions that close over traced values, evaluated as if these were plain.

A solver is run on plain numbers, but the function that it is given may use values of a derivative from around it: from
a closure, from `args`, from an object. Under `Frozen`, the innermost handler, every operation on the function's
argument takes such a value as the constant that it is.
"""

import copy
import math

from effgrad.arrays.batched_value import Batched
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.traced import Mutable, Traced
from effgrad.arrays.value import Tracer, depends, listed, perform, plain
from effgrad.errors import NotDifferentiable
from effgrad.functions.scipy import sparse_elements
from effgrad.functions.scipy.sparse_value import TracedSparse
from effgrad.functions.scipy.tables import traced_inside
from effgrad.modes.batched import Batch
from effgrad.modes.evaluate import Evaluate
from effgrad.modes.forward import Forward
from effgrad.primitives.primitive import Primitive
from effgrad.trees import flatten
from effgrad.vocabulary import Function, Option, Value

# The columns of a Jacobian that are computed in one run.
WIDTH = 32


def number(value: Value) -> Value:
    """The number or array under all derivatives; of a staged program the example's, which the program is guarded by."""
    value = plain(value)
    return value.__array__()[()] if isinstance(value, Tracer) else value


def underived(value: Value) -> Value:
    """The value without derivatives, also without those that look at what stands for all members of a batch."""
    value = plain(value)
    return Batched(value.owner, underived(value.primal), None) if type(value) is Batched else value


class Frozen(Evaluate):
    """Evaluate, and take the values of all other derivatives as plain ones."""

    constant = staticmethod(number)


def frozen(f: Function) -> Function:
    """`f` with everything that it closes over taken as plain. Its first argument is a number or an array."""

    def evaluated(x: Value, *args: Value) -> Value:
        with Frozen() as activation:
            result = gathered(f(activation.variable(x), *args))
            return activation.primal(result)

    return evaluated


def gathered(value: Value) -> Value:
    """Return a number or an array for the result of a function, which may be a list or an array that was filled."""
    if type(value) in (list, tuple):
        return listed(value)
    if type(value) is Mutable:
        return copy.copy(value) if depends(value) else number(value)
    return value


def joined(leaves: list[Value]) -> Value:
    """Numbers and arrays as one vector."""
    parts = [np.reshape(leaf, (-1,)) for leaf in leaves]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def parted(z: Value, shapes: list[tuple[int, ...]]) -> list[Value]:
    """Arrays and numbers of some shapes from the vector of their elements."""
    if len(shapes) == 1:
        return [np.reshape(z, shapes[0]) if shapes[0] else z[0]]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
    parts = zip([0, *ends], ends, shapes, strict=False)
    return [np.reshape(z[start:end], shape) if shape else z[start] for start, end, shape in parts]


def order(value: Value) -> int:
    """The highest order of the derivatives that look at a value: 1 for each of those nested, 2 for a Hessian's.

    A handler takes as many as its attribute `order` says, and one if it has none; `counted` finds one that takes more.
    """
    total, value = 0, gathered(value)
    while isinstance(value, Traced) or type(value) is Batched:
        total += 0 if type(value) is Batched else getattr(value.owner, "order", 1)
        value = gathered(value.primal)
    return total


def counted(value: Value) -> Value:
    """The value, after an operation whose derivative is an error where `order` has counted too few."""
    if not isinstance(value, Traced):
        return value
    owner = value.owner
    most = math.inf if hasattr(owner, "order") else order(value)
    return perform(COUNTED, value, most=most, mode=type(owner).__qualname__)


class Counted(Primitive):
    """The identity, with parameters that are those of the handler that takes its derivative."""

    __slots__ = ()

    def __call__(self, value: Value, **_: Value) -> Value:
        """With the parameters of the handler below, not of the one that performs it there."""
        return counted(value)


def _passed(change: Value, y: Value, x: Value, **params: Option) -> Value:
    """A tangent or a cotangent through `counted`."""
    _check_order(x, **params)
    return change


COUNTED = Counted("counted", lambda value, **params: np.positive(value), "general", (_passed,), (_passed,))
COUNTED.series = lambda value, **params: value


def _check_order(value: Value, most: float, mode: str) -> None:
    """Refuse a derivative of `counted` at a value that as many derivatives look at as have been counted, or more.

    A handler of first order asks for it at values of the handlers below it; one of second order asks also at values
    that one more derivative looks at, its own or one that it has entered for this.
    """
    if order(value) >= most:
        raise NotDifferentiable(
            f"the handler {mode} takes derivatives of higher than first order, and the solution of an equation follows "
            f"its parameters to first order: set the attribute `order` of {mode} to the order of its derivatives"
        )


class Observed:
    """A function of the user that a solver calls with plain numbers: called, it returns plain numbers.

    `traced` says whether it has used values of a derivative; `first` has the arguments of the first call.
    """

    def __init__(self, f: Function, args: tuple[Value, ...] = ()) -> None:
        self.f, self.args, self.traced = f, args, traced_inside(args)
        self.first: tuple[Value, ...] = ()

    def __call__(self, *args: Value) -> Value:
        self.first = self.first or args
        if self.traced and hasattr(self.f, "at_primals"):
            return plain_tree(self.f.at_primals(*args, *plain_tree(self.args)))
        if self.traced:
            # Once it is known, no operation of a solver's evaluation reaches the derivative around.
            with Frozen() as activation:
                # Numbers stay plain, for functions that know no others, as those of the math module.
                given = [activation.variable(x) if isinstance(x, np.ndarray) else x for x in args]
                return plain_tree(self.f(*given, *self.args), activation)
        result = self.f(*args, *self.args)
        if any(depends(leaf) or type(leaf) is TracedSparse for leaf in flatten(result)[0]):
            self.traced = True
        return plain_tree(result)


def plain_tree(tree: Value, activation: Frozen | None = None) -> Value:
    """A pytree of results with plain leaves."""
    leaves, structure = flatten(tree)

    def plain_leaf(leaf: Value) -> Value:
        if type(leaf) is TracedSparse:  # a sparse matrix, as of a Jacobian that the user gives
            return _plain_sparse(leaf, plain_leaf)
        return number(leaf if activation is None else activation.primal(leaf))

    return structure.unflatten([plain_leaf(leaf) for leaf in leaves])


def _plain_sparse(matrix: TracedSparse, of: Function) -> Value:
    """SciPy's matrix of the numbers that a function makes of the values."""
    stored = matrix.stored()
    coo = stored.places.tocoo()
    values = sparse_elements.gathered(coo.data, np.asarray(of(stored.values)))
    return type(coo)((values, sparse_elements.coordinates(coo)), shape=matrix.shape).asformat(matrix.format)


def jacobian_at(f: Function, x: Value) -> Value:
    """The Jacobian of a function of one vector that returns one, at a plain vector."""
    identity = np.eye(len(x), dtype=x.dtype)
    strips = [changes(f, x, identity[start : start + WIDTH]) for start in range(0, len(x), WIDTH)]
    matrix = np.concatenate(strips).T
    if np.iscomplexobj(x):
        ones = np.ones((1, len(x)), complex)
        _check_holomorphic(changes(f, x, 1j * ones)[0], matrix @ ones[0])
    return matrix


def slope_at(f: Function, x: Value) -> Value:
    """The derivative of an elementwise function at a plain number or array."""
    ones = np.ones((1, *np.shape(x)), np.result_type(x))
    slope = changes(f, x, ones)[0]
    if np.iscomplexobj(x):
        _check_holomorphic(changes(f, x, 1j * ones)[0], slope)
    return slope


def _check_holomorphic(turned: Value, change: Value) -> None:
    """Compare the change of a function along i with i times that along 1."""
    if not np.allclose(turned, 1j * change, rtol=1e-6, atol=1e-9, equal_nan=True):
        raise NotDifferentiable(
            "an equation for complex numbers is not holomorphic at its solution (it uses a conjugate, an absolute "
            "value or a real part): solve two equations, for the real and the imaginary part"
        )


def changes(f: Function, x: Value, directions: Value) -> Value:
    """The changes of the result of a function along several directions, in one run."""
    with Batch(len(directions)) as batch, Forward() as forward:
        result = f(forward.variable(x, batch.variable(directions)))
        tangent = result.shadow if depends(result) else None
        return batch.results([np.zeros(shape_of(result)) if tangent is None else tangent])[0]


def require_floats(x: Value, name: str) -> None:
    if np.result_type(x).kind not in "fc":
        raise NotDifferentiable(f"{name} is of type {np.result_type(x)}; derivatives need floating point")
