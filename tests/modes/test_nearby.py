"""The limit of a derivative at a singular point, along paths beside it: which programs are too long for it."""

import numpy as np
import pytest

from effgrad import grad
from effgrad.modes.nearby import LONGEST, Nearby


def chain(n):
    """`x * sqrt(x * x)` after `n` operations that change nothing."""

    def f(x):
        for _ in range(n):
            x = x * 1.0
        return np.sum(x * np.sqrt(x * x))

    return f


def test_the_operations_of_a_path_are_bounded():
    with Nearby() as nearby:
        x = nearby.variable(0.5, 1.0)
        for _ in range(LONGEST):
            x = -x
        with pytest.raises(OverflowError, match="too long"):
            _ = -x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_long_program_keeps_the_derivative_of_its_formula():
    """The search for a limit took minutes, at each call."""
    assert grad(chain(100))(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(grad(chain(LONGEST))(np.zeros(3))).all()
