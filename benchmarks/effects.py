"""The cost of performing an operation, for each kind of clause: microseconds, medians of several runs."""

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
    rows["@multi, a resumption, 2^10 outcomes"] = microseconds(2**11 - 2, 7, handle, Multi(), choices, 10)
    for label, value in rows.items():
        print(f"{label:40} {value:8.2f} us")
    out = pathlib.Path(__file__).parent / "results"
    out.mkdir(exist_ok=True)
    result = {"python": sys.version.split()[0], "microseconds": rows}
    (out / "effects.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
