"""Rules for `scipy.sparse`: making and joining matrices with traced elements, and their operations with plain ones."""

from collections.abc import Callable

from scipy import sparse

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import REASONS, Tracer, depends
from effgrad.errors import NoRule, NotDifferentiable
from effgrad.functions.scipy.sparse_elements import Elements, Matrix, is_scalar
from effgrad.functions.scipy.sparse_value import TracedSparse, arranged, lifted, moved
from effgrad.functions.scipy.tables import Calling, Method, traced_inside
from effgrad.vocabulary import Function, Value


def _maker(kind: Value) -> Value:
    """Return the rule of a format's constructor, for traced elements or a traced matrix."""

    def rule(arg1: Value, shape: Value = None, dtype: Value = None, copy: bool = False, **options: Value) -> Value:
        made = _made(kind, arg1, shape, options)
        made = made if dtype is None else made.astype(dtype)
        return made.copy() if copy else made

    return rule


def _made(kind: Value, arg1: Value, shape: Value, options: dict[str, Value]) -> TracedSparse:
    if sparse.issparse(arg1):
        return lifted(arg1).rearranged(lambda places: kind(places, **options))  # type: ignore[no-any-return]
    values, *places = (arg1[0], *map(_constant_places, arg1[1:])) if type(arg1) is tuple else (arg1,)
    values = np.asarray(values)
    numbers = np.arange(1, values.size + 1).reshape(shape_of(values))
    if not places:
        return moved(kind(numbers, shape, **options), np.ravel(values.copy()))  # type: ignore[no-any-return]
    if len(places) == 2 or issubclass(kind, sparse._dia._dia_base):
        return _with_vector(kind((numbers, *map(np.asarray, places)), shape, **options), values)
    made = _with_vector(sparse.coo_array((numbers, *places), shape), values)
    if issubclass(kind, sparse._coo._coo_base):  # the format keeps duplicate elements
        return TracedSparse(kind(made.places), made._elements)
    return made.rearranged(lambda places: kind(places, **options))  # type: ignore[no-any-return]


def _with_vector(places: Matrix, values: Value) -> TracedSparse:
    """Return a matrix of elements that are the program's own array, which it may write to."""
    return TracedSparse(places, Elements(np.ravel(values), lent=True))


def _constant_places(part: Value) -> Value:
    return tuple(map(_place, part)) if type(part) in (tuple, list) else _place(part)


def _place(numbers: Value) -> Value:
    """Return rows or columns as a plain array; a compiled program takes another path for other ones."""
    numbers = np.asarray(numbers)
    if depends(numbers) and dtype_of(numbers).kind in "fc":
        raise NotDifferentiable("the rows and columns of a sparse matrix are constants: use effgrad.stop_gradient")
    return numbers.__array__() if isinstance(numbers, Tracer) else numbers


def _filled(kind: Value) -> Value:
    """Return the rule of the constructor of a format that programs fill element by element: lil or dok."""
    make = _maker(kind)

    def rule(arg1: Value, shape: Value = None, dtype: Value = None, copy: bool = False) -> Value:
        return make(arg1, shape, dtype) if traced_inside(arg1) else _fillable(kind(arg1, shape, dtype))

    return Calling(rule)


def _fillable(made: Matrix) -> Matrix:
    """Return a lil or dok matrix as one that traced values can be written to, and any other matrix unchanged."""
    if type(made) is TracedSparse or made.format not in ("lil", "dok") or made.dtype.kind not in "fc":
        return made
    places = made.tocsr(copy=True)
    elements, places.data = places.data, np.arange(1, places.data.size + 1)
    return TracedSparse(made.__class__(places), elements)


def _making(function: Value) -> Function:
    """Return the rule of a function of constants that may make a lil or dok matrix."""
    return lambda *args, **options: _fillable(function(*args, **options))


# SciPy's own classes and functions, which are not their rules.
COO, DIA = sparse.coo_array, sparse.dia_matrix
DIAGONALS = (sparse.diags, sparse.diags_array)


def _moving(function: Value, *arguments: int) -> Value:
    """Return the rule of a function that only joins or places elements, by calling it with the elements' numbers.

    `arguments` are the positions of the arguments that have the matrices and arrays.
    """

    def rule(*args: Value, dtype: Value = None, **options: Value) -> Value:
        values: list[Value] = []
        start = 0

        def numbers(part: Value) -> Value:
            nonlocal start
            if part is None:
                return None
            if type(part) in (list, tuple) and any(
                p is None or sparse.issparse(p) or type(p) in (list, tuple) or isinstance(p, Tracer) or np.ndim(p)
                for p in part
            ):
                return [numbers(p) for p in part]
            if sparse.issparse(part):
                matrix = lifted(part).stored()
                result = matrix.places.copy()
                result.data = result.data + start * (result.data > 0)
                values.append(matrix.vector)
            else:
                part = np.asarray(part)
                result = start + 1 + np.arange(part.size).reshape(shape_of(part))
                values.append(np.ravel(part))
            start += size_of(values[-1])
            return result

        given = [numbers(arg) if place in arguments else arg for place, arg in enumerate(args)]
        kind = {"dtype": int} if function in DIAGONALS else {}
        made = moved(function(*given, **options, **kind), np.concatenate(values))
        return made if dtype is None else made.astype(dtype)

    return rule


def _kron(A: Value, B: Value, format: Value = None) -> TracedSparse:
    a, b = (lifted(m if sparse.issparse(m) else _made(COO, m, None, {})).stored() for m in (A, B))
    ones = [m.ones().astype(int) for m in (a, b)]
    left = sparse.kron(a.places.tocoo(), ones[1].tocoo(), "coo")
    right = sparse.kron(ones[0].tocoo(), b.places.tocoo(), "coo")
    first, second = moved(left, a.vector), moved(right, b.vector)
    given = [lifted(m).ones() if sparse.issparse(m) else np.ones(shape_of(m)) for m in (A, B)]
    product = TracedSparse(first.places, first.vector * second.vector)
    return arranged(product.canonical(), sparse.kron(*given, format))


def _kronsum(A: Value, B: Value, format: Value = None) -> Value:
    matrices = sparse.spmatrix if all(isinstance(lifted(m).places, sparse.spmatrix) for m in (A, B)) else ()
    eyes = [(sparse.eye if matrices else sparse.eye_array)(m.shape[0]) for m in (A, B)]
    format = format or "csr"
    return (_kron(eyes[1], A, format) + _kron(B, eyes[0], format)).asformat(format)


def _find(A: Value) -> tuple[Value, Value, Value]:
    found = A.rearranged(COO)
    found = found.copy() if found is A else found
    found.sum_duplicates()
    values, rows, columns = found.nonzero_entries()
    return rows, columns, values


def _spdiags(data: Value, diags: Value, m: Value = None, n: Value = None, format: Value = None) -> Value:
    m, n = (len(np.asarray(data)[0]),) * 2 if m is None else m if n is None else (m, n)
    return _made(DIA, (data, diags), (m, n), {}).asformat(format or "dia")


# The operations of a plain matrix with traced values, which are those of the same matrix as a traced one.
OPERATIONS: dict[str, Callable[[TracedSparse, Value], Value]] = {
    "_matmul_dispatch": lambda a, b: a.multiply(b) if is_scalar(b) else a @ b,
    "_rmatmul_dispatch": lambda a, b: a.multiply(b) if is_scalar(b) else a.__rmatmul__(b),
    "multiply": lambda a, b: a.multiply(b), "_divide": lambda a, b: a / b,
    "_add_sparse": lambda a, b: a + b, "_sub_sparse": lambda a, b: a - b,
    "_add_dense": lambda a, b: a + b, "_sub_dense": lambda a, b: a - b, "_rsub_dense": lambda a, b: b - a,
}  # fmt: skip


def _operation(name: str) -> Value:
    def rule(self: Matrix, other: Value, **options: Value) -> Value:
        if options.get("rdivide"):
            raise NoRule("an array divided by a sparse matrix is dense: write x / A.toarray()")
        return OPERATIONS[name](lifted(self), other)

    return rule


def _refuse_number(x: Value) -> bool:
    """Refuse a traced number where SciPy would add it: SciPy drops one that happens to be 0, and so its derivative."""
    if ndim_of(x) == 0 and not sparse.issparse(x):
        raise NoRule("an operation of a sparse matrix and a traced number has no derivative rule: write A.tocsr() * x")
    return False


CLASSES = (
    sparse._base._spbase, sparse._coo._coo_base, sparse._compressed._cs_matrix, sparse._dia._dia_base,
    sparse._bsr._bsr_base, sparse._lil._lil_base, sparse._dok._dok_base,
)  # fmt: skip
FORMATS = [f"{name}_{kind}" for name in ("coo", "csr", "csc", "bsr", "dia") for kind in ("array", "matrix")]
FILLED = [f"{name}_{kind}" for name in ("lil", "dok") for kind in ("array", "matrix")]
MOVING = {
    "diags": (0,), "diags_array": (0,), "hstack": (0,), "vstack": (0,), "bmat": (0,), "block_array": (0,),
    "block_diag": (0,), "tril": (0,), "triu": (0,),
}  # fmt: skip
RULES: list[tuple[Value, str, Value]] = [
    *((owner, name, _operation(name)) for owner in CLASSES for name in OPERATIONS if name in vars(owner)),
    *(
        (module, "isscalarlike", _refuse_number)
        for module in (sparse._base, sparse._coo, sparse._data, sparse._dia, sparse._dok, sparse._lil)
    ),
    # Operators of formats whose operators do not call the methods above.
    (sparse._base._spbase, "__matmul__", _operation("_matmul_dispatch")),
    *((sparse._dok._dok_base, name, _operation("_add_sparse")) for name in ("__add__", "__radd__")),
    *((owner, "__truediv__", _operation("_divide")) for owner in (sparse._dok._dok_base, sparse._lil._lil_base)),
    *((sparse, name, _maker(getattr(sparse, name))) for name in FORMATS),
    *((sparse, name, _filled(getattr(sparse, name))) for name in FILLED),
    *((sparse, name, Calling(_making(getattr(sparse, name)))) for name in ("eye", "eye_array", "identity")),
    *(
        (owner, name, Method(_making(vars(owner)[name]), lambda _: True))
        for owner in (*CLASSES, sparse._csr._csr_base) for name in ("tolil", "todok", "asformat") if name in vars(owner)
    ),
    *((sparse, name, _moving(getattr(sparse, name), *places)) for name, places in MOVING.items()),
    (sparse, "kron", _kron), (sparse, "kronsum", _kronsum), (sparse, "find", _find), (sparse, "spdiags", _spdiags),
]  # fmt: skip
GRAPHS = (
    "algorithms of graphs choose edges: find the path, the tree or the matching in the constant graph, outside of the "
    "derivative or from effgrad.stop_gradient(values), and add up the traced weights of its edges"
)
REASONS.enter({
    f"scipy.sparse.csgraph.{name}": GRAPHS
    for name in (
        "validate_graph", "scipy.sparse.csgraph._min_spanning_tree.minimum_spanning_tree",
        *(f"scipy.sparse.csgraph._shortest_path.{name}" for name in ("dijkstra", "bellman_ford", "johnson")),
    )
})  # fmt: skip
OUTSIDE = (
    "the matrix was made outside the derivative, or by a class that was imported by its name: make it inside, as "
    "scipy.sparse.lil_matrix, or assemble it with coo_array((values, (rows, columns)))"
)
REASONS.enter({
    f"scipy.sparse.{name}.{method}": OUTSIDE
    for name in ("_lil_base", "_dok_base", "_cs_matrix", "_spbase") for method in ("__setitem__", "toarray")
})  # fmt: skip
