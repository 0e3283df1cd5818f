"""Run another project's suite from a checkout of it; none of its code is in this repository.

    PYTHONPATH=src:tests python -m benchmarks.conformance NAME CHECKOUT [ARGUMENT]...

The names are those of the modules beside this one. Each prints a table; docs/conformance.md has the last results.
"""

import importlib
import pathlib
import sys

NAMES = ("autograd", "costs", "go_benchmark", "mygrad", "programs", "torch")


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: python -m benchmarks.conformance {'|'.join(NAMES)} CHECKOUT [ARGUMENT]...")
    importlib.import_module(f"benchmarks.conformance.{sys.argv[1]}").run(pathlib.Path(sys.argv[2]), *sys.argv[3:])


main()
