"""Arrays in another byte order than the machine's, as files of instruments have them, in compiled programs."""

import numpy as np
import pytest
from differences import slope

import effgrad
from effgrad import grad

POINT = np.array([[0.3, 0.5, 0.7], [1.1, 0.2, 0.4]])
DIRECTION = np.array([[0.4, -1.1, 0.9], [0.2, 0.8, -0.5]])
SWAPPED = np.dtype(float).newbyteorder()
DATA = np.array([[0.6, 0.1, 0.9], [0.8, 1.2, 0.35]]).astype(SWAPPED)
PLACES = np.array([[0, 1, 2], [2, 1, 0]]).astype(np.dtype(int).newbyteorder())


def in_a_loop(x):
    s = 0.0
    for k in range(40):
        s = 0.9 * s + x[k % 2, k % 3] * DATA[k % 2, (k + 1) % 3] + x[0, PLACES[k % 2, k % 3]]
    return s


def written_in_a_loop(x):
    a = DATA.copy()
    for k in range(40):
        a[k % 2, k % 3] = 0.5 * x[0, 0] + 0.1 * a[0, 1]
    return np.sum(a * x)


def written(x):
    a = DATA.copy()
    a[0] = x[1]
    a[1, 1] = x[0, 0]
    return np.sum(a * DATA)


def made(x):
    a = np.zeros((2, 3), SWAPPED)
    a[0] = x[0]
    a[1, 1] = x[1, 2] * a[0, 1]
    return a[0, 0] * a[1, 1] + np.sum(a)


PROGRAMS = {
    "item": lambda x: x[0, 1] * x[1, 0],
    "sum": lambda x: np.sum(x[0, :2]) + x[0, 0],
    "list": lambda x: sum(v * k for k, v in enumerate(x.ravel())),
    "tolist": lambda x: sum(x.ravel().tolist()) * x.item(0),
    "element of data": lambda x: x[0, 0] * DATA[0, 1],
    "data": lambda x: np.sum(x * DATA),
    "product with data": lambda x: np.sum(x @ DATA.T),
    "places": lambda x: x[PLACES[0, 1], PLACES[1, 1]] * np.sum(x[0][PLACES[0]] * DATA[1]),
    "where": lambda x: np.sum(np.where(DATA > 0.4, x, DATA)),
    "concatenate": lambda x: np.sum(np.concatenate([x, DATA]) ** 2),
    "interp": lambda x: np.sum(np.interp(x[0], np.arange(3).astype(SWAPPED), DATA[0])),
    "astype": lambda x: np.sum(2 * x.astype(SWAPPED)) + x.astype(SWAPPED)[0, 1],
    "full": lambda x: np.full(3, x[0, 0], dtype=SWAPPED)[1] * x[0, 1],
    "array": lambda x: np.array([x[0, 0], x[0, 1]], dtype=SWAPPED)[1] * 2.0,
    "in a loop": in_a_loop, "written in a loop": written_in_a_loop, "written": written, "made": made,
}  # fmt: skip


@pytest.mark.parametrize("swaps", [False, True], ids=["native argument", "swapped argument"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("error::effgrad.errors.StagingWarning")
def test_the_order_of_bytes_does_not_matter(name, swaps):
    f = PROGRAMS[name]
    x = POINT.astype(SWAPPED) if swaps else POINT
    expected = slope(f, POINT, DIRECTION, 1e-4)
    for found in (grad(f), effgrad.compile(grad(f))):
        assert np.sum(found(x.copy()) * DIRECTION) == pytest.approx(expected, rel=1e-7)
    assert effgrad.compile(f)(x.copy()) == pytest.approx(f(POINT.copy()), rel=1e-13)
