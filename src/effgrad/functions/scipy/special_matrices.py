"""Rules for `scipy.linalg`: matrices made of vectors or of blocks, and systems of Toeplitz and circulant matrices."""

import functools

import scipy.linalg

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.functions.numpy.signals import companion
from effgrad.functions.scipy.tables import over_batches, require
from effgrad.nested import map_leaves
from effgrad.primitives.complexes import conj
from effgrad.vocabulary import Function, Option, Value


def _of_vectors(name: str, definition: Function) -> Function:
    """Extend a function of vectors to batches of them, where SciPy's takes batches; older versions ravel arrays."""
    batched = over_batches(definition, 1, 1)

    def rule(*args: Value, **named: Option) -> Value:
        result = batched(*args, **named)
        if ndim_of(result) > 2:
            sizes = [map_leaves(lambda x: np.ones(shape_of(x)) if shape_of(x) else x, tree) for tree in (args, named)]
            known = np.ndim(getattr(scipy.linalg, name)(*sizes[0], **sizes[1])) == ndim_of(result)
            require(known, f"linalg.{name}", "vectors, one at a time")
        return result

    return functools.update_wrapper(rule, definition)


def _toeplitz(c: Value, r: Value = None) -> Value:
    c = np.ravel(c)
    r = conj(c) if r is None else np.ravel(r)
    m, n = c.size, r.size
    return np.concatenate([c[::-1], r[1:]])[m - 1 + np.arange(n) - np.arange(m)[:, None]]


def _hankel(c: Value, r: Value = None) -> Value:
    c = np.ravel(c)
    r = np.zeros(c.size) if r is None else np.ravel(r)
    return np.concatenate([c, r[1:]])[np.arange(c.size)[:, None] + np.arange(r.size)]


def _circulant(c: Value) -> Value:
    c = np.ravel(c)
    return c[(np.arange(c.size)[:, None] - np.arange(c.size)) % c.size]


def _leslie(f: Value, s: Value) -> Value:
    f, s = np.ravel(f), np.ravel(s)
    return np.concatenate([np.reshape(f, (1, -1)), np.concatenate([np.diag(s), np.zeros((s.size, 1))], axis=1)])


def _toeplitz_of(c_or_cr: object) -> Value:
    return _BATCHED["toeplitz"](*c_or_cr) if isinstance(c_or_cr, tuple) else _BATCHED["toeplitz"](c_or_cr)


def _block_diag(*arrays: Value) -> Value:
    blocks = [np.atleast_2d(a) for a in arrays]
    widths, batch = [shape_of(b)[-1] for b in blocks], np.broadcast_shapes(*(shape_of(b)[:-2] for b in blocks))
    rows, before = [], 0
    for block, width in zip(blocks, widths, strict=True):
        height = shape_of(block)[-2]
        sides = [np.zeros((*batch, height, size)) for size in (before, sum(widths) - before - width)]
        rows.append(np.concatenate([sides[0], np.broadcast_to(block, (*batch, height, width)), sides[1]], axis=-1))
        before += width
    return np.concatenate(rows, axis=-2)


_OF_VECTORS: dict[str, Function] = {
    "toeplitz": _toeplitz, "hankel": _hankel, "circulant": _circulant, "leslie": _leslie,
    "companion": lambda a: companion(np.ravel(a)),
}  # fmt: skip
_BATCHED = {name: _of_vectors(name, definition) for name, definition in _OF_VECTORS.items()}
RULES = {
    **_BATCHED, "block_diag": _block_diag,
    "solve_toeplitz": lambda c_or_cr, b: np.linalg.solve(_toeplitz_of(c_or_cr), b),
    "matmul_toeplitz": lambda c_or_cr, x: np.matmul(_toeplitz_of(c_or_cr), x),
    "solve_circulant": lambda c, b: np.linalg.solve(_BATCHED["circulant"](c), b),
}  # fmt: skip
