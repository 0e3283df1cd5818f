"""Every form of Python's syntax that can read an array sees the traced values that were written into it.

The oracle is the program itself, run by Python on plain numbers, and differences of its values. A last test walks the
grammar: each kind of expression, operator and statement stands in a program here.
"""

import ast
import asyncio
import collections
import functools
import inspect
import itertools
import operator
import runpy

import numpy as np
import pytest

from effgrad import EffgradError, grad, jvp

X = 0.7


def written(x):
    """An array that holds traced values, written element by element."""
    a = np.zeros(3)
    a[0], a[1] = x, 2.0 * x
    a[2] = x * x
    return a


def constant(a):
    return 1.5 * a.sum()


def by_augmented_assignment(a):
    b = np.ones(3)
    b += a
    b *= a
    s = 0.0
    s += a[1]
    return s + b.sum()


def by_other_augmented_assignments(a):
    b, m = np.full(3, 4.0), np.eye(3)
    b -= a
    b /= a + 1.0
    b **= a
    b %= 1.7
    m @= np.outer(a, a)
    c = np.full(3, 9.5)
    c //= a
    return b.sum() + m[0, 1] + c.sum()


def by_branches(a):
    s = 0.0
    if a[0] > 0.5 and not a[1] < 0.0:
        s = s + a[2]
    while s < 3.0:
        s = s + a[0]
    else:
        s = s * 2.0
    return s + (a[1] if a[0] != a[1] else 0.0)


def by_chained_comparison(a):
    return a[1] * (0.0 < a[0] < 1.0) + a[2] * (a[0] in (a[0], 5.0)) + (a[1] is not None) * a[0] + (a is a) * a[1]


def by_loops(a):
    s = 0.0
    for v in a:
        s = s + v * v
    for i, v in enumerate(a):
        s = s + i * v
    for v, w in zip(a, a[::-1], strict=True):
        if v > w:
            continue
        s = s + v * w
        if s > 100.0:
            break
    else:
        s = s + a[0]
    return s


def by_comprehensions(a):
    listed = [v * v for v in a if v > 0]
    named = {i: v for i, v in enumerate(a)}
    generated = sum(v * w for v in a for w in a)
    several = {1.0 * i for i in range(3) if a[i] > 0}
    return sum(listed) + named[1] + generated + len(several) * a[0] + len({1, 2}) * a[1]


def by_unpacking(a):
    first, *rest = a
    (p, q), r = a[:2], a[2]
    listed, gathered = [*a, first], (*a,)
    return first * rest[0] + p * q + r + listed[1] + gathered[2]


def by_unpacking_of_rows(a):
    m = np.outer(a, a)
    s = sum(p * q + r for p, q, r in m) + sum(i * p * q for i, (p, q, *_) in enumerate(m))
    for i, (p, (q, r)) in enumerate(zip(a, m[:, :2], strict=True)):
        s = s + i * p * q * r
    (p, q, _), [r, *others] = m[1], a
    kept, i = [0.0, 0.0], 0
    kept[i], i = a[1], 1
    (kept[i], i), p = a[1:], p * q
    return s + p * q * r + others[0] + kept[0] * kept[1] * i


def by_starred_arguments(a):
    def product(*values, scale):
        return functools.reduce(operator.mul, values) * scale

    return product(*a, **{"scale": a[0]})


def by_lambda_and_names(a):
    double = lambda v, by=a: v * by[1]  # noqa: E731
    return double(a[0]) + (b := a[2]) * b


def by_slices_and_views(a):
    view, turned = a[1:], a.reshape(3, 1).T
    view[0] = 3.0 * a[0]
    return (a[::2] * turned[0, ::2]).sum() + a[-1:][0] + a[[0, 1]].sum() + a[a > 0.5].sum() + a[None, :].sum()


def by_attributes(a):
    return a.T @ a.real + a.flat[1] + sum(a.flat) + a.imag.sum() + a.size * a[0] + a.shape[0] * a[1]


def by_methods(a):
    return a.sum() + a.dot(a) + a.copy()[1] + a.max() + a.item(2) + a.tolist()[0] + a.mean() + np.square(a).cumsum()[-1]


def by_numpy(a):
    joined = np.concatenate([a, a]) + np.stack([a, a]).ravel()
    return joined.sum() + np.einsum("i,i", a, a) + np.linalg.norm(a) + np.where(a > 1.0, a, -a).sum() + np.array(a)[1]


def by_operators(a):
    b = a + a - a * a / (a + 1.0)
    return (b**2).sum() + (a // 0.3).sum() + (a % 0.3).sum() + (a @ a) + (-a).sum() + (+a)[0]


def by_reflected_operators(a):
    return (2.0 + a - (3.0 - a) * (1.0 / (a + 1.0))).sum() + (2.0**a).sum() + (5.0 % (a + 1.0)).sum()


def by_bits_and_truth(a):
    big, small = a > 0.5, a < 2.0
    both, either, one = big & small, big | small, big ^ small
    none = ~big
    shifted = (np.array([1, 2, 4]) << 1) >> 2
    return (both * a).sum() + (either * a).sum() + (one * a).sum() + (none * a).sum() + (shifted * a).sum()


def by_short_circuits(a):
    return (a[0] and a[1]) + (0.0 or a[2])


def by_strings(a):
    text = f"{a[0] / 3:.3f} {a!r}"
    return a[1] * (float(text.split()[0]) > 0) + a[0]


def by_yield_from(a):
    def values():
        yield a[0]
        yield from a

    return sum(v * v for v in values())


def by_await(a):
    async def later(v):
        return v * a[1]

    async def all_of_them():
        total = 0.0
        async for v in several():
            total = total + await later(v)
        return total

    async def several():
        for v in a:
            yield v

    return asyncio.run(all_of_them())


def by_match(a):
    match [a[0], a[1]]:
        case [first, second] if first < second:
            found = first * second
        case _:
            found = 0.0
    match {"value": a}:
        case {"value": inside}:
            found = found + inside[2]
    return found


def by_with_and_try(a):
    class Held:
        def __init__(self, values):
            self.values = values

        def __enter__(self):
            return self.values[1] * self.values

        def __exit__(self, *error):
            return False

    with Held(a) as values:
        try:
            raise ValueError(a[0])
        except ValueError as error:
            caught = error.args[0]
        finally:
            last = a[2]
    return values.sum() + caught * last


def by_annotation_and_deletion(a):
    total: float = a[0]
    kept = [a]
    del kept[0]
    return total * a[1]


def by_containers(a):
    kept = {"a": a, "list": [a], "nested": (a, {"b": a})}
    point = collections.namedtuple("Point", "u v")(a[0], a)
    return kept["list"][0][1] * kept["nested"][1]["b"][2] + point.v[0] * point.u


def by_a_class(a):
    class Series:
        def __init__(self, values):
            self._values = values

        @property
        def last(self):
            return self._values[-1]

        def __getitem__(self, i):
            return self._values[i]

        def __len__(self):
            return len(self._values)

        def __iter__(self):
            return iter(self._values)

        def __add__(self, other):
            return Series(self._values + other)

        def __call__(self, scale):
            return scale * self._values.sum()

    s = Series(a) + a
    return s.last * s[0] + sum(s) + s(a[1]) + len(s) * a[0]


def by_a_view_kept_elsewhere(a):
    kept = [a[1:], a[:2]]
    a[1] = a[0] * 5.0
    return kept[0][0] * kept[1][1] + kept[1].sum()


def by_functions_of_python(a):
    return sum(a) + max(a) * min(a) + sum(map(np.sin, a)) + sum(sorted(a)[:2]) + sum(reversed(a)) + abs(a[0] - a[1])


def by_itertools(a):
    pairs = sum(v * w for v, w in itertools.combinations(a, 2))
    return pairs + sum(itertools.chain(a, a)) + list(itertools.accumulate(a))[-1] + next(iter(a))


def by_partial_and_reduce(a):
    return functools.partial(np.dot, a)(a) + functools.reduce(lambda s, v: s + v * v, a, 0.0)


def by_out(a):
    b = np.empty(3)
    np.multiply(a, a, out=b)
    np.copyto(b[1:], a[:2])
    np.put(b, [0], a[2])
    return (b * a).sum()


def by_chained_assignment(a):
    b = c = a
    b[0] = c[1] * 2.0
    d = (e := a)[2]
    return a[0] + c[0] * e[1] + d


def by_assertion(a):
    assert a[0] > 0.0 and a.sum() > 0, f"{a}"
    return a[0] * a[1]


PROGRAMS = {
    f.__name__: f
    for f in list(globals().values())
    if inspect.isfunction(f) and (f.__name__.startswith("by_") or f.__name__ == "constant")
}
# Statements that read no value, what newer versions of Python have, and comparisons whose like stands there.
SILENT = frozenset((
    "Global", "Nonlocal", "Pass", "Import", "ImportFrom", "TryStar", "TypeAlias", "AsyncWith", "TemplateStr",
    "Interpolation", "Num", "Str", "Bytes", "NameConstant", "Ellipsis", "NotIn", "LtE", "GtE", "Eq",
))  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_read_sees_what_was_written(name):
    f = PROGRAMS[name]

    def program(x):
        return f(written(x))

    step = 1e-6
    expected = (program(X + step) - program(X - step)) / (2 * step)
    value, forward = jvp(program, (X,), (1.0,))
    assert value == program(X)
    np.testing.assert_allclose(grad(program)(X), expected, rtol=1e-6)
    np.testing.assert_allclose(forward, expected, rtol=1e-6)


@pytest.mark.parametrize("read", [
    bytes, lambda a: memoryview(a).tobytes(), lambda a: np.frombuffer(a)[0], lambda a: a.tobytes(),
])  # fmt: skip
def test_a_read_by_compiled_code_is_an_error_or_constant(read):
    """What compiled code reads of the memory itself is a marked NaN, and an error where a derivative meets it."""
    with pytest.raises((EffgradError, TypeError, ValueError)):
        grad(lambda x: x * np.asarray(np.frombuffer(read(written(x)), float)).sum())(X)


def kinds(tree):
    return {type(node).__name__ for node in ast.walk(tree)}


def test_the_whole_grammar_stands_in_the_programs():
    trees = [ast.parse(inspect.getsource(f)) for f in PROGRAMS.values()]
    found = set().union(*map(kinds, trees))
    concrete = {
        kind.__name__
        for base in (ast.expr, ast.stmt, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
        for kind in base.__subclasses__()
    }
    assert concrete - SILENT <= found, concrete - SILENT - found


def test_a_text_at_the_margin_after_an_import_hides_no_import(tmp_path):
    """NPBench's nbody: without its import `np.sum` was compiled in another way, and the function was not read."""
    file = tmp_path / "margin.py"
    lines = ["import numpy as np", '"""', "A text at the margin,", "of two lines.", '"""', "", "", "def f(x):"]
    lines += ["    k = np.ndarray(2)", "    k[0], k[1] = np.sum(x), np.sum(x * x)", "    return k[0] * k[1]", ""]
    file.write_text("\n".join(lines))
    names = {"__name__": "margin"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    x = np.array([1.0, 2.0])
    assert np.allclose(grad(names["f"])(x), [5 + 2 * 3 * 1, 5 + 2 * 3 * 2])


LAYOUTS = {
    "a signed docstring before the imports": '"""\nCreated on a day\n\n@author: somebody\n"""\nimport numpy as np\n',
    "text at the margin after an import": 'import numpy as np\n\n"""\nA title\n# with a line\n"""\n',
    "names of an import at the margin": "import numpy as np\nfrom math import (\ncos,\nsin,\n)\n",
    "quotes in comments and strings": "import numpy as np  # it's\n"
    "text = '\"\"\"'\nother = \"\"\"\nimport '''\n\\\"\"\" \"\"\"\n",
    "a string that goes on after a backslash": "import numpy as np\ntext = 'a\\\nimport it'\n",
}
PROGRAM = """
ONES = np.ones(2)

def f(x):
    a = ONES * 1.0
    a += 2.0 * np.sin(x)
    return np.sum(a * a)
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_function_is_read_however_its_file_begins(layout, tmp_path):
    """A module's imports decide how Python compiles calls: one that was missed made all of its functions unread."""
    file = tmp_path / "layout.py"
    file.write_text(LAYOUTS[layout] + PROGRAM)
    names = runpy.run_path(str(file))
    assert grad(names["f"])(0.5) == pytest.approx(4 * (1 + 2 * np.sin(0.5)) * 2 * np.cos(0.5))


@pytest.mark.parametrize("separator", ["; ", "\n"])
def test_statements_on_one_line_are_read(separator, tmp_path):
    """Only the first of several statements on a line was found, and a function in another was not read."""
    file = tmp_path / "line.py"
    program = ["import numpy as np", "ones = np.ones(2)", "f = lambda x: np.sum(write(ones * 1.0, x))"]
    file.write_text(separator.join(program) + "\n" + "def write(a, x):\n    a += x; a *= x\n    return a\n")
    names = runpy.run_path(str(file))
    assert grad(names["f"])(0.5) == pytest.approx(2 * (1 + 2 * 0.5))
