"""A digital low-pass filter with nearly constant delay, as a cascade of second-order sections.

Radii and angles of poles and zeros are the unknowns. The response is compared with a band that passes, delayed by
some samples, and one that stops. Rabiner and Gold 1975, chapter 4.
"""

import numpy as np

SECTIONS = 4
FREQUENCIES = np.linspace(0.0, np.pi, 257)
PASS, STOP = 0.30 * np.pi, 0.42 * np.pi
DELAY = 9.0


def data():
    """The wanted response, and the weight of each frequency (little between the bands)."""
    wanted = np.where(FREQUENCIES <= PASS, np.exp(-1j * DELAY * FREQUENCIES), 0.0)
    weight = np.where(FREQUENCIES <= PASS, 1.0, np.where(FREQUENCIES >= STOP, 3.0, 0.003))
    return wanted, weight


def start():
    """Gain, then for each section the logit of the pole's radius, its angle, and radius and angle of the zero."""
    poles = [[0.5, angle, 1.0, 2.0 + 0.3 * i] for i, angle in enumerate(np.linspace(0.15, 0.9, SECTIONS))]
    return np.concatenate([[-3.0], np.ravel(poles)])


def section(z, radius, angle):
    """The polynomial 1 - 2 r cos(angle) / z + r^2 / z^2, on the unit circle."""
    return 1.0 - 2.0 * radius * np.cos(angle) / z + radius**2 / z**2


def response(parameters, frequencies):
    """The complex response at each frequency, in radians a sample."""
    z = np.exp(1j * frequencies)
    result = np.exp(parameters[0]) * np.ones_like(z)
    for i in range(SECTIONS):
        logit, pole, zero_radius, zero = parameters[1 + 4 * i : 5 + 4 * i]
        radius = 0.98 / (1.0 + np.exp(-logit))  # inside the unit circle: stable
        result *= section(z, zero_radius, zero) / section(z, radius, pole)
    return result


def objective(parameters, data):
    """The weighted mean square distance from the wanted response."""
    wanted, weight = data
    return np.mean(weight * np.abs(response(parameters, FREQUENCIES) - wanted) ** 2)


def group_delay(parameters, frequencies):
    """The delay in samples: minus the slope of the phase."""
    step = 1e-5
    turn = response(parameters, frequencies + step) / response(parameters, frequencies - step)
    return -np.angle(turn) / (2 * step)
