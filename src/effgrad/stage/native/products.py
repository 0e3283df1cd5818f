"""Matrix products as steps of a native program, computed by BLAS through the pointers that SciPy exports.

One kernel serves all products of two matrices, and another all products of a matrix and a vector. The arguments are the
function of BLAS, the shapes, the leading dimensions and the strides of the batch. BLAS stores matrices by columns. So
the product of two matrices stored by rows is computed as that of their transposes, in the other order.
"""

import ctypes
import functools
import math
import struct
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.linalg.cython_blas

from effgrad.stage.native.flow import Flow
from effgrad.stage.native.scalars import Body

T = TypeVar("T")
KERNEL, VECTOR_KERNEL = "effgrad_product", "effgrad_product_with_vector"
_LETTERS = {np.dtype(float): "d", np.dtype(np.float32): "s"}


class Arguments(NamedTuple):
    """The kernel of a product, its numbers, and whether its operands are `swapped`, the matrix before the vector."""

    kernel: str
    numbers: list[int]
    swapped: bool = False


@functools.cache
def address(dtype: np.dtype, name: str = "gemm") -> int:
    """The address of a function of BLAS."""
    capsule = scipy.linalg.cython_blas.__pyx_capi__[_LETTERS[dtype] + name]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name_of(capsule)))


def arguments(left: np.ndarray, right: np.ndarray, result: np.ndarray) -> Arguments | None:
    """Return the kernel for arrays of these shapes and strides, or None if BLAS has no form for them."""
    if result.dtype not in _LETTERS or left.dtype != result.dtype or right.dtype != result.dtype or not left.size:
        return None
    a = left[None] if left.ndim == 1 else left
    b = right[:, None] if right.ndim == 1 else right
    c = result[..., None] if right.ndim == 1 else result
    c = c[..., None, :] if left.ndim == 1 else c
    batch = c.shape[:-2]
    steps = [_batch_step(np.broadcast_to(x, batch + x.shape[-2:]), len(batch)) for x in (a, b, c)]
    forms = [_form(x) for x in (a, b, c)]
    if None in steps or None in forms or not c.size:
        return None
    known = [f for f in forms if f]
    return _of_forms(a, c, known, [s for s in steps if s is not None]) if known[2][0] == "N" else None


def _of_forms(a: np.ndarray, c: np.ndarray, forms: list[tuple[str, int]], moves: list[int]) -> Arguments:
    """Return the kernel for matrices in these forms; `moves` are the steps from one matrix of a batch to the next."""
    (flag_a, lead_a), (flag_b, lead_b), (_, lead_c) = forms
    rows, count = c.shape[-2], math.prod(c.shape[:-2])
    step_a, step_b, step_c = moves
    if (flag_a, step_b) == ("N", 0):
        rows, count, lead_a, lead_c = _as_one(rows, count, lead_a, lead_c, step_a // c.itemsize, step_c // c.itemsize)
    columns, inner, one = c.shape[-1], a.shape[-1], bits(1.0, c.dtype)
    if columns == 1:  # the right operand is a vector; `step` is from one of its elements to the next
        step = lead_b if flag_b == "N" else 1
        return _with_vector(c.dtype, (flag_a, rows, inner, lead_a), step, lead_c, [count, step_a, step_b, step_c])
    if rows == 1:
        step, flag = 1 if flag_a == "N" else lead_a, "T" if flag_b == "N" else "N"
        found = _with_vector(c.dtype, (flag, columns, inner, lead_b), step, 1, [count, step_b, step_a, step_c])
        return found._replace(swapped=True)
    leading = lead_a, lead_b, lead_c
    numbers = product_numbers((flag_a, flag_b), (rows, columns, inner), (one, 0), leading, [count, *moves])
    return Arguments(KERNEL, [address(c.dtype), *numbers])


def product_numbers(
    flags: tuple[str, str], extents: tuple[T, T, T], factors: tuple[int, int], leading: tuple[int, int, int],
    batch: list[int],
) -> list[T | int]:  # fmt: skip
    """Return the numbers that the kernel of `alpha * A @ B + beta * C` takes after the operands and the function.

    These are the forms of A and B; the rows, the columns and the length of the sums; the bits of alpha and beta; the
    leading dimensions; and the number of products, with the steps in bytes from each to the next.
    """
    (rows, columns, inner), (alpha, beta), (lead_a, lead_b, lead_c) = extents, factors, leading
    forms = ord(flags[1]), ord(flags[0])
    return [*forms, columns, rows, inner, alpha, lead_b, lead_a, beta, lead_c, *batch]


def _with_vector(
    dtype: np.dtype, matrix: tuple[str, int, int, int], step: int, step_result: int, batch: list[int]
) -> Arguments:
    """Return the kernel for a matrix, given by its form, rows, columns and leading dimension, and a vector."""
    flag, rows, inner, lead = matrix
    of_matrix = [ord("T"), inner, rows] if flag == "N" else [ord("N"), rows, inner]
    numbers = [address(dtype, "gemv"), *of_matrix, bits(1.0, dtype), lead, step, 0, step_result, *batch]
    return Arguments(VECTOR_KERNEL, numbers)


def _as_one(rows: int, count: int, lead_a: int, lead_c: int, step_a: int, step_c: int) -> tuple[int, int, int, int]:
    """Merge a batch that is multiplied by one matrix into a single matrix, if its rows lie at equal distances.

    Return the number of rows, the number of matrices, and the leading dimensions of the left operand and the result.
    """
    if count > 1 and rows == 1 and step_a >= lead_a and step_c >= lead_c:
        return count, 1, step_a, step_c
    if step_a == rows * lead_a and step_c == rows * lead_c:
        return rows * count, 1, lead_a, lead_c
    return rows, count, lead_a, lead_c


def bits(value: float, dtype: np.dtype) -> int:
    """The bits of a number in a type of BLAS, as an integer."""
    packed = struct.pack("<d", value) if dtype.itemsize == 8 else struct.pack("<fi", value, 0)
    return int(struct.unpack("<q", packed)[0])


def _form(x: np.ndarray) -> tuple[str, int] | None:
    """Return whether a matrix is stored by rows ("N") or transposed ("T"), and its leading dimension; or None."""
    (rows, columns), (down, along) = x.shape[-2:], (s // x.itemsize for s in x.strides[-2:])
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return "N", max(down if rows > 1 else columns, columns, 1)
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return "T", max(along if columns > 1 else rows, rows, 1)
    return None


def _batch_step(x: np.ndarray, count: int) -> int | None:
    """Return the step in bytes from one matrix of a batch to the next, or None if it is not the same for all axes."""
    step = None
    size = 1
    for n, s in zip(reversed(x.shape[:count]), reversed(x.strides[:count]), strict=True):
        if n == 1:
            continue
        if step is None:
            step = s
        elif s != step * size:
            return None
        size *= n
    return step or 0


def kernel(name: str) -> Body:
    """Write the kernel of this name, whose arguments are three operands, then the numbers."""
    body, with_vector = Body(), name == VECTOR_KERNEL
    body.lines += ["define i32 @KERNEL(ptr %arguments) {", "entry:"]
    places = [body.do(f"getelementptr i64, ptr %arguments, i64 {i}") for i in range(16 if with_vector else 18)]
    starts = [body.do(f"load ptr, ptr {place}") for place in places[:3]]
    function, *numbers, batch, move_a, move_b, move_c = places[3:]
    called = body.do(f"load ptr, ptr {function}")
    count = body.do(f"load i64, ptr {batch}")
    moves = [body.do(f"load i64, ptr {step}") for step in (move_a, move_b, move_c)]
    with Flow(body).loop("0", count) as turn:
        a, b, c = (
            body.do(f"getelementptr i8, ptr {start}, i64 {body.do(f'mul i64 {turn.number}, {move}')}")
            for start, move in zip(starts, moves, strict=True)
        )
        if with_vector:
            transposed, m, n, one, lead, step, zero, step_c = numbers
            values = [transposed, m, n, one, a, lead, b, step, zero, c, step_c]
        else:
            right, left, n, m, k, one, lead_b, lead_a, zero, lead_c = numbers
            values = [right, left, n, m, k, one, b, lead_b, a, lead_a, zero, c, lead_c]
        body.lines.append(f"  call void {called}({', '.join(f'ptr {x}' for x in values)})")
    body.lines += ["  ret i32 0", "}"]
    return body
