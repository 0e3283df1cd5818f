"""`scipy.integrate.ode` and `complex_ode` under derivatives: objects that integrate from one time to the next."""

import numpy as np
import pytest
import scipy.integrate
from scipy.integrate import complex_ode, ode

import effgrad
from effgrad import grad, hessian, jacobian

P = np.array([0.7, 1.3])
CLOSE = {"rtol": 1e-11, "atol": 1e-11, "nsteps": 10_000}


def oscillator(name, **options):
    """A damped oscillator, at four times: its parameters, state, first time and times depend on p."""

    def f(p):
        r = ode(lambda t, y, a: [y[1], -a * y[0] - p[1] * y[1] * t]).set_integrator(name, **CLOSE, **options)
        r.set_initial_value([p[0], 0.5], 0.1 * p[1]).set_f_params(p[0] * 3)
        states = []
        while r.successful() and r.t < 1:
            states.append(r.integrate(r.t + 0.25) * 1.0)
        return np.stack(states)

    return f


def pairs(p):
    r = complex_ode(lambda t, y: 1j * p[0] * y * t - p[1] * np.conj(y)).set_integrator("dopri5", **CLOSE)
    r.set_initial_value(np.array([1.0 + 0.5j, p[0] * 1j]), 0.0)
    r.integrate(0.5)
    y = r.integrate(p[1])
    return np.concatenate([y.real, y.imag, r.y.real])


def complex_states(p):
    r = ode(lambda t, y: 1j * p[0] * y * t - p[1] * np.conj(y)).set_integrator("zvode", **CLOSE)
    r.set_initial_value(np.array([1.0 + 0.5j, p[0] * 1j]), 0.0)
    r.integrate(0.5)
    y = r.integrate(p[1])
    return np.concatenate([y.real, y.imag])


def with_jacobian(p):
    r = ode(
        lambda t, y, a: [-a * y[0] ** 2 + y[1], -p[1] * y[1]], lambda t, y, a: [[-2 * a * y[0], 1.0], [0.0, -p[1]]]
    ).set_integrator("vode", method="bdf", with_jacobian=True, **CLOSE)
    r.set_initial_value([1.0, 2.0], 0).set_f_params(p[0]).set_jac_params(p[0])
    return r.integrate(1)


def one_state(p):
    r = ode(lambda t, y: -p[0] * y).set_integrator("dopri5", **CLOSE).set_initial_value(p[1])
    r.integrate(1.0)
    return np.append(r.y, r.integrate(1.5))


PROGRAMS = {
    **{name: oscillator(name) for name in ("dopri5", "dop853", "vode", "lsoda")},
    "bdf": oscillator("vode", method="bdf"), "complex_ode": pairs, "zvode": complex_states,
    "a Jacobian": with_jacobian, "one state": one_state,
}  # fmt: skip


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_integration_has_the_derivative_of_the_solution(name):
    f = PROGRAMS[name]
    np.testing.assert_array_equal(effgrad.jvp(f, (P,), (P,))[0], f(P))
    differences = np.stack([(f(P + e) - f(P - e)) / 2e-5 for e in 1e-5 * np.eye(2)], -1)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(jacobian(f, mode=mode)(P), differences, rtol=1e-6, atol=1e-6)

    def total(p):
        return np.sum(np.sin(f(p)))

    slopes = np.stack([(grad(total)(P + e) - grad(total)(P - e)) / 2e-5 for e in 1e-5 * np.eye(2)], -1)
    np.testing.assert_allclose(hessian(total)(P), slopes, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(effgrad.compile(grad(total))(P), grad(total)(P), rtol=1e-12)


def test_a_loop_of_the_documentation():
    """y' = -k y, in steps of one: the derivative by k of exp(-5 k) at the end is -5 exp(-5 k)."""

    def f(k):
        r = ode(lambda t, y: -k * y).set_integrator("vode", rtol=1e-10).set_initial_value(1.0)
        while r.successful() and r.t < 5:
            r.integrate(r.t + 1)
        return r.y[0]

    np.testing.assert_allclose(grad(f)(0.3), -5 * np.exp(-1.5), rtol=1e-7)


def test_a_solution_of_constants_stays_plain():
    def f(x):
        return x * ode(lambda t, y: -y).set_initial_value(1.0).integrate(1.0)[0]

    assert grad(f)(2.0) == f(1.0)


def solout(p):
    r = ode(lambda t, y: -p * y).set_integrator("dopri5")
    times = []
    r.set_solout(lambda t, y: times.append(t))
    return r.set_initial_value(1.0).integrate(1.0)[0]


def too_many_steps(p):
    r = ode(lambda t, y: -p * y).set_integrator("dopri5", nsteps=1)
    return r.set_initial_value(1.0).integrate(100.0)[0]


def jump(p):
    return ode(lambda t, y: -y if t < p else y).set_integrator("dopri5").set_initial_value(1.0).integrate(2.0)[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "f, words",
    [(solout, "set_solout"), (too_many_steps, "failed"), (jump, "jumps near t = 1")],
)
def test_what_has_no_derivative_is_refused_by_name(f, words):
    with pytest.raises(effgrad.EffgradError, match=words):
        grad(f)(1.0)


def test_steps_in_compiled_code_are_refused():
    with effgrad.differential.definition("steps"), pytest.raises(effgrad.NoRule, match="steps of the method dopri5"):
        grad(lambda p: one_state(p)[0])(P)


def test_the_object_is_plain_outside_of_a_derivative():
    r = ode(lambda t, y: -y).set_initial_value(1.0)
    assert type(scipy.integrate.ode.integrate(r, 1.0)) is np.ndarray
