"""Reshaped and turned arrays in loops: they are views in NumPy, and copies in a region, of which no write may be lost.

Each function reads an array under one name after a write under another. Captured, all of them had wrong values,
silently; now the value is NumPy's and the gradient the eager one, whether the loop is captured or unrolled.
"""

import builtins
import inspect
import itertools
import linecache
import random

import numpy as np
import pytest

from effgrad import compile, grad
from effgrad.arrays.layout import COPYING, MAY_VIEW, VIEWING_METHODS
from effgrad.stage.loop.capture import RULES
from effgrad.stage.loop.library import _METHODS


def read_after_a_write(x):
    y = x * 1.0
    for _ in range(40):
        r = y.reshape(2, 3)
        y[4] += y[3] * 0.1
        y[0] = 0.5 * np.sin(r[1, 1])
    return np.sum(y)


def read_after_the_loop(x):
    y = x * 1.0
    for _ in range(40):
        r = y.reshape(2, 3)
        y[4] += 0.05 * y[0]
    return np.sum(r)


def merged_axes(x):
    y, t = x.reshape(2, 3) * 1.0, 0.0
    for _ in range(40):
        r = y.ravel()
        y[0] = y[1] * 0.5 + t
        t = t * 0.5 + 0.01 * r[1]
    return t


def written_by_the_other_name(x):
    y, t = x * 1.0, 0.0
    for _ in range(40):
        r = y.reshape(2, 3)
        r[0, 0] = 0.5 * r[0, 0] + t
        t = 0.5 * np.sin(y[0] + y[4])
    return t


def of_a_value_of_the_step(x):
    t = 0.0
    for _ in range(40):
        z = x * 2.0 + t
        r = z.reshape(2, 3)
        z[0] = 0.5 + t
        t = 0.5 * np.sin(r[0, 0] + r[1, 1])
    return t


def of_a_value_written_by_the_other_name(x):
    t = 0.0
    for _ in range(40):
        z = x * 2.0 + t
        r = np.ravel(z.reshape(2, 3))
        r[0] = 0.5 + t
        t = 0.5 * np.sin(z[0] + z[4])
    return t


def added_to_in_place(x):
    t = 0.0
    for _ in range(40):
        z = x * 2.0
        r = z.reshape(2, 3)
        z += t
        t = 0.5 * np.sin(r[0, 0] + r[1, 1])
    return t


def assigned_by_a_mask(x):
    t = 0.0
    for _ in range(40):
        z = x * 2.0
        r = z.reshape(2, 3)
        z[z > 1.0] = t
        t = 0.1 + 0.5 * np.sin(r[0, 0] + r[1, 1])
    return t


def read_in_the_next_step(x):
    y, t = x * 1.0, 0.0
    for _ in range(8):
        z = y * 1.0
        r = z.reshape(2, 3)
        for _ in range(8):
            t = 0.5 * np.sin(r[0, 0] + r[1, 2]) + t * 0.1
            z[0] = z[1] * 0.5 + t
    return t


def carried(x):
    y, t = x * 1.0, 0.0
    r = np.ones((2, 3))
    for _ in range(40):
        t = 0.5 * np.sin(r[0, 0] + r[1, 2])
        r = y.reshape(2, 3)
        y[0] = y[1] * 0.5 + t
    return t


def read_by_a_closure(x):
    y, t = x * 1.0, 0.0
    for _ in range(40):
        r = y.reshape(2, 3)

        def get(r=r):
            return r[0, 0] + r[1, 1]

        y[0] = y[0] * 0.5 + 1
        t = t * 0.5 + get()
    return t


def in_a_list(x):
    y, t = x * 1.0, 0.0
    for _ in range(40):
        rs = [y.reshape(2, 3)]
        y[0] = y[0] * 0.5 + 1
        t = t * 0.5 + rs[0][0, 0]
    return t


def appended(x):
    y, rows = x * 1.0, []
    for _ in range(40):
        rows.append(y.reshape(2, 3))
        y[0] = y[0] * 0.5 + 1
    return np.sum(np.array(rows) ** 2)


def written_in_one_branch(x):
    y, t = x * 1.0, 0.0
    for _ in range(40):
        r = y.reshape(2, 3)
        if t < 1.0:
            y[0] = y[0] * 0.5 + 0.5
        t = t * 0.5 + r[0, 0]
    return t


def row_of_a_part(x):
    y, t = x * 1.0, 0.0
    for _ in range(40):
        v = y[:4].reshape(2, 2)[0]
        y[0] = y[0] * 0.5 + 1
        t = t * 0.5 + v[0]
    return t


def written_by_a_function(x):
    y, t = x * 1.0, 0.0

    def step(r, y):
        y[0] = y[0] * 0.5 + 1
        return r[0, 0]

    for _ in range(40):
        t = t * 0.5 + step(y.reshape(2, 3), y)
    return t


def until_a_test_of_it(x):
    y, n = x * 1.0, 0.0
    for _ in range(40):
        z = y * 1.0
        r = z.reshape(2, 3)
        while r[0, 1] > 0.01:
            z[1] = z[1] * 0.5
            n = n + z[1]
        y[1] = 0.3 + 0.1 * n / (1 + n)
    return n


def complex_planes(x):
    t = 0.0
    for _ in range(40):
        z = x * 2.0 + 1j * t
        r = z.reshape(2, 3)
        z[0] = 0.5 + t * 1j
        t = 0.5 * np.sin(np.real(r[0, 0] * r[1, 1]))
    return t


def bound_to_itself(x):
    m, t = x.reshape(2, 3) * 0.5, 0.1
    r = m[::-1]
    for i in range(33):
        r[1, 2] = 0.5 * np.cos(r[0, 2] + t)
        r = np.asarray(r)
        t = 0.3 * t + 0.2 * np.sin(r[1, 2] + 0.1 * i)
    return t + np.sum(m)


def complex_in_place(x):
    t = 0.0
    for i in range(40):
        z = x * (2.0 + 1j) + t
        w = z
        z += 1.0 + 0.3 * i
        t = 0.1 * np.real(w[0])
    return t


PROGRAMS = [f for f in list(vars().values()) if inspect.isfunction(f) and f.__module__ == __name__]
X = np.linspace(0.1, 1.0, 6)


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_no_write_is_lost(f):
    assert compile(f)(X) == pytest.approx(f(X.copy()), rel=1e-13)
    np.testing.assert_allclose(compile(grad(f))(X), grad(f)(X), rtol=1e-9, atol=1e-13)


def read_before_the_write(x):
    y, t = x * 1.0, 0.0
    for _ in range(40):
        r = y.reshape(2, 3)
        t = t * 0.5 + np.sum(r @ r.T)
        y[:3] = 0.5 * r[1] + 0.1 * np.sin(t)
    return t


def in_a_new_shape_each_step(x):
    y = x * 1.0
    for _ in range(40):
        z = (y * 0.9).reshape(2, 3)
        z[0] = z[1] + 0.1
        y = z.T.ravel()
    return np.sum(y * y)


@pytest.mark.parametrize("f", [read_before_the_write, in_a_new_shape_each_step], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("error::effgrad.errors.StagingWarning")
def test_what_is_read_before_the_write_is_captured(f):
    np.testing.assert_allclose(compile(grad(f))(X), grad(f)(X), rtol=1e-9, atol=1e-13)


# Each a view of a matrix, or an array that may be one, and the index of its element at (0, 0).
VIEWS_OF = {
    "asarray": (np.asarray, (0, 0)),
    "asarray as float": (lambda y: np.asarray(y, dtype=float), (0, 0)),
    "asanyarray": (np.asanyarray, (0, 0)),
    "ascontiguousarray": (np.ascontiguousarray, (0, 0)),
    "atleast_2d": (np.atleast_2d, (0, 0)),
    "broadcast_to": (lambda y: np.broadcast_to(y, (2, 3, 3)), (1, 0, 0)),
    "real": (np.real, (0, 0)),
    "attribute real": (lambda y: y.real, (0, 0)),
    "diagonal": (np.diagonal, (0,)),
    "method diagonal": (lambda y: y.diagonal(), (0,)),
    "diag": (np.diag, (0,)),
    "moveaxis": (lambda y: np.moveaxis(y, 0, 1), (0, 0)),
    "einsum": (lambda y: np.einsum("ii->i", y), (0,)),
    "rot90": (np.rot90, (2, 0)),
    "flip": (np.flip, (2, 2)),
    "fliplr": (np.fliplr, (0, 2)),
    "squeeze": (lambda y: np.squeeze(y[None]), (0, 0)),
    "swapaxes": (lambda y: np.swapaxes(y, 0, 1), (0, 0)),
    "expand_dims": (lambda y: np.expand_dims(y, 0), (0, 0, 0)),
    "transposed": (lambda y: y.T, (0, 0)),
    "slice": (lambda y: y[:2, ::2], (0, 0)),
    "row": (lambda y: y[0], (0,)),
    "rows": (lambda y: list(y)[0], (0,)),
    "ravel": (np.ravel, (0,)),
    "reshape": (lambda y: y.reshape(1, 9), (0, 0)),
    "astype": (lambda y: y.astype(float, copy=False), (0, 0)),
    "array": (lambda y: np.array(y, copy=None), (0, 0)),
    "view of a view": (lambda y: np.ravel(y.T), (0,)),
    "permute_dims": (lambda y: np.permute_dims(y, (1, 0)), (0, 0)),
    "matrix_transpose": (np.matrix_transpose, (0, 0)),
    "copy": (np.copy, (0, 0)),
    "roll": (lambda y: np.roll(y, 3), (1, 0)),
    "maximum": (lambda y: np.maximum(y, y), (0, 0)),
    "where": (lambda y: np.where(y > 0.0, y, y), (0, 0)),
    "clip": (lambda y: np.clip(y, -100.0, 100.0), (0, 0)),
}


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
@pytest.mark.parametrize("name", VIEWS_OF)
@pytest.mark.parametrize("is_new", [False, True], ids=["of an array from before", "of a value of the step"])
def test_views_see_writes_and_copies_do_not(name, is_new):
    view, place = VIEWS_OF[name]

    def f(x):
        y, t = x * 1.0, 0.0
        for i in range(33):
            z = y * 1.5 + t if is_new else y
            w = view(z)
            z[0, 0] = 1.0 + t + 0.3 * i
            t = 0.1 * w[place]
        return t

    x = np.linspace(0.1, 1.0, 9).reshape(3, 3)
    assert compile(f)(x) == pytest.approx(f(x), rel=1e-13)


def test_the_list_of_views_is_numpys():
    """Walk the functions and methods that have rules: those that share memory with an argument are in the list."""
    x = np.arange(9.0).reshape(3, 3)
    given = [(x,), (x, 0), (x, (3, 3)), (x, 0, 1)]
    functions = [f for f in RULES if not isinstance(f, tuple) and getattr(f, "__module__", "").startswith("numpy")]
    sharing = set()
    for f, args in itertools.product(functions, given):
        try:
            shares = np.may_share_memory(f(*args), x)
        except (TypeError, ValueError, IndexError, AttributeError):
            continue
        if shares:
            sharing.add(f)
    sharing.remove(np.diff)  # np.diff(x, 0) is x, and refused
    assert len(sharing) > 9 and sharing <= MAY_VIEW - COPYING
    methods = {name for name in _METHODS if _shares(x, name)}
    assert methods and methods <= VIEWING_METHODS


def _shares(x, name):
    try:
        return np.may_share_memory(getattr(x, name)(*([0, 1] if name == "swapaxes" else [])), x)
    except (TypeError, ValueError):
        return False


def random_program(seed):
    """A loop over arrays with several names: views, values of the step, writes to either, reads of either."""
    r = random.Random(seed)
    shapes = {"y": 1, "m": 2}  # their ranks: of shape (6,) and (2, 3)
    lines = ["def f(x):", "    y, m, t = x * 1.0, x.reshape(2, 3) * 0.5, 0.1"]
    if r.random() < 0.5:
        lines.append(r.choice(["    r = y.reshape(2, 3)", "    r = m.T", "    r = np.ones((2, 3))"]))
        shapes["r"] = 2
        if lines[-1].endswith("m.T"):
            lines[-1] = "    r = m[::-1]"
    lines.append("    for i in range(33):")

    def element(name):
        return f"{name}[{r.randrange(6)}]" if shapes[name] == 1 else f"{name}[{r.randrange(2)}, {r.randrange(3)}]"

    def of_rank(rank):
        return r.choice([n for n in shapes if shapes[n] == rank])

    def statement(pad):
        kind = r.randrange(9)
        if kind < 3:
            name, rank = r.choice("abr"), r.choice([1, 2])
            a, b = of_rank(rank), of_rank(3 - rank)
            views = [f"{b}.reshape(2, 3)", f"np.asarray({a})", f"{a}[::-1, :]", a, f"np.real({a})"] if rank == 2 else [
                f"{b}.ravel()", f"np.ravel({b})", f"{a}[::-1]", a, f"np.asarray({a})", f"np.flip({a})"]  # fmt: skip
            values = [f"{a} * 0.9", f"{a} + t", f"np.sin({a})", f"{a}.copy()"]
            shapes[name] = rank
            return [pad + f"{name} = {r.choice(views if r.random() < 0.7 else values)}"]
        name = r.choice(list(shapes))
        if kind < 6:
            return [pad + f"{element(name)} = 0.5 * np.cos({element(r.choice(list(shapes)))} + t)"]
        if kind == 6:
            return [pad + f"{name} {r.choice(['*=', '+='])} 0.9"]
        if kind == 7:
            return [pad + f"if t > {r.random()}:", *statement_in_place(pad + "    ")]
        return [pad + f"t = 0.3 * t + 0.2 * np.sin({element(name)} + 0.1 * i)"]

    def statement_in_place(pad):
        name = r.choice(list(shapes))
        return [pad + f"{element(name)} = 0.4 * t + {element(r.choice(list(shapes)))} * 0.2"]

    for _ in range(r.randint(4, 9)):
        lines += statement("        ")
    read = "".join(f" + np.sum({name} * 1.1)" for name in shapes if r.random() < 0.7)
    return "\n".join([*lines, f"    return t{read}"]) + "\n"


def disagreement(seed):
    """The source of a random program, if compiled it has another value, or error, than Python's."""
    source = random_program(seed)
    name = f"<twins {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {"np": np}
    exec(builtins.compile(source, name, "exec"), names)
    try:
        expected = names["f"](X.copy())
    except (UnboundLocalError, IndexError, ValueError):
        return None
    return None if compile(names["f"])(X) == pytest.approx(expected, rel=1e-12, abs=1e-12) else source


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_with_many_names(seed):
    assert disagreement(seed) is None
