"""Smoothing splines of `scipy.interpolate.make_smoothing_spline`: differentiable in the data, the weights and lam.

The spline f minimises

    sum_i w_i (y_i - f(x_i))^2 + lam * integral of f''^2.

It is the natural cubic spline through values g. With the second derivatives s at the inner points, the matrices Q of
second differences and R of a natural spline (Q^T g = R s), its equations are

    (R + lam Q^T W^-1 Q) s = Q^T y,    g = y - lam W^-1 Q s.

Green and Silverman, Nonparametric regression and generalized linear models (1994), section 2.3.3. Without a given lam
SciPy takes the one of the least generalized cross-validation score (section 3.3), n |y - g|^2 / (n - tr A)^2 with
g = A y. SciPy finds it to five digits after the point. The derivative is that of the minimum nearby, by the implicit
function theorem. At an end of the interval that SciPy searches, lam is constant.
"""

from typing import Any

import scipy.interpolate

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.errors import NotDifferentiable
from effgrad.functions.scipy import splines
from effgrad.functions.scipy.banded import banded
from effgrad.functions.scipy.interpolants import array_of
from effgrad.functions.scipy.interpolate import spline_of
from effgrad.functions.scipy.tables import arguments_by_name, reals
from effgrad.primitives.given import run_outside, with_value
from effgrad.toolbox.frozen import frozen, number
from effgrad.toolbox.implicit import follow_each
from effgrad.toolbox.spline_fits import examples, fit
from effgrad.vocabulary import Option, Reached, Value

# How near to an end of the interval SciPy's search for lam may stop: its tolerance, and what rounding adds.
NEAR_END = 2e-5


class Smoothing:
    """The equations of a smoothing spline for points x, weights w, and values y in columns."""

    def __init__(self, x: Value, y: Value, w: Value, lam: Value) -> None:
        self.x, self.y, self.lam = np.asarray(x), np.asarray(y), lam
        reals("interpolate.make_smoothing_spline", self.x, self.y)
        step = self.x[1:] - self.x[:-1]
        self.inverse_weights = np.ones(shape_of(self.x)) if w is None else 1.0 / np.asarray(w)
        self.rows = 1.0 / step[:-1], -1.0 / step[:-1] - 1.0 / step[1:], 1.0 / step[1:]
        self.natural = [(step[:-1] + step[1:]) / 3.0, step[1:-1] / 6.0]
        a, b, c = self.rows
        v = self.inverse_weights
        self.rough = [
            a * a * v[:-2] + b * b * v[1:-1] + c * c * v[2:],
            b[:-1] * a[1:] * v[1:-2] + c[:-1] * b[1:] * v[2:-1],
            c[:-2] * a[2:] * v[2:-2],
        ]

    def differences(self, y: Value) -> Value:
        """Q^T times the columns of a matrix."""
        a, b, c = (row[:, None] for row in self.rows)
        return a * y[:-2] + b * y[1:-1] + c * y[2:]

    def unsmoothed(self, s: Value) -> Value:
        """W^-1 Q times the columns of a matrix."""
        zero = np.zeros((1, shape_of(s)[1]))
        a, b, c = (np.concatenate([row[:, None] * s, zero, zero]) for row in self.rows)
        return self.inverse_weights[:, None] * (a + np.roll(b, 1, 0) + np.roll(c, 2, 0))

    def solve(self, lam: Value, right: Value) -> Value:
        """The solution of the equations with the matrix R + lam Q^T W^-1 Q."""
        diagonal, first, second = self.rough
        bands = [self.natural[0] + lam * diagonal, self.natural[1] + lam * first, lam * second]
        upper = [np.concatenate([np.zeros(k), band]) for k, band in enumerate(bands)]
        lower = [np.concatenate([band, np.zeros(k)]) for k, band in enumerate(bands)]
        return banded(np.stack([*upper[::-1], *lower[1:]]), right, low=2, up=2)

    def values(self, lam: Value, y: Value) -> Value:
        """The spline's values at the points."""
        return y - lam * self.unsmoothed(self.solve(lam, self.differences(y)))

    def slope_of_score(self, lam: Value, y: Value) -> Value:
        """The derivative of the logarithm of the generalized cross-validation score of one column of values.

        The score is n |W^-1 Q s|^2 / tr(M)^2, where M is the inverse matrix times Q^T W^-1 Q.
        """
        s = self.solve(lam, self.differences(y))
        rough = sum(np.diag(band, k) + (np.diag(band, -k) if k else 0.0) for k, band in enumerate(self.rough))
        m = self.solve(lam, rough)
        u = self.unsmoothed(s)
        return 2 * np.sum(m * m.T) / np.trace(m) - 2 * np.sum(u * self.unsmoothed(np.matmul(m, s))) / np.sum(u * u)

    def best(self, y: Value, found: Value) -> Value:
        """The lam of the least score for one column of values, given the spline's plain values that SciPy has found."""
        plain = number(y)
        line = np.stack([np.ones(len(found)), number(self.x)], axis=1)
        if not np.max(np.abs(plain - line @ np.linalg.lstsq(line, plain)[0])) > 1e-12 * np.max(np.abs(plain)):
            raise NotDifferentiable(
                "make_smoothing_spline of values on a straight line has no derivative, as every lam gives that line: "
                "give lam"
            )
        left, unsmoothed = plain - found, number(self.unsmoothed(self.curvature(found)))
        lam = np.sum(left * unsmoothed) / np.sum(unsmoothed * unsmoothed)
        residual = lambda lam: self.slope_of_score(lam, y)  # noqa: E731
        slope, count = frozen(residual)(lam), len(found)
        if (lam <= NEAR_END and slope > 0) or (lam >= count - NEAR_END and slope < 0):
            return lam
        return follow_each(residual, lam, frozen(residual), "make_smoothing_spline")

    def curvature(self, g: Value) -> Value:
        """The plain second derivatives of the natural spline through values."""
        return number(self.solve(0.0, self.differences(g)))

    def spline(self, t: Value, c: Value) -> tuple[Value, Value]:
        """Return SciPy's knots and coefficients (a row for each B-spline) with derivatives."""
        knots = with_value(splines.interpolation_knots(self.x, 3, "natural"), t)
        if self.lam is None:
            found = splines.collocation(number(self.x), t, 3) @ c
            columns = [(self.y[:, k : k + 1], found[:, k : k + 1]) for k in range(shape_of(c)[1])]
            values = np.concatenate([self.values(self.best(y, plain), y) for y, plain in columns], axis=1)
        else:
            values = self.values(self.lam, self.y)
        derived = splines.interpolation_coefficients(self.x, values, knots, 3, "natural")
        return knots, with_value(derived, c, "make_smoothing_spline")


def _problem(given: dict[str, Value]) -> Smoothing:
    y = np.moveaxis(np.asarray(given["y"]), given.get("axis", 0), 0)
    return Smoothing(given["x"], np.reshape(y, (shape_of(y)[0], -1)), given["w"], given["lam"])


def _make_smoothing_spline(*args: Value, **options: Option) -> Value:
    arguments = arguments_by_name(_plain_smoothing_spline, args, options)
    found = run_outside(lambda: _plain_smoothing_spline(**examples(arguments)))
    shape = np.shape(array_of(found, "c"))

    def plain_fit(given: dict[str, Value]) -> Value:
        spline: Any = _plain_smoothing_spline(**given)
        c = array_of(spline, "c")
        return array_of(spline, "t"), np.reshape(c, (len(c), -1)), None

    t, c, _ = fit(arguments, _problem, plain_fit, "make_smoothing_spline")
    return spline_of(found, t, np.reshape(c, shape) if ndim_of(c) != len(shape) else c)


_plain_smoothing_spline = scipy.interpolate.make_smoothing_spline
RULES: list[Reached] = [(scipy.interpolate, "make_smoothing_spline", _make_smoothing_spline)]
