"""Sums over blocks on workers of Dask: right, with the same bits on any workers, or an error when workers die."""

import os
import pathlib
import signal
import threading
import time

import numpy as np
import pytest

from effgrad import grad, hessian, hvp, optimize
from effgrad.errors import BlockFailed
from effgrad.toolbox import compressed
from effgrad.toolbox.distributed import LeastSquares, Sum

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


@pytest.fixture(scope="module")
def client():
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def close(a, b):
    np.testing.assert_allclose(a["w"], b["w"], rtol=1e-12)
    np.testing.assert_allclose(a["b"], b["b"], rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_value_gradient_and_hessian_product(client, compiled):
    total = Sum(loss, BLOCKS, client, compiled=compiled)
    value, gradient = total.value_and_grad(W)
    np.testing.assert_allclose([value, total.value(W)], whole(W), rtol=1e-12)
    close(gradient, grad(whole)(W))
    close(total.hvp(W, W), hvp(whole, W, W))


def test_the_sum_has_the_same_bits_whoever_adds(client):
    first = Sum(loss, BLOCKS, client).grad(W)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=3, dashboard_address=None) as other:
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
    import dask.array as da
    import dask.bag as db

    x = RNG.normal(size=(12, 4))
    expected = grad(lambda w: np.sum(np.sin(x @ w)))(W["w"])
    array = da.from_array(x, chunks=(5, 4))
    np.testing.assert_allclose(Sum(lambda w, b: np.sum(np.sin(b @ w)), array, client).grad(W["w"]), expected)
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


def test_ctrl_c_while_blocks_run_is_an_interrupt_and_nothing_hangs(client, tmp_path):
    """A real signal, in the middle of the work; afterwards the same client gives the right sum."""
    started = tmp_path / "started"

    def slow(w, block):
        started.touch()
        time.sleep(0.3)
        return loss(w, block)

    def press():
        while not started.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Sum(slow, BLOCKS, client).grad(W)
        time.sleep(5)
    thread.join()
    close(Sum(loss, BLOCKS, client).grad(W), grad(whole)(W))


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


@pytest.mark.sweep
def test_killed_workers_lose_nothing_and_count_nothing_twice(tmp_path):
    """The process of a block dies at the first call, with all that it held; another block dies always."""
    parts = [(block, str(tmp_path / f"{number}")) for number, block in enumerate(BLOCKS)]

    def mortal(p, part):
        block, mark = part
        if mark.endswith("3") and not pathlib.Path(mark).exists():
            pathlib.Path(mark).touch()
            os._exit(1)
        return loss(p, block)

    def deadly(p, part):
        if part[1].endswith("1"):
            os._exit(1)
        return loss(p, part[0])

    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        close(Sum(mortal, parts, client).grad(W), grad(whole)(W))
        with pytest.raises(BlockFailed, match="block 1 of 5 failed: KilledWorker"):
            Sum(deadly, parts, client).grad(W)
        close(Sum(mortal, parts, client).grad(W), grad(whole)(W))


def test_partitions_of_a_data_frame(client):
    pytest.importorskip("pyarrow")
    import dask.dataframe as dd
    import pandas as pd

    x = RNG.normal(size=(12, 4))
    frame = dd.from_pandas(pd.DataFrame(x), npartitions=3)
    f = Sum(lambda w, b: np.sum(np.sin(b.to_numpy() @ w)), frame, client)
    np.testing.assert_allclose(f.grad(W["w"]), grad(lambda w: np.sum(np.sin(x @ w)))(W["w"]))
