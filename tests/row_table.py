"""The calls that are drawn for each row of a function, and the paths of the rows that tests go through."""

import zlib

import numpy as np
from benchmarks import fuzz_calls, row_calls

TABLE = {**fuzz_calls.CALLS, **row_calls.calls(fuzz_calls.function_of)}
# Quadratures that take seconds a call.
SLOW = "gausshyper norminvgauss recipinvgauss kappa4 vonmises irwinhall studentized_range levy_stable genhyp".split()
# Without moments, which integrate, some of them for minutes.
PATHS = [
    path for path in sorted(TABLE)
    if not any(name in path for name in SLOW) and path.rpartition(".")[2] not in row_calls.OF_SHAPES
]  # fmt: skip


def generator(path, *numbers):
    """The random numbers of a row, the same ones in each run."""
    return np.random.default_rng([zlib.crc32(path.encode()), *numbers])


def check_calls(check, path, numbers, *salt):
    """Check drawn calls of a row, each a program of one argument with its text, and the numbers to judge it with."""
    for number in numbers:
        rng = generator(path, number, *salt)
        program, text, x = fuzz_calls.drawn(path, rng, TABLE)
        if x is not None:
            with np.errstate(all="ignore"):
                check(program, x, text, rng)
