"""Programs made at random over all statements of Python: read, they do what Python does, and have its derivative."""

import linecache
import traceback

import numpy as np
import pytest
from statement_programs import text

from effgrad import compile as compile_
from effgrad import jvp, value_and_grad

# A program that misuses NumPy or a class: what is said of it is not Python's own affair.
MISUSED = (TypeError, AttributeError, ValueError)


def program(seed):
    """The function of a seed, and the name of its file."""
    source, name = text(seed), f"<random program {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    names = {"__name__": f"random_program_{seed}"}
    exec(compile(source, name, "exec"), names)
    return names["f"], name


def outcome(run, file):
    """What a run returns, or its error with the line of the program."""
    try:
        return run(), None
    except Exception as error:
        lines = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == file]
        return None, (type(error), str(error), lines[-1:])


def slope(f, x):
    """The derivative by differences; None where a condition changes near."""

    def difference(h):
        return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h)

    try:
        coarse, fine = difference(1e-3), difference(5e-4)
    except Exception:
        return None
    return fine if abs(coarse - fine) < 1e-7 * (1 + abs(fine)) else None


def differs(seed, transforms):
    """Say in what a program differs when it is read; None if in nothing."""
    f, file = program(seed)
    x = 0.37 + 0.05 * (seed % 11)
    with np.errstate(all="ignore"):
        value, error = outcome(lambda: f(x), file)
        if (error and error[0] in MISUSED) or (error is None and not isinstance(value, float)):
            return None
        expected = None if error else slope(f, x)
        for name, run in transforms.items():
            found, read = outcome(lambda run=run: run(f, x), file)
            if read != error:
                return f"{seed}: {name} raises {read}, and Python {error}"
            if error is None and abs(found[0] - value) > 1e-12:
                return f"{seed}: {name} has the value {found[0]}, and Python {value}"
            if expected is not None and abs(found[1] - expected) > 1e-6 * (1 + abs(expected)):
                return f"{seed}: {name} has the derivative {found[1]}, and differences {expected}"
    return None


def compiled(f, x):
    program = compile_(value_and_grad(f))
    program(x)  # the path is staged, and the second call takes it
    return program(x)


EAGER = {"grad": lambda f, x: value_and_grad(f)(x), "jvp": lambda f, x: jvp(f, (x,), (1.0,))}


@pytest.mark.thinned(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunk", range(3))
def test_random_programs_do_what_python_does(chunk):
    seeds = range(20 * chunk, 20 * chunk + 20)
    assert [found for seed in seeds if (found := differs(seed, EAGER))] == []


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunk", range(10))
def test_a_thousand_random_programs(chunk):
    seeds = range(100 + 100 * chunk, 200 + 100 * chunk)
    assert [found for seed in seeds if (found := differs(seed, {**EAGER, "compile": compiled}))] == []


@pytest.mark.filterwarnings("ignore")
def test_random_programs_compiled_do_what_python_does():
    assert [found for seed in range(24) if (found := differs(seed, {"compile": compiled}))] == []
