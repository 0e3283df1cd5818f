"""The time from a clean environment to a gradient of one's own function, from three starting points.

python benchmarks/first_gradient.py [--out FILE]. For each: a new environment, effgrad installed from this clone as the
page says, the program as its author has it, the lines that the pages of first steps and of other systems say to change,
and a run. The times are the machine's; reading and typing are not in them, but the number of lines is.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]

SCIPY = """
import numpy as np
from scipy.optimize import minimize


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


result = minimize(rosenbrock, np.zeros(8))
print(result.nfev, np.abs(result.x - 1).max() < 1e-3)
"""
SIMULATION = """
import numpy as np


def land(speed, angle):
    position, velocity = np.zeros(2), speed * np.array([np.cos(angle), np.sin(angle)])
    while position[1] >= 0:
        velocity = velocity - 0.01 * (np.array([0.0, 9.81]) + 0.02 * velocity * np.sqrt(velocity @ velocity))
        position = position + 0.01 * velocity
    return position[0] - velocity[0] / velocity[1] * position[1]  # back to the ground


print(land(20.0, 0.7))
"""
AUTOGRAD = """
import autograd.numpy as np
from autograd import grad


def loss(weights, x, y):
    hidden = np.tanh(np.dot(x, weights[0]))
    return np.mean((np.dot(hidden, weights[1]) - y) ** 2)


x = np.linspace(-1, 1, 20).reshape(10, 2)
slopes = grad(loss)([np.ones((2, 3)), np.ones(3)], x, x[:, 0])
print([s.shape for s in slopes])
"""
# The program, the page to follow, and the lines to change, as the page does.
STARTS = {
    "a SciPy optimisation": (SCIPY, "start/optimise.md", [
        ("import numpy as np\n", "import numpy as np\nfrom effgrad import value_and_grad\n"),
        ("minimize(rosenbrock, np.zeros(8))", "minimize(value_and_grad(rosenbrock), np.zeros(8), jac=True)"),
    ]),
    "a NumPy simulation": (SIMULATION, "start/first-gradient.md", [
        ("import numpy as np\n", "import numpy as np\nfrom effgrad import grad\n"),
        ("print(land(20.0, 0.7))", "print(grad(land, argnums=(0, 1))(20.0, 0.7))"),
    ]),
    "autograd code": (AUTOGRAD, "coming-from/autograd.md", [
        ("import autograd.numpy as np\n", "import numpy as np\n"),
        ("from autograd import grad\n", "from effgrad import grad\n"),
    ]),
}  # fmt: skip


def timed(*command, **options):
    begin = time.perf_counter()
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **options)
    return time.perf_counter() - begin, done.stdout.strip()


def changed(program, changes):
    for old, new in changes:
        assert program.count(old) == 1, old
        program = program.replace(old, new)
    return program


def first_gradient(folder, name):
    """A row of the table."""
    program, page, changes = STARTS[name]
    python = folder / "bin" / "python"
    made, _ = timed(sys.executable, "-m", "venv", folder)
    installed, _ = timed(python, "-m", "pip", "install", "--quiet", f"{ROOT}[compile]")
    (folder / "program.py").write_text(changed(program, changes))
    ran, said = timed(python, "program.py", cwd=folder)
    minutes = (made + installed + ran) / 60
    return f"| {name} | {page} | {len(changes)} | {made + installed:.0f} | {ran:.1f} | {minutes:.2f} | `{said}` |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path)
    out = parser.parse_args().out
    lines = [
        "| from | the page followed | lines changed | environment and installation, s | run, s | minutes | it prints |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in STARTS:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(first_gradient(pathlib.Path(folder), name))
        print(lines[-1], flush=True)
    if out:
        out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
