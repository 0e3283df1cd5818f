"""`scipy.fftpack`, rotations, scattered interpolation, polar factors: SciPy's value, and derivatives by differences."""

import functools

import numpy as np
import pytest
import scipy.fftpack
import scipy.interpolate as si
import scipy.linalg
import scipy.spatial.transform
import scipy.stats
from differences import parts
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator, RBFInterpolator, griddata
from versions import SCIPY

from effgrad import EffgradError, NoRule, compile, grad, jvp

RNG = np.random.default_rng(0)
VECTOR, VECTORS, QUATERNION = RNG.normal(size=3), RNG.normal(size=(4, 3)), RNG.normal(size=4)
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TURN = TURN * np.linalg.det(TURN)
R = scipy.spatial.transform.Rotation
AXES = [[0, 0, 1.0], [0, 1.0, 0], [1.0, 0, 0]]
ROTATIONS = {
    "as_matrix": (lambda z: R.from_rotvec(z).as_matrix(), VECTOR),
    "apply to constants": (lambda z: R.from_rotvec(z).apply(VECTORS), VECTOR),
    "apply a constant": (lambda z: R.from_rotvec(VECTOR).apply(z, inverse=True), VECTORS),
    "from_quat": (lambda z: R.from_quat(z).as_rotvec(), QUATERNION),
    "euler": (lambda z: R.from_euler("xyz", z, degrees=True).as_euler("ZYX"), VECTOR),
    "one angle": (lambda z: R.from_euler("z", z).as_matrix(), 0.3),
    "davenport": (lambda z: R.from_davenport(AXES, "extrinsic", z).as_davenport(AXES, "extrinsic"), VECTOR),
    "from_matrix": (lambda z: R.from_matrix(z).as_quat(), TURN),
    "from matrices that are no rotations": (lambda z: R.from_matrix(z).as_quat(), np.stack([TURN, TURN.T + 0.05])),
    "mrp": (lambda z: R.from_mrp(z).as_mrp(), VECTOR),
    "product": (lambda z: (R.from_rotvec(z) * R.from_rotvec(VECTORS)).as_quat(), VECTOR),
    "inverse": (lambda z: R.from_rotvec(z).inv().as_matrix(), VECTOR),
    "magnitude": (lambda z: R.from_rotvec(z).magnitude(), VECTORS),
    "power": (lambda z: (R.from_rotvec(z) ** 0.3).as_quat(), VECTOR),
    "mean": (lambda z: R.from_rotvec(z).mean().as_quat(), 0.2 * VECTORS),
    "vectors aligned": (lambda z: R.align_vectors(z, VECTORS)[0].as_quat(), VECTORS[::-1] + 0.3),
    "a weighted alignment": (
        lambda z: R.align_vectors(VECTORS, VECTORS[::-1], z, return_sensitivity=True)[2], np.arange(1.0, 5)),
    "one vector held": (lambda z: R.align_vectors(z, VECTORS, [np.inf, 1, 1, 2])[0].as_matrix(), VECTORS[::-1]),
    "no rotation": (lambda z: R.from_rotvec(z).as_matrix(), np.zeros(3)),
    "a small rotation": (lambda z: R.from_rotvec(z).as_matrix(), np.full(3, 1e-5)),
    "some of several": (lambda z: R.from_rotvec(z)[1:3].as_quat(), VECTORS),
    "several axes": (lambda z: R.from_rotvec(z).as_matrix(), RNG.normal(size=(2, 2, 3))),
    "concatenated": (lambda z: R.concatenate([R.from_rotvec(z), R.from_rotvec(VECTOR)]).as_quat(), VECTOR),
    "Slerp": (lambda z: scipy.spatial.transform.Slerp([0.0, 1.0], R.from_rotvec(z))([0.2, 0.7]).as_quat(), VECTORS[:2]),
}
POINTS, HEIGHTS, PAIRS = RNG.uniform(-1, 1, (12, 2)), RNG.normal(size=12), RNG.normal(size=(12, 2))
AT = RNG.uniform(-0.5, 0.5, (5, 2))
SHAPES = {"inverse_quadratic", "multiquadric", "inverse_multiquadric", "gaussian"}
KERNELS = {name: {"kernel": name, **({"epsilon": 1.3} if name in SHAPES else {})}
           for name in sorted((*SHAPES, "linear", "thin_plate_spline", "cubic", "quintic"))}  # fmt: skip
# SciPy finds slopes by an iteration; with its own tolerance, differences are rough.
CURVED = functools.partial(si.CloughTocher2DInterpolator, tol=1e-15, maxiter=10**5)
SCATTERED = {
    "triangles at": (lambda z: CURVED(POINTS, HEIGHTS)(z), AT / 4),
    "triangles points": (lambda z: CURVED(z, PAIRS)(AT / 4), POINTS),
    "triangles values": (lambda z: CURVED(POINTS, z)(AT / 4), HEIGHTS),
    "triangles complex": (lambda z: CURVED(POINTS, z)(AT / 4), HEIGHTS + 1j * PAIRS[:, 0]),
    "triangles scaled": (lambda z: CURVED(z, HEIGHTS, rescale=True)(AT / 4), POINTS),
    "triangles fill": (lambda z: CURVED(POINTS, HEIGHTS, z)(AT * 4), 0.3),
    "griddata cubic": (lambda z: si.griddata(POINTS, z, AT / 4, method="cubic"), HEIGHTS),
    **{f"RBF {name} at": (lambda z, o=o: RBFInterpolator(POINTS, HEIGHTS, **o)(z), AT) for name, o in KERNELS.items()},
    **{f"RBF {name} points": (lambda z, o=o: RBFInterpolator(z, PAIRS, smoothing=0.1, **o)(AT), POINTS)
       for name, o in KERNELS.items()},
    **{f"RBF {name} values": (lambda z, o=o: RBFInterpolator(POINTS, z, **o)(POINTS[:4]), PAIRS)
       for name, o in KERNELS.items()},
    "RBF epsilon": (lambda z: RBFInterpolator(POINTS, HEIGHTS, kernel="gaussian", epsilon=z)(AT), 1.2),
    "RBF smoothing": (lambda z: RBFInterpolator(POINTS, HEIGHTS, smoothing=z)(AT), 0.2),
    "RBF each smoothing": (lambda z: RBFInterpolator(POINTS, HEIGHTS, smoothing=z)(AT), np.full(12, 0.2)),
    "RBF neighbors": (lambda z: RBFInterpolator(POINTS, z, neighbors=5)(AT), HEIGHTS),
    "RBF neighbors at": (lambda z: RBFInterpolator(POINTS, PAIRS, neighbors=5)(z), AT),
    "RBF degree": (lambda z: RBFInterpolator(POINTS, z, degree=2)(AT), HEIGHTS),
    **{f"triangles {name} {rescale}": (f, x) for rescale in (False, True) for name, f, x in (
        ("values", lambda z, r=rescale: LinearNDInterpolator(POINTS, z, 0.5, rescale=r)(AT), PAIRS),
        ("points", lambda z, r=rescale: LinearNDInterpolator(z, HEIGHTS, 2.0, rescale=r)(AT), POINTS),
        ("at", lambda z, r=rescale: LinearNDInterpolator(POINTS, HEIGHTS, 0.5, rescale=r)(z), AT),
        ("beyond", lambda z, r=rescale: LinearNDInterpolator(POINTS, HEIGHTS, 1.0, rescale=r)(5 * z), AT))},
    "triangles at coordinates": (lambda z: LinearNDInterpolator(POINTS, HEIGHTS, 0.5)(z[:, 0], z[:, 1]), AT),
    "nearest": (lambda z: NearestNDInterpolator(POINTS, z)(AT[:, 0], AT[:, 1]), PAIRS),
    "nearest at": (lambda z: NearestNDInterpolator(POINTS, HEIGHTS)(z) + np.sum(z), AT),
    **{f"griddata {method}": (lambda z, m=method: griddata(POINTS, z, (AT[:, 0], AT[:, 1]), m, 0.5), HEIGHTS)
       for method in ("nearest", "linear")},
    "griddata on a line": (lambda z: griddata(np.sort(HEIGHTS), z, np.array([0.1, 0.2])), HEIGHTS),
}  # fmt: skip
MATRIX, LINE = RNG.normal(size=(3, 6)), RNG.normal(size=7) - 0.1
PERIODIC = {
    "diff": (2,), "tilbert": (0.3,), "itilbert": (0.3,), "hilbert": (), "ihilbert": (), "cs_diff": (0.3, 0.4),
    "sc_diff": (0.3, 0.4), "ss_diff": (0.3, 0.4), "cc_diff": (0.3, 0.4), "shift": (0.2,),
}  # fmt: skip
OLD_TRANSFORMS = {
    **{f"{name} {o}": (lambda z, n=name, o=o: getattr(scipy.fftpack, n)(z, **o), MATRIX)
       for name in ("fft", "ifft", "rfft", "irfft") for o in ({}, {"axis": 0}, {"n": 5}, {"n": 8, "axis": 0})},
    **{f"{name} {o}": (lambda z, n=name, o=o: getattr(scipy.fftpack, n)(z, **o), MATRIX)
       for name in ("fftn", "ifftn", "fft2", "ifft2") for o in ({}, {"shape": (2, 5)}, {"axes": (1, 0)})},
    **{f"{name} {kind} {o}": (lambda z, n=name, k=kind, o=o: getattr(scipy.fftpack, n)(z, k, **o), MATRIX)
       for name in ("dct", "idct", "dst", "idst") for kind in (1, 2, 3, 4)
       for o in ({}, {"norm": "ortho"}, {"axis": 0, "n": 2})},
    **{f"{name} {o}": (lambda z, n=name, o=o: getattr(scipy.fftpack, n)(z, **o), MATRIX)
       for name in ("dctn", "idctn", "dstn", "idstn") for o in ({}, {"norm": "ortho", "axes": 0}, {"shape": (4, 3)})},
    **{f"{name} of {len(x)}": (lambda z, n=name, a=a: getattr(scipy.fftpack, n)(z, *a), x - np.mean(x))
       for name, a in PERIODIC.items() for x in (LINE, LINE[:6])},
}  # fmt: skip


def complex_matrix(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


# The singular values of a rotation are all equal.
SQUARE_OR_NOT = {
    "general": RNG.normal(size=(3, 3)), "tall": RNG.normal(size=(4, 3)), "wide": RNG.normal(size=(2, 3)),
    "complex": complex_matrix(3, 3), "complex and tall": complex_matrix(4, 2), "complex and wide": complex_matrix(2, 3),
    "a rotation": TURN, "the identity": np.eye(3), "orthogonal columns": 2 * TURN[:, :2],
}  # fmt: skip
POLAR = {
    f"{part} of {name}": (f, x) for name, x in SQUARE_OR_NOT.items() for part, f in (
        ("factor", lambda z: scipy.linalg.polar(z)[0]), ("stretch", lambda z: scipy.linalg.polar(z)[1]),
        ("left stretch", lambda z: scipy.linalg.polar(z, side="left")[1]),
        *((("Procrustes", lambda z, x=x: scipy.linalg.orthogonal_procrustes(z, x)[0]),) if "wide" not in name else ()))
}  # fmt: skip
FORMS = {**(ROTATIONS if SCIPY >= (1, 17) else {}), **SCATTERED, **OLD_TRANSFORMS, **POLAR}


def test_rotations_from_too_few_vectors_are_refused_by_name():
    if SCIPY >= (1, 17):
        with pytest.raises(NoRule, match="vectors that span the space"):
            grad(lambda z: R.align_vectors(z, VECTORS[:2])[1])(VECTORS[2:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMS)
def test_form(name):
    f, x = FORMS[name]
    u = RNG.normal(size=np.shape(x)) + (1j * RNG.normal(size=np.shape(x)) if np.iscomplexobj(x) else 0)
    value, tangent = jvp(f, (x,), (u,))
    np.testing.assert_array_equal(value, f(x))
    wanted = (parts(f(x + 1e-6 * u)) - parts(f(x - 1e-6 * u))) / 2e-6
    np.testing.assert_allclose(parts(tangent), wanted, rtol=1e-5, atol=1e-6)
    weights = RNG.normal(size=wanted.shape)

    def scalar(z):
        y = np.ravel(f(z))
        return np.sum(weights * (np.concatenate([np.real(y), np.imag(y)]) if y.dtype.kind == "c" else y))

    pulled = np.real(np.sum(np.conj(grad(scalar)(x)) * u))
    np.testing.assert_allclose(pulled, np.sum(weights * wanted), rtol=1e-5, atol=1e-5)


def test_triangles_of_constants_inside_a_derivative():
    """A plain interpolant made inside is SciPy's own."""
    tangent = jvp(lambda s: s * si.LinearNDInterpolator(POINTS, HEIGHTS, 0.5)(AT), (1.0,), (1.0,))[1]
    np.testing.assert_array_equal(tangent, si.LinearNDInterpolator(POINTS, HEIGHTS, 0.5)(AT))


def test_least_squares_by_gelsy_have_derivatives():
    """It computes no residuals and no singular values."""
    a, b = np.random.default_rng(0).normal(size=(5, 3)), np.arange(5.0)

    def size(a):
        x, residuals, rank, values = scipy.linalg.lstsq(a, b, lapack_driver="gelsy")
        assert residuals.shape == (0,) and rank == 3 and values is None
        return np.sum(x**2)

    moved = np.random.default_rng(1).normal(size=(5, 3))
    slope = (size(a + 1e-6 * moved) - size(a - 1e-6 * moved)) / 2e-6
    np.testing.assert_allclose(np.sum(grad(size)(a) * moved), slope, rtol=1e-7)
    np.testing.assert_allclose(np.sum(compile(grad(size))(a) * moved), slope, rtol=1e-7)



def test_finite_eigenvalues_beside_infinite_ones_have_derivatives():
    """The zeros of a linear system are eigenvalues of a pencil whose second matrix is singular."""
    a = np.array([[0.0, 1.0, 0.5], [-2.0, -0.7, 1.0], [1.0, 0.3, 0.0]])
    b = np.diag([1.0, 1.0, 0.0])
    moved = np.array([[0.3, -0.2, 0.7], [0.1, 0.5, -0.4], [0.6, 0.2, 0.0]])

    def zeros(a):
        values = scipy.linalg.eigvals(a, b, overwrite_a=False)
        return np.sum(np.abs(values[np.isfinite(values)]) ** 2)

    slope = (zeros(a + 1e-6 * moved) - zeros(a - 1e-6 * moved)) / 2e-6
    assert abs(slope) > 1
    for f in (grad(zeros), compile(grad(zeros))):
        np.testing.assert_allclose(np.sum(f(a) * moved), slope, rtol=1e-7)


NEARLY_SINGULAR = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-11]])


@pytest.mark.parametrize("allow_singular", [True, False])
def test_a_covariance_that_scipy_takes_for_singular_is_refused(allow_singular):
    """Its factor by Cholesky exists: the value was -2e9 where SciPy's is -inf, or an error."""

    def f(covariance):
        return scipy.stats.multivariate_normal.logpdf(
            [0.3, 0.5], [0.0, 0.0], covariance, allow_singular=allow_singular
        )

    with pytest.raises((EffgradError, np.linalg.LinAlgError)):
        grad(f)(NEARLY_SINGULAR)
    with pytest.raises(ValueError, match="positive semidefinite"):
        grad(f)(np.array([[1.0, 2.0], [2.0, 1.0]]))


ISOLATED = {
    "genpareto": (scipy.stats.genpareto, (0.0,)), "genextreme": (scipy.stats.genextreme, (0.0,)),
    "kappa4": (scipy.stats.kappa4, (0.0, 0.3)), "kappa4 in its second": (scipy.stats.kappa4, (0.3, 0.0)),
    "tukeylambda": (scipy.stats.tukeylambda, (0.0,)), "skewnorm": (scipy.stats.skewnorm, (0.0,)),
}  # fmt: skip


@pytest.mark.parametrize("name", ISOLATED)
@pytest.mark.parametrize("method", ["pdf", "logpdf"])
def test_a_shape_with_a_formula_of_its_own_is_refused(name, method):
    """SciPy takes another formula at such a shape, and its derivative, 0, was given for that of the density."""
    distribution, shapes = ISOLATED[name]

    def f(shift):
        return getattr(distribution, method)(0.4, *[shape + shift for shape in shapes])

    with pytest.raises(NoRule, match="another formula"):
        grad(f)(0.0)
    slope = (f(0.01 + 1e-5) - f(0.01 - 1e-5)) / 2e-5
    np.testing.assert_allclose(grad(f)(0.01), slope, rtol=1e-5)
    beside = grad(lambda x: getattr(distribution, method)(x, *shapes))(0.4)
    around = [getattr(distribution, method)(0.4 + step, *shapes) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(beside, (around[0] - around[1]) / 2e-5, rtol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_a_moment_with_a_formula_of_its_own_is_refused(order):
    with pytest.raises(NoRule, match="another formula"):
        grad(lambda b: [scipy.stats.truncpareto.mean, scipy.stats.truncpareto.var][order - 1](b, 5.0))(float(order))


@pytest.mark.skipif(SCIPY < (1, 17), reason="rotations have rules from SciPy 1.17 on")
def test_a_definition_that_writes_to_plain_arrays():
    """SciPy's Python fills arrays; whether they came to the rule as such depended on what ran before: slopes of 0."""
    grad(lambda x: np.sum(scipy.stats.zscore(x) ** 3))(np.array([1.0, 0.5, -0.3]))
    turned = jvp(lambda z: R.from_euler("z", z).as_matrix(), (0.3,), (1.0,))[1]
    sine, cosine = np.sin(0.3), np.cos(0.3)
    np.testing.assert_allclose(turned, [[-sine, -cosine, 0], [cosine, -sine, 0], [0, 0, 0]], atol=1e-15)
