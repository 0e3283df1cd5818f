"""The cost of performing an operation, for each kind of clause, and programs of the effect-handlers-bench.

    python benchmarks/effects.py                            this Python
    python benchmarks/effects.py --pythons 3.11 3.12 3.13   each of these, in an environment of its own

Times are processor time, medians of several runs; programs are run in turns with `aleff` (Python 3.12 and up) and
`effectful`, where these are installed. Bytes are what the process grows by while 10^5 clauses wait. The results go to
`results/effects.json`, a section for each Python. https://github.com/effect-handlers/effect-handlers-bench
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from effects_programs import LIBRARIES, PROGRAMS

from effgrad.effects import Effect, Handler, around, control, handle, multi, once, operation

ROOT = pathlib.Path(__file__).resolve().parents[1]
LONG = 2.0  # a program that takes so many seconds runs once
RUNS = {10**3: 9, 10**4: 9, 10**5: 3, 10**6: 1}  # of so many operations
OUT = ROOT / "benchmarks" / "results" / "effects.json"


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


class Multi(Handler[Step]):
    @multi
    def step(self, k, x):
        return [k(i) for i in range(2)]


class Elsewhere(Handler[Other]):
    def step(self, x):
        return x


def loop(n):
    for _ in range(n):
        Step.step(0)


def choices(n):
    return sum(Step.step(0) for _ in range(n))


def nested(depth, handler, program, *args):
    """`program` under the handler, with handlers of another effect in between."""
    if depth == 1:
        return handle(handler, program, *args)
    return handle(handler, nest, depth - 1, program, *args)


def nest(depth, program, *args):
    return program(*args) if depth == 0 else handle(Elsewhere(), nest, depth - 1, program, *args)


def seconds(f, *args):
    start = time.process_time()
    f(*args)
    return time.process_time() - start


def microseconds(n, runs, f, *args):
    return statistics.median(seconds(f, *args) for _ in range(runs)) / n * 1e6


def operations():
    """Microseconds of one operation, by the kind of its clause and how many there are."""
    rows = {f"tail, nesting {depth}": microseconds(10**5, 7, nested, depth, Tail(), loop, 10**5) for depth in (1, 8)}
    for label, handler in (("@around", Around()), ("@once", Once()), ("@control", Control()),
                           ("@control that waits", Waiting())):  # fmt: skip
        for n in RUNS:
            rows[f"{label}, {n}"] = microseconds(n, RUNS[n], handle, handler, loop, n)
    rows["@multi, a resumption, 2^10 outcomes"] = microseconds(2**11 - 2, 7, handle, Multi(), choices, 10)
    return rows


def resident():
    """Bytes of the process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(handler, n=10**5):
    """Bytes that the process grows by for each of n operations whose clauses wait."""
    grown = []

    def program():
        before = resident()
        loop(n)
        grown.append(resident() - before)

    handle(handler, program)
    return round(grown[0] / n)


def waiting():
    """Bytes of each clause that waits for the rest of the program; each kind in a process of its own."""
    rows = {}
    for kind in ("Around", "Once", "Control", "Waiting"):
        code = f"import effects; print(effects.growth(effects.{kind}()))"
        ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True,
                             timeout=300, check=True)  # fmt: skip
        rows[kind] = int(ran.stdout)
    return {"@around": rows["Around"], "@once": rows["Once"], "@control": rows["Control"],
            "@control that waits": rows["Waiting"]}  # fmt: skip


class Asked:
    """A process that runs the programs by one library: aleff watches each call of its process, ours would be slower."""

    def __init__(self, library):
        command = [sys.executable, ROOT / "benchmarks" / "effects_programs.py", library]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def run(self, label):
        self.process.stdin.write(label + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def programs(rounds=5):
    """Seconds of each program for each library, run in turns; a word where a library cannot run it."""
    libraries = {name: Asked(name) for name in LIBRARIES if name == "effgrad" or has(name)}
    rows = {}
    for label, (_, n, _) in PROGRAMS.items():
        runs = {name: [library.run(label)] for name, library in libraries.items()}
        for _ in range(rounds):
            for name, library in libraries.items():
                first = runs[name][0]
                if not isinstance(first, str) and first < LONG:
                    runs[name].append(library.run(label))
        rows[f"{label} {n}"] = {
            name: statistics.median(found[1:] or found) if not isinstance(found[0], str) else found[0]
            for name, found in runs.items()
        }
    for library in libraries.values():
        library.end()
    return rows


def has(library):
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def interpreter(version):
    """A Python of a version: on the path, of pyenv, or of uv."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    found = [str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python"))]
    found += [path for path in [shutil.which(f"python{version}")] if path]
    if uv := shutil.which("uv"):
        ran = subprocess.run([uv, "python", "find", version], capture_output=True, text=True, timeout=60)
        found += ran.stdout.split()
    return next((path for path in found if subprocess.run([path, "-V"], capture_output=True).returncode == 0), None)


def measured_elsewhere(version):
    """The measurements of another Python, in a new environment with effgrad and the other libraries."""
    python = interpreter(version)
    if python is None:
        return {version: "no such Python here: neither on the path nor of pyenv or uv"}
    with tempfile.TemporaryDirectory() as folder:
        environment = pathlib.Path(folder) / "environment" / "bin" / "python"
        run = dict(check=True, timeout=600)
        subprocess.run([python, "-m", "venv", environment.parents[1]], **run)
        pip = [environment, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, f"{ROOT}[control]"], **run)
        for library in ("aleff", "effectful"):  # which need newer Pythons than effgrad does
            subprocess.run([*pip, library], check=False, timeout=600, stderr=subprocess.DEVNULL)
        out = pathlib.Path(folder) / "out.json"
        subprocess.run([environment, __file__, "--out", out], check=True, timeout=3600)
        return json.loads(out.read_text())


def measured():
    versions = {name: has(name) for name in ("greenlet", *LIBRARIES) if has(name)}
    return {
        sys.version.split()[0]: {
            "libraries": versions, "microseconds": operations(), "bytes waiting": waiting(), "seconds": programs(),
        }
    }  # fmt: skip


def show(results):
    for version, result in results.items():
        print(f"Python {version}")
        if isinstance(result, str):
            print(f"  {result}")
            continue
        for label, value in result["microseconds"].items():
            print(f"  {label:40} {value:8.2f} us")
        for label, value in result["bytes waiting"].items():
            print(f"  {label:40} {value:8} bytes waiting")
        for label, taken in result["seconds"].items():
            shown = [f"{name} {found if isinstance(found, str) else f'{found:.4f} s'}" for name, found in taken.items()]
            print(f"  {label:24} {', '.join(shown)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", nargs="*", default=[], help="versions to measure, such as 3.12")
    parser.add_argument("--out", type=pathlib.Path, default=OUT)
    options = parser.parse_args()
    results = {}
    for version in options.pythons:
        results |= measured_elsewhere(version)
    if not options.pythons:
        results = measured()
        show(results)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
