"""Rules for `scipy.interpolate` of scattered points: radial basis functions, and interpolation on triangles.

An interpolant is SciPy's object, made of plain values, and also keeps the traced arguments of its constructor, as
`given`. Which simplex a point is in, and which neighbours it has, are constants; the derivative is that of the
definition. Fasshauer, Meshfree approximation methods with MATLAB (2007), chapter 6, for radial basis functions with
polynomials.
"""

import copy
import inspect
from collections.abc import Callable
from typing import Any

from scipy.interpolate import CloughTocher2DInterpolator, LinearNDInterpolator, NearestNDInterpolator, RBFInterpolator

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, example, plain, plain_tree
from effgrad.functions.scipy.splines import elements
from effgrad.functions.scipy.tables import Calling, reals, require, traced_inside
from effgrad.functions.scipy.triangles import Triangles, barycentric
from effgrad.nested import map_leaves
from effgrad.primitives.given import as_computed, run_outside
from effgrad.primitives.reduction import mark_underflow, root
from effgrad.vocabulary import Function, Option, Reached, Value

# The arguments that choose neither simplices nor neighbours.
FREE = frozenset(("values", "fill", "smoothing", "epsilon"))


def _keeping(owner: Any, *names: str) -> Reached:
    """Return the rule of an interpolant's constructor; `names` are our names of its first arguments, kept in `given`.

    SciPy's constructor gets the values of the example of a staged program, or of the first member of a batch. Points
    that choose the simplices have to be the same in all members and in all calls of a compiled program.
    """
    original, own = vars(owner)["__init__"], list(inspect.signature(owner.__init__).parameters)[1:]
    kept = dict(zip(own, names, strict=False))

    def plain_argument(key: str, value: Value) -> Value:
        return map_leaves(example, value) if kept.get(key) in FREE else plain_tree(value)

    def init(self: Any, *args: Value, **options: Option) -> None:
        values = [*map(plain_argument, own, args), *args[len(own) :]]
        run_outside(lambda: original(self, *values, **{key: plain_argument(key, options[key]) for key in options}))
        if not traced_inside((args, options)):
            return
        given = {**dict(zip(own, args, strict=False)), **options}
        for key, value in given.items():
            require(key in kept or not traced_inside(value), f"interpolate.{owner.__name__}", f"a constant {key}")
        self.given = {name: given[key] for key, name in kept.items() if given.get(key) is not None}

    return owner, "__init__", Calling(init)  # also for plain arguments: compiled code triangulates plain arrays only


def _holds(self: Value) -> bool:
    return hasattr(self, "given")


def _given(self: Value, name: str, value: Value) -> Value:
    return np.asarray(getattr(self, "given", {}).get(name, value))


def _points_of(args: Value) -> Value:
    """The points of a call: an array whose last axis is the coordinates, or an array for each coordinate."""
    if len(args) == 1 and not isinstance(args[0], tuple):
        return np.asarray(args[0])
    coordinates = args[0] if len(args) == 1 else args
    return np.stack(np.broadcast_arrays(*map(np.asarray, coordinates)), axis=-1)


# Radial basis functions, as functions of the square of the distance.


def _thin_plate(square: Value) -> Value:
    zero = plain(square) == 0
    return np.where(zero, 0.0, 0.5 * square * np.log(np.where(zero, 1.0, square)))


KERNELS: dict[str, Callable[[Value], Value]] = {
    "linear": lambda square: -root(square),
    "thin_plate_spline": _thin_plate,
    "cubic": lambda square: square * root(square),
    "quintic": lambda square: -square * square * root(square),
    "multiquadric": lambda square: -np.sqrt(square + 1),
    "inverse_multiquadric": lambda square: 1 / np.sqrt(square + 1),
    "inverse_quadratic": lambda square: 1 / (square + 1),
    "gaussian": lambda square: np.exp(-square),
}


def _rbf(self: Value, x: Value) -> Value:
    x, y = np.asarray(x), _given(self, "points", self.y)
    reals("interpolate.RBFInterpolator", x, y)
    count = shape_of(y)[0]
    values = np.reshape(_given(self, "values", self.d), (count, -1))
    smoothing = np.broadcast_to(_given(self, "smoothing", self.smoothing), (count,))
    epsilon, kernel = _given(self, "epsilon", self.epsilon), KERNELS[self.kernel]

    def basis(x: Value, y: Value) -> Value:
        difference = epsilon * (x[:, None, :] - y[None])
        return kernel(mark_underflow(np.sum(difference**2, axis=-1), difference, axis=-1))

    def interpolated(x: Value, near: Value) -> Value:
        y, low, high = points[near], np.min(plain(points)[near], axis=0), np.max(plain(points)[near], axis=0)
        middle, size = (low + high) / 2, np.where(high == low, 1.0, (high - low) / 2)

        def polynomials(x: Value) -> Value:
            return np.prod(((x - middle) / size)[:, None, :] ** self.powers, axis=-1)

        kernels, terms = basis(y, y) + np.diag(smoothing[near]), polynomials(y)
        more = shape_of(terms)[1]
        system = np.block([[kernels, terms], [terms.T, np.zeros((more, more))]])
        right = np.concatenate([values[near], np.zeros((more, shape_of(values)[1]))])
        return np.matmul(np.concatenate([basis(x, y), polynomials(x)], axis=1), np.linalg.solve(system, right))

    points, shape = y, (shape_of(x)[0], *self.d_shape)
    if self.neighbors is None:
        return np.reshape(interpolated(x, np.arange(count)), shape)
    near = np.reshape(self._tree.query(plain(x), self.neighbors)[1], (-1, self.neighbors))
    rows = [interpolated(x[i : i + 1], np.sort(places)) for i, places in enumerate(near)]
    return np.reshape(np.concatenate(rows), shape)


# Interpolation on triangles, and by the nearest point.


def _values(self: Value) -> Value:
    return _given(self, "values", np.reshape(self.values, (-1, *getattr(self, "values_shape", self.values.shape[1:]))))


def _triangles(self: Value, *args: Value, simplex_tolerance: Option = 1.0) -> Value:
    name = type(self).__name__
    require(simplex_tolerance == 1.0, f"interpolate.{name}", "simplex_tolerance=1.0")
    x, values = _points_of(args), _values(self)
    size, middle = (1.0, 0.0) if self.scale is None else (self.scale, self.offset)
    points = _points_of([self.given["points"]]) if _holds(self) else self.points * size + middle
    reals(f"interpolate.{name}", x, points)
    flat = np.reshape(x, (-1, shape_of(x)[-1]))
    where = evaluated(lambda x: self.tri.find_simplex((x - middle) / size), flat)
    rows = np.reshape(values, (shape_of(values)[0], -1))
    if isinstance(self, LinearNDInterpolator):
        corners = elements(self.tri.simplices, where)
        parts = barycentric(elements(points, corners), flat)
        result = np.sum(parts[..., None] * elements(rows, corners), axis=1)
    else:
        unit = 1.0 if self.scale is None else _spread(points)
        result = Triangles(points / unit, self.tri).cubic(rows, flat / unit, where)
    result = np.where((where < 0)[:, None], _given(self, "fill", self.fill_value), result)
    return np.reshape(result, shape_of(x)[:-1] + shape_of(values)[1:])


def _spread(points: Value) -> Value:
    """The extent of points along each coordinate, by which SciPy scales them."""
    extent = np.ptp(points, axis=0)
    return np.where(plain(extent) > 0, extent, 1.0)


def _nearest(self: Value, *args: Value, **options: Option) -> Value:
    twin, values = copy.copy(self), _values(self)
    twin.values, twin.values_shape = np.arange(float(shape_of(values)[0])), ()
    place = evaluated(lambda x: _plain_nearest(twin, x, **options), _points_of(args))
    known = np.isfinite(place)
    found = elements(values, np.where(known, place, 0).astype(int))
    return np.where(np.reshape(known, (*known.shape, *(1,) * (ndim_of(values) - 1))), found, np.nan)


_plain_nearest = NearestNDInterpolator.__call__


def _called(owner: type, definition: Function) -> Reached:
    original = vars(owner)["__call__"]
    rule = as_computed(original, definition)

    def call(self: Value, *args: Value, **options: Option) -> Value:
        if _holds(self) or traced_inside((args, options)):
            return rule(self, *args, **options)
        return run_outside(lambda: original(self, *args, **options))

    return owner, "__call__", Calling(call)


TRIANGLES: Any = next(kind for kind in LinearNDInterpolator.__mro__ if "__call__" in vars(kind))
RULES: list[Reached] = [
    _keeping(RBFInterpolator, "points", "values", "neighbors", "smoothing", "kernel", "epsilon"),
    _keeping(LinearNDInterpolator, "points", "values", "fill"),
    _keeping(CloughTocher2DInterpolator, "points", "values", "fill"),
    _keeping(NearestNDInterpolator, "points", "values"),
    _called(RBFInterpolator, _rbf),
    _called(TRIANGLES, _triangles),
    _called(NearestNDInterpolator, _nearest),
]
