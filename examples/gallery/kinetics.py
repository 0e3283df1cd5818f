"""Rates of a stiff reaction from concentrations: Robertson's three substances, by implicit Euler steps.

    A -> B         k1
    B + B -> C + B k2
    B + C -> A + C k3

The rates differ by nine orders of magnitude, so every step solves its equations by Newton's method.
Hairer and Wanner 1996, Solving Ordinary Differential Equations II, section IV.1.
"""

import numpy as np

TRUTH = np.log([0.04, 3e7, 1e4])
ERRORS = np.array([0.01, 1e-6, 0.01])
TIMES = np.concatenate([[0.0], np.logspace(-5, 3, 40)])


def velocity(y, rates):
    k1, k2, k3 = rates
    a, b, c = y
    first, second, third = k1 * a, k2 * b**2, k3 * b * c
    return np.array([third - first, first - second - third, second])


def slopes(y, rates):
    """The Jacobian of the velocity in the concentrations, written out as chemists do."""
    k1, k2, k3 = rates
    _, b, c = y
    return np.array([[-k1, k3 * c, k3 * b], [k1, -2 * k2 * b - k3 * c, -k3 * b], [0.0, 2 * k2 * b, 0.0]])


def step(y, rates, dt):
    """One implicit Euler step: the solution of new = y + dt velocity(new)."""
    new = y
    for _ in range(20):
        error = new - y - dt * velocity(new, rates)
        change = np.linalg.solve(np.eye(3) - dt * slopes(new, rates), error)
        new = new - change
        if np.max(np.abs(change)) < 1e-12:
            break
    return new


def simulate(parameters):
    """The concentrations at `TIMES`, of shape (41, 3)."""
    rates = np.exp(parameters)
    y = np.zeros((len(TIMES), 3))
    y[0, 0] = 1.0
    for i in range(1, len(TIMES)):
        y[i] = step(y[i - 1], rates, TIMES[i] - TIMES[i - 1])
    return y


def data():
    """Measured concentrations at `TIMES[1:]`, with errors of `ERRORS`."""
    exact = simulate(TRUTH)[1:]
    return exact + ERRORS * np.random.default_rng(0).standard_normal(exact.shape)


def start():
    return np.log([0.06, 2e7, 2e4])


def residuals(parameters, measured):
    """The differences from what was measured, each over its error."""
    return np.ravel((simulate(parameters)[1:] - measured) / ERRORS)


def objective(parameters, measured):
    return np.sum(residuals(parameters, measured) ** 2)
