"""The page of limits: small programs as people write them, each run, and what becomes of it."""

import itertools
import linecache
import re
import warnings
from typing import Any

from effgrad import grad
from effgrad.errors import EffgradError

HEAD = """# Limits

What effgrad does not do, in one place. A derivative is right, or there is an error that says what to write instead:
nothing is silently taken as constant.

## Programs

Each of these programs has been run to make this page (`./dev pages`), as a function of one number, and its
derivative compared with differences.

| program | derivative | if refused, write instead |
|---|---|---|
"""

TAIL = """
[Coverage](coverage.md) has every function of NumPy and SciPy, and [Errors](errors.md) each error with what to do
about it. A function without a rule can be [given one](how-to/rules.md).

## Numbers

- Derivatives are exact to rounding: [the error of every rule](accuracy.md) is a few units in the last place, with the
  exceptions listed there.
- Where a function is not smooth there is [a convention](conventions.md), the same in every mode. Third derivatives
  through a kink are NaN.
- The right-hand side of a differential equation may have kinks (a network of `np.maximum(0, x)`), and jumps at fixed
  times. A kink that moves with what is differentiated leaves four digits of the derivative: a step goes over it. Jumps
  that move are refused, and in second derivatives kinks that move: the derivative of the solution jumps there.
- Integers have no derivatives, and neither have functions that change in steps: their results are constants.
- Half precision and `longdouble` are what NumPy makes of them; native code knows `float32`, `float64` and their
  complex numbers.

## Cost

- **Without `compile`, every operation runs in Python.** An operation on a small array takes some microseconds forward
  and as many back, where NumPy takes about one: programs of many small operations take 10 to 50 times their own run,
  programs on large arrays 3 to 5 times ([measured](gallery/index.md#what-a-derivative-costs)).
- **With it**, the first call takes from a tenth of a second to some seconds, most for long programs without loops.
  Loops over things that are neither arrays nor ranges, and loops that change lists from before, are unrolled, with a
  warning ([loops](loops.md)).
- The record of a reverse pass takes memory for each operation. [Limits of memory](how-to/memory.md) says how to bound
  it.

## Compiled programs

All that a compiled function reads besides its arguments is constant: arrays that it closes over, globals, random
numbers, the clock. What it does besides returning a value, such as printing, happens when it is staged ([what is
compiled](compile.md#what-is-compiled)).

## Machines

One machine's processors, unless the program runs over [another library's arrays](arrays.md) or
[Dask](how-to/distributed.md). Native code has been run on x86-64 with Linux.
"""

# What it is, the program (its last line is the value of `f(x)`, at 0.7), and what to write instead. Imports, and lines
# marked so, stand outside the function.
FILLED = "`a = np.zeros(3)`, then `a[:] = ...`"
PROGRAMS = [
    ("NumPy's functions, operators and methods", "np.sum(np.sin(np.array([x, 2 * x])) ** 2)", ""),
    ("an array filled by indices", "a = np.zeros(3)\nfor i in range(3):\n    a[i] = x**i\na.sum()", ""),
    ("an update in place", "a = x * np.ones(3)\na[1:] *= 2\na @ a", ""),
    ("a view that is written to", "a = x * np.ones(4)\nb = a.reshape(2, 2)\nb[0] = 5.0\na.sum()", ""),
    ("branches and loops on values", "while x < 5:\n    x = x * 1.5\nx if x > 6 else -x", ""),
    ("lists, tuples and dictionaries", 'd = {"a": [x, x**2]}\nmax(d["a"])', ""),
    ("a comprehension, `sum`, `zip`", "sum(a * b for a, b in zip([x, 2.0], [x, x], strict=True))", ""),
    ("`from scipy.special import ...`", "from scipy.special import gammaln\ngammaln(x)", ""),
    ("a module's function by its module", "import scipy.linalg\nscipy.linalg.expm(x * np.ones((2, 2))).sum()", ""),
    (
        "the same by its name",
        "from scipy.linalg import expm\nexpm(x * np.ones((2, 2))).sum()",
        "`scipy.linalg.expm(...)`",
    ),
    ("`from numpy import array`", "from numpy import array\narray([x, x**2]).sum()", "`np.array(...)`"),
    ("functions of `math`", "import math\nmath.sin(x)", "`np.sin(x)`"),
    ("a copy of a constant that is written to", "a = np.ones(3).copy()\na[0] = x\na.sum()", FILLED),
    ("an array made by arithmetic of constants", "a = np.ones(3) * 2\na[0] = x\na.sum()", FILLED),
    ("an outside array, written to", "R = np.ones(3)  # outside\nR[0] = x\nR.sum()", FILLED),
    ("a copy of one", "R = np.ones(3)  # outside\na = R.copy()\na[0] = x\na.sum()", FILLED),
    ("`constant += x`", "a = np.arange(3.0)\na += x\n(a**2).sum()", "`a = a + x`"),
    ("a constant's method", "np.eye(2).dot(np.array([x, 1.0])).sum()", "`np.dot(a, b)` or `a @ b`"),
    ("`float(x)`", "float(x) ** 2", "`x**2`; `stop_gradient(x)` for a constant"),
    ("`int(x)`, an index from a value", "np.arange(5.0)[int(np.floor(3 * x))] * x", ""),
    ("a string made of a value", 'f"{x:.3f}" and x**2', ""),
    ("`np.vectorize`", "np.vectorize(lambda t: t**2)(np.array([x, 1.0])).sum()", "`vmap`, or a loop"),
    ("`np.nditer`", "sum(t * x for t in np.nditer(np.ones(3)))", ""),
    ("`np.append`, `np.insert`, `np.pad`", "np.append(np.ones(2), x).sum() + np.pad(np.array([x]), 1).sum()", ""),
    ("random numbers", "np.random.default_rng(0).normal(x, 1.0)", ""),
    (
        "a spline through constants",
        "from scipy import interpolate\ninterpolate.CubicSpline(np.arange(4.0), [0, 1, 8, 27.0])(x)",
        "",
    ),
    ("a root", "import scipy.optimize\nscipy.optimize.brentq(lambda t: t**3 - x, 0.0, 2.0)", ""),
    (
        "a minimum",
        "import scipy.optimize\nscipy.optimize.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(1), tol=1e-12).x[0]",
        "",
    ),
    (
        "an initial value problem",
        "import scipy.integrate\nscipy.integrate.solve_ivp(lambda t, y: -x * y, (0, 1), [1.0], rtol=1e-9).y[0, -1]",
        "",
    ),
    ("an integral", "import scipy.integrate\nscipy.integrate.quad(lambda t: np.exp(-x * t), 0, 1)[0]", ""),
    ("a sparse matrix", "import scipy.sparse as sp\nsp.diags([np.array([x, 1.0])], [0]).tocsc().sum()", ""),
    ("a distribution", "import scipy.stats\nscipy.stats.norm(0, x).logpdf(1.0)", ""),
    ("`statistics.mean`", "import statistics\nstatistics.mean([x, 2 * x])", ""),
    ("`pandas` columns", "import pandas as pd\npd.Series(np.array([x, 2 * x])).sum()", ""),
    ("masked arrays", "np.ma.array([x, 2 * x, np.nan * x], mask=[0, 0, 1]).mean()", ""),
    ("masked arrays", "np.ma.array([x, 2 * x, np.nan * x], mask=[0, 0, 1]).mean()", ""),
    ("a pickle, `json`", "import json\njson.loads(json.dumps([x]))[0]", "pass the value itself"),
]

OUTSIDE = " *(import|from|.*# outside$)"  # lines that stand before the function
_count = itertools.count()


def function(program: str) -> Any:
    """The function of one number whose body a program is, with its source known."""
    *lines, last = program.split("\n")
    body = "\n".join(f"    {line}" for line in [*lines, f"return {last}"])
    imports = [line.strip() for line in body.split("\n") if re.match(OUTSIDE, line)]
    rest = [line for line in body.split("\n") if not re.match(OUTSIDE, line)]
    source = "\n".join(["import numpy as np", *imports, "def f(x):", *rest]) + "\n"
    file = f"<limit {next(_count)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {}
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


def outcome(program: str) -> str:
    """Whether a program's derivative is right, or the code of the error."""
    f, x = function(program), 0.7
    try:
        found = float(grad(f)(x))
    except EffgradError as error:
        code = re.findall(r"\[(E\d+)\]", str(error))[-1]
        return f"refused, [{code}](errors.md#{code.lower()})"
    slope = (f(x - 2e-4) - 8 * f(x - 1e-4) + 8 * f(x + 1e-4) - f(x + 2e-4)) / 12e-4
    assert abs(found - slope) <= 1e-5 * (1 + abs(slope)), f"{program}: {found}, not {slope}"
    return "yes"


def page() -> str:
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, program, instead in PROGRAMS:
            result = outcome(program)
            # Spaces that a browser keeps.
            lines = program.replace("|", "\\|").replace("    ", 4 * "\N{NO-BREAK SPACE}").split("\n")
            code = "<br>".join(f"`{line}`" for line in lines)
            rows.append(f"| {title}<br>{code} | {result} | {instead if result != 'yes' else ''} |")
    return HEAD + "\n".join(rows) + "\n" + TAIL
