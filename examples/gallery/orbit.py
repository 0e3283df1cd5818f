"""The orbit of an asteroid from directions seen from the Earth, as Gauss found Ceres again.

The state is position and velocity in astronomical units and years; the Sun attracts, and Jupiter disturbs. The
integrator is Störmer and Verlet's, and the residuals are seconds of arc over their error.
"""

import numpy as np

SUN = 4 * np.pi**2  # the Sun's mass times the constant of gravity
JUPITER = SUN / 1047.35
STEP = 1.0 / 120
NIGHTS = np.arange(5, 121, 5)  # steps at which the asteroid is seen
ERROR = 2.0  # of a direction, in seconds of arc
TRUTH = np.array([2.1, 1.4, 0.25, -2.6, 3.6, 0.35])


def circle(radius, period, t, phase=0.0):
    angle = 2 * np.pi * t / period + phase
    return radius * np.array([np.cos(angle), np.sin(angle), 0.0])


def acceleration(position, t):
    jupiter = circle(5.2, 11.86, t, phase=0.9)
    away = jupiter - position
    disturbance = away / np.linalg.norm(away) ** 3 - jupiter / np.linalg.norm(jupiter) ** 3
    return -SUN * position / np.linalg.norm(position) ** 3 + JUPITER * disturbance


def propagate(state, steps):
    """The position at every step, of shape (steps + 1, 3)."""
    position, velocity = state[:3], state[3:]
    path = [position]
    force = acceleration(position, 0.0)
    for i in range(steps):
        velocity = velocity + STEP / 2 * force
        position = position + STEP * velocity
        force = acceleration(position, (i + 1) * STEP)
        velocity = velocity + STEP / 2 * force
        path.append(position)
    return np.array(path)


def directions(state):
    """Longitude and latitude seen from the Earth on each night, in radians."""
    earth = np.array([circle(1.0, 1.0, i * STEP) for i in NIGHTS])
    x, y, z = (propagate(state, NIGHTS[-1])[NIGHTS] - earth).T
    return np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))


def data():
    random = np.random.default_rng(1)
    seen = np.array(directions(TRUTH))
    return seen + np.radians(ERROR / 3600) * random.standard_normal(seen.shape)


def start():
    return np.array([2.0, 1.5, 0.2, -2.4, 3.4, 0.3])


def residuals(state, seen):
    longitude, latitude = directions(state)
    off = np.concatenate([(longitude - seen[0]) * np.cos(seen[1]), latitude - seen[1]])
    return np.degrees(off) * 3600 / ERROR


def objective(state, seen):
    return np.sum(residuals(state, seen) ** 2)
