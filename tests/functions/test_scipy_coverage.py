"""Every function of the table in every mode and order, with its dtype, staged and compiled."""

import laws
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from scipy.stats._distr_params import distcont
from scipy_cases import CASES, LONG, X

from effgrad import check_grad, grad, value_and_grad
from effgrad.errors import Detached, NoRule
from effgrad.functions.rows import NAMESPACES, public, row, rows, stated
from effgrad.functions.scipy.names import WRITTEN_IN_NUMPY


@pytest.mark.thinned(6)
class TestFunctionsOfSciPy(laws.Laws):
    cases, x = CASES, X
    without = {
        # Complex eigenvectors and singular vectors have any phase.
        "test_complex_arguments_are_differentiated_or_refused": {f"linalg.{name}" for name in (
            "eigh v", "eigh upper", "eigh subset", "eigh generalised v", "svd u", "svd v", "svd square")},
        # The phases of eigenvectors are LAPACK's choice, another one in single precision: refused there.
        "test_single_precision_stays": {"linalg.eig v"},
    }  # fmt: skip


SHAPES = {name: shapes for name, shapes in distcont if isinstance(name, str) and name != "levy_stable"}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("method", ["logpdf", "cdf", "sf", "ppf"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_distribution_of_scipy_has_its_derivative_or_says_that_it_has_no_rule(name, method):
    distribution, shapes, step = getattr(scipy.stats, name), SHAPES[name], 1e-6
    x = np.array([0.23, 0.61])
    if method != "ppf":
        x = distribution.ppf(x, *shapes)

    def f(x):
        return np.sum(np.sin(getattr(distribution, method)(x, *shapes)))

    try:
        derivative = grad(f)(x)
    except (NoRule, Detached):
        smooth = row(f"scipy.stats.{name}").status == "differentiable"
        assert method != "logpdf" or not smooth
        return
    differences = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(derivative, differences, rtol=1e-3, atol=1e-5)


def test_an_integrand_with_a_kink_that_moves_is_differentiated_once():
    def of_kink(a):
        return scipy.integrate.quad(lambda t: abs(t - a), 0, 1)[0]

    value, derivative = value_and_grad(of_kink)(0.3)
    assert value == of_kink(0.3)
    np.testing.assert_allclose(derivative, 2 * 0.3 - 1, rtol=1e-9)
    with pytest.raises(NoRule, match=r"near 0\.3"):
        grad(grad(of_kink))(0.3)


@pytest.mark.parametrize("name", [n for names in WRITTEN_IN_NUMPY.items() for n in [
    f"{names[0]}.{leaf}" for leaf in names[1].split()] if n != "interpolate.BPoly"])  # fmt: skip
def test_what_is_listed_as_written_in_numpy_has_a_case(name):
    assert any(case == name or case.startswith(name + " ") for case in [*CASES, *LONG])


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "name", [name if name != "integrate.tplquad" else pytest.param(name, marks=pytest.mark.sweep) for name in LONG]
)
def test_gradients_of_long_programs(name):
    check_grad(lambda x: np.sum(LONG[name](x)), X)


def test_every_function_has_a_status():
    found = [each for space in NAMESPACES if space.startswith("scipy") for each in rows(space)]
    assert len(found) > 900
    assert all(each.status in ("differentiable", "constant") or each.reason for each in found)
    assert [each.status for each in found].count("differentiable") > 400


@pytest.mark.parametrize("space", NAMESPACES)
def test_no_function_is_stated_twice(space):
    assert [name for name in public(space) if len(list(stated(f"{space}.{name}"))) > 1] == []


@pytest.mark.parametrize("space", [space for space in NAMESPACES if not space.startswith("scipy")])
def test_every_function_of_numpy_and_math_is_stated(space):
    assert [name for name in public(space) if not list(stated(f"{space}.{name}"))] == []


@pytest.mark.parametrize("space", NAMESPACES)
def test_a_case_is_of_a_function_listed_as_differentiable(space):
    listed = {each.name: each.status for each in rows(space)}
    for case in CASES:
        name = "scipy." + case.split(" ")[0]
        if name.startswith(space + ".") and name in listed:
            assert listed[name] in ("differentiable", "constant"), case
