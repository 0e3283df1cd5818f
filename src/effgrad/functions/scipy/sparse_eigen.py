"""Eigenpairs, singular values and norms of sparse matrices (`scipy.sparse.linalg`), differentiable in the elements.

SciPy computes an eigenpair. Its tangent is the solution of a sparse system with one more row and column.
"""

import scipy.sparse.linalg
from scipy import sparse

from effgrad.arrays.reach import np
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_elements import Matrix, by_data, product
from effgrad.functions.scipy.sparse_linalg import Factors, System, as_sparse, pulled_solution, solution
from effgrad.functions.scipy.sparse_value import from_entries, lifted
from effgrad.functions.scipy.tables import arguments_by_name, reals, traced_inside
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.primitive import Primitive, general
from effgrad.vocabulary import Function, Value


class Eigenproblem:
    """The rows and columns of the elements of a matrix A, and which pairs of A v = w M v SciPy computes.

    `solve` is SciPy's `eigsh` or `eigs`. `masses` has the rows and columns of the elements of M; without `masses`, M is
    the identity. The data of the problem are the elements of A and then those of M.
    """

    def __init__(
        self, rows: Value, columns: Value, size: int, k: int, options: dict[str, Value],
        solve: Function = scipy.sparse.linalg.eigsh, masses: tuple[Value, Value] | None = None,
    ) -> None:  # fmt: skip
        self.rows, self.columns, self.size, self.k, self.options = rows, columns, size, k, options
        self.solve, self.masses = solve, masses

    def matrices(self, data: Value) -> tuple[Matrix, Matrix | None]:
        """The plain matrices A and M."""
        shape, count = (self.size, self.size), len(self.rows)
        matrix = sparse.csc_array((data[:count], (self.rows, self.columns)), shape)
        return matrix, None if self.masses is None else sparse.csc_array((data[count:], self.masses), shape)

    def pairs(self, data: Value) -> Value:
        """Return a column for each pair: the eigenvalue and, below it, the eigenvector."""
        matrix, masses = self.matrices(data)
        values, vectors = self.solve(matrix, self.k, masses, **self.options)
        return np.concatenate([values[None], vectors])

    def weighed(self, data: Value, v: Value) -> Value:
        """The product M v; `data` are the elements of A and M, or the tangents of these elements."""
        if self.masses is None:
            return v
        rows, columns = self.masses
        return product(v, data[len(self.rows) :], rows=rows, columns=columns, size=(self.size, self.size))

    def bordered(self, data: Value, pair: Value) -> tuple[Value, System]:
        """Return the elements and the `System` of [[A - w M, -M v], [v^H M, 0]], which a pair's tangent solves.

        The last equation fixes the length of v, and the phase of a complex v.
        """
        n, diagonal, count = self.size, np.arange(self.size), len(self.rows)
        border, weighed = np.full(n, n), self.weighed(data, pair[1:])
        masses = (diagonal, diagonal) if self.masses is None else self.masses
        shift = np.broadcast_to(-pair[0], (n,)) if self.masses is None else -pair[0] * data[count:]
        rows = np.concatenate([self.rows, masses[0], diagonal, border])
        columns = np.concatenate([self.columns, masses[1], border, diagonal])
        elements = np.concatenate([data[:count], shift, -weighed, np.conj(weighed)])
        system = System(rows, columns, n + 1, Factors())
        system._follow = system
        return elements, system

    def changed(self, t: Value, pair: Value) -> Value:
        """The right-hand side of the bordered system for the tangent `t` of the elements."""
        n, v = self.size, pair[1:]
        force = product(v, t[: len(self.rows)], rows=self.rows, columns=self.columns, size=(n, n))
        if self.masses is None:
            return np.concatenate([-force, np.zeros(1)])
        moved = self.weighed(t, v)
        return np.concatenate([pair[0] * moved - force, np.reshape(-np.sum(np.conj(v) * moved) / 2, (1,))])

    def by_elements(self, g: Value, pair: Value) -> Value:
        """The transpose of `changed`."""
        n, v = self.size, pair[1:]
        parts = -by_data(g[:n], v, self.rows, self.columns)
        if self.masses is None:
            return parts
        return np.concatenate([parts, by_data(pair[0] * g[:n] - g[n] * np.conj(v) / 2, v, *self.masses)])


def _pair_tangent(t: Value, y: Value, data: Value, problem: Eigenproblem) -> Value:
    n, changes = problem.size, []
    for i in range(problem.k):
        elements, system = problem.bordered(data, y[:, i])
        change = solution(problem.changed(t, y[:, i]), elements, system=system)
        changes.append(np.concatenate([change[n:], change[:n]]))
    return np.stack(changes, axis=1)


def _pair_cotangent(g: Value, y: Value, data: Value, problem: Eigenproblem) -> Value:
    result = 0.0
    for i in range(problem.k):
        elements, system = problem.bordered(data, y[:, i])
        pulled = pulled_solution(np.concatenate([g[1:, i], g[:1, i]]), elements, system)
        result = result + problem.by_elements(pulled, y[:, i])
    return result if is_complex(data) else np.real(result)


eigenpairs: Primitive = general(
    lambda data, problem: problem.pairs(data), jvp=_pair_tangent, vjp=_pair_cotangent, name="eigsh"
)


def _eigsh(*args: Value, **kwargs: Value) -> Value:
    options = arguments_by_name(scipy.sparse.linalg.eigsh, args, kwargs)
    with_vectors = options.pop("return_eigenvectors")
    if options["mode"] != "normal":
        raise NoRule("scipy.sparse.linalg.eigsh has a derivative rule in mode='normal'")
    data, problem = _eigenproblem(options, scipy.sparse.linalg.eigsh)
    pairs = eigenpairs(data, problem=problem)
    values = np.real(pairs[0])
    return (values, pairs[1:]) if with_vectors else np.sort(values)


def _eigenproblem(options: dict[str, Value], solve: Function) -> tuple[Value, Value]:
    """Return the data of an eigenproblem, which are the elements of A and M, and the problem."""
    A, k, M = options.pop("A"), options.pop("k"), options.pop("M")
    if traced_inside(list(options.values())):
        raise NoRule(f"scipy.sparse.linalg.{solve.__name__}: A and M may be traced; make the other arguments constants")
    A = A if sparse.issparse(A) else as_sparse(A, solve.__name__)
    data, rows, columns = lifted(A).entries()
    masses = None
    if M is not None:
        elements, *places = lifted(M if sparse.issparse(M) else as_sparse(M, solve.__name__)).entries()
        data, masses = np.concatenate([data, elements]), (places[0], places[1])
    return data, Eigenproblem(rows, columns, A.shape[0], k, _started(options, A.shape[0]), solve, masses)


def _started(options: dict[str, Value], size: int) -> dict[str, Value]:
    """The options with a start for ARPACK, which draws one otherwise: checkpoints run again to the same last digits."""
    drawn = options.get("v0") is None and options.get("rng") is None and options.get("random_state") is None
    if not drawn or options.get("solver", "arpack") != "arpack":
        return options
    return options | {"v0": np.random.default_rng(0).uniform(-1.0, 1.0, size)}


def _eigs(*args: Value, **kwargs: Value) -> Value:
    options = arguments_by_name(scipy.sparse.linalg.eigs, args, kwargs)
    with_vectors = options.pop("return_eigenvectors")
    if options["M"] is not None:
        raise NoRule(
            "scipy.sparse.linalg.eigs has a derivative rule without M: give it spsolve(M, A), or use eigsh where both "
            "are symmetric"
        )
    data, problem = _eigenproblem(options, scipy.sparse.linalg.eigs)
    pairs = eigenpairs(data, problem=problem)
    return (pairs[0], pairs[1:]) if with_vectors else pairs[0]


class SingularProblem(Eigenproblem):
    """The eigenproblem of [[0, A], [A^T, 0]], and which singular triplets of A SciPy computes.

    For each triplet that matrix has the eigenvalue s and the eigenvector (u, v); SciPy computes the triplets.
    """

    def __init__(self, rows: Value, columns: Value, shape: tuple[int, int], k: int, options: dict[str, Value]) -> None:
        m, n = shape
        self.shape, self.places = shape, (rows, columns)
        both = np.concatenate([rows, m + columns]), np.concatenate([m + columns, rows])
        super().__init__(*both, m + n, k, options)

    def pairs(self, data: Value) -> Value:
        matrix = sparse.csc_array((data[: len(data) // 2], self.places), self.shape)
        u, s, vh = scipy.sparse.linalg.svds(matrix, self.k, **self.options)
        return np.concatenate([s[None], u / np.sqrt(2), vh.conj().T / np.sqrt(2)])


def _svds(A: Matrix, k: int = 6, *, return_singular_vectors: Value = True, **options: Value) -> Value:
    if not sparse.issparse(A) or return_singular_vectors not in (True, False):
        raise NoRule("scipy.sparse.linalg.svds has a derivative rule for sparse A, with or without both vectors")
    data, rows, columns = lifted(A).entries()
    reals("sparse.linalg.svds", data)
    problem = SingularProblem(rows, columns, A.shape, k, _started(options, min(A.shape)))
    triplets = eigenpairs(np.concatenate([data, data]), problem=problem)
    m = A.shape[0]
    u, s, v = np.sqrt(2) * triplets[1 : m + 1], triplets[0], np.sqrt(2) * triplets[m + 1 :]
    return (u, s, np.transpose(v)) if return_singular_vectors else np.sort(s)


def _norm(x: Matrix, ord: Value = None, axis: Value = None) -> Value:
    values, rows, columns = lifted(x).entries()
    if axis is None and ord in (None, "fro", "f"):
        return np.linalg.norm(values)
    if axis is None and ord == 2:
        return _svds(x, 1, return_singular_vectors=False)[0]
    sizes = from_entries(rows, columns, np.abs(values), x.shape)
    if axis is None and ord in (1, -1, np.inf, -np.inf):
        sums = sizes.sum(axis=0 if abs(ord) == 1 else 1)
        return np.max(sums) if ord > 0 else np.min(sums)
    if isinstance(axis, int) and ord in (None, 1, 2):
        if ord == 1:
            return sizes.sum(axis=axis)
        squares = sizes.power(2).sum(axis=axis)
        stored = squares > 0
        return np.where(stored, np.sqrt(np.where(stored, squares, 1.0)), 0.0)
    raise NoRule(
        "scipy.sparse.linalg.norm has a derivative rule for the Frobenius norm, the largest singular value, the sums "
        "of rows and columns, and the lengths of each"
    )


RULES: list[tuple[Value, str, Value]] = [
    (scipy.sparse.linalg, "eigsh", _eigsh), (scipy.sparse.linalg, "eigs", _eigs),
    (scipy.sparse.linalg, "svds", _svds), (scipy.sparse.linalg, "norm", _norm),
]  # fmt: skip
