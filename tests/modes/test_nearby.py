"""The limit of a derivative at a singular point, along paths beside it: which programs are too long for it."""

import cmath

import numpy as np
import pytest
from scipy import special

from effgrad import grad, hvp, jvp
from effgrad.arrays.laurent import Laurent, linear
from effgrad.modes.nearby import LONGEST, Nearby
from effgrad.modes.series_rules import leaves_domain


def chain(n):
    """`x * cbrt(x)**3` after `n` operations that change nothing."""

    def f(x):
        for _ in range(n):
            x = x * 1.0
        return np.sum(x * np.cbrt(x) ** 3)

    return f


@pytest.mark.parametrize("done", [0, LONGEST - 9])
def test_the_series_on_all_paths_are_bounded(done):
    """Each of 16 paths had its own bound: a derivative that overflowed after 14,000 operations took a minute."""
    with Nearby(done) as nearby:
        x = nearby.variable(0.0, 1.0)
        for _ in range(LONGEST - done):
            x = -x
        with pytest.raises(OverflowError, match="too long"):
            _ = np.abs(x)


def settled(p):
    """A charge at the distance |p| from another, which an iteration of many smooth steps settles.

    As in a quantum chemist's integrals, the root of the distance is squared again at once, and all else is smooth.
    """
    r = np.linalg.norm(p)
    charge = np.exp(-r * r)
    for _ in range(400):
        charge = charge + 0.01 * np.sin(charge * p[0] + charge)
    return charge * charge


def settled_by_square(s):
    """`settled` beside p[0] = 0, of the square of the distance, in complex numbers."""
    charge = cmath.exp(-s)
    for _ in range(400):
        charge = charge + 0.01 * cmath.sin(charge)
    return charge * charge


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_only_what_a_singular_operation_needs_has_a_series():
    """Every operation had one: 20,675 of the energy of a molecule, whose Hessian was NaN as they were too many."""
    slope = settled_by_square(1e-30j).imag / 1e-30
    u, v = np.array([0.0, 0.3, -0.4]), np.array([0.0, 1.0, 0.5])
    with Nearby() as nearby:
        p = nearby.variable(np.zeros(3), np.array([0.7, -1.1, 0.9]))
        product = jvp(grad(settled), (p,), (v,))[1]
        limit = sum(float(a) * nearby.limits(part)[0] for a, part in zip(u, product, strict=True))
    assert nearby.run > 5000 and nearby.done < 200
    assert np.isclose(limit, 2 * slope * (u @ v), rtol=1e-12)
    assert np.isclose(u @ hvp(settled, np.zeros(3), v), 2 * slope * (u @ v), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_long_program_keeps_the_derivative_of_its_formula():
    """The search for a limit took minutes, at each call."""
    assert grad(chain(100))(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(grad(chain(LONGEST))(np.zeros(3))).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_series_that_cannot_be_computed_leaves_the_derivative():
    """The series of `i1e` nests too deeply. It is asked for at the end of a path, where that was an error."""
    slope = lambda x: jvp(lambda x: np.sum(special.i1e(x)), (x,), (np.ones(3),))[1]  # noqa: E731
    found = grad(slope)(np.array([0.0, 1.0, -2.0]))
    assert np.isnan(found[0])
    step = 1e-5
    for i, x in enumerate([1.0, -2.0], 1):
        near = [special.ive(1, x + h) for h in (-step, 0.0, step)]
        np.testing.assert_allclose(found[i], (near[0] - 2 * near[1] + near[2]) / step**2, rtol=1e-4)


FACTORS = {
    "prod": lambda x: np.prod(1 + x, axis=0), "cumprod": lambda x: np.cumprod(1 + x)[-1],
    "max": lambda x: np.max(x + [0.0, 1.0]), "min": lambda x: np.min(x + [1.0, 2.0]), "sum": lambda x: np.sum(x + 0.5),
    "sort": lambda x: np.sort(x + [0.0, 1.0], axis=0)[1], "mean": lambda x: np.mean(x + 1, axis=0),
    "clip": lambda x: np.clip(x, -1, 1)[0] + 1, "where": lambda x: np.where(x < 1, 1 + x, 0)[0],
    "einsum": lambda x: np.einsum("i,i->", 1 + x, x + 0.5) / 1.0,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FACTORS)
def test_a_smooth_factor_with_options_leaves_the_limit(name):
    """The row of `prod` was asked with its axis whether it is analytic, did not take it, and the limit was lost."""
    f, zero, u = FACTORS[name], np.zeros(2), np.array([0.6, -0.8])
    second = jvp(lambda x: jvp(lambda x: np.linalg.norm(x) ** 2 * f(x), (x,), (u,))[1], (zero,), (u,))[1]
    np.testing.assert_allclose(second, 2 * f(zero), rtol=1e-12)


@pytest.mark.parametrize("total", [True, False])
def test_a_sum_whose_terms_are_not_known_far_enough_leaves_no_domain(total):
    """One term is of order 12, the other one is zero as far as it is known: the sum's one coefficient is NaN."""
    far, zero = Laurent(12, np.ones((6, 2))), Laurent(0, np.zeros((12, 2)))
    found = linear(np.add, far, zero)
    assert np.isnan(found.leading()).all()
    assert leaves_domain(found, np.zeros(2), [far, zero], total) is not total


TIES = {
    "jv": lambda x: special.jv(1.5, x), "j0": special.j0, "kv": lambda x: special.kv(0.7, x),
    "spherical_jn": lambda x: special.spherical_jn(2, x), "iv": lambda x: np.exp(x) * special.iv(1.2, x) + x,
}  # fmt: skip


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", TIES)
def test_the_second_derivative_at_a_tie_of_two_equal_bessel_functions(name):
    """Their series doubled the work with each term and recursed until Python's limit, so each such limit was NaN."""
    g = TIES[name]

    def f(x):
        return np.maximum(g(x), 1.0 * g(x))

    difference = (grad(g)(0.8 + 1e-5) - grad(g)(0.8 - 1e-5)) / 2e-5
    np.testing.assert_allclose(grad(grad(f))(0.8), difference, rtol=1e-7)


def test_the_norms_of_columns_in_the_largest_of_a_gram_matrix():
    """The two equal elements were taken from singular values, whose series have few terms: their limit was NaN."""
    def f(x):
        columns = x + 1j * x**2
        columns = columns @ np.diag(1 / np.array([np.linalg.norm(columns[:, [j]], ord=2) for j in range(3)]))
        gram = columns.conj().T @ columns
        return np.max(np.abs(gram - np.diag(np.diag(gram))))

    x, v = np.random.default_rng(0).normal(size=(2, 4, 3))
    difference = (grad(f)(x + 1e-5 * v) - grad(f)(x - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(hvp(f, x, v), difference, rtol=1e-5, atol=1e-7)
