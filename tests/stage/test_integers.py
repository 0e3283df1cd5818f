"""Integer arguments of compiled functions: inputs once they change, with Python's arithmetic; bounded programs."""

import math
import warnings

import numpy as np
import pytest
import scipy.special

from effgrad import compile, grad
from effgrad.errors import StagingWarning
from effgrad.stage import compiled, paths

W = np.array([1.0, 2.0, 3.0])
DATA = np.arange(12.0).reshape(4, 3)
VALUES = (2, 1, 3, 0, 2, -1, 5)


def counted(w, i):
    for _ in range(i):
        w = w * 1.5
    return w


# One program for all values but the first.
ONCE = {
    "row": lambda w, i: DATA[i] @ w,
    "element": lambda w, i: DATA[i, 1] * w,
    "row from the end": lambda w, i: DATA[-i] @ w,
    "column": lambda w, i: DATA[:, i - 1] * 2,
    "element of an argument": lambda w, i: w[i],
    "arithmetic in an index": lambda w, i: DATA[(i + 1) % 4] @ w,
    "float": lambda w, i: float(i) * w,
    "power": lambda w, i: np.sum(w) ** i,
    "quotient": lambda w, i: w * (i / 2),
    "floor": lambda w, i: i // 2 * w,
    "float32 stays": lambda w, i: np.ones(3, np.float32) * i,
    "array of integers": lambda w, i: np.array([i, 2 * i]),
    "array of numbers": lambda w, i: np.array([i, 2.0]),
    "full": lambda w, i: np.full(2, i),
    "where": lambda w, i: np.where(i > 1, w, -w),
    "an order": lambda w, i: scipy.special.eval_legendre(i, w),
    "root": lambda w, i: np.sqrt(abs(i)),
    "gradient of a power": lambda w, i: grad(lambda v: np.sum(v**i))(w),
    "gradient at a row": lambda w, i: grad(lambda v: np.sum(np.sin(DATA[i] * v)) / (abs(i) + 1))(w),
}
# Python asks for the value, in some way.
ASKED = {
    "slice": lambda w, i: DATA[i : i + 1] @ w,
    "range": counted,
    "item of a list": lambda w, i: [1, 2, 3, 4][i] * w,
    "repeated list": lambda w, i: [0] * i,
    "repeated text": lambda w, i: len("ab" * i),
    "key": lambda w, i: {-1: 0.5, 0: 1.0, 1: 2.0, 2: 3.0, 3: 3.0}[i] * w,
    "text": lambda w, i: len(f"{i:03d} {i} {str(i)} %d" % i) * w,
    "name": lambda w, i: {f"w{n}": w * n for n in range(4)}[f"w{i}"],
    "shape": lambda w, i: np.zeros((i, 2)),
    "order of a difference": lambda w, i: np.diff(w, n=i),
    "int": lambda w, i: int(i) * w,
    "float32": lambda w, i: np.float32(i) * w,
    "NumPy's arithmetic": lambda w, i: np.power(2, i),
    "types": lambda w, i: (type(i) is int, isinstance(i, int), type(w) is np.ndarray) == (True,) * 3,
    "matrix power": lambda w, i: np.linalg.matrix_power(np.outer(w, w), i),
    "mathematics": lambda w, i: (math.factorial(i), math.sqrt(i), math.hypot(i, 1.0), math.gcd(i, 6)),
    "everything": lambda w, i: (
        i, +i, -i, abs(i), ~i, i + True, divmod(7, i + 7), 7 % (i + 7), i < 2, not i, max(i, 1), min(1, i), i**2,
        2.0**i, round(i), i << 40, i >> 1, i & 6, i | 1, i ^ 3, sum([i, i, 2]), i in (1, 2),
        i is None, i == 2, i.real, i * 2.5,
    ),
    "long": lambda w, i: (i * 10**9 + 1) ** 3 * (i + 1),
    "division by zero": lambda w, i: 1 // i + 1 % i + 1 / i,
}  # fmt: skip


def outcome(f, *args):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return f(*args)
    except Exception as error:
        return type(error)


def agree(a, b):
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(agree, a, b))
    if isinstance(a, np.ndarray | np.generic) and type(a) is type(b):
        return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, equal_nan=True)
    return type(a) is type(b) and (math.isclose(a, b) if isinstance(a, float) else a == b)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("name", [*ONCE, *ASKED])
def test_as_plain_python(name, backend):
    f = {**ONCE, **ASKED}[name]
    c = compile(f, backend=backend)
    for i in VALUES:
        plain, found = outcome(f, W, i), outcome(c, W, i)
        assert agree(plain, found), (i, plain, found)
    if name in ONCE:
        assert "2 programs" in repr(c)


def test_a_large_integer_is_part_of_the_program():
    c = compile(lambda x, n: x * (n**3 % 1000))
    for n in (2, 3, 10**12, 2**70):
        assert c(2.0, n) == 2.0 * (n**3 % 1000)


def test_the_first_value_is_part_of_the_program():
    c = compile(lambda x, n: x**n)
    assert c(3.0, 2) == 9.0 and "3.0" not in (text := c.path(3.0, 2).graph.to_python()) and "**" not in text
    assert (c(3.0, 5), c(3.0, 4)) == (243.0, 81.0)
    assert c(3.0, 2) == 9.0 and "2 programs" in repr(c)


def test_integers_inside_containers():
    c = compile(lambda o: o["w"] * o["n"])
    assert [c({"w": 2.0, "n": n}) for n in (1, 2, 3)] == [2.0, 4.0, 6.0] and "2 programs" in repr(c)


def test_too_many_paths_name_the_argument_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(paths, "MOST_PATHS", 5)
    c = compile(lambda x, steps, other: x[:steps].sum() * other)
    with pytest.warns(StagingWarning, match="depends too often on its argument steps ") as warned:
        for n in range(12):
            assert c(np.ones(20), n, 3 + n) == n * (3 + n)
    assert len(warned) == 1 and "6 programs" in repr(c) or "7 programs" in repr(c)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda c, n: c(np.ones(n), "a"), "5 different shapes or dtypes of its argument x"),
        (lambda c, n: c(np.ones(2), k=f"{n}"), "5 different values of its argument k"),
        (lambda c, n: c(np.ones(2), "a", 1, {"s": f"{n}"}), r"5 different values of its argument number 4\['s'\]"),
    ],
)
def test_too_many_types_of_arguments_name_the_one_that_differs(monkeypatch, call, argument):
    monkeypatch.setattr(compiled, "MOST_TYPES", 5)
    c = compile(lambda x, k, *more: x.sum())
    with pytest.warns(StagingWarning, match=f"was compiled for {argument}, and runs as plain Python") as warned:
        for n in range(1, 9):
            call(c, n)
    assert len(warned) == 1 and "5 programs" in repr(c)
