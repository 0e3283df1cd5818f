"""A cart swings up its pendulum: forces for 60 steps that leave it upright and at rest.

Direct single shooting: the forces are the unknowns, and the dynamics are simulated by Runge-Kutta steps.
Kelly 2017, SIAM Review 59.
"""

import numpy as np

CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81  # kilograms, metres
STEPS, DT = 60, 1.0 / 30


def velocity(state, force):
    """The derivative of position, angle (0 hanging down), and their speeds."""
    x, angle, speed, turn = state
    sine, cosine = np.sin(angle), np.cos(angle)
    mass = CART + POLE * sine**2
    pull = force + POLE * sine * (LENGTH * turn**2 + GRAVITY * cosine)
    torque = -force * cosine - POLE * LENGTH * turn**2 * cosine * sine - (CART + POLE) * GRAVITY * sine
    return np.array([speed, turn, pull / mass, torque / (LENGTH * mass)])


def simulate(forces):
    """The states at every step, of shape (steps + 1, 4)."""
    states = np.zeros((STEPS + 1, 4))
    for i, force in enumerate(forces):
        y = states[i]
        k1 = velocity(y, force)
        k2 = velocity(y + DT / 2 * k1, force)
        k3 = velocity(y + DT / 2 * k2, force)
        k4 = velocity(y + DT * k3, force)
        states[i + 1] = y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return states


def data():
    """The wanted last state, and what a deviation from each of its numbers costs."""
    return np.array([0.0, np.pi, 0.0, 0.0]), np.array([30.0, 100.0, 5.0, 5.0])


def start():
    return 2.0 * np.sin(np.arange(STEPS) * DT * 4.0)


def objective(forces, data):
    """Squared forces, changes of force, and the distance from the wanted end."""
    target, price = data
    end = simulate(forces)[-1]
    effort = np.sum(forces**2) * DT / 20 + np.sum(np.diff(forces) ** 2) / 100
    return effort + np.sum(price * (end - target) ** 2)
