"""The speed of sound under the ground from echoes at the surface: full-waveform inversion.

The wave equation by central differences, with a rim that absorbs. Every unknown is the squared slowness of a cell.
Virieux and Operto 2009, Geophysics 74.
"""

import numpy as np

DEPTH, WIDTH, STEPS = 26, 40, 110
DX, DT = 10.0, 0.0016  # metres, seconds
SOURCES = [(2, 8), (2, 20), (2, 32)]
RECEIVERS = np.arange(2, WIDTH - 2, 2)


def wavelet(t, frequency=25.0):
    """Ricker's wavelet."""
    a = (np.pi * frequency * (t - 0.045)) ** 2
    return (1 - 2 * a) * np.exp(-a)


def sponge():
    """The factor by which each step damps the wave: 1 inside, less in the five cells at the rim, but not on top."""
    rows, columns = np.indices((DEPTH, WIDTH))
    depth = np.maximum(5 - np.minimum(columns, WIDTH - 1 - columns), 5 - (DEPTH - 1 - rows))
    return 1.0 - 0.015 * np.maximum(depth, 0) ** 1.5


def propagate(speed, source):
    """The pressure at the receivers for one source, of shape (steps, receivers)."""
    damping = sponge()
    before, now = np.zeros((DEPTH, WIDTH)), np.zeros((DEPTH, WIDTH))
    record = np.zeros((STEPS, len(RECEIVERS)))
    for i in range(STEPS):
        laplacian = np.zeros_like(now)
        laplacian[1:-1, 1:-1] = (
            now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1]
        ) / DX**2
        after = damping * (2 * now - damping * before + DT**2 * speed**2 * laplacian)
        after[source] += wavelet(i * DT)
        before, now = now, after
        record[i] = now[2, RECEIVERS]
    return record


def truth():
    """A slow lens and a fast layer in sound of 2,000 m/s."""
    rows, columns = np.indices((DEPTH, WIDTH))
    speed = np.where(rows > 17, 2300.0, 2000.0)
    speed[((rows - 10) / 3) ** 2 + ((columns - 22) / 7) ** 2 < 1] = 1700.0
    return speed


def data():
    return [propagate(truth(), source) for source in SOURCES]


def start():
    return np.full((DEPTH, WIDTH), 2000.0)


def objective(speed, records):
    """The squared distance of records that are computed and measured."""
    shots = zip(SOURCES, records, strict=True)
    return sum(np.sum((propagate(speed, source) - record) ** 2) for source, record in shots)
