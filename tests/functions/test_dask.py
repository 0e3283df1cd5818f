"""Programs over arrays of Dask are differentiated as graphs: in their chunks, and nothing is computed on the way.

Under `LAZY` the scheduler raises. The derivatives, computed afterwards, are those of the same program over NumPy's
arrays, and differences where the program is small enough.
"""

import operator
import pathlib

import laws
import numpy as np
import pytest
from differences import directional
from numpy_cases import CASES, X
from processes import within

from effgrad import Detached, NoCounterpart, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from effgrad.fast import REVERSE

da = pytest.importorskip("dask.array", reason="Dask is not installed")
dask = pytest.importorskip("dask")


def computed(*args, **kwargs):
    raise AssertionError("a graph was computed while a program was being differentiated")


@pytest.fixture(autouse=True)
def nothing_is_computed():
    with dask.config.set(scheduler=computed), within(60):
        yield


def compute(*graphs):
    results = dask.compute(*graphs, scheduler="synchronous")
    return results[0] if len(graphs) == 1 else results


def array(values, chunks=(2, 2)):
    return da.from_array(np.array(values), chunks=chunks)


MANY = np.random.default_rng(1).uniform(0.2, 0.8, (6, 4))
DATA = np.random.default_rng(2).normal(size=(6, 4))


# What is refused: results or shapes that depend on elements, and indices of several arrays.
REFUSED = {
    "Polynomial", "advanced index", "cov w", "det", "diag of vector", "diagflat", "eig", "eig complex",
    "eig complex im", "eig complex v", "eig v", "einsum diagonal", "einsum trace", "extract", "fill_diagonal", "frexp",
    "frombuffer",
    "hermite.hermvander", "hfft", "histogram_bin_edges", "interp", "interp period",
    "interp xp", "intersect1d", "irfft", "irfft odd", "irfft2", "irfftn", "legendre.leg2poly", "lstsq", "lstsq 2d",
    "lstsq res", "lstsq under", "mask", "median", "median even", "median keep", "mul reduce", "nanmedian",
    "nanpercentile", "nanprod", "nanquantile", "partition", "percentile", "piecewise", "place", "poly of matrix",
    "poly1d", "polydiv quotient", "polydiv remainder", "polyfit", "polyfit w", "polymul",
    "polynomial.polyfromroots", "polyvander", "prod", "put", "put_along_axis", "putmask", "quantile", "quantile m",
    "quantile q", "real_if_close", "roots", "setdiff1d", "setxor1d", "sort_complex", "take_along_axis", "trim_zeros",
    "trim_zeros of two axes",
    "union1d", "unique", "unique inverse", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unwrap",
    "vectorize",
}  # fmt: skip
# Before NumPy 2.5, their dtype depends on the elements.
UNTIL_2_5 = {"eig v", "eig complex im", "eig complex v"} if np.linalg.eigvals(np.eye(1)).dtype.kind == "c" else set()
# These are refused where a matrix, or an axis that is transformed, lies in several chunks.
REFUSED_IN_CHUNKS = REFUSED | {
    "cholesky", "complex inv", "cond", "cond 1", "cond fro", "eigh", "eigh U", "eigh complex", "eigh complex v",
    "eigh v", "eigvalsh batch", "fft", "fft2", "ifft2", "ifftn", "ihfft", "inv", "matrix_power neg",
    "norm -2", "norm 2", "norm nuc", "pinv", "pinv tall", "qr batch", "qr mode r", "qr q", "qr r", "qr wide q",
    "qr wide r", "rfft", "rfft ortho", "rfft2", "rfftn", "slogdet", "solve", "solve matrix", "svd batch", "svd s",
    "svd u", "svd u tall", "svd v", "svd v tall", "tensorinv", "tensorsolve",
}  # fmt: skip


def rows_of_table():
    for name in CASES:
        for chunks in ((2, 2), (3, 4)):
            often = hash_of(name, chunks) % 12 == 0
            yield pytest.param(name, chunks, marks=() if often else pytest.mark.sweep, id=f"{name}-{chunks[0]}")


def hash_of(name, chunks):
    return sum(map(ord, name)) + chunks[0]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name, chunks", list(rows_of_table()))
@pytest.mark.filterwarnings("ignore:Casting complex values")  # by Dask, of its empty examples
def test_functions_give_what_they_give_over_numpy(name, chunks):
    f, h = CASES[name], laws.scalar(CASES[name])
    x, u = array(X, chunks), array(laws.U, chunks)

    def derivatives(x, u):
        return *jvp(f, (x,), (u,)), grad(h)(x), hvp(h, x, u)

    if name in (REFUSED_IN_CHUNKS if chunks == (2, 2) else REFUSED - UNTIL_2_5):
        with pytest.raises((NoCounterpart, Detached), match=r"\[E(3|10)\]"):
            derivatives(x, u)
        return
    for ours, expected in zip(compute(*derivatives(x, u)), derivatives(X, laws.U), strict=True):
        assert np.shape(ours) == np.shape(expected) and np.result_type(ours) == np.result_type(expected)
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-9)


# Programs that somebody writes for data that does not fit into memory.


def logistic(w, x, y):
    z = x @ w
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.1 * np.sum(w**2)


def standardised(w, x, y):
    z = (x - np.mean(x, axis=0)) / np.std(x, axis=0)
    return np.sum((np.tanh(z @ w) - y) ** 2)


def robust(w, x, y):
    r = x @ w - y
    return np.sum(np.where(np.abs(r) < 0.5, r**2, np.abs(r) - 0.25)) + np.max(np.clip(r, -1.0, 1.0))


def smooth(w, x, y):
    rows = x[1:] - x[:-1]
    return np.sum(rows @ w * np.roll(y, 1)[1:]) + np.sum(np.cumsum(np.einsum("ij,j->i", x, w)) ** 2) + w[0] * x[-1, 0]


def chosen(w, x, y):
    picked = x[np.array([5, 0, 0, 3])] @ w
    x = x * (1.0 + 0.0 * w[0])
    x[1] = np.sin(w)
    x[:, 2:] *= 2.0
    return np.sum(picked * y[[True, False, True, True, False, True]]) + np.linalg.norm(np.concatenate([x @ w, y]))


PROGRAMS = [logistic, standardised, robust, smooth, chosen]
W, Y = np.array([0.3, -0.2, 0.5, 0.1]), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])


@pytest.mark.thinned(4)
@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("chunks", [(2, 2), (4, 4)])
@pytest.mark.parametrize("lazy", ["data", "parameters", "all"])
def test_programs_give_the_derivatives_of_numpy_and_differences(f, chunks, lazy):
    x, y = (array(DATA, chunks), array(Y, chunks[:1])) if lazy != "parameters" else (DATA, Y)
    w, v = (array(W, chunks[1:]), array(np.cos(W), chunks[1:])) if lazy != "data" else (W, np.cos(W))

    def copied(x):
        return x.copy() if isinstance(x, np.ndarray) else x

    value, gradient = value_and_grad(lambda w: f(w, copied(x), y))(w)
    tangent = jvp(lambda w: f(w, copied(x), y), (w,), (v,))[1]
    product = hvp(lambda w: f(w, copied(x), y), w, v)
    assert all(isinstance(part, da.Array) for part in (value, gradient, tangent, product))
    value, gradient, tangent, product = compute(value, gradient, tangent, product)
    np.testing.assert_allclose(value, f(W, DATA.copy(), Y), rtol=1e-13)
    slope, error = directional(lambda w: f(w, DATA.copy(), Y), W, np.cos(W))
    np.testing.assert_allclose([gradient @ np.cos(W), tangent], slope, atol=10 * error + 1e-9)
    bent, error = directional(lambda w: grad(lambda w: f(w, DATA.copy(), Y))(w), W, np.cos(W))
    np.testing.assert_allclose(product, bent, atol=10 * error + 1e-8)


@pytest.mark.parametrize("f", PROGRAMS)
def test_the_gradient_of_the_data_has_their_chunks(f):
    x, y = array(DATA, (4, 3)), array(Y, (4,))
    by_data = grad(f, 1)(W, x, y)
    assert by_data.chunks == x.chunks
    u = np.sin(DATA)
    slope, error = directional(lambda x: f(W, x.copy(), Y), DATA, u)
    np.testing.assert_allclose(np.sum(compute(by_data) * u), slope, atol=10 * error + 1e-9)


@pytest.mark.parametrize("mode", REVERSE)
def test_every_reverse_mode(mode):
    x, y = array(DATA), array(Y, (2,))
    ours = grad(lambda w: logistic(w, x, y), mode=mode)(W)
    np.testing.assert_allclose(compute(ours), grad(lambda w: logistic(w, DATA, Y))(W), rtol=1e-12)


def test_matrices_of_derivatives_are_lazy_too():
    x, y = array(DATA), array(Y, (2,))
    found = hessian(lambda w: logistic(w, x, y))(W), jacobian(lambda w: np.tanh(x @ w))(W)
    second, rows = compute(*found)
    np.testing.assert_allclose(second, hessian(lambda w: logistic(w, DATA, Y))(W), rtol=1e-12)
    np.testing.assert_allclose(rows, jacobian(lambda w: np.tanh(DATA @ w))(W), rtol=1e-12)
    value, pullback = vjp(lambda x: x @ W, x)
    np.testing.assert_allclose(compute(pullback(array(Y, (2,)))[0]), np.outer(Y, W))


def test_trees_numbers_and_auxiliary_outputs():
    x = array(DATA)

    def f(tree):
        return np.sum(x * tree["scale"]) + tree["bias"][0], x.sum(axis=0)

    (value, means), gradient = value_and_grad(f, has_aux=True)({"scale": 2.0, "bias": [0.5]})
    value, means, scale, bias = compute(value, means, gradient["scale"], gradient["bias"][0])
    np.testing.assert_allclose([value, scale], [2 * DATA.sum() + 0.5, DATA.sum()])
    np.testing.assert_allclose(means, DATA.sum(axis=0))
    assert bias == 1.0


def test_single_precision_stays():
    x = array(DATA.astype(np.float32))
    assert grad(lambda x: np.mean(np.sin(2.0 * x) ** 2))(x).dtype == np.float32


def test_a_program_over_a_million_million_numbers_is_differentiated_at_once():
    x = da.ones((10**9, 1000), chunks=(10**6, 1000))
    y = da.zeros(10**9, chunks=10**6)
    for f in (logistic, standardised, robust):
        gradient, by_data = grad(lambda w, x, f=f: f(w, x, y), (0, 1))(np.ones(1000), x)
        assert gradient.shape == (1000,) and by_data.chunks == x.chunks


@pytest.mark.parametrize("f", [logistic, standardised, robust])
def test_no_task_makes_more_than_a_chunk(f):
    made = []

    class Watch(dask.callbacks.Callback):
        def _posttask(self, key, result, dsk, state, worker_id):
            made.extend(np.size(part) for part in (result if isinstance(result, list) else [result]))

    x, y = da.ones((40, 4), chunks=(4, 4)), da.zeros(40, chunks=4)
    with Watch(), dask.config.set({"optimization.fuse.active": False}):
        dask.persist(*grad(lambda w, x: f(w, x, y), (0, 1))(np.ones(4), x), scheduler="synchronous")
    assert made and max(made) <= 16


# What would compute is refused by name.


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x: np.sum(x[x > 0.5]), r"x\[mask\]"),
        (lambda x: np.sum(x[np.nonzero(x)[0]]), "numpy.nonzero"),
        (lambda x: np.sum(np.unique(x)), "numpy.unique"),
        (lambda x: np.sum(x) if x[0, 0] > 0 else 0.0, "an if"),
        (lambda x: np.sum(x) * np.allclose(x, 1.0), "numpy.allclose"),
        (lambda x: np.sum(np.linalg.inv(x[:4])), "numpy.linalg.inv"),
        (lambda x: np.sum(np.fft.fft(x, axis=0).real), "numpy.fft.fft"),
        (lambda x: np.sum(x[[0, 1], [1, 1]]), "one array of one dimension"),
        (lambda x: np.sum(np.sort(x, axis=0)), "itself an array of Dask"),
    ],
)
def test_what_would_compute_is_refused(f, message):
    for derivative in (grad(f), lambda x: jvp(f, (x,), (x,))):
        with pytest.raises(NoCounterpart, match=message):
            derivative(array(MANY))


def test_chunks_of_unknown_lengths_are_refused():
    x = array(MANY)
    with pytest.raises(NoCounterpart, match="compute_chunk_sizes"):
        grad(np.sum)(x[x[:, 0] > 0.5])


@pytest.mark.parametrize(
    "f", [lambda x: da.sum(x), lambda x: da.from_array(x).sum(), lambda x: da.stack([x, x]).sum()]
)
def test_a_traced_value_never_becomes_part_of_a_graph(f):
    """Dask takes what it does not know for a number, and would put it into its graph: the derivative would be 0."""
    with pytest.raises(Detached, match="Dask graph"):
        grad(f)(X)


@pytest.mark.parametrize("operate", [operator.add, operator.sub, operator.mul, operator.truediv, np.multiply])
@pytest.mark.parametrize("w", [1.5, np.array(1.5), W, MANY])
def test_arrays_of_dask_on_the_left(operate, w):
    """Dask's operators come first, and have to leave the operation to the traced value."""
    x = array(MANY)
    gradient = compute(grad(lambda w: np.sum(operate(x, w)))(w))
    np.testing.assert_allclose(gradient, grad(lambda w: np.sum(operate(MANY, w)))(w), rtol=1e-12)
    np.testing.assert_allclose(compute(grad(lambda w: np.sum(x @ w))(W)), MANY.sum(axis=0), rtol=1e-12)


def test_the_users_array_is_not_changed_and_may_change():
    x = array(MANY)

    def f(x):
        x[0] = 0.0
        return np.sum(x**2)

    gradient = grad(f)(x)
    x[1] = 7.0  # another graph in the user's array
    np.testing.assert_allclose(compute(gradient), np.vstack([np.zeros(4), 2 * MANY[1:]]))
    np.testing.assert_allclose(compute(x)[0], MANY[0])


def test_the_page_counts_the_calls_that_are_refused():
    page = " ".join((pathlib.Path(__file__).parents[2] / "docs/arrays.md").read_text().split())
    one, many = (len(CASES) - len(refused & CASES.keys()) for refused in (REFUSED, REFUSED_IN_CHUNKS))
    assert f"Of the {len(CASES)} calls of the table, {one} agree" in page
    assert f"one chunk, and {many} in chunks of two by two" in page
    assert f"is tested with ({len(CASES)} calls:" in page
