"""The programs of `loops` with JAX, written by hand with `lax.scan` and `lax.while_loop`, in double precision."""

import functools

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)


def rk4(n):
    def slope(y, p):
        return jnp.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    def f(y, p):
        h = 1.0 / n

        def step(y, _):
            a = slope(y, p)
            b = slope(y + 0.5 * h * a, p)
            c = slope(y + 0.5 * h * b, p)
            d = slope(y + h * c, p)
            return y + h / 6 * (a + 2 * b + 2 * c + d), None

        y, _ = lax.scan(step, y, None, length=n)
        return y @ y

    return f


def lotka(n):
    def f(x, y):
        h = 5.0 / n

        def step(state, _):
            x, y = state
            return (x + h * x * (1.0 - y), y + h * y * (x - 1.0)), None

        (x, y), _ = lax.scan(step, (x, y), None, length=n)
        return x * x + y

    return f


def kalman(n):
    data = np.sin(0.1 * np.arange(n))

    def f(A, q, r):
        Q = q * jnp.eye(2)

        def step(state, z):
            x, P, total = state
            x = A @ x
            P = A @ P @ A.T + Q
            s = P[0, 0] + r
            e = z - x[0]
            k = P[:, 0] / s
            return (x + k * e, P - jnp.outer(k, P[0]), total + jnp.log(s) + e * e / s), None

        (_, _, total), _ = lax.scan(step, (jnp.zeros(2), jnp.eye(2), 0.0), data)
        return total / n

    return f


def hidden_markov(n):
    seen = np.arange(n) * 7 % 4

    def f(T, E):
        def step(state, k):
            a, total = state
            a = (a @ T) * E[:, k]
            s = jnp.sum(a)
            return (a / s, total + jnp.log(s)), None

        (_, total), _ = lax.scan(step, (jnp.ones(3) / 3, 0.0), seen)
        return total / n

    return f


def garch(n):
    returns = np.sin(np.arange(n) * 1.7)

    def f(w, a, b):
        def step(state, r):
            v, total = state
            return (w + a * r**2 + b * v, total + jnp.log(v) + r**2 / v), None

        (_, total), _ = lax.scan(step, (1.0, 0.0), returns)
        return total / n

    return f


@functools.partial(jax.custom_jvp)
def root(a):
    """The square root by Newton's method; JAX has no reverse mode of `while_loop`, so its derivative is implicit."""
    return lax.while_loop(lambda y: jnp.abs(y * y - a) > 1e-12, lambda y: 0.5 * (y + a / y), jnp.ones_like(a))


@root.defjvp
def _root_jvp(primals, tangents):
    y = root(*primals)
    return y, tangents[0] / (2 * y)


def newton(n):
    offsets = np.linspace(1.0, 2.0, n)

    def f(c):
        total, _ = lax.scan(lambda total, offset: (total + root(c * offset) ** 3, None), 0.0, offsets)
        return total / n

    return f


def tridiagonal(n):
    def f(a, b, d):
        def down(state, row):
            c, y = state
            a, b, d = row
            m = b - a * c
            c, y = a / m, (d - a * y) / m
            return (c, y), (c, y)

        first = a[0] / b[0], d[0] / b[0]
        _, (c, y) = lax.scan(down, first, (a[1:], b[1:], d[1:]))
        c, y = jnp.concatenate([first[0][None], c]), jnp.concatenate([first[1][None], y])

        def up(after, row):
            c, y = row
            y = y - c * after
            return y, y

        _, x = lax.scan(up, y[-1], (c[:-1], y[:-1]), reverse=True)
        return (jnp.sum(x * x) + y[-1] ** 2) / n

    return f


def heat(n):
    def f(u):
        def step(state, _):
            u, v = state
            v = v.at[1:-1].set(u[1:-1] + 0.2 * (u[:-2] - 2 * u[1:-1] + u[2:]) * jnp.cos(u[1:-1]))
            return (v, u), None

        (u, _), _ = lax.scan(step, (u, u), None, length=n)
        return u @ u

    return f


def longest_path(n):
    gains = np.cos(np.arange(3 * n) ** 2.0).reshape(n, 3)

    def f(w):
        def step(best, gain):
            a, b, c = best
            return jnp.stack([jnp.maximum(a, b), jnp.maximum(a, c), jnp.maximum(b, c)]) + w * gain, None

        best, _ = lax.scan(step, jnp.zeros(3), gains)
        return jnp.max(best) / n

    return f


def monte_carlo(n):
    draws = np.random.default_rng(0).normal(size=(n, 20))

    def f(s, sigma, r):
        h = 1.0 / n

        def step(state, draw):
            price, total = state
            price = price * jnp.exp((r - 0.5 * sigma**2) * h + sigma * jnp.sqrt(h) * draw)
            return (price, total + price), None

        (_, total), _ = lax.scan(step, (s * jnp.ones(20), jnp.zeros(20)), draws)
        return jnp.mean(jnp.maximum(total / n - 1.0, 0.0))

    return f


def gradient(name, n, count):
    """The compiled gradient of a program in all its arguments, which are `count`; calls wait for the result."""
    derivative = jax.jit(jax.grad(globals()[name](n), argnums=tuple(range(count))))
    return lambda *args: jax.block_until_ready(derivative(*args))
