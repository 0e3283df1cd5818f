"""The two translations before delta terms with names: right, and as slow as the paper says."""

import numpy as np
import pytest

from effgrad import grad
from effgrad.papers.inefficient import Trees, Vectors, costs

PROGRAMS = {
    "polynomial": lambda x, y, z: x * x * y - z / y + 2.0 * x,
    "functions": lambda x, y, z: np.sin(x * y) * np.exp(-z) + x**3,
    "branch": lambda x, y, z: x * y if x > 0 else z,
    "constant": lambda x, y, z: 1.5,
    "input": lambda x, y, z: y,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("translation", [Vectors, Trees])
def test_gradients(translation, name):
    gradient, _ = translation().gradient(PROGRAMS[name], [0.5, -1.2, 2.0])
    np.testing.assert_allclose(gradient, grad(PROGRAMS[name], argnums=(0, 1, 2))(0.5, -1.2, 2.0), rtol=1e-14)


def total(*xs):
    result = xs[0]
    for x in xs[1:]:
        result = result + x
    return result


def doubled(times):
    def f(x):
        for _ in range(times):
            x = x + x
        return x

    return f


def test_vectors_cost_the_number_of_inputs_for_every_operation():
    # Each addition scales two tangents and adds them: 3 vectors.
    assert [costs(total, [1.0] * n)["vectors"] for n in (10, 20, 40)] == [3 * (n - 1) * n for n in (10, 20, 40)]
    assert [costs(total, [1.0] * n)["delta"] for n in (10, 20, 40)] == [2 * (n - 1) for n in (10, 20, 40)]


def test_trees_cost_two_to_the_number_of_doublings():
    for n in (4, 8, 16):
        # Each doubling is an Add of two Scales of what was there.
        assert costs(doubled(n), [1.0])["trees"] == 4 * 2**n - 3
        assert costs(doubled(n), [1.0])["delta"] == 2 * n
    assert costs(total, [1.0] * 40)["trees"] < 5 * 40  # without sharing they are as good
