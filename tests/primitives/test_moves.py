"""Every move does to values, tangents, cotangents and members what NumPy itself does to the numbers of the elements.

The oracle is a table of places: NumPy applies a function to the numbers 1, 2, ... of an array's elements, so each
element of the result names the element that it is, or 0 for a zero. All derivatives of a move follow from that table.
"""

import numpy as np
import pytest

import effgrad
from effgrad import compile, grad, hvp, jacobian, jvp, vjp, vmap
from effgrad.primitives.indices import distinct

SHAPE, LONG = (4, 3), (300, 3)


def written(x, index, value=0):
    y = x.copy()
    y[index] = value
    return y


# Functions of a matrix of three columns and at least four rows.
MOVES = {
    "an element": lambda x: x[1, 2],
    "a row": lambda x: x[1],
    "a column from behind": lambda x: x[..., -1],
    "rows": lambda x: x[1:-1],
    "every other row backwards": lambda x: x[::-2],
    "a column of one": lambda x: x[:, 1:2],
    "a new axis": lambda x: x[:, None, ::2],
    "no rows": lambda x: x[2:2],
    "gathered rows": lambda x: x[[2, 0, 2]],
    "gathered columns": lambda x: x[:, [2, 1]],
    "gathered elements": lambda x: x[[0, 1, 0], [2, 1, 2]],
    "a gather around an axis": lambda x: x[None, [0, 1]][:, 1, ..., [0, 2]],
    "a mask": lambda x: x[np.arange(len(x)) % 2 == 0],
    "a written row": lambda x: written(x, 1, x[0]),
    "a written gather, twice at one place": lambda x: written(x, (slice(None), [0, 0]), x[:, 1:]),
    "a written mask": lambda x: written(x, np.arange(len(x)) % 2 == 0),
    "a reshape": lambda x: x.reshape(-1, 2),
    "a reshape in another order": lambda x: x.reshape((2, -1), order="F"),
    "a reshape of a transpose": lambda x: x.T.reshape(-1, 2),
    "raveled": np.ravel,
    "raveled in another order": lambda x: np.ravel(x, order="F"),
    "transposed": np.transpose,
    "axes": lambda x: np.transpose(x[None], (2, 0, 1)),
    "moveaxis": lambda x: np.moveaxis(x[None], 0, -1),
    "swapaxes": lambda x: np.swapaxes(x[:, None], 0, 2),
    "rollaxis": lambda x: np.rollaxis(x[None], 2),
    "matrix_transpose": np.matrix_transpose,
    "squeeze": lambda x: np.squeeze(x[:, None, :1]),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "atleast_3d": np.atleast_3d,
    "broadcast_to": lambda x: np.broadcast_to(x[:, None], (2, len(x), 2, 3)),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[0])[1],
    "flip": np.flip,
    "flip an axis": lambda x: np.flip(x, 1),
    "fliplr": np.fliplr,
    "rot90": np.rot90,
    "rot90 twice": lambda x: np.rot90(x, 2),
    "rot90 back": lambda x: np.rot90(x[None], -1, (2, 1)),
    "roll": lambda x: np.roll(x, 4),
    "roll axes": lambda x: np.roll(x, (1, -1), (0, 1)),
    "stack": lambda x: np.stack([x, x[::-1]]),
    "stack columns": lambda x: np.stack([x[:, 2], x[:, 0]], axis=-1),
    "concatenate": lambda x: np.concatenate([x[1:], x[:1], x[:1]]),
    "concatenate columns": lambda x: np.concatenate([x[:, 1:], x[:, :1]], axis=1),
    "concatenate flat": lambda x: np.concatenate([x, x[0]], axis=None),
    "hstack": lambda x: np.hstack([x, x[:, :1]]),
    "vstack": lambda x: np.vstack([x[0], x]),
    "dstack": lambda x: np.dstack([x, x]),
    "column_stack": lambda x: np.column_stack([x[:, 0], x]),
    "block": lambda x: np.block([[x, x[:, :1]], [x[:1], np.zeros((1, 1), x.dtype)]]),
    "append": lambda x: np.append(x, x[:1], axis=0),
    "insert": lambda x: np.insert(x, 1, x[0], axis=0),
    "delete": lambda x: np.delete(x, [0, 2], axis=1),
    "repeat": lambda x: np.repeat(x, [2, 0, 1], axis=1),
    "tile": lambda x: np.tile(x, (1, 2)),
    "resize": lambda x: np.resize(x, (2, 9)),
    "take": lambda x: np.take(x, [[2, 0]], axis=1),
    "take flat, wrapped": lambda x: np.take(x, [5, -2, 40], mode="wrap"),
    "take_along_axis": lambda x: np.take_along_axis(x, np.arange(len(x))[:, None] % 3, axis=1),
    "compress": lambda x: np.compress([True, False, True], x, axis=1),
    "split": lambda x: np.split(x, 2)[1],
    "array_split": lambda x: np.array_split(x, 2, axis=1)[0],
    "hsplit": lambda x: np.hsplit(x, [1])[1],
    "unstack": lambda x: np.unstack(x, axis=1)[2],
    "diagonal": lambda x: np.diagonal(x, 1),
    "diagonals of a stack": lambda x: np.diagonal(np.stack([x, x[::-1]]), axis1=2, axis2=1),
    "diag": lambda x: np.diag(x[0], -1),
    "diagflat": lambda x: np.diagflat(x[:2], 1),
    "tril": np.tril,
    "triu": lambda x: np.triu(x, 1),
    "tril of a vector": lambda x: np.tril(x[0]),
    "pad": lambda x: np.pad(x, ((1, 0), (0, 2))),
    "pad, edge": lambda x: np.pad(x, 1, mode="edge"),
    "pad, reflect": lambda x: np.pad(x, ((0, 0), (2, 1)), mode="reflect"),
    "pad, wrap": lambda x: np.pad(x, 2, mode="wrap"),
    "sliding windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
    "a copy in another order": lambda x: x.copy(order="F"),
    "views of views": lambda x: x.T[::-1][..., None].reshape(3, -1)[1:].T,
    "joins of joins": lambda x: np.concatenate([np.stack([x, x]), np.roll(x, 1, axis=0)[None]])[1:, ::2],
}  # fmt: skip


class Table:
    """The places of a move for an array of a shape, and what follows from them."""

    def __init__(self, f, shape):
        self.places = f(np.arange(1, np.prod(shape) + 1).reshape(shape))
        self.given, self.shape = shape, np.shape(self.places)

    def moved(self, x):
        return np.append(0.0, x)[self.places]

    def pulled(self, g):
        return np.bincount(np.ravel(self.places), np.ravel(g), np.prod(self.given) + 1)[1:].reshape(self.given)


def numbers(shape, phase):
    return np.sin(np.arange(1.0, np.prod(shape) + 1) + phase).reshape(shape)


@pytest.mark.parametrize("name", MOVES)
def test_values_tangents_and_cotangents_go_where_numpy_puts_the_numbers(name):
    f, table = MOVES[name], Table(MOVES[name], SHAPE)
    x, u, g = numbers(SHAPE, 0.1), numbers(SHAPE, 0.2), numbers(table.shape, 0.3)
    value, tangent = jvp(f, (x,), (u,))
    np.testing.assert_array_equal(value, table.moved(x))
    np.testing.assert_array_equal(tangent, table.moved(u))
    np.testing.assert_allclose(vjp(f, x)[1](g)[0], table.pulled(g), rtol=1e-14, atol=1e-15)
    matrix = np.stack([table.moved(row.reshape(SHAPE)) for row in np.eye(x.size)], -1).reshape(*table.shape, *SHAPE)
    for mode in ("forward", "reverse"):
        np.testing.assert_array_equal(jacobian(f, mode=mode)(x), matrix)


@pytest.mark.parametrize("name", MOVES)
def test_members_of_a_batch_and_their_tangents(name):
    f, table = MOVES[name], Table(MOVES[name], SHAPE)
    x, u = numbers((2, *SHAPE), 0.1), numbers((2, *SHAPE), 0.2)
    expected = np.stack([table.moved(member) for member in x])
    np.testing.assert_array_equal(vmap(f)(x), expected)
    tangents = jvp(vmap(f), (x,), (u,))[1]
    np.testing.assert_array_equal(tangents, np.stack([table.moved(member) for member in u]))
    each = vmap(grad(lambda x: np.sum(f(x) ** 2)))(x)
    np.testing.assert_allclose(each, [2 * table.pulled(table.moved(m)) for m in x], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", MOVES)
def test_second_derivatives_of_a_square(name):
    f, table = MOVES[name], Table(MOVES[name], SHAPE)
    x, u, w = numbers(SHAPE, 0.1), numbers(SHAPE, 0.2), numbers(table.shape, 0.3)

    def square(x):
        return np.sum(w * f(x) ** 3)

    expected = table.pulled(6 * w * table.moved(x) * table.moved(u))
    np.testing.assert_allclose(hvp(square, x, u), expected, rtol=1e-13, atol=1e-14)
    product = np.sum(effgrad.hessian(square)(x) * u, axis=(-1, -2))
    np.testing.assert_allclose(product, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("shape", [SHAPE, LONG], ids=["small", "long"])
@pytest.mark.parametrize("name", MOVES)
def test_compiled(name, shape):
    f, table = MOVES[name], Table(MOVES[name], shape)
    x, w = numbers(shape, 0.1), numbers(table.shape, 0.3)

    def both(x):
        y = np.sin(x)
        return f(y), grad(lambda x: np.sum(w * f(np.sin(x)) ** 2))(x)

    program = compile(both)
    for point in (x, x + 0.5):  # the program is recorded at the first, and answers for the second
        value, gradient = program(point)
        moved = table.moved(np.sin(point))
        np.testing.assert_allclose(value, moved, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(gradient, table.pulled(2 * w * moved) * np.cos(point), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", MOVES)
def test_the_pattern_of_a_sparse_jacobian(name):
    f, table = MOVES[name], Table(MOVES[name], SHAPE)
    x = numbers(SHAPE, 0.1)
    sparse = jacobian(lambda v: np.ravel(f(v.reshape(SHAPE))), sparse=True)(x.ravel())
    dense = np.stack([np.ravel(table.moved(row.reshape(SHAPE))) for row in np.eye(x.size)], axis=-1)
    np.testing.assert_array_equal(sparse.toarray(), dense)
    assert sparse.nnz == np.count_nonzero(dense)


INDICES = [
    1, slice(None, None, -1), (0, None), [0, 2, 1], [0, 2, 0], [0, -1], (slice(None), [1, 0]), ([0, 1], [1, 1]),
    np.array([True, False, True, True]), np.zeros((0,), int),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_an_index_said_to_be_distinct_names_no_place_twice(index):
    index = tuple(np.asarray(i) if type(i) is list else i for i in (index if type(index) is tuple else (index,)))
    places = np.ravel(np.arange(12).reshape(4, 3)[index])
    assert not distinct(index) or len(set(places.tolist())) == len(places)
