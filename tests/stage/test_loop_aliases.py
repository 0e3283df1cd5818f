"""Arrays made in a step of a captured loop that a block inside, a function, or another name writes to.

Such an array was stored inside the block alone, and what came after the block read it as it was before, without a word.
"""

import numpy as np
import pytest

import effgrad

pytestmark = pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
STEPS = 40


def bump(v):
    v += 1.0
    v[0] = 3.0


def in_a_branch(y, x, k):
    if x[1] > 0.0:
        y[1] = 7.0


def in_a_loop(y, x, k):
    for i in range(3):
        y[i] = y[i + 1] * x[i]


def in_a_branch_of_a_loop(y, x, k):
    for i in range(3):
        if y[i] > 0.2:
            y[i] = y[i] * x[i]


def in_a_while(y, x, k):
    j = 0
    while j < 3:
        y[j] = y[j + 1] * 0.5
        j += 1


def by_a_mask_in_a_branch(y, x, k):
    if x[0] > 0.0:
        y[y > 0.5] = 0.25


def by_masks_in_a_loop(y, x, k):
    for i in range(4):
        y[y > 0.5 * i] *= 0.25


def under_another_name(y, x, k):
    z = y
    for i in range(4):
        if x[i] > 0.0:
            z[i] = z[i + 1]


def augmented_under_another_name(y, x, k):
    z = y
    z += 1.0
    for i in range(4):
        y += i


def by_a_function(y, x, k):
    bump(y)


def by_a_function_in_a_branch(y, x, k):
    if x[2] > 0.0:
        bump(y)


def by_a_function_in_a_loop(y, x, k):
    for i in range(3):
        y[1] += y[0] * 0.1 * i
        bump(y)


def into_an_output(y, x, k):
    w = x + 1.0
    for j in range(3):
        if w[j] > 1.0:
            np.add(y, w, out=y)


def through_a_view(y, x, k):
    w = y[::2]
    if x[1] > 0.0:
        w[1] = 3.0


def through_a_part(y, x, k):
    w, v = y[::2], y.T
    w[1] = 3.0
    v[0] = 4.0


def through_another_shape(y, x, k):
    y[1] = 2.0
    y.reshape(2, 3)[0] = 3.0


def in_a_container(y, x, k):
    both = [y, x]
    if x[2] > 0.0:
        both[0][3] = 2.0


def after_a_new_binding(y, x, k):
    z = y
    for i in range(4):
        if x[i] > 0.0:
            z[i] = 2.0
        else:
            y = y * 2.0
            y[i] = 1.0


WRITES = [f for name, f in list(globals().items()) if callable(f) and f.__module__ == __name__ and f is not bump]


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_a_write_is_seen_after_its_block(write):
    def f(x):
        total = 0.0
        for k in range(STEPS):
            y = x * x
            write(y, x, k)
            total += np.sum(y * x) + y[1]
        return total

    random, u, step = np.random.default_rng(0), np.random.default_rng(1).normal(size=6), 1e-6
    value, both = effgrad.compile(f), effgrad.compile(effgrad.value_and_grad(f))
    for _ in range(6):
        x = random.normal(size=6)
        assert value(x) == pytest.approx(f(x.copy()), rel=1e-12)
        found, gradient = both(x)
        assert found == pytest.approx(f(x.copy()), rel=1e-12)
        slope = (f(x + step * u) - f(x - step * u)) / (2 * step)
        assert gradient @ u == pytest.approx(slope, rel=1e-5, abs=1e-5)
