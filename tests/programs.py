"""Random programs: directed acyclic graphs with sharing, branches, loops, closures, mutation, checkpoints, fusion.

A program is data, a list of steps, and each step makes one new number out of those before it. `run` runs it, over NumPy
or over numbers of high precision (mpmath), whose differences are exact to far below a float's precision.
"""

import functools

import hypothesis
import mpmath
import numpy as np
from hypothesis import strategies as st

from effgrad import checkpoint, function, fuse

INPUTS = 3
LARGE = 1e6
EDGE = np.pi / 100  # where programs branch: no generated number is near it


class Numpy:
    """What a program computes with: plain NumPy."""

    sin, cos, tanh, sqrt = np.sin, np.cos, np.tanh, np.sqrt
    zeros = staticmethod(lambda n: np.zeros(n))  # looked up when it is called: derivatives intercept it


class Exact:
    """The same over numbers of 50 digits."""

    sin, cos, tanh, sqrt = mpmath.sin, mpmath.cos, mpmath.tanh, mpmath.sqrt
    zeros = staticmethod(functools.partial(np.zeros, dtype=object))


def branch(xp, a, b, c):
    if a > b + EDGE:
        return xp.sin(a) * c
    return c / (1.0 + b * b) if c > EDGE else b - a * c


def loop(xp, a, b, c):
    for i in range(3):
        a = xp.sin(a * b) + c / (i + 1.0)
    return a


def while_loop(xp, a, b, c):
    rounds = 0
    while a * a < 4.0 + EDGE and rounds < 5:
        a, rounds = a + b * b + 0.5, rounds + 1
    return xp.tanh(a) * c


def closure(xp, a, b, c):
    def shifted(t):
        return xp.cos(t * a) + b

    return shifted(shifted(c))


def function_values(xp, a, b, c):
    scale = function(lambda k: function(lambda t: t * k))
    return sum(f(c) for f in [scale(a), scale(b), function(xp.sin)])


def mutation(xp, a, b, c):
    buffer = xp.zeros(4)
    buffer[0] = a
    buffer[1:3] = b
    view = buffer[1:]
    view[1] += xp.sin(buffer[0]) * c  # buffer[2]
    buffer *= 0.5
    buffer[3] = view[0] * buffer[2]
    return sum(buffer[i] * buffer[i - 1] for i in range(4))


def recomputed(xp, a, b, c):
    d = checkpoint(lambda: xp.tanh(a * b) * c)
    return checkpoint(lambda: d * checkpoint(xp.sin, d) + a)


def trajectory(xp, a, b, c):
    states = xp.zeros(4)
    states[0] = a
    for i in range(1, 4):
        states[i] = checkpoint(lambda i=i: xp.sin(states[i - 1]) * b + c * checkpoint(lambda: states[0]))
    return states[1] * states[3]


def scratch_memory(xp, a, b, c):
    scratch = xp.zeros(2)

    def part(k):
        scratch[0] = xp.sin(a) * k
        scratch[1] = scratch[0] * b
        return scratch[1] + k

    return checkpoint(part, c) * checkpoint(part, 0.5)


def fused(xp, a, b, c):
    return fuse(lambda p, q: xp.tanh(p * q) + checkpoint(xp.sin, p))(a, q=b) * c


STEPS = {
    "add": lambda xp, a, b, c: a + b,
    "subtract": lambda xp, a, b, c: 1.0 - a - b,
    "multiply": lambda xp, a, b, c: xp.tanh(a) * b,
    "divide": lambda xp, a, b, c: a / (1.0 + b * b),
    "power": lambda xp, a, b, c: xp.sqrt(1.0 + a * a) ** 3 * 0.1,
    "negative": lambda xp, a, b, c: -a,
    "sin": lambda xp, a, b, c: xp.sin(a),
    "constant": lambda xp, a, b, c: 0.25,
    "branch": branch,
    "loop": loop,
    "while": while_loop,
    "closure": closure,
    "functions": function_values,
    "mutation": mutation,
    "checkpoint": recomputed,
    "trajectory": trajectory,
    "scratch": scratch_memory,
    "fused": fused,
}


def numbers(xp, steps, inputs):
    """The inputs and the number that each step computes."""
    values = list(inputs)
    for name, a, b, c in steps:
        values.append(STEPS[name](xp, values[a], values[b], values[c]))
    return values


def run(xp, steps, inputs):
    """The sum of two numbers: the last step's, and a product that shares."""
    values = numbers(xp, steps, inputs)
    return values[-1] + values[-1] * values[len(values) // 2]


@st.composite
def programs(draw):
    """Steps, each with the places of the numbers that it takes."""
    steps = []
    for place in range(INPUTS, INPUTS + draw(st.integers(1, 8))):
        number = st.integers(0, place - 1)
        steps.append((draw(st.sampled_from(sorted(STEPS))), draw(number), draw(number), draw(number)))
    return steps


def differences(steps, x, direction, order):
    """The derivative of an order (1 or 2) along a direction, by central differences in 50 digits.

    Not of programs with large numbers on the way: the sine of 1e13 has three digits in floats.
    """
    with mpmath.workdps(50):
        step = mpmath.mpf(10) ** -12
        line = list(zip(map(float, x), map(float, direction), strict=True))

        hypothesis.assume(all(abs(value) < LARGE for value in numbers(Exact, steps, [mpmath.mpf(a) for a, _ in line])))

        def at(k):
            return run(Exact, steps, [mpmath.mpf(a) + k * step * mpmath.mpf(u) for a, u in line])

        return float((at(1) - at(-1)) / (2 * step) if order == 1 else (at(1) - 2 * at(0) + at(-1)) / step**2)
