"""Splines that FITPACK fits: interpolating splines, least-squares splines with given knots, and smoothing splines.

FITPACK chooses the knots among the points, and the derivative treats this choice as a constant. The smoothing spline
with these knots is the one of least roughness (the sum of squares of the jumps of its last derivative at the inner
knots) whose weighted squared distance to the values is s. So its coefficients c minimise the sum of squares

    |W (y - A c)|^2 + rate^2 |D c|^2,

and the rate is defined by |W (y - A c)|^2 = s. SciPy finds it to one part in a thousand of s. The derivative is that of
the spline that SciPy returns, by the implicit function theorem, with the difference between its sum of squares and s
held fixed. Dierckx, Curve and surface fitting with splines (1993), chapters 4 and 5 (curves: section 9.1).
"""

import functools
from typing import Any

import scipy.interpolate
from scipy.interpolate import InterpolatedUnivariateSpline, LSQUnivariateSpline, UnivariateSpline

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import plain, traced_inside
from effgrad.errors import NotDifferentiable
from effgrad.functions.scipy import barycentric, interpolate, splines
from effgrad.functions.scipy.tables import Method, arguments_by_name, reals, require
from effgrad.primitives.given import run_outside, with_value
from effgrad.toolbox import smoothing_splines
from effgrad.toolbox.frozen import frozen, number
from effgrad.toolbox.implicit import follow_each
from effgrad.toolbox.spline_fits import examples, fit
from effgrad.vocabulary import Function, Reached, Value

# The relative accuracy to which FITPACK meets the sum of squares s, and a little more for rounding.
TOLERANCE = 1.001e-3
KINDS: tuple[Any, ...] = (UnivariateSpline, InterpolatedUnivariateSpline, LSQUnivariateSpline)


class Problem:
    """A fit of rows of values y at points x, with weights w, the ends of the interval, and the degree k.

    s is the sum of squares: None for the least one with given knots, 0 for a spline through the values. `knots` are the
    knots inside the interval if they are given.
    """

    def __init__(self, x: Value, y: Value, w: Value, ends: Any, k: int, s: Value = None, knots: Value = None) -> None:
        self.x, self.y, self.k, self.s, self.knots = np.asarray(x), np.asarray(y), int(k), s, knots
        reals("interpolate (FITPACK)", self.x, self.y)
        self.w = 1.0 if w is None else np.reshape(np.asarray(w), (-1, 1))
        low, high = ends
        self.ends = self.x[0] if low is None else low, self.x[-1] if high is None else high

    def spline(self, t: Value, c: Value) -> tuple[Value, Value]:
        """Return SciPy's knots and coefficients (a row for each B-spline) with derivatives."""
        knots = with_value(self._around(self._inner(t)), t)
        if isinstance(self.s, int | float) and self.s == 0:
            derived = splines.interpolation_coefficients(self.x, self.y, knots, self.k, None)
        else:
            derived = self._nearest(knots, c)
        return knots, with_value(derived, c, "a fit of FITPACK")

    def distance(self, knots: Value, c: Value) -> Value:
        """Return the weighted sum of squares of the distances of a spline to the values."""
        return np.sum((self.w * (self.y - np.matmul(splines.collocation(self.x, knots, self.k), c))) ** 2)

    def _inner(self, t: Value) -> Value:
        """Return the knots inside the interval: those given, or the data points, or means of two, that SciPy chose."""
        if self.knots is not None:
            return np.asarray(self.knots)
        inner, x = t[self.k + 1 : -self.k - 1], plain(self.x)
        right = np.searchsorted(x, inner)
        left = right - (x[right] != inner)
        return (self.x[left] + self.x[right]) / 2

    def _around(self, inner: Value) -> Value:
        low, high = (np.reshape(end, (1,)) for end in self.ends)
        return np.concatenate([low] * (self.k + 1) + [inner] + [high] * (self.k + 1))

    def _nearest(self, knots: Value, c: Value) -> Value:
        """Return the coefficients of the nearest spline with these knots, or of the smoothing spline for s."""
        rows, right = self.w * splines.collocation(self.x, knots, self.k), self.w * self.y
        n = shape_of(knots)[0] - self.k - 1
        if self.s is None or n == self.k + 1:
            return np.linalg.lstsq(rows, right)[0]
        jumps = self._jumps(knots, n)
        rate = _rate(number(rows), number(right), number(jumps), c)
        if rate == 0.0:
            return np.linalg.lstsq(rows, right)[0]

        def smooth(rate: Value) -> Value:
            wide = np.concatenate([right, np.zeros((n - self.k - 1, shape_of(right)[1]))])
            return np.linalg.lstsq(np.concatenate([rows, rate * jumps]), wide)[0]

        def missing(rate: Value) -> Value:
            return np.sum((right - np.matmul(rows, smooth(rate))) ** 2) - self.s

        start = frozen(missing)(rate)
        if abs(start) > TOLERANCE * number(self.s):
            raise NotDifferentiable(
                f"a smoothing spline of SciPy whose sum of squares is {number(self.s) + start:.6g} and not "
                f"s={number(self.s):.6g}, because FITPACK's iteration has not converged, has no derivative: take a "
                "larger s, or give knots"
            )
        residual = lambda rate: missing(rate) - start  # noqa: E731
        return smooth(follow_each(residual, rate, frozen(residual), "a smoothing spline"))

    def _jumps(self, knots: Value, n: int) -> Value:
        """Return the scaled jumps of the last derivative of each B-spline (columns) at the inner knots."""
        last = splines.derivative_of_spline(knots, np.eye(n), self.k, self.k)[1]
        size = (number(knots)[-1] - number(knots)[0]) / (n - self.k)
        return size**self.k * (last[1:] - last[:-1])


def _rate(rows: Value, right: Value, jumps: Value, c: Value) -> Value:
    """Return the rate with which SciPy's spline minimises the sum of squares; 0 if it is the nearest spline."""
    jump = jumps.T @ (jumps @ c)
    square = np.sum((rows.T @ (right - rows @ c)) * jump) / np.sum(jump * jump)
    if not square > 0:
        return np.float64(0.0)
    found, nearest = np.sqrt(square), np.linalg.lstsq(rows, right)[0]
    wide = np.concatenate([right, np.zeros((len(jumps), right.shape[1]))])
    smooth = np.linalg.lstsq(np.concatenate([rows, found * jumps]), wide)[0]
    return found if np.max(np.abs(smooth - c)) < np.max(np.abs(nearest - c)) else np.float64(0.0)


# Functions: splrep and splprep of FITPACK, and make_splrep and make_splprep, which are the same algorithm in Python.


def _rows(tck: Any) -> Value:
    t, c, k = tck
    rows = np.stack([c] if isinstance(c, np.ndarray) else c, axis=-1)
    return t, rows[: len(t) - k - 1]


def _usual(x: Value) -> float:
    """The sum of squares that SciPy uses if the weights are the reciprocals of the values' standard deviations."""
    count = shape_of(np.asarray(x))[0]
    return float(count - np.sqrt(2 * count))


def _splrep_problem(given: dict[str, Value]) -> Problem:
    x, y, w, s, t = (given[name] for name in ("x", "y", "w", "s", "t"))
    if s is None:
        s = 0.0 if w is None else _usual(x)
    s = s if t is None else None
    return Problem(x, np.asarray(y)[:, None], w, (given["xb"], given["xe"]), given["k"], s, t)


def _splrep(*args: Value, **options: Value) -> Value:
    arguments = arguments_by_name(_plain_splrep, args, options)
    full = arguments.pop("full_output")
    plainly = arguments["task"] in (-1, 0) and not arguments["per"]
    require(plainly, "interpolate.splrep", "one fit of a curve that is not periodic: task 0 or -1, and per=0")

    def plain_fit(given: dict[str, Value]) -> Value:
        tck, distance, *_ = _plain_splrep(**given, full_output=1)
        return *_rows(tck), distance

    result = run_outside(lambda: _plain_splrep(**examples(arguments), full_output=full))  # for its warnings and errors
    t, c, distance = fit(arguments, _splrep_problem, plain_fit, "splrep")
    tck = t, np.concatenate([c[:, 0], np.zeros(arguments["k"] + 1)]), arguments["k"]
    return (tck, distance, *result[2:]) if full else tck


def _parameters(x: Value) -> Value:
    """The lengths of the polygon through points (rows) up to each of them, as fractions of the total length."""
    length = np.cumsum(np.sqrt(np.sum((x[1:] - x[:-1]) ** 2, axis=1)))
    return np.concatenate([np.zeros(1), length / length[-1]])


def _curve_problem(given: dict[str, Value], points: Value, u: Value, knots: Value) -> Problem:
    s = _usual(u) if given["s"] is None else given["s"]
    ends = (given["ub"], given["ue"]) if given["u"] is not None else (None, None)
    return Problem(u, points, given["w"], ends, given["k"], s, knots)


def _points_and_parameters(given: dict[str, Value]) -> tuple[Value, Value]:
    points = np.stack([np.asarray(row) for row in given["x"]], axis=-1)
    return points, _parameters(points) if given["u"] is None else np.asarray(given["u"])


def _splprep(*args: Value, **options: Value) -> Value:
    arguments = arguments_by_name(_plain_splprep, args, options)
    full = arguments.pop("full_output")
    plainly = arguments["task"] == 0 and not arguments["per"] and arguments["t"] is None
    require(plainly, "interpolate.splprep", "one fit of a curve that is not periodic: task=0 and per=0")

    def plain_fit(given: dict[str, Value]) -> Value:
        (tck, _), distance, *_ = _plain_splprep(**given, full_output=1)
        return *_rows(tck), distance

    def problem(given: dict[str, Value]) -> Problem:
        return _curve_problem(given, *_points_and_parameters(given), None)

    result = run_outside(lambda: _plain_splprep(**examples(arguments), full_output=full))
    t, c, distance = fit(arguments, problem, plain_fit, "splprep")
    u = with_value(_points_and_parameters(arguments)[1], (result[0] if full else result)[1])
    curve = [t, [c[:, d] for d in range(shape_of(c)[1])], arguments["k"]], u
    return (curve, distance, *result[2:]) if full else curve


def _of_object(original: Function, problem: Function, curve: bool) -> Function:
    """Return the rule of `make_splrep` or `make_splprep`: SciPy's object, with traced knots and coefficients."""

    def rule(*args: Value, **options: Value) -> Value:
        arguments = arguments_by_name(original, args, options)
        name = original.__name__
        require(arguments.get("bc_type") in (None, "not-a-knot"), f"interpolate.{name}", "curves that are not periodic")
        found = run_outside(lambda: original(**examples(arguments)))

        def plain_fit(given: dict[str, Value]) -> Value:
            result = original(**given)
            spline = result[0] if curve else result
            return spline.t, np.reshape(spline.c, (shape_of(spline.c)[0], -1)), None

        t, c, _ = fit(arguments, problem, plain_fit, name)
        if not curve:
            return interpolate.spline_of(found, t, c[:, 0])
        u = with_value(_points_and_parameters(arguments)[1], found[1])
        return interpolate.spline_of(found[0], t, c), u

    return rule


def _with_all_knots(given: dict[str, Value]) -> Value:
    return None if given["t"] is None else np.asarray(given["t"])[given["k"] + 1 : -given["k"] - 1]


def _make_splrep_problem(given: dict[str, Value]) -> Problem:
    y, ends, inner = np.asarray(given["y"])[:, None], (given["xb"], given["xe"]), _with_all_knots(given)
    return Problem(given["x"], y, given["w"], ends, given["k"], given["s"], inner)


def _make_splprep_problem(given: dict[str, Value]) -> Problem:
    return _curve_problem(given, *_points_and_parameters(given), _with_all_knots(given))


# Objects: UnivariateSpline and its two subclasses.


def _univariate(kind: Any) -> Function:
    """Return the rule of a constructor, which runs SciPy's and puts traced knots and coefficients into the object."""
    original = vars(kind)["__init__"]

    def rule(self: Any, *args: Value, **options: Value) -> None:
        arguments = arguments_by_name(original, (self, *args), options)
        del arguments["self"]
        run_outside(lambda: original(self, **examples(arguments)))

        def plain_fit(given: dict[str, Value]) -> Value:
            twin = object.__new__(UnivariateSpline)
            original(twin, **given)
            return *_rows(twin._eval_args), twin.get_residual()

        t, c, distance = fit(arguments, functools.partial(_univariate_problem, kind), plain_fit, kind.__name__)
        data, k = list(self._data), self._data[5]
        data[7:11] = shape_of(t)[0], t, np.concatenate([c[:, 0], np.zeros(k + 1)]), distance
        self._data, self._eval_args = tuple(data), (t, data[9], k)

    return rule


def _univariate_problem(kind: Value, given: dict[str, Value]) -> Problem:
    s = {InterpolatedUnivariateSpline: 0.0, LSQUnivariateSpline: None}.get(kind, given.get("s"))
    if s is None and kind is UnivariateSpline:
        s = float(shape_of(np.asarray(given["x"]))[0])
    y, inner = np.asarray(given["y"])[:, None], given.get("t")
    return Problem(given["x"], y, given["w"], given["bbox"], given["k"], s, inner)


def _traced_spline(self: Any) -> bool:
    return traced_inside(self._eval_args)


def _univariate_value(self: Any, x: Value, nu: int = 0, ext: Value = None) -> Value:
    names: dict[Any, int] = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}
    ext = self.ext if ext is None else ext
    return interpolate.splev(x, self._eval_args, nu, names.get(ext, ext))


def _univariate_integral(self: Any, a: Value, b: Value) -> Value:
    return interpolate.splint(a, b, self._eval_args)


_plain_splrep, _plain_splprep = scipy.interpolate.splrep, scipy.interpolate.splprep
_OBJECTS: dict[str, tuple[Function, bool]] = {
    "make_splrep": (_make_splrep_problem, False),
    "make_splprep": (_make_splprep_problem, True),
}
RULES: list[Reached] = [
    *interpolate.RULES,
    *barycentric.RULES,
    *smoothing_splines.RULES,
    (scipy.interpolate, "splrep", _splrep),
    (scipy.interpolate, "splprep", _splprep),
    *(
        (scipy.interpolate, name, _of_object(getattr(scipy.interpolate, name), problem, curve))
        for name, (problem, curve) in _OBJECTS.items()
        if hasattr(scipy.interpolate, name)  # from SciPy 1.15 on
    ),
    *((kind, "__init__", _univariate(kind)) for kind in KINDS),
    (UnivariateSpline, "__call__", Method(_univariate_value, _traced_spline)),
    (UnivariateSpline, "integral", Method(_univariate_integral, _traced_spline)),
]
