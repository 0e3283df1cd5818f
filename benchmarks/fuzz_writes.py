"""Random programs with views and writes, against NumPy's value and complex step.

    PYTHONPATH=src:tests python -m benchmarks.fuzz_writes [--count 10000] [--first 0] [--loops] [--generators]

The programs and the oracle are those of `tests/mutating.py`. Each runs forward and in reverse, every fourth in delta
mode and with a checkpoint too, one in ten compiled; with `--loops`, programs with loops around such statements, all
compiled; with `--generators`, those loops are over generator functions. It prints what disagrees, with the seed that
shows it.
"""

import argparse
import collections
import warnings

import mutating
import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--loops", action="store_true")
    parser.add_argument("--generators", action="store_true")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        for seed in range(options.first, options.first + options.count):
            runs = ["forward", "reverse", *(["delta", "checkpoint"] if seed % 4 == 0 else [])]
            runs += ["compiled"] if seed % 20 == 0 else ["compiled to NumPy"] if seed % 20 == 10 else []
            loops = options.loops or options.generators
            runs = ["compiled"] if loops else runs
            found = list(mutating.disagreements(seed, runs, loops, options.generators))
            for message in found:
                print(f"seed {seed}: {message}")
            counts[found[0].split(",")[0] if found else "right"] += 1
    for outcome, times in counts.most_common():
        print(f"{times:8} {outcome}")


if __name__ == "__main__":
    main()
