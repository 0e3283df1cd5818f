"""Differential testing: the means agree on generated programs, and a broken one is found and made small."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effgrad import cli
from effgrad.papers import expressions
from effgrad.papers.lam import Interpreter, parse, typeof
from effgrad.papers.lam.terms import DELTA, Arrow, Inl, Inr, Lam, Monad, Op, Poly, Product, R, Term
from effgrad.papers.lam.translations import DELTA as DELTAS
from effgrad.papers.lam.translations import TANGENT, monadic, translate, vectors
from effgrad.papers.lam.types import dual, mapped, reverse_dual
from effgrad.papers.verify import methods, python
from effgrad.papers.verify.methods import METHODS, PUBLIC, Case, Skip, nested
from effgrad.papers.verify.programs import program, smaller
from effgrad.papers.verify.verification import Failure, Report, case_of, examine, shrunk, verify


def test_all_means_agree():
    report = verify(150, seed=1)
    assert [str(f) for f in report.failures] == []
    assert report.programs == 150 and report.exact + report.skipped >= 70
    assert set(report.compared) == {*METHODS, *PUBLIC}
    assert min(report.compared.values()) > 60


@pytest.mark.sweep
def test_a_program_is_made_by_its_seed_in_any_process():
    assert verify(60, seed=3, jobs=2).compared == verify(60, seed=3).compared
    assert str(program("3/5", True)) == str(program("3/5", True)) != str(program("3/6", True))


def parts(term):
    yield term
    for part in term.parts():
        if isinstance(part, Term):
            yield from parts(part)


def test_generated_programs_have_everything():
    kinds = {"sum": 0, "branch": 0, "loop": 0, "fused": 0, "function of a function": 0}
    for i in range(300):
        nodes = list(parts(program(str(i), i % 2 == 0)))
        kinds["sum"] += any(isinstance(n, Inl | Inr) for n in nodes)
        kinds["branch"] += Op("<") in nodes
        kinds["loop"] += Op("fold") in nodes
        kinds["fused"] += any(isinstance(n, Poly) for n in nodes)
        kinds["function of a function"] += any(isinstance(n, Lam) and isinstance(n.annotation, Arrow) for n in nodes)
    assert min(kinds.values()) > 10, kinds


@given(st.integers(0, 10**9), st.booleans())
def test_generated_programs_are_well_typed_and_are_read_back(seed, exact):
    made = program(seed, exact)
    assert str(typeof(made)) in ("R -> R", "R * R -> R", "R * R * R -> R")
    assert str(parse(str(made).replace("_", "unused"))) == str(made).replace("_", "unused")


@settings(max_examples=40)
@given(st.integers(0, 10**9))
def test_translations_of_generated_programs_have_the_types_of_the_figures(seed):
    made = program(seed, True)
    type_ = typeof(made)
    assert typeof(translate(made, TANGENT)) == dual(type_)
    assert typeof(translate(made, vectors(type_.argument))) == mapped(type_, Product(R, type_.argument))
    assert typeof(translate(made, DELTAS)) == mapped(type_, Product(R, DELTA))
    assert typeof(monadic(made)) == Monad(reverse_dual(type_))


@given(st.integers(0, 10**9))
def test_the_python_of_a_program_means_the_same(seed):
    case = case_of(str(seed), True, 20)
    wanted = Interpreter(Fraction).run(case.program, nested(case.point))
    assert case.python(nested(case.point)) == wanted


# A mean that is broken


def broken(change):
    """A gradient by figure 10 of which `change` makes another."""
    _, find = METHODS["lam reverse, figure 10"]
    return {"broken": ("gradient", lambda case: change(case, find(case)))}


def failures(broken_means, seeds=range(100)):
    report = Report()
    for i in seeds:
        examine(str(i), case_of(str(i), i % 2 == 0, 12), broken_means, report)
    return report.failures


def uses(case, name):
    return Op(name) in parts(case.program)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "change",
    [
        lambda case, g: [x + (1 if case.exact else 1e-6) for x in g] if uses(case, "/") else g,
        lambda case, g: g[::-1],
        lambda case, g: [-x for x in g] if uses(case, "fold") else g,
        lambda case, g: [x * (1 + 1e-9) for x in g],
    ],
    ids=["off by a constant after a division", "wrong order", "wrong sign after a loop", "off in the ninth digit"],
)
def test_a_broken_mean_is_found(change):
    found = failures(broken(change))
    assert found and {f.mean for f in found} == {"broken"}


def test_a_mean_that_raises_is_a_failure():
    def fail(case, gradient):
        raise ValueError("no rule")

    assert failures(broken(fail), range(3))[0].found == "ValueError('no rule')"


def test_a_counterexample_is_made_small():
    wrong = broken(lambda case, g: [x + 1 for x in g] if uses(case, "/") else g)
    first = failures(wrong)[0]
    small = shrunk(first, wrong)
    assert small.mean == "broken" and uses(small.case, "/")
    size = len(list(parts(small.case.program)))
    assert size <= 8 < len(list(parts(first.case.program)))
    text = str(small)
    assert "broken does not agree with the symbolic derivative" in text
    assert f"def program({small.case.program.name}):" in text


def test_shrinking_keeps_the_type_and_what_is_needed():
    made = parse("\\(x : R * R). let unused = 3.0 in let f = \\y. sin y * 2.5 in (f (fst x) + 1.0) * snd x")
    small = smaller(made, lambda term: Op("sin") in parts(term))
    assert typeof(small) == typeof(made)
    assert str(small) == "\\(x : R * R). sin 0.0"


# What results are compared with


def test_the_symbolic_derivative_and_its_bounds():
    made = parse("\\(x, y). let z = x * y in z * z + x")
    exact = methods.expected(Case(made, [Fraction(2), Fraction(3)], [Fraction(1), Fraction(-1)], True))
    assert exact.results == {"value": [38], "gradient": [37, 24], "slope": [13], "curvature": [2 * 9 + 2 * 4 - 48]}
    rounded = methods.expected(Case(made, [0.1, 0.3], [1.0, 0.0], False))
    assert not rounded.wrong("gradient", [2 * 0.1 * 0.09 + 1, 2 * 0.01 * 0.3])
    assert rounded.wrong("gradient", [2 * 0.1 * 0.09 + 1 + 1e-9, 2 * 0.01 * 0.3])


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_running_error_analysis_bounds_the_error(x, y):
    def f(a, b, c):
        return (a * b - b / (a * a + c)) * (a - b) + a * b

    rounded = f(methods.Rounded(x, 0.0), methods.Rounded(y, 0.0), methods.Rounded(1.0, 0.0))
    exact = f(Fraction(x), Fraction(y), Fraction(1))
    assert abs(Fraction(rounded.value) - exact) <= 2 * Fraction(rounded.error)  # the bound itself is rounded


def test_a_branch_that_rounding_decides_is_skipped():
    made = parse("\\x. if x * 0.1 + x * 0.2 < x * 0.3 then x else 2.0 * x")
    with pytest.raises(Skip):
        methods.expected(Case(made, [1.0], [1.0], False))
    assert methods.expected(Case(made, [Fraction(1)], [Fraction(1)], True)).results["gradient"] == [2]


def test_means_that_lose_sharing_may_take_too_many_steps():
    lets = "".join(f"let x{i} = x{i - 1} + x{i - 1} in " for i in range(1, 30))
    made = parse(rf"\x0. {lets} x29")
    case = Case(made, [1.0], [1.0], False)
    found = {name: result for name, _, result in methods.outcomes(case, METHODS | PUBLIC)}
    unfinished = [name for name, result in found.items() if result is None]
    assert unfinished == ["lam reverse, figure 8", "EFF continuation reverse", "Python trees"]
    assert found["lam reverse, figure 10"] == found["Python continuation"] == [2.0**29]


def test_python_of_a_program_with_clashing_names():
    text = "\\x. let x = x * x in let f = \\x. x + 1.0 in let x = f x in case inl x of inl x -> x * 2.0, inr _ -> 0.0"
    assert python.compiled(parse(text), python.floating)(3.0) == 20.0


def test_expressions_are_shown_as_they_are_read():
    text = "atan2 (x1, x2) * -(x1 + 2.0) / sin (cos x2 - (x1 - x2))"
    expression = expressions.function(["x1", "x2"], text)
    again = expressions.function(["x1", "x2"], str(expression))
    assert str(again) == str(expression)
    assert expressions.value(again, (0.3, 0.7)) == expressions.value(expression, (0.3, 0.7))


# The command


def test_verify_prints_and_writes_its_report(capsys, tmp_path):
    out = tmp_path / "report.md"
    assert cli.main(["verify", "--programs", "20", "--seed", "5", "--report", str(out)]) == 0
    assert "- disagreements: 0" in capsys.readouterr().out
    assert "`effgrad verify --programs 20 --seed 5 --size 12" in out.read_text()
    assert cli.main(["verify", "--programs", "4", "--report", str(tmp_path / "report.json")]) == 0
    assert '"programs": 4' in (tmp_path / "report.json").read_text()


def test_verify_writes_a_counterexample(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "lam", ("value", lambda case: [2 * x for x in METHODS["Python"][1](case)]))
    file = tmp_path / "found.txt"
    assert cli.main(["verify", "--programs", "10", "--counterexample", str(file)]) == 2
    assert f"the methods disagree on a program: see {file}" in capsys.readouterr().err
    assert file.read_text().startswith("lam does not agree with the symbolic derivative")


def test_verify_refuses_what_makes_no_sense(capsys):
    assert cli.main(["verify", "--programs", "0"]) == 2
    assert "--programs must be at least 1, not 0" in capsys.readouterr().err


def test_failures_are_told_apart():
    case = case_of("0", True, 5)
    one = Failure("0", case, "a", "slope", "1", "2")
    assert "a does not agree" in str(one) and "slope    2\nfound    1" in str(one)
    report = Report(programs=1, failures=[one])
    total = Report(programs=2)
    total.add(report)
    assert total.programs == 3 and total.failures == [one]
