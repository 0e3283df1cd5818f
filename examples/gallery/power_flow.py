"""Losses of an electrical grid, and how they fall with the voltages of its generators.

A given voltage and power at each generator and a given load elsewhere decide the flow. It is the solution of the
power-flow equations, by Newton's method as grid operators use it. Grainger and Stevenson 1994, chapter 9.
"""

import numpy as np

# The nine buses of the WSCC test grid: from, to, resistance, reactance, charging, in units of 100 MVA.
LINES = np.array([
    [0, 3, 0.0, 0.0576, 0.0], [3, 4, 0.017, 0.092, 0.158], [4, 5, 0.039, 0.17, 0.358],
    [2, 5, 0.0, 0.0586, 0.0], [5, 6, 0.0119, 0.1008, 0.209], [6, 7, 0.0085, 0.072, 0.149],
    [7, 1, 0.0, 0.0625, 0.0], [7, 8, 0.032, 0.161, 0.306], [8, 3, 0.01, 0.085, 0.176],
])  # fmt: skip
GENERATORS, LOADS = [0, 1, 2], [3, 4, 5, 6, 7, 8]
POWER = np.array([0, 1.63, 0.85, 0, -0.9, 0, -1.0, 0, -1.25]) + 1j * np.array([0, 0, 0, 0, -0.3, 0, -0.35, 0, -0.5])


def data():
    """The admittance matrix of the grid, and the powers."""
    admittance = np.zeros((9, 9), dtype=complex)
    for i, j, resistance, reactance, charging in LINES:
        i, j, y = int(i), int(j), 1 / (resistance + 1j * reactance)
        admittance[i, j] -= y
        admittance[j, i] -= y
        admittance[i, i] += y + 0.5j * charging
        admittance[j, j] += y + 0.5j * charging
    return admittance, POWER


def start():
    """The voltages of the generators, relative to the nominal one."""
    return np.ones(3)


def power_flow(voltages, admittance, power):
    """The complex voltage of every bus for given voltages of generators; the first one sets the phase."""
    angle, size = np.zeros(9), np.ones(9)
    size[GENERATORS] = voltages
    for _ in range(10):
        v = size * np.exp(1j * angle)
        current = admittance @ v
        off = v * np.conj(current) - power
        mismatch = np.concatenate([off.real[1:], off.imag[LOADS]])
        by_angle = 1j * v[:, None] * np.conj(np.diag(current) - admittance * v)
        by_size = v[:, None] * np.conj(admittance * (v / size)) + np.diag(np.conj(current) * v / size)
        matrix = np.block([
            [by_angle.real[1:, 1:], by_size.real[1:, LOADS]],
            [by_angle.imag[LOADS, 1:], by_size.imag[np.ix_(LOADS, LOADS)]],
        ])  # fmt: skip
        change = np.linalg.solve(matrix, mismatch)
        angle[1:] -= change[:8]
        size[LOADS] -= change[8:]
        if np.max(np.abs(mismatch)) < 1e-10:
            break
    return size * np.exp(1j * angle)


def objective(voltages, data):
    """Losses in MW, and a price for voltages that are far from nominal."""
    v = power_flow(voltages, *data)
    losses = np.sum((v * np.conj(data[0] @ v)).real)
    return 100 * losses + 100 * np.sum((np.abs(v) - 1.0) ** 2)
