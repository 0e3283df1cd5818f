"""`grad(f, memory=...)`: the same bits as without a limit, within the limit, and the program runs once."""

import gc
import logging
import sys
import tracemalloc

import numpy as np
import pytest

from effgrad import MemoryLimit, checkpoint, grad, jvp, value_and_grad
from effgrad.errors import EffgradError
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


def controlled(x):
    """Loops and branches that depend on the numbers, with a way out of the middle."""
    y, n = x[0] + 2.0, 0
    while y > 1.05:
        y = np.sqrt(y) if y > 1.3 else y - 0.001 * x[n % 7]
        for z in x[:3]:
            if z > y - 1.0:
                break
            y = y + 1e-6 * z
        n += 1
    return y * n


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


def deep_checkpoints(x):
    """Each part marks the rest of the program as one to be run again."""

    def rest(depth, y):
        y = np.sin(y) * 1.01 + np.cos(y) * y * 1e-3
        return y if depth == 0 else checkpoint(rest, depth - 1, y) * 0.99

    return np.sum(rest(20, x))


PROGRAMS = [array_loop, scalar_loop, recursion, controlled, checkpointed, deep_checkpoints, written]
X = np.linspace(0.1, 0.9, 1000)


@pytest.mark.thinned(3)
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


def numbers(x):
    y = x[0]
    for _ in range(8_000):
        y = y - 1e-4 * y * y
    return y


LONG = np.linspace(0.1, 0.9, 20_000)


@pytest.mark.parametrize(
    "f, x, limit, free",
    [
        (array_loop, LONG, 2_000_000, 6e6), (numbers, X, 1_000_000, 5e6), (numbers, X, 300_000, 5e6),
    ],
)  # fmt: skip
def test_all_that_the_derivative_keeps_stays_within_the_limit(f, x, limit, free):
    """The record, what is read back of it, and cotangents; `free` is what they take without a limit."""

    def peak(**options):
        gradient = grad(f, **options)
        tracemalloc.start()
        gradient(x)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak()
    of_the_program = 5 * x.nbytes if x is LONG else 20_000  # arrays that it holds at one time; Python's own
    assert peak(memory=limit) < limit + of_the_program
    assert peak() > free


def test_a_checkpoint_in_the_middle_of_a_segment_reads_no_more_than_it_needs(monkeypatch):
    """Many checkpoints, few segments: a part that runs again and fits makes nothing be read a second time."""
    reads = []
    load = spilling.SpilledTape._load
    monkeypatch.setattr(spilling.SpilledTape, "_load", lambda *args: reads.append(1) or load(*args))

    def f(x):
        y = x[0]
        for i in range(300):
            y = checkpoint(lambda y: y * 0.999 + 0.001 * y * x[1], y)
            y = y * np.sin(x[i]) if i % 10 == 0 else y * 1.0001
        return y

    np.testing.assert_array_equal(grad(f, memory=300_000)(X), grad(f)(X))
    assert len(reads) < 10


def test_what_the_program_does_happens_once(tmp_path, capsys):
    """It prints, draws, reads and writes files, fails and goes on: as often as without a derivative, in that order."""

    def inverted(x, i):
        if i == 0:
            raise LookupError
        return x / i

    def f(x, rng, data, log):
        for i in range(50):
            print("step", i)
            x = x * rng.normal() + np.sin(x) * float(data.readline())
            log.write(f"{i}\n")
            try:
                x = inverted(x, i % 10)
            except LookupError:
                log.write("none\n")
        return np.sum(x)

    def run(call, name):
        (tmp_path / "data").write_text("".join(f"{i / 100}\n" for i in range(50)))
        rng = np.random.default_rng(0)
        with open(tmp_path / "data") as data, open(tmp_path / name, "w") as log:
            result = call(lambda x: f(x, rng, data, log))
        return result, rng.normal(), (tmp_path / name).read_text(), capsys.readouterr().out

    _, *plain = run(lambda f: f(X[0]), "plain")
    free, *effects = run(lambda f: grad(f)(X[0]), "free")
    limited, *effects_within = run(lambda f: grad(f, memory=4000)(X[0]), "limited")
    assert plain == effects == effects_within and limited == free


def test_an_exception_leaves_a_limited_gradient_once_and_leaves_no_file(monkeypatch):
    files = []
    make = spilling.tempfile.TemporaryFile

    def made(**options):
        files.append(make(**options))
        return files[-1]

    monkeypatch.setattr(spilling.tempfile, "TemporaryFile", made)

    def f(x):
        y = array_loop(x)
        raise LookupError(f"no end at {float(y) > 0}")

    with pytest.raises(LookupError, match="no end"):
        grad(f, memory=80_000)(X)
    gc.collect()
    references = sys.getrefcount(files[0])
    assert len(files) == 1 and references == 2  # the list's and the question's


def test_a_forked_child_does_not_write_into_its_parents_record(monkeypatch):
    def f(x):
        y = array_loop(x)
        monkeypatch.setattr(spilling.os, "getpid", lambda: -1)
        return array_loop(y)

    with pytest.raises(EffgradError, match="goes on in a forked process"):
        grad(f, memory=80_000)(X)


@pytest.mark.parametrize("memory", [1, "1 kB"])
def test_a_limit_too_small_for_any_operation_is_an_error_before_the_work(memory):
    seen = []
    with pytest.raises(MemoryLimit, match="give memory at least 1600 bytes"):
        grad(lambda x: seen.append(1) or x * x, memory=memory)(0.5)
    assert not seen
    assert grad(lambda x: x * x, memory=1600)(0.5) == 1.0


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
