"""Functions that read elements in the order in which they lie in memory."""

import numpy as np
import pytest

from effgrad import checkpoint, compile, grad, jvp, value_and_grad, vjp, vmap

RNG = np.random.default_rng(5)
BASE = RNG.normal(size=(2, 3, 2))
LAYOUTS = {
    "C": BASE,
    "Fortran": np.asfortranarray(BASE),
    "with gaps": np.repeat(BASE, 2, -1)[..., ::2],
    "gaps between rows": np.repeat(BASE, 2, 0)[::2],
    "backward": BASE[::-1],
    "each row backward": BASE[..., ::-1],
    "Fortran backward": np.asfortranarray(BASE)[::-1],
    "transposed": BASE.transpose(2, 1, 0),
    "permuted": np.moveaxis(BASE, -1, 0),
}
INNER = {
    "itself": lambda z: z,
    "twice": lambda z: 2 * z,
    "transposed": lambda z: z.T,
    "reversed": lambda z: z[::-1],
    "a function, transposed": lambda z: np.sin(z).T,
    "a copy in Fortran order": lambda z: z.copy("F"),
    "cumprod": lambda z: np.cumprod(z, axis=-1),
    "reshaped": lambda z: np.reshape(z, z.shape[::-1], order="A"),
}
READ = {
    "ravel": np.ravel,
    "flatten": lambda z, order: z.flatten(order),
    "reshape": lambda z, order: np.reshape(z, (-1, 2), order="F" if order == "K" else order),
}


def laid_as(x, values):
    """An array with these values, whose strides are those of `x`."""
    low = sum(min(step, 0) * (n - 1) for step, n in zip(x.strides, x.shape, strict=True))
    high = sum(max(step, 0) * (n - 1) for step, n in zip(x.strides, x.shape, strict=True))
    memory = np.empty((high - low) // 8 + 1)
    result = np.lib.stride_tricks.as_strided(memory[-low // 8 :], x.shape, x.strides)
    result[...] = values
    return result


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_are_read_as_numpy_reads_them(layout, order):
    x = LAYOUTS[layout]
    u = RNG.normal(size=x.shape)
    for inner in INNER.values():
        for read in READ.values():

            def f(z, inner=inner, read=read):
                return read(inner(z), order=order)

            value, tangent = jvp(f, (x,), (u,))
            np.testing.assert_array_equal(value, f(x))
            wanted = (f(laid_as(x, x + 1e-6 * u)) - f(laid_as(x, x - 1e-6 * u))) / 2e-6
            np.testing.assert_allclose(tangent, wanted, atol=1e-8)
            weights = RNG.normal(size=np.shape(value))
            pulled = vjp(f, x)[1](weights)[0]
            np.testing.assert_allclose(np.sum(pulled * u), np.sum(weights * wanted), atol=1e-7)


PRODUCTS = {
    "norm": np.linalg.norm, "vector_norm": np.linalg.vector_norm, "norm of rows": lambda z: np.linalg.norm(z, axis=-1),
    "complex norm": lambda z: np.linalg.norm(z + 1j * z[::-1], axis=0), "inner": lambda z: np.inner(z, z),
    "dot": lambda z: np.dot(z, z.T), "dot of many axes": lambda z: np.dot(z[None], z.T[None]), "vdot":
    lambda z: np.vdot(z, z), "cumprod": lambda z: np.cumprod(z * (1 + 1j), axis=0), "prod": lambda z: np.prod(z + 1j),
    "prod of two axes": lambda z: np.prod(z[None] + 1j, axis=(1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_and_products_are_rounded_as_numpys(name):
    f = PRODUCTS[name]
    for shape in ((9, 17), (100, 3)):
        x = RNG.normal(size=shape)
        for laid in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, -1)[..., ::2]):
            u = RNG.normal(size=shape)
            value, tangent = jvp(f, (laid,), (u,))
            np.testing.assert_array_equal(value, f(laid))
            wanted = (f(laid + 1e-7 * u) - f(laid - 1e-7 * u)) / 2e-7
            np.testing.assert_allclose(tangent, wanted, rtol=1e-5, atol=1e-6 * np.max(np.abs(wanted)))
            found = grad(lambda z: np.real(np.sum(f(z))))(laid)
            np.testing.assert_allclose(np.sum(found * u), np.real(np.sum(tangent)), rtol=1e-9)


COPIES = {
    "sort": lambda z: np.sort(z), "sort by name": lambda z: np.sort(a=z, axis=0), "copy": lambda z: np.copy(a=z),
    "partition": lambda z: np.partition(z, 1), "roll": lambda z: np.roll(z, 1, 0), "sine": lambda z: np.sin(z),
    "cumsum by name": lambda z: np.cumsum(a=z, axis=1), "flipped and sorted": lambda z: np.sort(z[::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_in_memory_as_numpys(layout, name):
    """A sort in an order of the axes that is neither C's nor Fortran's, or of an array by name, was in C order."""
    seen = []

    def f(z):
        result = COPIES[name](z)
        seen.append([step for step, n in zip(result.strides, result.shape, strict=True) if n > 1])
        return result

    x = LAYOUTS[layout]
    plain = f(x)
    value, tangent = jvp(f, (x,), (np.cos(x),))
    assert seen[0] == seen[1]
    np.testing.assert_array_equal(value, plain)
    steps = COPIES[name](laid_as(x, x + 1e-7 * np.cos(x))) - COPIES[name](laid_as(x, x - 1e-7 * np.cos(x)))
    np.testing.assert_allclose(tangent, steps / 2e-7, atol=1e-7)


@pytest.mark.parametrize("copied", [np.array, np.copy, np.positive, lambda a: a.astype(float)])
def test_a_copy_of_a_view_that_holds_only_constants_lies_as_numpys(copied):
    """A transposed view that was overwritten as a whole was copied in C order; sums of the copy rounded otherwise."""
    seen = []

    def f(x):
        a = np.swapaxes(x * 1.0, 0, -1)
        a[:] = 0.7
        seen.append(copied(a).strides)
        return np.sum(a) * x[0, 0]

    x = BASE[:, :, 0]
    f(x)
    jvp(f, (x,), (x,))
    assert seen[0] == seen[1]


VIEWS = {
    "broadcast": lambda a: np.broadcast_to(a, (2, 2, 3)),
    "broadcast, transposed": lambda a: np.broadcast_to(a, (2, 2, 3)).T,
    "broadcast, swapped": lambda a: np.broadcast_to(a, (2, 2, 3)).swapaxes(0, 2), "transposed": lambda a: a.T,
    "windows": lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 2)), "backward": lambda a: a[::-1],
}  # fmt: skip
COPIES_OF_VIEWS = [
    lambda b: b.astype(float), np.array, np.copy, np.sin, lambda b: b + 1.0, np.zeros_like,
    lambda b: np.where(b > 0, b, b),
]  # fmt: skip


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("view", VIEWS)
def test_a_copy_of_a_view_of_memory_that_was_written_to_lies_as_numpys(view, traced):
    """Copies of views with a broadcast axis, or that overlap, lay in C order; NumPy puts the smallest step last.

    So `np.ravel` of the copy was a view where NumPy copies, and a write to it changed the copy. A drawn program with a
    checkpoint had the wrong value without a word, since all writes are logged there.
    """
    for copied in COPIES_OF_VIEWS:

        def f(x, copied=copied):
            a = np.zeros((2, 3))
            a[0] = x[0] if traced else 2.0
            copy = copied(VIEWS[view](a))
            flat = np.ravel(copy)
            flat[0] = x[1]
            return np.sum(copy) * 8.0 + np.sum(flat) * 9.0

        x = np.array([-0.5, 0.3])
        for run in (f, lambda x, f=f: checkpoint(f, x)):
            value, slope = value_and_grad(run)(x)
            assert value == f(x)
            np.testing.assert_allclose(slope[1], f(x + [0, 1.0]) - f(x), rtol=1e-12)


def of_a_view(x):
    y = x.view()
    y.shape = (4, 3)
    y[0] = 1.0
    return np.sum(x**2)


def of_another_name(x):
    y = x * 2
    z = y
    y.shape = (2, -1)
    z[1] = 1.0
    return np.sum(y * y)


def of_the_argument(x):
    x.shape = (6, 2)
    x[0] = 0.0
    return np.sum(x * np.arange(2))


@pytest.mark.parametrize("f", [of_a_view, of_another_name, of_the_argument])
@pytest.mark.parametrize("made", [compile, lambda f: lambda x: vmap(f)(x[None])[0]], ids=["compiled", "batched"])
def test_a_shape_is_assigned_in_compiled_programs_and_batches(made, f):
    """There it was an AttributeError: the property had no setter."""
    x = np.linspace(0.2, 1.0, 12).reshape(3, 4)
    assert made(f)(x.copy()) == pytest.approx(f(x.copy()), rel=1e-14)


WIDE = np.repeat(np.repeat(RNG.normal(size=(2, 3, 2)), 5, 1), 5, 2)[:, ::5, ::5]
ORDERED = {
    "ravel": np.ravel, "of a transpose": lambda x, order: np.ravel(x.T, order),
    "of a function": lambda x, order: np.ravel(np.sin(x), order),
    "of a function's transpose": lambda x, order: np.ravel(np.sin(x).T, order),
    "copy": lambda x, order: np.copy(x, order).ravel("K"),
}  # fmt: skip


@pytest.mark.thinned(2)
@pytest.mark.parametrize("order", "AKFC")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", ORDERED)
def test_members_of_a_batch_are_read_in_their_own_order(name, axis, order):
    """Between the members' elements in memory lay those of other members, so that results had another order."""
    for stack in (*LAYOUTS.values(), WIDE):
        members = np.moveaxis(stack, axis, 0)
        wanted = np.stack([ORDERED[name](member, order) for member in members])
        batched = vmap(lambda x: ORDERED[name](x, order), in_axes=axis)
        np.testing.assert_array_equal(batched(stack), wanted)
        np.testing.assert_array_equal(jvp(batched, (stack,), (stack,))[0], wanted)


@pytest.mark.parametrize("order", "AK")
@pytest.mark.parametrize("name", ORDERED)
def test_an_argument_with_wide_gaps_keeps_its_order(name, order):
    """The derivative's copy of the argument was dense."""
    for x in (WIDE, WIDE[0], WIDE.T):
        np.testing.assert_array_equal(jvp(lambda x: ORDERED[name](x, order), (x,), (x,))[0], ORDERED[name](x, order))


@pytest.mark.parametrize("order", "AK")
@pytest.mark.parametrize("name", ["ravel", "of a function"])
def test_an_argument_with_a_broadcast_axis_is_read_in_its_order(name, order):
    for x in (np.broadcast_to(BASE[0, 0], (3, 2)), np.broadcast_to(BASE, (2, *BASE.shape)).transpose(0, 1, 3, 2)):
        np.testing.assert_array_equal(jvp(lambda x: ORDERED[name](x, order), (x,), (x,))[0], ORDERED[name](x, order))


ROWS = np.arange(6).reshape(3, 2) % 3
CHOSEN = {
    "C": ROWS,
    "transposed": ROWS.T,
    "permuted": np.arange(8).reshape(2, 2, 2).transpose(1, 0, 2) % 3,
    "broadcast rows": np.broadcast_to(np.array([0, 2]), (3, 2)),
    "broadcast columns": np.broadcast_to(np.array([[0], [2]]), (2, 3)),
    "backward": ROWS.T[:, ::-1],
}
CHOICES = {
    "rows": lambda v, i: v[i],
    "along a slice": lambda v, i: v[1:, i],
    "with a new axis": lambda v, i: v[None, i],
    "in both axes": lambda v, i: v[i, i],
    "of one row": lambda v, i: v[1, i],
    "taken": lambda v, i: np.take(v, i, -1),
}


# A vector has no second axis.
CHOICE_CASES = [(f, r) for f in CHOICES for r in (1, 2) if r == 2 or f in ("rows", "with a new axis", "taken")]


@pytest.mark.parametrize("index", CHOSEN)
@pytest.mark.parametrize("form, rank", CHOICE_CASES)
def test_a_choice_lies_as_its_index_lies(form, index, rank):
    """Once a batch was laid in C order for a transposed index, and every mode transposed a broadcast one."""
    batch, weights = RNG.normal(size=(2, *(3,) * (rank + 1)))
    found = CHOICES[form]

    def f(v):
        return np.ravel(found(v, CHOSEN[index]), "K")

    wanted = np.array([f(row) for row in batch])
    np.testing.assert_array_equal(vmap(f)(batch), wanted)
    np.testing.assert_array_equal(compile(vmap(f))(batch), wanted)
    np.testing.assert_array_equal(compile(f)(batch[0]), wanted[0])
    value, tangent = jvp(f, (batch[0],), (weights[0],))
    np.testing.assert_array_equal(value, wanted[0])
    np.testing.assert_array_equal(tangent, f(weights[0]))
    cotangents = RNG.normal(size=wanted.shape)
    pulled = vmap(lambda v, c: vjp(f, v)[1](c)[0])(batch, cotangents)
    for row, cotangent, part in zip(weights, cotangents, pulled, strict=True):
        assert np.isclose(np.sum(part * row), f(row) @ cotangent)


CONSTANTS = LAYOUTS | {
    "broadcast": np.broadcast_to(BASE[0], (2, 3, 2)),
    "rows broadcast": np.broadcast_to(BASE[:, :1], (2, 3, 2)),
    "broadcast, transposed": np.broadcast_to(BASE[0].T, (2, 2, 3)).transpose(0, 2, 1),
    "broadcast backward": np.broadcast_to(BASE[0, ::-1], (2, 3, 2))[:, :, ::-1],
}
OPERANDS = {"array": lambda c: c, "row": lambda c: c[0], "column": lambda c: c[:, :, :1], "transposed": lambda c: c.T}
VALUES = {
    "jvp": lambda f, x: jvp(f, (x,), (x,))[0],
    "vjp": lambda f, x: vjp(f, x)[0],
    "second order": lambda f, x: jvp(lambda y: vjp(f, y)[0], (x,), (x,))[0],
    "compiled for NumPy": lambda f, x: compile(f, "numpy")(x),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mode", VALUES)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("layout", CONSTANTS)
def test_results_with_constants_lie_as_numpys(layout, operand, mode):
    constant = CONSTANTS[layout]
    x = laid_as(OPERANDS[operand](constant), 1.5) if operand != "array" else RNG.normal(size=constant.shape[1:])

    def f(x):
        total = constant + x if operand != "transposed" else constant.T + x
        return total, np.sum(np.sin(total)), np.sum(total * constant.T if operand == "transposed" else total * constant)

    for expected, found in zip(f(x), VALUES[mode](f, x), strict=True):
        np.testing.assert_allclose(found, expected, 1e-13 if "compiled" in mode else 0.0)  # which adds in another order
        assert np.shape(found) == np.shape(expected)
        assert np.asarray(found).strides == np.asarray(expected).strides
