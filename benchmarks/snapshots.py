"""Three ways to stay within a limit of memory, side by side: what decides which of them the library takes.

- disk: `grad(f, memory=...)`, where the older part of the record waits in a file.
- replay: the program runs again from its start for each part of the record, and only that part is kept.
- fork: the program runs without recording, and forks at the start of each part; each child waits as a snapshot, and
  records its part when the reverse pass comes to it.

Replay and fork are prototypes, good for these programs alone. They run parts of the program again, and what it prints,
draws, reads and writes happens again: "runs" counts how often a step runs.

    python benchmarks/snapshots.py [--runs 3] [--write]
"""

import argparse
import json
import os
import pickle
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import memory
import numpy as np

from effgrad import grad
from effgrad.api.gradient import pull_scalar
from effgrad.fast.recording import FastTaped
from effgrad.fast.spilling import Cotangents, SpilledTape, parse_memory
from effgrad.primitives import cotangents
from effgrad.trees import flatten


class PartDone(Exception):
    """The end of the part that was wanted: the rest of the program need not run."""


class Tape(SpilledTape):
    """A tape that keeps entries while a part is recorded, and tells its plan where parts begin."""

    def __init__(self, plan, activation):
        super().__init__(plan.limit, lambda array: id(array) in activation.protected.arrays)
        self.plan, self.activation, self.length, self.part_kept = plan, activation, 0, {}

    def __len__(self):
        return self.length

    def append(self, entry):
        if self.plan.recording and self.length >= self.plan.start:
            self.part_kept[self.length] = entry
        self.size += self._size(entry)
        self.length += 1
        if self.size > self.part:
            self.size, self.counted = 0, {}
            self.plan.boundary(self)

    def walk(self, collected):
        names = range(self.plan.start, self.length)
        self.activation.walk_over(collected, self.part_kept, reversed(names), 0)
        collected.forget(names, inputs=False)
        self.part_kept.clear()


class Parted(FastTaped):
    def __init__(self, plan):
        self.plan = plan

    def enter(self):
        super().enter()
        self.entries = Tape(self.plan, self)
        self.plan.begin(self.entries)

    def cotangents(self, shadows):
        self.plan.finish(self.entries, self.seeds, shadows)
        return [None] * len(shadows)


class Plan:
    def __init__(self, limit):
        self.limit, self.recording, self.start = limit, False, 0

    def gradient(self, f, x):
        leaves, tree = flatten((x,))
        self.run = lambda: pull_scalar(f, leaves, tree, 1.0, lambda: Parted(self))
        self.run()
        self.backwards()
        return cotangents.dense(self.collected[self.shadows[0]])

    def begin(self, tape):
        pass

    def remember(self, seeds, shadows):
        self.collected, self.shadows = Cotangents(), shadows
        for name, cotangent in seeds:
            self.collected[name] = cotangent


class Replay(Plan):
    def __init__(self, limit):
        super().__init__(limit)
        self.ends = [0]

    def boundary(self, tape):
        if not self.recording:
            self.ends.append(len(tape))
        elif len(tape) == self.stop:
            tape.walk(self.collected)
            raise PartDone

    def finish(self, tape, seeds, shadows):
        if self.recording:
            tape.walk(self.collected)
        else:
            self.ends.append(len(tape))
            self.remember(seeds, shadows)

    def backwards(self):
        self.recording = True
        for start, stop in reversed(list(zip(self.ends, self.ends[1:], strict=False))):
            self.start, self.stop = start, stop
            try:
                self.run()
            except PartDone:
                pass

    def cost(self):
        return 1 + sum(self.ends[1:]) / self.ends[-1], 0.0


class Fork(Plan):
    def __init__(self, limit):
        super().__init__(limit)
        self.children = []

    def begin(self, tape):
        self.snapshot(tape)

    def boundary(self, tape):
        if self.recording:
            self.answer(tape)
        self.snapshot(tape)

    def finish(self, tape, seeds, shadows):
        if self.recording:
            self.answer(tape)
        self.remember(seeds, shadows)

    def snapshot(self, tape):
        """Fork; the child waits until it is asked, and then records what follows."""
        (asked, ask), (told, tell) = os.pipe(), os.pipe()
        child = os.fork()
        if child:
            os.close(asked), os.close(tell)
            self.children.append((child, os.fdopen(ask, "wb"), os.fdopen(told, "rb")))
            return
        self.tell = os.fdopen(tell, "wb")
        self.collected = Cotangents(pickle.load(os.fdopen(asked, "rb")))
        self.recording, self.start = True, len(tape)

    def answer(self, tape):
        tape.walk(self.collected)
        pickle.dump(dict(self.collected), self.tell, protocol=5)
        self.tell.flush()
        os._exit(0)

    def backwards(self):
        self.held = sum(map(private, (child for child, _, _ in self.children)))
        for child, ask, told in reversed(self.children):
            pickle.dump(dict(self.collected), ask, protocol=5)
            ask.flush()
            self.collected = Cotangents(pickle.load(told))
            os.waitpid(child, 0)

    def cost(self):
        return 2.0, self.held


def private(process):
    """The megabytes that a process has for itself."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1e3


def loop(x):
    """200,000 steps of a recurrence on numbers."""
    for _ in range(200_000):
        x = x - 1e-6 * x * x
    return x


JOBS = {
    "loop, 200,000 steps": (loop, lambda: 0.5, "5 MB"),
    **{name: (f, start, limits[-1]) for name, (f, start, limits) in memory.JOBS.items() if "10^6" not in name},
}


def measure(job, way):
    f, start, limit = JOBS[job]
    x = start()
    grad(memory.prepared, memory="4 MB")(np.ones(3))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    runs, held = 1.0, 0.0
    if way in ("replay", "fork"):
        plan = {"replay": Replay, "fork": Fork}[way](parse_memory(limit))
        derivative = plan.gradient(f, x)
        runs, held = plan.cost()
    else:
        derivative = grad(f, memory=limit if way == "disk" else None)(x)
    seconds = time.perf_counter() - began
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3 + held
    print(json.dumps([seconds, peak, runs, float(np.sum(derivative))]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.one:
        return measure(*options.one)
    print("| program, limit | way | runs | peak, MB | seconds | time over unlimited |\n|---|---|---|---|---|---|")
    rows = []
    for job, (_, _, limit) in JOBS.items():
        unlimited = None
        for way in ("unlimited", "disk", "replay", "fork"):
            command = [sys.executable, __file__, "--one", job, way]
            found = [json.loads(subprocess.check_output(command, timeout=600)) for _ in range(options.runs)]
            seconds, peak, runs = (statistics.median(run[i] for run in found) for i in range(3))
            unlimited = unlimited or (seconds, found[0][3])
            assert np.isclose(found[0][3], unlimited[1], rtol=1e-8), "the limited gradient is another"
            ratio = seconds / unlimited[0]
            rows.append(f"| {job}, {limit} | {way} | {runs:.1f} | {peak:.0f} | {seconds:.2f} | {ratio:.2f} |")
            print(rows[-1], flush=True)
    if options.write:
        memory.write("memory-ways", rows)


if __name__ == "__main__":
    main()
