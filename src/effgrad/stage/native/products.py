"""Matrix products as steps of a native program: BLAS, by the pointers that SciPy gives.

The step is one kernel for all products: its arguments say which function, the shapes, the leading dimensions and the
strides of the batch. BLAS counts columns first: the product of two matrices by rows is that of their transposes, in
the other order.
"""

import ctypes
import functools
import math
import struct

import numpy as np
import scipy.linalg.cython_blas

from effgrad.stage.native.scalars import Body

KERNEL = "effgrad_product"
_NAMES = {np.dtype(float): "dgemm", np.dtype(np.float32): "sgemm"}


@functools.cache
def address(dtype: np.dtype) -> int:
    capsule = scipy.linalg.cython_blas.__pyx_capi__[_NAMES[dtype]]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


def numbers(left: np.ndarray, right: np.ndarray, result: np.ndarray) -> list[int] | None:
    """The arguments of the kernel for arrays of these shapes and strides, or None where BLAS has no form for them."""
    if result.dtype not in _NAMES or left.dtype != result.dtype or right.dtype != result.dtype or not left.size:
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
    (flag_a, lead_a), (flag_b, lead_b), (flag_c, lead_c) = [f for f in forms if f]
    if flag_c != "N":
        return None
    rows, count = c.shape[-2], math.prod(batch)
    step_a, step_b, step_c = moves = [s for s in steps if s is not None]
    if (flag_a, step_b) == ("N", 0):
        rows, count, lead_a, lead_c = _as_one(rows, count, lead_a, lead_c, step_a // c.itemsize, step_c // c.itemsize)
    return [
        address(c.dtype), ord(flag_b), ord(flag_a), c.shape[-1], rows, a.shape[-1], _one(c.dtype), lead_b, lead_a, 0,
        lead_c, count, *moves,
    ]  # fmt: skip


def _as_one(rows: int, count: int, lead_a: int, lead_c: int, step_a: int, step_c: int) -> tuple[int, int, int, int]:
    """The rows of a batch times one matrix as those of a single one, if they lie so: rows, matrices, dimensions."""
    if count > 1 and rows == 1 and step_a >= lead_a and step_c >= lead_c:
        return count, 1, step_a, step_c
    if step_a == rows * lead_a and step_c == rows * lead_c:
        return rows * count, 1, lead_a, lead_c
    return rows, count, lead_a, lead_c


def _one(dtype: np.dtype) -> int:
    """The bits of the number one."""
    bits: int = struct.unpack("<q", struct.pack("<d", 1.0) if dtype.itemsize == 8 else struct.pack("<fi", 1.0, 0))[0]
    return bits


def _form(x: np.ndarray) -> tuple[str, int] | None:
    """How BLAS sees a matrix: as it is or transposed, and its leading dimension."""
    (rows, columns), (down, along) = x.shape[-2:], (s // x.itemsize for s in x.strides[-2:])
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return "N", max(down if rows > 1 else columns, columns, 1)
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return "T", max(along if columns > 1 else rows, rows, 1)
    return None


def _batch_step(x: np.ndarray, count: int) -> int | None:
    """The step in bytes from one matrix of a batch to the next, if there is one for all axes."""
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


def kernel() -> Body:
    """The kernel: three operands, then the numbers."""
    body = Body()
    body.lines += ["define i32 @KERNEL(ptr %arguments) {", "entry:"]
    places = [body.do(f"getelementptr i64, ptr %arguments, i64 {i}") for i in range(18)]
    starts = [body.do(f"load ptr, ptr {place}") for place in places[:3]]
    function, right, left, n, m, k, one, lead_b, lead_a, zero, lead_c, batch, *steps = places[3:]
    called = body.do(f"load ptr, ptr {function}")
    count = body.do(f"load i64, ptr {batch}")
    moves = [body.do(f"load i64, ptr {step}") for step in steps]
    body.lines += ["  br label %head", "head:", "  %i = phi i64 [ 0, %entry ], [ %next, %head ]"]
    a, b, c = (
        body.do(f"getelementptr i8, ptr {start}, i64 {body.do(f'mul i64 %i, {move}')}")
        for start, move in zip(starts, moves, strict=True)
    )
    arguments = ", ".join(f"ptr {x}" for x in (right, left, n, m, k, one, b, lead_b, a, lead_a, zero, c, lead_c))
    body.lines += [
        f"  call void {called}({arguments})", "  %next = add i64 %i, 1", f"  %more = icmp slt i64 %next, {count}",
        "  br i1 %more, label %head, label %done", "done:", "  ret i32 0", "}",
    ]  # fmt: skip
    return body
