"""The calls that are drawn for each row of a function, and the paths of the rows that tests go through."""

from benchmarks import fuzz_calls, row_calls

TABLE = {**fuzz_calls.CALLS, **row_calls.calls(fuzz_calls.function_of)}
# Quadratures that take seconds a call.
SLOW = "gausshyper norminvgauss recipinvgauss kappa4 vonmises irwinhall studentized_range levy_stable genhyp".split()
# Without moments, which integrate, some of them for minutes.
PATHS = [
    path for path in sorted(TABLE)
    if not any(name in path for name in SLOW) and path.rpartition(".")[2] not in row_calls.OF_SHAPES
]  # fmt: skip
