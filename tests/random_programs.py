"""Programs made at random, for the tests and for the long run of `benchmarks/fuzz.py`."""

import numpy as np

UNARY = [np.sin, np.tanh, lambda x: x * x, lambda x: -x, lambda x: x.T, np.exp, np.abs, lambda x: x[::-1],
         lambda x: x[:, 1:], lambda x: np.concatenate([x, x], axis=1), lambda x: x[:, [0, 0, 1]],
         lambda x: x - np.max(x, axis=1, keepdims=True), lambda x: np.reshape(x, (x.shape[1], x.shape[0])),
         lambda x: x / (1 + np.sum(x * x, axis=0)), lambda x: np.where(x > 0.3, x, 0.5 * x),
         lambda x: np.maximum(x, 0.1),
         lambda x: np.cumsum(x, axis=0), lambda x: x.reshape(-1, 1) * np.ones((1, 2)),
         lambda x: np.sort(x, axis=0), lambda x: x[np.argsort(x[:, 0])], lambda x: np.roll(x, 1, axis=1),
         lambda x: np.einsum("ij,kj->ik", x, x)[:, :2], lambda x: np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T),
         lambda x: x * (2.0 if x[0, 0] > 0.2 else 0.5), lambda x: np.clip(x, -0.5, 0.5), lambda x: np.flip(x, 1),
         lambda x: np.pad(x, ((0, 1), (1, 0))), lambda x: np.log1p(x * x), lambda x: np.hypot(x, 1.0),
         lambda x: x * x[np.array(1), 0], lambda x: x - np.mean(x, axis=0), lambda x: x / (1 + np.std(x)),
         lambda x: np.cumprod(np.tanh(x), axis=1), lambda x: np.tril(x) + np.triu(x, 1) * 2,
         lambda x: np.outer(x[0], x[-1]), lambda x: x * x[np.argmax(x[:, 0])], lambda x: np.sqrt(x * x + 1) ** 3,
         lambda x: np.stack([x, x * x])[:, 0], lambda x: x * np.sum(np.abs(x) > 0.2),
         lambda x: x + sum(row * i for i, row in enumerate(x)), lambda x: np.repeat(x, 2, axis=0),
         lambda x: np.diff(x, axis=1, prepend=0.5), lambda x: x @ np.eye(x.shape[1])[::-1], lambda x: x[::2, ::-1],
         lambda x: np.expand_dims(x, 1)[:, 0], lambda x: np.prod(1 + 0.1 * x, axis=0) * x]  # fmt: skip
BINARY = [np.add, np.multiply, np.subtract, np.minimum, lambda x, y: x / (1 + y * y),
          lambda x, y: np.arctan2(x, 1 + y * y), lambda x, y: np.where(x > y, x, y), np.logaddexp,
          lambda x, y: x * np.sum(y), lambda x, y: x + y[0]]  # fmt: skip


def written(x):
    """A copy with a row and an element written to."""
    y = x.copy()
    y[0] = y[0] * 2
    y[-1, -1] += y[0, 0]
    return y


UNARY.append(written)


def random_program(seed):
    """A program of a dozen operations on matrices, ending in a sum."""
    random = np.random.default_rng(seed)
    choices = [(random.integers(3), random.integers(1000), random.integers(1000)) for _ in range(12)]

    def f(x):
        values = [x, x + 0.5]
        for kind, first, second in choices:
            a = values[first % len(values)]
            if kind == 0 and a.shape[0] < 30:
                b = values[second % len(values)]
                result = np.tanh(a @ a.T @ np.ones((a.shape[0], 2))) if a.shape != b.shape else a * b
            elif kind == 1:
                same = [v for v in values if v.shape == a.shape]
                result = BINARY[second % len(BINARY)](a, same[first % len(same)])
            else:
                result = UNARY[second % len(UNARY)](a)
            if min(result.shape) > 1 and max(result.shape) < 40:
                values.append(np.tanh(result))
        return sum(np.sum(v) for v in values[-4:])

    return f
