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


# Of an array of at least one axis of length at least one.
INDICES = [slice(None, None, -1), slice(1, None), slice(None, None, 2), -1, ..., None, (slice(None), None), (0, ...),
           [0, -1], [-1], [True], (..., slice(None, None, -1)), (..., -1)]  # fmt: skip


def _index(random, shape):
    index = INDICES[random.integers(len(INDICES))]
    return random.random(shape) > 0.5 if index == [True] else index


def random_writes(seed, steps=12):
    """A program of a matrix that makes views and copies of its arrays, and writes to them; polynomials and sines."""

    def f(x):
        random = np.random.default_rng(seed)
        arrays = [x * 1.0, np.zeros((3, 4)), x[0] * 2.0, x.T * x[0, 0]]
        for _ in range(steps):
            a, b = (arrays[k] for k in random.integers(len(arrays), size=2))
            index, kind = _index(random, a.shape), random.integers(9)
            if kind < 4 and a[index].shape != ():
                value = b * 0.5 if b.shape == a[index].shape else np.sin(np.sum(b))
                if kind == 0:
                    a[index] = value
                elif kind == 1:
                    a[index] += value
                elif kind == 2:
                    a[index] *= value
                else:
                    np.sin(a, out=a)
            elif kind == 4:
                taken = a[index]
                arrays.append(taken.copy() if isinstance(index, list | np.ndarray) else taken)
            elif kind == 5:
                arrays.append(a.T)
            elif kind == 6:
                arrays.append(a.reshape(-1))
            elif kind == 7:
                arrays.append(np.ravel(a))
            else:
                arrays.append(np.cumsum(a)[:6])
            if arrays[-1].ndim == 0 or not 0 < arrays[-1].size < 50:
                arrays[-1] = x[-1] * 3.0
        return sum(np.sum(np.sin(a) * (k + 1)) for k, a in enumerate(arrays))

    return f


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
