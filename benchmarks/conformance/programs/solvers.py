"""Programs that call SciPy's solvers: roots, minima, fits, differential equations, quadrature."""

import importlib
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

FMNM = "cantaro86/Financial-Models-Numerical-Methods"


@program("vollib/py_vollib", "`implied_volatility` of Black and Scholes, by `brentq`, by price, spot, strike and time")
def implied_by_brentq(checkout: Checkout) -> tuple[Any, ...]:
    stub("py_lets_be_rational", "py_lets_be_rational.exceptions")
    checkout.bare("py_vollib", "py_vollib")
    module = checkout.package("py_vollib.ref_python.black_scholes.implied_volatility")
    return lambda price, s, k, t: module.implied_volatility(price, s, k, t, 0.01, "c"), 9.0, 100.0, 102.0, 0.5


@program("TheAlgorithms/Python", "`gamma_iterative`: the gamma function by `quad`")
def gamma_function(checkout: Checkout) -> tuple[Any, ...]:
    return checkout.load("maths/gamma.py").gamma_iterative, 3.5


@program("colour-science/colour", "`uv_to_CCT_Krystek1985`: the temperature of a colour, by `minimize`")
def temperature(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.package("colour.temperature.krystek1985")
    return module.uv_to_CCT_Krystek1985, np.array([0.205, 0.315])


@program("pvlib/pvlib-python", "`bishop88_i_from_v`, `bishop88_mpp`: a cell's current and power, by `brentq`, `newton`")
def diode(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("pvlib", "pvlib")
    checkout.bare("pvlib.ivtools", "pvlib/ivtools")
    cell = importlib.import_module("pvlib.singlediode")

    def currents(*x: Any) -> Any:
        found = [cell.bishop88_i_from_v(0.45, *x, method=method) for method in ("brentq", "newton")]
        return [*found, *cell.bishop88_mpp(*x, method="newton")]

    return currents, 7.0, 6e-7, 0.1, 20.0, 0.5


@program(FMNM, "`Gil_Pelaez_pdf`: a density from its characteristic function, by `quad`")
def gil_pelaez(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("FMNM", "src/FMNM")
    module = importlib.import_module("FMNM.probabilities")

    def density(x: Any, mean: Any, scale: Any) -> Any:
        return module.Gil_Pelaez_pdf(x, lambda u: np.exp(1j * u * mean - 0.5 * (scale * u) ** 2), 60.0)

    return density, 0.3, 0.1, 0.8


@program("python-control/python-control", "`input_output_response`: a pendulum by `solve_ivp`, by its parameters")
def pendulum(checkout: Checkout) -> tuple[Any, ...]:
    control = checkout.package("control")

    def response(state: Any, damping: Any, length: Any) -> Any:
        def update(t: Any, x: Any, u: Any, params: Any) -> Any:
            return np.array([x[1], -9.81 / length * np.sin(x[0]) - damping * x[1] + u[0]])

        system = control.nlsys(update, None, inputs=1, states=2, outputs=2)
        options = {"rtol": 1e-10, "atol": 1e-12, "method": "DOP853"}
        times, inputs = np.linspace(0, 2, 11), np.ones(11)
        return control.input_output_response(system, times, inputs, state, solve_ivp_kwargs=options).y

    return response, np.array([0.4, 0.0]), 0.2, 1.3


@program("python-control/python-control", "`find_operating_point`, by `root`, by a pendulum's parameters")
def operating_point(checkout: Checkout) -> tuple[Any, ...]:
    control = checkout.package("control")

    def point(length: Any, torque: Any) -> Any:
        def update(t: Any, x: Any, u: Any, params: Any) -> Any:
            return np.array([x[1], -9.81 / length * np.sin(x[0]) - 0.2 * x[1] + u[0]])

        system = control.nlsys(update, None, inputs=1, states=2, outputs=2)
        return control.find_operating_point(system, [0.1, 0.0], [torque], iu=[0])[0]

    return point, 1.3, 1.0
