"""The gradient of a neural network over tensors of PyTorch, by effgrad and by PyTorch's own autograd, side by side.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/arrays.py [DEVICE]

Prints, for each width of the layers, the least time of a gradient by each in alternating runs on one core, and their
ratio. The program of effgrad is NumPy's; PyTorch's is its own. DEVICE is PyTorch's: cpu, or cuda for a GPU.
"""

import sys
import time

import numpy as np
import torch

from effgrad import grad

LAYERS, BATCH = 4, 64


def network(weights, x, y):
    for w, b in weights[:-1]:
        x = np.tanh(x @ w + b)
    w, b = weights[-1]
    return np.mean((x @ w + b - y) ** 2)


def network_of_torch(weights, x, y):
    for w, b in weights[:-1]:
        x = torch.tanh(x @ w + b)
    w, b = weights[-1]
    return torch.mean((x @ w + b - y) ** 2)


def by_autograd(weights, x, y):
    leaves = [part.requires_grad_() for layer in weights for part in layer]
    gradient = torch.autograd.grad(network_of_torch(weights, x, y), leaves)
    for leaf in leaves:
        leaf.requires_grad_(False)
    return gradient


def least(*runs, rounds=15):
    """The least time of each run, taken in turns."""
    times = [[] for _ in runs]
    for _ in range(rounds):
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def main(device="cpu"):
    torch.set_num_threads(1)
    torch.set_default_device(device)
    for width in (16, 64, 256, 1024) if device == "cpu" else (64, 1024, 4096):
        torch.manual_seed(0)
        weights = [(torch.randn(width, width) / width**0.5, torch.zeros(width)) for _ in range(LAYERS)]
        x, y = torch.randn(2, BATCH, width)
        ours, theirs = grad(network)(weights, x, y), by_autograd(weights, x, y)
        torch.testing.assert_close([part for layer in ours for part in layer], list(theirs))
        ours, theirs = least(lambda: grad(network)(weights, x, y), lambda: by_autograd(weights, x, y))  # noqa: B023
        print(
            f"width {width:5}: effgrad {ours * 1e6:9.0f} us, autograd {theirs * 1e6:9.0f} us, {ours / theirs:.2f} times"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
