"""An array that is read-only for NumPy is read-only under derivatives: a write raises ValueError, and `flags` says so.

Writes to a traced array after `setflags(write=False)`, and to `np.broadcast_to` and `np.diagonal`, were performed.
"""

import numpy as np
import pytest

from effgrad import compile, grad, jvp, value_and_grad, vmap
from effgrad.modes import READABLE

PROGRAMS = """
x.setflags(write=False); x[0] = 2.0; y = x
y = x * 2; y.setflags(write=False); y[0] = 2.0
y = x * 2; y.flags.writeable = False; y[0] = 2.0
y = x * 2; y.flags["WRITEABLE"] = False; y[...] = x[0]
y = x * 2; y.flags.writeable = False; y += 2.0
y = x * 2; y.flags.writeable = False; np.add(x, x, out=y)
y = x * 2; y.flags.writeable = False; y.fill(x[0])
y = x * 2; y.flags.writeable = False; y.sort()
y = x * 2; y.flags.writeable = False; np.copyto(y, x)
y = x * 2; y.flags.writeable = False; np.put(y, [0], x[1])
y = x * 2; y.flags.writeable = False; y.flat[1] = x[0]
y = x * 2; y.flags.writeable = False; y[y > 1] = 0.0
y = x * 2; y.flags.writeable = False; v = y[1:]; v[0] = 1.0
y = x * 2; y.flags.writeable = False; v = y.reshape(3, 1); v[0] = 1.0
y = x * 2; v = y[1:]; v.flags.writeable = False; v[0] = 2.0
y = np.broadcast_to(x, (2, 3)); y[0] = 2.0
y = np.diagonal(np.outer(x, x)); y[0] = x[0]
y = np.zeros(3); y.setflags(write=False); y[0] = x[0]
y = (x * 2).T; y.setflags(False); y[0] = 1.0
y = x * 2; v = y[1:]; v.flags.writeable = False; y[:] = 3 * x; y = v
y = x * 2; y.flags.writeable = False; y = y.copy(); y[0] = 1.0
y = x * 2; y.flags.writeable = False; y.flags.writeable = True; y[0] = 1.0
y = np.einsum("ii->i", np.outer(x, x)); y[0] = x[0]
y = x * 2; v = np.einsum("i...->...i", y); v[0] = x[0]
y = x * 2; v = y.reshape(3, 1); y.flags.writeable = False; v[0] = 5.0
y = x * 2; y.setflags(write=False); y = y * (2.0 - float(y.flags.writeable))
y = np.broadcast_to(x, (2, 3)); y = y * (2.0 - float(y.flags["W"]))
y = x * 2; y = y * (2.0 - float(y.flags.writeable)) + float(y.flags.c_contiguous)
""".strip().split("\n")
X = np.array([1.0, 2.0, 3.0])


def outcome(run):
    try:
        return run()
    except ValueError as error:
        return "read-only" if "read-only" in str(error) else str(error)


def program(text):
    lines = "\n    ".join(text.split("; "))
    space = {"np": np}
    exec(f"def f(x):\n    {lines}\n    return np.sum(y * y)", space)
    return space["f"]


def is_same(a, b):
    return a == b if isinstance(a, str) or isinstance(b, str) else np.allclose(a, b)


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_write_is_accepted_or_refused_as_by_numpy(text):
    f = program(text)
    expected = outcome(lambda: f(X.copy()))
    assert is_same(outcome(lambda: jvp(f, (X,), (X,))[0]), expected)
    assert is_same(outcome(lambda: compile(f, "numpy")(X)), expected)
    assert is_same(outcome(lambda: vmap(f)(np.stack([X, X]))), expected)
    for mode in READABLE:
        assert is_same(outcome(lambda mode=mode: value_and_grad(f, mode=mode)(X)[0]), expected), mode
    found = outcome(lambda: compile(grad(f), "numpy")(X))
    step = outcome(lambda: np.array([np.imag(f(X + 1e-30j * u)) / 1e-30 for u in np.eye(3)]))
    if "> 1" not in text:  # complex numbers are not compared
        assert is_same(found, step) if expected != "read-only" else found == expected


def test_a_number_may_be_marked_as_read_only():
    """A traced number, whose plain value is Python's float, failed with an error of Python's."""

    def f(x):
        y = x * 2.0
        y.setflags(write=False)
        return y

    assert grad(f)(3.0) == 2.0
