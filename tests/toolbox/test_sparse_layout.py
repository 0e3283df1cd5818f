"""Sparse results have SciPy's class, format and order of storage, and share memory where SciPy's do.

Programs read `data`, `indices` and `format`, write `A *= k` through another name, and multiply matrices by `*`. The
oracle is SciPy: each program runs plain, and its derivative is compared with the exact difference of a polynomial.
"""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from differences import slope

from effgrad import NoRule, grad, hvp, jvp

X = np.array([0.3, 0.7, 1.1, -0.4, 0.9, 0.2])
U = np.array([0.5, -0.2, 0.7, 0.1, -0.6, 0.4])
FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
ROWS, COLUMNS = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 2, 1, 0, 1, 2])


def made(x, form, kind="array"):
    return getattr(sp, f"coo_{kind}")((x, (ROWS, COLUMNS)), (3, 3)).asformat(form)


def unsorted(x):
    return sp.csr_array((x, [2, 0, 1, 2, 0, 1], [0, 2, 3, 6]), (3, 3))


def duplicates(x):
    return sp.csr_array((x, [0, 0, 1, 2, 0, 2], [0, 2, 3, 6]), (3, 3))


def weighed(a):
    """A number that depends on every element of an array or a matrix, and on the order in which it stores them."""
    if not sp.issparse(a):
        return np.sum(np.asarray(a) * np.arange(1.0, np.size(a) + 1).reshape(np.shape(a)))
    stored = 0.0 if a.format in ("lil", "dok") else weighed(np.ravel(a.data))
    return stored + 10.0 * weighed(a.toarray())


def check(f):
    np.testing.assert_allclose(jvp(f, (X,), (U,)), (f(X.copy()), slope(f, X, U, 0.01)), rtol=1e-9)
    np.testing.assert_allclose(grad(f)(X) @ U, slope(f, X, U, 0.01), rtol=1e-9)
    second = slope(lambda x: grad(f)(x) @ U, X, U, 0.01)
    np.testing.assert_allclose(hvp(f, X, U) @ U, second, rtol=1e-8, atol=1e-9)


D = np.linspace(-1.0, 1.0, 9).reshape(3, 3)
OPERATIONS = {
    "sum": lambda a: a + a.T, "difference": lambda a: a - 2 * a.T, "product": lambda a: a @ a.T,
    "dense": lambda a: a + D, "dense first": lambda a: D - a,
    "elementwise": lambda a: a.multiply(a), "rows": lambda a: a.multiply(D[0]),
    "star": lambda a: a * a, "negative": lambda a: -a, "power": lambda a: a.power(2), "conjugate": lambda a: a.conj(),
    "real": lambda a: a.real, "transpose": lambda a: a.T, "coo": lambda a: a.tocoo(), "csc": lambda a: a.tocsc(),
    "kron": lambda a: sp.kron(a, a), "kronsum": lambda a: sp.kronsum(a, a), "row": lambda a: a.tocsr()[2:3],
    "reshape": lambda a: a.reshape(1, 9), "find": lambda a: sp.find(a)[2],
    "spdiags": lambda a: sp.spdiags(a.toarray(), [0, 1, 2], 3, 3),
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_results_have_scipys_class_format_and_order(name, form, kind):
    seen = []

    def f(x):
        result = OPERATIONS[name](made(x, form, kind))
        seen.append((isinstance(result, np.matrix | sp.spmatrix), getattr(result, "format", None), np.shape(result)))
        return np.sum(result) if name == "kronsum" else weighed(result)  # stored zeros of a block may differ

    check(f)
    assert len(set(seen)) == 1


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in ("kron", "kronsum", "spdiags")])
@pytest.mark.parametrize("make", [unsorted, duplicates, lambda x: sp.coo_array((x, (ROWS[::-1], COLUMNS)), (3, 3))])
def test_unsorted_elements_and_duplicates_keep_scipys_order(name, make):
    check(lambda x: weighed(OPERATIONS[name](make(1.0 * x))))


def test_a_sparse_matrix_and_a_dense_array_are_a_numpy_matrix():
    """SciPy's sum of a sparse matrix and an array is `np.matrix`, whose `*` is the product of matrices."""
    check(lambda x: weighed((made(x, "csr", "matrix") + D) * D))
    check(lambda x: weighed(sp.kron(made(x, "csr", "matrix"), sp.eye(2)) * np.ones(6)))


def scaled(a, k):
    a *= k
    a /= 2.0


def lowered(a, b):
    a += b
    a -= 3.0 * b


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_operators_in_place_write_to_the_callers_matrix(form, kind):
    def f(x):
        a = made(x, form, kind)
        scaled(a, x[1])
        scaled(a, 3.0)
        if form == "lil":
            lowered(a, a.T)
        return weighed(a)

    check(f)


def data_of_transpose(x):
    a = made(x, "csr")
    b = a.T
    a.data *= x[0]
    return weighed(b)


def item_of_same_format(x):
    a = made(x, "csr")
    b = a.tocsr()
    b.data[1:] += b.data[:-1]
    b[0, 2] = x[4]
    return weighed(a)


def constructed(x):
    a = made(x, "csc")
    b, c = sp.csc_array(a), sp.csc_array(a, copy=True)
    b.data[2] = x[0] * x[1]
    c *= 5.0
    return weighed(a) + weighed(c)


def own_data(x):
    d = 1.0 * x
    a = sp.csr_array((d, COLUMNS, [0, 2, 3, 6]))
    b, c = a.copy(), sp.csr_array((d, COLUMNS, [0, 2, 3, 6]), copy=True)
    e = sp.csr_array(d.reshape(2, 3))
    d *= x[2]
    return weighed(a) + weighed(b) + 3.0 * weighed(c) + 5.0 * weighed(e.toarray())


def items(x):
    a, v = sp.lil_array((3, 3)), 1.0 * x[:3]
    a[0] = v
    a.setdiag(v)
    v *= 2.0
    return weighed(a) + weighed(v)


def copies(x):
    a = made(x, "csr")
    b, c = copy.deepcopy(a), copy.copy(a)
    b.data *= 2.0
    c.data[0] = x[3]
    return weighed(a) + weighed(b)


def part(x):
    a = made(x, "csr")
    a.real.data *= 2.0
    a.conj().data *= 3.0
    a.astype(float).data *= 5.0
    return weighed(a)


@pytest.mark.parametrize(
    "f", [data_of_transpose, item_of_same_format, constructed, own_data, items, copies, part], ids=lambda f: f.__name__
)
def test_matrices_share_data_where_scipys_do(f):
    check(f)


def test_an_item_of_a_matrix_with_a_living_transpose_is_refused():
    def f(x):
        a = made(x, "csr")
        b = a.T
        a[0, 0] = x[1]
        return weighed(b)

    with pytest.raises(NoRule, match="shares its data"):
        grad(f)(X)


def test_a_dok_matrix_is_a_dictionary():
    def f(x):
        a = made(x, "dok")
        total = sum(v * v for v in a.values()) + sum(v * (i + 2 * j) for (i, j), v in a.items())
        if (0, 2) in a and (0, 1) not in a:
            del a[0, 2]
        return total + weighed(a) * a.get((2, 1)) + a.nnz * x[0]

    check(f)
