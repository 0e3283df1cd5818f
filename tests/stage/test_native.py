"""Machine code: the cache of kernels, and programs made at random."""

import errno
import inspect
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
from graphs import optimised
from random_programs import random_program

import effgrad
from effgrad import grad
from effgrad.errors import NotStaged
from effgrad.primitives.constants import ROWS
from effgrad.stage import Graph, GuardFailed, Node, stage
from effgrad.stage.compiled import Compiled, compile
from effgrad.stage.loop.frame_loops import Loops
from effgrad.stage.native import cache, engine, gathers, program, scalars, shared_constants, tape
from effgrad.stage.native.steps import Fused
from effgrad.stage.nodes import INPUT

native = sys.modules["effgrad.stage.native"]
pytestmark = pytest.mark.filterwarnings("error")


# The driver, the loop of `run`, and the function that enters it.
MODULES = 3


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """An engine that has compiled nothing, with a cache of its own."""
    monkeypatch.setenv("EFFGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(engine, "_engines", [])
    return tmp_path / "cache"


def run():
    return compile(lambda x: np.sin(x) + x)(np.ones(3))


def compiled_again(monkeypatch):
    monkeypatch.setattr(engine, "_engines", [])
    np.testing.assert_allclose(run(), np.sin(1) + 1)
    return engine.engine().compiled


def test_kernels_are_kept_on_disk(fresh, monkeypatch):
    assert compiled_again(monkeypatch) == MODULES
    assert compiled_again(monkeypatch) == 0


def objects(folder):
    return sorted(folder.glob("*.o"))


@pytest.mark.parametrize("damage", [lambda code: code[:-10], lambda code: code[:-1] + b"x", lambda code: b""])
def test_a_damaged_file_is_compiled_again(fresh, monkeypatch, damage):
    run()
    for path in objects(fresh):
        path.write_bytes(damage(path.read_bytes()))
    assert compiled_again(monkeypatch) == MODULES
    assert compiled_again(monkeypatch) == 0


def test_files_exchanged_between_keys_are_not_run(fresh, monkeypatch):
    run()
    first, second, _ = objects(fresh)
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)
    assert compiled_again(monkeypatch) == 2


def test_a_file_that_another_user_signed_is_not_run(fresh, monkeypatch):
    run()
    (fresh / "secret").write_bytes(b"\1" * 32)
    assert compiled_again(monkeypatch) == MODULES
    assert compiled_again(monkeypatch) == 0


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_refused(fresh, monkeypatch, mode):
    run()
    fresh.chmod(mode)
    with pytest.warns(UserWarning, match="others may write to it"):
        assert compiled_again(monkeypatch) == MODULES
    fresh.chmod(0o700)
    assert compiled_again(monkeypatch) == 0


def test_a_folder_of_another_user_is_refused(fresh, monkeypatch):
    run()
    owner = os.getuid()
    monkeypatch.setattr(cache.os, "getuid", lambda: owner + 1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert compiled_again(monkeypatch) == MODULES


def replaced_by_a_link(path):
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def replaced_by_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("replace", [replaced_by_a_link, replaced_by_a_pipe, replaced_by_a_folder])
def test_a_secret_that_is_no_plain_file_is_refused_by_its_name(fresh, monkeypatch, replace):
    """A folder in its place was named by the number of a file descriptor, and a link by levels of symbolic links."""
    run()
    replace(fresh / "secret")
    with pytest.warns(UserWarning, match="secret is not a plain file"):
        assert compiled_again(monkeypatch) == MODULES


@pytest.mark.parametrize("replace", [replaced_by_a_link, replaced_by_a_pipe, lambda path: path.chmod(0o666)])
def test_links_pipes_and_files_that_others_may_write_to_are_not_read(fresh, monkeypatch, replace):
    run()
    for path in objects(fresh):
        replace(path)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert compiled_again(monkeypatch) == MODULES
    assert compiled_again(monkeypatch) == 0  # what was written anew took their places
    assert not any(path.is_symlink() or path.is_fifo() for path in objects(fresh))


def test_the_files_are_the_users_alone(fresh):
    run()
    assert fresh.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in fresh.iterdir()} == {0o600}


def test_the_least_recently_used_goes_first(fresh, monkeypatch):
    store = cache.Cache()
    monkeypatch.setattr(cache, "_BETWEEN_COUNTS", 1)
    monkeypatch.setattr(cache, "LIMIT", 5000)
    for number in range(4):
        store.put(f"{number}", bytes(1000))
        os.utime(fresh / f"{number}.o", (number, number))
    assert store.get("0") == bytes(1000)  # used now
    store.put("4", bytes(1000))
    assert [store.get(f"{number}") is not None for number in range(5)] == [True, False, False, True, True]


def test_object_files_of_the_users_own_are_not_removed(fresh, monkeypatch):
    """`EFFGRAD_CACHE` may name the folder of a program in C; the oldest of all its object files went first."""
    store = cache.Cache()
    monkeypatch.setattr(cache, "_BETWEEN_COUNTS", 1)
    monkeypatch.setattr(cache, "LIMIT", 2000)
    store.put("0", bytes(1200))
    for name in ("add.o", "begin.o"):
        (fresh / name).write_bytes(b"\x7fELF" + bytes(3000))
    os.mkfifo(fresh / "pipe.o")
    for path in fresh.iterdir():
        os.utime(path, (1, 1))
    store.put("1", bytes(1200))
    assert {path.name for path in fresh.glob("*.o")} == {"add.o", "begin.o", "pipe.o", "1.o"}


@pytest.mark.parametrize("home", ["", "relative"])
def test_a_cache_home_that_is_no_absolute_path_is_ignored(monkeypatch, home):
    monkeypatch.delenv("EFFGRAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    assert cache.folder() == pathlib.Path.home() / ".cache" / "effgrad"


def test_a_user_without_a_home_is_one_warning(fresh, monkeypatch):
    """`Path.home` raises no error of the operating system, which came out of the compiled function."""
    for name in ("EFFGRAD_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pathlib.Path, "home", lambda: pathlib.Path("~nobody-of-this-name").expanduser())
    with pytest.warns(UserWarning, match="EFFGRAD_CACHE may name") as warned:
        np.testing.assert_allclose(run(), np.sin(1) + 1)
    assert len(warned) == 1


def test_a_secret_that_was_not_written_whole_is_made_again(fresh, monkeypatch):
    run()
    (fresh / "secret").write_bytes(b"")
    assert compiled_again(monkeypatch) == MODULES
    assert len((fresh / "secret").read_bytes()) == 32
    assert compiled_again(monkeypatch) == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_no_file(fresh, monkeypatch, error):
    def interrupt(*_):
        raise error

    store = cache.Cache()
    store.put("0", b"code")
    monkeypatch.setattr(cache.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt) if error is KeyboardInterrupt else pytest.warns(UserWarning):
        store.put("1", b"code")
    assert {path.name for path in fresh.iterdir()} == {"secret", "0.o"}


def test_files_of_killed_processes_are_removed(fresh):
    store = cache.Cache()
    store.put("0", b"code")
    (fresh / "begun.old").write_bytes(b"half")
    (fresh / "begun.now").write_bytes(b"half")
    os.utime(fresh / "begun.old", (1, 1))
    cache.Cache().put("1", b"code")
    assert {path.name for path in fresh.iterdir()} == {"secret", "0.o", "1.o", "begun.now"}


def test_a_folder_that_cannot_be_written_is_one_warning(fresh, monkeypatch):
    fresh.write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="not kept"):
        run()
    compile(lambda x: np.cos(x) + x)(np.ones(3))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_folder_that_takes_no_files_is_one_warning(fresh, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cache.os, "replace", refuse)
    with pytest.warns(UserWarning, match=os.strerror(number)) as warned:
        run()
        np.testing.assert_allclose(compile(lambda x: np.cos(x) + x)(np.ones(3)), np.cos(1) + 1)
    assert len(warned) == 1 and not objects(fresh)


def test_a_file_of_another_kernel_is_not_executed(fresh, monkeypatch):
    run()
    compile(lambda x: np.cos(x) - x)(np.ones(3))
    for path in objects(fresh):
        path.write_bytes(b"\x7fELF" + b"\0" * 500)
    assert compiled_again(monkeypatch) == MODULES


PROGRAM = """
import numpy as np, effgrad, sys
x = np.random.default_rng(0).normal(size=(40, 30))
f = effgrad.value_and_grad(lambda x: np.sum(np.exp(np.sin(x) @ np.cos(x).T) / (1 + np.sum(x * x, axis=1))))
c = effgrad.compile(f)
c(x)
print([np.asarray(part).tobytes().hex() for part in c(x)])
"""


def test_processes_at_once_share_a_folder_and_agree_to_the_bit(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    folders = [tmp_path / "shared"] * 3 + [tmp_path / "alone"]
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**environment, "EFFGRAD_CACHE": str(folder)})
        for folder in folders
    ]  # fmt: skip
    answers = [process.communicate(timeout=100) for process in running]
    assert {error for _, error in answers} == {""}
    assert len({answer for answer, _ in answers}) == 1 and len(answers[0][0]) > 1000
    kept = [{path.name for path in folder.iterdir()} for folder in folders]
    assert kept[0] == kept[-1] and all(name.endswith(".o") for name in kept[0] - {"secret"})


def test_equal_kernels_are_compiled_once():
    def f(x):
        for _ in range(50):
            x = np.sin(x) @ x
        return x

    native = program(optimised(stage(f)(np.ones((3, 3)))))
    assert len(native.plan.steps) == 100
    assert native.kernels == 2  # one of them for all products


def test_without_llvmlite_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['llvmlite'] = None; import effgrad\n"
        "try: effgrad.compile(lambda x: x)(1.0)\n"
        "except effgrad.NotStaged as error: print(error)\n"
        "print(effgrad.compile(lambda x: x + 1, backend='numpy')(1.0))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "effgrad[compile]" in result.stdout and result.stdout.endswith("2.0\n"), result.stderr
    assert issubclass(NotStaged, TypeError)


def test_memory_of_a_result_is_used_again_only_when_nobody_has_it():
    x = np.linspace(0, 1, 20_000)
    c = compile(lambda x: (np.sin(x) + x, np.cos(x)))
    c(x)
    first = c(x)
    part = c(2 * x)[0][5:10]  # keeps the memory of the whole
    last = c(3 * x)
    np.testing.assert_allclose(first[0], np.sin(x) + x)
    np.testing.assert_allclose(first[1], np.cos(x))
    np.testing.assert_allclose(part, (np.sin(2 * x) + 2 * x)[5:10])
    np.testing.assert_allclose(last[1], np.cos(3 * x))
    address = last[0].__array_interface__["data"][0]
    del last
    assert c(x)[0].__array_interface__["data"][0] == address


@pytest.mark.thinned(4)
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_agree_with_eager(seed, dtype):
    f = random_program(seed)
    x = np.random.default_rng(seed).normal(size=(3, 4)).astype(dtype)
    tolerance = 1e-9 if dtype is float else 2e-3
    for g in (f, grad(f)):
        graph = stage(g)(x)
        for native in (program(graph), program(optimised(graph))):
            for point in (x, 0.5 * x):
                try:
                    (value,) = native(point)
                except GuardFailed:  # the halved point takes another path
                    assert point is not x
                    continue
                np.testing.assert_allclose(value, g(point), rtol=tolerance, atol=tolerance)


SCALARS = [
    lambda a, b, c: np.sin(a + b), lambda a, b, c: a * b * 0.5, lambda a, b, c: np.tanh(a - c),
    lambda a, b, c: np.maximum(a, b), lambda a, b, c: np.where((a > b) & (a < 1), a, np.tanh(b)),
    lambda a, b, c: np.exp(-a * a), lambda a, b, c: np.arctan2(a, 2.0), lambda a, b, c: np.clip(a, -0.5, 0.5) + b,
    lambda a, b, c: np.abs(a) + 0.1, lambda a, b, c: b / (1 + a * a), lambda a, b, c: np.cos(b) + c * a,
    lambda a, b, c: -0.7 * a,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_tapes_agree_with_compiled_code(seed, monkeypatch):
    random = np.random.default_rng(seed)
    choices = random.integers(0, 12, 300)
    constants = random.normal(size=300)

    def f(x, y):
        values = [x, y, x * y]
        for i, choice in enumerate(choices):
            values.append(SCALARS[choice](values[-1], values[(i * 7) % len(values)], constants[i]))
        return sum(values) / len(values)

    graph = optimised(stage(effgrad.value_and_grad(f, (0, 1)))(0.3, 0.7))
    compiled = program(graph)
    monkeypatch.setattr(native, "MOST_COMPILED", 0)
    taped = program(graph)
    assert taped.tapes and not compiled.tapes
    for point in ((0.3, 0.7), (-1.0, 0.2)):
        np.testing.assert_allclose(taped(*point), compiled(*point), rtol=1e-13)
        value, gradient = effgrad.value_and_grad(f, (0, 1))(*point)
        np.testing.assert_allclose(taped(*point), [value, *gradient], rtol=1e-11)


@pytest.mark.parametrize("code", tape.OPERATIONS)
def test_the_tape_has_the_arity_of_every_operation(code):
    tape._case(scalars.Body(), code)


def test_every_row_with_machine_code_states_the_arity_of_its_function():
    for function, row in ROWS.items():
        if row.code is not None and isinstance(function, np.ufunc):
            assert row.code.arity == function.nin, row


def test_checkpoints_save_memory_in_compiled_programs():
    def steps(x, mark):
        def several(x):
            for _ in range(8):
                x = np.sin(x) * np.cumsum(x) / 100
            return x

        for _ in range(8):
            x = effgrad.checkpoint(several, x) if mark else several(x)
        return np.sum(x)

    x = np.linspace(0.5, 1, 100)
    sizes, values = [], []
    for mark in (False, True):
        native = program(optimised(stage(grad(lambda x, mark=mark: steps(x, mark)))(x)))
        sizes.append(native.plan.arena)
        values.append(native(x)[0])
    np.testing.assert_allclose(*values, rtol=1e-12)
    assert sizes[1] < 0.5 * sizes[0]


@pytest.mark.parametrize("size", [256, 1000, 1003])
def test_several_vectors_at_a_time(size):
    def chain(x):
        for _ in range(5):
            x = np.sqrt(x * 1.5 + 1) - 0.5
        return x, np.sum(x)

    x = np.random.default_rng(0).uniform(size=size)
    for found, expected in zip(effgrad.compile(chain)(x), chain(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_kernel_over_long_arrays_walks_few_of_those_that_are_kept():
    """One loop for the gradient of a long chain read hundreds of arrays at once, and took four times as long."""

    def chain(x):
        y = x
        for _ in range(150):
            y = y + 0.01 * (np.sin(y) * x - y)
        return np.sum(y)

    x = np.linspace(0, 1, 600)
    graph = optimised(stage(grad(chain))(x))
    native = program(graph)
    np.testing.assert_allclose(native(x)[0], grad(chain)(x), rtol=1e-12)
    sizes = [len(step.kernel.nodes) for step in native.plan.steps if isinstance(step, Fused)]
    assert max(sizes) < len(graph) / 2


@pytest.mark.parametrize("primitive", [gathers.WRAPPED, gathers.OUTSIDE])
def test_rows_are_counted_from_the_beginning_as_numpy_does(primitive):
    index = np.arange(-8, 9)
    given = Node(INPUT, (), {}, (), index)
    node = Node(primitive, (given, 5), {}, (), index)
    graph = Graph([given], [node], [node])
    rows = program(graph)(index)[0]
    np.testing.assert_array_equal(rows, graph(index)[0])
    there = (-5 <= index) & (index < 5)
    expected = np.where(there, np.arange(5)[index * there], 0) if primitive is gathers.WRAPPED else ~there
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.skipif(not engine.X86, reason="other processors are not asked to")
def test_subnormal_numbers_are_zero_where_the_program_says_so():
    tiny = np.full(100, 1e-310)

    def f(x):
        return np.linalg.inv(np.diag(1 + 0 * x)) @ (0.5 * x)  # in machine code, and in a call

    assert (compile(f)(tiny) == 0.5 * tiny).all()
    flushed = compile(f, flush_subnormals=True)
    assert (flushed(tiny) == 0).all() and (flushed(tiny) == 0).all()
    assert (tiny * 0.5 > 0).all()  # what comes after is as before


def test_an_error_in_a_step_leaves_the_program_usable():
    f = effgrad.compile(lambda x, i: np.sum(np.exp(x)[i]), flush_subnormals=True)
    x = np.arange(3.0)
    first = f(x, np.array([0, 2]))
    with pytest.raises(IndexError):
        f(x, np.array([0, 3]))
    assert f(x, np.array([0, 2])) == first and (np.array(1e-310) * 0.5) == 5e-311


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
def test_layouts_that_follow_from_each_other_need_no_recursion(monkeypatch):
    """Unrolled, each write's layout is that of the array before it: `layout` and `stored` called each other."""
    monkeypatch.setattr(Compiled, "_loops", lambda self: Loops(None))

    def f(A):
        n = A.shape[0]
        for i in range(n):
            for j in range(i):
                A[i, j] = A[i, j] - A[i, :j] @ A[j, :j]
                A[i, j] = A[i, j] / A[j, j]
        return np.sum(A)

    A = np.eye(18) * 18 + np.ones((18, 18))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 300)
    try:
        value = effgrad.compile(effgrad.grad(f))(A.copy())
    finally:
        sys.setrecursionlimit(limit)
    assert np.allclose(value, effgrad.grad(f)(A.copy()))


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_kernels_that_differ_in_constants_are_compiled_once(dtype, monkeypatch):
    """An unrolled loop computes with other numbers in each step; the bits are those of numbers in the text."""

    def program(steps):
        names = [str(k) for k in range(steps)]
        table = {name: 0.3 + 0.01 * k for k, name in enumerate(names)}
        table.update({"5": -0.0, "7": 2.0, "8": 0.25})

        def f(x):
            total = 0.0
            for first in range(0, steps, 15):
                for name in names[first : first + 15]:
                    k = table[name] + 2.5
                    x = np.sin(np.minimum(x * table[name], 1.5) + 1.0 / k)
                    total = total + x / k
            return np.sum(total)

        return grad(f)

    x = np.linspace(0.1, 1.0, 9).astype(dtype)
    kernels = [compile(program(steps)).path(x).program.kernels for steps in (60, 120)]
    found = compile(program(60))(x)
    monkeypatch.setattr(shared_constants, "FEWEST", 1 << 60)
    np.testing.assert_array_equal(found, compile(program(60))(x))
    in_text = compile(program(120)).path(x).program.kernels
    assert kernels[1] < kernels[0] + 10 < in_text / 2 if dtype is float else kernels[1] == in_text


@pytest.mark.parametrize(
    "layout", [np.asarray, np.ndarray.view, np.transpose, lambda w: np.broadcast_to(w[:1], w.shape)]
)
@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_from_outside_are_as_the_first_call_finds_them(layout, writeable):
    w = np.arange(1.0, 10_001.0).reshape(100, 100)
    weights = layout(w)
    if not writeable and weights is not w:
        weights.flags.writeable = False
    run, x = effgrad.compile(lambda x: np.sum(np.sin(x) * weights)), np.full((100, 100), 0.5)
    first = run(x)
    np.testing.assert_allclose(first, np.sin(0.5) * np.sum(weights), rtol=1e-12)
    w *= 2.0
    assert run(x) == first
