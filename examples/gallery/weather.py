"""The weather of yesterday from few stations: four-dimensional variational assimilation (4D-Var).

Forty sites on a circle of latitude follow Lorenz' model of 1996. Every second site is observed every few steps; the
unknown is the state at the beginning, near a first guess. Lorenz and Emanuel 1998, Journal of the Atmospheric Sciences.
"""

import numpy as np

SITES, STEPS, DT, FORCING = 40, 24, 0.05, 8.0
STATIONS = np.arange(0, SITES, 2)
HOURS = np.arange(2, STEPS + 1, 2)
GUESS_ERROR, STATION_ERROR = 1.0, 0.3


def tendency(x):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + FORCING


def forecast(x, steps=STEPS):
    """The state at every step, of shape (steps + 1, sites)."""
    states = [x]
    for _ in range(steps):
        k1 = tendency(x)
        k2 = tendency(x + DT / 2 * k1)
        k3 = tendency(x + DT / 2 * k2)
        k4 = tendency(x + DT * k3)
        x = x + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(x)
    return np.stack(states)


def data():
    """The first guess, the observations of shape (hours, stations), and the truth."""
    random = np.random.default_rng(0)
    truth = forecast(FORCING + random.standard_normal(SITES), 400)[-1]
    guess = truth + GUESS_ERROR * random.standard_normal(SITES)
    seen = forecast(truth)[np.ix_(HOURS, STATIONS)]
    return guess, seen + STATION_ERROR * random.standard_normal(seen.shape), truth


def start():
    return data()[0]


def objective(x, data):
    """The distance from the first guess and from the observations, each by its error."""
    guess, seen, _ = data
    misfit = forecast(x)[np.ix_(HOURS, STATIONS)] - seen
    return 0.5 * np.sum((x - guess) ** 2) / GUESS_ERROR**2 + 0.5 * np.sum(misfit**2) / STATION_ERROR**2
