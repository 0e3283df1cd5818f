"""`scipy.sparse.linalg`: the solution of a sparse system, in its right-hand side."""

from typing import Any

import numpy as np
import scipy.sparse.linalg

from effgrad.arrays.value import plain
from effgrad.functions.scipy.sparse import _by_data, parts, product
from effgrad.primitives.primitive import Primitive, general


def _value(b: Any, data: Any, rows: Any, columns: Any) -> Any:
    n = b.shape[0]
    return scipy.sparse.linalg.spsolve(scipy.sparse.csc_array((data, (rows, columns)), (n, n)), b)


def _turned(g: Any, data: Any, rows: Any, columns: Any) -> Any:
    return solution(g, data, rows=columns, columns=rows)


def _by_element(t: Any, y: Any, b: Any, data: Any, rows: Any, columns: Any) -> Any:
    n = np.shape(plain(b))[0]
    change = product(y, t, rows=rows, columns=columns, shape=(n, n))
    return -solution(change, data, rows=rows, columns=columns)


solution: Primitive = general(
    _value,
    jvp=(lambda t, y, b, data, rows, columns: solution(t, data, rows=rows, columns=columns), _by_element),
    vjp=(
        lambda g, y, b, data, rows, columns: _turned(g, data, rows, columns),
        lambda g, y, b, data, rows, columns: -_by_data(_turned(g, data, rows, columns), y, data, rows, columns, None),
    ),
    name="spsolve",
)


def _spsolve(A: Any, b: Any, *_: Any, **__: Any) -> Any:
    column = np.ndim(plain(b)) == 2 and np.shape(plain(b))[1] == 1
    data, rows, columns = parts(A)
    return solution(b[:, 0] if column else b, data, rows=rows, columns=columns)


def _spsolve_triangular(A: Any, b: Any, lower: bool = True, *_: Any, unit_diagonal: bool = False, **__: Any) -> Any:
    if unit_diagonal:
        A = A + scipy.sparse.diags_array(1 - A.diagonal())
    data, rows, columns = parts(A)
    return solution(b, data, rows=rows, columns=columns)


RULES: list[tuple[Any, str, Any]] = [
    (scipy.sparse.linalg, "spsolve", _spsolve), (scipy.sparse.linalg, "spsolve_triangular", _spsolve_triangular),
]  # fmt: skip
