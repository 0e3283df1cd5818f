"""Calibration of Heston's model of stochastic volatility to the prices of European options.

A price is an integral over the characteristic function of the logarithm of the stock, by Gauss and Legendre's rule.
Heston 1993, Review of Financial Studies 6; the form without jumps of Albrecher et al. 2007.
"""

import numpy as np

SPOT, RATE = 100.0, 0.02
STRIKES = np.linspace(80.0, 125.0, 10)
MATURITIES = np.array([0.25, 0.5, 1.0, 2.0])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
NODES, WEIGHTS = 60.0 * (NODES + 1.0), 60.0 * WEIGHTS  # from -1 .. 1 to 0 .. 120

# Reversion, mean variance, volatility of the variance, correlation, variance today.
TRUTH = np.array([2.0, 0.05, 0.45, -0.65, 0.03])


def characteristic(u, maturity, parameters):
    """The expected value of exp(i u log(S_T / S_0)), for an array of complex u."""
    reversion, mean, volatility, correlation, variance = parameters
    beta = reversion - correlation * volatility * 1j * u
    d = np.sqrt(beta**2 + volatility**2 * (1j * u + u**2))
    g = (beta - d) / (beta + d)
    decay = np.exp(-d * maturity)
    level = (beta - d) * maturity - 2 * np.log((1 - g * decay) / (1 - g))
    slope = (beta - d) * (1 - decay) / (1 - g * decay)
    return np.exp(1j * u * RATE * maturity + (reversion * mean * level + variance * slope) / volatility**2)


def prices(parameters):
    """Prices of calls, of shape (maturities, strikes). Lewis 2001: one integral along Im u = -1/2."""
    result = np.zeros((len(MATURITIES), len(STRIKES)))
    u = NODES - 0.5j
    for i, maturity in enumerate(MATURITIES):
        phi = characteristic(u, maturity, parameters)
        for j, strike in enumerate(STRIKES):
            wave = np.exp(1j * NODES * np.log(SPOT / strike))
            integral = np.sum(WEIGHTS * np.real(wave * phi) / (NODES**2 + 0.25))
            result[i, j] = SPOT - np.sqrt(SPOT * strike) * np.exp(-RATE * maturity) / np.pi * integral
    return result


def data():
    """Quoted prices, to the cent."""
    return np.round(prices(TRUTH), 2)


def start():
    return np.array([1.0, 0.08, 0.8, -0.3, 0.06])


def residuals(parameters, quotes):
    return np.ravel(prices(parameters) - quotes)


def objective(parameters, quotes):
    return np.sum(residuals(parameters, quotes) ** 2)
