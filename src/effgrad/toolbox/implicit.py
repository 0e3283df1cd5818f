"""Derivatives of solutions x of equations F(x, p) = 0, whatever algorithm found x.

The solver runs on plain numbers. Its solution x0 becomes a function of the parameters by Newton steps, whose matrix
J = dF/dx is a constant, computed at x0:

    x = x0 - inverse(J) (F(x, p) - F(x0, p0))

The right side has the value x0 to the bit. One step makes the first derivative correct, by the implicit function
theorem (dx = -inverse(J) F_p dp). Each further step makes the next order correct, because it multiplies the error by
the change of J. A step consists of NumPy operations on traced values, so every mode, nested in any way, differentiates
it, and F may use traced values that it closes over. Christianson, Reverse accumulation and attractive fixed points
(1994); Griewank and Walther, Evaluating Derivatives (2008), chapter 15; Blondel et al., Efficient and modular implicit
differentiation (2022).

Before these steps x0 is polished by Newton's method on plain numbers, because at a point that is 1e-5 away from the
solution the derivative has an error of about that size. The value stays the solver's. Polishing also detects solvers
that have not converged.
"""

import copy
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeAlias, TypeVar

import scipy.sparse.linalg

from effgrad import program
from effgrad.api import grad, vjp
from effgrad.api.checks import check_outputs
from effgrad.api.tracebacks import Transformed
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import depends
from effgrad.errors import NotDifferentiable, require_function
from effgrad.primitives.primitive import Primitive, linear
from effgrad.toolbox.callbacks import called_back
from effgrad.toolbox.frozen import (
    as_number_or_array,
    frozen,
    jacobian_at,
    joined,
    order,
    order_checked,
    parted,
    plain_tree,
    slope_at,
    underived,
)
from effgrad.trees import flatten
from effgrad.vocabulary import Function, Value

P = ParamSpec("P")
R = TypeVar("R")
Solve: TypeAlias = Callable[[Value], Value]

# From this number of unknowns on, linear systems are solved by GMRES, which needs only products with the Jacobian.
MATRIX_FREE_SIZE = 1500
# The reciprocal condition number below which a Jacobian counts as singular.
SINGULAR = 1e-13
# How far polishing may move a solution, relative to its size.
NEAR = 1e-2
# The step of an integrator counts as exact if the Newton step of its equation is smaller than this, relative to it.
EXACT = 1e-10
# The most Newton steps of polishing.
STEPS = 20


def root(residual: Function, solver: Callable[P, R]) -> Callable[P, R]:
    """Return a function that solves `residual(x, *args) = 0` by any solver, and is differentiable.

    Arguments:
        residual: a function of the solution and of the arguments, written in NumPy; it returns a pytree with as many
            numbers as the solution has.
        solver: a function of the arguments that returns the solution: a number, an array or a pytree of them. It is
            called with plain numbers and need not be differentiable.

    Returns:
        A function of the arguments that returns the solution. Its derivatives, of any order and in every mode, are
        those of the exact solution near the one found. They include derivatives by the values that `residual` closes
        over. The value is the solver's.

    Raises:
        NotDifferentiable: the solver has not converged (a Newton step leads far away), the Jacobian of the residual is
            singular at the solution, or the residual and the solution have different numbers of elements.

    Blondel et al., Efficient and modular implicit differentiation (2022).

    >>> from effgrad import grad, implicit
    >>> def bisect(a):
    ...     low, high = 0.0, 2.0
    ...     while high - low > 1e-12:
    ...         middle = (low + high) / 2
    ...         low, high = (middle, high) if middle**2 < a else (low, middle)
    ...     return low
    >>> square_root = implicit.root(lambda x, a: x**2 - a, bisect)
    >>> round(grad(square_root)(2.0), 9)
    0.353553391
    """

    require_function("implicit.root", residual, solver)
    equations = program.read(residual)

    def find(*args: Value, **kwargs: Value) -> Value:
        def run(converted: Function, kept: Function) -> Value:
            given, named = converted((args, kwargs))
            found, _ = kept(lambda: plain_tree(solver(*plain_tree(given), **plain_tree(named))))
            return _solution(converted(equations), found, given, named)

        return called_back(run, getattr(residual, "__name__", "implicit.root"))

    return Transformed(find, "root", functools.partial(root, residual), solver)


def _solution(residual: Function, solution: Value, args: Value, kwargs: Value) -> Value:
    """Return a solution with the derivatives of the residual's root."""
    leaves, tree = flatten(solution)
    if not leaves:
        raise NotDifferentiable(f"implicit.root: the solver returned {solution!r}; it has to return the solution")
    shapes = [np.shape(leaf) for leaf in leaves]

    def vector(z: Value, args: Value, kwargs: Value) -> Value:
        result = residual(tree.unflatten(parted(z, shapes)), *args, **kwargs)
        parts = [as_number_or_array(leaf) for leaf in flatten(result)[0]]
        if not parts:
            raise NotDifferentiable(f"implicit.root: the residual returned {result!r}; it has to return numbers")
        check_outputs(parts)
        return joined(parts)

    def at_primals(z: Value) -> Value:
        return vector(z, plain_tree(args), plain_tree(kwargs))

    z = joined(leaves)
    if np.result_type(z).kind not in "fc":
        raise NotDifferentiable(f"the solution is of type {np.result_type(z)}; derivatives need floating point")
    moved = follow(lambda z: vector(z, args, kwargs), z, frozen(at_primals), "implicit.root")
    return solution if moved is z else tree.unflatten(parted(moved, shapes))


def follow(residual: Function, z: Value, at_primals: Function, name: str, polished: bool = False) -> Value:
    """Return the root `z` of a residual as a function of the values that the residual closes over.

    `z` is a plain vector. `at_primals` is the residual with plain values for all that it closes over. The result is
    `z` itself if the residual depends on no traced value. Its value is that of `z`, or of the polished root.
    """
    value = residual(z)
    _check_sizes(value, z, name)
    if not depends(value):
        return z
    point = polish(at_primals, z, name)
    inverse = inverse_at(at_primals, point, name)
    if len(z) < MATRIX_FREE_SIZE:
        _check_isolated(inverse(jacobian_at(at_primals, _nearby(point))) - np.eye(len(z)), name)
    return newton_corrected(residual, point if polished else z, point, inverse)


def follow_each(
    residual: Function, z: Value, at_primals: Function, name: str, slope_of: Function | None = None
) -> Value:
    """Do what `follow` does for a number, or for an array of numbers, each with a separate equation.

    `slope_of` is the derivative of `at_primals`; without it, forward mode computes the derivative.
    """
    value = residual(z)
    _check_sizes(value, z, name)
    if not depends(value):
        return z
    find = slope_of or functools.partial(slope_at, at_primals)
    point, slope = z, _usable(find(z), name)
    for _ in range(STEPS):
        step = at_primals(point) / slope
        point = point - step
        if np.all(np.abs(step) <= 1e-15 * np.abs(point)):
            break
        slope = _usable(find(point), name)
    _check_near(z, point, step, name)
    _check_isolated(find(_nearby(point)) / slope - 1, name)
    return newton_corrected(residual, z, point, lambda change: change / slope)


def _usable(slope: Value, name: str) -> Value:
    if not np.all(np.isfinite(slope)) or np.any(slope == 0):
        raise _singular(name, "the derivative of the function is zero there or not finite")
    return slope


def newton_corrected(residual: Function, z: Value, point: Value, solve: Solve) -> Value:
    """Return the root `z` after the Newton steps that make all its derivatives correct.

    `solve` solves linear systems with the Jacobian at `point`, the polished root.
    """
    value = order_checked(as_number_or_array(residual(point)))
    start, change = underived(value), 0.0
    for number in range(order(value)):
        moved = residual(point + change) if number else value
        change = change - solve(moved - start)
    return z + change


def polish(
    f: Function, z: Value, name: str, near: float = NEAR, inverse_of: Callable[[Value], Solve] | None = None
) -> Value:
    """Return the root near `z`, found by Newton's method on plain numbers as exactly as rounding in `f` permits.

    `inverse_of` returns the solver of linear systems with the Jacobian at a point; without it, `inverse_at` does.
    """
    point, before, moved = z, np.inf, 0.0
    inverse: Solve | None = None
    for _ in range(STEPS):
        value = f(point)
        if not np.all(np.isfinite(value)):
            raise NotDifferentiable(f"{name}: the residual is not finite at the solution, which has no derivative")
        if inverse is None:
            inverse = inverse_at(f, point, name) if inverse_of is None else inverse_of(point)
        step = inverse(value)
        moved = float(np.linalg.norm(step))
        if moved > 0.3 * before:
            break  # the steps have reached rounding errors, or do not converge
        point, before = point - step, moved
        if moved <= 1e-15 * float(np.linalg.norm(point)):
            break
        if moved > 1e-6 * (1 + float(np.linalg.norm(point))):
            inverse = None
    _check_near(z, point, step, name, near)
    return point


def polished_step(f: Function, z: Value, name: str, inverse_of: Callable[[Value], Solve]) -> tuple[Value, Solve]:
    """Return the root near `z` of the equation of an integrator's step, and the linear solver with its Jacobian there.

    Usually `z` is exact enough to be the root, and then only one Jacobian is computed.
    """
    inverse = inverse_of(z)
    if np.linalg.norm(inverse(f(z))) <= EXACT * np.linalg.norm(z):
        return z, inverse
    point = polish(f, z, name, 1.0, inverse_of)
    return point, inverse_of(point)


def _check_isolated(turned: Value, name: str) -> None:
    """Check that the Jacobian is nearly the same at a point close to the solution; at a double root it is not.

    `turned` is the inverse of the Jacobian at the solution times the Jacobian at that point, minus the identity.
    """
    if not np.max(np.abs(turned), initial=0.0) <= 0.1:
        raise _singular(name, "the Jacobian of the equations vanishes at it")


def _nearby(point: Value) -> Value:
    return point + 1e-7 * np.abs(point) + 1e-14


def _check_near(z: Value, point: Value, step: Value, name: str, near: float = NEAR) -> None:
    """Check that polishing has converged, to a point near the solver's solution."""
    size = 1 + float(np.linalg.norm(point))
    if not np.linalg.norm(step) <= 1e-7 * size or not np.linalg.norm(point - z) <= near * size:
        raise NotDifferentiable(
            f"{name} has not converged: Newton's method leads from its solution, {np.asarray(z).ravel()[:4]}, to "
            f"{np.asarray(point).ravel()[:4]}; give it another start, a smaller tolerance, or more iterations"
        )


def _check_sizes(value: Value, z: Value, name: str) -> None:
    if shape_of(value) != np.shape(z):
        raise NotDifferentiable(
            f"{name}: the function returns an array of shape {shape_of(value)} for {np.size(z)} unknowns of "
            f"shape {np.shape(z)}; a solution has a derivative where there are as many equations as unknowns"
        )


def inverse_at(f: Function, z: Value, name: str) -> Solve:
    """Return the solver of linear systems with the Jacobian of `f` at `z`, by its inverse or matrix-free by GMRES."""
    if len(z) >= MATRIX_FREE_SIZE:
        operator = JacobianOperator(f, z, name)
        return lambda b: solution(b, operator=operator)
    inverse = inverted(jacobian_at(f, z), name)
    return lambda b: inverse @ b


def inverted(matrix: Value, name: str) -> Value:
    """Return the inverse of a Jacobian; raise `NotDifferentiable` if it is singular."""
    if not np.all(np.isfinite(matrix)):
        raise NotDifferentiable(f"{name}: the Jacobian at the solution is not finite")
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(matrix), axis=1, keepdims=True, initial=0.0)
        scaled = matrix / np.where(scale == 0, 1.0, scale)
        try:
            inverse: Value = np.linalg.inv(scaled)
        except np.linalg.LinAlgError:
            inverse = np.full(matrix.shape, np.inf)
        # The condition number in the Frobenius norm, which is that in the spectral norm up to a factor of the size.
        if np.any(scale == 0) or not np.linalg.norm(scaled) * np.linalg.norm(inverse) <= len(matrix) / SINGULAR:
            raise _singular(name, "the Jacobian of the equations is singular there")
    return inverse / scale.T


def _singular(name: str, reason: str) -> NotDifferentiable:
    return NotDifferentiable(
        f"{name}: the solution has no derivative, because {reason}: a double root, or solutions that are not isolated; "
        "add an equation that chooses one, or use effgrad.stop_gradient on it"
    )


class JacobianOperator:
    """The Jacobian of `f` at `z` as products with vectors.

    The program of `f` is recorded once, because the values that it closes over are no longer alive when a reverse pass
    needs a product. Products with the transpose are pullbacks along that record. They are linear, so the pullback of
    the pullback gives the products with the Jacobian.
    """

    def __init__(self, f: Function, z: Value, name: str) -> None:
        self.size, self.name = len(z), name
        self.pull: Solve = vjp(f, z)[1]
        self.push: Solve = vjp(lambda g: self.pull(g)[0], np.zeros(self.size))[1]

    @property
    def T(self) -> "JacobianOperator":
        """The transposed Jacobian."""
        other = copy.copy(self)
        other.pull, other.push = self.push, self.pull
        return other

    def product(self, v: Value) -> Value:
        """Return the Jacobian times a vector."""
        return self.push(v)[0]

    def solve(self, b: Value) -> Value:
        """Solve a linear system by GMRES (Saad and Schultz 1986)."""
        matrix = scipy.sparse.linalg.LinearOperator((self.size, self.size), self.product, dtype=float)
        x, failed = scipy.sparse.linalg.gmres(matrix, b, rtol=1e-12, atol=0.0, restart=100, maxiter=50)
        if failed and not np.linalg.norm(self.product(x) - b) <= 1e-8 * np.linalg.norm(b):
            raise NotDifferentiable(
                f"{self.name}: the linear system for the derivative of {self.size} unknowns did not converge (GMRES): "
                "the Jacobian is nearly singular; scale the unknowns and equations to like sizes"
            )
        return x


solution: Primitive = linear(
    lambda b, operator: operator.solve(b),
    lambda g, b, operator: solution(g, operator=operator.T),
    name="solve_matrix_free",
)


def stationary(lagrangian: Function, z: Value, name: str) -> Value:
    """Return the point near `z` where a function's gradient vanishes, as a function of the values it closes over."""
    return follow(grad(lagrangian), z, grad(frozen(lagrangian)), name, polished=True)


__all__ = ["root"]
