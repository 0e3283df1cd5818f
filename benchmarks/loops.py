"""Gradients of programs with loops of numbers and small arrays, in plain Python, beside the program's own run and JAX.

    python benchmarks/loops.py [--programs rk4,kalman] [--steps 1000,10000,100000,1000000]

Each program is a loop of `n` steps as one writes it. `f` is the time of its run by Python, measured at the smallest `n`
and taken to grow with `n`; the gradient is compiled. Where JAX is installed, its gradient of the same program, written
by hand with scans, stands beside it. Times are processor time of one thread, the best of several calls; `error` is the
difference of the derivative along a direction from a difference quotient, at the smallest `n`, and `difference` that of
our gradient from JAX's.
"""

import argparse
import importlib.util
import os
import tempfile
import time

# First calls compile: nothing is kept from earlier runs.
os.environ["EFFGRAD_CACHE"] = tempfile.mkdtemp()
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import effgrad

clock = time.process_time


def rk4(n):
    """Lorenz's equations by the classical Runge-Kutta method."""

    def slope(y, p):
        return np.array([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    def f(y, p):
        h = 1.0 / n
        for _ in range(n):
            a = slope(y, p)
            b = slope(y + 0.5 * h * a, p)
            c = slope(y + 0.5 * h * b, p)
            d = slope(y + h * c, p)
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return y @ y

    return f, (np.array([1.0, 2.0, 3.0]), np.array([10.0, 28.0, 8 / 3]))


def lotka(n):
    """Two species by Euler's method, on floats."""

    def f(x, y):
        h = 5.0 / n
        for _ in range(n):
            x, y = x + h * x * (1.0 - y), y + h * y * (x - 1.0)
        return x * x + y

    return f, (0.8, 1.2)


def kalman(n):
    """The likelihood of a filter with two states and one observation."""
    data = np.sin(0.1 * np.arange(n))

    def f(A, q, r):
        x, P, total = np.zeros(2), np.eye(2), 0.0
        Q = q * np.eye(2)
        for t in range(n):
            x = A @ x
            P = A @ P @ A.T + Q
            s = P[0, 0] + r
            e = data[t] - x[0]
            k = P[:, 0] / s
            x = x + k * e
            P = P - np.outer(k, P[0])
            total = total + np.log(s) + e * e / s
        return total / n

    return f, (np.array([[0.99, 0.1], [-0.1, 0.98]]), 0.1, 0.5)


def hidden_markov(n):
    """The forward algorithm with three states, scaled in each step."""
    seen = np.arange(n) * 7 % 4

    def f(T, E):
        a, total = np.ones(3) / 3, 0.0
        for t in range(n):
            a = (a @ T) * E[:, seen[t]]
            s = np.sum(a)
            a = a / s
            total = total + np.log(s)
        return total / n

    rng = np.random.default_rng(0)
    return f, (rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(4), 3))


def garch(n):
    """The likelihood of returns whose variance depends on the last."""
    returns = np.sin(np.arange(n) * 1.7)

    def f(w, a, b):
        v, total = 1.0, 0.0
        for t in range(n):
            total = total + np.log(v) + returns[t] ** 2 / v
            v = w + a * returns[t] ** 2 + b * v
        return total / n

    return f, (0.1, 0.2, 0.6)


def newton(n):
    """Newton's method until a test, in each step."""
    offsets = np.linspace(1.0, 2.0, n)

    def f(c):
        total = 0.0
        for i in range(n):
            a, y = c * offsets[i], 1.0
            while abs(y * y - a) > 1e-12:
                y = 0.5 * (y + a / y)
            total = total + y * y * y
        return total / n

    return f, (1.3,)


def tridiagonal(n):
    """Thomas's algorithm."""

    def f(a, b, d):
        c, y = np.zeros(n), np.zeros(n)
        c[0], y[0] = a[0] / b[0], d[0] / b[0]
        for i in range(1, n):
            m = b[i] - a[i] * c[i - 1]
            c[i] = a[i] / m
            y[i] = (d[i] - a[i] * y[i - 1]) / m
        for i in range(n - 2, -1, -1):
            y[i] = y[i] - c[i] * y[i + 1]
        return np.sum(y * y) / n

    rng = np.random.default_rng(0)
    return f, (rng.normal(size=n) * 0.2, rng.uniform(2, 3, n), rng.normal(size=n))


def heat(n):
    """A stencil on 100 cells, from one array to the other."""

    def f(u):
        v = u.copy()
        for _ in range(n):
            v[1:-1] = u[1:-1] + 0.2 * (u[:-2] - 2 * u[1:-1] + u[2:]) * np.cos(u[1:-1])
            u, v = v, u
        return u @ u

    return f, (np.sin(np.arange(100.0)),)


def longest_path(n):
    """Dynamic programming with a maximum."""
    gains = np.cos(np.arange(3 * n) ** 2.0).reshape(n, 3)

    def f(w):
        best = np.zeros(3)
        for t in range(n):
            best = np.array([max(best[0], best[1]), max(best[0], best[2]), max(best[1], best[2])]) + w * gains[t]
        return np.max(best) / n

    return f, (np.array([0.5, 1.0, 0.7]),)


def monte_carlo(n):
    """The mean pay of an option on the average, over 20 paths with fixed draws."""
    draws = np.random.default_rng(0).normal(size=(n, 20))

    def f(s, sigma, r):
        h = 1.0 / n
        price, total = s * np.ones(20), np.zeros(20)
        for t in range(n):
            price = price * np.exp((r - 0.5 * sigma**2) * h + sigma * np.sqrt(h) * draws[t])
            total = total + price
        return np.mean(np.maximum(total / n - 1.0, 0.0))

    return f, (1.0, 0.2, 0.05)


PROGRAMS = [rk4, lotka, kalman, hidden_markov, garch, newton, tridiagonal, heat, longest_path, monte_carlo]


def fastest(run, budget=1.0):
    """The processor time of a call in ms, the best of several."""
    times = []
    while not times or (len(times) < 30 and sum(times) < budget):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times) * 1e3


def copied(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def along(f, args, step=1e-6):
    """The derivative along a direction of ones, by differences."""
    sides = [f(*[a + step * sign for a in copied(args)]) for sign in (1, -1)]
    return (sides[0] - sides[1]) / (2 * step)


def measured(gradient, args):
    """The first call in seconds, the fastest in ms, and the gradients."""
    start = clock()
    found = gradient(*copied(args))
    first = clock() - start
    return first, fastest(lambda: gradient(*args)), found


def largest_difference(found, expected):
    """The largest difference of two gradients, of the largest element."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(found, expected, strict=True)]
    return max(np.abs(a - b).max() for a, b in pairs) / max(np.abs(b).max() for _, b in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(make.__name__ for make in PROGRAMS))
    parser.add_argument("--steps", default="1000,10000,100000,1000000")
    a = parser.parse_args()
    with_jax = importlib.util.find_spec("jax") is not None
    head = ["program", "steps", "f, ms", "gradient, ms", "of f", "first call, s", "error"]
    head += ["JAX, ms", "JAX / ours", "JAX first call, s", "difference"] * with_jax
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for make in PROGRAMS:
        if make.__name__ not in a.programs.split(","):
            continue
        each = error = 0.0
        for n in map(int, a.steps.split(",")):
            f, args = make(n)
            first, spent, found = measured(effgrad.compile(effgrad.grad(f, argnums=tuple(range(len(args))))), args)
            if not each:
                each = fastest(lambda f=f, args=args: f(*copied(args))) / n
                difference = along(f, args)
                error = abs(sum(np.sum(g) for g in found) - difference) / (abs(difference) + 1e-12)
            row = [make.__name__, n, f"{each * n:.3g}", f"{spent:.3g}", f"{spent / (each * n):.2g}", f"{first:.2g}"]
            row.append(f"{error:.1g}")
            if with_jax:
                import loops_jax

                theirs, took, expected = measured(loops_jax.gradient(make.__name__, n, len(args)), args)
                row += [f"{took:.3g}", f"{took / spent:.3g}", f"{theirs:.2g}"]
                row.append(f"{largest_difference(found, expected):.1g}")
            print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
