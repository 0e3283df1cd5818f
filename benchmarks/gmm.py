"""The time of the gradient of the GMM objective against the objective, at GradBench's small sizes."""

import sys
from pathlib import Path
from timeit import Timer

import numpy as np

import effgrad

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from mixture.objective import objective  # noqa: E402


def milliseconds(f, repeats: int = 7) -> float:
    timer = Timer(f)
    number, _ = timer.autorange()
    return min(timer.repeat(repeats, number)) / number * 1e3


def main() -> None:
    gradient = effgrad.grad(objective, argnums=(0, 1, 2, 3))
    print(f"{'d_k_n':>12} {'objective ms':>13} {'gradient ms':>12} {'ratio':>6}")
    for d, k, n in [(2, 5, 1000), (10, 5, 1000), (10, 25, 1000)]:
        random = np.random.default_rng(0)
        shapes = [(k,), (k, d), (k, d), (k, d * (d - 1) // 2), (n, d)]
        arguments = [*map(random.standard_normal, shapes), 1.0, 0]
        primal = milliseconds(lambda a=arguments: objective(*a))
        derivative = milliseconds(lambda a=arguments: gradient(*a))
        print(f"{f'{d}_{k}_{n}':>12} {primal:13.3f} {derivative:12.3f} {derivative / primal:6.2f}")


if __name__ == "__main__":
    main()
