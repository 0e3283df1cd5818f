"""Derivatives of sums over blocks of data, on the workers of a `dask.distributed` client.

The program is written for one block, `f(parameters, block)`. Each worker differentiates it on the blocks that it holds.
The results are added in a binary tree over the blocks' numbers, so the sum has the same bits on any number of workers,
in whatever order they finish. A task depends only on its block and the parameters. So the scheduler may run it again
when a worker is lost, and no block is counted twice.
"""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, TypeAlias

import scipy.sparse

from effgrad.api.checks import is_number
from effgrad.arrays.reach import np
from effgrad.arrays.value import to_operand
from effgrad.errors import BlockFailed, NotDifferentiable, NoWorkers, require_function
from effgrad.toolbox.block_derivatives import (
    Program,
    add,
    block_derivative,
    identity,
    joined_triangles,
)
from effgrad.trees import flatten
from effgrad.vocabulary import Tree, Value

Future: TypeAlias = Any


def _distributed() -> Value:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("effgrad.distributed needs Dask: pip install 'effgrad[distributed]'") from error
    return distributed


def _check_options(name: str, blocks: Value, client: Value, no_workers_timeout: Value) -> None:
    """Raise an error if the blocks are no sequence, the client is not Dask's, or the timeout is not a duration."""
    sequence = isinstance(blocks, Iterable) and not isinstance(blocks, str | bytes | dict | set)
    if not sequence and not hasattr(blocks, "to_delayed"):
        raise TypeError(f"{name} takes a sequence of blocks; it was given {blocks!r}, a {type(blocks).__name__}")
    if client is not None and (isinstance(client, type) or not hasattr(client, "submit")):
        raise TypeError(f"{name} takes a distributed.Client; it was given {client!r}, a {type(client).__name__}")
    if not isinstance(no_workers_timeout, int | float) or not no_workers_timeout >= 0:
        raise ValueError(f"no_workers_timeout is a number of seconds, not {no_workers_timeout!r}")


class Sum:
    """The sum over blocks of a function that returns one real number, with its derivatives.

    Arguments:
        f: `f(parameters, block)`, written in plain NumPy; `parameters` is a pytree of numbers and arrays.
        blocks: the data, as a sequence of blocks of any kind (arrays, tuples, data frames, names of files), or of
            `dask.delayed` calls that load them on the workers; or a Dask bag, array or data frame, whose partitions are
            the blocks.
        client: a `distributed.Client`. The default is a cluster of processes on this machine, which lasts as long as a
            `with` block of this object.
        progress: show a bar on the terminal (the extra `effgrad[optimize]`). Dask's dashboard shows the tasks by name.
        compiled: compile the derivative on each worker (the extra `effgrad[compile]`).
        no_workers_timeout: the number of seconds without any worker after which a sum raises an error.

    Raises:
        BlockFailed: the program failed on a block, or workers died on it repeatedly; the error names the block.
        NoWorkers: the cluster has no workers, and none came; or it was closed.

    A block's derivative is computed on its worker, and the parts are added in a tree, always in the same order.

    >>> from distributed import Client  # Dask's
    >>> blocks = [(np.ones((2, 3)), np.zeros(2)), (np.eye(3), np.ones(3))]
    >>> def loss(w, block):
    ...     x, y = block
    ...     return np.sum((x @ w - y) ** 2)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     total = distributed.Sum(loss, blocks, client)
    ...     total.value_and_grad(np.ones(3))
    (18.0, array([12., 12., 12.]))
    """

    def __init__(
        self,
        f: Program,
        blocks: Value,
        client: Value = None,
        progress: bool = False,
        compiled: bool = False,
        no_workers_timeout: float = 60.0,
    ) -> None:
        require_function(f"distributed.{type(self).__name__}", f)
        _check_options(f"distributed.{type(self).__name__}", blocks, client, no_workers_timeout)
        self.f, self.progress, self.compiled = f, progress, compiled
        self.no_workers_timeout = no_workers_timeout
        self.client, self._own = client, None
        self._given = blocks
        self._name = f"{getattr(f, '__name__', 'f')}-{uuid.uuid4().hex[:8]}"
        self._data: list[Future] | None = None

    def __enter__(self) -> "Sum":
        if self.client is None:
            self.client = self._own = _distributed().Client(threads_per_worker=1, dashboard_address=":0")
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
        """Return the gradient, a pytree like the parameters."""
        return self.value_and_grad(parameters)[1]

    def hvp(self, parameters: Tree, direction: Tree) -> Tree:
        """Return the Hessian times a direction, a pytree like the parameters."""
        return self._sum("hvp", parameters, direction)

    def _sum(self, what: str, *args: Tree) -> Value:
        return self._run(what, args, add)

    def _run(self, what: str, args: tuple[Tree, ...], join: Callable[[Tree, Tree], Tree] | None) -> Value:
        """Submit a task for each block; join the results by pairs in a tree, or return them in order."""
        for leaf in flatten(args)[0]:
            if not is_number(to_operand(leaf)):
                raise NotDifferentiable(f"the parameters hold {leaf!r}, a {type(leaf).__name__}, which is no number")
        if self.client is None:
            _distributed()  # if Dask is missing, this error comes first and names the extra
            raise ValueError("there is no client: give one, or use the object in a with block")
        call = f"{what}-{self._name}-{uuid.uuid4().hex[:8]}"
        # A task passes the parameters on. Scattered data would be lost with their worker, but a task can run again.
        shared = self.client.submit(identity, args, key=f"parameters-{call}", pure=False)
        parts = [
            self.client.submit(
                block_derivative, what, self.f, self.compiled, self._name, shared, block, key=f"{call}-{number}",
                pure=False,
            )  # fmt: skip
            for number, block in enumerate(self._blocks())
        ]
        waiting = list(parts)
        try:
            level = 0
            while join and len(waiting) > 1:
                level += 1
                pairs = [waiting[i : i + 2] for i in range(0, len(waiting), 2)]
                waiting = [
                    self.client.submit(join, *pair, key=f"join-{call}-{level}-{number}", pure=False)
                    if len(pair) == 2 else pair[0]
                    for number, pair in enumerate(pairs)
                ]  # fmt: skip
            self._wait(parts, waiting)
            found = self._gathered(parts, waiting)
            return found[0] if join else found
        except BaseException:
            for future in (*parts, *waiting):  # the scheduler drops tasks whose futures are released
                future.release()
            raise

    def _blocks(self) -> list[Future]:
        """Return the blocks as futures that the scheduler can compute again when a worker is lost."""
        if self._data is None:
            lazy = hasattr(self._given, "to_delayed")
            blocks = np.ravel(np.asarray(self._given.to_delayed(), object)).tolist() if lazy else list(self._given)
            if blocks and all(hasattr(block, "__dask_graph__") for block in blocks):
                self._data = self.client.compute(blocks)
            else:
                self._data = [
                    self.client.submit(identity, block, key=f"block-{self._name}-{number}", pure=False)
                    for number, block in enumerate(blocks)
                ]
            if not self._data:
                raise ValueError("there are no blocks to sum over")
        return self._data

    def _wait(self, parts: list[Future], results: list[Future]) -> None:
        """Wait until all results have arrived, and show the number of finished parts; raise if there are no workers."""
        alive = time.monotonic()
        with self._bar(len(parts)) as show:
            while not self._arrived(results):
                show(sum(part.done() for part in parts))
                if self.client.nthreads():
                    alive = time.monotonic()
                elif time.monotonic() - alive >= self.no_workers_timeout:
                    raise NoWorkers(
                        f"there has been no worker for {self.no_workers_timeout:g} seconds: start some, or give "
                        "no_workers_timeout= as many seconds as they take to start"
                    )
            show(len(parts))

    def _arrived(self, results: list[Future]) -> bool:
        """Wait for results for some time; return whether all have arrived."""
        try:
            with self.client.as_current():
                _distributed().wait(results, timeout=0.2 if self.progress else 1.0)
        except TimeoutError:
            return False
        except CancelledError as error:
            raise NoWorkers("the tasks of a sum were cancelled: its cluster or client was closed") from error
        return True

    def _gathered(self, parts: list[Future], results: list[Future]) -> list[Value]:
        """Return the results, or raise an error that names the blocks that failed."""
        try:
            found: list[Value] = self.client.gather(results)
            return found
        except Exception as error:
            failed = [number for number, part in enumerate(parts) if part.status == "error"]
            if not failed:
                raise
            first = parts[failed[0]].exception(timeout=10)
            # If a worker dies, all its blocks fail, and any of them may be the cause. So all are named.
            killed = isinstance(first, _distributed().KilledWorker)
            failed = failed if killed else failed[:1]
            named = f"block{'s' if len(failed) > 1 else ''} {', '.join(map(str, failed))} of {len(parts)}"
            raise BlockFailed(f"{named} failed: {type(first).__name__}: {first}") from error

    @contextlib.contextmanager
    def _bar(self, total: int) -> Iterator[Callable[[int], None]]:
        """Yield a function that shows how many of the blocks are done."""
        if not self.progress:
            yield lambda done: None
            return
        try:
            from rich.progress import Progress
        except ImportError as error:
            raise ImportError("progress=True needs rich: pip install 'effgrad[optimize]'") from error
        with Progress() as bar:
            task = bar.add_task("blocks", total=total)
            yield lambda done: bar.update(task, completed=done)


class LeastSquares(Sum):
    """Half the sum of squares of residuals over blocks, with its derivatives and Gauss-Newton matrix.

    Arguments:
        f: a function `f(parameters, block)` that returns the residuals of a block, an array.
        blocks: as for `Sum`.
        client: as for `Sum`.
        progress: as for `Sum`.
        compiled: as for `Sum`.
        no_workers_timeout: as for `Sum`.

    Raises:
        BlockFailed: as for `Sum`.
        NoWorkers: as for `Sum`.

    >>> from distributed import Client  # Dask's
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     fit = distributed.LeastSquares(lambda w, block: block @ w - 1, [np.eye(2), np.ones((1, 2))], client)
    ...     fit.value(np.zeros(2)), fit.gauss_newton(np.zeros(2)).tolist()
    (1.5, [[2.0, 1.0], [1.0, 2.0]])
    """

    def gauss_newton(self, parameters: Tree) -> Value:
        """Return the sum of J^T J over the blocks: an array of shape (n, n), for n numbers in the parameters."""
        return self._sum("gauss_newton", parameters)

    def gauss_newton_product(self, parameters: Tree, direction: Tree) -> Tree:
        """Return the Gauss-Newton matrix times a direction, without computing the matrix."""
        return self._sum("gauss_newton_product", parameters, direction)

    def triangle(self, parameters: Tree) -> Value:
        """Return the triangular factor of the Jacobian with the residuals as its last column, [J r] = Q R.

        It is an array of shape (n + 1, n + 1), for n numbers in the parameters. Its last column holds the residuals,
        and the rest the Jacobian, of a problem with the same value, gradient and Gauss-Newton matrix. Unlike J^T J, it
        does not square the condition number of J. The factors of blocks are joined by pairs (Demmel, Grigori, Hoemmen
        and Langou 2012, section 3).
        """
        found = self._run("triangle", (parameters,), joined_triangles)
        return np.concatenate([found, np.zeros((found.shape[1] - found.shape[0], found.shape[1]))])

    def count(self, parameters: Tree) -> int:
        """Return the number of residuals."""
        return int(self._sum("count", parameters))

    def jacobians(self, parameters: Tree) -> list[scipy.sparse.csr_array]:
        """Return the Jacobian of each block's residuals, a SciPy sparse array of shape (residuals, n).

        Its pattern is found on the worker, and it needs as many products as the pattern needs colours.
        """
        found: list[scipy.sparse.csr_array] = self._run("sparse_jacobian", (parameters,), None)
        return found

    def _run(self, what: str, args: tuple[Tree, ...], join: Callable[[Tree, Tree], Tree] | None) -> Value:
        halves = {"value": "half_squares", "value_and_grad": "half_squares_and_grad", "hvp": "half_squares_hvp"}
        return super()._run(halves.get(what, what), args, join)


class Equations(Sum):
    """The sum over blocks of a function that returns an array, with its Jacobian, as equations for `optimize.root`.

    Arguments:
        f: a function `f(parameters, block)` that returns an array of the same shape for every block,
            like the score of an estimator.
        blocks: as for `Sum`.
        client: as for `Sum`.
        progress: as for `Sum`.
        compiled: as for `Sum`.
        no_workers_timeout: as for `Sum`.

    Raises:
        BlockFailed: as for `Sum`.
        NoWorkers: as for `Sum`.

    >>> from distributed import Client  # Dask's
    >>> blocks = [np.eye(2), np.ones((1, 2))]
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     score = distributed.Equations(lambda w, block: block.T @ (block @ w - 1), blocks, client)
    ...     score.value(np.zeros(2)).tolist()
    [-2.0, -2.0]
    """

    def value(self, parameters: Tree) -> Value:
        """Return the sum as one vector."""
        return self._sum("vector", parameters)

    def jacobian(self, parameters: Tree) -> Value:
        """Return the Jacobian of the sum: an array of shape (m, n), for n numbers in the parameters."""
        return self._sum("matrix", parameters)


def few_residuals(
    total: LeastSquares, unflatten: Callable[[Any], Tree], loss: str
) -> tuple[Callable[[Value], Value], Callable[[Value], Value]]:
    """Return functions from a vector to the residuals and to their Jacobian, both reduced to n + 1 rows.

    The rows are the result of multiplication by an orthogonal matrix. The methods of `scipy.optimize.least_squares` use
    only lengths and inner products, which are the same. Both functions read one factor, which is kept for the latest
    vector.
    """
    if loss != "linear":
        raise ValueError("the residuals of a distributed sum are joined: write the loss into those of a block")
    latest: dict[bytes, Value] = {}

    def triangle(x: Value) -> Value:
        point = x.tobytes()
        if point not in latest:
            latest.clear()
            latest[point] = total.triangle(unflatten(x))
        return latest[point]

    return lambda x: triangle(x)[:, -1], lambda x: triangle(x)[:, :-1]
