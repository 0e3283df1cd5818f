"""Boundary value problems: derivatives of `scipy.integrate.solve_bvp`.

The problem is solved again on a finer mesh, to a tolerance of 1e-9. There the solution satisfies collocation equations
between neighbouring nodes, and the boundary conditions. The solution is the root of these equations, so its derivatives
are those of a root (`effgrad.toolbox.implicit`). The Jacobian couples only neighbouring nodes, so it is computed along
a few directions and factored as a sparse matrix. Kierzenka and Shampine, A BVP solver based on residual control and the
Matlab PSE (2001); Curtis, Powell and Reid, On the estimation of sparse Jacobian matrices (1974).
"""

from typing import NamedTuple

import scipy.integrate
import scipy.sparse
import scipy.sparse.linalg

from effgrad.arrays.reach import np
from effgrad.arrays.value import depends
from effgrad.errors import NotDifferentiable
from effgrad.functions.scipy.tables import reals, require, traced_inside
from effgrad.primitives.primitive import Primitive, linear
from effgrad.toolbox.calls import Call, rule_of
from effgrad.toolbox.frozen import as_number_or_array, as_vector, frozen, number, tangents_along
from effgrad.toolbox.implicit import newton_corrected
from effgrad.toolbox.solutions import Solution, with_value
from effgrad.vocabulary import Function, Value

TOLERANCE, NODES = 1e-9, 20_000
NAME = "scipy.integrate.solve_bvp"


class Mesh(NamedTuple):
    """Collocation of `n` components and `k` unknown parameters on the nodes `x`, which may be traced.

    A vector of unknowns has the states at one node after another, and then the parameters.
    """

    fun: Function
    bc: Function
    x: Value
    n: int
    k: int

    def states(self, z: Value) -> tuple[Value, Value]:
        """Split a vector of unknowns into the states at the nodes, as columns, and the parameters."""
        size = len(self.x) * self.n
        return np.transpose(np.reshape(z[:size], (len(self.x), self.n))), z[size:]

    def residual(self, z: Value) -> Value:
        """Return the residuals of the collocation equations of each interval, then those of the boundary conditions."""
        y, p = self.states(z)
        h = np.diff(self.x)
        f = as_number_or_array(self.fun(self.x, y, p))
        middle = 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (f[:, 1:] - f[:, :-1])
        f_middle = as_number_or_array(self.fun(self.x[:-1] + 0.5 * h, middle, p))
        equations = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + f[:, 1:] + 4 * f_middle)
        ends = as_vector(self.bc(y[:, 0], y[:, -1], p))
        reals("integrate.solve_bvp", f, ends)
        return np.concatenate([np.reshape(np.transpose(equations), (-1,)), ends])

    def jacobian(self, f: Function, z: Value) -> Value:
        """Return the sparse Jacobian of the residual `f`.

        The equations of an interval depend on its two nodes only, so every third node shares a direction.
        """
        n, nodes, size = self.n, len(self.x), len(self.x) * self.n
        node = np.arange(size) // n
        groups = np.where(np.isin(node, [0, nodes - 1]), 3 * n + np.arange(size), node % 3 * n + np.arange(size) % n)
        groups = np.concatenate([groups, 4 * size + np.arange(self.k)])
        names, groups = np.unique(groups, return_inverse=True)
        seeds = (groups == np.arange(len(names))[:, None]).astype(float)
        moved = tangents_along(f, z, seeds)
        rows, unknowns = self._pattern()
        values = moved[groups[unknowns], rows]
        return scipy.sparse.csc_array((values, (rows, unknowns)), (len(z), len(z)))

    def _pattern(self) -> tuple[Value, Value]:
        """Return the rows and columns of the elements that are not zero by construction."""
        n, nodes, size = self.n, len(self.x), len(self.x) * self.n
        interval = np.arange((nodes - 1) * n)
        beside = (interval // n * n)[:, None] + np.arange(2 * n)
        parameters = np.broadcast_to(size + np.arange(self.k), (len(interval), self.k))
        ends = size - n + np.arange(n + self.k)
        whole = np.concatenate([np.arange(n), size - n + np.arange(n + self.k)])
        parts = [(interval, beside), (interval, parameters), (ends, np.broadcast_to(whole, (len(ends), len(whole))))]
        rows = [np.repeat(row, np.shape(columns)[1]) for row, columns in parts]
        return np.concatenate(rows), np.concatenate([np.ravel(columns) for _, columns in parts])


class Factors:
    """The factors of a sparse matrix, to solve systems with it or with its transpose."""

    def __init__(self, lu: Value, transposed: bool = False) -> None:
        self.lu, self.transposed = lu, transposed

    @property
    def T(self) -> "Factors":
        """The factors of the transpose."""
        return Factors(self.lu, not self.transposed)

    def solve(self, b: Value) -> Value:
        """Solve the system for a right-hand side."""
        return self.lu.solve(np.ascontiguousarray(b), "T" if self.transposed else "N")


solved: Primitive = linear(
    lambda b, factors: factors.solve(b), lambda g, b, factors: solved(g, factors=factors.T), name="solve_sparse_factors"
)


def _factored(matrix: Value) -> Factors:
    try:
        return Factors(scipy.sparse.linalg.splu(matrix))
    except RuntimeError:
        raise NotDifferentiable(
            f"{NAME}: the solution has no derivative, because the equations and boundary conditions do not determine "
            "it (a singular Jacobian)"
        ) from None


def _root(mesh: Mesh, z: Value) -> Value:
    """Solve the collocation equations by Newton's method on plain numbers, and return the traced solution."""
    at_primals = frozen(mesh.residual)
    for _ in range(10):
        factors = _factored(mesh.jacobian(at_primals, z))
        step = factors.solve(at_primals(z))
        z = z - step
        if np.max(np.abs(step)) <= 1e-12 * (1 + np.max(np.abs(z))):
            break
    else:
        raise NotDifferentiable(f"{NAME} has not converged to a tolerance of {TOLERANCE}: give it a better start")
    return newton_corrected(mesh.residual, z, z, lambda b: solved(b, factors=factors))


class TracedSpline:
    """The cubic spline through a solution of a boundary value problem, as a function of points."""

    def __init__(self, mesh: Mesh, z: Value, sol: Value) -> None:
        self.mesh, self.sol = mesh, sol
        self.y, p = mesh.states(z)
        self.f = as_number_or_array(mesh.fun(mesh.x, self.y, p))

    def __call__(self, x: Value) -> Value:
        return with_value(self.at(as_number_or_array(x)), self.sol(number(as_number_or_array(x))))

    def at(self, x: Value) -> Value:
        """Evaluate the cubic Hermite polynomial, by states and slopes at both nodes, of the interval of each point."""
        nodes = self.mesh.x
        i = np.clip(np.searchsorted(number(nodes), number(x), side="right") - 1, 0, len(nodes) - 2)
        h = nodes[i + 1] - nodes[i]
        s = (x - nodes[i]) / h
        values = (2 * s**3 - 3 * s**2 + 1) * self.y[:, i] + (3 * s**2 - 2 * s**3) * self.y[:, i + 1]
        return values + h * ((s**3 - 2 * s**2 + s) * self.f[:, i] + (s**3 - s**2) * self.f[:, i + 1])


@rule_of(
    scipy.integrate.solve_bvp, "fun", "bc", "fun_jac", "bc_jac", columns=["fun"], ragged=lambda _: ("x", "y", "yp")
)
def solve_bvp_rule(call: Call) -> Value:
    """The rule of `solve_bvp`, which traces the fields x, y, yp, p and sol of its result."""
    fun, bc = (_with_parameters(call.arguments[name], call.get("p") is not None) for name in ("fun", "bc"))
    result, given = call.run(), as_number_or_array(call.get("x"))
    if not call.traced and not traced_inside((given, call.get("S"))):
        return result
    require(call.get("S") is None, "integrate.solve_bvp", "problems without a singular term S")
    if not result.success:
        raise NotDifferentiable(f"{NAME} has failed and has no derivative: {result.message}")
    p = np.zeros(0) if result.p is None else result.p
    jacobians = {name: call.observed.get(name) for name in ("fun_jac", "bc_jac")}
    observed = call.observed["fun"], call.observed["bc"]
    exact = call.original(*observed, result.x, result.y, result.p, tol=TOLERANCE, max_nodes=NODES, **jacobians)
    mesh = Mesh(fun, bc, _between(given, exact.x), len(result.y), len(p))
    z = _root(mesh, np.concatenate([exact.y.T.ravel(), p if exact.p is None else exact.p]))
    if not depends(z):
        return result
    spline = TracedSpline(mesh, z, result.sol)
    nodes = _between(given, result.x)
    y = with_value(spline.at(nodes), result.y)
    parameters = None if result.p is None else with_value(mesh.states(z)[1], result.p)
    slope = with_value(as_number_or_array(fun(nodes, y, parameters)), result.yp)
    return Solution({**result, "x": nodes, "y": y, "yp": slope, "p": parameters, "sol": spline})


def _between(given: Value, nodes: Value) -> Value:
    """Return the nodes of a refined mesh as functions of the given nodes, between which SciPy inserts new ones."""
    if not depends(given):
        return nodes
    plain_given = number(given)
    i = np.clip(np.searchsorted(plain_given, nodes, side="right") - 1, 0, len(plain_given) - 2)
    part = (nodes - plain_given[i]) / (plain_given[i + 1] - plain_given[i])
    return with_value(given[i] + (given[i + 1] - given[i]) * part, nodes)


def _with_parameters(f: Function, given: bool) -> Function:
    return f if given else lambda *args: f(*args[:-1])


RULES: list[tuple[Value, str, Value]] = [(scipy.integrate, "solve_bvp", solve_bvp_rule)]
