"""Random programs that make views and copies of their arrays and write to them, as text, and an oracle for them.

The oracle is NumPy at a complex step: every statement is holomorphic or decides by the real part, so the imaginary part
of the program's result at x + 1e-30j u, over 1e-30, is the derivative along u to the last bit. Views, overlaps, copies
and the order of writes are NumPy's own there, and no code of effgrad runs.

Squire and Trapp, Using complex variables to estimate derivatives of real functions (1998).
"""

import builtins
import linecache
import re
import textwrap

import numpy as np

from effgrad import EffgradError, checkpoint, compile, jvp, value_and_grad

STEP, LARGEST = 1e-30, 60

# Statements by kind. {a}, {b} are arrays, {s} a number, {c} a new name, {i}, {j} indices, {v} what is written.
VIEWS = """
{c} = {a}[{i}]
{c} = {a}.T
{c} = {a}.reshape(-1)
{c} = {a}.reshape(-1, order="F")
{c} = np.reshape({a}, (-1, 1))
{c} = np.ravel({a}, order="K")
{c} = np.ravel({a})
{c} = {a}.ravel(order="F")
{c} = {a}.view()
{c} = {a}
{c} = np.asarray({a})
{c} = np.ascontiguousarray({a})
{c} = np.asfortranarray({a})
{c} = np.atleast_2d({a})
{c} = np.squeeze({a})
{c} = np.expand_dims({a}, 0)
{c} = np.swapaxes({a}, 0, -1)
{c} = np.moveaxis({a}, 0, -1)
{c} = np.flip({a}, 0)
{c} = np.rot90({a})
{c} = np.array_split({a}, 2)[1]
{c} = np.einsum("i...->...i", {a})
{c} = np.einsum("ii->i", {a})
{c} = np.transpose({a})[{i}]
{c} = list({a})[-1]
{c}, {d} = np.array_split({a}, 2, axis=-1)
{c} = [row for row in {a}][0]
{c} = np.broadcast_to({a}, (2, *{a}.shape))
{c} = np.diagonal({a})
{c} = np.diag({a})
{c} = {a}[{j}, ...]
{c} = {a}.reshape(())
{c} = {a} if {s} > 0.2 else {b}
{c} = {a} if {s} > 0.2 else {a} * 1.5
""".strip().split("\n")
COPIES = """
{c} = {a}.copy()
{c} = np.array({a})
{c} = np.array({a}, order="F")
{c} = {a} * 1.5
{c} = {a} + {b}
{c} = np.sin({a})
{c} = np.tanh({a}) * {b}
{c} = np.zeros_like({a})
{c} = np.zeros({a}.shape)
{c} = np.ones((2, 3))
{c} = np.full({a}.shape, {s})
{c} = np.concatenate([{a}, {b}])
{c} = np.stack([{a}, {b}], axis=-1)
{c} = np.where({a} > 0.1, {a}, {b})
{c} = np.roll({a}, 1)
{c} = np.cumsum({a}, axis=0)
{c} = np.repeat({a}, 2, axis=0)
{c} = np.tile({a}, 2)
{c} = {a}.flatten()
{c} = np.take({a}, [0, -1, 0], axis=0)
{c} = {a}[[0, -1]]
{c} = {a}[{a} > 0.0]
{c} = np.array([{s}, np.sum({a}), 0.5])
{c} = np.array([{a}[{j}], {s}])
{c} = np.outer({a}, [1.0, 0.5])
{c} = np.diff({a}, axis=0)
{c} = np.pad({a}, 1)
{c} = np.sum({a}, axis=0)
{c} = np.mean({a}, axis=-1, keepdims=True)
{c} = np.tril({a})
{c} = np.sort({a}, axis=0)
{c} = np.clip({a}, -0.5, 0.5)
{c} = np.append({a}, {b})
{c} = np.delete({a}, 0, axis=0)
{c} = np.insert({a}, 0, {s}, axis=0)
{c} = {a} @ {b}
{c} = {a}.astype({b}.dtype)
{c} = np.array({s})
{c} = np.where({s} > 0.1, {s}, {a}[{j}])
{c} = np.full((), {s})
{c} = np.zeros(())
{c} = np.tensordot({a}, {b}, {a}.ndim)
""".strip().split("\n")
WRITES = """
{a}[{i}] = {v}
{a}[{i}] += {v}
{a}[{i}] *= {v}
{a}[{i}] -= {v}
{a}[{i}] = np.sin({a}[{i}])
{a}[{j}] = {s}
{a}[{j}] += {a}[{j}] * {s}
{a}[...] = {b}
{a}[:] = {s}
{a} += {b}
{a} *= {s}
{a} /= 2.0
{a} **= 2
{a}.fill({s})
{a}[()] = {s}
{a}[...] -= {s}
{a}[{a} > 0.2] = {s}
{a}[{a} > 0.2] *= 0.5
{a}[[0, 0]] += {s}
{a}[[-1, 0]] = {a}[[0, -1]]
{a}[1:] += {a}[:-1]
{a}[:-1] = {a}[1:]
{a}[::-1] -= {a} * 0.5
{a}[0], {a}[-1] = {a}[-1], {a}[0]
{a}.flat[0] = {s}
{a}.T[{i}] = {v}
{a}[{i}][{j}] = {s}
{a}.reshape(-1)[0] = {s}
{a}.ravel()[-1] *= {s}
np.sin({a}, out={a})
np.multiply({a}, {b}, out={b})
np.add({a}, {s}, out={a}, where={a} > 0.0)
np.copyto({a}, {b})
np.copyto({a}, {s}, where={a} > 0.0)
np.add.at({a}, [0, 0, -1], {s})
np.subtract.at({a}, 0, {b})
np.fill_diagonal({a}, {s})
np.put({a}, [0, -1], {s})
np.putmask({a}, {a} > 0.1, {s})
np.place({a}, {a} > 0.1, [{s}, 0.5])
np.put_along_axis({a}, np.zeros((1,) * {a}.ndim, int), {s}, 0)
{a}.sort(axis=0)
for row in {a}: row *= 0.5
for row in {a}: row += {s}
for k in range(1, len({a})): {a}[k] += {a}[k - 1] * 0.5
for k in range(len({a})): {a}[k] = np.sin({a}[k]) + {s}
while np.sum({a} * {a}) > 9.0: {a} *= 0.5
if {a}[{j}] > 0.1: {a}[{j}] = {s}
bump({a})
bump({a}[{i}])
{a} = scaled({a}, {s})
{a}, {b} = {b}, {a}
{a} = {b}
{a} = {a} * 0.5
if {s} > 0.2: {a} = {b}
""".strip().split("\n")
NUMBERS = """
{n} = {a}[{j}]
{n} = np.sum({a}) * 0.1
{n} = {s} * 0.5
{n} = np.max({a})
{n} = np.mean({a}) + {s}
{n} = {a}[{j}] * 1.0
""".strip().split("\n")
# A view or a copy as often as a write.
KINDS = [VIEWS, COPIES, WRITES, WRITES, NUMBERS]
SLICES = [":", "::-1", "1:", "::2", ":-1", "-1", "0", "None", "...", "[0, -1]", "[1, 1]"]
# Those inside a loop of `k`, and the numbers of its steps: short ones may be unrolled.
SLICES_OF_STEPS = [*SLICES, "k % 2", "k % 2:", "-(k % 2)"]
STEPS = 7, 40, 64
HEAD = """def bump(v):
    v[0] = v[0] * 2.0
    v += 0.1


def scaled(v, s):
    v = v.copy()
    v *= s
    return v


"""


class Complexed:
    """NumPy, whose new arrays are complex."""

    def __getattr__(self, name):
        return getattr(np, name)

    def zeros(self, shape, dtype=complex):
        return np.zeros(shape, dtype)

    def ones(self, shape):
        return np.ones(shape, complex)

    def full(self, shape, value):
        return np.full(shape, value, complex)

    def array(self, value, **options):
        return np.array(value, complex, **options)


def generate(seed, steps=10, loops=False, generators=False):
    """The text of a program of one matrix, and the matrix.

    With `loops`, about half of its statements are loops, and often its first part is a function, which returns the
    names that it binds to the rest. With `generators` too, most loops are over a generator function.
    """
    random = np.random.default_rng([seed, 77 + generators] if loops else seed)
    x = random.uniform(-1, 1, tuple(random.integers(1, 4, 2)))
    first = "a0 = x" if random.random() < 0.5 else "a0 = x * 1.0"
    lines = [first, "a1 = np.zeros((2, 3))", "a2 = x[0] * 2.0", "s0 = 0.5"]
    scope = {"np": np, "x": x.copy()}
    exec(HEAD, scope)
    with np.errstate(all="ignore"):
        for line in lines:
            exec(line, scope)
        known = [set(scope)] * len(lines)  # after each line
        attempts = 0
        while len(lines) < steps + 4 and attempts < 200:
            attempts += 1
            line = loop(random, scope, generators) if loops and random.random() < 0.5 else statement(random, scope)
            if line and runs(line, scope):
                lines.append(line)
                known.append(set(scope))
    names = [name for name in scope if name[0] == "a" and name[1:].isdigit()]
    total = " + ".join(f"np.sum(np.sin({name})) * {k + 1.0}" for k, name in enumerate(names))
    numbers = "".join(f" + np.sin({name})" for name in scope if name[0] == "s" and name[1:].isdigit())
    lines.append(f"return {total}{numbers}")
    cut = int(random.integers(4, len(lines))) if loops and random.random() < 0.6 else 0
    return HEAD + (in_two(lines, cut, known[cut - 1]) if cut else defined("f", lines)), x


def defined(name, lines):
    """The definition of a function of x."""
    return f"def {name}(x):\n" + "".join(textwrap.indent(line, "    ") + "\n" for line in lines)


def in_two(lines, cut, known):
    """A function for the first lines, which returns the names that they bind, and `f`, which calls it."""
    bound = ", ".join(sorted(known & {*re.findall(r"\b[as]\d+\b", "\n".join(lines[:cut]))}))
    first = defined("first", [*lines[:cut], f"return {bound}"])
    return first + "\n\n" + defined("f", [f"{bound} = first(x)", *lines[cut:]])


def loop(random, scope, generators=False):
    """A loop of one to four statements, which run in a copy of the scope when they are drawn; some in every third step.

    It is None if no statement was found.
    """
    trial = {name: copied(value) for name, value in scope.items()} | {"k": 1}
    body, wanted = [], int(random.integers(1, 5))
    for _ in range(60):
        line = statement(random, trial, SLICES_OF_STEPS)
        if len(body) == wanted or not line or line.startswith(("for", "while", "if")):
            continue
        line = line.replace(" 0.7", " (0.01 * k)") if random.random() < 0.3 else line
        line = f"if k % 3 == 1: {line}" if random.random() < 0.2 else line
        try:
            exec(line, trial)
        except Exception:  # NumPy rejects the statement for the arrays that were drawn, so another one is drawn
            continue
        body.append(line)
    header = f"for k in range({STEPS[int(random.integers(len(STEPS)))]}):"
    if generators and body and random.random() < 0.8:
        return over_generator(random, scope, header, body)
    return "\n    ".join([header, *body]) if body else None


def over_generator(random, scope, header, body):
    """The definition of a generator function with some statements of a loop, and a loop over it with the others.

    The generator has the arrays of the program as arguments, by the same names or by those of others, and yields one.
    """
    places = [int(random.integers(len(body) + 1)) for _ in range(2)]
    inside, outside = body[: max(places)], body[max(places) :]
    names = [name for name in scope if name[0] in "as" and name[1:].isdigit()]
    own = [name for name in names if any(re.search(rf"\b{name}\b", line) for line in inside)]
    item = str(random.choice([name for name in names if name[0] == "a"]))
    own = list(dict.fromkeys([*own, item]))
    inside = [re.sub(r"\b[as]\d+\b", lambda m: m[0] if m[0] in scope else f"own_{m[0]}", line) for line in inside]
    made = [*inside[: min(places)], f"yield {item}", *inside[min(places) :]]
    made = [*made, *[f"if k % 3 == 1: yield {item} * 0.5"][: int(random.random() < 0.3)]]
    ends = ["if k > 30: return", "if np.sum(" + item + " * " + item + ") > 50.0: return", "if k == 2: continue", ""]
    made = [ends[int(random.integers(len(ends)))], *made]
    jumps = ["if k > 20: break", "if np.sum(item) > 2.0: break", "if np.sum(item) < -1.0: continue", ""]
    outside = [jumps[int(random.integers(len(jumps)))], *outside]
    outside.append(["a0 = a0 * 0.9", "s0 = s0 * 0.9 + np.sum(item) * 0.1"][int(random.integers(2))])
    used = [*outside, "item[0] *= 0.7"][-int(random.integers(1, 3)) :] if random.random() < 0.3 else outside
    name = f"steps{len(scope)}"
    parts = [f"def {name}({', '.join(own)}):", f"    {header}", *[f"        {line}" for line in made if line]]
    parts += [f"for k, item in enumerate({name}({', '.join(own)})):", *[f"    {line}" for line in used if line]]
    return "\n".join(parts)


def copied(value):
    """The copy of an array, which can be written to if the array can."""
    if not isinstance(value, np.ndarray):
        return value
    found = value.copy()
    found.flags.writeable = value.flags.writeable
    return found


def statement(random, scope, slices=SLICES):
    """One statement about the names that there are."""
    arrays = [name for name in scope if name[0] == "a" and name[1:].isdigit()]
    numbers = [name for name in scope if name[0] == "s" and name[1:].isdigit()]

    def one(items):
        return items[int(random.integers(len(items)))]

    a, b, kind = one(arrays[-5:]), one(arrays), one(KINDS)
    value = scope[a]
    if not isinstance(value, np.ndarray) or not isinstance(scope[b], np.ndarray):
        return None
    if kind is WRITES and not (value.flags.writeable and scope[b].flags.writeable):
        return None  # NumPy's `ufunc.at` writes to read-only arrays
    index = ", ".join(one(slices) for _ in range(int(random.integers(1, max(value.ndim, 1) + 1))))
    element = ", ".join(one(["0", "-1"]) for _ in range(value.ndim)) or "()"
    s = one([one(numbers), "0.7", f"np.sum({b}) * 0.3", f"{one(numbers)} * {one(numbers)}"])
    v = one([s, b, f"{b} * 0.5", f"{a}[{index}] * {s}", f"np.cos({b})"])
    return one(kind).format(
        a=a, b=b, c=f"a{len(arrays)}", d=f"a{len(arrays) + 1}", n=f"s{len(numbers)}", i=index, j=element, s=s, v=v
    )


def runs(line, scope):
    """Run a statement; whether it leaves arrays of small numbers, and so may be part of the program."""
    trial = {**scope}
    arrays = {name: value for name, value in scope.items() if isinstance(value, np.ndarray)}
    before = {name: value.copy() for name, value in arrays.items()}
    try:
        exec(line, trial)
        fine = all(
            isinstance(value, float if name[0] == "s" else np.ndarray | float)
            and 0 < np.size(value) <= LARGEST and np.max(np.abs(value)) < 20 and np.result_type(value).char == "d"
            for name, value in trial.items() if name[0] in "as" and name[1:].isdigit()
        )  # fmt: skip
    except Exception:
        fine = False
    if fine:
        scope.update(trial)
        return True
    for name, value in arrays.items():
        if value.flags.writeable:
            value[...] = before[name]
    return False


def function(text, seed=0, numpy=np):
    """The function of a text, over NumPy or the oracle's."""
    file = f"<program {seed}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope = {"np": numpy}
    exec(builtins.compile(text, file, "exec"), scope)
    return scope["f"]


def derivative(text, x, u):
    """The derivative of a program along u, by NumPy at a complex step."""
    return np.imag(function(text, numpy=Complexed())(x + 1j * STEP * u)) / STEP


RUNS = {
    "forward": lambda f, x, u: jvp(f, (x,), (u,)),
    "reverse": lambda f, x, u: along(value_and_grad(f)(x), u),
    "delta": lambda f, x, u: along(value_and_grad(f, mode="delta")(x), u),
    "checkpoint": lambda f, x, u: along(value_and_grad(lambda x: checkpoint(lambda x: f(x * 1.0), x))(x), u),
    "compiled": lambda f, x, u: along(compile(value_and_grad(f))(x), u),
    "compiled to NumPy": lambda f, x, u: along(compile(value_and_grad(f), "numpy")(x), u),
}


def along(pair, u):
    return pair[0], np.sum(pair[1] * u)


def disagreements(seed, runs, loops=False, generators=False):
    """How a program's value, to the bit, and its derivative disagree with NumPy's under some runs.

    Compiled loops may round otherwise; how far that goes is seen from the same program at an argument beside x.
    """
    text, x = generate(seed, 7, True, generators) if loops else generate(seed)
    u, f = np.random.default_rng([seed, 1]).normal(size=x.shape), function(text, seed)
    value, slope, spread, bend = f(x.copy()), derivative(text, x, u), 0.0, 0.0
    if loops:
        beside = x * (1 + 1e-15)
        spread, bend = abs(f(beside.copy()) - value), abs(derivative(text, beside, u) - slope)
    for run in runs:
        try:
            found, tangent = RUNS[run](f, x, u)
        except EffgradError as error:
            yield f"refused, {run}: {str(error).splitlines()[0]}"
            continue
        except Exception as error:
            yield f"RAW, {run}: {type(error).__name__}: {error}"
            continue
        rounding = 1e-11 * (1 + abs(value)) + 1e3 * spread if run.startswith("compiled") else 0.0
        if not abs(found - value) <= rounding:
            yield f"WRONG value, {run}: {found!r} for {value!r}"
        if not abs(tangent - slope) <= 1e-8 * (1 + abs(slope)) + 1e3 * bend:
            yield f"WRONG derivative, {run}: {tangent!r} for {slope!r}"
