"""One measurement, in a process of its own: `python worker.py TOOL EVALUATION WORKLOAD SECONDS LIMIT RESULT SCALING`.

Prints a line of JSON: the first run and the later ones in nanoseconds of the processor, of all threads and the system's
included, so that what else the machine does is left out; and the peak of resident memory during the first
runs, in bytes, with what was resident before it. The result goes to the file RESULT, arrays one after another.
There are at least four runs, as long as they fit into the LIMIT: the second of a large result has new memory too.
"""

import importlib
import json
import pathlib
import sys
import time

import numpy as np

import workloads


def resident(name):
    """A line of /proc/self/status in bytes: VmRSS is what is resident, VmHWM its peak."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def leaves(tree):
    """The arrays of a result, in order; of a dictionary, by its keys."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.asarray(tree, float)]


def main(tool, evaluation, workload, seconds, limit, result, scaling):
    end = time.monotonic() + 0.8 * float(limit)
    table = workloads.SCALING if scaling == "True" else workloads.WORKLOADS
    arguments = table[evaluation][workload]()
    peer = importlib.import_module(f"peers.{tool}_peer")
    function = peer.program(evaluation, workload)
    if function is None:
        print(json.dumps(None))
        return
    arguments = peer.prepare(arguments)
    before = resident("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    nanoseconds = []
    while len(nanoseconds) < 4 or sum(nanoseconds[1:]) < float(seconds) * 1e9:
        began, start = time.monotonic(), time.process_time_ns()
        output = peer.finished(function(*arguments))
        nanoseconds.append(time.process_time_ns() - start)
        if 2 * time.monotonic() - began > end:
            break
    peak = resident("VmHWM")
    np.savez(result, *[np.ravel(leaf) for leaf in leaves(peer.plain(output))])
    print(json.dumps({"nanoseconds": nanoseconds, "before": before, "peak": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
