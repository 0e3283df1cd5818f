"""A traced number in an option of a NumPy function, beside plain arrays: NumPy's protocols do not ask options."""

import numpy as np
import pytest
from differences import directional

import effgrad

Y = np.array([0.3, 0.9, -0.4, 2.0])
WITH_GAPS = np.array([0.3, np.nan, -0.4, np.inf, -np.inf, 2.0])
WAVES = np.array([[0.3, 4.1], [9.0, 1.2]])


def masked_copy(x):
    a = np.zeros(3)
    np.putmask(a, a == 0, [x, 2.0])
    return a * np.arange(3)


CALLS = {
    "sum": lambda x: np.sum(Y, initial=x) * np.prod(Y, initial=x),
    "max": lambda x: np.max(Y, initial=3 * x) - np.min(WAVES, axis=0, initial=-x),
    "a method": lambda x: Y.sum(initial=x) * Y.max(initial=3 * x),
    "reduce": lambda x: np.add.reduce(Y, initial=x) * np.multiply.reduce(WAVES, initial=x),
    "interp": lambda x: np.interp([-1.0, 9.0], [0.0, 1], [1.0, 2], left=x, right=x**2),
    "interp by position": lambda x: np.interp([-1.0, 9.0], [0.0, 1], [1.0, 2], x, 2.0),
    "interp's period": lambda x: np.interp(5.3, [0.0, 1, 2], [1.0, 2, 4], period=2 + x),
    "unwrap": lambda x: np.unwrap(Y * 5, period=2 * x),
    "trapezoid": lambda x: np.trapezoid(Y, dx=x) if hasattr(np, "trapezoid") else np.trapz(Y, dx=x),
    "select": lambda x: np.select([Y > 1], [Y], default=x),
    "pad": lambda x: np.pad(Y, 1, constant_values=x) ** 2,
    "pad with a ramp": lambda x: np.pad(Y, 2, mode="linear_ramp", end_values=x),
    "norm": lambda x: np.linalg.norm(Y, 2 + x) + np.linalg.norm(WAVES, ord=1 + x, axis=1),
    "norm of traced numbers": lambda x: np.linalg.norm(x * Y, ord=2 + x),
    "nan_to_num": lambda x: np.nan_to_num(WITH_GAPS, nan=x, posinf=x**2, neginf=3 * x),
    "nan_to_num of traced numbers": lambda x: np.nan_to_num(x * WITH_GAPS, nan=x, posinf=2.0, neginf=3 * x),
    "nan_to_num of complex numbers": lambda x: np.abs(np.nan_to_num(WITH_GAPS * (1 + 0j), nan=x, posinf=x, neginf=x)),
    "putmask of a list": masked_copy,
}


@pytest.mark.parametrize("transform", [lambda f: f, effgrad.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_options_have_derivatives(name, transform):
    """These were refused as if NumPy's function took no traced numbers at all."""
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=np.shape(CALLS[name](0.7)))

    def f(x):
        return np.sum(weights * CALLS[name](x))

    value, slope = transform(effgrad.value_and_grad(f))(0.7)
    wanted, error = directional(f, 0.7, 1.0, step=1e-2)
    assert value == pytest.approx(f(0.7), rel=1e-14)
    assert slope == pytest.approx(float(wanted), rel=1e-7, abs=10 * error)
