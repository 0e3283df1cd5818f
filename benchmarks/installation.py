"""Checks what a user installs: the wheel and the sdist, in clean environments, with each extra; and times the import.

python benchmarks/installation.py PYTHON ... [--oldest]: with each interpreter given (the running one by default). It
needs pip and the network; with --oldest also the oldest dependencies that pyproject.toml allows. Prints a line for each
check, and exits with 1 if one failed.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).parents[1]
OLDEST = ["numpy==2.1.*", "scipy==1.14.*"]
FIRST = "import numpy as np, effgrad; assert effgrad.grad(lambda x: np.sum(np.sin(x)))(np.zeros(2)).tolist() == [1, 1]"
IMPORT_LIMIT = 0.15  # seconds of processor time over the modules of NumPy and SciPy that effgrad imports

# For each extra: a program that needs it. Without the extra it has to fail, with an error that names it.
EXTRAS = {
    "compile": "import effgrad; assert effgrad.compile(effgrad.grad(lambda x: x**3))(2.0) == 12",
    "control": """
from effgrad.effects import Effect, Handler, control, handle, operation
class Choice(Effect):
    @operation
    def choose(self): ...
class First(Handler[Choice]):
    @control
    def choose(self, k):
        return k(1)
assert handle(First(), lambda: Choice.choose() + 1) == 2
""",
    "arrays": """
import effgrad, array_api_strict as xp
assert float(effgrad.grad(lambda x: x.__array_namespace__().sum(x**2))(xp.asarray([3.0]))[0]) == 6
""",
    "optimize": """
import effgrad
effgrad.optimize.minimize(lambda x: (x - 1) ** 2, 0.0, progress=True).plot()
""",
    "papers": """
import effgrad.cli, pathlib
pathlib.Path("five.lam").write_text("2.0 + 3.0")
assert effgrad.cli.main(["calculus", "run", "five.lam"]) == 0
""",
    "distributed": """
import importlib.util
import numpy as np
from effgrad import distributed
if importlib.util.find_spec("dask") is None:  # here the error
    distributed.Sum(lambda w, x: np.sum(w * x), [np.ones(2)], None).value_and_grad(np.ones(2))
from dask.distributed import Client
if __name__ == "__main__":
    with Client(processes=False, dashboard_address=None) as client:
        total = distributed.Sum(lambda w, x: np.sum(w * x), [np.ones(2), np.ones(2)], client)
        assert total.value_and_grad(np.ones(2))[0] == 4
""",
}
BESIDE = {"arrays": ["array-api-strict"]}  # what a program of an extra uses, and the extra does not bring
CPU = """
import resource, sys, subprocess
def cpu(code):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
"""
TIMES = (
    CPU
    + """
listed = "import effgrad, sys; print(*[m for m in sys.modules if m.split('.')[0] in ('numpy', 'scipy', 'optree')])"
names = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True).stdout.split()
theirs = f"import importlib\\nfor name in {names}: importlib.import_module(name)"
pairs = [(cpu("import effgrad"), cpu(theirs)) for _ in range(15)]
print(min(a for a, _ in pairs), min(b for _, b in pairs))
"""
)


class Environment:
    """A clean environment in a folder, of one interpreter."""

    def __init__(self, interpreter, folder):
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        self.folder, self.python = folder, folder / "bin" / "python"
        self.clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        self.clean |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}

    def install(self, *what):
        command = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *map(str, what)]
        subprocess.run(command, check=True, env=self.clean)

    def run(self, code):
        """A program's exit status and what it printed, with errors."""
        file = self.folder / "program.py"
        file.write_text(code)
        command = [self.python, file]
        done = subprocess.run(command, capture_output=True, text=True, env=self.clean, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr


class Report:
    """Prints a line for each check, and remembers whether one failed."""

    def __init__(self):
        self.failed = False

    def line(self, name, good, detail=""):
        self.failed |= not good
        print(f"{'ok ' if good else 'BAD'}  {name:58} {detail}", flush=True)


def build(folder):
    """The wheel and the sdist."""
    venv.create(folder / "build", with_pip=True)
    python = folder / "build" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "build"], check=True)
    subprocess.run([python, "-m", "build", "--outdir", folder / "dist", ROOT], check=True, capture_output=True)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def check_contents(report, wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    good = {top for top in tops if top == "effgrad" or top.endswith(".dist-info")} == tops
    report.line("the wheel holds nothing but effgrad", good, f"{len(names)} files, {wheel.stat().st_size // 1000} kB")


def check_first(report, environment, title):
    status, said = environment.run(FIRST)
    report.line(f"{title}: a gradient", status == 0 and not said, said[-300:])


def check_import(report, environment, title):
    _, said = environment.run(TIMES)
    ours, theirs = map(float, said.split())
    detail = f"{ours:.3f} s, of which NumPy's and SciPy's modules {theirs:.3f} s"
    report.line(f"{title}: import", ours - theirs <= IMPORT_LIMIT, detail)


def check_extra(report, environment, title, extra, wheel):
    environment.install(*BESIDE.get(extra, []), "six")
    status, said = environment.run(EXTRAS[extra])
    report.line(f"{title}: without [{extra}], an error that names it", status != 0 and f"effgrad[{extra}]" in said,
                said.strip().splitlines()[-1][-160:])  # fmt: skip
    environment.install(f"effgrad[{extra}] @ file://{wheel}")
    status, said = environment.run(EXTRAS[extra])
    report.line(f"{title}: with [{extra}]", status == 0, said[-400:] if status else "")


def check(report, interpreter, folder, wheel, sdist, oldest):
    version = subprocess.run([interpreter, "-V"], capture_output=True, text=True).stdout.strip()
    environment = Environment(interpreter, folder / "wheel")
    environment.install(wheel)
    check_first(report, environment, f"{version}, wheel")
    check_import(report, environment, version)
    for extra in EXTRAS:
        check_extra(report, environment, version, extra, wheel)
    environment = Environment(interpreter, folder / "sdist")
    environment.install(sdist)
    check_first(report, environment, f"{version}, sdist")
    if oldest:
        environment = Environment(interpreter, folder / "oldest")
        environment.install(wheel, *OLDEST)
        check_first(report, environment, f"{version}, {' '.join(OLDEST)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", nargs="*", default=[sys.executable])
    parser.add_argument("--oldest", action="store_true")
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wheel, sdist = build(folder)
        check_contents(report, wheel)
        for number, interpreter in enumerate(options.python):
            (folder / str(number)).mkdir()
            check(report, interpreter, folder / str(number), wheel, sdist, options.oldest)
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main())
