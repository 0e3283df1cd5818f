"""What a mode does to a program, printed; and all modes on one program, compared."""

import json
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from effgrad import EscapedValue, checkpoint, compare, explain, grad, jvp
from effgrad.api.counting import Counting
from effgrad.api.explain import MODES, explained
from effgrad.api.run import run
from effgrad.fast import REVERSE
from effgrad.modes import READABLE, Forward


def test_the_reverse_pass_of_the_thesis(capsys):
    """Sigal 2024, listing 4.6: 1 + (x^3 + (-y^2)) at (2, 4); constants have no cotangent here."""
    explain(lambda x, y: 1 + (x * x * x + -(y * y)), 2.0, 4.0)
    printed = capsys.readouterr().out
    steps = re.findall(r"<(\w+)> := <\w+> \+ (d\d \w+\([^)]*\)) \* <(\w+)>", printed)
    assert steps == [
        ("r5", "d2 add(1, -8)", "r6"),
        ("r2", "d1 add(8, -16)", "r5"),
        ("r4", "d2 add(8, -16)", "r5"),
        ("r3", "d1 negative(16)", "r4"),
        ("x2", "d1 multiply(4, 4)", "r3"),
        ("x2", "d2 multiply(4, 4)", "r3"),
        ("r1", "d1 multiply(4, 2)", "r2"),
        ("x1", "d2 multiply(4, 2)", "r2"),
        ("x1", "d1 multiply(2, 2)", "r1"),
        ("x1", "d2 multiply(2, 2)", "r1"),
    ]
    assert "d/dx1 = 12" in printed and "d/dx2 = -8" in printed
    assert "r1 = multiply(x1, x1)" in printed and "by Reverse, which performs multiply(2, 2): by Evaluate" in printed


def test_arrays_branches_and_constants(capsys):
    explain(lambda x, n: np.sum(np.sin(x)) if x[0] > 0 else n, np.array([0.5, 1.0]), 3.0)
    printed = capsys.readouterr().out
    assert "float64[2]" in printed and "d/dx2 = 0" in printed
    explain(lambda x: 2.0, 1.0)
    assert "d/dx1 = 0" in capsys.readouterr().out


def test_every_mode_is_in_the_comparison(capsys):
    rows = compare(lambda x: np.sum(np.sin(x) * x[0]), np.array([0.3, 0.7]))
    assert {row.mode for row in rows} >= {"evaluate", "forward", "second_order", "taylor", "hessian", *REVERSE}
    expected = np.sum(grad(lambda x: np.sum(np.sin(x) * x[0]))(np.array([0.3, 0.7])))
    for row in rows:
        if row.mode != "evaluate":
            assert row.derivative == pytest.approx(expected)
            assert row.operations >= rows[0].operations and row.peak > 0
    printed = capsys.readouterr().out
    assert all(row.mode in printed for row in rows)


@pytest.mark.parametrize("mode", REVERSE)
def test_a_value_of_another_activation_is_an_error(mode):
    with REVERSE[mode]() as one, REVERSE[mode]() as other:
        value = one.variable(2.0)
        with pytest.raises(EscapedValue, match="not a value of this activation"):
            other.seed(value, 1.0)
        with pytest.raises(EscapedValue, match="not a value of this activation"):
            one.seed(3.0, 1.0)
    with pytest.raises(EscapedValue, match="already ended"):
        value * 2.0


def branching(x, y):
    z = checkpoint(lambda: np.sin(x) * y)
    return z * z + x * y


def differences(f, *args, h=1e-6):
    """The partial derivatives of `f`, by central differences."""
    moved = [[a + (h if i == j else 0.0) for j, a in enumerate(args)] for i in range(len(args))]
    back = [[a - (h if i == j else 0.0) for j, a in enumerate(args)] for i in range(len(args))]
    return [(f(*more) - f(*less)) / (2 * h) for more, less in zip(moved, back, strict=True)]


def steps_of(explanation, kind):
    """The steps of a kind that the mode itself takes, and not a derivative inside it."""
    return [s for s in explanation.steps if s.kind == kind and s.activation == explanation.chosen]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_explained(mode, capsys):
    explanation = explain(branching, 0.7, 1.3, mode=mode)
    assert capsys.readouterr().out == explanation.text() + "\n"
    partials = differences(branching, 0.7, 1.3)
    expected = {
        "evaluate": {}, "forward": {"d/dt": sum(partials)}, "second_order": {"d/dt": sum(partials)},
        "taylor": {"y1": sum(partials)},
    }.get(mode, {f"d/dx{i}": partial for i, partial in enumerate(partials, 1)})  # fmt: skip
    for name, value in expected.items():
        assert float(explanation.derivatives[name].text) == pytest.approx(value, rel=1e-5)
    assert float(explanation.value[0].text) == pytest.approx(branching(0.7, 1.3), rel=1e-5)
    performed = [s.operation for s in steps_of(explanation, "apply") if s.parent is None and s.phase == "forward"]
    assert performed == ["sin", "multiply", "multiply", "multiply", "add"]


@pytest.mark.parametrize("mode", READABLE)
def test_explaining_performs_what_the_mode_performs(mode):
    """The operations that reach evaluation, counted without any listener."""

    def reverse(_, __, inputs):
        activation, shadows = run(READABLE[mode](), lambda x: branching(*x), [(x,) for x in inputs], seeded)
        activation.cotangents(shadows)

    def seeded(activation, shadows, output):
        activation.seed(output, 1.0)
        return activation, shadows

    def counted(counting, _, inputs):
        reverse(None, None, inputs)
        return counting.performed

    expected = run(Counting(), list, [(0.7,), (1.3,)], counted)
    explanation = explained(branching, (0.7, 1.3), mode)
    assert [s.operation for s in explanation.steps if s.activation == explanation.below and s.operation] == expected


@pytest.mark.parametrize("mode", [*READABLE, "hessian"])
def test_the_sums_shown_are_the_cotangents_of_the_mode(mode):
    """The cotangent that an operation is given is the last sum shown for its result."""
    explanation = explained(branching, (0.7, 1.3), mode)
    sums, pulled = {}, 0
    for step in explanation.steps:
        if step.kind == "seed":
            sums[step.name] = step.cotangent
        if step.kind == "pull":
            assert step.cotangent == sums[step.name]
            pulled += 1
        sums |= {share.name: share.total for share in step.shares}
    assert pulled >= 5
    assert {f"d/d{name}": sums[name].text for name in ("x1", "x2")}.items() <= {
        name: value.text for name, value in explanation.derivatives.items()
    }.items()


@pytest.mark.parametrize("mode", [m for m in READABLE if m != "reverse"])
def test_a_checkpoint_runs_again_in_the_reverse_pass(mode):
    explanation = explained(branching, (0.7, 1.3), mode)
    runs = steps_of(explanation, "part")
    assert [(s.name, s.run, s.phase, s.record) for s in runs] == [
        ("checkpoint 1", 1, "forward", "not recorded"), ("checkpoint 1", 2, "reverse", ""),
    ]  # fmt: skip
    again = [s for s in steps_of(explanation, "apply") if s.phase == "reverse"]
    assert [s.operation for s in again] == ["sin", "multiply"]
    (taken,) = [share for s in steps_of(explanation, "part ends") for share in s.shares]
    assert taken.name == again[-1].name
    assert "checkpoint 1 runs again" in explanation.text()
    assert "not recorded" in explanation.text()


def test_what_each_mode_keeps_is_shown():
    def program(x):
        return x * x * 3.0

    def kept(mode):
        explanation = explained(program, (2.0,), mode)
        own = [s for kind in ("input", "apply") for s in steps_of(explanation, kind) if not explanation.is_internal(s)]
        return [s.kept for s in own]

    assert kept("forward") == ["tangent 1", "tangent 4", "tangent 12"]
    assert kept("taped") == ["tape[0]", "tape[1] multiply(0, 0)", "tape[2] multiply(1, _)"]
    assert kept("continuation") == ["backpropagator 1", "backpropagator 2", "backpropagator 3"]
    assert kept("taylor") == ["series 2, 1, 0, 0", "series 4, 4, 1, 0", "series 12, 12, 3, 0"]
    assert kept("delta") == [
        "Var(0)", "Var(1) Add(Scale(d1 multiply, Var(0)), Scale(d2 multiply, Var(0)))",
        "Var(2) Scale(d1 multiply, Var(1))",
    ]  # fmt: skip
    assert kept("second_order") == ["derivatives 1, 0", "derivatives 4, 2", "derivatives 12, 6"]


def test_backpropagators_are_called_the_youngest_first():
    def program(x):
        y = np.sin(x)
        return (y * y + y) * np.cos(y)

    pulls = steps_of(explained(program, (0.4,), "continuation"), "pull")
    ages = [int(s.record.removeprefix("backpropagator ")) for s in pulls]
    assert ages == sorted(ages, reverse=True) and len(set(ages)) == len(ages) == 5


def test_the_second_derivatives_that_edge_pushing_holds_are_shown():
    explanation = explained(lambda x, y: x * x * y, (3.0, 5.0), "hessian")
    assert steps_of(explanation, "pull")[-1].pairs == {"(x2, x1)": "6", "(x1, x1)": "10"}
    found = {name: float(value.text) for name, value in explanation.derivatives.items()}
    assert found == {"d/dx1": 30.0, "d/dx2": 9.0, "d2/dx1dx1": 10.0, "d2/dx1dx2": 6.0, "d2/dx2dx2": 0.0}


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_inside_the_program_are_named(mode):
    """D(x -> x * D(y -> x + y) at 1): the derivatives inside and outside are told apart."""
    explanation = explained(lambda x: x * grad(lambda y: x * y * y)(1.0 * x), (3.0,), mode)
    names = [a.name for a in explanation.activations if not a.internal and a.number != explanation.below]
    assert names == [explanation.activations[explanation.chosen].name, "Taped 2" if mode == "taped" else "Taped"]
    inside = [s for s in explanation.steps if explanation.by(s) == names[1]]
    assert [s.kind for s in inside] == ["begin", "input", "apply", "apply", "end", "seed", "pull", "pull"]
    given = next(s for s in inside if s.kind == "input").arguments[0].name
    assert given == steps_of(explanation, "apply")[0].name  # 1.0 * x
    performed = [s for s in explanation.steps if s.parent == inside[2].number]
    assert [(explanation.by(s), s.operation) for s in performed] == [(names[0], "multiply")]
    if mode in READABLE:
        assert float(explanation.derivatives["d/dx1"].text) == 3 * 2 * 3.0**2


def test_an_explanation_is_data():
    explanation = explained(branching, (0.7, 1.3), "delta")
    data = json.loads(json.dumps(explanation.data()))
    assert data["version"] == 1 and data["mode"] == "delta" and data["function"] == "branching"
    assert [step["number"] for step in data["steps"]] == list(range(len(data["steps"])))
    file, first, lines = (data["sources"][0][key] for key in ("file", "first", "lines"))
    assert file == __file__ and "np.sin(x) * y" in "\n".join(lines)
    for step in data["steps"]:
        if step["operation"] == "sin":
            assert step["line"][0] == __file__ and "np.sin(x) * y" in lines[step["line"][1] - first]


def test_the_drawing_has_a_box_for_each_value():
    explanation = explained(branching, (0.7, 1.3), "taped")
    drawn = xml.etree.ElementTree.fromstring(explanation.graph())
    titles = [text.text.split()[0] for text in drawn.iter() if text.get("font-weight") == "bold"]
    assert titles == [s.name for s in explanation.steps if s.kind in ("input", "apply") and s.name]


def test_arrays_are_shown_by_their_first_elements():
    explanation = explained(lambda x: np.sum(x[1:] * 2.0), (np.arange(20.0),), "taped")
    first = next(s for s in explanation.steps if s.name == "r1")
    assert str(first.value) == "[1 2 ... 18 19] float64[19]" and first.call() == "getitem(x1, index=1:)"


def test_written_arrays_have_a_name_for_each_of_their_values():
    def program(x):
        y = x * 1.0
        y[0] = y[1] * 3.0
        return np.sum(y * y)

    explanation = explained(program, (np.array([1.0, 2.0]),), "reverse")
    named = {s.name for s in explanation.steps if s.kind in ("input", "apply")}
    for step in steps_of(explanation, "apply"):
        assert {a.name for a in step.arguments if a.name} <= named
        assert any(a.name for a in step.arguments)
    assert explanation.derivatives["d/dx1"].text == "[0 40]"


def test_a_direction_and_an_unknown_mode():
    explanation = explained(lambda x, y: [x * y, x], (3.0, 5.0), "forward", direction=(1.0, 0.0))
    assert {name: value.text for name, value in explanation.derivatives.items()} == {
        "d/dt of output 1": "5", "d/dt of output 2": "1"
    }  # fmt: skip
    with pytest.raises(ValueError, match="mode is 'backward'; the modes are evaluate, forward"):
        explain(lambda x: x, 1.0, mode="backward")


def test_nothing_listens_after_an_explanation():
    explanation = explained(lambda x: jvp(np.sin, (x,), (1.0,))[1], (0.3,), "taped")
    count = len(explanation.steps)
    assert grad(lambda x: x * x, mode="reverse")(2.0) == 4.0
    assert len(explanation.steps) == count


@pytest.mark.parametrize("mode", [*READABLE, "hessian"])
def test_derivatives_of_complex_programs_are_those_of_grad(mode):
    def f(x):
        return np.real((x + 1j) * (x - 2j))

    (shown,) = [value for name, value in explained(f, (0.3,), mode).derivatives.items() if name == "d/dx1"]
    assert float(shown.text) == pytest.approx(grad(f)(0.3))
    if mode != "hessian":
        steepest = explained(lambda z: np.abs(z) ** 2, (1.0 + 2.0j,), mode).derivatives["d/dx1"]
        assert complex(steepest.text) == pytest.approx(grad(lambda z: np.abs(z) ** 2)(1.0 + 2.0j))


def test_modes_of_a_user_are_heard_too():
    class Mine(Forward):
        """Forward mode by another name."""

    def f(x):
        with Mine() as mine:
            y = mine.variable(x, 1.0)
            return (y * y * x).shadow

    explanation = explained(f, (2.0,), "taped")
    assert [a.name for a in explanation.activations] == ["Evaluate", "Taped", "Mine"]
    assert explanation.derivatives["d/dx1"].text == "8"
    assert [s.kept for s in explanation.steps if explanation.by(s) == "Mine" and s.kind == "apply"] == [
        "tangent 4", "tangent 8",
    ]  # fmt: skip


def test_the_records_differ_and_the_shares_do_not():
    """As the page that steps through a derivative says: cells, a tape, terms and backpropagators."""

    def program(x, y):
        z = np.sin(x) * x
        return z * grad(lambda t: t * t * x)(y)

    def shares(mode):
        steps = explained(program, (2.0, 0.5), mode).steps
        return [(share.name, share.argument, share.part) for step in steps for share in step.shares]

    reverse, *others = map(shares, ("reverse", "taped", "continuation", "delta"))
    assert reverse and others == [reverse] * 3
