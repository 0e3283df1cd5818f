"""Complex differential equations and integrals, against closed forms and matrix exponentials."""

import numpy as np
import pytest
import scipy.linalg
from differences import partials
from scipy import integrate

from effgrad import NotDifferentiable, compile, differential, grad, hessian, jacobian, jvp, vmap

OPTIONS = {"rtol": 1e-10, "atol": 1e-10}
METHODS = ["RK23", "RK45", "DOP853", "BDF"]  # those of SciPy for complex states


def excited(p, **options):
    """The probability that a driven two-level system has changed its level after a time: Rabi's formula."""
    drive, detuning, time = p
    hamiltonian = 0.5 * np.array([[-detuning, drive], [drive, detuning]])
    found = integrate.solve_ivp(lambda t, y: -1j * (hamiltonian @ y), (0.0, time), [1.0 + 0j, 0.0], **options)
    return np.abs(found.y[1, -1]) ** 2


def rabi(p):
    drive, detuning, time = p
    whole = drive**2 + detuning**2
    return drive**2 / whole * np.sin(np.sqrt(whole) * time / 2) ** 2


RABI = np.array([1.3, 0.4, 2.1])


@pytest.mark.parametrize("choice", ["solution", "steps"])
@pytest.mark.parametrize("method", METHODS)
def test_a_two_level_system(method, choice):
    with differential.definition(choice):
        found = grad(lambda p: excited(p, method=method, **OPTIONS))(RABI)
    np.testing.assert_allclose(found, partials(rabi, RABI, 1e-3), atol=1e-5 if choice == "steps" else 1e-8)


def test_every_way_to_a_derivative():
    def excited_well(p):
        return excited(p, **OPTIONS)

    exact = partials(rabi, RABI, 1e-3)
    np.testing.assert_allclose(compile(grad(excited_well))(RABI), exact, atol=1e-8)
    np.testing.assert_allclose(jvp(excited_well, (RABI,), (RABI,))[1], exact @ RABI, atol=1e-8)
    members = np.stack([RABI, 1.1 * RABI])
    np.testing.assert_allclose(vmap(grad(excited_well))(members), [partials(rabi, p, 1e-3) for p in members], atol=1e-8)
    second = partials(lambda p: partials(rabi, p, 1e-3), RABI, 1e-3)
    np.testing.assert_allclose(hessian(excited_well)(RABI), second, atol=1e-7)


def test_a_right_hand_side_that_is_not_holomorphic():
    """y' = i w y + c conj(y) is a linear system in the real and the imaginary part."""

    def both(y):
        return np.array([np.real(y), np.imag(y)])

    def last(p):
        w, c, real, imag = p
        slope = lambda t, y: 1j * w * y + c * np.conj(y)  # noqa: E731
        return both(integrate.solve_ivp(slope, (0.0, 1.5), [real + 1j * imag], **OPTIONS).y[0, -1])

    def exact(p):
        return scipy.linalg.expm(1.5 * np.array([[p[1], -p[0]], [p[0], -p[1]]])) @ p[2:]

    p = np.array([1.2, 0.3, 0.8, -0.5])
    np.testing.assert_allclose(jacobian(last)(p), partials(exact, p, 1e-3), atol=1e-8)
    np.testing.assert_allclose(jacobian(last, mode="forward")(p), partials(exact, p, 1e-3), atol=1e-8)


@pytest.mark.parametrize("choice", ["solution", "steps"])
def test_events_and_dense_output(choice):
    """The real part of exp(i w t) is zero at pi / 2 w."""

    def found(w):
        def half(t, y):
            return np.real(y[0])

        half.terminal = True
        options = OPTIONS | {"events": half, "dense_output": True}
        run = integrate.solve_ivp(lambda t, y: 1j * w * y, (0.0, 9.0), [1.0 + 0j], **options)
        return run.t_events[0][0], np.imag(run.y_events[0][0, 0]), np.imag(run.sol(0.3)[0]), run.t[-1]

    w = 1.3
    exact = [-np.pi / (2 * w**2), 0.0, 0.3 * np.cos(0.3 * w), -np.pi / (2 * w**2)]
    with differential.definition(choice):
        np.testing.assert_allclose(jacobian(found)(w), exact, atol=1e-7)


def test_the_values_are_scipys():
    for options in ({}, {"t_eval": [0.5, 1.0]}, {"vectorized": True}):
        def states(w, options=options):
            return integrate.solve_ivp(lambda t, y: 1j * w * y, (0.0, 1.0), [1.0 + 0j, 2.0], **options).y

        value, tangent = jvp(states, (1.3,), (1.0,))
        np.testing.assert_array_equal(value, states(1.3))
        times = np.array(options["t_eval"]) if "t_eval" in options else None
        if times is not None:
            np.testing.assert_allclose(tangent[0], 1j * times * np.exp(1.3j * times), atol=1e-8)


def test_a_complex_right_hand_side_of_a_real_state_is_refused():
    """SciPy warns and drops the imaginary part."""

    def f(w):
        return integrate.solve_ivp(lambda t, y: 1j * w * y, (0.0, 1.0), [1.0]).y[0, -1]

    with pytest.warns(np.exceptions.ComplexWarning), pytest.raises(NotDifferentiable, match=r"as y0 \+ 0j"):
        grad(f)(1.3)


def wave(a, end=1.0):
    """The integral of x exp(i a x) from 0 to `end`."""
    s = 1j * a
    return (np.exp(s * end) * (s * end - 1) + 1) / s**2


@pytest.mark.parametrize("integral", [
    lambda a: integrate.quad(lambda x: x * np.exp(1j * a * x), 0.0, 1.0, complex_func=True)[0],
    lambda a: integrate.quad(lambda x: x * np.exp(1j * a * x), 0.0, 1.0, complex_func=True, full_output=1)[0],
    lambda a: integrate.quad_vec(lambda x: x * np.exp(1j * a * x), 0.0, 1.0)[0],
    lambda a: integrate.quad(lambda x: x, 0.0, 1.0, weight="cos", wvar=a)[0]
    + 1j * integrate.quad(lambda x: x, 0.0, 1.0, weight="sin", wvar=a)[0],
], ids=["quad", "full output", "quad_vec", "weights"])  # fmt: skip
def test_complex_integrals(integral):
    a, h = 7.3, 1e-3
    value, tangent = jvp(integral, (a,), (1.0,))
    assert value == integral(a)
    exact = (8 * (wave(a + h) - wave(a - h)) - wave(a + 2 * h) + wave(a - 2 * h)) / (12 * h)
    assert tangent == pytest.approx(exact, abs=1e-10)
    found = grad(lambda a: np.abs(integral(a)) ** 2)(a)
    assert found == pytest.approx(2 * np.real(np.conj(wave(a)) * exact), abs=1e-10)


@pytest.mark.parametrize("argument", ["y", "x", "dx"])
def test_cumulative_simpson_by_every_argument(argument):
    y, x = np.cos(np.arange(14.0)).reshape(2, 7), np.cumsum(1 + 0.3 * np.sin(np.arange(7.0)))
    given = {"y": y, "x": x, "dx": 0.3}[argument]

    def f(z):
        named = {"x": x} if argument == "y" else {argument: z}
        return np.sum(integrate.cumulative_simpson(z if argument == "y" else y, **named) ** 2)

    shape = np.shape(given)
    exact = partials(lambda z: f(z.reshape(shape) if shape else z[0]), np.ravel(given), 1e-3)
    np.testing.assert_allclose(np.ravel(grad(f)(given)), exact, rtol=1e-9)
