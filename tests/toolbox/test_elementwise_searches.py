"""`scipy.optimize.elementwise`: roots and minima of many numbers at once, against closed forms."""

import numpy as np
import pytest
import scipy.optimize

from effgrad import NoRule, compile, grad, jacobian, vmap

elementwise = getattr(scipy.optimize, "elementwise", None)
pytestmark = pytest.mark.skipif(elementwise is None, reason="from SciPy 1.15 on")


def cube(t, a):
    return t**3 - a


# Each is the cube root of a, or an array of cube roots, and f_x is -3/4 a^(4/3) in the last one.
ROOTS = {
    "a number": lambda a: elementwise.find_root(lambda t: t**3 - a, (0.0, 5.0)).x,
    "of an argument": lambda a: elementwise.find_root(cube, (0.0, 5.0), args=(a,)).x,
    "from a bracket": lambda a: elementwise.find_root(
        cube, elementwise.bracket_root(cube, 0.1, 0.3, args=(a,)).bracket, args=(a,)).x,
    "a minimum": lambda a: elementwise.find_minimum(lambda t: t**4 / 4 - a * t, (0.0, 0.5, 5.0)).x,
    "of a moving bracket": lambda a: elementwise.find_root(cube, (0.0, 5.0 * a), args=(a,)).x,
    "the minimum's value": lambda a: (
        -elementwise.find_minimum(lambda t: t**4 / 4 - a * t, (0.0, 0.5, 5.0)).f_x / 0.75) ** 0.25,
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
def test_a_number(name):
    f, a = ROOTS[name], 1.7
    assert grad(f)(a) == pytest.approx(a ** (-2 / 3) / 3, rel=1e-7)
    assert grad(grad(f))(a) == pytest.approx(-2 / 9 * a ** (-5 / 3), rel=1e-6)
    compiled = compile(grad(f))
    for at in (a, 1.2):
        assert compiled(at) == pytest.approx(at ** (-2 / 3) / 3, rel=1e-7)
    np.testing.assert_allclose(vmap(grad(f))(np.array([1.2, a])), np.array([1.2, a]) ** (-2 / 3) / 3, rtol=1e-7)


def test_arrays_of_arguments():
    given = np.array([[1.0, 2.0, 0.3], [3.0, 4.0, 5.0]])

    def roots(a):
        return elementwise.find_root(cube, (np.zeros((2, 3)), 5.0), args=(a,)).x

    exact = np.zeros((2, 3, 2, 3))
    for place in np.ndindex(2, 3):
        exact[place + place] = given[place] ** (-2 / 3) / 3
    np.testing.assert_allclose(jacobian(roots)(given), exact, rtol=1e-10)
    np.testing.assert_array_equal(roots(given), roots(given.copy()))


def test_a_bracket_that_begins_at_a_traced_value_is_refused():
    with pytest.raises(NoRule, match="bracket_root has a derivative rule for a plain start"):
        grad(lambda a: elementwise.bracket_root(cube, 0.1, 0.3 * a, args=(2.0,)).bracket[1])(1.0)
