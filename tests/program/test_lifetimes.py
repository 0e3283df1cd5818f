"""Programs are freed when nobody uses them: what is remembered of their functions and classes lasts as long as these.

A program made by `exec` was kept for ever with its globals, by the targets of its functions, by the rewritten code, and
by caches of what classes are.
"""

import gc
import linecache
import os
import pathlib
import types
import weakref

import numpy as np
import pytest
from processes import run_apart

import effgrad
from effgrad import grad
from effgrad.program.rewritten import SOURCES

PROGRAM = '''
import dataclasses
import functools
import numpy as np

class Pair:
    def __init__(self, x):
        self.x = x
    @property
    def twice(self):
        return 2 * self.x
    def __mul__(self, other):
        return Pair(self.x * other.x)
    def __len__(self):
        return 3
    def __getitem__(self, place):
        return self.x[place]

@dataclasses.dataclass
class Record:
    a: float

class Failed(Exception):
    pass

class Number(float):
    def half(self):
        return self / 2

class Array(np.ndarray):
    def total(self):
        return self.sum()

def decorated(f):
    @functools.wraps(f)
    def called(*args):
        return f(*args)
    return called

@functools.lru_cache
def table(n):
    return np.arange(n)

@decorated
def helper(x):
    return np.sin(x) * 2

def f(x):
    try:
        raise Failed
    except Failed:
        y = helper(x) + table(3)
    z = (Pair(x) * Pair(x)).twice + np.array([*Pair(x)])
    return np.sum(y + z + Record(x).a) * Number(3.0) + (np.ones(3).view(Array) * x).total()
'''

SIMPLE = "import numpy as np\ndef helper(x):\n    return np.sin(x) * 2\ndef f(x):\n    return np.sum(helper(x) * x)\n"

USES = {
    "grad": lambda f: grad(f)(np.arange(3.0)),
    "value": lambda f: effgrad.value_and_grad(f)(np.arange(3.0)),
    "jvp": lambda f: effgrad.jvp(f, (np.arange(3.0),), (np.ones(3),)),
    "hessian": lambda f: effgrad.hessian(f)(np.arange(3.0)),
    "vmap": lambda f: effgrad.vmap(f)(np.ones((2, 3))),
    "compile": lambda f: effgrad.compile(grad(f))(np.arange(3.0)),
    "compile again": lambda f: [effgrad.compile(f)(x) for x in (np.arange(3.0), np.ones(3))],
}


def used(use, file, text=PROGRAM, source=True):
    """Make the program, use its function, and return weak references to what it defines."""
    names = {"__name__": "a_program"}
    if source:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    use(names["f"])
    linecache.cache.pop(file, None)
    kinds = types.FunctionType, type
    return {name: weakref.ref(value) for name, value in names.items() if isinstance(value, kinds)}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize(("text", "source"), [(PROGRAM, True), (SIMPLE, True), (SIMPLE, False)])
def test_a_program_is_freed_with_its_functions_and_classes(text, source, name):
    references = used(USES[name], f"<{name}>", text, source)
    gc.collect()
    assert [kept for kept, reference in references.items() if reference() is not None] == []


def test_a_program_whose_derivative_failed_is_freed():
    def failing(f):
        with pytest.raises(effgrad.NotDifferentiable):
            grad(lambda x: [f(x)])(np.arange(3.0))

    references = used(failing, "<failing>")
    gc.collect()
    assert [kept for kept, reference in references.items() if reference() is not None] == []


def test_the_code_of_a_program_leaves_nothing_among_the_sources():
    gc.collect()
    before = [len(table) for table in (SOURCES.modules, SOURCES.statements, SOURCES.known, SOURCES.rewritten)]
    for number in range(3):
        used(USES["grad"], f"<source {number}>")
    gc.collect()
    after = [len(table) for table in (SOURCES.modules, SOURCES.statements, SOURCES.known, SOURCES.rewritten)]
    assert all(later <= earlier + 5 for later, earlier in zip(after, before, strict=True))  # of functions of libraries


def test_a_class_made_in_a_function_is_freed():
    def f(x):
        class Local:
            def __init__(self, value):
                self.value = value

        references.append(weakref.ref(Local))
        return Local(x).value * x

    references = []
    grad(f)(2.0)
    gc.collect()
    assert references[0]() is None


def test_a_function_and_its_program_stay_right_after_the_cache_has_forgotten_them():
    names = {"__name__": "a_program"}
    exec(compile("import numpy as np\ndef g(x): return np.sin(x)\ndef f(x): return g(x) * x", "<again>", "exec"), names)
    values = [grad(names["f"])(2.0) for _ in range(3)]
    names["g"] = np.cos
    assert values == pytest.approx([np.sin(2) + 2 * np.cos(2)] * 3)
    assert grad(names["f"])(2.0) == pytest.approx(np.cos(2) - 2 * np.sin(2))


def compile_many(folder):
    """Print by how much each of 60 compilations of different programs enlarges the process, in MB."""
    os.environ["EFFGRAD_CACHE"] = str(folder / "kernels")

    def compiled(number):
        def f(x):
            for k in range(number % 5 + 2):
                x = np.sin(x) * (1 + number / 7) + k
            return np.sum(x)

        g = effgrad.compile(grad(f))
        g(np.arange(5.0))
        g(np.arange(5.0))

    def size():
        gc.collect()
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    for number in range(20):
        compiled(number)
    before = size()
    for number in range(20, 80):
        compiled(number)
    print((size() - before) / 60)


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="the size is read in /proc")
def test_a_compilation_leaves_little_more_than_the_pages_of_its_machine_code(tmp_path):
    """LLVM's passes were never freed, by an error of llvmlite: 0.06 MB for each module with loops."""
    assert float(run_apart(compile_many, tmp_path).split()[-1]) < 0.07
