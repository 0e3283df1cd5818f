"""Pulses that make a gate of two quantum bits: gradient ascent pulse engineering (GRAPE).

Two spins interact all the time, and fields along x and y turn each. Which fields, constant for each of 20 steps, make
them a CNOT gate? Khaneja et al. 2005, Journal of Magnetic Resonance 172.
"""

import numpy as np
from scipy.linalg import expm

STEPS, DT = 20, 0.12
X = np.array([[0, 1], [1, 0]], dtype=complex) / 2
Y = np.array([[0, -1j], [1j, 0]]) / 2
Z = np.array([[1, 0], [0, -1]], dtype=complex) / 2
ONE = np.eye(2)
COUPLING = 2 * np.pi * np.kron(Z, Z)
FIELDS = np.array([np.kron(X, ONE), np.kron(Y, ONE), np.kron(ONE, X), np.kron(ONE, Y)])


def data():
    """The gate: the second bit is turned around if the first one is 1."""
    return np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=complex)


def start():
    """The strength of each field in each step."""
    return np.random.default_rng(0).standard_normal((STEPS, 4))


def evolve(fields):
    """The unitary operator after each step, of shape (steps + 1, 4, 4)."""
    operators = [np.eye(4, dtype=complex)]
    for strengths in fields:
        hamiltonian = COUPLING + np.tensordot(strengths, FIELDS, axes=1)
        operators.append(expm(-1j * DT * hamiltonian) @ operators[-1])
    return np.array(operators)


def objective(fields, gate):
    """The infidelity, which is 0 for the gate up to a phase, and a small price for strong fields."""
    overlap = np.trace(np.conj(gate).T @ evolve(fields)[-1]) / 4
    return 1.0 - np.abs(overlap) ** 2 + 1e-5 * np.mean(fields**2)
