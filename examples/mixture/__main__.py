"""Fit a Gaussian mixture to the points of a CSV file.

    cd examples
    python -m mixture data/faithful.csv --components 2 --out ../out/demo

Results reach the folder of `--out` only when the run is over.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mixture.data import UserError, read_points
from mixture.fit import fit
from mixture.report import Progress, print_table, write


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mixture", description="Fit a Gaussian mixture.")
    parser.add_argument("data", type=Path, metavar="DATA.csv", help="one point a row; a header row is optional")
    parser.add_argument("--components", type=int, required=True, metavar="K")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="receives fit.png and parameters.json")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    options = parser.parse_args(argv)
    try:
        run(options.data, options.components, options.out, options.seed)
    except UserError as error:
        print(f"mixture: error: {error}", file=sys.stderr)
        return 2
    return 0


def run(data: Path, components: int, out: Path, seed: int) -> None:
    if components < 1:
        raise UserError(f"--components must be at least 1, not {components}")
    if seed < 0:
        raise UserError(f"--seed must not be negative, not {seed}")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is not a directory")
    names, x = read_points(data, components)
    progress = Progress()
    with progress:
        result = fit(x, components, seed, progress.report)
    write(out, names, x, result)
    print_table(names, result, out)


if __name__ == "__main__":
    sys.exit(main())
