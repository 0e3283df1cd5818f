"""Rules for `scipy.spatial.KDTree`: which points are nearest is constant, and their distances are differentiable.

Where two points are equally near, the derivative is that of the distance to the one that SciPy gives. A compiled
program and a batch compare all pairs, since their points are not known when they are recorded; a program compiled for
one set of neighbours is left where another one is found.
"""

import functools

import numpy
import scipy.spatial

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, plain
from effgrad.functions.scipy.tables import Method, reals, require, traced_inside
from effgrad.primitives.given import with_value
from effgrad.vocabulary import Function, Option, Reached, Value

NAME = "spatial.KDTree"
TREES = (scipy.spatial.KDTree, scipy.spatial.cKDTree)


class Tree:
    """A tree of traced points; a tree of SciPy's, of their plain values, finds the nearest ones."""

    def __init__(self, kind: Function, data: Value, *args: Option, **options: Option) -> None:
        require(not traced_inside((args, options)), NAME, "traced points, and for boxes that are constants")
        self.data = np.asarray(data)
        reals(NAME, self.data)
        (self.n, self.m), values = shape_of(self.data), plain(self.data)
        # Of points that are not known yet there is no tree, but an empty one has its options.
        self.boxsize = kind(np.zeros((0, self.m)), *args, **options).boxsize
        self.plain = None if isinstance(values, Tracer) else kind(values, *args, **options)

    def query(self, x: Value, *args: Option, **options: Option) -> Value:
        return _query(self, x, *args, **options)

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return _constant(self, name)


def _constant(tree: Value, name: str) -> Value:
    """Return an attribute of a tree, a constant: which points are near does not change with their places smoothly."""
    require(name != "sparse_distance_matrix", NAME, "query; take the distances of the pairs that query_pairs finds")
    if name in COMPARING:
        return functools.partial(_by_comparing, tree, name)
    found = getattr(_plain(tree), name)

    def call(*args: Value, **options: Value) -> Value:
        return found(*map(_plain, args), **{key: _plain(value) for key, value in options.items()})

    return call if callable(found) else found


def _plain(value: Value) -> Value:
    """Return an argument of a tree's method, or a tree, as SciPy takes it."""
    found = value.plain if isinstance(value, Tree) else plain(np.asarray(value)) if traced_inside(value) else value
    known = found is value or not (found is None or isinstance(found, Tracer))
    what = "query, query_ball_point, query_pairs and query_ball_tree alone"
    require(known, NAME, f"{what}, in a compiled program and in a batch")
    return found


def _by_comparing(tree: Value, name: str, *args: Value, **options: Value) -> Value:
    """Call a method of a tree that finds neighbours: SciPy's if all points are known, or else compare all pairs."""
    if not any(_is_unknown(arg) for arg in (tree, *args, *options.values())):
        return getattr(_plain(tree), name)(*map(_plain, args), **{key: _plain(value) for key, value in options.items()})
    return COMPARING[name](tree, *args, **options)


def _is_unknown(value: Value) -> bool:
    values = value.data if hasattr(value, "query") else value
    return isinstance(plain(np.asarray(values)) if traced_inside(values) else values, Tracer)


def _ball(
    tree: Value, x: Value, r: Value, p: Value = 2.0, eps: Value = 0, workers: int = 1, return_sorted: Option = None,
    return_length: Option = False,
) -> Value:  # fmt: skip
    """`query_ball_point`, by comparing all pairs."""
    require(eps == 0, f"{NAME}.query_ball_point", "eps=0")
    x, r = plain(np.asarray(x)), plain(np.asarray(r))
    size = np.linalg.vector_norm(_difference(tree, x[..., None, :], plain(tree.data)), axis=-1, ord=p)
    near = size <= (r[..., None] if np.ndim(r) else r)
    found = numpy.empty(shape_of(near)[:-1], int if return_length else object)
    for place in numpy.ndindex(found.shape):
        numbers = np.nonzero(near[place])[0].tolist()
        found[place] = len(numbers) if return_length else numbers
    return found if found.ndim else found[()]


def _pairs(tree: Value, r: Value, p: Value = 2.0, eps: Value = 0, output_type: Option = "set") -> Value:
    """`query_pairs`, by comparing all pairs."""
    each = enumerate(_ball(tree, tree.data, r, p, eps))
    pairs = [(i, j) for i, near in each for j in near if i < j]
    return set(pairs) if output_type == "set" else numpy.array(pairs, numpy.intp).reshape(-1, 2)


def _balls(tree: Value, other: Value, r: Value, p: Value = 2.0, eps: Value = 0) -> Value:
    """`query_ball_tree`, by comparing all pairs."""
    return list(_ball(other, tree.data, r, p, eps))


COMPARING: dict[str, Function] = {"query_ball_point": _ball, "query_pairs": _pairs, "query_ball_tree": _balls}


def _query(
    tree: Value, x: Value, k: Value = 1, eps: Value = 0.0, p: Value = 2.0, distance_upper_bound: Value = np.inf,
    workers: int = 1,
) -> Value:  # fmt: skip
    require(not traced_inside((k, eps, p)), f"{NAME}.query", "traced points; make k, eps and p constants")
    x, bound, values = np.asarray(x), plain(distance_upper_bound), plain(tree.data)
    reals(f"{NAME}.query", x)
    if isinstance(plain(x), Tracer) or isinstance(values, Tracer) or isinstance(bound, Tracer):
        exact = np.all(np.asarray(k) <= tree.n) and eps == 0
        require(bool(exact), f"{NAME}.query", "as many points as there are, and eps=0")
        numbers = _nearest(tree, plain(x), k, p, bound)
        return _distances(tree, x, numbers, p), numbers
    distances, numbers = _plain(tree).query(plain(x), k, eps, p, bound, workers)
    return with_value(_distances(tree, x, numbers, p), distances, f"{NAME}.query"), numbers


def _nearest(tree: Value, x: Value, k: Value, p: float, bound: Value) -> Value:
    """The numbers of the nearest points, in the shape in which SciPy gives them; `tree.n` where none is near enough."""
    size = np.linalg.vector_norm(_difference(tree, x[..., None, :], plain(tree.data)), axis=-1, ord=p)
    order = np.argsort(size, axis=-1)
    places = np.arange(k) if isinstance(k, int) else np.asarray(k) - 1
    numbers = np.where(np.take_along_axis(size, order, -1) < bound, order, tree.n)[..., places]
    return numbers[..., 0] if isinstance(k, int) and k == 1 else numbers


def _distances(tree: Value, x: Value, numbers: Value, p: float) -> Value:
    missing = np.asarray(numbers) == tree.n
    near = np.asarray(tree.data)[np.where(missing, 0, numbers)]
    several = len(shape_of(numbers)) == len(shape_of(x))
    difference = _difference(tree, x[..., None, :] if several else x, near)
    return np.where(missing, np.inf, np.linalg.vector_norm(difference, axis=-1, ord=p))


def _difference(tree: Value, x: Value, points: Value) -> Value:
    """The differences of points, to the nearest image of each in a periodic box."""
    boxes, difference = tree.boxsize, x - points
    if boxes is None or not np.any(boxes):
        return difference
    turns = np.round(plain(difference) / np.where(boxes > 0, boxes, np.inf))
    return difference - np.where(boxes > 0, boxes, 0.0) * turns


def _made(kind: Function) -> Function:
    return lambda data, *args, **options: Tree(kind, data, *args, **options)


METHODS = ("query_ball_point", "count_neighbors", "query_pairs", "query_ball_tree", "sparse_distance_matrix")


def _method(name: str) -> Function:
    return lambda tree, *args, **options: _constant(tree, name)(*args, **options)


RULES: list[Reached] = [
    *((scipy.spatial, kind.__name__, _made(kind)) for kind in TREES),
    *((kind, "query", Method(_query, lambda _: False)) for kind in TREES),
    # Always, as another tree among the arguments may be of traced points.
    *((kind, name, Method(_method(name), lambda _: True)) for kind in TREES for name in METHODS if name in vars(kind)),
]
