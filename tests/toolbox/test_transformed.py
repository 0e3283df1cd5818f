"""A transformed function keeps the name, text, signature and types of the function it was made of, and is pickled."""

import copy
import inspect
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.special

from effgrad import compile, grad, hessian, implicit, jacobian, stochastic, value_and_grad, vmap


def energy(w, x=2.0, *, scale=1.0):
    """The energy of a chain."""
    return scale * np.sum(w[1:] * w[:-1]) * x


def square(z, a):
    return z**2 - a


TRANSFORMED = {
    "grad": grad(energy, argnums=(0, 1)),
    "grad by another mode": grad(energy, mode="delta"),
    "value_and_grad": value_and_grad(energy),
    "jacobian": jacobian(energy, mode="forward"),
    "sparse jacobian": jacobian(energy, sparse=True),
    "hessian": hessian(energy),
    "hessian by edges": hessian(energy, mode="hessian"),
    "sparse hessian": hessian(energy, mode="star"),
    "nested": grad(grad(energy, argnums=1), argnums=1),
    "vmap": vmap(energy, in_axes=(None, 0)),
    "compile": compile(grad(energy)),
    "expectation": stochastic.expectation(energy, "score"),
    "root": implicit.root(square, np.sqrt),
}


def called(function, name):
    if name == "root":
        return function(2.0)
    result = function(np.arange(1.0, 5.0), np.array([2.0, 3.0]) if name == "vmap" else 2.0)
    return [
        part.toarray() if hasattr(part, "toarray") else part for part in (result if type(result) is tuple else [result])
    ]


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("carry", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_and_pickles_compute_the_same(name, carry):
    function = TRANSFORMED[name]
    other = carry(function)
    assert other.__name__ == function.__name__ and type(other) is type(function)
    np.testing.assert_equal(called(other, name), called(function, name))


@pytest.mark.parametrize("name", [name for name in TRANSFORMED if name != "root"])
def test_name_text_and_signature(name):
    function = TRANSFORMED[name]
    assert function.__doc__ == "The energy of a chain." and "(energy" in function.__name__ + "(energy"
    assert "energy" in function.__name__
    assert list(inspect.signature(function).parameters.values()) == list(inspect.signature(energy).parameters.values())


def test_a_root_has_the_signature_of_its_solver():
    def solve(a, tolerance=1e-9):
        """Bisect."""
        return np.sqrt(a)

    found = implicit.root(square, solve)
    assert found.__name__ == "root(solve)" and found.__doc__ == "Bisect."
    assert str(inspect.signature(found)) == "(a, tolerance=1e-09)"


def test_functions_of_c_and_methods():
    assert grad(np.sin).__name__ == "grad(sin)" and grad(scipy.special.erf)(0.0) == pytest.approx(2 / np.sqrt(np.pi))

    class Model:
        weight = 3.0

        def loss(self, x):
            return self.weight * x**2

        slope = grad(loss, argnums=1)

    assert Model().slope(2.0) == grad(Model().loss)(2.0) == 12.0
    assert str(inspect.signature(grad(Model().loss))) == "(x)"


def test_another_process_takes_a_gradient_of_a_library_function():
    """As a pool of processes that were not forked would get it."""
    program = (
        "import pickle, sys, numpy as np\n"
        "g = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(pickle.dumps(g(np.array([0.0, 1.0]))))"
    )
    data = pickle.dumps(grad(scipy.special.logsumexp))
    run = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, timeout=120, check=True)
    np.testing.assert_allclose(pickle.loads(run.stdout), scipy.special.softmax([0.0, 1.0]), rtol=1e-14)


TYPED = """
import effgrad

def f(x: float, name: str = "a", *, scale: int = 1) -> float:
    return x

reveal_type(effgrad.grad(f))
reveal_type(effgrad.value_and_grad(f))
reveal_type(effgrad.vmap(f))
reveal_type(effgrad.jacobian(f))
reveal_type(effgrad.hessian(f))
reveal_type(effgrad.rule(partials=[None])(f))
reveal_type(effgrad.implicit.root(f, f))
reveal_type(effgrad.stochastic.expectation(f, "score"))
reveal_type(effgrad.compile(f).__call__)
effgrad.checkpoint(f, 1.0, "b", scale=2)
effgrad.grad(f)(1.0, "b", scale=2)
effgrad.grad(f)(1.0, 2)
effgrad.hessian(f)("x")
effgrad.compile(f)("x")
effgrad.checkpoint(f, "x")
"""


@pytest.mark.sweep
def test_type_checkers_know_the_arguments(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(TYPED)
    root = pathlib.Path(__file__).parents[2]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--follow-imports=silent",
        "--config-file=",
        f"--cache-dir={tmp_path}",
        str(path),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env={"MYPYPATH": str(root / "src")})
    arguments = "x: float, name: str =, *, scale: int ="
    shown = [line.partition('"')[2].rstrip('"') for line in run.stdout.splitlines() if "Revealed" in line]
    shown = [line.replace("builtins.", "") for line in shown]
    assert [line.replace("def (", "").split(")")[0] for line in shown] == [arguments] * 9, run.stdout
    assert "tuple[float, Any]" in shown[1]
    assert all(line.endswith("-> float") for line in shown[5:]), run.stdout
    errors = [line for line in run.stdout.splitlines() if "error:" in line]
    assert len(errors) == 4 and all("[arg-type]" in line for line in errors), run.stdout
