"""`grad(f, memory=...)`: the same bits as without a limit, within the limit, and the program runs once."""

import logging
import tracemalloc

import numpy as np
import pytest

from effgrad import MemoryLimit, checkpoint, grad, jvp, value_and_grad
from effgrad.fast import spilling


def array_loop(x):
    for i in range(60):
        x = np.sin(x) * 1.01 + x * x * 1e-3 if i % 3 else np.roll(x, 1)
    return np.sum(x)


def scalar_loop(x):
    y = x[0]
    for _ in range(2000):
        y = y * 0.999 + 0.001 * y * x[1]
    return y


def recursion(x):
    def tree(depth, y):
        return np.sin(y * x[:4]) if depth == 0 else tree(depth - 1, y) * tree(depth - 1, y + 1.0)

    return np.sum(tree(6, x[0]))


def checkpointed(x):
    for _ in range(12):
        x = checkpoint(lambda y: np.sin(y) * np.cos(y) + checkpoint(lambda z: z * z * 0.1, y), x)
    return np.sum(x)


def written(x):
    a = np.zeros(x.shape)
    for i in range(5, 300):
        a[i] = np.tanh(a[i - 1]) + x[i] * a[i - 5]
        a[:5] += 1e-3 * x[:5]
    return np.sum(a * a)


PROGRAMS = [array_loop, scalar_loop, recursion, checkpointed, written]
X = np.linspace(0.1, 0.9, 1000)


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("memory", [80_000, "2 MB", "1 GB"])
def test_a_limit_changes_no_bit(f, memory):
    np.testing.assert_array_equal(grad(f, memory=memory)(X), grad(f)(X))


@pytest.mark.parametrize("f", [array_loop, recursion, checkpointed])
def test_limited_gradients_nest_in_other_derivatives_and_in_themselves(f):
    limited, free = grad(f, memory=300_000), grad(f)
    np.testing.assert_array_equal(jvp(limited, (X,), (X,))[1], jvp(free, (X,), (X,))[1])
    expected = grad(lambda x: np.sum(free(x) ** 2))(X)
    for memory in (None, 600_000):
        np.testing.assert_array_equal(grad(lambda x: np.sum(limited(x) ** 2), memory=memory)(X), expected)


def test_the_record_stays_within_the_limit():
    def peak(**options):
        tracemalloc.start()
        grad(array_loop, **options)(np.linspace(0.1, 0.9, 20_000))
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak()
    assert peak(memory="2 MB") < 2e6 + 4 * 160_000  # and some arrays that the program itself holds
    assert peak() > 6e6


def test_what_the_program_does_happens_once():
    seen = []

    def f(x):
        rng = np.random.default_rng(0)
        for i in range(50):
            seen.append(i)
            x = x * rng.normal(size=1000) + np.sin(x)
        return np.sum(x)

    grad(f, memory=100_000)(X)
    assert seen == list(range(50))


def test_it_says_what_was_paid(caplog):
    with caplog.at_level(logging.INFO, "effgrad.memory"):
        value_and_grad(array_loop, memory="100 kB")(X)
    assert "1 evaluation" in caplog.text and "written to disk and read back" in caplog.text


def test_an_operation_over_the_limit_names_what_would_suffice():
    with pytest.raises(MemoryLimit, match=r"one operation, \w+, keeps .* give memory at least") as caught:
        grad(array_loop, memory=4000)(X)
    assert "array_loop" not in str(caught.value) and "test_spilling.py" in str(caught.value)


def test_a_full_disk_is_an_error(monkeypatch):
    usage = spilling.shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(spilling.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(MemoryLimit, match="give a larger memory=, or free space"):
        grad(array_loop, memory=80_000)(X)


@pytest.mark.parametrize("memory", ["much", "-1 GB", 0, True, "3 XB", 1.5])
def test_a_limit_that_is_none_is_refused_before_the_work(memory):
    with pytest.raises(ValueError, match="a number of bytes or a text like"):
        grad(array_loop, memory=memory)
    with pytest.raises(ValueError, match="leave out mode='delta'"):
        grad(array_loop, memory="1 GB", mode="delta")
