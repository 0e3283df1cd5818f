"""The table of every function of NumPy, SciPy and `math`: differentiable, constant, or without a rule, and why."""

from collections import Counter

import numpy as np
import scipy

from effgrad.functions.rows import NAMESPACES, rows

HEAD = """# Coverage

Every function of these namespaces, and what effgrad makes of it when it is given a traced value:

- **differentiable**: it has a rule, in every mode and to every order;
- **constant**: its results do not change with its arguments, or only in steps; they come out as plain values;
- **no rule**: an error that names the function (`NoRule`), never a wrong derivative.

| namespace | differentiable | constant | no rule |
|---|---|---|---|
"""
TAIL = """
Made from the tables of the library by `./dev pages`. NumPy {numpy}, SciPy {scipy}.
"""


def page() -> str:
    counts, tables = [], []
    for namespace in NAMESPACES:
        found = rows(namespace)
        count = Counter(row.status for row in found)
        counts.append(f"| `{namespace}` | {count['differentiable']} | {count['constant']} | {count['no rule']} |")
        tables.append(f"## {namespace}\n\n| function | status | why |\n|---|---|---|")
        tables += [f"| `{row.name.rpartition('.')[2]}` | {row.status} | {row.reason} |" for row in found]
        tables.append("")
    foot = TAIL.format(numpy=np.__version__, scipy=scipy.__version__)
    return HEAD + "\n".join(counts) + "\n" + foot + "\n" + "\n".join(tables)
