"""Recognise Maps that are matrix products, which BLAS computes."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from effgrad.stage.loop.affine import Affine, Ranges, row_major
from effgrad.stage.loop.buffers import Element, load
from effgrad.stage.loop.element import MULTIPLY, NEGATIVE
from effgrad.stage.loop.ir import Map, Store

# BLAS computes products of at least this many multiplications.
LARGE_PRODUCT = 8192


class MapProduct(NamedTuple):
    """A product `C += alpha * A @ B` in the form that BLAS takes.

    The operands are loads of A, B and C; the extents are those of rows, columns and the sum; the flags say whether A
    and B are transposed ("T") or not ("N"); `leading` has the leading dimensions of A, B and C.
    """

    operands: tuple[Element, Element, Element]
    extents: tuple[Affine, Affine, Affine]
    flags: tuple[str, str]
    leading: tuple[int, int, int]
    alpha: float


def as_product(m: Map, t: Store, ranges: Ranges) -> MapProduct | None:
    """Return a store of a Map as a product, or None if it is none, or small, or BLAS has no form for it."""
    found = _product(m, t) if len(m.dims) == 3 else None
    if found is None or math.prod(ranges.most(n) for _, n in m.dims) < LARGE_PRODUCT:
        return None
    (i, j, k), (a, b), alpha = found
    c = load(t.buffer, t.indices)
    if _form(c, i, j) is None or _form(c, i, j)[0] == "T":  # type: ignore[index]
        (i, j), (a, b) = (j, i), (b, a)
    forms = [_form(a, i, k), _form(b, k, j), _form(c, i, j)]
    known = [form for form in forms if form is not None]
    if len(known) < 3 or known[2][0] != "N":
        return None
    extents = dict(m.dims)
    flags, leading = (known[0][0], known[1][0]), (known[0][1], known[1][1], known[2][1])
    return MapProduct((a, b, c), (extents[i], extents[j], extents[k]), flags, leading, alpha)


def _product(m: Map, t: Store) -> tuple[tuple[str, str, str], tuple[Element, Element], float] | None:
    """Match `C[i, j] += alpha * A[i, k] * B[k, j]`: return the variables, the loads and the number."""
    e, alpha = _without_factor(t.value)
    if not t.adds or t.buffer.dtype.kind != "f" or e.op is not MULTIPLY:
        return None
    a, b = e.args
    if any(x.op != "load" or x.args[0].dtype != t.buffer.dtype for x in (a, b)):
        return None
    others = {s.buffer for s in m.stores if s is not t}
    if t.buffer in (a.args[0], b.args[0]) or not others.isdisjoint((t.buffer, a.args[0], b.args[0])):
        return None
    names = [name for name, _ in m.dims]
    of_c, of_a, of_b = (_depends(x, names) for x in (t.indices, a.args[1], b.args[1]))
    if any(len(s) != 2 for s in (of_c, of_a, of_b)) or len({of_c, of_a, of_b}) != 3:
        return None
    ((i,), (j,), (k,)) = of_c & of_a, of_c & of_b, of_a & of_b
    return (i, j, k), (a, b), alpha


def _without_factor(e: Element) -> tuple[Element, float]:
    """Return an expression without its constant factor, and the factor."""
    alpha = 1.0
    if e.op is NEGATIVE:
        e, alpha = e.args[0], -1.0
    if e.op is MULTIPLY and e.args[0].op == "constant":
        e, alpha = e.args[1], alpha * e.args[0].args[0]
    return e, alpha


def _depends(indices: Sequence[Affine], names: Sequence[str]) -> frozenset[str]:
    return frozenset(v for v in names if any(v in i.variables() for i in indices))


def _form(e: Element, row: str, column: str) -> tuple[str, int] | None:
    """Return whether a matrix is stored by rows ("N") or transposed ("T"), and its leading dimension; or None."""
    where = row_major(e.args[1], e.args[0].shape)
    down, along = where.coefficient(row), where.coefficient(column)
    if along == 1 and down >= 1:
        return "N", down
    return ("T", along) if down == 1 and along >= 1 else None
