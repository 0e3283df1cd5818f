"""Rules for `scipy.spatial.distance`. At distance 0 the derivative is that of the norm of zeros, which is 0."""

from scipy.spatial import distance

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import plain
from effgrad.functions.scipy.tables import reals, require, rules_of
from effgrad.primitives.reduction import mark_underflow, root, root_of
from effgrad.vocabulary import Function, Option, Reached, Value


def _correlation(u: Value, v: Value, w: Value = None, centered: bool = True) -> Value:
    if centered:
        u, v = _centred(u, w), _centred(v, w)
    return 1 - _weighted(u * v, w) / (_size(u, w) * _size(v, w))


def _size(u: Value, w: Value = None) -> Value:
    """The length of vectors along the last axis, with weights `w` of the squares."""
    return root(mark_underflow(_weighted(u**2, w), u, axis=-1))


def _centred(u: Value, w: Value) -> Value:
    return u - np.expand_dims(np.mean(u, axis=-1) if w is None else np.sum(u * w, axis=-1) / np.sum(w), -1)


def _minkowski(u: Value, v: Value, p: Value = 2, w: Value = None) -> Value:
    if w is None:
        return np.linalg.vector_norm(u - v, axis=-1, ord=p)
    return root_of(mark_underflow(_weighted(np.abs(u - v) ** p, w), u - v, axis=-1), 1 / p)


def _times(terms: Value, w: Value) -> Value:
    return terms if w is None else np.asarray(w) * terms


def _weighted(terms: Value, w: Value) -> Value:
    return np.sum(_times(terms, w), axis=-1)


def _mahalanobis(u: Value, v: Value, VI: Value) -> Value:
    return root(mark_underflow(np.sum(np.matmul(u - v, VI) * (u - v), axis=-1), u - v, axis=-1))


def _canberra(u: Value, v: Value, w: Value = None) -> Value:
    size = np.abs(u) + np.abs(v)
    zero = plain(size) == 0  # two zeros have the distance 0
    terms = np.where(zero, 0.0, np.abs(u - v) / np.where(zero, 1.0, size))
    return np.nansum(_times(terms, w), axis=-1)


METRICS: dict[str, Value] = {
    "euclidean": lambda u, v, w=None: _size(u - v, w),
    "sqeuclidean": lambda u, v, w=None: _weighted((u - v) ** 2, w),
    "cityblock": lambda u, v, w=None: _weighted(np.abs(u - v), w),
    "chebyshev": lambda u, v, w=None: np.max(_times(np.abs(u - v), w if w is None else plain(w) > 0), axis=-1),
    "cosine": lambda u, v, w=None: _correlation(u, v, w, centered=False),
    "correlation": _correlation,
    "canberra": _canberra,
    "braycurtis": lambda u, v, w=None: _weighted(np.abs(u - v), w) / _weighted(np.abs(u + v), w),
    "minkowski": _minkowski,
    "mahalanobis": _mahalanobis,
}


# Metrics of differences, by which the distance of a point to itself is the constant 0.
OF_DIFFERENCES = frozenset(("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "mahalanobis"))


def _metric(metric: Value, name: str) -> Value:
    known = isinstance(metric, str) and metric in METRICS
    require(known, f"spatial.distance.{name}", f"the metrics {', '.join(METRICS)}")
    return METRICS[metric]


def _cdist(XA: Value, XB: Value, metric: object = "euclidean", **options: Option) -> Value:
    require("out" not in options, "spatial.distance.cdist", "the returned array: leave out= out")
    if XA is XB and metric in OF_DIFFERENCES:  # else each distance of a point to itself would be a singular point
        return _squareform(_pdist(np.asarray(XA), metric, **options))
    XA, XB = np.asarray(XA), np.asarray(XB)
    reals("spatial.distance.cdist", XA, XB)
    return _metric(metric, "cdist")(XA[:, None, :], XB[None, :, :], **options)


def _pdist(X: Value, metric: object = "euclidean", **options: Option) -> Value:
    require("out" not in options, "spatial.distance.pdist", "the returned array: leave out= out")
    reals("spatial.distance.pdist", X)
    first, second = np.triu_indices(shape_of(X)[0], 1)
    return _metric(metric, "pdist")(X[first], X[second], **options)


def _squareform(X: Value, force: str = "no", checks: bool = True) -> Value:
    X = np.asarray(X)
    size = shape_of(X)
    numbers = distance.squareform(np.arange(1, 1 + size[0]) if len(size) == 1 else _numbered(size[0]), "no", False)
    if len(size) == 2:
        return np.ravel(X)[numbers]
    if size == (0,):  # of one point
        return np.zeros((1, 1))
    return np.where(numbers == 0, 0.0, X[np.maximum(numbers - 1, 0)])


def _of_two(name: str, rule: Function) -> Function:
    def distance_of(u: Value, v: Value, *args: Value, **options: Option) -> Value:
        u, v = np.asarray(u), np.asarray(v)
        reals(f"spatial.distance.{name}", u, v)
        return rule(u, v, *args, **options)

    return distance_of


def _numbered(n: int) -> Value:
    return np.arange(n * n).reshape(n, n)


RULES: list[Reached] = rules_of(distance, {
    "cdist": _cdist, "pdist": _pdist, "squareform": _squareform,
    **{name: _of_two(name, rule) for name, rule in METRICS.items()},
})  # fmt: skip
