"""Integers that a loop of a compiled program counts, wherever Python and NumPy take one."""

import linecache

import numpy as np
import pytest

from effgrad import compile, value_and_grad

FORMS = (
    "t = np.sum(v[[0, 0, k % 4]])", "v[[0, k % 4]] = t", "v[[0, k % 4]] += t", "np.add.at(v, [0, 0, k % 4], t)",
    "np.add.at(v, np.array([0, 0, k % 4]), t)", "np.add.at(A, ([0, 0, k % 4], [1, k % 3, 2]), t)",
    "np.multiply.at(v, [0, k % 4], t)", "np.maximum.at(v, [0, k % 4], t)", "v = np.take(v, [0, 1, k % 4, 2])",
    "np.put(v, [0, k % 4], [t, t * 2])", "t = A[k % 4, [0, k % 3]].sum()", "A[k % 4, [0, k % 3]] = t",
    "t = A[(0, k % 4), (1, 2)].sum()", "t = A[1 : k % 4, [0, 2]].sum()", "v[: k % 4] = t", "v = np.roll(v, k % 4)",
    "t = np.repeat(v, k % 4).sum()", "t = np.delete(v, k % 4).sum()", "t = (np.insert(v, k % 4, t) ** 2).sum()",
    "t = np.delete(v, [0, k % 4]).sum()", "t = np.diagonal(A, k % 3 - 1).sum()", "t = np.tril(A, k % 3 - 1).sum()",
    "t = np.take_along_axis(A, np.array([[0, k % 4]]), 1).sum()", "t = A[np.ix_([0, k % 4], [1, 2])].sum()",
    "t = A.flat[[0, k]].sum()", "A.flat[k] = t", "t = A.item(k % 4, 1)", "t = np.sum(np.arange(k) * t)",
    "w = np.zeros(k + 1); w[k] = t; t = w.sum()", "t = np.linspace(0, t, k + 2).sum()", "t = float(k) * t + k / 3 * s",
    "t = sum(p[0] * (j + 1) for j, p in enumerate(np.split(v, [1, 2 + k % 2])))",
    "t = np.bincount([0, k % 4, 1], weights=v[:3]).sum()", "t = np.partition(v, k % 4)[k % 4]",
    "t = [t, v[0], v[1], s][k % 4]", "t = {0: t, 1: v[0], 2: v[1], 3: s}[k % 4]",
    "a, b = divmod(k, 3); t = t * a + b * v[0]", "t = t * ((k << 1) ^ 3) + (k & 1) * v[0] + (k // 2) * (k | 4)",
    "t = (np.add.reduceat(v, [0, 1 + k % 3]) * [1, 2]).sum()", "t = np.sum(A, axis=k % 2)[1]",
    "v[np.array([k > 2, True, False, k % 2 == 0])] *= 0.5", "t = A[np.unravel_index(k, (4, 4))]",
)  # fmt: skip


def counting(form):
    """A function that counts the steps of a loop in `k`, and then runs a line."""
    lines = ["def f(x, A, s):", "    v, t, k, r = x * 0.5, s * 2.0, 0, abs(s) + 0.5", "    while r < 4.0:",
             "        r = r * 1.3", "        k += 1", f"    {form}",
             "    return np.sum(np.sin(v)) + t * t + np.sum(A * A)"]  # fmt: skip
    source, name = "\n".join(lines) + "\n", f"<{form}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    names = {"np": np}
    exec(__builtins__["compile"](source, name, "exec"), names)
    return names["f"]


@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
def test_a_counted_integer_is_an_integer(form):
    f, rng = counting(form), np.random.default_rng(3)
    both = value_and_grad(f, argnums=(0, 1, 2))
    compiled = compile(both)
    for s in (0.31, 1.2, -0.41):
        x, A = rng.normal(size=4), rng.normal(size=(4, 4))
        value, slopes = compiled(x, A.copy(), s)
        np.testing.assert_allclose(value, f(x, A.copy(), s), rtol=1e-13)
        for found, wanted in zip(slopes, both(x, A.copy(), s)[1], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
