"""The rarer arguments: a traced call means what NumPy's does, or is refused.

The calls of the NumPy table are made again with every parameter that they leave out, one at a time.
"""

import inspect

import numpy as np
import pytest
from numpy_cases import CASES, X

from effgrad import EffgradError, compile, grad
from effgrad.arrays.value import plain

pytestmark = pytest.mark.filterwarnings("ignore")

SOME = np.array([True, False, True, True])
ARGUMENTS = {
    "order": ["F", "A", "K"], "dtype": [np.float32, complex, int], "keepdims": [True], "axis": [0, 1, -1, None, (0, 1)],
    "where": [SOME, False], "initial": [0.5], "ddof": [1], "correction": [1], "axis1": [1], "axis2": [0],
    "offset": [1, -1], "k": [1, -1], "mode": ["wrap", "clip", "full", "same", "reflect", "edge", "r"],
    "method": ["lower", "midpoint", "hazen", "weibull"], "norm": ["ortho", "forward"], "n": [3, 5], "s": [(2, 3)],
    "axes": [(1, 0), 1, 0], "ord": [1, 2, -1, -2, np.inf, -np.inf, "fro", "nuc", 3, 0], "rowvar": [False],
    "bias": [True], "full_matrices": [False], "compute_uv": [False], "hermitian": [True], "edge_order": [2],
    "upper": [True], "left": [0.5], "right": [0.7], "period": [1.0], "prepend": [0.0], "append": [1.0],
    "weights": [np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3])], "returned": [True], "copy": [True, False],
    "nan": [1.0], "posinf": [2.0], "neginf": [3.0], "indexing": ["ij"], "sparse": [True], "increasing": [True],
    "N": [2], "density": [True], "bins": [3], "range": [(0.0, 1.0)], "rcond": [0.5], "rtol": [0.5],
    "casting": ["unsafe"], "optimize": [True], "kth": [1], "kind": ["stable"], "stable": [True], "return_index": [True],
    "return_counts": [True], "return_inverse": [True], "default": [0.3], "axisa": [0], "axisb": [0], "axisc": [0],
    "to_begin": [1.0], "to_end": [2.0], "include_initial": [True], "wrap": [True], "dx": [0.5],
    "x": [np.array([0.0, 1, 3, 4])], "mean": [0.5], "fweights": [np.array([1, 2, 3])], "trim": ["f", "b"],
    "aweights": [np.array([1.0, 2, 3])], "shape": [(2, 2)], "discont": [0.3], "minlength": [9], "w": [np.ones(4)],
}  # fmt: skip
# What an empty array holds is not defined, nor the order of what is partitioned; eigenvectors have a phase.
FREE = {"empty_like", "eigh", "eig", "partition"}


class Recorder(np.ndarray):
    """An array that notes the calls of NumPy's functions on it."""

    calls: list = []

    def __array_function__(self, function, types, args, kwargs):
        args, kwargs = mapped(stripped, args), {key: mapped(stripped, value) for key, value in kwargs.items()}
        Recorder.calls.append((function, args, kwargs))
        return mapped(recording, function(*args, **kwargs))

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if "out" in kwargs:
            kwargs["out"] = mapped(stripped, kwargs["out"])
        return mapped(recording, getattr(ufunc, method)(*mapped(stripped, inputs), **kwargs))


def mapped(f, tree):
    """A function of every leaf of nested lists and tuples."""
    return type(tree)([mapped(f, t) for t in tree]) if type(tree) in (list, tuple) else f(tree)


def leaves(tree):
    return [leaf for t in tree for leaf in leaves(t)] if isinstance(tree, list | tuple) else [tree]


def stripped(x):
    return x.view(np.ndarray) if isinstance(x, Recorder) else x


def smooth(x):
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def recording(x):
    return x.view(Recorder) if type(x) is np.ndarray and smooth(x) else x


def variants():
    for program in CASES.values():
        try:
            program(X.view(Recorder))
        except Exception:  # a program that does not run on subclasses is no source of calls
            continue
    for function, args, kwargs in [call for call in Recorder.calls if call[0].__name__ not in FREE]:
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:  # compiled functions of NumPy before 2.4 do not tell
            continue
        given = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY][: len(args)]
        for name in (p.name for p in parameters if p.name not in given):
            for value in ARGUMENTS.get(name, ()):
                yield function, args, {**kwargs, name: value}


TABLE: dict[str, list] = {}
for one in variants():
    TABLE.setdefault(one[0].__name__, []).append(one)


SINGLE, DOUBLE = {"rtol": 1e-5, "atol": 1e-6}, {"rtol": 1e-9, "atol": 1e-12}


def agree(ours, theirs, single=False):
    ours, theirs = [np.asarray(plain(x)) for x in leaves(ours)], [np.asarray(x) for x in leaves(theirs)]
    assert [x.shape for x in ours] == [x.shape for x in theirs]
    assert [x.dtype for x in ours] == [x.dtype for x in theirs]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, **(SINGLE if single or b.dtype == np.float32 else DOUBLE))


def traced_result(call, arrays):
    """What a call gives on traced arrays; None if it is refused."""
    results = []

    def program(*arrays):
        results.append(call(*arrays))
        return np.sum(arrays[0].real)

    try:
        grad(program)(*arrays)
    except (EffgradError, np.linalg.LinAlgError):
        return None
    return results[0]


def agrees(function, args, kwargs, single=False):
    """Whether a call that NumPy takes gives on traced arrays what it gives there, or is refused."""
    changed = mapped(lambda x: x.copy() if smooth(x) else x, args)
    try:
        expected = function(*changed, **kwargs)
    except Exception:  # not a call that NumPy takes
        return
    if expected is None:
        expected = changed[0]
    arrays = [x for x in leaves([args, list(kwargs.items())]) if smooth(x)]

    def call(*arrays):
        given = iter(arrays)
        traced = mapped(lambda leaf: next(given) if smooth(leaf) else leaf, [args, list(kwargs.items())])
        result = function(*traced[0], **dict(traced[1]))
        # Functions that write to their first argument return nothing.
        return [np.asarray(plain(x)) for x in leaves(traced[0][0] if result is None else result)]

    result = traced_result(call, arrays) if arrays else None
    if result is not None:
        agree(result, expected, single)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_arguments_mean_what_they_mean_to_numpy(name):
    for function, args, kwargs in TABLE[name]:
        agrees(function, args, kwargs, single=kwargs.get("dtype") is np.float32)


SHAPES = {
    "empty": lambda x: x[:0] if x.ndim else x,
    "empty last axis": lambda x: x[..., :0] if x.ndim else x,
    "0-d": lambda x: np.array(x.flat[0]),
    "one element": lambda x: x[tuple(slice(0, 1) for _ in x.shape)],
    "transposed": lambda x: x.T,
    "batch": lambda x: np.stack([x, x]),
    "float32": lambda x: x.astype("F" if x.dtype.kind == "c" else "f"),
    "complex": lambda x: x + 0.1j,
    "integers": lambda x: np.round(4 * x),
    "zeros": lambda x: 0 * x,
}
# Points of several values at one place, places and weights that are complex, and what NumPy makes of no numbers.
ODD = {
    ("gradient", "integers"), ("interp", "complex"), ("cov", "complex"), ("svdvals", "empty"), ("cov", "empty"),
    ("nanquantile", "empty"), ("nanquantile", "empty last axis"),
}  # fmt: skip
CALLS: dict[str, list] = {}
for one in Recorder.calls:
    if one[0].__name__ not in FREE:
        CALLS.setdefault(one[0].__name__, []).append(one)


@pytest.mark.parametrize(("name", "shape"), [(n, s) for n in sorted(CALLS) for s in SHAPES if (n, s) not in ODD])
def test_other_shapes_and_dtypes_mean_what_they_mean_to_numpy(name, shape):
    for function, args, kwargs in CALLS[name]:
        args, kwargs = mapped(lambda x: SHAPES[shape](x) if smooth(x) else x, [args, list(kwargs.items())])
        agrees(function, args, dict(kwargs), single=shape == "float32")


METHODS = {
    "reshape F": lambda x: x.reshape(4, 3, order="F"), "reshape A": lambda x: x.reshape((4, 3), order="A"),
    "flatten": lambda x: x.flatten(), "flatten F": lambda x: x.flatten("F"), "ravel F": lambda x: x.ravel("F"),
    "ravel K": lambda x: x.ravel("K"), "sum dtype": lambda x: x.sum(dtype=np.float32),
    "sum where": lambda x: x.sum(where=SOME),
    "sum initial": lambda x: x.sum(1, initial=2.0, keepdims=True), "mean": lambda x: x.mean(0, dtype=np.float32),
    "mean where": lambda x: x.mean(where=SOME, axis=1), "var": lambda x: x.var(0, ddof=1),
    "std": lambda x: x.std(1, ddof=1, keepdims=True), "prod": lambda x: x.prod((0, 1)), "max": lambda x: x.max(0),
    "max where": lambda x: x.max(where=SOME, initial=0.1), "cumsum": lambda x: x.cumsum(dtype=np.float32),
    "cumprod": lambda x: x.cumprod(0), "clip max": lambda x: x.clip(max=0.5), "clip min": lambda x: x.clip(min=0.3),
    "trace": lambda x: x.trace(1, dtype=np.float32), "diagonal": lambda x: x.diagonal(-1, axis1=1, axis2=0),
    "repeat": lambda x: x.repeat([1, 2, 3], 0), "argmax": lambda x: x.argmax(axis=1, keepdims=True),
    "take": lambda x: x.take(9, mode="wrap", axis=0), "compress": lambda x: x.compress([1, 0, 1], 0),
    "astype": lambda x: x.astype("f4"), "astype int": lambda x: (3 * x).astype(int),
    "astype bool": lambda x: x.astype(bool),
    "item": lambda x: x.item((1, 2)) * 1.0, "divmod": lambda x: divmod(x, 0.3), "rdivmod": lambda x: divmod(2.0, x),
    "contains": lambda x: (0.3 in x, x[0, 0] in x), "round": lambda x: round(x[0, 0], 1), "conj": lambda x: x.conj(),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("name", METHODS)
def test_methods_mean_what_they_mean_to_numpy(name, layout):
    array = np.array(X, order=layout)
    agree(traced_result(METHODS[name], [array]), METHODS[name](array))


def test_integers_are_constant():
    np.testing.assert_array_equal(grad(lambda x: x.astype(int).sum() * 1.0)(3 * X), np.zeros_like(X))
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.asarray(x, dtype=int) * x))(3 * X), (3 * X).astype(int))


def test_what_flatten_gives_is_a_copy():
    def program(x):
        y = x.copy()
        flat = y.flatten()
        y[0] = 0.0
        return flat.sum()

    np.testing.assert_array_equal(grad(program)(X), np.ones_like(X))


def test_an_argument_without_rule_is_named():
    with pytest.raises(EffgradError, match="numpy.clip called like this .* 'where'"):
        grad(lambda x: np.clip(x, 0.3, 0.5, where=x > 0.4).sum())(X)


ORDERS = {
    "copy": lambda x: np.ravel(x.T.copy(), "K"),
    "copy F": lambda x: np.ravel(x.copy("F"), "K"),
    "np.copy": lambda x: np.ravel(np.copy(x.T), "K"),
    "asfortranarray": lambda x: np.ravel(np.asfortranarray(x) + 1.0, "K"),
    "ascontiguousarray": lambda x: np.ravel(np.ascontiguousarray(x.T)[:, ::-1], "A"),
    "array F": lambda x: np.ravel(np.array(x, order="F"), "K"),
    "flatten": lambda x: np.ravel(x[::-1].T).strides[0] * x,
}


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("name", ORDERS)
def test_copies_lie_in_memory_as_those_of_numpy(name, layout):
    array = np.array(X, order=layout)
    agree(traced_result(ORDERS[name], [array]), ORDERS[name](array))
    np.testing.assert_allclose(compile(ORDERS[name])(array), ORDERS[name](array), rtol=1e-14)


@pytest.mark.parametrize("name", "sum prod max min mean var std nansum nanprod nanmax ptp".split())
def test_an_argument_that_is_marked_as_left_out_is_left_out(name):
    """Functions that call NumPy's hand its `np._NoValue` on, as NumPy's own do."""
    function = getattr(np, name)
    parameters = inspect.signature(function).parameters.values()
    left_out = {p.name: np._NoValue for p in parameters if p.default is np._NoValue}
    assert left_out

    def f(x):
        return np.sum(np.sin(function(x, axis=0, **left_out)))

    expected = grad(lambda x: np.sum(np.sin(function(x, axis=0))))(X)
    np.testing.assert_array_equal(grad(f)(X), expected)
    np.testing.assert_allclose(compile(grad(f))(X), expected, rtol=1e-12)
