"""The table of every function of NumPy and SciPy: differentiable, constant, or without a rule, and why."""

import importlib
import re
import types
from collections import Counter
from typing import Any

import numpy as np
import scipy

from effgrad.arrays.value import CONSTANT, FUNCTIONS, UFUNCS
from effgrad.functions import scipy as scipy_rules
from effgrad.program.rules_by_callable import CREATORS, FIRST

NAMESPACES = ("numpy", "numpy.linalg", "numpy.fft", "scipy.special")

# Why a function without a rule has none: what it works on, or what to write instead. The first two make constants.
INTEGERS, SIZES = "of integers", "made from integers"
REASONS = [
    (r"^bitwise|shift|invert|gcd|lcm|packbits|ravel_multi_index|unravel_index|_indices$|^indices$", INTEGERS),
    (r"^(bartlett|blackman|hamming|hanning|tri|r?fftfreq|bernoulli|euler|factorial[2k]|stirling2|y.*_zeros)$", SIZES),
    (r"_zeros$|^roots_(cheby|hermite|laguerre|legendre|sh_(cheby|legendre))", SIZES),
    (r"^([cehlpstu]|he|cg|js?|la|ps|ts|us)_roots$", SIZES),
    (r"busday|datetime|isnat", "of dates"),
    (r"^(save|load|from(file|regex|string|buffer)|genfromtxt)|format_float|_repr$|^array", "text and files"),
    (r"matrix|bmat", "makes a numpy.matrix: use np.block"),
    (r"frompyfunc", "an array of objects: use np.vectorize"),
    (r"fromiter", "use np.array of a list"),
    (r"nested_iters|from_dlpack", "reads memory"),
    (r"^(cheby|sh_cheby|gegenbauer|(gen)?laguerre|hermite|jacobi|sh_jacobi|legendre|sh_legendre)[cstu]?(norm)?$",
     "makes a polynomial object: use eval_ and the name"),
]  # fmt: skip
# Their arguments are parameters, in which no derivative is known in closed form.
UNKNOWN = "no derivative is known in closed form"
PARAMETERS = re.compile(r"^(mathieu_[ab]|.*_(cv|coef)|(pro|obl)_cv_seq|roots_.*|(ncfdtrid|chndtrid)f[dn]?|nctdtr.*)$")
# What is no function of arrays at all.
SETTINGS = re.compile(
    r"printoptions|^(get|set|show)_|bufsize|^seterr|^geterr|^(info|test|isdtype|issubdtype|typename|iterable|isscalar|"
    r"mintypecode|promote_types|broadcast_shapes|get_include|isfortran)$"
)
# Plain Python around functions that have rules.
AROUND = {
    "fromfunction", "row_stack", "sinc", "assoc_laguerre", "jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp",
}  # fmt: skip

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


def functions(namespace: str) -> dict[str, Any]:
    module = importlib.import_module(namespace)
    found = {}
    for name in sorted(getattr(module, "__all__", dir(module))):
        value = getattr(module, name)
        if callable(value) and not isinstance(value, type | types.ModuleType) and not name.startswith("_"):
            if not SETTINGS.search(name) and getattr(value, "__hash__", None):
                found[name] = value
    return found


def status(name: str, function: Any, intercepted: set[Any]) -> tuple[str, str]:
    """Whether a function is differentiable, constant or without a rule; and why it has none."""
    if function in UFUNCS or function in FUNCTIONS or function in intercepted or name in AROUND:
        return "differentiable", ""
    if function in CONSTANT:
        return "constant", ""
    for pattern, reason in REASONS:
        if re.search(pattern, name):
            return ("constant" if reason in (INTEGERS, SIZES) else "no rule"), reason
    return "no rule", UNKNOWN if PARAMETERS.search(name) else "not written"


def of_scipy() -> dict[str, dict[str, tuple[str, str]]]:
    """The same of the namespaces that are reached by interception, whose tables are in the library."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for name in scipy_rules.functions():
        namespace, _, leaf = name.rpartition(".")
        if namespace not in NAMESPACES:
            found.setdefault(namespace, {})[leaf] = scipy_rules.status(name)
    return found


def page() -> str:
    intercepted = {getattr(owner, name) for owner, name, _ in FIRST} | CREATORS
    spaces = {
        namespace: {name: status(name, f, intercepted) for name, f in functions(namespace).items()}
        for namespace in NAMESPACES
    } | of_scipy()
    counts, tables = [], []
    for namespace, found in spaces.items():
        count = Counter(kind for kind, _ in found.values())
        counts.append(f"| `{namespace}` | {count['differentiable']} | {count['constant']} | {count['no rule']} |")
        tables.append(f"## {namespace}\n\n| function | status | why |\n|---|---|---|")
        tables += [f"| `{name}` | {kind} | {why} |" for name, (kind, why) in found.items()]
        tables.append("")
    return (
        HEAD
        + "\n".join(counts)
        + "\n"
        + TAIL.format(numpy=np.__version__, scipy=scipy.__version__)
        + "\n"
        + "\n".join(tables)
    )
