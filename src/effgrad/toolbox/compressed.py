"""Sparse Jacobians and Hessians: their pattern is found and coloured, and they are computed from few products.

`jacobian(f, sparse=True)` runs `f` once to learn which inputs each output depends on, and colours the columns (or the
rows) of that pattern. Then it needs one run of `f` for all products at once, whatever the size. Each result is tested
on a product with a random vector, so that a change of the pattern is noticed and the pattern is found again.
Curtis, Powell and Reid 1974; Griewank and Walther 2008, chapter 8.
"""

from collections.abc import Callable, Sequence
from typing import ParamSpec

from scipy import sparse

from effgrad import forks
from effgrad.api import directional, gradient, matrices
from effgrad.api.checks import check_outputs
from effgrad.api.run import read_outputs, run
from effgrad.api.tracebacks import Transformed, of_function
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Smooth, Tracer, to_operand
from effgrad.effects import handled
from effgrad.errors import NotDifferentiable
from effgrad.program import read
from effgrad.stage import compile as compiled_program
from effgrad.toolbox import colouring
from effgrad.toolbox.batch import vmap
from effgrad.toolbox.frozen import joined, parted
from effgrad.toolbox.index_sets import IndexSets
from effgrad.trees import Structure, flatten
from effgrad.vocabulary import Function, Value

P = ParamSpec("P")


@of_function
def jacobian(
    f: Callable[P, Value], argnums: int | Sequence[int] = 0, mode: str | None = None, sparse: bool = False,
    compiled: bool = False,
) -> Callable[P, Value]:  # fmt: skip
    """Return a function that computes the Jacobian: for each output leaf and input leaf, of output shape + input shape.

    Arguments:
        f: a function of pytrees of floats and NumPy arrays, in plain NumPy.
        argnums: the argument to differentiate, or a sequence of several, which yields a tuple of Jacobians in place of
            each one (not if sparse).
        mode: "forward" (a run for every 32 input elements), "reverse" (a reverse pass for every 32 output elements), or
            None for the cheaper of the two, by the number of elements or of colours.
        sparse: return a SciPy `csr_array` of shape (m, n), for m output elements and n input elements (of pytrees, one
            leaf after another). The pattern is found by a run of `f`. The matrix needs as many products as the pattern
            needs colours, all in one run: three for a tridiagonal Jacobian of any size. The input is real; the output
            may be complex.
        compiled: with `sparse`, compute the products by a compiled program.

    Returns:
        A function of the same arguments. If not sparse, its result has the structure of the output, with the structure
        of the differentiated argument in place of each leaf. With respect to a complex argument `f` must be
        holomorphic. If sparse, it is a `SparseJacobian`.

    Raises:
        NotDifferentiable: an input is not of floating point, or, if sparse, an operation makes the Jacobian dense.
        ValueError: the mode is unknown.

    For sparse Jacobians: Gebremedhin, Manne and Pothen, What color is your Jacobian? (2005).

    >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> differences = jacobian(lambda x: np.diff(x**2), sparse=True)
    >>> matrix = differences(np.arange(1000.0))
    >>> matrix.shape, matrix.nnz, differences.products
    ((999, 1000), 1998, 2)
    """
    if not sparse:
        _need_no_compiler(compiled, "jacobian")
        return matrices.jacobian(f, argnums, mode)
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"mode is {mode!r}; choose 'forward', 'reverse' or None")
    return SparseJacobian(f, _one(argnums), mode, compiled)


@of_function
def hessian(
    f: Callable[P, Value], argnums: int | Sequence[int] = 0, mode: str | None = None, sparse: bool = False,
    compiled: bool = False,
) -> Callable[P, Value]:  # fmt: skip
    """Return a function that computes the Hessian of a scalar function.

    Arguments:
        f: a function that returns one real number.
        argnums: as for `grad`.
        mode: None for forward over reverse, a run for every 32 input elements, in the structure of
            `jacobian(grad(f))`. "hessian" for one reverse pass by edge pushing, which needs one array (or number) as
            its input and pays if the Hessian is sparse. "star" or "acyclic" for a sparse Hessian from few products with
            vectors, by a colouring of its pattern.
        sparse: return a SciPy sparse array of shape (n, n), for an input of size n; implies mode "hessian" if none is
            given.
        compiled: with "star" and "acyclic", compute the products by a compiled program.

    Returns:
        A function of the same arguments that returns the matrix. With respect to an array of shape s it has the shape
        s + s; with respect to a pytree there is a matrix for each pair of leaves.

    Raises:
        NotDifferentiable: as for `grad`, or the mode does not support such an input.
        ValueError: the mode is unknown.

    Sigal 2024, section 5.1; Gower and Mello 2012; Gebremedhin, Tarafdar, Manne and Pothen 2007.

    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    >>> hessian(lambda x: np.sum(x[1:] * x[:-1]), sparse=True)(np.ones(1000)).nnz
    1998
    """
    if mode not in SYMMETRIC:
        _need_no_compiler(compiled, "hessian")
        return matrices.hessian(f, argnums, mode, sparse)
    return SparseJacobian(gradient.grad(f, _one(argnums)), _one(argnums), mode, compiled)


def _need_no_compiler(compiled: bool, name: str) -> None:
    if compiled:
        raise ValueError(f"compiled=True is about products of a coloured matrix: write effgrad.compile({name}(f))")


def _one(argnums: int | Sequence[int]) -> int:
    if not isinstance(argnums, int | np.integer):
        raise ValueError("a sparse Jacobian is one with respect to one argument: give argnums as one number")
    return int(argnums)


# For each mode: how the columns of a symmetric matrix are coloured, and how its elements are read off the products.
SYMMETRIC = {
    "star": (colouring.star, colouring.read_star),
    "acyclic": (colouring.acyclic, colouring.read_acyclic),
}
# A reverse pass costs about as much as this many tangents.
PASS_BACK = 2.0


class Plan:
    """How to compute a matrix of a known pattern: its colouring, and how elements are read off the products.

    With `backward`, the rows are coloured, and the products are pullbacks of cotangents.
    """

    def __init__(self, pattern: Value, mode: str | None) -> None:
        self.pattern, self.backward = pattern, False
        if mode in SYMMETRIC:
            colour, self._read = SYMMETRIC[mode]
            # The pattern may be asymmetric, since an element may be known to be zero on one side of the diagonal only.
            self.pattern = ((pattern + pattern.T) != 0).tocsr()
            self.colours = colour(self.pattern)
        else:
            columns = None if mode == "reverse" else colouring.distance2(pattern)
            rows = None if mode == "forward" else self._rows(columns)
            self.backward = columns is None or (rows is not None and PASS_BACK * _count(rows) < _count(columns))
            self.colours, self._read = rows if self.backward else columns, colouring.read_columns
        self.products = _count(self.colours)
        self.upright = self.pattern.T.tocsr() if self.backward else self.pattern
        self.seeds = self._seeds()
        self.bounds = np.abs(self.seeds[-1])

    def _rows(self, columns: Value) -> Value:
        """Return the colours of the rows; None if they cannot be cheaper, since the fullest column needs too many."""
        least = np.diff(self.pattern.tocsc().indptr).max(initial=0)
        if columns is not None and PASS_BACK * least >= _count(columns):
            return None
        return colouring.distance2(self.pattern.T)

    def _seeds(self) -> Value:
        """Return a direction for each colour, and after them a random direction for the test."""
        size = len(self.colours)
        seeds = np.zeros((self.products + 1, size))
        seeds[self.colours, np.arange(size)] = 1.0
        seeds[-1] = np.random.default_rng(0).choice([-1.0, 1.0], size) * np.linspace(0.5, 1.5, size)
        return seeds

    def matrix(self, products: Value) -> Value:
        """Return the matrix, or None if its product with the random direction differs from the computed one."""
        data = self._read(self.upright, self.colours, products[:-1])
        result = self._like(data)
        bound = self._like(np.abs(data)) @ self.bounds + np.abs(products[-1])
        with np.errstate(invalid="ignore"):
            wrong = np.abs(result @ self.seeds[-1] - products[-1]) > 1e-6 * bound
        if np.any(wrong):
            return None
        return result.T.tocsr() if self.backward else result.copy()

    def _like(self, data: Value) -> Value:
        return sparse.csr_array((data, self.upright.indices, self.upright.indptr), self.upright.shape)


def _count(colours: Value) -> int:
    return int(colours.max(initial=-1)) + 1


class SparseJacobian(Transformed[..., Value]):
    """A function that returns the Jacobian of `f` as a SciPy `csr_array`; see `jacobian`.

    `pattern` and `products` describe the latest call: the positions of the elements, as a sparse array of truth values,
    and the number of products (colours) that one evaluation needs.
    """

    def __init__(self, f: Function, argnums: int, mode: str | None, compiled: bool) -> None:
        super().__init__(self._at_point, "jacobian", SparseJacobian, f)
        self.f, self.argnums, self.mode, self.compiled = f, argnums, mode, compiled
        self._plans: dict[Value, Plan] = {}
        self._latest: Plan | None = None
        self._lock = forks.lock()
        strategies = {"forward": self._forward, "backward": self._backward}
        self._run = {name: compiled_program(way) if compiled else way for name, way in strategies.items()}

    def __repr__(self) -> str:
        return f"<sparse jacobian({getattr(self.f, '__name__', type(self.f).__name__)})>"

    def __reduce__(self) -> Value:
        return SparseJacobian, (self.f, self.argnums, self.mode, self.compiled)

    @property
    def pattern(self) -> Value:
        """The positions of the elements of the latest Jacobian, as a sparse array of truth values."""
        return self._known().pattern.copy()

    @property
    def products(self) -> int:
        """The number of products that the latest Jacobian was computed from."""
        return self._known().products

    def _known(self) -> Plan:
        if self._latest is None:
            raise NotDifferentiable("the pattern is known after the first call: call the sparse Jacobian at a point")
        return self._latest

    def _at_point(self, *args: Value, **kwargs: Value) -> Value:
        if handled(Smooth) and any(isinstance(leaf, Tracer) for leaf in flatten((args, kwargs))[0]):
            raise NotDifferentiable(
                "a sparse Jacobian has no derivative, and is no part of a compiled program or a batch: leave out "
                "sparse=True there, or compile it alone, jacobian(f, sparse=True, compiled=True)"
            )
        leaves, _ = flatten((args, kwargs))
        key = tuple((np.shape(leaf), str(getattr(leaf, "dtype", type(leaf)))) for leaf in leaves)
        with self._lock:
            plan = self._plans.get(key)
        result = None if plan is None else self._at(plan, args, kwargs)
        if result is None:
            plan = self._plan(*args, **kwargs)
            result = self._at(plan, args, kwargs)
            if result is None:
                raise NotDifferentiable(
                    "the products of a sparse Jacobian do not belong to one matrix: the function gives another result "
                    "at each call (random numbers, a counter), or is so badly scaled that its derivatives are lost"
                )
        with self._lock:
            self._plans[key] = self._latest = plan  # type: ignore[assignment]
        return result

    def _at(self, plan: Plan, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        return plan.matrix(self._run["backward" if plan.backward else "forward"](plan.seeds, args, kwargs))

    def _of_vector(self, args: tuple[Value, ...], kwargs: dict[str, Value]) -> tuple[Function, Value, Structure]:
        """Return `f` as a function from a vector to a vector, with the argument's vector and its structure."""
        if not -len(args) <= self.argnums < len(args):
            raise ValueError(f"argnums is {self.argnums}, but the function was called with {len(args)} arguments")
        given = list(args)
        leaves, tree = flatten(given[self.argnums])
        leaves = list(map(to_operand, leaves))
        shapes = [shape_of(leaf) for leaf in leaves]

        def g(x: Value) -> Value:
            given[self.argnums] = tree.unflatten(parted(x, shapes))
            outputs = flatten(read(self.f)(*given, **kwargs))[0]
            check_outputs(outputs)
            return joined(outputs)

        return g, joined(leaves), tree

    def _forward(self, seeds: Value, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        g, x, _ = self._of_vector(args, kwargs)
        return vmap(lambda t: directional.jvp(g, (x,), (t,))[1])(seeds)

    def _backward(self, seeds: Value, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        g, x, _ = self._of_vector(args, kwargs)
        return vmap(lambda t: gradient.vjp(g, x)[1](t)[0])(seeds)

    def _plan(self, *args: Value, **kwargs: Value) -> Plan:
        """Return how to compute the Jacobian, whose pattern is found by one run of the function on index sets."""
        g, x, _ = self._of_vector(args, kwargs)
        if np.result_type(x).kind != "f":
            raise NotDifferentiable(f"a sparse Jacobian is one by real numbers; the input is of {np.result_type(x)}")
        outputs = run(IndexSets(np.size(x)), lambda inputs: g(*inputs), [(x, 0)], read_outputs)
        (found,), (value,) = outputs.shadows, outputs.values
        mode = self.mode
        if np.result_type(value).kind == "c":  # a pullback is of real parts
            if mode == "reverse":
                raise NotDifferentiable("mode='reverse' is for real outputs; the output is complex: leave mode= out")
            mode = "forward"
        if found is None:
            return Plan(sparse.csr_array((np.size(value), np.size(x)), dtype=bool), mode)
        found.sort_indices()
        return Plan(found.astype(bool), mode)
