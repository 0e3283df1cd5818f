"""Roots of sums of squares at 0: as the same programs without a root, and as the limit infinitely near."""

import numpy as np
import pytest

import effgrad
from effgrad import grad, jvp
from effgrad.api import singular

DISTANCES = {
    "sum of squares": lambda d: np.sqrt(np.sum(d**2, axis=-1)),
    "power": lambda d: np.sum(d * d, axis=-1) ** 0.5,
    "einsum": lambda d: np.sqrt(np.einsum("ijk,ijk->ij", d, d)),
    "columns": lambda d: np.sqrt(d[:, :, 0] ** 2 + np.square(d[:, :, 1]) + d[:, :, 2] ** 2.0),
    "weighted": lambda d: np.sqrt(np.sum(d**2 * np.array([1.0, 2.0, 3.0]) / 2.0, axis=-1)),
}
POTENTIALS = {
    "gauss": lambda r, d: np.exp(-(r**2) / 0.4), "spring": lambda r, d: (r - 1.0) ** 2 * 0.1,
    "kernel": lambda r, d: np.where(r < 1.0, (1.0 - r) ** 3, 0.0), "distance": lambda r, d: r,
    "force": lambda r, d: np.sum(d, axis=-1) * np.exp(-r),
}  # fmt: skip


def energy(distance, potential):
    def f(p):
        d = p[:, None, :] - p[None, :, :]
        return np.sum(potential(distance(d), d) * np.arange(1.0, 1 + len(p)))

    return f


def without_diagonal(distance, potential):
    """The same sum over the pairs of two particles, which are not singular, and what the others add to it."""

    def f(p):
        i, j = np.nonzero(~np.eye(len(p), dtype=bool))
        d = (p[i] - p[j])[None]
        return np.sum(potential(distance(d), d) * np.arange(1.0, 1 + len(p))[j])

    return f


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("distance", DISTANCES.values(), ids=DISTANCES)
@pytest.mark.parametrize("potential", POTENTIALS.values(), ids=POTENTIALS)
def test_particles_do_not_act_on_themselves(distance, potential, monkeypatch):
    """The search for the limit took 2,000 times as long as the program, and gave up from 183 particles on."""
    p = np.random.default_rng(0).normal(size=(7, 3))
    expected = grad(without_diagonal(distance, potential))(p)
    monkeypatch.setattr(singular, "_limits", None)  # it is not needed
    f = energy(distance, potential)
    np.testing.assert_allclose(grad(f)(p), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(effgrad.compile(grad(f))(p), expected, rtol=1e-12, atol=1e-13)
    assert jvp(f, (p,), (p,))[1] == pytest.approx(np.sum(expected * p), rel=1e-11)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_particles():
    f = energy(DISTANCES["sum of squares"], POTENTIALS["gauss"])
    p = np.random.default_rng(0).normal(size=(190, 3))
    assert np.isfinite(grad(f)(p)).all()


# Programs of two numbers, singular at 0 or where one of them is 0. Some have no derivative there, some no norm.
PROGRAMS = {
    "a half": lambda x: np.sqrt(np.maximum(x[0], 0) ** 2),
    "an indefinite product": lambda x: np.sqrt(x[0] * x[1]),
    "a cube": lambda x: np.sqrt(x[0] ** 3),
    "a cusp": lambda x: np.sqrt(np.abs(x[0]) ** 1.2) ** 1.5,
    "an infinite value inside": lambda x: np.exp(-1 / np.sqrt(x @ x)),
    "a guarded quotient": lambda x: np.sum(np.where(np.sqrt(x**2) > 0, 1 / np.sqrt(x**2), 0.0)),
    "a fourth power": lambda x: np.sqrt(x[0] ** 4),
    "two roots": lambda x: np.sqrt(np.sqrt(x[0] ** 4)),
    "a root without a square": lambda x: np.sqrt(x[0]) ** 2,
    "a norm": lambda x: np.sqrt(x @ x),
    "a function of a norm": lambda x: np.cos(np.sqrt(x @ x)) + x[0],
    "a power of a norm": lambda x: np.sqrt(x @ x) ** 1.5,
    "the root of a norm": lambda x: np.sqrt(np.sqrt(x @ x)),
    "a kink beside it": lambda x: np.abs(x[0]) * np.sqrt(x @ x) + x[0],
    "a maximum of both": lambda x: np.maximum(np.sqrt(x @ x), x[0]),
    "signs": lambda x: np.sum(np.sqrt(x**2) * np.sign(x)),
    "a difference of squares": lambda x: np.sqrt(4 * x[0] ** 2 - x[1] ** 2),
    "negative weights": lambda x: np.sqrt(np.sum(x**2 * np.array([1.0, -1.0]))),
    "a derivative inside": lambda x: grad(lambda y: np.sqrt(y @ y) ** 3)(x) @ np.array([1.0, 2.0]),
    "scales": lambda x: np.sqrt(np.sum(x**2 / np.exp(x))) + x[0] * 2,
    "a deviation": lambda x: np.sqrt(np.mean((x - x.mean()) ** 2)),
    "complex squares": lambda x: np.real(np.sqrt((x[0] + 1j * x[1]) ** 2)),
    "nothing": lambda x: np.sqrt(0 * x[0] ** 2),
    "two vectors": lambda x: np.sqrt(np.einsum("i,j->", x, x)),
    "a traced exponent": lambda x: np.sqrt(np.abs(x[0]) ** (2 + x[1])),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("at", [[0.0, 0.0], [0.0, 1.0], [0.7, 0.7], [1.0, 0.0]])
def test_what_is_taken_for_a_norm_has_its_limit(f, at, monkeypatch):
    at = np.array(at)

    def slopes():
        return [grad(f)(at), np.array([jvp(f, (at,), (e,))[1] for e in np.eye(2)])]

    found = slopes()
    monkeypatch.setattr(singular, "_beside_norms", lambda compute, inputs: None)
    np.testing.assert_allclose(found, slopes(), rtol=1e-9, atol=1e-9)
