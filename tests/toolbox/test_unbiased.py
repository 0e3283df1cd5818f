"""Every distribution, parameter and estimator against the derivative of an expectation in closed form.

Seeds are fixed, and the bounds are five standard errors of the mean. They are small beside the derivatives, so that a
wrong factor is seen.
"""

import numpy as np
import pytest
from benchmarks.estimators import EXPECTATIONS, ROWS, by_expectation, derivatives, estimates, exact

DERIVATIVES = list(derivatives())


def check(found, expected, resolution):
    error = 5 * found.std() / np.sqrt(len(found)) + 1e-9
    assert abs(found.mean() - expected) < error
    assert error < resolution * max(abs(expected), 0.1)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "place", "estimator"), DERIVATIVES)
def test_estimator_is_unbiased(name, place, estimator):
    many = {"score": 40000, "path": 20000, "measure": 4000}[estimator]
    check(estimates(name, place, estimator, many), exact(name, place), 0.5)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "place", "estimator"), DERIVATIVES)
def test_expectation_is_unbiased(name, place, estimator):
    """By the public function, a run for each estimate; with a baseline where there are several samples."""
    check(by_expectation(name, place, estimator, 600), exact(name, place), 3.0)
    if estimator == "score":
        check(by_expectation(name, place, estimator, 200, samples=8), exact(name, place), 3.0)


def test_every_distribution_has_an_expectation():
    """What is left out is refused by name."""
    known = {name for name, row in ROWS.items() if row.path or row.log_density}
    assert known == set(EXPECTATIONS)
    weak = {(name, parameter) for name, row in ROWS.items() for parameter in row.weak}
    assert len(weak) == sum(estimator == "measure" for _, _, estimator in DERIVATIVES)
