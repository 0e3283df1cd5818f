"""NPBench's kernels as problems of differentiation: a loss of the unmodified NumPy program, and its arguments.

The loss is `sum(w * abs(out)**2) / 2` over what a kernel gives, with fixed random weights: the gradient of a linear
kernel depends on its input then, so that no compiler folds it to a constant.
"""

import ast
import importlib.util
import json
import pathlib
import sys
import zlib

import numpy as np

NOT_SMOOTH = {"crc16", "nussinov", "mandelbrot1", "mandelbrot2", "compute"}
# What a kernel gives where NPBench does not say: names of arguments that it writes to, or None for what it returns.
RESULTS = {
    "trisolv": ["x"], "doitgen": ["A"], "scattering_self_energies": ["Sigma"], "channel_flow": ["u", "v", "p"],
    "ludcmp": None, "covariance": None, "correlation": None,
}  # fmt: skip
# The order of the results of JAX's versions where it is another.
JAX_ORDER = {"gemver": [0, 2, 1], "fdtd_2d": [0, 1, 2]}


def module(path, name):
    """A module from a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def kernels(root):
    """The names of the kernels that have derivatives."""
    return sorted({p.stem for p in (pathlib.Path(root) / "bench_info").glob("*.json")} - NOT_SMOOTH)


def has_loops(root, kernel):
    """Whether a kernel's program in NumPy has loops."""
    root = pathlib.Path(root)
    about = json.loads((root / "bench_info" / f"{kernel}.json").read_text())["benchmark"]
    file = root / "npbench" / "benchmarks" / about["relative_path"] / f"{about['module_name']}_numpy.py"
    return any(isinstance(x, ast.For | ast.While) for x in ast.walk(ast.parse(file.read_text())))


class Problem:
    """A kernel at a preset: its values, the arrays that gradients are taken in, and the loss."""

    def __init__(self, root, kernel, preset):
        root = pathlib.Path(root)
        self.about = json.loads((root / "bench_info" / f"{kernel}.json").read_text())["benchmark"]
        self.folder = root / "npbench" / "benchmarks" / self.about["relative_path"]
        name = self.about["module_name"]
        values = dict(self.about["parameters"][preset])
        if self.about.get("init"):
            init = self.about["init"]
            made = getattr(module(self.folder / f"{name}.py", f"init_{name}"), init["func_name"])
            results = made(*[values[a] for a in init["input_args"]])
            names = init["output_args"]
            values.update(zip(names, [results] if len(names) == 1 else results, strict=True))
        if kernel == "floyd_warshall":
            values["path"] = values["path"].astype(float)
        self.values, self.names = values, self.about["input_args"]
        self.active = [n for n in self.names if isinstance(values[n], np.ndarray) and values[n].dtype.kind in "fc"]
        self.function = getattr(module(self.folder / f"{name}_numpy.py", f"{name}_numpy"), self.about["func_name"])
        self.results = RESULTS.get(kernel, self.about["output_args"] or None)
        self.order = None
        rng = np.random.default_rng(7)
        self.weights = [
            rng.uniform(0.5, 1.5, np.shape(o)).astype(np.float32 if np.result_type(o) == np.float32 else float)
            for o in self.outputs(self.arguments())
        ]

    def fresh(self, name):
        value = self.values[name]
        return value.copy() if isinstance(value, np.ndarray) else value

    def arguments(self):
        return {n: self.fresh(n) for n in self.names}

    def points(self):
        """The arrays that gradients are taken in."""
        return [self.fresh(n) for n in self.active]

    def outputs(self, arguments):
        """The results of a run, a list."""
        returned = self.function(*[arguments[n] for n in self.names])
        if self.results is not None and self.order is None:
            return [arguments[n] for n in self.results]
        outputs = list(returned) if isinstance(returned, tuple | list) else [returned]
        return [outputs[k] for k in self.order] if self.order else outputs

    def total(self, outputs, np=np):
        """The loss of the results."""
        total = 0.0
        for k in range(len(self.weights)):
            o, w = outputs[k], self.weights[k]
            square = np.real(o) ** 2 + np.imag(o) ** 2 if o.dtype.kind == "c" else o * o
            total = total + 0.5 * np.sum(w * square)
        return total

    def loss(self, *active):
        """The loss as a function of the active arrays, which the kernel may write to."""
        arguments = self.arguments()
        arguments.update(zip(self.active, active, strict=True))
        return self.total(self.outputs(arguments))

    def for_jax(self, kernel):
        """Let the kernel be NPBench's version for JAX, which returns its results."""
        name = self.about["module_name"]
        function = getattr(module(self.folder / f"{name}_jax.py", f"{name}_jax"), self.about["func_name"])
        self.function = getattr(function, "__wrapped__", function)
        self.order = JAX_ORDER.get(kernel, list(range(len(self.weights))))

    def direction(self, name):
        """A direction in which derivatives are compared with differences."""
        value = self.values[name]
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        return rng.uniform(0.2, 1.0, value.shape) * (np.abs(value) + 0.01)

    def along(self, gradients):
        """The derivative along the directions of all active arrays."""
        pairs = zip(self.active, gradients, strict=True)
        return sum(float(np.sum((np.asarray(g) * self.direction(n)).real, dtype=float)) for n, g in pairs)

    def difference(self, step=1e-6):
        """The same by differences."""
        sides = []
        for sign in (1, -1):
            moved = [v + sign * step * self.direction(n) for n, v in zip(self.active, self.points(), strict=True)]
            sides.append(float(self.loss(*[m.astype(v.dtype) for m, v in zip(moved, self.points(), strict=True)])))
        return (sides[0] - sides[1]) / (2 * step)
