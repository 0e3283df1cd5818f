"""Pricing, portfolios, and the statistics of returns."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

FMNM = "cantaro86/Financial-Models-Numerical-Methods"


def fmnm(checkout: Checkout, module: str) -> Any:
    checkout.bare("FMNM", "src/FMNM")
    stub("FMNM.cython", "FMNM.cython.solvers", "FMNM.cython.heston")
    return importlib.import_module(f"FMNM.{module}")


OPTION = {"S0": 100.0, "K": 105.0, "T": 1.0, "payoff": "call", "exercise": "European"}


@program(FMNM, "`BS_pricer.BlackScholes`, by spot, strike, time, rate and volatility")
def black_scholes(checkout: Checkout) -> tuple[Any, ...]:
    price = fmnm(checkout, "BS_pricer").BS_pricer.BlackScholes
    return lambda *x: price("put", *x), 100.0, 105.0, 1.2, 0.03, 0.25


@program(FMNM, "`BS_pricer.PDE_price`, finite differences with a sparse solve, by rate and volatility")
def black_scholes_equation(checkout: Checkout) -> tuple[Any, ...]:
    pricer = fmnm(checkout, "BS_pricer").BS_pricer

    def price(r: Any, sig: Any) -> Any:
        process = SimpleNamespace(r=r, mu=r, sig=sig, exp_RV=None)
        return pricer(SimpleNamespace(**OPTION), process).PDE_price((40, 20), solver="splu")

    return price, 0.05, 0.3


@program(FMNM, "`VG_pricer.closed_formula`, quadrature of a density, by the process's parameters")
def variance_gamma(checkout: Checkout) -> tuple[Any, ...]:
    pricer = fmnm(checkout, "VG_pricer").VG_pricer

    def price(r: Any, sigma: Any, theta: Any, kappa: Any) -> Any:
        process = SimpleNamespace(r=r, sigma=sigma, theta=theta, kappa=kappa, exp_RV=None)
        return pricer(SimpleNamespace(**OPTION), process).closed_formula()

    return price, 0.05, 0.2, -0.1, 0.1


@program(FMNM, "`VG_pricer.PIDE_price`, a jump process on a grid, by rate, volatility and drift")
def variance_gamma_equation(checkout: Checkout) -> tuple[Any, ...]:
    pricer = fmnm(checkout, "VG_pricer").VG_pricer

    def price(r: Any, sigma: Any, theta: Any) -> Any:
        process = SimpleNamespace(r=r, sigma=sigma, theta=theta, kappa=0.1, exp_RV=None)
        return pricer(SimpleNamespace(**OPTION), process).PIDE_price((40, 10))

    return price, 0.05, 0.2, -0.1


@program(FMNM, "`VG_pricer.FFT`, prices at four strikes by a Fourier transform and a spline")
def variance_gamma_fourier(checkout: Checkout) -> tuple[Any, ...]:
    pricer = fmnm(checkout, "VG_pricer").VG_pricer

    def prices(r: Any, sigma: Any, theta: Any, kappa: Any) -> Any:
        process = SimpleNamespace(r=r, sigma=sigma, theta=theta, kappa=kappa, exp_RV=None)
        return pricer(SimpleNamespace(**OPTION), process).FFT([90.0, 100.0, 105.0, 120.0])

    return prices, 0.05, 0.2, -0.1, 0.1


@program(FMNM, "`cf_Heston_good`, a complex characteristic function, by its seven parameters")
def heston(checkout: Checkout) -> tuple[Any, ...]:
    cf, u = fmnm(checkout, "CF").cf_Heston_good, np.linspace(0.1, 5, 7)
    return lambda *x: cf(u, *x), 1.5, 0.04, 0.03, 2.0, 0.05, 0.4, -0.6


@program(FMNM, "`NIG_pdf`, `VG_pdf` and `Merton_pdf`, with Bessel functions, by their parameters")
def jump_densities(checkout: Checkout) -> tuple[Any, ...]:
    module = fmnm(checkout, "probabilities")

    def densities(x: Any, theta: Any, sigma: Any) -> Any:
        nig = module.NIG_pdf(x, 1.5, 0.1, theta, sigma, 0.4)
        return nig, module.Merton_pdf(x, 1.5, theta, sigma, 0.8, 0.1, 0.3)

    return densities, np.linspace(-0.4, 0.5, 5), -0.1, 0.2


@program("quantopian/empyrical", "`sharpe_ratio`, `sortino_ratio`, `max_drawdown` and others, by daily returns")
def returns(checkout: Checkout) -> tuple[Any, ...]:
    stub("six", iteritems=dict.items)
    checkout.bare("empyrical", "empyrical")
    vars(np)["NINF"] = -np.inf  # a name of NumPy 1
    stats = importlib.import_module("empyrical.stats")
    names = ("sharpe_ratio", "sortino_ratio", "annual_volatility", "cum_returns_final", "max_drawdown", "tail_ratio")
    daily = np.random.default_rng(0).normal(0.001, 0.01, size=30)
    return lambda r: [getattr(stats, name)(r) for name in names], daily


@program("vollib/py_lets_be_rational", "`black`: the undiscounted price of an option, and `normalised_vega`")
def rational(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.package("py_lets_be_rational.lets_be_rational")

    def prices(forward: Any, strike: Any, volatility: Any) -> Any:
        return module.black(forward, strike, volatility, 0.5, 1.0), module.normalised_vega(0.1, volatility)

    return prices, 100.0, 110.0, 0.3


@program("vollib/py_lets_be_rational", "an implied volatility by price, forward and strike")
def implied_volatility(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.package("py_lets_be_rational.lets_be_rational")
    implied = module.implied_volatility_from_a_transformed_rational_guess
    return lambda *x: implied(*x, 0.5, 1.0), 5.0, 100.0, 110.0
