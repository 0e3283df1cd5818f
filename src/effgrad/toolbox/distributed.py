"""Derivatives of sums over blocks of data, on the workers of a `dask.distributed` client.

The program is written for one block, `f(parameters, block)`. Each worker differentiates it on the blocks that it holds,
and the results are added in a binary tree over the blocks' numbers: the sum has the same bits on any number of workers,
in whatever order they finish. A task depends on its block and the parameters alone, so that the scheduler may run it
again when a worker is lost, and no block is counted twice.
"""

import operator
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeAlias

import optree
import scipy.sparse

from effgrad.api import hvp, jacobian, jvp, value_and_grad, vjp
from effgrad.arrays.reach import np
from effgrad.errors import BlockFailed, NotDifferentiable
from effgrad.stage import compile as compile_program
from effgrad.toolbox.compressed import jacobian as coloured_jacobian

Tree: TypeAlias = Any
Block: TypeAlias = Any
Future: TypeAlias = Any
Program: TypeAlias = Callable[[Tree, Block], Any]


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("effgrad.distributed needs Dask: pip install 'effgrad[distributed]'") from error
    return distributed


class Sum:
    """The sum over blocks of a function that returns one real number, with its derivatives.

    Arguments:
        f: `f(parameters, block)`, written in plain NumPy; `parameters` is a pytree of numbers and arrays.
        blocks: the data: a sequence of blocks of any kind (arrays, tuples, data frames, names of files), or a Dask bag,
            array or data frame, whose partitions are the blocks.
        client: a `distributed.Client`; without one, a cluster of processes on this machine, for as long as a `with`
            block of this object lasts.
        progress: show a bar on the terminal (the extra `effgrad[optimize]`). Dask's dashboard has the tasks by name.
        compiled: compile the derivative on each worker (the extra `effgrad[compile]`).

    Raises:
        BlockFailed: the program failed on a block, or a worker died on it again and again; the error names the block.

    >>> from distributed import Client  # Dask's
    >>> blocks = [(np.ones((2, 3)), np.zeros(2)), (np.eye(3), np.ones(3))]
    >>> def loss(w, block):
    ...     x, y = block
    ...     return np.sum((x @ w - y) ** 2)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     total = distributed.Sum(loss, blocks, client)
    ...     total.value_and_grad(np.ones(3))
    (18.0, array([12., 12., 12.]))
    """

    def __init__(
        self,
        f: Program,
        blocks: Any,
        client: Any = None,
        progress: bool = False,
        compiled: bool = False,
    ) -> None:
        self.f, self.progress, self.compiled = f, progress, compiled
        self.client, self._own = client, None
        self._given = blocks
        self._name = f"{getattr(f, '__name__', 'f')}-{uuid.uuid4().hex[:8]}"
        self._data: list[Future] | None = None

    def __enter__(self) -> "Sum":
        if self.client is None:
            self.client = self._own = _distributed().Client(threads_per_worker=1, dashboard_address=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._data = None
        if self._own is not None:
            self._own.close()
            self._own.cluster.close()
            self.client = self._own = None

    def value(self, parameters: Tree) -> float:
        """Return the sum."""
        return float(self._sum("value", parameters))

    def value_and_grad(self, parameters: Tree) -> tuple[float, Tree]:
        """Return the sum and its gradient, a pytree like the parameters."""
        value, gradient = self._sum("value_and_grad", parameters)
        return float(value), gradient

    def grad(self, parameters: Tree) -> Tree:
        """Return the gradient."""
        return self.value_and_grad(parameters)[1]

    def hvp(self, parameters: Tree, direction: Tree) -> Tree:
        """Return the Hessian times a direction, a pytree like the parameters."""
        return self._sum("hvp", parameters, direction)

    def _sum(self, what: str, *args: Tree) -> Any:
        return self._run(what, args, reduce=True)

    def _run(self, what: str, args: tuple[Tree, ...], reduce: bool) -> Any:
        """Submit a task for each block; add the results in a tree, or return them in order."""
        if self.client is None:
            raise ValueError("there is no client: give one, or use the object in a with block")
        call = f"{what}-{self._name}-{uuid.uuid4().hex[:8]}"
        # A task of their own, and not scattered: scattered data cannot be made again when their worker is lost.
        shared = self.client.submit(_given, args, key=f"parameters-{call}", pure=False)
        parts = [
            self.client.submit(
                _derivative, what, self.f, self.compiled, self._name, shared, block, key=f"{call}-{number}", pure=False
            )
            for number, block in enumerate(self._blocks())
        ]
        waiting = list(parts)
        try:
            self._show(parts)
            if not reduce:
                return self._gathered(parts, parts)
            level = 0
            while len(waiting) > 1:
                level += 1
                pairs = [waiting[i : i + 2] for i in range(0, len(waiting), 2)]
                waiting = [
                    self.client.submit(_add, *pair, key=f"add-{call}-{level}-{number}", pure=False)
                    if len(pair) == 2 else pair[0]
                    for number, pair in enumerate(pairs)
                ]  # fmt: skip
            return self._gathered(parts, waiting)[0]
        except BaseException:
            for future in (*parts, *waiting):  # the scheduler drops tasks that nobody wants
                future.release()
            raise

    def _blocks(self) -> list[Future]:
        """Return the blocks as futures that the scheduler can compute again when a worker is lost."""
        if self._data is None:
            given = self._given
            if hasattr(given, "to_delayed"):
                delayed = np.ravel(np.asarray(given.to_delayed(), object)).tolist()
                self._data = self.client.compute(delayed)
            else:
                self._data = [
                    self.client.submit(_given, block, key=f"block-{self._name}-{number}", pure=False)
                    for number, block in enumerate(given)
                ]
            if not self._data:
                raise ValueError("there are no blocks to sum over")
        return self._data

    def _gathered(self, parts: list[Future], results: list[Future]) -> list[Any]:
        try:
            found: list[Any] = self.client.gather(results)
            return found
        except Exception as error:
            for number, part in enumerate(parts):
                if part.status == "error":
                    raise BlockFailed(
                        f"block {number} of {len(parts)} failed: {type(part.exception()).__name__}: {part.exception()}"
                    ) from error
            raise

    def _show(self, parts: Sequence[Future]) -> None:
        if not self.progress:
            return
        try:
            from rich.progress import Progress
        except ImportError as error:
            raise ImportError("progress=True needs rich: pip install 'effgrad[optimize]'") from error
        with Progress() as bar:
            task = bar.add_task("blocks", total=len(parts))
            for _ in _distributed().as_completed(parts, raise_errors=False):
                bar.advance(task)


class LeastSquares(Sum):
    """Half the sum of squares of residuals over blocks, with its derivatives and Gauss-Newton matrix.

    `f(parameters, block)` returns the residuals of a block, an array. The other arguments are those of `Sum`.
    """

    def gauss_newton(self, parameters: Tree) -> Any:
        """Return the sum of J^T J over the blocks, for parameters that are one vector: an array of shape (n, n)."""
        return self._sum("gauss_newton", parameters)

    def gauss_newton_product(self, parameters: Tree, direction: Tree) -> Tree:
        """Return the Gauss-Newton matrix times a direction, without the matrix."""
        return self._sum("gauss_newton_product", parameters, direction)

    def jacobians(self, parameters: Tree) -> list[scipy.sparse.csr_array]:
        """Return the Jacobian of each block's residuals, a SciPy sparse array of shape (residuals, n).

        Its pattern is found on the worker, and it takes as many products as the pattern needs colours.
        """
        found: list[scipy.sparse.csr_array] = self._run("sparse_jacobian", (parameters,), reduce=False)
        return found

    def _run(self, what: str, args: tuple[Tree, ...], reduce: bool) -> Any:
        halves = {"value": "half_squares", "value_and_grad": "half_squares_and_grad", "hvp": "half_squares_hvp"}
        return super()._run(halves.get(what, what), args, reduce)


def _half_squares(residuals: Program) -> Program:
    return lambda x, block: 0.5 * np.sum(np.square(residuals(x, block)))


def _gauss_newton(residuals: Program, x: Tree, block: Block) -> Any:
    j = np.reshape(jacobian(residuals)(x, block), (-1, np.size(x)))
    return j.T @ j


def _gauss_newton_product(residuals: Program, x: Tree, v: Tree, block: Block) -> Tree:
    def of(y: Tree) -> Any:
        return residuals(y, block)

    return vjp(of, x)[1](jvp(of, (x,), (v,))[1])[0]


def _sparse_jacobian(residuals: Program, x: Tree, block: Block) -> scipy.sparse.csr_array:
    try:
        found: scipy.sparse.csr_array = coloured_jacobian(residuals, sparse=True)(x, block)
    except NotDifferentiable:  # an operation makes it dense
        found = scipy.sparse.csr_array(np.reshape(jacobian(residuals)(x, block), (-1, np.size(x))))
    return found


# The derivatives of one block, by name: functions of the program, the parameters and the block.
_OF_BLOCK: dict[str, Callable[..., Any]] = {
    "value": lambda f, x, block: f(x, block),
    "value_and_grad": lambda f, x, block: value_and_grad(f)(x, block),
    "hvp": lambda f, x, v, block: hvp(f, x, v, block),
    "half_squares": lambda f, x, block: _half_squares(f)(x, block),
    "half_squares_and_grad": lambda f, x, block: value_and_grad(_half_squares(f))(x, block),
    "half_squares_hvp": lambda f, x, v, block: hvp(_half_squares(f), x, v, block),
    "gauss_newton": _gauss_newton,
    "gauss_newton_product": _gauss_newton_product,
    "sparse_jacobian": _sparse_jacobian,
}


# What the workers run.


def _given(block: Block) -> Block:
    return block


def _derivative(what: str, f: Program, compiled: bool, name: str, args: tuple[Tree, ...], block: Block) -> Any:
    derivative = _OF_BLOCK[what]
    if not compiled or what == "sparse_jacobian":  # which is no array
        return derivative(f, *args, block)
    worker = _distributed().get_worker()
    programs = vars(worker).setdefault("effgrad_programs", {})
    program = programs.get((what, name))
    if program is None:
        program = programs[what, name] = compile_program(lambda *args: derivative(f, *args))
    return program(*args, block)


def _add(a: Tree, b: Tree) -> Tree:
    return optree.tree_map(operator.add, a, b)
