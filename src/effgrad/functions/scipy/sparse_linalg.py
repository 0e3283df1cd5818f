"""Rules for `scipy.sparse.linalg`: solutions of sparse systems, differentiable in the elements and right-hand sides.

SciPy solves a system. A tangent of the solution solves a system of the same matrix, and a cotangent a system of the
transposed matrix.
"""

from collections.abc import Callable
from typing import TypeAlias

import scipy.sparse.linalg
from scipy import sparse

from effgrad.arrays.laurent import Laurent
from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer
from effgrad.errors import NoRule, NotDifferentiable
from effgrad.functions.scipy.sparse_elements import Matrix, by_data, product
from effgrad.functions.scipy.sparse_value import TracedSparse, from_dense, from_entries, lifted, parts
from effgrad.functions.scipy.tables import Calling, traced_inside
from effgrad.primitives.primitive import Primitive, general
from effgrad.vocabulary import Function, Value

Solver: TypeAlias = Callable[..., Value]  # takes a matrix, a right-hand side and perhaps a start
superlu = scipy.sparse.linalg.splu  # SciPy's own, and not its rule


class System:
    """A square system: the rows and columns of its elements, and the solvers of it and of its derivatives' systems.

    `solve(matrix, b)` gives the solution's value. `follow` is the system of the same matrix that tangents solve, and
    `transposed` that of cotangents. They use the LU factors of the matrix, or the same iterative method.
    """

    def __init__(self, rows: Value, columns: Value, size: int, solve: Solver) -> None:
        self.rows, self.columns, self.size, self.solve = rows, columns, size, solve
        self._follow: System | None = None
        self._transposed: System | None = None

    @property
    def follow(self) -> "System":
        if self._follow is None:
            self._follow = System(self.rows, self.columns, self.size, Factors())
            self._follow._follow = self._follow
        return self._follow

    @property
    def transposed(self) -> "System":
        """The system of the transposed matrix, for cotangents."""
        mine = self.follow
        if mine._transposed is None:
            other = System(mine.columns, mine.rows, mine.size, mine.solve.transposed())  # type: ignore[attr-defined]
            other._follow, other._transposed = other, mine
            mine._transposed = other
        return mine._transposed

    def value(self, b: Value, data: Value, *start: Value) -> Value:
        return self.solve(self.matrix(data), b, *start)

    def matrix(self, data: Value) -> Matrix:
        """The matrix with the given elements."""
        return sparse.csc_array((data, (self.rows, self.columns)), (self.size, self.size))


class Factors:
    """Solve by the LU factors of the matrix, which are kept for the next system with the same elements."""

    def __init__(self, turned: "Factors | None" = None) -> None:
        self.last: tuple[Value, Value] | None = None
        self.turned = turned

    def transposed(self) -> "Factors":
        return Factors(turned=self)

    def __call__(self, matrix: Matrix, b: Value) -> Value:
        if self.turned is not None:
            return self.turned.solved(matrix.T.tocsc(), b, "T")
        return self.solved(matrix, b, "N")

    def solved(self, matrix: Matrix, b: Value, trans: str) -> Value:
        known = self.last
        if known is None or not (known[0].shape == matrix.data.shape and np.array_equal(known[0], matrix.data)):
            known = self.last = (matrix.data.copy(), _factored(matrix))
        if np.iscomplexobj(b) and not np.iscomplexobj(matrix.data):
            return known[1].solve(b.real.copy(), trans) + 1j * known[1].solve(b.imag.copy(), trans)
        return known[1].solve(np.asarray(b, np.result_type(matrix.data, b)), trans)


def _factored(matrix: Matrix) -> Value:
    try:
        return superlu(matrix)
    except RuntimeError as error:
        raise NotDifferentiable(
            f"a sparse matrix is singular, and the solution of its system has no derivative ({error}): check the "
            "boundary conditions, or that every unknown has an equation"
        ) from None


class Iterative:
    """Solve by an iterative method of SciPy, and refuse a solution that has not converged."""

    def __init__(self, name: str, options: dict[str, Value]) -> None:
        self.name, self.options = name, options

    def transposed(self) -> "Iterative":
        options = dict(self.options)
        if options.get("M") is not None and self.name not in SYMMETRIC:
            options["M"] = _transposed_preconditioner(options["M"])
        return Iterative(self.name, options)

    def __call__(self, matrix: Matrix, b: Value, start: Value = None) -> Value:
        if np.ndim(b) == 2:
            return np.stack([self(matrix, column) for column in b.T], axis=1)
        if not np.any(b):
            return np.zeros(len(b), np.result_type(b, matrix.data))
        x, info = ITERATIVE[self.name](matrix, b, x0=start, **self.options)
        if info:
            raise NotDifferentiable(
                f"scipy.sparse.linalg.{self.name} did not converge (info={info}), and what it returned has no "
                "derivative: raise maxiter, give a preconditioner M (an operator needs a rmatvec, for the transposed "
                "systems of reverse passes), or use spsolve"
            )
        return x


def _transposed_preconditioner(operator: Value) -> Value:
    """The transposed preconditioner, or None if the preconditioner is an operator without a transposed product."""
    turned = operator.T
    try:
        scipy.sparse.linalg.aslinearoperator(turned).matvec(np.zeros(operator.shape[0]))
    except NotImplementedError:
        return None
    return turned


def _by_element(t: Value, y: Value, b: Value, data: Value, system: System) -> Value:
    change = product(y, t, rows=system.rows, columns=system.columns, size=(system.size, system.size))
    return -solution(change, data, system=system.follow)


def pulled_solution(g: Value, data: Value, system: System) -> Value:
    return solution(g, data, system=system.transposed)


def _solution_series(b: Laurent, data: Laurent, system: System) -> Laurent | None:
    """The Laurent series of a solution, each term from the terms before it, if the matrix is regular at the point."""
    if data.start or b.start < 0:
        return None
    matrix, *rest = map(system.matrix, data.coefficients)
    found: list[Value] = []
    for k in range(min(len(data.coefficients), len(b.coefficients))):
        known = sum((rest[i] @ found[k - 1 - i] for i in range(k)), start=0.0)
        found.append(system.follow.solve(matrix, b.coefficients[k] - known))
    return Laurent(b.start, np.stack(found))


solution: Primitive = general(
    lambda b, data, system: system.value(b, data),
    jvp=(lambda t, y, b, data, system: solution(t, data, system=system.follow), _by_element),
    vjp=(
        lambda g, y, b, data, system: pulled_solution(g, data, system),
        lambda g, y, b, data, system: -by_data(pulled_solution(g, data, system), y, system.rows, system.columns),
    ),
    name="sparse_solve",
    series=_solution_series,
)


def _without_start(rule: Function) -> Function:
    return lambda change, y, b, data, start, system: rule(change, y, b, data, system=system)


# The solution that an iterative method finds from a start. The exact solution does not depend on the start, so the
# derivative by it is 0.
started: Primitive = general(
    lambda b, data, start, system: system.value(b, data, start),
    jvp=(*map(_without_start, solution.pushes), None),
    vjp=(*map(_without_start, solution.pulls), None),
    name="sparse_solve_from",
)


def solved(matrix: Matrix, b: Value, solve: Solver, follow: Solver | None = None, start: Value = None) -> Value:
    """Solve a sparse system with traced parts by `solve`, and the systems of its derivatives by `follow`."""
    n, m = matrix.shape
    if n != m or shape_of(b)[0] != n:
        raise ValueError(f"a matrix of shape {(n, m)} and a right-hand side of shape {shape_of(b)} do not fit")
    data, rows, columns = parts(matrix)
    system = System(rows, columns, n, solve)
    if follow is not None:
        system._follow = System(rows, columns, n, follow)
        system._follow._follow = system._follow
    b = b if isinstance(b, Tracer) else np.asarray(b)
    return solution(b, data, system=system) if start is None else started(b, data, start, system=system)


def _dense(b: Value) -> Value:
    return b.toarray() if sparse.issparse(b) else b


def _spsolve(A: Matrix, b: Value, *args: Value, **kwargs: Value) -> Value:
    if sparse.issparse(b) and shape_of(b)[1:] not in ((), (1,)):  # several columns: a sparse result, of A's class
        found = from_dense(_spsolve(A, b.toarray(), *args, **kwargs))
        return lifted(A).like(found.asformat(A.format))
    b = _dense(b)
    column = ndim_of(b) == 2 and shape_of(b)[1] == 1
    return solved(A, b[:, 0] if column else b, lambda a, b: scipy.sparse.linalg.spsolve(a, b, *args, **kwargs))


def _inv(A: Matrix) -> TracedSparse:
    inverse = from_dense(_spsolve(A, np.eye(A.shape[0])))
    return lifted(A).like(inverse.tocsc())


def _spsolve_triangular(
    A: Matrix, b: Value, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Value:  # fmt: skip
    if unit_diagonal:
        places, ones = np.arange(A.shape[0]), 1 - lifted(A).diagonal()
        A = lifted(A) + from_entries(places, places, ones, A.shape)
    return solved(A, b, scipy.sparse.linalg.spsolve)


class Factored:
    """The LU factors of a matrix, like SciPy's SuperLU, with traced elements or for traced right-hand sides."""

    def __init__(self, matrix: Matrix, factor: Callable[[Matrix], Value]) -> None:
        self.matrix, self.shape = matrix, matrix.shape
        self._factors = Factors()
        self._plain = None if type(matrix) is TracedSparse else factor(matrix)
        self.nnz = (self._plain or matrix).nnz
        self._transposed = None

    def solve(self, rhs: Value, trans: str = "N") -> Value:
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        if self._plain is not None and not traced_inside(rhs):
            return self._plain.solve(rhs, trans)
        if trans == "H":
            return np.conj(self.solve(np.conj(rhs), "T"))
        data, rows, columns = parts(self.matrix)
        system = System(rows, columns, self.shape[0], self._factors)
        system._follow = system
        return solution(np.asarray(rhs), data, system=system if trans == "N" else system.transposed)

    def __getattr__(self, name: str) -> Value:
        if self._plain is not None and not name.startswith("__"):
            return getattr(self._plain, name)
        raise NoRule(f"the {name} of a sparse factorisation has no derivative rule; its solve has one")


def _splu(A: Matrix, *args: Value, **kwargs: Value) -> Factored:
    matrix = A if sparse.issparse(A) else as_sparse(A, "splu")
    return Factored(matrix, lambda matrix: superlu(matrix, *args, **kwargs))


def _spilu(A: Matrix, *args: Value, **kwargs: Value) -> Value:
    raise NoRule(
        "scipy.sparse.linalg.spilu of traced elements has no derivative rule: its factors are approximations. For a "
        "preconditioner, on which no solution depends, write spilu(effgrad.stop_gradient(A)); to solve, splu(A)"
    )


def _factorized(A: Matrix) -> Callable[[Value], Value]:
    return _splu(A).solve


ITERATIVE = {name: getattr(scipy.sparse.linalg, name) for name in (
    "cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "tfqmr", "gcrotmk",
)}  # fmt: skip


SYMMETRIC = frozenset(("cg", "minres"))  # whose preconditioners are symmetric too


def _iterative(name: str) -> Value:
    def rule(A: Matrix, b: Value, x0: Value = None, **options: Value) -> Value:
        if not sparse.issparse(A):
            A = as_sparse(A, name)
        if traced_inside(list(options.values())):
            raise NoRule(f"scipy.sparse.linalg.{name}: only A, b and x0 may be traced; make the others constants")
        start = x0 if x0 is None or isinstance(x0, Tracer) else np.asarray(x0)
        if shape_of(b) == (A.shape[0], 1):
            b = np.ravel(b)
        silent = {key: value for key, value in options.items() if "callback" not in key}
        return solved(A, b, Iterative(name, options), Iterative(name, silent), start), 0

    return rule


def as_sparse(matrix: Matrix, name: str) -> Matrix:
    if not isinstance(matrix, np.ndarray) or ndim_of(matrix) != 2:
        raise NoRule(
            f"scipy.sparse.linalg.{name} with a {type(matrix).__name__} has no derivative rule: assemble the matrix, "
            "or use effgrad.implicit.root for the equation that it solves"
        )
    return sparse.coo_array(matrix) if not isinstance(matrix, Tracer) else from_dense(matrix)


RULES: list[tuple[Value, str, Value]] = [
    (scipy.sparse.linalg, "spsolve", _spsolve), (scipy.sparse.linalg, "spsolve_triangular", _spsolve_triangular),
    (scipy.sparse.linalg, "inv", _inv), (scipy.sparse.linalg, "spilu", _spilu),
    (scipy.sparse.linalg, "splu", Calling(_splu)), (scipy.sparse.linalg, "factorized", Calling(_factorized)),
    *((scipy.sparse.linalg, name, _iterative(name)) for name in ITERATIVE),
]  # fmt: skip
