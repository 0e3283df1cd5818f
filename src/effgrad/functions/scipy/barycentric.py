"""Polynomials and rational functions through values, in barycentric form.

With the weights w_j of the nodes x_j and the values y_j, the function is

    sum_j w_j y_j / (x - x_j)  /  sum_j w_j / (x - x_j).

At a node that is infinity by infinity, and SciPy takes the value from the table, so the derivatives in x and in the
nodes are lost. Here both sums are multiplied by the distance to the nearest node, which is smooth everywhere.
Berrut and Trefethen, Barycentric Lagrange interpolation, SIAM Review 46 (2004), sections 3 and 9.
"""

import scipy.interpolate

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import example, plain
from effgrad.functions.scipy.tables import Method, python_of, traced_inside
from effgrad.primitives.given import with_value
from effgrad.vocabulary import Function, Reached, Value


def _through(x: Value, nodes: Value, weights: Value, values: Value) -> Value:
    """The function at a vector of points, for a column of values or several (rows of the result)."""
    distances = x[:, None] - nodes
    nearest = np.argmin(np.abs(plain(distances)), axis=1)[:, None] == np.arange(shape_of(nodes)[0])
    own = np.where(nearest, weights, 0.0)
    others = np.where(nearest, 0.0, weights / np.where(nearest, 1.0, distances))
    distance = np.sum(np.where(nearest, distances, 0.0), axis=1)[:, None]
    above = np.matmul(own, values) + distance * np.matmul(others, values)
    return above / np.sum(own + distance * others, axis=1)[:, None]


def _polynomial(self: Value, x: Value) -> Value:
    value = _PYTHON_OF_POLYNOMIAL(self, x)
    return with_value(_through(x, self.xi, self.wi, self.yi), example(value), "an interpolant") if x.size else value


def _rational(self: Value, z: Value) -> Value:
    value, points = _PYTHON_OF_RATIONAL(self, z), np.ravel(z)
    columns = np.reshape(self._support_values, (shape_of(self._support_points)[0], -1))
    found = np.reshape(_through(points, self._support_points, self.weights, columns), np.shape(z) + self._shape)
    found = np.moveaxis(found, 0, self._axis) if np.ndim(z) else found
    return with_value(found, example(value), "an interpolant")


def _rule(kind: type, name: str, rule: Function, *attributes: str) -> Reached:
    return kind, name, Method(rule, lambda self: traced_inside([getattr(self, attribute) for attribute in attributes]))


# From SciPy 1.15 on.
_RATIONAL: Value = vars(scipy.interpolate).get("FloaterHormannInterpolator", object).__mro__[-2:][0]
_PYTHON_OF_POLYNOMIAL: Value = python_of(scipy.interpolate.BarycentricInterpolator._evaluate)
_PYTHON_OF_RATIONAL: Value = None if _RATIONAL is object else python_of(_RATIONAL.__call__)
RULES = [
    _rule(scipy.interpolate.BarycentricInterpolator, "_evaluate", _polynomial, "xi", "yi", "wi"),
    _rule(_RATIONAL, "__call__", _rational, "_support_points", "_support_values", "weights"),
]
