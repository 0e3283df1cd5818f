"""Gaussian process regression: lengthscale, variance and noise by the marginal likelihood of the data.

The parameters are the logarithms of the three. The kernel is variance exp(-(x - x')^2 / (2 lengthscale^2)); Rasmussen
and Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1.
"""

import numpy as np


def data():
    """Sixty noisy values of a smooth function, with a gap without any."""
    random = np.random.default_rng(3)
    x = np.sort(np.concatenate([random.uniform(-5.0, 0.5, 40), random.uniform(2.5, 5.0, 20)]))
    return x, np.sin(1.5 * x) + 0.3 * x + 0.2 * random.standard_normal(60)


def start():
    return np.log([3.0, 1.0, 1.0])


def kernel(x1, x2, lengthscale, variance):
    return variance * np.exp(-0.5 * ((x1[:, None] - x2) / lengthscale) ** 2)


def objective(parameters, data):
    """The negative log marginal likelihood of the values y at x."""
    x, y = data
    lengthscale, variance, noise = np.exp(parameters)
    factor = np.linalg.cholesky(kernel(x, x, lengthscale, variance) + noise**2 * np.eye(len(x)))
    whitened = np.linalg.solve(factor, y)
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
    return 0.5 * (whitened @ whitened + log_determinant + len(x) * np.log(2.0 * np.pi))


def predict(parameters, data, new):
    """The mean and standard deviation of the function at new points."""
    x, y = data
    lengthscale, variance, noise = np.exp(parameters)
    across = kernel(x, new, lengthscale, variance)
    weights = np.linalg.solve(kernel(x, x, lengthscale, variance) + noise**2 * np.eye(len(x)), across)
    return weights.T @ y, np.sqrt(np.maximum(variance - np.sum(weights * across, axis=0), 0.0))
