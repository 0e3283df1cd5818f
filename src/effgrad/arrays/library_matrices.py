"""Counterparts of products, decompositions and transforms for another library's arrays."""

from typing import Any

from effgrad.arrays.library_array import numpy_dtype
from effgrad.arrays.namespace import Library
from effgrad.vocabulary import Function, Option, Value


def matmul(lib: Library, a: Value, b: Value) -> Value:
    if not (type(a) is type(b) and a.dtype == b.dtype):
        a, b = lib.promoted(a, b)
    return lib.xp.matmul(a, b)


def einsum(lib: Library, *operands: Value, subscripts: str, **by_matrices: bool) -> Value:
    xp, operands = lib.xp, tuple(lib.promoted(*operands))
    if hasattr(xp, "einsum"):
        return xp.einsum(subscripts, *operands)
    inputs, output = subscripts.split("->")
    letters = "".join(dict.fromkeys(inputs.replace(",", "")))
    product: Any = None
    for term, x in zip(inputs.split(","), operands, strict=True):
        for letter in set(term):  # a repeated letter is a diagonal
            while term.count(letter) > 1:
                first, second = term.index(letter), term.rindex(letter)
                x = xp.linalg.diagonal(xp.moveaxis(x, (first, second), (-2, -1)))
                term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
        x = xp.permute_dims(x, tuple(term.index(s) for s in letters if s in term))
        lengths = iter(x.shape)
        x = xp.reshape(x, tuple(next(lengths) if s in term else 1 for s in letters))
        product = x if product is None else product * x
    total = xp.sum(product, axis=tuple(i for i, s in enumerate(letters) if s not in output))
    kept = [s for s in letters if s in output]
    return xp.permute_dims(total, tuple(kept.index(s) for s in output))


def linalg(name: str) -> Function:
    def counterpart(lib: Library, *args: Value, **options: Option) -> Value:
        return getattr(lib.xp.linalg, name)(*lib.promoted(*args, floating=True), **options)

    return counterpart


def hermitian(name: str) -> Function:
    """Return the counterpart of a function of Hermitian matrices.

    The standard lets the function read either triangle, so both are filled from the one that the call selects.
    """

    def counterpart(lib: Library, a: Value, UPLO: str = "L", lower: bool = True, **options: Option) -> Value:
        xp, a = lib.xp, lib.promoted(a, floating=True)[0]
        lower = lower and UPLO == "L" and not options.get("upper")
        half = xp.tril(a, k=-1) if lower else xp.triu(a, k=1)
        other = xp.matrix_transpose(half)
        other = xp.conj(other) if numpy_dtype(a.dtype).kind == "c" else other
        return getattr(xp.linalg, name)(half + other + xp.tril(xp.triu(a)), **options)

    return counterpart


def named(kind: type, counterpart: Value) -> Function:
    """Return a counterpart that gives its several results as a named tuple, as NumPy does."""
    return lambda lib, *args, **options: kind(*counterpart(lib, *args, **options))


def solve(lib: Library, a: Value, b: Value) -> Value:
    a, b = lib.promoted(a, b, floating=True)
    return lib.xp.linalg.solve(a, b[:, None])[..., 0] if b.ndim == 1 else lib.xp.linalg.solve(a, b)


def pinv(lib: Library, a: Value, rcond: Option) -> Value:
    return lib.xp.linalg.pinv(lib.array(a), rtol=rcond)


def qr(lib: Library, a: Value, mode: str = "reduced") -> Value:
    return lib.xp.linalg.qr(lib.array(a), mode=mode)


def eig(lib: Library, a: Value) -> Value:
    return lib.xp.linalg.eig(lib.copied(lib.array(a)))  # PyTorch 2.11 on a GPU overwrites an argument in column order


def fourier(name: str) -> Function:
    def counterpart(lib: Library, x: Value, axis: int, norm: Option) -> Value:
        x = lib.array(x)
        lib.refuse_chunked(x, axis, f"numpy.fft.{name}")
        if numpy_dtype(x.dtype).kind != "c":
            x = lib.promoted(x, 1j)[0]
        return getattr(lib.xp.fft, name)(x, axis=axis, norm=norm or "backward")

    return counterpart
