"""What the languages share: places, errors with the line they are about, and room for deep programs."""

import pytest

from effgrad.papers import CalculusError, IllTyped
from effgrad.papers.eff.reading import parse as parse_eff
from effgrad.papers.eff.semantics import evaluate as evaluate_eff
from effgrad.papers.hh import evaluate as evaluate_hh
from effgrad.papers.hh import parse as parse_hh
from effgrad.papers.lam import evaluate, parse
from effgrad.papers.lam.translations import reverse_derivative
from effgrad.papers.syntax import Place, deep, pointed


def test_nodes_know_their_place_and_are_compared_without_it():
    first, second = parse("\\x. x"), parse("  \n \\x. x")
    assert (first.place, second.place) == (Place(1, 1), Place(2, 2))
    assert first == second


def test_an_error_is_shown_with_its_line():
    assert pointed(IllTyped("wrong", Place(2, 3)), "one\ntwo\nthree") == "line 2, column 3: wrong\n  two\n    ^"
    assert pointed(IllTyped("wrong"), "one") == "wrong"


def test_programs_may_be_nested_deeper_than_python_recurses():
    n = 1500
    lets = "".join(f"let x{i} = x{i - 1} * 1.0 in " for i in range(1, n))
    program = parse(f"\\x0. {lets} x{n - 1} + {'(' * n}x0{')' * n}")
    assert evaluate(program, 2.0) == 4.0
    assert evaluate(reverse_derivative(program), (2.0, 1.0)) == 2.0
    assert evaluate_eff(parse_eff("".join(f"x{i} <- return 1.0; " for i in range(n)) + "return x3")) == 1.0
    assert evaluate_hh(parse_hh("".join(f"let x{i} = {i} in " for i in range(n)) + "x3")) == 3


def test_what_is_nested_too_deeply_is_told():
    def endless(n):
        return endless(n + 1)

    with pytest.raises(CalculusError, match="nested too deeply"), deep():
        endless(0)
