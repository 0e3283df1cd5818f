"""NPBench's kernels for DaCe AD: its own version of a kernel, with the loss of `problems` after it.

DaCe's programs are functions with types, so the loss is written as text below a copy of the kernel's file.
"""

import functools
import pathlib
import re
import tempfile

import numpy as np
from problems import module


def gradient(problem):
    """The gradient of the loss in the active arrays, as a function of these."""
    from dace.autodiff import add_backward_pass

    about = problem.about
    source = (problem.folder / f"{about['module_name']}_dace.py").read_text()
    found = re.search(rf"def {about['func_name']}\((.*?)\)\s*(?:->[^\n:]*)?:", source, re.DOTALL)
    types = dict(_parameter(p) for p in re.split(r",(?![^\[]*\])", " ".join(found.group(1).split())))
    if problem.results is None:
        raise NotImplementedError("a kernel that returns its result")
    weights = {f"weight_{name}": w for name, w in zip(problem.results, problem.weights, strict=True)}
    program = _with_loss(about["func_name"], types, problem.results)

    @functools.cache
    def compiled():
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "program.py"
            file.write_text(source + program)
            graph = module(file, "program").total.to_sdfg()
        add_backward_pass(graph, inputs=problem.active, outputs=["__return"])
        sizes = {str(s): problem.values[str(s)] for s in graph.free_symbols if str(s) in problem.values}
        return graph.compile(), sizes

    def run(*active):
        call, sizes = compiled()
        arguments = {name: value for name, value in problem.arguments().items() if name in types}
        arguments.update(zip(problem.active, active, strict=True))
        parts = {f"gradient_{name}": np.zeros_like(problem.values[name]) for name in problem.active}
        call(**arguments, **weights, **sizes, **parts, gradient___return=np.ones(1))
        return list(parts.values())

    return run


def _parameter(text):
    name, _, kind = text.partition(":")
    return name.strip(), kind.strip()


def _with_loss(kernel, types, results):
    """The text of a program `total` that runs a kernel and returns the loss of the arrays that it has written."""
    parameters = [*types.items(), *[(f"weight_{name}", types[name]) for name in results]]
    loss = " + ".join(f"0.5 * np.sum(weight_{name} * {name} * {name})" for name in results)
    head = ", ".join(f"{name}: {kind}" for name, kind in parameters)
    return f"\n\n@dc.program\ndef total({head}):\n    {kernel}({', '.join(types)})\n    return {loss}\n"
