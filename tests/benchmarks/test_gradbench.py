"""GradBench: the twelve programs against hand-written C++ derivatives, and the tool's answers to good and bad messages.

The cases in tests/data/gradbench were computed by the suite's own reference programs, its `manual` tool.
"""

import copy
import json
import math
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import effgrad
from effgrad_gradbench import EVALS, ba, descent, gmm, ht, ode, particle, saddle
from effgrad_gradbench.tool import MODES, answer, evaluation

DATA = Path(__file__).parents[1] / "data" / "gradbench"
CASES = {path.stem: json.loads(path.read_text())["cases"] for path in sorted(DATA.glob("*.json"))}
INPUTS = {
    **{name: cases[0]["input"] for name, cases in CASES.items()},
    "hello": 3.0, "particle": {"w": 0.1}, "saddle": {"start": [1.0, 1.0]},
}  # fmt: skip
EAGER = MODES["eager"]


def ask(module, function, source, mode=EAGER):
    message = {"id": 7, "kind": "evaluate", "module": module, "function": function, "input": source}
    response = answer(json.dumps(message), mode)
    assert response["id"] == 7
    return response


def assert_agree(actual, expected):
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key in expected:
            assert_agree(actual[key], expected[key])
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-14)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("module", "function", "number"),
    [(m, f, n) for m, cases in CASES.items() for n, case in enumerate(cases) for f in case["output"]],
)
def test_agrees_with_hand_written_derivatives(module, function, number, mode):
    case = CASES[module][number]
    expected = case["output"][function]
    if (module, function) == ("ode", "gradient"):
        # The reference is the closed form of the equation's solution, not the derivative of the method's: they agree
        # where the steps are exact. The result is a product of powers one of all inputs, which gives the derivative.
        expected = case["output"]["primal"][-1] / np.array(case["input"]["x"])
    response = ask(module, function, case["input"], MODES[mode])
    assert response["success"], response
    if (module, function) == ("ba", "jacobian"):
        # Of the row pointers the reference has as many as there are, and then the last one.
        *rows, last = expected["rows"]
        assert response["output"]["rows"] == [*rows[:18], last, last]
        expected = {**expected, "rows": response["output"]["rows"]}
    assert_agree(response["output"], expected)


def test_the_closed_form_of_ode_is_the_derivative_where_the_steps_are_exact():
    (case, _) = CASES["ode"]
    np.testing.assert_allclose(ode.FUNCTIONS["gradient"](*ode.read(case["input"])), case["output"]["gradient"], 1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_hello(mode):
    assert [ask("hello", f, 3, MODES[mode])["output"] for f in ("square", "double")] == [9.0, 6.0]


def test_every_evaluation_is_defined():
    for name in EVALS:
        assert answer(json.dumps({"id": 1, "kind": "define", "module": name}), EAGER) == {"id": 1, "success": True}
        assert evaluation(name).FUNCTIONS


@pytest.mark.parametrize("rotated", [True, False])
def test_sparse_jacobian_of_ba_is_the_dense_one(rotated):
    rng = np.random.default_rng(0)
    n, m, p = 2, 3, 4
    cameras, points, weights = rng.normal(size=(n, 11)), rng.normal(size=(m, 3)), rng.normal(size=p)
    cameras[:, :3] *= rotated
    rest = rng.normal(size=(p, 2)), np.arange(p) % n, np.arange(p) % m
    dense = effgrad.jacobian(lambda *x: np.concatenate([np.ravel(part) for part in ba.objective(*x, *rest)]), (0, 1, 2))
    blocks = [np.reshape(block, (3 * p, -1)) for block in dense(cameras, points, weights)]
    sparse = csr_array(ba.jacobian(cameras, points, weights, *rest))
    np.testing.assert_allclose(sparse.toarray(), np.hstack(blocks), rtol=1e-12, atol=1e-12)
    assert sparse.nnz == 31 * p


def test_barycentric_columns_of_ht_are_those_of_the_dense_jacobian():
    source = copy.deepcopy(INPUTS["ht"])
    data, count = source["data"], 5
    data["points"], data["correspondences"] = data["points"][:count], list(range(count))
    source["us"] = np.random.default_rng(0).uniform(size=(count, 2)).tolist()
    theta, us, *rest = ht.read(source)
    compressed = ht.jacobian(theta, us, *rest)
    by_theta, by_us = effgrad.jacobian(ht.objective, (0, 1), mode="reverse")(theta, us, *rest)
    own = np.array([[by_us[3 * i + j, i] for j in range(3)] for i in range(count)]).reshape(-1, 2)
    np.testing.assert_allclose(compressed, np.hstack([own, by_theta]), rtol=1e-10, atol=1e-12)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("inner", "fr")
@pytest.mark.parametrize("outer", "fr")
def test_nested_modes_of_particle_agree(outer, inner):
    (slope,) = descent.GRADIENT[outer](lambda w: particle.miss(w[0], inner))([0.1])
    h = 1e-5
    difference = (particle.miss(0.1 + h, "f") - particle.miss(0.1 - h, "f")) / (2 * h)
    assert math.isclose(slope, difference, rel_tol=1e-7)


@pytest.mark.parametrize("inner", "fr")
@pytest.mark.parametrize("outer", "fr")
def test_nested_modes_of_saddle_differentiate_through_the_inner_descent(outer, inner):
    def highest(x):
        return saddle.height(x, saddle.argmax(x, [1.0, 1.0], inner))

    slope = descent.GRADIENT[outer](highest)([0.3, -0.2])
    np.testing.assert_allclose(slope, [0.6, -0.4], rtol=1e-9)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("modes", saddle.MODES)
def test_searches_are_compiled_whole(modes):
    response = ask("saddle", modes, INPUTS["saddle"], MODES["compiled"])
    assert_agree(response["output"], [8.246324826140356e-06] * 4)
    response = ask("particle", modes, {"w": 0.0}, MODES["compiled"])
    assert_agree(response["output"], 0.2071918746486116)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("modes", particle.MODES)
def test_a_search_for_a_path_ends(modes):
    for w in (2.0, -10.0, 1e6):
        response = ask("particle", modes, {"w": w}, MODES["compiled"])
        assert not response["success"] and "does not cross the axis" in response["error"]
    # From here the search tries charges from which no path crosses, and turns back.
    response = ask("particle", modes, {"w": -1.0}, MODES["compiled"])
    assert_agree(response["output"], -1.4627127211498336)


def test_as_many_runs_as_asked():
    response = ask("lse", "primal", {**INPUTS["lse"], "min_runs": 5, "min_seconds": 0})
    assert [t["name"] for t in response["timings"]] == ["evaluate"] * 5


def test_as_many_seconds_as_asked():
    response = ask("lse", "primal", {**INPUTS["lse"], "min_runs": 1, "min_seconds": 0.05})
    assert sum(t["nanoseconds"] for t in response["timings"]) >= 5e7


@pytest.mark.parametrize(
    "line",
    [
        "", "{", "nonsense", "[1]", "3", "null", '"start"', "{}", b"\xff\xfe", "[" * 100_000, '{"id": 1}',
        '{"id": 1, "kind": 3}', '{"id": 1, "kind": "define"}', '{"id": 1, "kind": "define", "module": ["gmm"]}',
        '{"id": 1, "kind": "define", "module": "../gmm"}', '{"id": 1, "kind": "evaluate"}',
        '{"id": 1, "kind": "evaluate", "module": "lse"}', '{"id": 1, "kind": "end"}',
        '{"id": 1, "kind": "evaluate", "module": "lse", "function": [], "input": {}}',
        '{"id": 1, "kind": "evaluate", "module": "lse", "function": "hessian", "input": {"x": [1]}}',
        '{"id": 1, "kind": "evaluate", "module": "lse", "function": "primal"}',
        '{"id": 1, "kind": "evaluate", "module": "lse", "function": "primal", "input": {"x": [1e999]}}',
        '{"id": 1, "kind": "evaluate", "module": "hello", "function": "square", "input": 1e200}',
        *(
            f'{{"id": 1, "kind": "evaluate", "module": "{module}", "function": "{function}", "input": {source}}}'
            for module, function, source in [
                ("hello", "square", 10**400), ("ode", "primal", f'{{"x": [1], "s": {10**30}}}'),
                ("lse", "primal", f'{{"x": [1], "min_runs": {10**400}}}'),
            ]
        ),
        '{"id": 1, "kind": "evaluate", "module": "det", "function": "primal", "input": {"ell": 20, "A": [1]}}',
        b"\xff\xfe", b"\x00", "[" * 100_000,
    ],
)  # fmt: skip
def test_bad_messages_are_told_so(line):
    response = answer(line, EAGER)
    assert response["success"] is False and response["error"]


WRONG = {
    "text": "text", "null": None, "truth": True, "object": {}, "empty": [], "ragged": [[1.0, 2.0], [3.0]],
    "infinite": [math.inf], "infinity": math.inf, "nan": math.nan, "negative": -1, "deep": [[[[[1.0]]]]],
    "strings": ["a", "b"],
}  # fmt: skip


def places(source, prefix=()):
    """Every field of an input that an evaluation reads."""
    for name, value in source.items():
        if name == "bone_names":
            continue
        yield (*prefix, name)
        if isinstance(value, dict):
            yield from places(value, (*prefix, name))


def replaced(source, place, change):
    source = copy.deepcopy(source)
    inner = source
    for name in place[:-1]:
        inner = inner[name]
    change(inner, place[-1])
    return source


# What is right for a field though it is wrong for others.
RIGHT = {
    ("ba", "w", "negative"), ("ht", "us", "empty"), ("ht", "is_mirrored", "truth"), ("particle", "w", "negative"),
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("module", "place"), [(m, place) for m, source in INPUTS.items() if m != "hello" for place in places(source)]
)
def test_bad_fields_are_told_so(module, place):
    function = next(iter(evaluation(module).FUNCTIONS))
    missing = ask(module, function, replaced(INPUTS[module], place, lambda inner, name: inner.pop(name)))
    assert not missing["success"] and repr(place[-1]) in missing["error"]
    for kind, wrong in WRONG.items():
        if (module, place[-1], kind) not in RIGHT:
            response = ask(module, function, replaced(INPUTS[module], place, lambda i, n, w=wrong: i.update({n: w})))
            assert response["success"] is False and response["error"], kind


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(message=st.data())
@settings(max_examples=100, deadline=None)
def test_no_message_crashes_the_tool(message):
    keys = {
        "id": json_values, "kind": st.just("evaluate") | json_values, "module": st.sampled_from(EVALS) | json_values,
        "function": st.sampled_from(["primal", "gradient", "objective", "square"]) | json_values, "input": json_values,
    }  # fmt: skip
    drawn = message.draw(st.fixed_dictionaries({}, optional=keys) | json_values)
    response = answer(json.dumps(drawn), EAGER)
    assert "id" in response and json.dumps(response, allow_nan=False)


def test_a_session():
    lines = [
        '{"id": 0, "kind": "start", "eval": "hello"}', '{"id": 1, "kind": "define", "module": "hello"}', "oops",
        '{"id": 2, "kind": "evaluate", "module": "hello", "function": "double", "input": 2}',
        '{"id": 3, "kind": "analysis", "of": 2, "valid": true}',
    ]  # fmt: skip
    command = [sys.executable, "-c", "from effgrad_gradbench.tool import main; main()", "--mode", "eager"]
    path = [str(Path(module.__file__).parents[1]) for module in (effgrad, ba)]
    run = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(path)}
    )
    start, define, oops, double, analysis = map(json.loads, run.stdout.splitlines())
    assert start == {"id": 0, "tool": "effgrad"} and define == {"id": 1, "success": True}
    assert oops["success"] is False and analysis == {"id": 3}
    assert double["output"] == 4.0 and double["timings"][0]["name"] == "evaluate"


@pytest.mark.parametrize("memory", [1e6, 4e6])
def test_gmm_keeps_to_a_memory_limit(memory):
    rng = np.random.default_rng(0)
    n, k, d = 4000, 10, 8
    parameters = rng.normal(size=k), rng.normal(size=(k, d)), rng.normal(size=(k, d)), rng.normal(size=(k, 28))
    rest = rng.normal(size=(n, d)), 1.0, 2
    whole = gmm.jacobian(*parameters, *rest)
    tracemalloc.start()
    limited = gmm.jacobian(*parameters, *rest, memory)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for name in whole:
        np.testing.assert_allclose(limited[name], whole[name], rtol=1e-9, atol=1e-9)
    assert peak < memory + 1e6 < 8 * n * k * d * gmm.ARRAYS
