"""The programs of `staging.py` in JAX (jit) or PyTorch (eager): `python peers.py jax|torch arguments.npz`.

Prints a line for each program: the times of the primal and of the value with its gradient, of the first call, and the
gradient's sum.
"""

import json
import math
import sys
import time

import numpy as np


def log_sum_exp(x, lib):
    return lib.logsumexp(x, 0)


def gmm(alpha, mu, q, l, x, lib):  # noqa: E741 (the papers' letter)
    xp, (k, d), n = lib.xp, q.shape, x.shape[0]
    column, row = np.triu_indices(d, 1)
    source = np.full((d, d), l.shape[1])
    source[row, column] = np.arange(l.shape[1])
    below = xp.concatenate([l, lib.zeros((k, 1))], axis=1)[:, source]
    factors = below + xp.exp(q)[:, :, None] * lib.array(np.eye(d))
    whitened = xp.einsum("kij,nkj->nki", factors, x[:, None, :] - mu)
    log_joint = alpha + xp.sum(q, axis=1) - 0.5 * xp.sum(whitened**2, axis=2)
    likelihood = xp.sum(lib.logsumexp(log_joint, 1)) - n * (lib.logsumexp(alpha, 0) + 0.5 * d * math.log(2 * math.pi))
    freedom = d + 1
    gammas = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (freedom - i)) for i in range(d))
    return likelihood + k * (freedom * d * math.log(1 / math.sqrt(2)) - gammas) - 0.5 * xp.sum(factors**2)


def lstm(p, inputs, lib):
    """A layer of independent LSTM cells, as in GradBench's `lstm`, and the log loss of its predictions."""
    xp = lib.xp

    def sigmoid(x):
        return 1 / (1 + xp.exp(-x))

    def step(carry, rows):
        hidden, cell, loss = carry
        now, after = rows
        forget, ingate = sigmoid(now * p[0] + p[1]), sigmoid(hidden * p[2] + p[3])
        outgate, change = sigmoid(now * p[4] + p[5]), xp.tanh(hidden * p[6] + p[7])
        cell = cell * forget + ingate * change
        hidden = outgate * xp.tanh(cell)
        prediction = hidden * p[8] + p[9]
        return (hidden, cell, loss + xp.log(2 + xp.sum(xp.exp(prediction))) - xp.sum(after * prediction)), None

    zeros = lib.zeros((inputs.shape[1],))
    return lib.scan(step, (zeros, zeros, lib.zeros(())), (inputs[:-1], inputs[1:]))[0][2]


def ode(x, lib):
    """Twenty steps of Runge and Kutta on the Brusselator of n cells in a ring."""
    xp, h = lib.xp, 0.01

    def slope(u, v):
        diffusion = [xp.roll(w, 1) - 2 * w + xp.roll(w, -1) for w in (u, v)]
        return 1 + u * u * v - 4.4 * u + 0.1 * diffusion[0], 3.4 * u - u * u * v + 0.1 * diffusion[1]

    u, v = x[0], x[1]
    for _ in range(20):
        a = slope(u, v)
        b = slope(u + h / 2 * a[0], v + h / 2 * a[1])
        c = slope(u + h / 2 * b[0], v + h / 2 * b[1])
        d = slope(u + h * c[0], v + h * c[1])
        u, v = (w + h / 6 * (k + 2 * m + 2 * r + s) for w, k, m, r, s in zip((u, v), a, b, c, d, strict=True))
    return xp.sum(u * u + v)


def unrolled(step, carry, rows):
    """A scan as a loop of Python's."""
    for pair in zip(*rows, strict=True):
        carry, _ = step(carry, pair)
    return carry, None


class Jax:
    def __init__(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.xp, self.array, self.zeros = jax, jax.numpy, jax.numpy.asarray, jax.numpy.zeros
        self.logsumexp, self.scan = jax.scipy.special.logsumexp, jax.lax.scan

    def compiled(self, f, count):
        primal, gradient = self.jax.jit(f), self.jax.jit(self.jax.value_and_grad(f, tuple(range(count))))
        return [lambda *a, g=g: self.jax.block_until_ready(g(*a)) for g in (primal, gradient)]


class Torch:
    def __init__(self):
        import torch

        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        self.xp, self.array, self.zeros, self.logsumexp = torch, torch.as_tensor, torch.zeros, torch.logsumexp
        self.scan = unrolled

    def compiled(self, f, count):
        def gradient(*args):
            varied = [a.clone().requires_grad_() for a in args[:count]]
            value = f(*varied, *args[count:])
            value.backward()
            return value, [v.grad for v in varied]

        return f, gradient


PROGRAMS = {"gmm": (gmm, 4), "lstm": (lstm, 1), "logsumexp": (log_sum_exp, 1), "ode": (ode, 1)}


def best(f, *args, runs=7):
    times = []
    for _ in range(runs):
        start = time.process_time()
        f(*args)
        times.append(time.process_time() - start)
        if sum(times) > 2:
            break
    return min(times)


def main(library, path):
    lib = {"jax": Jax, "torch": Torch}[library]()
    with np.load(path) as arrays:
        names = dict.fromkeys(key.rpartition("/")[0] for key in arrays)
        for name in names:
            program, count = PROGRAMS[name.split()[0]]
            args = [lib.array(arrays[key]) for key in arrays if key.rpartition("/")[0] == name]
            primal, gradient = lib.compiled(lambda *a, program=program: program(*a, lib), count)
            row = {
                "first call s": best(gradient, *args, runs=1),
                "primal ms": (best(primal, *args, runs=1), best(primal, *args))[1] * 1e3,
                "gradient ms": best(gradient, *args) * 1e3,
                "sum": float(sum(np.abs(np.asarray(part)).sum() for part in gradient(*args)[1])),
            }
            print(json.dumps([name, row]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
