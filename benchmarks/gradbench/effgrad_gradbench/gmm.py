"""A Gaussian mixture with a Wishart prior: the log posterior, and its gradient.

Component k has the weight softmax(alpha)[k], the mean mu[k] and the precision Q[k].T @ Q[k], where Q[k] is lower
triangular: exp(q[k]) on its diagonal and l[k] below it, column by column. Each precision has a Wishart prior with
d + m + 1 degrees of freedom and scale 1 / gamma^2.
"""

import numpy as np
from scipy.special import multigammaln

from effgrad import checkpoint, grad
from effgrad_gradbench.fields import BadInput, array, field, integer, number

# How many arrays of a number for each point, component and dimension the gradient of `likelihood` has at once.
ARRAYS = 6


def logsumexp(a):
    top = np.max(a, axis=-1, keepdims=True)
    return top[..., 0] + np.log(np.sum(np.exp(a - top), axis=-1))


def precision_factors(q, l):  # noqa: E741 (the suite's letter)
    k, d = q.shape
    column, row = np.triu_indices(d, 1)
    factors = np.zeros((k, d, d))
    factors[:, row, column] = l
    factors[:, np.arange(d), np.arange(d)] = np.exp(q)
    return factors


def likelihood(alpha, mu, q, factors, x):
    """The sum over points of the logarithm of their density, up to what does not depend on the point."""
    whitened = x @ np.swapaxes(factors, 1, 2) - np.swapaxes(factors @ mu[:, :, None], 1, 2)
    beta = (alpha + np.sum(q, axis=1))[:, None] - 0.5 * np.sum(whitened**2, axis=2)
    return np.sum(logsumexp(beta.T))


def objective(alpha, mu, q, l, x, gamma, m, memory=None):  # noqa: E741
    """The log posterior; its gradient needs about `memory` bytes beside the arguments, if that is given."""
    (n, d), k = x.shape, len(alpha)
    factors = precision_factors(q, l)
    if memory is None:
        total = likelihood(alpha, mu, q, factors, x)
    else:
        # A block of points is forgotten after its part of the sum, and computed again when the gradient needs it.
        size = max(1, int(memory / (x.itemsize * k * d * ARRAYS)))
        blocks = [x[start : start + size] for start in range(0, n, size)]
        total = sum(checkpoint(likelihood, alpha, mu, q, factors, block) for block in blocks)
    total = total - n * (0.5 * d * np.log(2 * np.pi) + logsumexp(alpha))
    freedom = d + m + 1
    constant = freedom * d * np.log(gamma / np.sqrt(2)) - multigammaln(0.5 * freedom, d)
    return total + k * constant - 0.5 * gamma**2 * np.sum(factors**2) + m * np.sum(q)


def jacobian(*arguments):
    gradient = grad(objective, (0, 1, 2, 3))(*arguments)
    return dict(zip(("alpha", "mu", "q", "l"), gradient, strict=True))


FUNCTIONS = {"objective": objective, "jacobian": jacobian}


def read(source):
    d, k, n = (integer(source, name) for name in "dkn")
    triangle = array(source, "l", k, d * (d - 1) // 2)
    gamma = number(field(source, "gamma"), "gamma")
    if gamma <= 0:
        raise BadInput(f"gamma is {gamma}, but must be positive")
    parameters = array(source, "alpha", k), array(source, "mu", k, d), array(source, "q", k, d), triangle
    return *parameters, array(source, "x", n, d), gamma, integer(source, "m", least=0)
