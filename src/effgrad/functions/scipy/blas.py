"""Rules for `scipy.linalg.blas`: products of vectors and matrices that programs call by their BLAS names.

Arguments that BLAS may overwrite keep their values, because a program that lets BLAS write to one uses the result.
"""

from collections.abc import Callable

from scipy.linalg import blas

from effgrad.arrays.reach import np
from effgrad.functions.scipy.tables import require
from effgrad.vocabulary import Option, Reached, Value

TURNS: tuple[Callable[[Value], Value], ...] = (lambda a: a, np.transpose, lambda a: np.conj(np.transpose(a)))


def _dot(x: Value, y: Value) -> Value:
    return np.dot(np.asarray(x), np.asarray(y))


def _conjugated_dot(x: Value, y: Value) -> Value:
    return np.vdot(np.asarray(x), np.asarray(y))


def _size(x: Value) -> Value:
    return np.linalg.norm(np.asarray(x))


def _matrix_product(
    alpha: Value, a: Value, b: Value, beta: Value = 0.0, c: Value = None, trans_a: int = 0, trans_b: int = 0,
    overwrite_c: Option = 0,
) -> Value:  # fmt: skip
    product = alpha * np.matmul(TURNS[trans_a](np.asarray(a)), TURNS[trans_b](np.asarray(b)))
    return product if c is None else product + beta * np.asarray(c)


def _vector_product(
    alpha: Value, a: Value, x: Value, beta: Value = 0.0, y: Value = None, offx: int = 0, incx: int = 1, offy: int = 0,
    incy: int = 1, trans: int = 0, overwrite_y: Option = 0,
) -> Value:  # fmt: skip
    require((offx, incx, offy, incy) == (0, 1, 0, 1), "linalg.blas.gemv", "vectors whose elements are all taken")
    product = alpha * np.matmul(TURNS[trans](np.asarray(a)), np.asarray(x))
    return product if y is None else product + beta * np.asarray(y)


DEFINITIONS: dict[str, Value] = {
    **dict.fromkeys(("sdot", "ddot", "cdotu", "zdotu"), _dot), **dict.fromkeys(("cdotc", "zdotc"), _conjugated_dot),
    **dict.fromkeys(("snrm2", "dnrm2", "scnrm2", "dznrm2"), _size),
    **dict.fromkeys(("sgemm", "dgemm", "cgemm", "zgemm"), _matrix_product),
    **dict.fromkeys(("sgemv", "dgemv", "cgemv", "zgemv"), _vector_product),
}  # fmt: skip
RULES: list[Reached] = [(blas, name, definition) for name, definition in DEFINITIONS.items()]
