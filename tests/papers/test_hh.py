"""HH: the figures of 002 run, effects and references behave, and what goes wrong is named."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effgrad.papers import IllFormed, Stuck, TooManySteps
from effgrad.papers.hh import Machine, evaluate, parse

EXAMPLES = Path(__file__).parents[2] / "examples" / "papers"
FIGURE_9 = (EXAMPLES / "figure_9.hh").read_text()
DIFF = FIGURE_9[: FIGURE_9.index("let integers")]  # `let diff = ... in`


def machine(text):
    running = Machine(parse(text))
    while running.frames or running.term is not None:
        running.step()
    return running


def test_figure_9_differentiates_and_may_be_iterated():
    assert evaluate(parse(FIGURE_9)) == (125, 75, 30, 6)


def test_figure_7_has_two_phases():
    running = machine((EXAMPLES / "figure_7.hh").read_text())
    assert running.value == 11
    assert running.printed == [("asked", 7), ("asked", 2), ("finished", 11), ("answered", 2), ("answered", 7)]


# Expressions in tagless-final style, as texts of HH and as functions of Python

LEAVES = st.sampled_from([("x", lambda x: x), ("zero", lambda x: 0), ("one", lambda x: 1)])


def combined(parts):
    def operation(operator, one, other):
        left, right = one[1], other[1]
        both = (lambda x: left(x) + right(x)) if operator == "add" else (lambda x: left(x) * right(x))
        return f"({operator} {one[0]} {other[0]})", both

    return st.builds(operation, st.sampled_from(["add", "mul"]), parts, parts)


class Polynomial(tuple):
    """Coefficients, the constant one first: a number whose derivative is known."""

    def __new__(cls, coefficients):
        coefficients = list(coefficients)
        while coefficients and coefficients[-1] == 0:
            coefficients.pop()
        return super().__new__(cls, coefficients)

    def __add__(self, other):
        pair = (other,) if isinstance(other, int) else tuple(other)
        longer, shorter = sorted((tuple(self), pair), key=len, reverse=True)
        return Polynomial(c + (shorter[i] if i < len(shorter) else 0) for i, c in enumerate(longer))

    def __mul__(self, other):
        pair = (other,) if isinstance(other, int) else tuple(other)
        result = [0] * (len(self) + len(pair))
        for i, c in enumerate(self):
            for j, d in enumerate(pair):
                result[i + j] += c * d
        return Polynomial(result)

    __radd__, __rmul__ = __add__, __mul__

    def derivative(self):
        return Polynomial(i * c for i, c in enumerate(self) if i)


NUMBERS = (0, 1, lambda a: lambda b: a + b, lambda a: lambda b: a * b)


@given(st.recursive(LEAVES, combined, max_leaves=12), st.integers(-3, 3))
def test_diff_represents_the_derivative(expression, point):
    text, f = expression
    polynomial = f(Polynomial([0, 1])) + Polynomial([])
    first, second = polynomial.derivative(), polynomial.derivative().derivative()
    e = f"(fun (zero, one, add, mul) -> fun x -> {text})"
    pair = parse(f"{DIFF} fun dict -> fun x -> (diff {e} dict x, diff (diff {e}) dict x)")
    assert evaluate(pair, NUMBERS, point) == tuple(sum(c * point**i for i, c in enumerate(p)) for p in (first, second))


def test_expressions_with_loops_and_state_are_differentiated_too():
    monomial = """rec power k -> fun (zero, one, add, mul) -> fun x ->
      let total = ref one in
      let loop = rec loop i -> if i < k then (total := mul (!total) x; loop (i + 1)) else () in
      loop 0; !total"""
    assert evaluate(parse(f"{DIFF} diff (({monomial}) 7)"), NUMBERS, Fraction(2, 3)) == 7 * Fraction(2, 3) ** 6


def test_effects_of_the_dictionary_go_through_diff_in_order():
    text = f"""{DIFF}
      let noisy = (0, 1, fun a -> fun b -> perform (Plus (a, b)), fun a -> fun b -> perform (Times (a, b))) in
      let e = fun (_, one, add, mul) -> fun x -> mul (add x one) x in
      handle diff e noisy 5 with
      | effect Plus (a, b), k -> print (a, "+", b); continue k (a + b)
      | effect Times (a, b), k -> print (a, "*", b); continue k (a * b)
      | d -> d
      end"""
    running = machine(text)
    assert running.value == 11
    forward, seed = [(5, "+", 1), (6, "*", 5)], [(0, "+", 1)]
    product, addition = [(1, "*", 5), (0, "+", 5), (1, "*", 6), (0, "+", 6)], [(6, "+", 5)]
    assert running.printed == forward + seed + product + addition


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("let (a, (b, _)) = (1, (2, 3)) in a - b", -1),
        ("let r = ref 1 in let s = r in s := 5; !r", 5),
        ("(rec f n -> if n < 1 then 0 else n + f (n - 1)) 10", 55),
        ("match Some 3 with None -> 0 | Some n -> n * 2 end", 6),
        ('"text"', "text"),
        ("2.5 * 2", 5.0),
        # A handler that drops the continuation, one that keeps it for later, and one that passes an effect on
        ("handle 1 + perform (Stop 7) with x -> x | effect Stop n, k -> n end", 7),
        ("let k = ref None in handle (perform Wait) + 1 with x -> x * 10 | effect Wait, c -> k := Some c; "
         "match !k with Some c -> continue c 4 end end", 50),
        ("handle handle perform (B 1) with x -> x | effect A n, k -> 0 end with x -> x | effect B n, k -> "
         "continue k (n + 41) end", 42),
        # A variable catches every effect, as in HH; a clause runs outside its own handler
        ("handle handle perform (B 1) with x -> x | effect e, k -> perform e end with x -> x | "
         "effect B n, k -> n + 1 end", 2),
    ],
)  # fmt: skip
def test_what_programs_mean(text, value):
    assert evaluate(parse(text)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("handle perform E with x -> x | effect E, k ->\n  continue k 1;\n continue k 2 end",
         "line 3, column 2: the continuation l1 is resumed a second time; it is one-shot"),
        ("1 + perform (E 2)", "no handler catches the effect \\(E 2\\)"),
        ("match A with B -> 1 end", "no pattern fits A"),
        ("let (a, b) = 1 in a", "the pattern does not fit 1"),
        ("!3", "no rule for ! of 3"),
        ("1 2", "no rule for apply of 1, 2"),
        ("continue (ref 1) 2", "l1 is not a continuation"),
        ("x", "x is not bound"),
    ],
)  # fmt: skip
def test_programs_that_get_stuck(text, message):
    with pytest.raises(Stuck, match=message):
        evaluate(parse(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("let x = 1\nx", "line 2, column 2: unexpected the end; expected"),
        ("fun -> 1", "line 1, column 5: unexpected '->'"),
        ("handle 1 with effect E, k -> 1 end", "one branch for the value"),
        ("1 ? 2", "line 1, column 3: unexpected '\\?'"),
    ],
)
def test_ill_formed_programs(text, message):
    with pytest.raises(IllFormed, match=message):
        parse(text)


def test_a_program_that_does_not_end_meets_the_limit():
    with pytest.raises(TooManySteps, match="not finished after 1000 steps; raise the limit with --steps"):
        evaluate(parse("(rec f x -> f x) 1"), steps=1000)
