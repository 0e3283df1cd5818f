"""Random loop programs in which the classes of numbers change: Python's and NumPy's truth values, integers, floats.

`program(seed)` is a function of one vector of three numbers that returns a number.
"""

import linecache
import random

import numpy as np

POINT = np.array([0.3, -0.4, 0.2])
STARTS = [
    "0", "1", "True", "False", "0.0", "1.5", "np.bool_(False)", "np.bool_(True)", "np.int64(0)", "np.int64(2)",
    "np.float64(0.5)", "v[0]", "v[1] > 0", "bool(v[1] > 0)", "2", "np.float32(0.5)", "-1", "1j", "int(v[2] * 10)",
]  # fmt: skip
HEADS = [
    "for i in range(40):", "for i in range(40):", "for i in range(len(v) + 37):",
    "i = 0\n    while i < 40 and t < 50:", "i = 0\n    while i < 0 + (v[0] > 9):",
    "i = 0\n    while i < 1 + (v[0] > 9):",
    "for i in range(40):\n        if v[0] + i > -1: break", "for i in range(40):\n        if v[0] + i > 20: break",
]  # fmt: skip
TRUTHS = [
    "v[i % 3] > 0", "bool(v[i % 3] > 0)", "i % 2 == 1", "i > 3", "v[i % 3] > 0 and i > 3", "i > 3 and v[i % 3] > 0",
    "(i > 2 or v[i % 3] > 0)", "not v[i % 3] > 0", "k > 0", "k == m", "np.isfinite(v[i % 3])",
]  # fmt: skip
LEAVES = [
    "i", "i % 3", "1", "2.5", "(1, 2.5)[i % 2]", "(1, True, 2.5)[i % 3]", "(0.5, v[0])[i % 2]", "(2, v[1])[i % 2]",
    "[True, v[0] > 0][i % 2]", "v[i % 3]",
]  # fmt: skip
FORMS = [
    "@ // 2", "(@ + 3) % 3", "int(@)", "float(@)", "bool(@)", "abs(@)", "np.float64(@)", "-@", "np.sqrt(abs(@))",
    "@ & 1", "@ | True", "~@", "@ ** 2", "max(@, 1)", "min(@, 2.5)", "max(@, v[0])", "isinstance(@, np.bool_)",
    "(1.0 if isinstance(@, int) else 2.0)", "(1 if isinstance(@, float) else 0)", "(2 if type(@) is int else 3)",
    "float(len(f'{@ * 0}'))", "(x[0] + @ * x).sum()", "(@ * x)[0]", "isinstance(@, bool)", "@", "@", "@",
]  # fmt: skip
RESULTS = ["k", "m", "t", "k + k", "(k + m) * t", "m + m", "k + m"]


def expression(r, depth=0):
    """The text of a random expression."""
    if depth > 1:
        return r.choice(LEAVES)
    a, b = (f"({expression(r, depth + 1)})" for _ in range(2))
    some = [r.choice(FORMS).replace("@", r.choice("kmt")), f"{a} {r.choice('++-*')} {b}", f"{a} / 2"]
    return r.choice([r.choice(TRUTHS), r.choice(LEAVES), *some, f"{a} if ({r.choice(TRUTHS)}) else {b}"])


def statement(r, names="kkmt"):
    """The lines of a random statement."""
    name, value = r.choice(names), expression(r)
    line = f"{name} = {value}" if r.random() < 0.65 else f"{name} {r.choice('++*-')}= {value}"
    if r.random() > 0.2:
        return ["        " + line]
    other = ["        else:", f"            {name} = {expression(r)}"] if r.random() < 0.4 else []
    return [f"        if {r.choice(TRUTHS)}:", "            " + line, *other]


def source(seed):
    """The text of a random program."""
    r = random.Random(seed)
    lines = ["def f(v):", f"    x = np.arange(3, dtype={r.choice(['float', 'np.float32', 'float'])})"]
    lines += [f"    {name} = {r.choice(STARTS)}" for name in "km"] + [f"    t = {r.choice(['0.0', '0', 'v[0]', '1'])}"]
    head = r.choice(HEADS)
    lines += ["    " + head, *(["        i += 1"] if "while" in head else [])]
    lines += [line for _ in range(r.randint(1, 3)) for line in statement(r)]
    return "\n".join([*lines, f"    return {r.choice(RESULTS)}"]) + "\n"


def program(seed):
    """A random program as a function with a source."""
    text, name = "import numpy as np\n" + source(seed), f"<class program {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names = {}
    exec(compile(text, name, "exec"), names)
    return names["f"]
