"""Random programs with views and writes: the value to the bit, and the derivative of NumPy's complex step."""

import re
import warnings

import mutating
import numpy as np
import pytest

EAGER = ["forward", "reverse", "delta", "checkpoint"]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("chunk", range(5))
def test_random_programs_with_views_and_writes(chunk):
    """`python -m benchmarks.fuzz_writes` runs more of them."""
    with np.errstate(all="ignore"):
        for seed in range(chunk * 40, chunk * 40 + 40):
            runs = [*EAGER, "compiled", "compiled to NumPy"] if seed % 20 == 0 else EAGER
            assert not list(mutating.disagreements(seed, runs)), mutating.generate(seed)[0]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("chunk", range(12))
def test_random_programs_with_loops(chunk):
    """`python -m benchmarks.fuzz_writes --loops` runs more of them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(chunk * 25, chunk * 25 + 25):
            found = list(mutating.disagreements(seed, ["compiled"], loops=True))
            assert not found, mutating.generate(seed, 7, loops=True)[0]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("chunk", range(8))
def test_random_programs_with_loops_over_generators(chunk):
    """`python -m benchmarks.fuzz_writes --generators` runs more of them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(chunk * 12, chunk * 12 + 12):
            found = list(mutating.disagreements(seed, ["compiled"], loops=True, generators=True))
            assert not found, mutating.generate(seed, 7, True, True)[0]


def test_the_generator_draws_every_statement():
    texts = "\n".join(mutating.generate(seed)[0] for seed in range(600))
    for kind in (*mutating.VIEWS, *mutating.COPIES, *mutating.WRITES, *mutating.NUMBERS):
        assert re.search(re.sub(r"\\{\w\\}", ".+", re.escape(kind)), texts), kind


STORIES = {
    "a copy of a flipped array is a new one, with its own views": """
def f(x):
    b = np.array(x[::-1])
    r = b.ravel()
    r[0] = 9.0
    return np.sum(b * x)
""",
    "an element that goes through a loop is a number": """
def f(x):
    a = np.zeros(1)
    a[...] = x[0, 0]
    a[...] = a + x[1, 1]
    for row in a:
        row += 7.0
    return a[0]
""",
    "an array that is written to as a whole keeps its order in memory": """
def f(x):
    a = x * 1.0
    a[...] = x[0]
    r = a.ravel()
    r[1] = 3.0
    return np.sum(np.sin(a) * x)
""",
    "a turned array lies in memory as NumPy's": """
def f(x):
    a = np.rot90(x)
    b = np.asfortranarray(a)
    b[0, 0] = 5.0
    return np.sum(a * 2.0) + np.sum(b)
""",
    "a contiguous copy of a view stays what it was": """
def f(x):
    b = x[:, 1:]
    x[0, 0] = 3.0
    c = np.ascontiguousarray(b)
    d = np.ravel(b, order="K")
    x[:] = 7.0
    return np.sum(c * c) + np.sum(d) + np.sum(b)
""",
    "an array without axes is changed in place": """
def f(x):
    a = x[0, :1] * 2.0
    b = np.squeeze(a)
    a **= 2
    b *= x[1, 1]
    b += 1.0
    return np.sum(a) + b
""",
    "einsum gives a view": """
def f(x):
    a = np.zeros((2, 2))
    a[0, 0] = x[0, 0]
    b = np.einsum("ij->ji", a)
    b[1, 0] = x[1, 1]
    d = np.einsum("ii->i", a)
    d *= 2.0
    return np.sum(a * a)
""",
    "a traced number through flat": """
def f(x):
    a = np.zeros((2, 2))
    a.flat[3] = x[0, 0]
    a.flat[1:3] = [x[1, 1], 2.0]
    return np.sum(a * a)
""",
}


@pytest.mark.parametrize("story", STORIES)
def test_programs_that_were_wrong(story):
    text, x = STORIES[story], np.array([[0.3, -0.8], [0.7, 0.4]])
    f, u = mutating.function(text, story), np.array([[1.0, 0.5], [-0.7, 0.2]])
    slope = mutating.derivative(text, x, u)
    for run in mutating.RUNS:
        value, tangent = mutating.RUNS[run](f, x, u)
        np.testing.assert_allclose(value, f(x.copy()), rtol=1e-14)
        np.testing.assert_allclose(tangent, slope, rtol=1e-12)


VIEWS_OF_A_NUMBER = [
    "a.ravel('F')", "a.ravel()", "np.ravel(a, order='K')", "np.ravel(a, order='A')", "a[None]", "a[...]", "a.view()",
    "a.reshape(1, order='F')", "np.atleast_1d(a)", "np.atleast_3d(a)", "np.expand_dims(a, 0)", "np.transpose(a)",
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS_OF_A_NUMBER)
@pytest.mark.parametrize("written", ["y[0] = y[0]", "pass"])
def test_a_write_through_a_view_of_an_array_without_axes_is_seen(view, written):
    """In a checkpoint, `ravel(order="F")` of such an array that was written to made a copy."""
    lines = ["y = x * 2.0", written, "a = np.squeeze(y)", f"v = {view}", "v *= 3.0", "return sum(y) + 10.0 * np.sum(v)"]
    f, x = mutating.function("def f(x):\n    " + "\n    ".join(lines), f"{view}, {written}"), np.array([-0.7])
    for name in EAGER:
        value, slope = mutating.RUNS[name](f, x, np.ones(1))
        assert value == f(x.copy()), name
        assert slope == pytest.approx(66.0), name
