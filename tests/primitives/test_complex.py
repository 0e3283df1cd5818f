"""Complex numbers: the convention of gradients, holomorphic derivatives, and what has none."""

import numpy as np
import pytest

from effgrad import NotDifferentiable, grad, hessian, jacobian, jvp, vjp

BACKEND = "native"  # of the compiled runs

Z = np.array([1 + 2j, -0.5 + 0.3j, 0.7 - 1.1j])
LOSSES = {
    "squared modulus": lambda z: np.sum(np.abs(z) ** 2),
    "modulus": lambda z: np.sum(np.abs(z)),
    "product with conjugate": lambda z: np.real(np.sum(z * np.conj(z) * z)),
    "exp": lambda z: np.imag(np.sum(np.exp(z) / z)),
    "angle": lambda z: np.sum(np.angle(z)),
    "norm": np.linalg.norm,
    "fft": lambda z: np.sum(np.abs(np.fft.fft(z)) ** 3),
    "indexing": lambda z: np.real(z[0] * z[1] ** 2) + z.imag[2],
    "written": lambda z: np.real(np.sum(np.stack([z, z * 1j, np.where(z.real > 0, z, 0)]) ** 2)),
    "power": lambda z: np.real(np.sum(z**2.5)),
    "solve": lambda z: np.abs(np.linalg.solve(np.diag(z) + 1, z)[0]),
    "sqrt log": lambda z: np.real(np.sum(np.sqrt(z) * np.log(z))),
}


@pytest.mark.parametrize("mode", ["taped", "reverse", "continuation", "delta", "checkpointed"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_point_uphill(run, name, mode):
    f, step = LOSSES[name], 1e-6
    expected = [
        (f(Z + step * e) - f(Z - step * e) + 1j * (f(Z + 1j * step * e) - f(Z - 1j * step * e))) / (2 * step)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(run(grad)(f, mode=mode)(Z), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_gradients(run, name):
    def directional(z):
        return np.real(np.sum(np.conj(run(grad)(LOSSES[name])(z)) * (0.3 - 0.8j)))

    step = 1e-6
    expected = [
        (directional(Z + step * e) - directional(Z - step * e)
         + 1j * (directional(Z + 1j * step * e) - directional(Z - 1j * step * e))) / (2 * step)
        for e in np.eye(3)
    ]  # fmt: skip
    np.testing.assert_allclose(run(grad)(directional)(Z), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", [lambda x: np.abs(x * (1 + 1j)) ** 2, lambda x: np.real(x * (1 + 2j) * np.conj(x))])
def test_real_inputs_have_real_gradients(run, f):
    assert type(run(grad)(f)(3.0)) is float
    assert run(grad)(lambda x: np.sum(f(x)))(np.array([3.0])).dtype == float
    assert run(hessian)(f)(3.0) == pytest.approx(run(grad)(f)(1.0))


def test_hard_cases_of_complex_numbers(run):
    assert run(grad)(lambda z: np.abs(z) ** 2)(1 + 2j) == pytest.approx(2 + 4j)  # Z1
    assert run(grad)(np.abs)(0j) == 0  # Z2
    assert run(grad)(lambda x: np.abs(x * (1 + 1j)) ** 2)(3.0) == pytest.approx(12.0)  # Z3
    for n, expected in ((4, [12, 20, 20, 28]), (5, [20, 25, 30, 35, 40])):  # Z5
        x = np.arange(1.0, n + 1)
        np.testing.assert_allclose(run(grad)(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2))(x), expected)
    assert run(grad)(lambda z: z**3, holomorphic=True)(1j) == pytest.approx(-3)  # Z7


@pytest.mark.parametrize("f", [np.exp, np.sin, lambda z: z**3 / (1 + z), lambda z: np.sqrt(z) * np.log(z)])
def test_holomorphic_derivatives(run, f):
    for z in Z:
        difference = (f(z + 1e-6) - f(z - 1e-6)) / 2e-6
        assert run(grad)(f, holomorphic=True)(z) == pytest.approx(difference, rel=1e-6)
        assert run(jacobian)(f)(z) == pytest.approx(difference, rel=1e-6)
        assert run(jvp)(f, (z,), (1j,))[1] == pytest.approx(1j * difference, rel=1e-6)
    np.testing.assert_allclose(np.diagonal(run(jacobian)(f)(Z)), [run(grad)(f, holomorphic=True)(z) for z in Z])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_a_complex_function_of_real_arguments(run, mode):
    x = np.array([0.3, 0.5])
    matrix = run(jacobian)(lambda x: np.exp(1j * x) * x[0], mode=mode)(x)
    e = np.exp(1j * x)
    expected = np.array([[e[0] + 1j * e[0] * x[0], 0], [e[1], 1j * e[1] * x[0]]])
    np.testing.assert_allclose(matrix, expected)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: grad(lambda z: z * z)(1j), NotDifferentiable),  # Z8
        (lambda: grad(lambda z: np.conj(z) * z, holomorphic=True)(1 + 2j), NotDifferentiable),
        (lambda: grad(lambda z: np.abs(z) ** 2, holomorphic=True)(1 + 2j), NotDifferentiable),
        (lambda: grad(lambda z: z * 1j, holomorphic=True)(1.0), NotDifferentiable),
        (lambda: jacobian(np.conj)(Z), NotDifferentiable),
        (lambda: jvp(np.sin, (1.0,), (1j,)), NotDifferentiable),
    ],
)
def test_what_has_no_complex_derivative_is_an_error(call, error):
    with pytest.raises(error):
        call()


def test_a_pullback_is_the_adjoint_in_the_real_inner_product(run):
    value, pullback = vjp(lambda z: z * (2 + 1j), Z)
    cotangent = np.array([1.0, 1j, 2 - 1j])
    tangent = np.array([0.3 + 1j, 2.0, -1j])
    moved = run(jvp)(lambda z: z * (2 + 1j), (Z,), (tangent,))[1]
    np.testing.assert_allclose(np.real(np.vdot(cotangent, moved)), np.real(np.vdot(pullback(cotangent)[0], tangent)))
    # Of a real function it is the gradient.
    np.testing.assert_allclose(vjp(lambda z: np.sum(np.abs(z) ** 2), Z)[1](1.0)[0], 2 * Z)


@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"])
@pytest.mark.parametrize("at", [0.3, -2.5])
def test_functions_of_emath_are_complex_outside_the_real_domain(run, name, at):
    """Differences of `np.emath` itself are the oracle (tmm computes angles of light with it)."""
    f = getattr(np.emath, name)
    x, h = np.array([at, 0.4]), 1e-6
    value, slope = run(jvp)(f, (x,), (np.ones(2),))
    np.testing.assert_allclose(value, f(x), rtol=1e-15)
    np.testing.assert_allclose(slope, (f(x + h) - f(x - h)) / (2 * h), rtol=1e-7)
