"""`scipy.sparse.linalg` with a `LinearOperator` whose products use traced values.

SciPy's iterative methods run on plain numbers. The result is the root of the equations that it solves, so it is a
function of the values that the products close over (`effgrad.toolbox.implicit`). This needs only products with the
operator. In compiled programs and batches the methods are call backs.
"""

from typing import Any

import scipy.sparse
import scipy.sparse.linalg
from scipy.sparse.linalg import LinearOperator, _interface

from effgrad.arrays.reach import np
from effgrad.errors import NoRule, NotDifferentiable
from effgrad.functions.scipy import sparse_eigen, sparse_linalg
from effgrad.functions.scipy.sparse_elements import product
from effgrad.functions.scipy.sparse_value import parts
from effgrad.functions.scipy.tables import Calling, arguments_by_name, traced_inside
from effgrad.program import read
from effgrad.toolbox.callbacks import called_back
from effgrad.toolbox.frozen import Observed, as_number_or_array, as_vector, frozen, plain_tree
from effgrad.toolbox.implicit import follow
from effgrad.vocabulary import Function, Value


def applied(operator: LinearOperator, x: Value) -> Value:
    """Return the product of an operator and a vector, which may be traced, by the functions in the operator."""
    kind: Any = type(operator)
    args: Any = getattr(operator, "args", ())
    if kind is _interface._CustomLinearOperator:
        result = read(operator._CustomLinearOperator__matvec_impl)(x)
    elif kind is _interface._SumLinearOperator:
        result = applied(args[0], x) + applied(args[1], x)
    elif kind is _interface._ProductLinearOperator:
        result = applied(args[0], applied(args[1], x))
    elif kind is _interface._ScaledLinearOperator:
        result = args[1] * applied(args[0], x)
    elif kind is _interface._PowerLinearOperator:
        result = x
        for _ in range(args[1]):
            result = applied(args[0], result)
    elif isinstance(operator, _interface.MatrixLinearOperator):
        result = _times(operator.A, x)
    elif kind is _interface.IdentityOperator:
        result = x
    else:  # a class of the user
        result = read(operator._matvec)(x)
    return as_vector(result)


def _times(matrix: Value, x: Value) -> Value:
    if not scipy.sparse.issparse(matrix):
        return matrix @ x
    data, rows, columns = parts(matrix)
    return product(x, data, rows=rows, columns=columns, size=matrix.shape)


def _transposed(operator: LinearOperator, x: Value) -> Value:
    return applied(operator.H, x)


class Products:
    """The products of an operator, and of its adjoint, as functions of a vector."""

    def __init__(self, operator: LinearOperator) -> None:
        self.shape, self.dtype = operator.shape, operator.dtype
        self.functions = lambda x: applied(operator, x), lambda x: _transposed(operator, x)

    def plain(self, functions: tuple[Function, Function]) -> tuple[LinearOperator, Observed]:
        """Return an operator on plain numbers, and its product, which records whether it has used traced values."""
        matvec, rmatvec = map(Observed, functions)
        return LinearOperator(self.shape, matvec=matvec, rmatvec=rmatvec, dtype=self.dtype), matvec


def _constant(name: str, options: dict[str, Value]) -> dict[str, Value]:
    if traced_inside(list(options.values())):
        raise NoRule(
            f"scipy.sparse.linalg.{name}: the operator and the right-hand side may be traced; no other argument"
        )
    return options


def _iterative(name: str) -> Calling:
    original, of_matrices = getattr(scipy.sparse.linalg, name), SPARSE[name]

    def rule(A: Value, b: Value, x0: Value = None, **options: Value) -> Value:
        if not isinstance(A, LinearOperator):
            traced = traced_inside((A, b, x0, list(options.values())))
            return (of_matrices if traced else original)(A, b, x0, **options)
        products, given = Products(A), _constant(name, options)

        def run(converted: Function, kept: Function) -> Value:
            functions, right = converted((products.functions, b))
            operator, matvec = products.plain(functions)
            start = None if x0 is None else plain_tree(x0)
            (x, info), known = kept(lambda: original(operator, plain_tree(right), start, **given))
            if not (known or matvec.traced or traced_inside(right)):
                return x, info
            if info:
                raise NotDifferentiable(
                    f"scipy.sparse.linalg.{name} did not converge (info={info}), and what it returned has no "
                    "derivative: raise maxiter, or give a preconditioner M"
                )

            def residual(x: Value) -> Value:
                return functions[0](x) - right

            return follow(residual, x, frozen(residual), f"scipy.sparse.linalg.{name}"), info

        return called_back(run, name)

    return Calling(rule)


def _eigsh(*args: Value, **kwargs: Value) -> Value:
    original, of_matrices = scipy.sparse.linalg.eigsh, SPARSE["eigsh"]
    options = arguments_by_name(original, args, kwargs)
    if not isinstance(options["A"], LinearOperator):
        return (of_matrices if traced_inside((args, list(kwargs.values()))) else original)(*args, **kwargs)
    if options["M"] is not None or options["mode"] != "normal":
        raise NoRule("scipy.sparse.linalg.eigsh has a derivative rule without M, in mode='normal'")
    A, k, return_eigenvectors = options.pop("A"), options.pop("k"), options.pop("return_eigenvectors")
    products, given = Products(A), _constant("eigsh", options)

    def run(converted: Function, kept: Function) -> Value:
        functions = converted(products.functions)
        operator, matvec = products.plain(functions)
        (values, vectors), known = kept(lambda: original(operator, k, **given))
        if known or matvec.traced:
            pairs = [_followed(functions[0], value, vector) for value, vector in zip(values, vectors.T, strict=True)]
            values, vectors = np.stack([p[0] for p in pairs]), np.stack([p[1:] for p in pairs], axis=1)
        return (values, vectors) if return_eigenvectors else values

    return called_back(run, "eigsh")


def _followed(product: Function, value: Value, vector: Value) -> Value:
    """Return an eigenvalue and its eigenvector, joined to one vector, as a root of their equations."""

    def residual(z: Value) -> Value:
        return np.concatenate([np.reshape((np.sum(z[1:] ** 2) - 1) / 2, (1,)), product(z[1:]) - z[0] * z[1:]])

    return follow(residual, np.concatenate([[value], vector]), frozen(residual), "scipy.sparse.linalg.eigsh")


def _linear_operator(shape: Value, matvec: Function, *args: Value, dtype: Value = None, **options: Value) -> Value:
    """Return a `LinearOperator`, whose dtype is found by a product without traced values."""
    if dtype is None and len(args) < 3:
        dtype = np.result_type(plain_tree(as_number_or_array(matvec(np.zeros(shape[1])))))
    return LinearOperator(shape, matvec, *args, **({} if dtype is None else {"dtype": dtype}), **options)


OF_MATRICES = sparse_linalg.RULES + sparse_eigen.RULES
SPARSE: dict[str, Any] = {name: rule for _, name, rule in OF_MATRICES}
RULES: list[tuple[Value, str, Value]] = [
    *OF_MATRICES,
    *((scipy.sparse.linalg, name, _iterative(name)) for name in sparse_linalg.ITERATIVE),
    (scipy.sparse.linalg, "eigsh", Calling(_eigsh)),
    (scipy.sparse.linalg, "LinearOperator", Calling(_linear_operator)),
]
