"""Judge one program in this process: `python -m benchmarks.conformance.programs FOLDER NAME`."""

import pathlib
import sys

from benchmarks.conformance.programs import one

one(pathlib.Path(sys.argv[1]), sys.argv[2])
