"""Products of arrays: `np.einsum`, `np.matmul` and what they define; as in NumPy, they take stacks of matrices."""

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from effgrad.arrays import library_matrices
from effgrad.arrays.layout import PYTHON_NUMBERS, dtype_of, ndim_of, shape_of, without_axes
from effgrad.arrays.traced import view
from effgrad.arrays.value import FUNCTIONS, UFUNCS, Tracer, example, plain, to_operand
from effgrad.primitives import cotangents
from effgrad.primitives.batching import Arguments
from effgrad.primitives.complexes import conj
from effgrad.primitives.given import as_computed
from effgrad.primitives.move import setitem, transpose
from effgrad.primitives.primitive import Primitive, linear
from effgrad.vocabulary import Cotangent, DTypeLike, Function, Option, Params, Value


def mT(x: Value) -> Value:
    """Return the transposes of matrices, for rules; they are not noted as a view of `x`, since rules do not write."""
    if not isinstance(x, Tracer):
        return np.swapaxes(x, -1, -2)
    n = ndim_of(x)
    return transpose(x, axes=(*range(n - 2), n - 1, n - 2))


def _einsum_transpose(index: int) -> Function:
    """Return the transpose of an einsum in one operand, an einsum with the result's subscripts in its place."""

    def transposed(g: Cotangent, *operands: Value, subscripts: str, **by_matrices: bool) -> Value:
        inputs, output = subscripts.split("->")
        terms = inputs.split(",")
        target, shape = terms[index], shape_of(operands[index])
        others = terms[:index] + terms[index + 1 :]
        rest = operands[:index] + operands[index + 1 :]
        available = set(output).union(*others) if others else set(output)
        unique = "".join(dict.fromkeys(target))
        kept = "".join(s for s in unique if s in available)
        result = einsum(g, *rest, subscripts=",".join([output, *others]) + "->" + kept, **by_matrices)
        # Along subscripts that were only summed over, the cotangent is constant.
        sizes = dict(zip(target, shape, strict=True))
        result = np.reshape(result, tuple(sizes[s] if s in kept else 1 for s in unique))
        result = np.broadcast_to(result, tuple(sizes[s] for s in unique))
        if len(unique) == len(target):
            return result
        # A repeated subscript selects a diagonal, at which the cotangent is placed.
        grid = np.ix_(*[np.arange(sizes[s]) for s in unique])
        place = tuple(grid[unique.index(s)] for s in target)
        return setitem(np.zeros(shape, dtype_of(result)), result, index=place)

    return transposed


# With the parameter `optimize=True`, and for more than two operands, NumPy's products of matrices compute the sums.
einsum = linear(
    lambda *operands, subscripts, optimize=False: np.einsum(
        subscripts, *operands, optimize=optimize or len(operands) > 2
    ),
    name="einsum",
    text=lambda *operands, subscripts, optimize="False", **_: (
        f"np.einsum({subscripts}, {', '.join(operands)}"
        f"{', optimize=True' if optimize == 'True' or len(operands) > 2 else ''})"
    ),
    each=_einsum_transpose,
    batch=lambda primitive, batch, params: _einsum_of_batch(batch, **params),
    counterpart=library_matrices.einsum,
)


def _einsum_of_batch(batch: Arguments, subscripts: str, **by_matrices: bool) -> Value:
    inputs, output = subscripts.split("->")
    letter = min(set(string.ascii_letters) - set(subscripts))
    terms = [letter + t if flag else t for t, flag in zip(inputs.split(","), batch.flags, strict=True)]
    return einsum(*batch.values, subscripts=f"{','.join(terms)}->{letter}{output}", **by_matrices)


def by_letters(subscripts: object, *operands: Value, **options: Option) -> Value:
    """Apply einsum to any form of its arguments."""
    if not isinstance(subscripts, str):
        subscripts, operands = _in_letters(subscripts, *operands)
    # Sums of more than two factors, and sums by matrix products, are added in another order.
    sums = _EINSUM_OF_OPTIONS if len(operands) > 2 or options else _explicit_einsum
    return sums(subscripts, *operands, **options)


def _explicit_einsum(
    subscripts: str, *operands: Value, optimize: Option = False, dtype: DTypeLike = None, casting: Any = "safe",
    order: Option = "K",
) -> Value:  # fmt: skip
    """Apply einsum with explicit letters; an ellipsis becomes unused letters."""
    operands = tuple(map(to_operand, operands))
    if dtype is not None:
        for x in operands:
            np.empty(0, dtype_of(x)).astype(dtype, casting=casting)  # raises NumPy's error
        operands = tuple(np.astype(x, np.dtype(dtype)) for x in operands)
    subscripts = subscripts.replace(" ", "")
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if not arrow:
        counted = inputs.replace(",", "").replace(".", "")
        output = ("..." if "..." in inputs else "") + "".join(sorted(s for s in set(counted) if counted.count(s) == 1))
    if "..." in inputs:
        terms, operands, output = _without_ellipses(terms, operands, output)
    terms, operands = _without_broadcast(terms, operands)
    params: Params = {"subscripts": ",".join(terms) + "->" + output, **({"optimize": True} if optimize else {})}
    result = einsum(*operands, **params)
    # A diagonal or a transpose is a view.
    return result if len(operands) > 1 else view(result, operands[0], lambda x: einsum(x, **params))


_EINSUM_OF_OPTIONS = as_computed(np.einsum, _explicit_einsum)


def _in_letters(*listed: Value) -> tuple[str, tuple[Value, ...]]:
    """Return the subscripts in letters and the operands, from operands that alternate with lists of numbers."""

    def lettered(numbers: Sequence[Value]) -> str:
        return "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in numbers)

    pairs = listed[: len(listed) // 2 * 2]
    subscripts = ",".join(map(lettered, pairs[1::2]))
    return subscripts + ("->" + lettered(listed[-1]) if len(listed) % 2 else ""), pairs[::2]


def _without_ellipses(
    terms: list[str], operands: tuple[Value, ...], output: str
) -> tuple[list[str], tuple[Value, ...], str]:
    """Return the terms, operands and output with unused letters in place of the ellipses."""
    used = "".join(terms) + output
    free = [s for s in string.ascii_uppercase + string.ascii_lowercase if s not in used]
    ranks = [ndim_of(x) - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    most = max(r for r, t in zip(ranks, terms, strict=True) if "..." in t)
    batch = "".join(free[:most])
    shape = np.broadcast_shapes(
        *[shape_of(x)[(p := t.index("...")) : p + r]
          for t, r, x in zip(terms, ranks, operands, strict=True) if "..." in t]
    )  # fmt: skip
    widened = []
    for t, r, x in zip(terms, ranks, operands, strict=True):
        if "..." in t:
            p, full = t.index("..."), shape_of(x)
            wide = full[:p] + shape[most - r :] + full[p + r :]
            x = x if wide == full else np.broadcast_to(x, wide)
        widened.append(x)
    terms = [t.replace("...", batch[most - r :]) for t, r in zip(terms, ranks, strict=True)]
    return terms, tuple(widened), output.replace("...", batch)


def _without_broadcast(terms: list[str], operands: Value) -> tuple[list[str], Value]:
    """Return the terms and operands without axes of length one that broadcast against longer axes of their letter."""
    shapes = [shape_of(x) for x in operands]
    longest: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, size in zip(term, shape, strict=False):
            longest[letter] = max(size, longest.get(letter, 0))
    short = [
        [n == 1 < longest[letter] for letter, n in zip(term, shape, strict=False)]
        for term, shape in zip(terms, shapes, strict=True)
    ]
    if not any(map(any, short)):
        return terms, operands
    kept = [
        "".join(s for s, drop in zip(term, drops, strict=False) if not drop)
        for term, drops in zip(terms, short, strict=True)
    ]
    places = [tuple(0 if drop else slice(None) for drop in drops) for drops in short]
    return kept, tuple(x[place] if 0 in place else x for x, place in zip(operands, places, strict=True))


def _single(g: Cotangent, a: Value, b: Value) -> Value:
    """Return the cotangent of a float32 product as float32; with a float64 one, BLAS could compute neither product."""
    kinds = [dtype_of(x).char for x in (g, a, b)]
    return np.astype(g, np.float32) if kinds == ["d", "f", "f"] else g


def _rows(x: Value) -> Value:
    """Return the rows of all matrices of a batch as the rows of one matrix."""
    return np.reshape(x, (math.prod(shape_of(x)[:-1]), shape_of(x)[-1]))


def _matmul_left(g: Cotangent, a: Value, b: Value) -> Value:
    na, nb = a.ndim, b.ndim
    if na == 1 and nb == 1:
        return g * b
    if nb == 1:
        return cotangents.unbroadcast(g[..., None] * b, a)
    if na == 1:
        return cotangents.unbroadcast(np.matmul(b, g[..., None])[..., 0], a)
    g = _single(g, a, b)
    if na > 2 and nb == 2:
        return np.reshape(np.matmul(_rows(g), mT(b)), shape_of(a))
    return cotangents.unbroadcast(np.matmul(g, mT(b)), a)


def _matmul_right(g: Cotangent, a: Value, b: Value) -> Value:
    na, nb = a.ndim, b.ndim
    if na == 1 and nb == 1:
        return g * a
    if na == 2 and nb == 1 and type(g) is type(a) is np.ndarray:
        return np.matmul(g, a)
    if na == 1:
        return cotangents.unbroadcast(a[:, None] * g[..., None, :], b)
    if nb == 1:
        return cotangents.unbroadcast(np.matmul(g[..., None, :], a)[..., 0, :], b)
    g = _single(g, a, b)
    if na > 2 and nb == 2:  # one product, instead of a sum of the products for each matrix of the batch
        return np.matmul(mT(_rows(a)), _rows(g))
    return cotangents.unbroadcast(np.matmul(mT(a), g), b)


def _matmul_of_batch(primitive: Primitive, batch: Arguments, params: Params) -> Value:
    (a, b), (left, right) = batch.values, map(len, batch.shapes)
    if not batch.flags[1] and right <= 2:
        return matmul(a, b)  # a vector for each member is a row of a matrix
    if not batch.flags[0] and (left, right) in ((1, 1), (2, 1)):
        return matmul(b, a if left == 1 else mT(a))
    # A vector becomes a matrix of one row or one column, whose axis is removed at the end.
    a = a[..., None, :] if left == 1 else a
    b = b[..., None] if right == 1 else b
    result = matmul(*Arguments([a, b], batch.flags, batch.count).aligned())
    result = result[..., 0] if right == 1 else result
    return result if left > 1 else result[..., 0] if right == 1 else result[..., 0, :]


matmul = linear(
    np.matmul, _matmul_left, _matmul_right, text="({0} @ {1})", batch=_matmul_of_batch,
    counterpart=library_matrices.matmul,
)  # fmt: skip


def _dot(a: Value, b: Value) -> Value:
    a, b = to_operand(a), to_operand(b)
    if not ndim_of(a) or not ndim_of(b):
        return _scaled(_DOT_OF_NUMBER, a, b)
    return _dot_of_matrices(a, b) if ndim_of(a) <= 2 and ndim_of(b) <= 2 else _DOT_OF_OTHERS(a, b)


def _dot_of_matrices(a: Value, b: Value) -> Value:
    # `np.dot` copies arrays with gaps in memory before it multiplies, and `np.matmul` does not. For a single complex
    # row or column `np.dot` uses other instructions.
    arrays = [x for x in (plain(a), plain(b)) if type(x) is np.ndarray]
    alike = all(x.flags.forc and (x.dtype.kind != "c" or 1 not in x.shape) for x in arrays)
    return matmul(a, b) if alike else _DOT_OF_ODD(a, b)


def _inner(a: Value, b: Value) -> Value:
    a, b = to_operand(a), to_operand(b)
    return _INNER(a, b) if ndim_of(a) and ndim_of(b) else _scaled(_INNER_OF_NUMBER, a, b)


def _scaled(computed: Function, a: Value, b: Value) -> Value:
    """Return a number times an array; complex ones as `computed` does, whose last bits are not those of `*`."""
    return computed(a, b) if "c" in (dtype_of(a).kind, dtype_of(b).kind) else _times(a, b)


def _times(a: Value, b: Value) -> Value:
    return _as_array(a) * _as_array(b)


def _as_array(x: Value) -> Value:
    """Return an operand with a Python number turned into NumPy's, in double precision."""
    if isinstance(x, Tracer):
        return UFUNCS[np.positive](x) if type(example(x)) in PYTHON_NUMBERS else x
    return np.asarray(x)


# These functions add in another order than a product of matrices, so their rounding errors differ.
_DOT_OF_NUMBER, _INNER_OF_NUMBER = as_computed(np.dot, _times), as_computed(np.inner, _times)
_DOT_OF_ODD = linear(
    np.dot, _matmul_left, _matmul_right, text="np.dot({0}, {1})", batch=_matmul_of_batch,
    counterpart=library_matrices.matmul,
)  # fmt: skip
_DOT_OF_OTHERS = as_computed(np.dot, lambda a, b: np.tensordot(a, b, axes=(-1, -min(ndim_of(b), 2))))
_INNER = as_computed(np.inner, lambda a, b, /: np.tensordot(a, b, axes=(-1, -1)))


def _tensordot(a: Value, b: Value, axes: int | tuple[Value, Value] = 2) -> Value:
    a, b = to_operand(a), to_operand(b)
    na, nb = ndim_of(a), ndim_of(b)
    if isinstance(axes, int) and axes > min(na, nb):
        raise ValueError("shape-mismatch for sum")
    left, right = (range(-axes, 0), range(axes)) if isinstance(axes, int) else axes
    left, right = list(normalize_axis_tuple(left, na)), list(normalize_axis_tuple(right, nb))
    contracted = dict(zip(right, left, strict=True))
    names_a, names_b = list(range(na)), [contracted.get(j, na + j) for j in range(nb)]
    if [shape_of(a)[i] for i in left] != [shape_of(b)[j] for j in right]:
        raise ValueError("shape-mismatch for sum")
    if not isinstance(plain(a), Tracer) and not isinstance(plain(b), Tracer):
        return _tensordot_by_matrices(a, b, left, right)
    kept = [names_a[i] for i in range(na) if i not in left] + [names_b[j] for j in range(nb) if j not in right]
    return without_axes(by_letters(a, names_a, b, names_b, kept))


def _tensordot_by_matrices(a: Value, b: Value, left: list[int], right: list[int]) -> Value:
    """Compute a tensordot by the same steps as NumPy, which gives NumPy's value to the bit."""
    shape_a, shape_b = shape_of(a), shape_of(b)
    kept_a = [i for i in range(len(shape_a)) if i not in left]
    kept_b = [j for j in range(len(shape_b)) if j not in right]
    rows, inner, columns = (
        math.prod(shape[i] for i in axes) for shape, axes in ((shape_a, kept_a), (shape_a, left), (shape_b, kept_b))
    )
    first = np.reshape(np.transpose(a, [*kept_a, *left]), (rows, inner))
    second = np.reshape(np.transpose(b, [*right, *kept_b]), (inner, columns))
    return np.reshape(_dot_of_matrices(first, second), [shape_a[i] for i in kept_a] + [shape_b[j] for j in kept_b])


UFUNCS.enter({np.matmul: matmul})
FUNCTIONS.enter({
    np.dot: _dot, np.tensordot: _tensordot, np.einsum: by_letters, np.matmul: matmul, np.inner: _inner,
    np.vdot: as_computed(np.vdot, lambda a, b, /: np.sum(conj(np.ravel(a)) * np.ravel(b))),
    np.outer: lambda a, b: np.reshape(a, (-1, 1)) * np.reshape(b, (1, -1)),
    np.linalg.vecdot: as_computed(np.linalg.vecdot, lambda x1, x2, /, *, axis=-1: np.sum(conj(x1) * x2, axis=axis)),
})  # fmt: skip
