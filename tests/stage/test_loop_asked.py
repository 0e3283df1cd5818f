"""Loops that ask for the class, the type or the axes of a value: captured, with the answers of the running program."""

import numpy as np
from stateful_programs import POINT, assert_captured

import effgrad

# Of an array y, Python's and NumPy's numbers p and s, the step's number i, a complex number z and a complex array w.
ASKED = (
    lambda y, p, s, i, z, w: np.ndim(y) + 10 * np.size(y) + 100 * np.size(y, 0) + 1000 * np.shape(y)[0],
    lambda y, p, s, i, z, w: np.ndim(p) + np.ndim(s) + np.ndim([y, y]) + np.shape([s, s])[0] + (np.shape(z) == ()),
    lambda y, p, s, i, z, w: y.itemsize + 100 * y.nbytes + y.ndim + y.size + w.nbytes + w.itemsize,
    lambda y, p, s, i, z, w: 1 * np.iscomplexobj(y) + 2 * np.iscomplexobj(s) + 4 * np.iscomplexobj(z),
    lambda y, p, s, i, z, w: 1 * np.iscomplexobj(w) + 2 * np.isrealobj(w) + 4 * np.isrealobj([y, y]),
    lambda y, p, s, i, z, w: 1 * (np.result_type(y).char == "d") + 2 * (np.result_type(w, y).char == "D"),
    lambda y, p, s, i, z, w: 1 * (np.common_type(y) is np.float64) + 2 * (np.common_type(y, w) is np.float64),
    lambda y, p, s, i, z, w: 1 * np.isscalar(y) + 2 * np.isscalar(p) + 4 * np.isscalar(s) + 8 * np.isscalar(i),
    lambda y, p, s, i, z, w: 1 * np.iterable(y) + 2 * np.iterable(s) + 4 * np.iterable(w) + 8 * np.iterable([p]),
    lambda y, p, s, i, z, w: 1 * (type(p) is float) + 2 * (type(s) is float) + 4 * (type(i) is int),
    lambda y, p, s, i, z, w: 1 * (type(s) is np.float64) + 2 * (type(y) is np.ndarray) + 4 * (type(z) is complex),
    lambda y, p, s, i, z, w: 1 * isinstance(z, complex) + 2 * isinstance(z, tuple) + 4 * isinstance(w, np.ndarray),
    lambda y, p, s, i, z, w: 1 * isinstance(s, float) + 2 * isinstance(p, np.float64) + 4 * isinstance([y], list),
    lambda y, p, s, i, z, w: 1 * hasattr(y, "shape") + 2 * hasattr(p, "shape") + 4 * hasattr(i, "real"),
    lambda y, p, s, i, z, w: 1e16 * np.finfo(y.dtype).eps,
)


def answers(x):
    y, p, s, total = x * 1.0, 1.0, x[0] * 1.0, np.zeros(len(ASKED))
    for i in range(40):
        z, w = complex(p, 2.0), 1j * y
        found = [ask(y, p, s, i, z, w) for ask in ASKED]
        total = 0.5 * total + np.array(found) * np.sum(y)
        y, p, s = 0.9 * y, 0.5 * p, 0.9 * s + np.abs(w[0])
    return total


def test_a_loop_that_asks_for_classes_types_and_axes():
    compiled = effgrad.compile(answers)
    np.testing.assert_allclose(compiled(POINT), answers(POINT), rtol=1e-12)
    assert_captured(lambda x: np.sum(answers(x) * np.linspace(0.5, 1.5, len(ASKED))))


def test_a_loop_over_complex_items_and_over_one_combination_of_nothing():
    def f(x):
        w, total = np.exp(1j * np.tile(x, 10)), 0.0
        for k, (z, y) in enumerate(zip(w, reversed(w), strict=True)):
            for at in np.ndindex(x.shape[1:]):
                total = total + (z * y).real / (k + 1) + np.abs(z) * len(at)
        return total

    assert_captured(f)


def test_loops_over_several_things_that_are_counted_by_steps():
    def f(x):
        y, total = np.tile(x, 30), 0.0
        for k, i in enumerate(range(119, 3, -3), 1):
            total = 0.9 * total + y[i] * y[i - 1] / k
            for a, b in zip(y[:k], y[k : 2 * k], strict=True):
                total = total + a * np.sin(b)
        for i, j, a in zip(reversed(range(2, 120, 3)), range(0, 200, 2), reversed(y), strict=False):
            total = total + y[i] * y[j] * a
        return total

    assert_captured(f)


def test_a_name_that_is_deleted_after_a_loop_has_a_value():
    """A loop that was left early inside kept only the names that were read, and `del` found none."""

    def f(x):
        total = 0.0
        for v in x:
            for j in range(3):
                if j == 2:
                    break
                total += v * v * j
            w = v
        del v, w
        return total

    x = np.array([0.5, 1.5, -0.25])
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(x), 2 * x)
