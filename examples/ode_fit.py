"""Lotka-Volterra rates from noisy counts of prey and predators, by least squares through a Runge-Kutta integrator.

    prey' = a prey - b prey predators        predators' = d prey predators - c predators

The parameters are the logarithms of (a, b, c, d), so that every rate is positive.
"""

import numpy as np

INITIAL = np.array([10.0, 5.0])
STEP = 0.1


def data():
    """Counts at 151 times, and the populations before the noise of 10 % was added; the true rates are in `TRUTH`."""
    truth = solve(np.log(TRUTH), 150)
    return truth * np.exp(0.1 * np.random.default_rng(0).standard_normal(truth.shape)), truth


TRUTH = np.array([1.1, 0.4, 0.4, 0.1])


def start():
    return np.log([0.8, 0.3, 0.6, 0.1])


def velocity(state, rates):
    prey, predators = state
    a, b, c, d = rates
    return np.array([a * prey - b * prey * predators, d * prey * predators - c * predators])


def solve(parameters, steps):
    """The populations at every step by the classical Runge-Kutta method, of shape (steps + 1, 2)."""
    rates = np.exp(parameters)
    states = np.zeros((steps + 1, 2))
    states[0] = INITIAL
    for i in range(steps):
        y = states[i]
        k1 = velocity(y, rates)
        k2 = velocity(y + STEP / 2 * k1, rates)
        k3 = velocity(y + STEP / 2 * k2, rates)
        k4 = velocity(y + STEP * k3, rates)
        states[i + 1] = y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return states


def objective(parameters, data):
    """The mean squared difference of the logarithms of counts and populations."""
    counts, _ = data
    return np.mean((np.log(solve(parameters, len(counts) - 1)) - np.log(counts)) ** 2)
