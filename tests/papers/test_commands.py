"""`effgrad calculus`: what is printed for the examples, and for mistakes."""

from pathlib import Path

import pytest

from effgrad import cli

EXAMPLES = Path(__file__).parents[2] / "examples" / "papers"


def lines(capsys, *arguments):
    assert cli.main(["calculus", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "chapter_8.eff"],
         ["(4.909297426825682, (4.909297426825682, 3.5838531634528574), 3.5838531634528574) : F (R * (R * R) * R)",
          "317 steps"]),
        (["type", "chapter_8.eff"], ["F (R * (R * R) * R)"]),
        (["run", "state.eff"], ["(42.0, 8.0) : F (R * R)", "31 steps"]),
        (["run", "figure_7.hh"],
         ["(asked, 7)", "(asked, 2)", "(finished, 11)", "(answered, 2)", "(answered, 7)", "11", "29 steps"]),
        (["run", "figure_9.hh"], ["(125, 75, 30, 6)", "3561 steps"]),
        (["type", "loss.lam"], ["(R * R) * Vector (R * (R + Z)) -> R"]),
        (["run", "loss.lam", "((2.0, 1.0), build (3, \\i. (real i, if real i < 1.5 then inl 2.0 else inr 0)))"],
         ["2.0 : R", "68 steps"]),
        (["type", "quaternion.lam", "--translation", "reverse"],
         ["((R * R * R * R) * R * R * R) * R -> (R * R * R * R) * R * R * R"]),
        (["run", "section_5_3.lam", "(3.0, 1.0)", "--translation", "reverse2"], ["393216.0 : R", "1188 steps"]),
        (["run", "section_5_3.lam", "(3.0, 1.0)", "--translation", "reverse"], ["393216.0 : R", "315 steps"]),
        (["run", "section_5_3.lam", "((3.0, 1.0), 1.0)", "--translation", "reverse", "--translation", "reverse"],
         ["(131072.0, 393216.0) : R * R", "3559 steps"]),
    ],
)  # fmt: skip
def test_the_examples(capsys, arguments, expected):
    action, file, *rest = arguments
    assert lines(capsys, action, EXAMPLES / file, *rest) == expected


def test_the_derivative_of_figure_12(capsys):
    point = "((1.1, 2.2, 3.3, 4.4), (5.5, 6.6, 7.7))"
    shown, _ = lines(capsys, "run", EXAMPLES / "quaternion.lam", f"({point}, 1.0)", "--translation", "reverse")
    numbers = [float(part.strip("()")) for part in shown.split(" : ")[0].split(", ")]
    x, y, z, w, a, b, c = 1.1, 2.2, 3.3, 4.4, 5.5, 6.6, 7.7
    by_quaternion = [x * a + y * b + z * c, -y * a + x * b + w * c, -z * a - w * b + x * c, w * a - z * b + y * c]
    by_vector = [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)]
    assert numbers == pytest.approx([*(2 * entry for entry in by_quaternion), *by_vector])


@pytest.mark.parametrize(
    ("file", "rules"),
    [("state.eff", ["U", "op", "→", "F", "const", "ret"]), ("figure_7.hh", ["perform", "continue", "print", "return"]),
     ("section_5_3.lam", ["let", "apply", "+", "deltaLet", "do", "runDelta", "eval", "lookup", "leaf"])],
)  # fmt: skip
def test_a_trace_has_a_line_for_each_step(capsys, file, rules):
    extra = ["(3.0, 1.0)", "--translation", "reverse"] if file.endswith(".lam") else []
    *steps, _, total = lines(capsys, "trace", EXAMPLES / file, *extra)
    named = [line.split()[1] for line in steps if line[:6].strip().isdigit()]
    assert len(named) == int(total.split()[0])
    assert set(rules) <= set(named)


@pytest.mark.parametrize(
    ("name", "text", "arguments", "message"),
    [
        ("a.lam", "\\x.\n  x + 1", [], "line 2, column 3: argument of an application: expected R * R, found R * Z, in "
         "(x, 1)\n    x + 1\n    ^"),
        ("a.eff", "x <- return 1.0;\nreturn y", [], "line 2, column 8: variable: y is not bound"),
        ("a.hh", "let x = 1", [], "line 1, column 10: unexpected the end"),
        ("a.hh", "(rec f x -> f x) 1", ["--steps", "50"], "not finished after 50 steps; raise the limit with --steps"),
        ("a.txt", "1", [], "a.txt ends in none of .lam, .eff, .hh"),
        ("a.hh", "1", ["2"], "an argument and a translation are for programs in .lam"),
        ("a.lam", "1.0", ["--translation", "reverse"], "main expression: R is not a function between first-order"),
    ],
)  # fmt: skip
def test_mistakes_get_a_place_and_a_reason(capsys, tmp_path, name, text, arguments, message):
    (tmp_path / name).write_text(text)
    assert cli.main(["calculus", "run", str(tmp_path / name), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_hh_has_no_types_and_a_missing_file_is_named(capsys):
    assert cli.main(["calculus", "type", str(EXAMPLES / "figure_9.hh")]) == 2
    assert "HH has no types" in capsys.readouterr().err
    assert cli.main(["calculus", "run", "none.lam"]) == 2
    assert "cannot read none.lam" in capsys.readouterr().err


def test_without_the_parser_library_the_extra_is_named(capsys, monkeypatch):
    from effgrad.papers.lam import reading

    monkeypatch.setitem(__import__("sys").modules, "lark", None)
    monkeypatch.setattr(reading, "_READER", reading._Reader())
    assert cli.main(["calculus", "run", str(EXAMPLES / "section_5_3.lam")]) == 2
    assert "pip install 'effgrad[papers]'" in capsys.readouterr().err
