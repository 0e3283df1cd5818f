"""What a user meets at work: names of derivatives, tracebacks, warnings, logs, and drawings in a notebook."""

import logging
import pickle
import traceback
import warnings

import numpy as np
import pytest

import effgrad
from effgrad import compile, grad, hessian, jacobian, jvp, stage, value_and_grad, vmap


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
