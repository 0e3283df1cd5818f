"""What a user meets at work: names of derivatives, tracebacks, warnings, logs, and drawings in a notebook."""

import logging
import pathlib
import pickle
import traceback
import warnings

import numpy as np
import pytest
import scipy.optimize

import effgrad
from effgrad import (
    check_grad,
    compare,
    compile,
    debug_nans,
    debug_values,
    explain,
    fuse,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    optimize,
    second_order,
    stage,
    taylor,
    value_and_grad,
    vjp,
    vmap,
)


def loss(x):
    """The loss of x."""
    return np.sum(x**2)


@pytest.mark.parametrize("transformation", [grad, value_and_grad, jacobian, hessian, vmap])
def test_a_derivative_is_named_after_its_function(transformation):
    derivative = transformation(loss)
    assert repr(derivative).startswith(f"<function {transformation.__name__}(loss) at")
    assert derivative.__doc__ == "The loss of x."


def test_names_nest_and_callables_without_one_have_their_class():
    assert grad(grad(loss)).__name__ == "grad(grad(loss))"
    assert grad(np.sin).__name__ == "grad(sin)"
    assert repr(jacobian(loss, sparse=True)) == "<sparse jacobian(loss)>"
    compiled = compile(grad(loss))
    assert repr(compiled) == "<compiled grad(loss), 0 programs>"
    compiled(np.ones(2))
    assert repr(compiled) == "<compiled grad(loss), 1 programs>"


def own_files(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]


CALLS = {
    "grad": lambda f: grad(f)(1.0),
    "grad of grad": lambda f: grad(grad(f))(1.0),
    "jacobian": lambda f: jacobian(f)(1.0),
    "jvp": lambda f: jvp(f, (1.0,), (1.0,)),
    "hessian": lambda f: hessian(f)(1.0),
    "reverse": lambda f: grad(f, mode="reverse")(1.0),
    "compiled": lambda f: compile(grad(f))(1.0),
    "staged": lambda f: stage(f)(1.0),
    "vjp": lambda f: vjp(f, 1.0),
    "hvp": lambda f: hvp(f, 1.0, 1.0),
    "second_order": lambda f: second_order(f, 1.0),
    "taylor": lambda f: taylor(f, [1.0, 1.0], 2),
    "linearize": lambda f: linearize(f, 1.0),
    "vmap": lambda f: vmap(f)(np.ones(2)),
    "fuse": lambda f: grad(fuse(f))(1.0),
    "check_grad": lambda f: check_grad(f, 1.0),
    "compare": lambda f: compare(f, 1.0),
    "explain": lambda f: explain(f, 1.0),
    "debug_nans": lambda f: debug_nans(f)(1.0),
    "debug_values": lambda f: debug_values(f)(1.0),
    "grad in jacobian": lambda f: jacobian(lambda x: grad(f)(x))(1.0),
}
# SciPy calls the user's function, and its frames stay.
SOLVERS = {
    "minimize": lambda f: optimize.minimize(f, 1.0),
    "least_squares": lambda f: optimize.least_squares(f, 1.0),
    "root": lambda f: optimize.root(f, 1.0),
    "curve_fit": lambda f: optimize.curve_fit(lambda t, a: f(a), np.ones(3), np.ones(3)),
    "scipy.optimize.root": lambda f: grad(lambda a: scipy.optimize.root(lambda x: f(a * x), 1.0).x[0])(1.0),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_traceback_has_the_users_lines_alone(call):
    def f(x):
        return pickle.dumps(x)

    def g(x):
        raise ZeroDivisionError("mine")

    for program, kind in ((f, effgrad.Detached), (g, ZeroDivisionError)):
        with pytest.raises(kind) as raised:
            call(program)
        assert own_files(raised.value) == []
        assert traceback.extract_tb(raised.value.__traceback__)[-1].name == program.__name__


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_a_solver_s_traceback_has_no_frames_of_effgrad(solve):
    def g(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as raised:
        solve(g)
    ours = str(pathlib.Path(effgrad.__file__).parent)
    assert [file for file in own_files(raised.value) if file.startswith(ours)] == []
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "g"


def test_a_library_s_frames_stay():
    with pytest.raises(np.linalg.LinAlgError) as raised:
        grad(lambda x: np.sum(np.linalg.solve(np.zeros((2, 2)), x)))(np.ones(2))
    assert any("numpy" in file for file in own_files(raised.value))


def test_all_frames_are_there_on_request(monkeypatch):
    monkeypatch.setenv("EFFGRAD_TRACEBACK", "full")
    with pytest.raises(effgrad.Detached) as raised:
        grad(pickle.dumps)(1.0)
    assert any("effgrad" in file for file in own_files(raised.value))


def test_a_warning_has_a_category_and_the_users_line():
    seen = []

    def f(x):
        total = 0.0
        for i in range(40):
            seen.append(i)
            total = total + x * i
        return total

    with pytest.warns(effgrad.StagingWarning) as told:
        compile(f)(2.0)
    assert told[0].filename == __file__ and issubclass(told[0].category, effgrad.EffgradWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", effgrad.EffgradWarning)
        assert compile(lambda x: f(x))(2.0) == f(2.0)


def test_staging_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="effgrad.stage"):
        compile(grad(loss), backend="numpy")(np.ones((2, 3)))
    (record,) = caplog.records
    assert record.getMessage().startswith("grad(loss): staged in ") and "float64[2, 3]" in record.getMessage()


def test_a_graph_draws_itself_in_a_notebook():
    assert stage(grad(loss))(np.ones(2))._repr_svg_().lstrip().startswith("<svg")


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacobian", "hessian", "vmap", "compile", "stage"])
def test_what_is_no_function_is_refused_at_once(name):
    """`grad(f(x))`, of a result, failed when it was called, with an error about something else."""
    with pytest.raises(TypeError, match=f"^{name} takes a function; it was given 0.5, a float$"):
        getattr(effgrad, name)(0.5)


@pytest.mark.parametrize("value, kind", [(2.0, "float"), (np.ones(2), "ndarray")])
def test_a_missing_attribute_is_that_of_the_value(value, kind):
    with pytest.raises(AttributeError, match=f"^'{kind}' object has no attribute 'detach'$"):
        grad(lambda x: x.detach())(value)
    with pytest.raises(TypeError, match="not callable"):
        grad(lambda x: x(2))(value)


@pytest.mark.parametrize("bad, advice", [
    (3, "pass 3.0"), (np.arange(3), "pass x.astype"), ("text", "choose them with argnums"),
])  # fmt: skip
def test_an_input_without_derivative_is_refused_with_advice(bad, advice):
    with pytest.raises(effgrad.NotDifferentiable, match=advice):
        grad(lambda x: x)(bad)
