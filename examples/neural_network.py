"""A small neural network that tells two interleaved spirals apart: multilayer perceptron, cross entropy.

The parameters are one vector, as optimisers want it; `layers` cuts it into the matrix and offset of each layer.
"""

import numpy as np

SIZES = (2, 16, 16, 1)


def data():
    """Points of shape (n, 2) on two noisy spirals, and the label of each, -1.0 or 1.0."""
    random = np.random.default_rng(1)
    turn = np.sqrt(np.linspace(0.02, 1.0, 150)) * 3.5 * np.pi
    spiral = turn[:, None] / 3.5 / np.pi * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    points = np.concatenate([spiral, -spiral]) + 0.02 * random.standard_normal((300, 2))
    return points, np.repeat([-1.0, 1.0], 150)


def start():
    random = np.random.default_rng(2)
    parts = [
        (random.standard_normal((n, m)) * np.sqrt(2.0 / n), random.standard_normal(m))
        for n, m in zip(SIZES, SIZES[1:], strict=False)
    ]
    return np.concatenate([part.ravel() for layer in parts for part in layer])


def layers(parameters):
    """The pairs of matrix and offset, as views of the vector."""
    position = 0
    for n, m in zip(SIZES, SIZES[1:], strict=False):
        matrix = parameters[position : position + n * m].reshape(n, m)
        offset = parameters[position + n * m : position + n * m + m]
        position += n * m + m
        yield matrix, offset


def predict(parameters, points):
    """The log odds that each point is on the second spiral."""
    *hidden, last = layers(parameters)
    x = 3.0 * points
    for matrix, offset in hidden:
        x = np.tanh(x @ matrix + offset)
    matrix, offset = last
    return (x @ matrix + offset)[:, 0]


def objective(parameters, data):
    """The mean cross entropy, with a little weight decay."""
    points, labels = data
    cross_entropy = np.mean(np.logaddexp(0.0, -labels * predict(parameters, points)))
    return cross_entropy + 1e-4 * np.sum(parameters**2)
