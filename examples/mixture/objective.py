"""A Gaussian mixture with a Wishart prior: the log posterior, in plain NumPy.

The objective of GradBench's `gmm` evaluation, with its corrections. Component k has the weight softmax(alpha)[k], the
mean mu[k], and the precision Q[k].T @ Q[k], where Q[k] is lower triangular: exp(q[k]) on its diagonal and l[k] below
it, column by column. Each precision has a Wishart prior with d + m + 1 degrees of freedom and scale 1 / gamma^2.
"""

import numpy as np
from scipy.special import gammaln


def logsumexp(a, axis):
    top = np.max(a, axis=axis, keepdims=True)
    return np.squeeze(top, axis=axis) + np.log(np.sum(np.exp(a - top), axis=axis))


def precision_factors(q, l):  # noqa: E741 (the papers' letter)
    """The lower triangular factors Q, of shape (k, d, d)."""
    k, d = q.shape
    column, row = np.triu_indices(d, 1)
    source = np.full((d, d), l.shape[1])  # where each entry comes from: l, or the zero appended to it
    source[row, column] = np.arange(l.shape[1])
    below = np.concatenate([l, np.zeros((k, 1))], axis=1)[:, source]
    return below + np.exp(q)[:, :, None] * np.eye(d)


def log_wishart_prior(q, factors, gamma, m):
    k, d = q.shape
    freedom = d + m + 1
    log_gamma_d = 0.25 * d * (d - 1) * np.log(np.pi) + np.sum(gammaln(0.5 * (freedom - np.arange(d))))
    constant = freedom * d * np.log(gamma / np.sqrt(2)) - log_gamma_d
    return k * constant + m * np.sum(q) - 0.5 * gamma**2 * np.sum(factors**2)


def objective(alpha, mu, q, l, x, gamma, m):  # noqa: E741
    """The log posterior density of the parameters, given the points x of shape (n, d)."""
    n, d = x.shape
    factors = precision_factors(q, l)
    whitened = np.einsum("kij,nkj->nki", factors, x[:, None, :] - mu)
    log_joint = alpha + np.sum(q, axis=1) - 0.5 * np.sum(whitened**2, axis=2)
    log_likelihood = np.sum(logsumexp(log_joint, 1)) - n * (logsumexp(alpha, 0) + 0.5 * d * np.log(2 * np.pi))
    return log_likelihood + log_wishart_prior(q, factors, gamma, m)
