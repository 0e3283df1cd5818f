"""The example programs: their gradients, the fits that their pages promise, and the pages' code as a reader runs it."""

import functools
import pathlib
import re

import numpy as np
import pytest

from effgrad import grad

ROOT = pathlib.Path(__file__).parents[2]
STATED = {  # the objective that the fit reaches
    "robot_arm": 0.0036,
    "ode_fit": 0.0103,
    "neural_network": 0.05,
    "gaussian_process": 17.05,
    "hidden_markov": 406.0,
}


def page_of(name):
    return (ROOT / "docs" / "examples" / f"{name}.md").read_text()


def program(name):
    scope = {"__name__": name}
    exec((ROOT / "examples" / f"{name}.py").read_text(), scope)
    return scope


@functools.cache
def run_page(name):
    """The names after all blocks of a page, run in order; a snippet line stands for the file that it includes."""
    scope = {"__name__": name}
    for block in re.findall(r"```python\n(.*?)```", page_of(name), re.DOTALL):
        code = re.sub(r'--8<-- "(.*?)"', lambda match: (ROOT / match[1]).read_text(), block)
        exec(code, scope)
    return scope


def table_of(name):
    """The rows of a page's table, by their first cell."""
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in page_of(name).splitlines() if line[:1] == "|"]
    return {first: rest for first, *rest in rows}


@pytest.mark.parametrize("name", STATED)
def test_program_is_short_and_knows_nothing_of_effgrad(name):
    source = (ROOT / "examples" / f"{name}.py").read_text()
    assert "effgrad" not in source
    assert source.count("\n") < 60


@pytest.mark.parametrize("name", STATED)
def test_gradient_agrees_with_central_differences(name):
    scope = program(name)
    f, data = scope["objective"], scope["data"]()
    x = scope["start"]() + 0.05 * np.random.default_rng(0).standard_normal(scope["start"]().size)
    step = 1e-5
    differences = [(f(x + step * e, data) - f(x - step * e, data)) / (2 * step) for e in np.eye(x.size)]
    gradient = grad(f)(x, data)
    # Differences are good to about 1e-16 f / step, and that is all that is forgiven beside the relative error.
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-10 * max(1.0, abs(f(x, data))))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", STATED)
def test_page_runs_and_its_fit_reaches_the_stated_objective(name):
    assert run_page(name)["result"].fun < STATED[name]


@pytest.mark.parametrize("name", STATED)
def test_table_of_a_page_has_the_objectives(name):
    scope = run_page(name)
    start, fitted = table_of(name)["objective"]
    np.testing.assert_allclose(scope["objective"](scope["start"](), scope["observed"]), float(start), rtol=5e-3)
    if fitted.startswith("below"):
        assert scope["result"].fun < float(fitted.removeprefix("below"))
    else:
        np.testing.assert_allclose(scope["result"].fun, float(fitted), rtol=2e-2)


def test_arm_reaches_its_target_within_the_limits():
    scope = run_page("robot_arm")
    lengths, limits, target = scope["observed"]
    angles = scope["result"].x
    assert np.linalg.norm(scope["joints"](angles, lengths)[-1] - target) < 0.001
    assert np.all(np.abs(angles) < limits + 0.001)
    # In a plane, turning joint i moves the hand at a right angle to the line from there.
    arm = (target - scope["joints"](angles, lengths)[:-1]).T
    np.testing.assert_allclose(scope["steering"], np.stack([-arm[1], arm[0]]), atol=0.002)


def test_rates_of_the_equation_are_found_within_their_errors():
    scope = run_page("ode_fit")
    assert np.max(np.abs(np.exp(scope["result"].x) / scope["TRUTH"] - 1)) < 0.03
    assert np.all(np.abs(scope["result"].x - np.log(scope["TRUTH"])) < 3 * scope["errors"])


def test_network_tells_all_points_apart():
    scope = run_page("neural_network")
    assert np.all(scope["predict"](scope["result"].x, scope["points"]) * scope["labels"] > 0)
    assert scope["distance"].shape == (300,) and np.all(scope["distance"] > 0)


def test_noise_of_the_process_is_found():
    scope = run_page("gaussian_process")
    assert abs(scope["result"].x[2] - np.log(0.2)) < 2 * scope["errors"][2]
    assert np.exp(scope["result"].x[2]) == pytest.approx(0.22, abs=0.005)


def test_gradient_of_the_forward_algorithm_is_the_posterior_of_forward_and_backward():
    scope = run_page("hidden_markov")
    transitions, evidence = np.exp(scope["transitions"]), np.exp(scope["evidence"])
    forward, backward = [evidence[0] / 2], [np.ones(2)]
    for now, later in zip(evidence[1:], evidence[:0:-1], strict=True):
        forward.append(forward[-1] @ transitions * now)
        backward.insert(0, transitions @ (later * backward[0]))
    joint = np.array(forward) * np.array(backward)
    np.testing.assert_allclose(scope["posterior"], joint / joint.sum(axis=1, keepdims=True), rtol=1e-8)
    assert np.mean(np.argmax(scope["posterior"], axis=1) == scope["dice"]) > 0.85


@pytest.mark.parametrize("name", STATED)
def test_picture_of_a_page_is_there_and_small(name):
    (picture,) = re.findall(r"!\[.*?\]\((.*?)\)", page_of(name))
    assert 0 < (ROOT / "docs" / "examples" / picture).stat().st_size < 60_000
