"""`vmap` gives what a plain loop over the members gives, in every mode and order, and says what no batch can do."""

import array
import ctypes
import dataclasses
import struct
import warnings

import numpy as np
import numpy_cases
import pytest
import scipy.interpolate as si
import scipy.linalg
import scipy.ndimage
import scipy.spatial
import scipy_cases

import effgrad
from effgrad import (
    Detached,
    NoRule,
    NotBatched,
    compile,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    taylor,
    vjp,
    vmap,
)
from effgrad.fast import REVERSE

MEMBERS = np.random.default_rng(3).uniform(0.2, 0.8, (3, 3, 4))
CASES = {**{f"numpy {k}": f for k, f in numpy_cases.CASES.items()}, **scipy_cases.CASES}
# What depends on the batch in a way that only Python can follow, which is said; and two where SciPy's own choice among
# equally good answers (a sign, an empty residual) differs from that of its rule.
REFUSED = {
    "numpy nanmedian", "numpy nanquantile", "numpy nanpercentile", "numpy piecewise", "numpy vectorize",
    "numpy put_along_axis", "numpy setxor1d", "linalg.bandwidth", "ndimage.gaussian_filter sigma",
    "stats.nbinom logcdf", "integrate.qmc_quad", "ndimage.extrema", "ndimage.median", "signal.sawtooth",
    "signal.ss2zpk", "signal.tf2sos", "signal.zpk2sos",
    *(name for name in CASES if name.startswith("integrate.quad_vec")),
}  # fmt: skip
CHOSEN_DIFFERENTLY = {"linalg.eigh subset", "linalg.lstsq residual"}


def loop(f, *batches):
    """The oracle: the members, one after another, in plain NumPy."""
    return np.stack([f(*members) for members in zip(*batches, strict=True)])


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", sorted(CASES.keys() - CHOSEN_DIFFERENTLY))
def test_every_function_of_a_batch_is_that_of_its_members(name):
    f = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = [np.asarray(f(x)) for x in MEMBERS]
        if name in REFUSED or len({np.shape(m) for m in members}) > 1:
            with pytest.raises(NotBatched, match=r"\[E11\]"):
                vmap(f)(MEMBERS)
            return
        np.testing.assert_allclose(vmap(f)(MEMBERS), np.stack(members), rtol=1e-9, atol=1e-12)


KNOTS = np.arange(6.0)
LEVELS = np.random.default_rng(5).normal(size=(3, 6))
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.1]])
SPLINES = {
    "values": lambda y: si.CubicSpline(KNOTS, y)(2.3),
    "points": lambda y: si.PchipInterpolator(KNOTS * (1.0 + 0.1 * np.tanh(y[0])), y)(2.3),
    "integral": lambda y: si.Akima1DInterpolator(KNOTS, y).antiderivative()(2.3),
    "derivative": lambda y: si.CubicSpline(KNOTS, y, bc_type="natural").derivative()(y[0]),
    "gradient": lambda y: grad(lambda y: si.CubicSpline(KNOTS, y)(2.3) ** 2)(y)[1],
    "line": lambda y: si.interp1d(KNOTS, y)(2.3),
    "line at a value": lambda y: si.interp1d(KNOTS, y)(1.0 + np.tanh(y[0])),
    "step": lambda y: si.interp1d(KNOTS, y, kind="nearest")(2.0 + np.tanh(y[0])),
    "grid": lambda y: si.interpn((KNOTS[:2], KNOTS[:3]), y.reshape(2, 3), [0.3, 1.2 + np.tanh(y[0])])[0],
    "descending grid": lambda y: si.interpn((-KNOTS * (1.5 + np.tanh(y[0])),), y, [[-0.3]])[0],
    "triangles": lambda y: si.griddata(CORNERS, y[:4], [[0.3, 0.4 + 0.1 * np.tanh(y[4])]])[0],
    "gradient of a line": lambda y: grad(lambda y: si.interp1d(KNOTS, y)(2.3) ** 2)(y)[2],
    "second": lambda y: hvp(lambda y: si.make_interp_spline(KNOTS, y)(y[0] + 2.3) ** 2, y, np.ones(6))[2],
}


@pytest.mark.parametrize("name", SPLINES)
def test_splines_through_the_values_of_members(name):
    f = SPLINES[name]
    np.testing.assert_allclose(vmap(f)(LEVELS), loop(f, LEVELS), rtol=1e-9, atol=1e-12)
    slopes = jacobian(lambda y: vmap(f)(y))(LEVELS)
    expected = [jacobian(f)(y) for y in LEVELS]
    np.testing.assert_allclose([slopes[i, i] for i in range(3)], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("bad, message", [(-KNOTS, "increasing"), (KNOTS + np.nan, "finite|increasing")])
def test_points_of_one_member_that_no_spline_goes_through_are_refused(bad, message):
    points = np.stack([KNOTS, KNOTS, bad])
    with pytest.raises((ValueError, NotBatched), match=f"{message}|a branch"):
        vmap(lambda x: si.CubicSpline(x, LEVELS[0])(2.3))(points)
    with pytest.raises((ValueError, NotBatched), match=f"{message}|a branch"):
        vmap(lambda x: si.RegularGridInterpolator((x,), LEVELS[0])([2.3]))(points)


def test_a_table_says_which_points_it_does_not_reach_in_each_member_and_each_call():
    def at(x, **options):
        return si.RegularGridInterpolator((KNOTS,), KNOTS**2, **options)(x)[0]

    inside, beyond = np.array([[1.5], [4.5]]), np.array([[1.5], [7.5]])
    compiled = compile(jacobian(at))
    for run in (lambda x: vmap(at)(x), lambda x: vmap(jacobian(at))(x), lambda x: [compiled(row) for row in x]):
        assert np.isfinite(run(inside)).all()
        with pytest.raises(ValueError, match="out of bounds"):
            run(beyond)
    np.testing.assert_allclose(vmap(lambda x: at(x, bounds_error=False, fill_value=2.0))(beyond), [2.5, 2.0])


def test_points_that_choose_triangles_are_those_of_all_members():
    def at(points):
        return np.sum(si.griddata(points, LEVELS[0, :4], [[0.3, 0.4]]))

    np.testing.assert_allclose(vmap(at)(np.stack([CORNERS, CORNERS])), [at(CORNERS)] * 2)
    with pytest.raises(NotBatched, match="members 0 and 1 differ"):
        vmap(at)(np.stack([CORNERS, 2 * CORNERS]))


def test_a_plain_table_is_read_at_the_places_of_each_member():
    table = np.arange(20.0).reshape(5, 4) ** 2

    def read(x):
        places = np.argsort(x)[:2]
        return table[places] * x, table[places[0], places[1]] * x, KNOTS[places] @ x[:2]

    expected = [np.stack(parts) for parts in zip(*map(read, LEVELS[:, :4]), strict=True)]
    for part, other in zip(vmap(read)(LEVELS[:, :4]), expected, strict=True):
        np.testing.assert_array_equal(part, other)


@pytest.mark.parametrize("write", ["row", "array"])
@pytest.mark.parametrize("mode", [lambda f: f, grad])
def test_a_row_that_each_member_chooses_is_no_copy(write, mode):
    """A row `a[i]` shares the memory of the array, and in a batch a write to one was not seen by the other."""

    def f(x):
        array = x * x
        row = array[np.argmin(x[:, 0])]
        (row if write == "row" else array)[0] = 5.0
        return np.sum(array) + 2 * np.sum(row)

    members = MEMBERS.copy()
    members[1, 0, 0] = 0.0
    with pytest.raises(NotBatched, match="a row a.i., where it or the array is written to"):
        vmap(mode(f))(members)
    members[:, 2, 0] = -1.0
    np.testing.assert_allclose(vmap(mode(f))(members), np.stack([mode(f)(member) for member in members]))


def test_what_is_no_array_is_shared():
    """An integer or a text among the arguments broke off with an error of zip."""
    x = LEVELS[:, :2]
    np.testing.assert_array_equal(vmap(lambda x, n, kind: x**n, in_axes=(0, None, None))(x, 2, "power"), x**2)
    tree = {"x": x, "n": 3}
    np.testing.assert_array_equal(vmap(lambda p: p["x"] * p["n"], in_axes=({"x": 1, "n": None},))(tree), 3 * x.T)
    with pytest.raises(NotBatched, match="an argument is 2, which has no axis 0; give None"):
        vmap(lambda x, n: x**n)(x, 2)
    for bad in (x.view(np.matrix), np.ma.masked_array(x, x > 0)):
        with pytest.raises(effgrad.NotDifferentiable, match="has other operations than arrays"):
            vmap(np.sum)(bad)


def loss(w, x, y):
    return np.sum((np.tanh(x @ w) - y) ** 2) + np.max(w) * np.prod(x[:2])


W, XS, YS = np.linspace(0.1, 1.0, 4), MEMBERS[:, 0], np.array([0.3, -0.2, 0.9])


@pytest.mark.parametrize("mode", REVERSE)
def test_gradients_of_each_sample(mode):
    per_sample = vmap(grad(loss, mode=mode), in_axes=(None, 0, 0))(W, XS, YS)
    step = 1e-6
    for gradient, x, y in zip(per_sample, XS, YS, strict=True):
        differences = [(loss(W + step * e, x, y) - loss(W - step * e, x, y)) / (2 * step) for e in np.eye(4)]
        np.testing.assert_allclose(gradient, differences, rtol=1e-6)


def total(w):
    return np.sum(vmap(loss, in_axes=(None, 0, 0))(w, XS, YS) * np.array([1.0, -2.0, 0.5]))


def plain_total(w):
    return sum(c * loss(w, x, y) for c, x, y in zip([1.0, -2.0, 0.5], XS, YS, strict=True))


@pytest.mark.parametrize("mode", REVERSE)
def test_a_batch_under_a_derivative(mode):
    step = 1e-6
    differences = [(plain_total(W + step * e) - plain_total(W - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(grad(total, mode=mode)(W), differences, rtol=1e-6)


def test_batches_in_and_under_derivatives_of_higher_order():
    v = np.array([1.0, 0.0, -1.0, 2.0])
    np.testing.assert_allclose(hessian(total)(W), hessian(plain_total)(W), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(hessian(total, mode="hessian")(W), hessian(plain_total)(W), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(hvp(total, W, v), hessian(plain_total)(W) @ v, rtol=1e-10)
    np.testing.assert_allclose(jvp(total, (W,), (v,))[1], grad(plain_total)(W) @ v, rtol=1e-12)
    np.testing.assert_allclose(taylor(total, [W, v], order=3), taylor(plain_total, [W, v], order=3), rtol=1e-9)
    each = vmap(hessian(loss), in_axes=(None, 0, 0))(W, XS, YS)
    expected = np.stack([hessian(loss)(W, x, y) for x, y in zip(XS, YS, strict=True)])
    np.testing.assert_allclose(each, expected, atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_compiled_batches_and_batches_of_compiled_programs(backend):
    expected = np.stack([grad(loss)(W, x, y) for x, y in zip(XS, YS, strict=True)])
    outside = compile(vmap(grad(loss), in_axes=(None, 0, 0)), backend)
    np.testing.assert_allclose(outside(W, XS, YS), expected, rtol=1e-12)
    np.testing.assert_allclose(outside(W, XS[::-1], YS[::-1]), expected[::-1], rtol=1e-12)
    inside = vmap(compile(grad(loss), backend), in_axes=(None, 0, 0))
    np.testing.assert_allclose(inside(W, XS, YS), expected, rtol=1e-12)


def test_batches_nest():
    a, b = MEMBERS[0], MEMBERS[1]
    table = vmap(vmap(lambda x, y: np.sin(x) @ y, in_axes=(None, 0)), in_axes=(0, None))(a, b)
    np.testing.assert_allclose(table, np.sin(a) @ b.T, rtol=1e-14)
    inner = vmap(lambda x: vmap(lambda y: np.where(x > y, x * y, x - y))(x))(a)
    np.testing.assert_array_equal(inner, np.stack([[np.where(x > y, x * y, x - y) for y in x] for x in a]))


STACK, VECTORS = np.sin(np.arange(60.0)).reshape(4, 3, 5), np.cos(np.arange(20.0)).reshape(4, 5)


def bent(x):
    return np.sum(np.sin(x) * x) + np.prod(x[:2])


@pytest.mark.parametrize("axis", [0, -3])
@pytest.mark.parametrize("other", [0, -2])
@pytest.mark.parametrize("out", [0, 1, -1, -2])
def test_axes_count_from_both_ends(axis, other, out):
    expected = np.stack([np.sin(x) @ y for x, y in zip(STACK, VECTORS, strict=True)], axis=out)
    found = vmap(lambda x, y: np.sin(x) @ y, in_axes=(axis, other), out_axes=out)(STACK, VECTORS)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


# A batch of a derivative along the last axis of its argument, and what one member gives.
DERIVATIVES = {
    "gradient": (grad(bent), grad(bent)), "hessian": (hessian(bent), hessian(bent)),
    "jacobian": (jacobian(np.sin), lambda x: np.diag(np.cos(x))),
    "jacobian forward": (jacobian(np.sin, mode="forward"), lambda x: np.diag(np.cos(x))),
    "jvp": (lambda x: jvp(bent, (x,), (x,))[1], lambda x: grad(bent)(x) @ x),
    "vjp": (lambda x: vjp(np.sin, x)[1](x)[0], lambda x: np.cos(x) * x),
    "hvp": (lambda x: hvp(bent, x, x), lambda x: hessian(bent)(x) @ x),
    "linear map": (lambda x: linearize(np.sin, x)[1](x), lambda x: np.cos(x) * x),
    "compiled": (compile(grad(bent)), grad(bent)),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_every_derivative_in_a_batch_along_any_axis(name):
    derivative, member = DERIVATIVES[name]
    expected = np.stack([member(x) for x in VECTORS], axis=-1)
    found = vmap(derivative, in_axes=-1, out_axes=-1)(VECTORS.T.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    if name != "compiled":
        compiled = compile(vmap(derivative, in_axes=1, out_axes=-1))
        np.testing.assert_allclose(compiled(VECTORS.T.copy()), expected, rtol=1e-10, atol=1e-13)


def test_every_derivative_of_a_batch():
    def energy(v):
        return np.sum(vmap(bent, in_axes=-1)(v) ** 2)

    def plain_energy(v):
        return sum(bent(v[:, i]) ** 2 for i in range(4))

    at, along = VECTORS.T.copy(), np.cos(VECTORS.T)
    np.testing.assert_allclose(grad(energy)(at), grad(plain_energy)(at), rtol=1e-12)
    np.testing.assert_allclose(compile(grad(energy))(at), grad(plain_energy)(at), rtol=1e-12)
    np.testing.assert_allclose(hvp(energy, at, along), hvp(plain_energy, at, along), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(jvp(energy, (at,), (along,))[1], np.sum(grad(plain_energy)(at) * along), rtol=1e-12)
    np.testing.assert_allclose(hessian(energy)(at), hessian(plain_energy)(at), rtol=1e-9, atol=1e-10)


def test_the_order_of_arguments_is_jaxs():
    x, v = VECTORS[0], VECTORS[1]
    tree, along = {"a": x, "b": 2.0}, {"a": v, "b": 1.0}
    product = hvp(lambda p, c, power=2: np.sum(p["a"] ** power) * p["b"] * c, tree, along, 3.0, power=3)
    np.testing.assert_allclose(product["a"], 36 * x * v + 9 * x**2, rtol=1e-12)
    assert product["b"] == pytest.approx(9 * x**2 @ v)


@dataclasses.dataclass
class Layer:
    weights: np.ndarray
    name: str = "layer"


def test_axes_pytrees_and_keywords():
    def f(layer, pair, shift=0.0):
        return {"y": layer.weights @ pair["x"] + shift, "same": pair["scale"] * 2.0}

    layer, xs = Layer(np.arange(12.0).reshape(3, 4)), MEMBERS[0].T  # members along axis 1 of xs.T
    result = vmap(f, in_axes=(None, {"x": 1, "scale": None}), out_axes={"y": -1, "same": None})(
        layer, {"x": xs, "scale": 1.5}, shift=np.array([1.0, 2.0, 3.0])
    )
    np.testing.assert_allclose(result["y"], layer.weights @ xs + [1.0, 2.0, 3.0], rtol=1e-14)
    assert result["same"] == 3.0
    assert vmap(f, in_axes=(None, None), axis_size=2)(layer, {"x": xs[:, 0], "scale": 1.0})["same"].shape == (2,)
    assert vmap(lambda x: (x * 2, 1.0))(np.zeros((0, 3)))[0].shape == (0, 3)
    sign, size = vmap(np.linalg.slogdet)(np.zeros((0, 3, 3)))  # a named tuple takes each part by itself
    assert sign.shape == size.shape == (0,)


def test_writes_and_views_of_a_member_are_those_of_numpy():
    def f(x):
        y = np.zeros((3, 2))
        y[:, 0] = x[:3]
        top = y.T[1]
        top += x[1] * y[:, 0]
        y[::2] *= 2.0
        flat = y.ravel()
        flat[1] -= 1.0
        x[0] = 5.0
        return np.concatenate([y.ravel(), x[::-1], y.T.ravel()])

    np.testing.assert_allclose(vmap(f)(MEMBERS[0].copy()), loop(lambda x: f(x.copy()), MEMBERS[0]), rtol=1e-14)
    # The caller's array is not written to.
    before = MEMBERS[0].copy()
    vmap(f)(MEMBERS[0])
    np.testing.assert_array_equal(MEMBERS[0], before)


def test_arrays_of_numbers():
    def f(x):
        y = x[0]
        return np.concatenate([np.array([y]), [y, x[1]], np.stack([y, y * 2], axis=-1), np.atleast_1d(np.sum(y))])

    np.testing.assert_array_equal(vmap(f)(MEMBERS[0]), loop(f, MEMBERS[0]))


def test_places_that_differ_among_members():
    x, i = MEMBERS[0], np.array([2, 0, 3])
    np.testing.assert_array_equal(vmap(lambda x, i: x[i])(x, i), x[np.arange(3), i])
    np.testing.assert_array_equal(vmap(lambda i: np.take_along_axis(x, i[None, None], 1)[:, 0], out_axes=1)(i), x[:, i])
    np.testing.assert_array_equal(vmap(lambda x: x[:, ::-1][np.argmax(x[:, 0])])(MEMBERS), loop(
        lambda x: x[:, ::-1][np.argmax(x[:, 0])], MEMBERS))  # fmt: skip
    np.testing.assert_array_equal(vmap(lambda x: x[..., np.argsort(x[0])])(MEMBERS), loop(
        lambda x: x[..., np.argsort(x[0])], MEMBERS))  # fmt: skip
    gradient = vmap(grad(lambda x, i: x[i] ** 2))(x, i)
    np.testing.assert_array_equal(gradient, np.where(np.arange(4) == i[:, None], 2 * x, 0.0))


def test_numbers_are_rounded_for_each_member():
    x = np.array([0.123, 0.456])
    np.testing.assert_array_equal(vmap(lambda x: round(x, 2) * x)(x), np.round(x, 2) * x)
    np.testing.assert_array_equal(vmap(grad(lambda x: round(x, 1) * x))(x), [0.1, 0.5])
    with pytest.raises(NotBatched, match=r"round\(x\) depends on the batch.*np\.round\(x\)"):
        vmap(lambda x: round(x) * x)(np.array([0.1, 0.9]))


def test_control_flow_is_followed_where_all_members_agree():
    def f(x):
        if np.all(x > 0):
            return x * 2.0
        return -x

    np.testing.assert_array_equal(vmap(f)(MEMBERS[0]), MEMBERS[0] * 2)
    with pytest.raises(NotBatched, match="members 0 and 1 differ; write np.where") as caught:
        vmap(f)(MEMBERS[0] * np.array([[1.0], [-1.0], [1.0]]))
    assert "test_batch.py" in str(caught.value) and "if np.all(x > 0):" in str(caught.value)
    selected = vmap(lambda x: np.where(np.all(x > 0), x * 2.0, -x))(MEMBERS[0] * np.array([[1.0], [-1.0], [1.0]]))
    np.testing.assert_array_equal(selected[1], MEMBERS[0][1])


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: vmap(lambda x, y: x + y)(np.ones(3), np.ones(4)), "numbers of members: 3 members.*4 members"),
        (lambda: vmap(np.sin)(1.0), r"shape \(\) and no axis 0"),
        (lambda: vmap(np.sin, in_axes=None)(np.ones(3)), "give axis_size"),
        (lambda: vmap(np.sin, in_axes=(0, 0))(np.ones(3)), "1 positional arguments"),
        (lambda: vmap(np.sin, in_axes=({"a": 0},))(np.ones(3)), "structure does not fit"),
        (lambda: vmap(np.sin, out_axes=None)(np.ones(3)), "out_axes is None"),
        (lambda: vmap(np.sin, out_axes=2)(np.ones(3)), "out_axes names axis 2"),
        (lambda: vmap(lambda x: x[x > 0.5])(MEMBERS[0]), "different shapes"),
        (lambda: vmap(lambda x: "text")(np.ones(3)), "an output is a str"),
        (lambda: vmap(lambda x: sum(1.0 for _ in range(np.argmax(x))))(MEMBERS[0]), "an index or a count"),
    ],
)
def test_bad_batches_say_what_to_do(call, said):
    with pytest.raises(NotBatched, match=said):
        call()


def test_jacobians_of_both_modes_are_the_loops_over_directions():
    def f(x, y):
        return {"a": np.outer(np.sin(x), x) * y, "b": np.linalg.norm(x), "c": 2.0}

    x, y = np.linspace(0.5, 1.5, 40), 0.7
    for mode in ("forward", "reverse"):
        result = jacobian(f, (0, 1), mode=mode)(x, y)
        columns = [jvp(lambda x: f(x, y), (x,), (e,))[1] for e in np.eye(40)]
        np.testing.assert_allclose(result["a"][0], np.stack([c["a"] for c in columns], -1), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(result["b"][0], [c["b"] for c in columns], rtol=1e-13)
        np.testing.assert_allclose(result["a"][1], f(x, 1.0)["a"], rtol=1e-13)
        assert result["b"][1] == 0.0 and type(result["c"][1]) is float


def test_a_linear_map_is_the_derivative_and_its_transpose():
    def f(x, p):
        return {"y": np.sin(x) * p["k"], "n": np.sum(x**2)}

    x, p = np.linspace(0.1, 1.0, 5), {"k": 2.0}
    runs = []
    value, linear = linearize(lambda x, p: runs.append(1) or f(x, p), x, p)
    assert value["n"] == f(x, p)["n"]
    t, s = np.arange(5.0), {"k": -1.0}
    for _ in range(2):
        pushed = linear(t, s)
        np.testing.assert_allclose(pushed["y"], np.cos(x) * 2.0 * t - np.sin(x), rtol=1e-14)
        np.testing.assert_allclose(pushed["n"], 2 * x @ t, rtol=1e-14)
    cotangent = {"y": np.ones(5), "n": 3.0}
    dx, dp = linear.transpose(cotangent)
    np.testing.assert_allclose(dx @ t + dp["k"] * -1.0, np.sum(pushed["y"]) + 3.0 * pushed["n"], rtol=1e-13)
    assert len(runs) == 1
    matrix = vmap(lambda t: linear(t, {"k": 0.0})["y"], out_axes=-1)(np.eye(5))
    np.testing.assert_allclose(matrix, np.diag(2.0 * np.cos(x)), rtol=1e-14)
    np.testing.assert_allclose(grad(lambda x: linearize(np.sin, x)[1](1.0))(0.3), -np.sin(0.3), rtol=1e-14)
    with pytest.raises(effgrad.NotDifferentiable, match="shape"):
        linear(np.ones(4), s)


def test_a_hessian_vector_product_takes_further_arguments():
    v = np.arange(4.0)
    np.testing.assert_allclose(hvp(loss, W, v, XS[0], 0.5), hessian(loss)(W, XS[0], 0.5) @ v, rtol=1e-12)
    assert vjp(lambda w: hvp(loss, w, v, XS[0], y=0.5)[0], W)[1](1.0)[0].shape == (4,)


@pytest.mark.parametrize(
    "f",
    [lambda x: float(x[0]) * x[1], lambda x: x[0].item() ** 2 + x.item(1), lambda x: sum(x.tolist()) * x[0]],
    ids=["float", "item", "tolist"],
)
def test_numbers_taken_out_of_arrays_are_of_each_member(f):
    x = LEVELS[:, :3]
    np.testing.assert_allclose(vmap(f)(x), [f(row) for row in x], rtol=1e-14)
    np.testing.assert_allclose(vmap(grad(f))(x), [grad(f)(row) for row in x], rtol=1e-14)
    np.testing.assert_allclose(compile(vmap(f))(x), [f(row) for row in x], rtol=1e-14)


COMPILED = {
    "array": lambda x: array.array("d", [x[0]])[0],
    "struct": lambda x: struct.unpack("d", struct.pack("d", x[0]))[0],
    "ctypes": lambda x: ctypes.c_double(x[0]).value,
    "a diagram": lambda x: scipy.spatial.Voronoi(np.stack([x, x * x, x + 1, x - 3])).vertices[0, 0],
    "LAPACK": lambda x: scipy.linalg.lapack.dgesv(np.diag(x), np.ones(2))[2],
    "a filter": lambda x: scipy.signal.sepfir2d(np.outer(x, x), np.ones(3), np.ones(3)),
}


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("count", [1, 2])
def test_compiled_code_is_given_no_number_of_a_batch_under_a_derivative(name, count):
    """Where all members agreed, compiled code was given their number, and the gradient was a silent zero."""
    xs = np.tile([1.2, 0.7], (count, 1))

    def total(xs):
        return np.sum(vmap(COMPILED[name])(xs))

    assert np.isfinite(total(xs))  # without a derivative the number is given
    for refused in (grad(total), compile(grad(total)), lambda xs: jvp(total, (xs,), (xs,))):
        with pytest.raises((NoRule, Detached)):
            refused(xs)


def test_an_error_in_a_batch_under_a_derivative_is_the_one_that_is_told():
    """The buffers that compiled code was given were filled at the end from values of a derivative that had ended."""

    def total(xs):
        return np.sum(vmap(COMPILED["a diagram"])(xs))

    with pytest.raises(NotBatched, match="members 0 and 1 differ"):
        grad(total)(np.array([[1.2, 0.7], [1.3, 0.7]]))
