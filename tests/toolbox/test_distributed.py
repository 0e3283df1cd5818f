"""Sums over blocks on workers of Dask: right, with the same bits on any workers, or an error when workers die.

Every wait has an end. Tests that send signals or kill workers run apart, in a process of their own.
"""

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.optimize
from processes import run_apart, within

from effgrad import grad, hessian, hvp, optimize
from effgrad.errors import BlockFailed, NoWorkers
from effgrad.toolbox import compressed
from effgrad.toolbox.distributed import Equations, LeastSquares, Sum

distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(3)
BLOCKS = [(RNG.normal(size=(n, 4)), RNG.normal(size=n)) for n in (5, 3, 8, 1, 6)]
W = {"w": RNG.normal(size=4), "b": 0.3}


def loss(p, block):
    x, y = block
    return np.sum(np.log(np.cosh(x @ p["w"] + p["b"] - y)))


def residuals(w, block):
    x, y = block
    return np.tanh(x @ w) - y


def whole(p):
    return sum(loss(p, block) for block in BLOCKS)


@contextlib.contextmanager
def threads(**options):
    """A client whose workers are threads of this process, opened and closed in time."""
    with within(30):
        client = distributed.Client(processes=False, threads_per_worker=1, dashboard_address=":0", **options)
    try:
        yield client
    finally:
        with within(30):
            client.close()


@pytest.fixture(scope="module")
def client():
    with threads(n_workers=2) as client:
        yield client


@pytest.fixture(autouse=True)
def no_test_waits_for_ever():
    with within(90):  # more than what runs apart may take
        yield


def close(a, b, rtol=1e-12):
    np.testing.assert_allclose(a["w"], b["w"], rtol=rtol)
    np.testing.assert_allclose(a["b"], b["b"], rtol=rtol)


@pytest.mark.parametrize("compiled", [False, True])
def test_value_gradient_and_hessian_product(client, compiled):
    total = Sum(loss, BLOCKS, client, compiled=compiled)
    value, gradient = total.value_and_grad(W)
    np.testing.assert_allclose([value, total.value(W)], whole(W), rtol=1e-12)
    close(gradient, grad(whole)(W))
    close(total.hvp(W, W), hvp(whole, W, W))


def test_the_sum_has_the_same_bits_whoever_adds(client):
    first = Sum(loss, BLOCKS, client).grad(W)
    with threads(n_workers=3) as other:
        second = Sum(loss, BLOCKS, other).grad(W)
    assert first["w"].tobytes() == second["w"].tobytes() and first["b"] == second["b"]


def test_least_squares(client):
    total, w = LeastSquares(residuals, BLOCKS, client), W["w"]

    def objective(w):
        return 0.5 * sum(np.sum(residuals(w, block) ** 2) for block in BLOCKS)

    j = np.concatenate([np.array([grad(lambda w, i=i, b=b: residuals(w, b)[i])(w) for i in range(len(b[1]))])
                        for b in BLOCKS])  # fmt: skip
    np.testing.assert_allclose(total.value_and_grad(w)[1], grad(objective)(w), rtol=1e-12)
    np.testing.assert_allclose(total.hvp(w, w), hessian(objective)(w) @ w, rtol=1e-10)
    np.testing.assert_allclose(total.gauss_newton(w), j.T @ j, rtol=1e-12)
    np.testing.assert_allclose(total.gauss_newton_product(w, w), j.T @ (j @ w), rtol=1e-12)
    np.testing.assert_allclose(np.vstack([part.toarray() for part in total.jacobians(w)]), j, rtol=1e-12)


@pytest.mark.parametrize("method", ["BFGS", "trust-ncg", "Newton-CG"])
def test_optimize_takes_a_sum_as_its_objective(client, method):
    found = optimize.minimize(Sum(loss, BLOCKS, client), W, method=method)
    here = optimize.minimize(whole, W, method="BFGS")
    np.testing.assert_allclose(found.fun, here.fun, rtol=1e-6)
    assert set(found.x) == {"w", "b"} and "of a distributed sum" in found.supplied


@pytest.mark.parametrize("method", ["trust-exact", "trust-ncg", "BFGS"])
def test_optimize_uses_gauss_and_newton_for_squares(client, method):
    truth = np.array([0.3, -0.2, 0.5, 0.1])
    blocks = [(x, np.tanh(x @ truth)) for x, _ in BLOCKS]
    found = optimize.minimize(LeastSquares(residuals, blocks, client), np.zeros(4), method=method)
    np.testing.assert_allclose(found.x, truth, atol=1e-4)
    with pytest.raises(ValueError, match="choose the method trust-ncg"):
        optimize.minimize(Sum(loss, BLOCKS, client), W, method="dogleg")


def curve(t, p):
    return p["a"] * np.exp(-p["k"] * t) + p["c"]


def points(seed, count):
    t = np.linspace(0.0, 3.0, count)
    return t, curve(t, {"a": 2.0, "k": 1.3, "c": 0.2}) + 0.05 * np.random.default_rng(seed).normal(size=count)


POINTS = [points(seed, count) for seed, count in enumerate((20, 2, 1, 14))]
START = {"a": 1.0, "k": 1.0, "c": 0.0}
ALL_T, ALL_Y = (np.concatenate(parts) for parts in zip(*POINTS, strict=True))


def misfit(p, block):
    t, y = block
    return curve(t, p) - y


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize("compiled", [False, True])
def test_least_squares_takes_a_sum_and_never_gathers_residuals(client, method, compiled):
    """SciPy takes the same path on four joined residuals as on all: every method sees lengths and products alone."""
    found = optimize.least_squares(LeastSquares(misfit, POINTS, client, compiled=compiled), START, method=method)
    here = optimize.least_squares(lambda p: curve(ALL_T, p) - ALL_Y, START, method=method)
    assert found.fun.shape == (4,) and found.nfev == here.nfev and "of a distributed sum" in found.supplied
    np.testing.assert_allclose([found.x[k] for k in "ack"], [here.x[k] for k in "ack"], rtol=1e-7)
    np.testing.assert_allclose([found.cost, *found.grad], [here.cost, *here.grad], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found.history, here.history, rtol=1e-8)


def test_least_squares_of_a_sum_keeps_bounds_and_refuses_losses(client):
    total = LeastSquares(misfit, POINTS, client)
    bounds = [0.0, 0.1, 0.0], [1.5, 1.0, 5.0]
    start = {"a": 1.0, "k": 2.0, "c": 0.5}
    found = optimize.least_squares(total, start, bounds)
    here = optimize.least_squares(lambda p: curve(ALL_T, p) - ALL_Y, start, bounds)
    np.testing.assert_allclose([found.x[k] for k in "ack"], [here.x[k] for k in "ack"], rtol=1e-6)
    with pytest.raises(ValueError, match="write the loss into those of a block"):
        optimize.least_squares(total, START, loss="huber")


@pytest.mark.parametrize("absolute_sigma", [False, True])
def test_curve_fit_takes_a_sum(client, absolute_sigma):
    found, covariance = optimize.curve_fit(
        LeastSquares(misfit, POINTS, client), p0=START, absolute_sigma=absolute_sigma
    )
    here, expected = scipy.optimize.curve_fit(
        lambda t, a, c, k: curve(t, {"a": a, "c": c, "k": k}), ALL_T, ALL_Y, (1.0, 0.0, 1.0), np.ones(len(ALL_T)),
        absolute_sigma,
    )  # fmt: skip
    np.testing.assert_allclose([found[k] for k in "ack"], here, rtol=1e-5)
    np.testing.assert_allclose(covariance, expected, rtol=1e-4)
    with pytest.raises(ValueError, match="give p0 alone"):
        optimize.curve_fit(LeastSquares(misfit, POINTS, client), ALL_T, ALL_Y)


def test_root_takes_a_sum_of_equations(client):
    """The score of a Poisson regression: its root is the estimate of the largest likelihood."""
    counts = [(x, np.arange(len(x)) % 4) for x, _ in BLOCKS]

    def score(p, block):
        x, k = block
        rest = k - np.exp(x @ p["w"] + p["b"])
        return np.append(x.T @ rest, np.sum(rest))

    def likelihood(p):
        return sum(np.sum(np.exp(x @ p["w"] + p["b"]) - k * (x @ p["w"] + p["b"])) for x, k in counts)

    start = {"w": np.zeros(4), "b": 0.0}
    found = optimize.root(Equations(score, counts, client), start)
    here = optimize.minimize(likelihood, start, tol=1e-12)
    close(found.x, here.x, rtol=1e-5)
    assert found.success and found.supplied == "hybr: the Jacobian, of a distributed sum"


def test_jacobians_of_blocks_take_as_many_products_as_colours(client, monkeypatch):
    """Each residual reads two of many unknowns: two products, and not one for each unknown."""
    counted = []
    run = compressed.SparseJacobian.__call__

    def watched(self, *args):
        result = run(self, *args)
        counted.append(self.products)
        return result

    monkeypatch.setattr(compressed.SparseJacobian, "__call__", watched)
    blocks = [np.arange(0, 150), np.arange(150, 299)]
    total = LeastSquares(lambda x, rows: x[rows] * x[rows + 1] - 1.0, blocks, client)
    x = RNG.normal(size=300)
    parts = total.jacobians(x)
    for part, rows in zip(parts, blocks, strict=True):
        expected = np.zeros((len(rows), 300))
        expected[np.arange(len(rows)), rows] = x[rows + 1]
        expected[np.arange(len(rows)), rows + 1] = x[rows]
        np.testing.assert_allclose(part.toarray(), expected)
    assert counted == [2, 2] and all(part.nnz < 301 for part in parts)


def test_partitions_of_dask_collections(client):
    import dask
    import dask.array as da
    import dask.bag as db

    x = RNG.normal(size=(12, 4))
    expected = grad(lambda w: np.sum(np.sin(x @ w)))(W["w"])
    array = da.from_array(x, chunks=(5, 4))
    np.testing.assert_allclose(Sum(lambda w, b: np.sum(np.sin(b @ w)), array, client).grad(W["w"]), expected)
    loaded = [dask.delayed(lambda start: x[start : start + 5])(start) for start in (0, 5, 10)]
    np.testing.assert_allclose(Sum(lambda w, b: np.sum(np.sin(b @ w)), loaded, client).grad(W["w"]), expected)
    bag = db.from_sequence(list(x), npartitions=4)
    np.testing.assert_allclose(
        Sum(lambda w, rows: np.sum(np.sin(np.array(rows) @ w)), bag, client).grad(W["w"]), expected
    )


def test_a_failing_block_is_named_and_the_client_goes_on(client):
    def strict(w, block):
        if len(block[1]) == 8:
            raise ZeroDivisionError("no spread")
        return loss(w, block)

    with pytest.raises(BlockFailed, match="block 2 of 5 failed: ZeroDivisionError: no spread"):
        Sum(strict, BLOCKS, client).grad(W)
    close(Sum(loss, BLOCKS, client).grad(W), grad(whole)(W))


def test_progress_is_shown(client, capsys):
    Sum(loss, BLOCKS, client, progress=True).value(W)
    assert "blocks" in capsys.readouterr().out


def test_without_blocks_or_client(client):
    with pytest.raises(ValueError, match="there are no blocks"):
        Sum(loss, [], client).value(W)
    with pytest.raises(ValueError, match="give one, or use the object in a with block"):
        Sum(loss, BLOCKS).value(W)


def test_an_interrupt_cancels_the_tasks(client, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    total = Sum(lambda w, b: (time.sleep(0.2), loss(w, b))[1], BLOCKS, client)
    with monkeypatch.context() as patch:
        patch.setattr(total, "_gathered", interrupted)
        with pytest.raises(KeyboardInterrupt):
            total.grad(W)
    close(total.grad(W), grad(whole)(W))


def interrupt_a_sum(folder):
    """A real signal, in the middle of the work; afterwards the same client gives the right sum."""
    started = folder / "started"

    def slow(w, block):
        started.touch()
        time.sleep(0.3)
        return loss(w, block)

    def press():
        for _ in range(3000):
            if started.exists():
                return os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    with threads(n_workers=2) as client:
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            Sum(slow, BLOCKS, client).grad(W)
            time.sleep(5)
        close(Sum(loss, BLOCKS, client).grad(W), grad(whole)(W))


def test_ctrl_c_while_blocks_run_is_an_interrupt_and_nothing_hangs(tmp_path):
    run_apart(interrupt_a_sum, tmp_path)


def test_a_slow_worker_changes_no_bit_and_no_block_counts_twice(client, tmp_path):
    def uneven(w, block):
        count = len(block[1])
        with open(tmp_path / "ran", "a") as file:
            file.write(f"{count}\n")
        time.sleep(0.4 if count == 3 else 0.0)
        return loss(w, block)

    slow, even = Sum(uneven, BLOCKS, client).grad(W), Sum(loss, BLOCKS, client).grad(W)
    assert slow["w"].tobytes() == even["w"].tobytes() and slow["b"] == even["b"]
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "3", "5", "6", "8"]


class Mortal(float):
    """The value of a block whose first addition kills its worker."""

    mark = ""

    def __add__(self, other):
        die_once(self.mark)
        return float(self) + float(other)

    __radd__ = __add__


def die_once(mark):
    """Kill the process of a worker, unless a file says that one died here before."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os._exit(1)


def two_processes():
    return distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0")


def kill_workers(folder):
    """A worker dies in a block, the next one in the sum of two, each with all that it held."""
    parts = [(block, str(folder / f"{number}")) for number, block in enumerate(BLOCKS)]

    def mortal(p, part):
        block, mark = part
        if mark.endswith("0"):
            die_once(mark)
        value = Mortal(loss(p, block))
        value.mark = f"{folder}/sum" if mark.endswith("2") else f"{folder}/0"
        return value

    def slope(p, part):
        block, mark = part
        if mark.endswith("3"):
            die_once(mark)
        return loss(p, block)

    with two_processes() as client:
        expected = Sum(loss, BLOCKS, client).value(W)
        assert Sum(mortal, parts, client).value(W) == expected
        close(Sum(slope, parts, client).grad(W), grad(whole)(W))
        assert {path.name for path in folder.iterdir()} >= {"0", "3", "sum"}


@pytest.mark.sweep
def test_killed_workers_lose_nothing_and_count_nothing_twice(tmp_path):
    run_apart(kill_workers, tmp_path)


def kill_every_worker_of_a_block(folder):
    def deadly(p, numbered):
        number, block = numbered
        if number == 1:
            os._exit(1)
        return loss(p, block)

    with two_processes() as client:
        # Dask would try three times more; one death shows the same, and a worker takes seconds to start.
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        with pytest.raises(BlockFailed, match="block.* 1.* of 5 failed: KilledWorker"):
            Sum(deadly, list(enumerate(BLOCKS)), client).grad(W)
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
        close(Sum(loss, BLOCKS, client).grad(W), grad(whole)(W))


@pytest.mark.sweep
def test_a_block_that_kills_its_workers_is_named_and_the_client_goes_on(tmp_path):
    run_apart(kill_every_worker_of_a_block, tmp_path)


def close_while_workers_run(folder):
    """The cluster of a `with` block ends with it, also when the block fails or a worker is busy."""

    def slow(w, block):
        time.sleep(3)
        return loss(w, block)

    with pytest.raises(KeyboardInterrupt), Sum(loss, BLOCKS) as total:
        close(total.grad(W), grad(whole)(W))
        for number, block in enumerate(BLOCKS):
            total.client.submit(slow, W, block, key=f"busy-{number}")
        raise KeyboardInterrupt


@pytest.mark.sweep
def test_a_cluster_of_its_own_is_closed_whatever_happens(tmp_path):
    run_apart(close_while_workers_run, tmp_path)


def test_without_workers_a_sum_is_an_error_and_does_not_wait_for_ever():
    with threads(n_workers=0) as client, pytest.raises(NoWorkers, match="no worker for 0.5 seconds"):
        Sum(loss, BLOCKS, client, no_workers_timeout=0.5).grad(W)


def test_a_cluster_that_closes_ends_the_sum():
    def slow(w, block):
        time.sleep(0.2)
        return loss(w, block)

    with threads(n_workers=1) as client:
        closing = threading.Timer(0.3, client.cluster.close)
        closing.start()
        with pytest.raises((NoWorkers, OSError)):  # the tasks are cancelled, or the connection is lost before
            Sum(slow, BLOCKS * 5, client).grad(W)
        closing.join(30)


def test_partitions_of_a_data_frame(client):
    pytest.importorskip("pyarrow")
    import dask.dataframe as dd
    import pandas as pd

    x = RNG.normal(size=(12, 4))
    frame = dd.from_pandas(pd.DataFrame(x), npartitions=3)
    f = Sum(lambda w, b: np.sum(np.sin(b.to_numpy() @ w)), frame, client)
    np.testing.assert_allclose(f.grad(W["w"]), grad(lambda w: np.sum(np.sin(x @ w)))(W["w"]))
