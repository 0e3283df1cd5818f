"""The inputs that the runner measures, of the sizes of the suite: `WORKLOADS[evaluation][name]()` makes them.

Each is what the evaluation's `read` makes of the suite's message: arrays, in the order of the functions' arguments.
They are drawn from a fixed seed; what the suite reads from files (a hand of 10,000 vertices, a text) is drawn too, in
the sizes of the files, since no time depends on it.
"""

import functools

import numpy as np


def gmm(d, k, n):
    rng = np.random.default_rng(0)
    alpha, mu, q = rng.normal(size=k), rng.uniform(size=(k, d)), rng.normal(size=(k, d))
    return alpha, mu, q, rng.normal(size=(k, d * (d - 1) // 2)), rng.normal(size=(n, d)), 1.0, 0


def ba(n, m, p):
    camera = np.array([-0.8, -1.1, -0.9, 35.0, 40.0, 54.0, 417.0, 6.0, -9.0, 0.09, 0.003])
    each = np.arange(p, dtype=np.int32)
    return (
        np.tile(camera, (n, 1)), np.tile([7.0, 0.1, 3.0], (m, 1)), np.full(p, 0.6), np.tile([272.0, 828.0], (p, 1)),
        each % n, each % m,
    )  # fmt: skip


def lstm(layers, characters, bits=14):
    rng = np.random.default_rng(0)
    parameters = rng.random((2 * layers, 4 * bits)), rng.random((3, bits)), rng.random((2 * layers, bits))
    return *parameters, (rng.random((characters, bits)) < 0.5).astype(float)


def ht(points, vertices=10_000):
    rng = np.random.default_rng(0)
    parents = [-1, *(0 if bone % 4 == 1 else bone - 1 for bone in range(1, 21)), 0]
    transforms = np.tile(np.eye(4), (2, len(parents), 1, 1)) + 0.1 * rng.normal(size=(2, len(parents), 4, 4))
    positions = np.column_stack([rng.normal(size=(vertices, 3)), np.ones(vertices)])
    weights = rng.dirichlet(np.ones(len(parents)), vertices)
    model = tuple(parents), *transforms, positions, weights, np.ones(3)
    corners = rng.integers(vertices, size=(points, 3))
    return rng.normal(size=26), rng.random((points, 2)), model, rng.normal(size=(points, 3)), corners


def kmeans(k, n, d):
    points = np.random.default_rng(0).random((n, d))
    return points, points[-k:].copy()


def random(n, *rest):
    return np.random.default_rng(0).random(n), *rest


def det(size):
    return (np.random.default_rng(0).random((size, size)),)


def _named(make, form, *sizes):
    return {form.format(*size): functools.partial(make, *size) for size in sizes}


WORKLOADS = {
    "hello": {"x=3": lambda: (3.0,)},
    "gmm": _named(
        gmm, "{0}_{1}_{2}", (2, 5, 1000), (10, 25, 1000), (20, 50, 1000), (64, 100, 1000), (2, 5, 10_000),
        (10, 25, 10_000), (32, 50, 10_000),
    ),
    "ba": _named(
        ba, "n{0}_m{1}_p{2}", (49, 7776, 31_843), (93, 61_203, 287_451), (356, 226_730, 1_255_268)
    ),
    "lstm": _named(lstm, "l={0},c={1}", (2, 1024), (4, 4096), (6, 8192)),
    "ht": _named(ht, "c{0}", (100,), (800,), (12_800,)),
    "kmeans": _named(kmeans, "k={0},n={1},d={2}", (10, 1000, 8), (100, 10_000, 8), (1000, 10_000, 16)),
    "llsq": {f"n={n},m=128": functools.partial(random, 128, n) for n in (16, 512, 16_392)},
    "lse": _named(random, "n={0}", (2500,), (80_000,), (1_280_000,)),
    "ode": _named(random, "n={0},s={1}", (1000, 1), (10_000, 10), (100_000, 10), (100_000, 100)),
    "particle": {modes: lambda: (0.0,) for modes in ("rr", "ff", "fr", "rf")},
    "saddle": {modes: lambda: ([1.0, 1.0],) for modes in ("rr", "ff", "fr", "rf")},
    "det": _named(det, "{0}", (5,), (8,), (10,)),
}  # fmt: skip

# The function of each evaluation that is its derivative; of the others it is the workload's name, a pair of modes.
DERIVATIVE = {
    "hello": "double", "gmm": "jacobian", "ba": "jacobian", "lstm": "jacobian", "ht": "jacobian", "kmeans": "dir",
    "llsq": "gradient", "lse": "gradient", "ode": "gradient", "det": "gradient",
}  # fmt: skip

# Ladders of sizes, for how time and memory grow.
SCALING = {
    "gmm": _named(gmm, "{0}_{1}_{2}", (10, 25, 1000), (10, 25, 4000), (10, 25, 16_000), (10, 25, 64_000)),
    "ba": _named(ba, "n{0}_m{1}_p{2}", *((16, p // 5, p) for p in (16_000, 64_000, 256_000, 1_024_000))),
    "lstm": _named(lstm, "l={0},c={1}", (2, 512), (2, 1024), (2, 2048), (2, 4096)),
    "ht": _named(ht, "c{0}", (1600,), (6400,), (25_600,), (102_400,)),
    "kmeans": _named(kmeans, "k={0},n={1},d={2}", *((50, n, 8) for n in (4000, 16_000, 64_000, 256_000))),
    "llsq": {f"n=1000,m={m}": functools.partial(random, m, 1000) for m in (16, 64, 256, 1024)},
    "lse": _named(random, "n={0}", (40_000,), (160_000,), (640_000,), (2_560_000,)),
    "ode": _named(random, "n={0},s={1}", *((n, 10) for n in (4000, 16_000, 64_000, 256_000))),
}  # fmt: skip
