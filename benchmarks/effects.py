"""The cost of performing an operation, for each kind of clause: microseconds, medians of several runs.

Where `aleff` (Python 3.12 and up) and `effectful` are installed, programs of the effect-handlers-bench are timed beside
them in the same run.
"""

import importlib.util
import json
import pathlib
import statistics
import sys
import time

from effgrad.effects import Effect, Handler, around, control, handle, multi, once, operation


class Step(Effect):
    @operation
    def step(self, x): ...


class Other(Effect):
    @operation
    def step(self, x): ...


class Tail(Handler[Step]):
    def step(self, x):
        return x


class Around(Handler[Step]):
    @around
    def step(self, x):
        yield x


class Once(Handler[Step]):
    @once
    def step(self, x):
        result = yield x
        return result


class Control(Handler[Step]):
    @control
    def step(self, k, x):
        return k(x)


class Waiting(Handler[Step]):
    @control
    def step(self, k, x):
        y = k(x)
        return y


class Choices(Handler[Step]):
    @multi
    def step(self, k, n):
        return sum(k(i) for i in range(n))

    def return_(self, found):
        return found


class Multi(Handler[Step]):
    @multi
    def step(self, k, x):
        return [k(i) for i in range(2)]


class Elsewhere(Handler[Other]):
    def step(self, x):
        return x


def loop(n):
    for i in range(n):
        Step.step(i)


def choices(n):
    return sum(Step.step(0) for _ in range(n))


def nested(depth, handler, program, *args):
    """`program` under the handler, with handlers of another effect in between."""
    if depth == 1:
        return handle(handler, program, *args)
    return handle(handler, nest, depth - 1, program, *args)


def nest(depth, program, *args):
    return program(*args) if depth == 0 else handle(Elsewhere(), nest, depth - 1, program, *args)


def queens(perform, n):
    """1 if the queens that are placed by choices do not attack each other."""
    placed = ()  # not a list, which a library that copies stack frames would share
    for row in range(n):
        column = perform(n)
        if any([c == column or abs(c - column) == row - r for r, c in enumerate(placed)]):
            return 0
        placed = (*placed, column)
    return 1


def repeated(perform, n):
    for i in range(n):
        perform(i)
    return 0


def aleff_programs():
    """The programs by aleff: a clause that resumes last, one that waits, and all solutions of n queens."""
    from aleff import create_handler, effect

    step = effect("step")
    last, waiting, choices = create_handler(step), create_handler(step), create_handler(step)
    last.on(step)(lambda k, x: k(x))
    waiting.on(step)(lambda k, x: k(x) + 0)
    choices.on(step)(lambda k, n: sum([k(i) for i in range(n)]))
    return {
        "resume": lambda n: last(lambda: repeated(step, n)),
        "resume and wait": lambda n: waiting(lambda: repeated(step, n)),
        "queens": lambda n: choices(lambda: queens(step, n)),
    }


def effectful_programs():
    """effectful has clauses that answer, and no continuations."""
    from effectful.ops.semantics import handler
    from effectful.ops.syntax import defop

    @defop
    def step(x: int) -> int:
        raise NotImplementedError

    def answer(n):
        with handler({step: lambda x: x}):
            return repeated(step, n)

    return {"resume": answer}


def our_programs():
    return {
        "resume": lambda n: handle(Tail(), repeated, Step.step, n),
        "resume and wait": lambda n: handle(Waiting(), repeated, Step.step, n),
        "queens": lambda n: handle(Choices(), queens, Step.step, n),
    }


def peers():
    """Seconds of each program for each library that is installed."""
    libraries = {"effgrad": our_programs()}
    for name, programs in (("aleff", aleff_programs), ("effectful", effectful_programs)):
        if importlib.util.find_spec(name) is not None:
            libraries[name] = programs()
    rows = {}
    for program, n in (("resume", 10_000), ("resume and wait", 200), ("resume and wait", 5_000), ("queens", 6)):
        for name, programs in libraries.items():
            if program in programs:
                rows[f"{program} {n}: {name}"] = seconds(programs[program], n, libraries["effgrad"][program](n))
    return rows


def seconds(program, n, result):
    """Seconds of a program; why there are none if it fails, or has another result."""
    try:
        found = program(n)
        return microseconds(1, 5, program, n) / 1e6 if found == result else f"another result: {found}"
    except RuntimeError as error:  # a RecursionError too
        return type(error).__name__


def microseconds(n, runs, f, *args):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - start)
    return statistics.median(times) / n * 1e6


def main():
    rows = {}
    for depth in (1, 8):
        rows[f"tail, nesting {depth}"] = microseconds(10**5, 7, nested, depth, Tail(), loop, 10**5)
    for n in (10**4, 10**5, 10**6):
        rows[f"@around and unwinding, {n}"] = microseconds(n, 7 if n < 10**6 else 3, handle, Around(), loop, n)
    rows["@once and unwinding, 100000"] = microseconds(10**5, 7, handle, Once(), loop, 10**5)
    for n in (10**3, 10**4, 10**5):
        rows[f"@control, {n}"] = microseconds(n, 7 if n < 10**5 else 3, handle, Control(), loop, n)
    for n in (10**3, 10**5):
        rows[f"@control that waits, {n}"] = microseconds(n, 3, handle, Waiting(), loop, n)
    rows["@multi, a resumption, 2^10 outcomes"] = microseconds(2**11 - 2, 7, handle, Multi(), choices, 10)
    for label, value in rows.items():
        print(f"{label:40} {value:8.2f} us")
    beside = peers()
    for label, taken in beside.items():
        print(f"{label:40} {taken if isinstance(taken, str) else f'{taken:8.4f} s'}")
    out = pathlib.Path(__file__).parent / "results"
    out.mkdir(exist_ok=True)
    result = {"python": sys.version.split()[0], "microseconds": rows, "seconds beside others": beside}
    (out / "effects.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
