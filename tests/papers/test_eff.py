"""EFF: safety on generated terms, the checker's and the reader's errors, and the handlers of chapter 8."""

import pathlib
from fractions import Fraction

import numpy as np
import pytest
from eff_terms import OPERATIONS, Maker
from hypothesis import given, settings
from hypothesis import strategies as st

from effgrad import jvp
from effgrad.papers import IllFormed, IllTyped, Stuck, TooManySteps
from effgrad.papers import lam as lam_language
from effgrad.papers.eff import type_terms
from effgrad.papers.eff.from_lam import DUAL, PLAIN, PROP, Numbers, run, translated
from effgrad.papers.eff.reading import parse, parse_type
from effgrad.papers.eff.semantics import Machine, evaluate
from effgrad.papers.eff.terms import Program, Return
from effgrad.papers.eff.type_terms import F, R, Variable
from effgrad.papers.eff.types import check

LIMIT = 20_000
ROOT = pathlib.Path(__file__).parents[2]


@settings(deadline=None)
@given(st.integers(0, 10**9))
def test_well_typed_terms_do_not_get_stuck_keep_their_type_and_terminate(seed):
    maker = Maker(seed)
    type_ = F(maker.value_type(2))
    made = Program(OPERATIONS, maker.computation(type_, {}, frozenset(), 9))
    program, found = check(made)
    assert found == type_
    machine = Machine(program)
    for count in range(LIMIT):
        if machine.step() is None:
            break
        if count < 40 or count % 50 == 0:
            assert check(Program(OPERATIONS, machine.whole()))[1] == type_  # preservation
    assert isinstance(machine.whole(), Return)  # progress, and the end


@given(st.integers(0, 10**9))
def test_a_term_is_shown_in_the_syntax_that_is_read(seed):
    maker = Maker(seed)
    term = maker.computation(maker.computation_type(2), {}, frozenset(OPERATIONS), 5)
    shown = str(term)
    assert str(parse(shown).body) == shown


def test_generated_terms_use_every_rule():
    used = set()
    for seed in range(300):
        maker = Maker(seed)
        program = Program(OPERATIONS, maker.computation(F(maker.value_type(2)), {}, frozenset(), 6))
        machine = Machine(check(program)[0])
        for _ in range(LIMIT):
            rule = machine.step()
            used.add(rule)
            if rule is None:
                break
    assert used == {"×", "+", "F", "U", "→", "&", "ret", "op", "shallow op", "const", "rec", "ref", "read", None}


# What programs mean

STATE = """
operation get : 1 -> R
operation put : R -> 1
define run[] = {\\(m : U[get, put] F R). handle m! with
  { return (x : R) -> \\(s : R). return (x, s)
  | get p k -> \\(s : R). k! s s
  | put p k -> \\(s : R). k! () p }}
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("return (1.0, (2, ()))", (1.0, (2, ()))),
        ("case (1.0, 2.0) of (x, y) -> eval2 (op[a, b. a - b], (y, x))", 1.0),
        ("case inj[<l R, r 1>] r () of {l x -> return x | r u -> return 5.0}", 5.0),
        ("(\\(x : R). \\(y : R). return (y, x)) 1.0 2.0", (2.0, 1.0)),
        ("prj 2 <return 1.0, return 2.0>", 2.0),
        ("d <- d1of2 op[x, y. x * x * y]; eval2 (d, (3.0, 5.0))", 30.0),
        ("f <- constant 3; eval0 (f, ())", 3.0),
        ("b <- less (1.0, 2.0); case b of {true u -> timesZ (2, 3) | false u -> plusZ (2, 3)}", 6),
        # A state by handlers that give functions of it
        (STATE + "run[]! {[get, put] x <- get (); y <- eval1 (op[x. x * 2.0], x); u <- put y; return x} 21.0",
         (21.0, 42.0)),
        # A continuation that is resumed twice, and one that is not resumed
        ("operation flip : 1 -> <true 1, false 1>  handle x <- flip (); case x of {true u -> return 1.0 "
         "| false u -> return 2.0} with {return (x : R) -> return x | flip p k -> "
         "a <- k! (inj[<true 1, false 1>] true ()); "
         "b <- k! (inj[<true 1, false 1>] false ()); eval2 (op[a, b. a + b], (a, b))}", 3.0),
        ("operation stop : R -> R  handle x <- stop 7.0; return 1.0 with {return (x : R) -> return x | "
         "stop p k -> return p}", 7.0),
        # A handler is deep: it handles what comes after an operation too
        ("operation tick : 1 -> 1  handle u <- tick (); u <- tick (); return 0.0 with {return (x : R) -> return x | "
         "tick p k -> x <- k! (); eval2 (op[a, b. a + b], (x, 1.0))}", 2.0),
        # Recursion: the sum of 10, 9, ..., 1
        ("(rec (f : R -> F R). \\(n : R). b <- less (n, 0.5); case b of {true u -> return 0.0 | false u -> "
         "m <- eval1 (op[x. x - 1.0], n); s <- f! m; eval2 (op[a, b. a + b], (n, s))}) 10.0", 55.0),
        # The store; a continuation that is resumed twice shares it
        ("r <- ref 1.0; u <- write (r, 5.0); x <- read r; q <- ref r; s <- read q; y <- read s; return (x, y)",
         (5.0, 5.0)),
        ("operation flip : 1 -> R  r <- ref 0.0; handle x <- flip (); old <- read r; "
         "new <- eval2 (op[a, b. a + b], (old, x)); u <- write (r, new); return new with {return (x : R) -> return x "
         "| flip p k -> a <- k! 1.0; b <- k! 10.0; return b}", 11.0),
        # A shallow handler takes one operation: here the second one goes to another handler
        ("operation ask : 1 -> R  shallow a <- ask (); b <- ask (); return (a, b) with {return (x : R * R) -> return x "
         "| ask p k -> handle k! 1.0 with {return (x : R * R) -> return x | ask p k -> k! 2.0}}", (1.0, 2.0)),
        # A deep handler by shallow ones and recursion (Hillerström and Lindley 2018): the state of above
        ("operation get : 1 -> R operation put : R -> 1 "
         "(rec (run : U[get, put] F R -> R -> F (R * R)). \\(m : U[get, put] F R). \\(s : R). "
         "shallow m! with {return (x : R) -> return (x, s) | get p k -> run! {[get, put] k! s} s "
         "| put p k -> run! {[get, put] k! ()} p}) "
         "{[get, put] x <- get (); y <- eval1 (op[x. x * 2.0], x); u <- put y; return x} 21.0", (21.0, 42.0)),
    ],
)  # fmt: skip
def test_what_programs_return(text, value):
    program, type_ = check(parse(text))
    assert isinstance(type_, F)
    assert evaluate(program) == value


PROGRAMS = {
    r"\x. x * x": lambda x: x * x,
    r"\x. let y = x * x in y * y + y / (x + 3.0)": lambda x: x**4 + x * x / (x + 3),
    r"\x. if x < 1.0 then sin x else cos (x * x)": lambda x: np.sin(x) if x < 1.0 else np.cos(x * x),
    r"\x. let f = \g. \y. g (g y) in f (\z. z * x + 2.0) 3.0": lambda x: (3 * x + 2) * x + 2,
    r"\x. fold ((\(a, b). a * b + x), (x, build (3, \i. real (i *Z i) - x)))":
        lambda x: ((x * (0 - x) + x) * (1 - x) + x) * (4 - x) + x,
    r"\x. case (if 0.0 < x then inl x else inr (x, 2.0)) of inl a -> exp a, inr b -> fst b * snd b":
        lambda x: np.exp(x) if x > 0 else 2 * x,
    r"\x. fused[R] (\y. y * y) (x + 1.0) - (-x)": lambda x: (x + 1) ** 2 + x,
}  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("x", [0.7, 1.9, -0.4])
def test_the_handlers_of_chapter_8_differentiate(text, x):
    program, f = lam_language.parse(text), PROGRAMS[text]
    value, derivative = jvp(f, (x,), (1.5,))
    assert run(program, "eval", [x]) == pytest.approx(value, rel=1e-12)
    assert run(program, "forward", [x], [1.5]) == pytest.approx((value, derivative), rel=1e-12)
    assert run(program, "reverse", [x], [1.5]) == pytest.approx((value, derivative), rel=1e-12)


def test_over_fractions_the_handlers_are_exact():
    program = lam_language.parse(r"\x. let y = x * x in y * y / (y + 0.5)")
    x = Fraction(2, 3)
    expected = (4 * x**3 * (x**2 + Fraction(1, 2)) - x**4 * 2 * x) / (x**2 + Fraction(1, 2)) ** 2
    for mode in ("forward", "reverse"):
        assert run(program, mode, [x], [Fraction(1)], Fraction)[1] == expected


@pytest.mark.parametrize("numbers", [PLAIN, DUAL, PROP])
@pytest.mark.parametrize("text", PROGRAMS)
def test_a_translated_program_has_the_type_that_the_macro_gives(text, numbers):
    library = parse("import smooth return ()").operations
    program = Program(library, translated(lam_language.parse(text), numbers))
    function = type_terms.U(numbers.effect, type_terms.Arrow(numbers.type, F(numbers.type)))
    assert check(program, numbers.effect)[1] == F(function)


def test_a_program_knows_nothing_of_its_numbers():
    # The premise of theorems 8.2.3 and 8.3.2: it is well typed at a type variable, so no handler can be cheated.
    numbers = Numbers(Variable("X"), "_X")
    power = {"ap0_X": "Op0 * 1", "ap1_X": "Op1 * X", "ap2_X": "Op2 * (X * X)"}
    operations = {name: (parse_type(parameter), Variable("X")) for name, parameter in power.items()}
    operations["below_X"] = (parse_type("X * X"), parse_type("<true 1, false 1>"))
    for text in PROGRAMS:
        program = Program(operations, translated(lam_language.parse(text), numbers))
        function = type_terms.U(numbers.effect, type_terms.Arrow(numbers.type, F(numbers.type)))
        assert check(program, numbers.effect, frozenset({"X"}))[1] == F(function)


# Errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("return", "line 1, column 7: unexpected the end; expected \\("),
        ("x <- return 1.0\nreturn x", "line 2, column 1: unexpected 'return'"),
        ("foo[]!", "line 1, column 1: foo is not defined before this"),
        ("define f[X] = {return ()} f[]!", "f takes 1 parameters, not 0"),
        ("operation a : 1 -> 1 operation a : 1 -> R return ()", "line 1, column 22: a is declared twice"),
        ("case x of y -> return x", "a pattern of a pair, or branches"),
        ("return op[x, y]", "needs its arguments and a dot"),
        ("return op[x. x +]", "unexpected the end"),
        ("import nothing return ()", "there is no nothing to import"),
        ("define x[] = 1.0 handle return () with x[]", "x\\[\\] is not a handler"),
        ("operation read : 1 -> R return ()", "read is what programs do with the store"),
    ],
)
def test_an_ill_formed_program_gets_a_position(text, message):
    with pytest.raises(IllFormed, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("return x", "line 1, column 8: variable: x is not bound"),
        ("case 1.0 of (x, y) -> return x", "case of a pair: expected A \\* B, found R"),
        ("case () of {a x -> return x}", "case of a variant: expected a variant, found 1"),
        ("case inj[<a 1, b 1>] a () of {a x -> return x}", "case of a variant: expected the branches a, b, found a"),
        ("case inj[<a 1, b R>] a () of {a x -> return x | b x -> return x}",
         "branches of case: expected F 1, found F R"),
        ("return (inj[<a 1>] b ())", "injection: <a 1> has no label b"),
        ("return (inj[<a 1>] a 2.0)", "injection: expected 1, found R"),
        ("return (inj[<a 1, a R>] a ())", "kind of a variant: a label occurs twice"),
        ("x <- (\\(y : R). return y); return x", "sequencing: expected F A before `;`"),
        ("(return 1.0) 2.0", "application: expected A -> C, found F"),
        ("(\\(x : R). return x) ()", "argument of an application: expected R, found 1"),
        ("prj 1 return 1.0", "projection 1: expected C & D"),
        ("1.0!", "force: expected U\\[E\\] C, found R"),
        ("eval1 (op[x, y. x], 1.0)", "parameter of eval1: expected Op1 \\* R, found Op2 \\* R"),
        ("foo 1.0", "operation: foo is not declared"),
        ("import smooth return eval[R]", "value: eval\\[R\\] is none"),
        ("operation a : 1 -> R a ()", "operation: a is not of the effect \\[\\] here"),
        ("operation a : 1 -> R {[a] a ()}!", "force: expected a thunk of the effect \\[\\] here, found U\\[a\\]"),
        ("operation a : 1 -> R handle return 1 with {return (x : R) -> return x}", "handled computation: expected"),
        ("operation a : 1 -> R handle a () with {return (x : R) -> return x | a p k -> k! ()}",
         "argument of an application: expected R, found 1"),
        ("operation a : 1 -> R handle a () with {return (x : R) -> return x | a p k -> return p}",
         "clause of a: expected F R, found F 1"),
        ("operation a : 1 -> R handle return 1.0 with {return (x : R) -> return x | b p k -> k! ()}",
         "clause of a handler: the operation b is not declared"),
        ("operation a : 1 -> R handle a () with {return (x : R) -> return x | a p k -> k! 1.0 | a p k -> k! 1.0}",
         "clause of a handler: a has two"),
        ("operation a : U[a] F R -> R return ()", "kind of an effect: the operation a is not declared \\(before this"),
        ("return {\\(x : Y). return x}", "kind of a type variable: Y is not declared"),
        ("operation a : 1 -> R  operation b : 1 -> R  handle handle b () with {return (x : R) -> return x | "
         "a p k -> k! 1.0} with {return (x : R) -> return x | b p k -> k! 1.0}",
         "operation: b is not of the effect \\[a\\] here"),
        ("read 1.0", "reading: expected Ref A, found R"),
        ("r <- ref 1.0; write (r, ())", "writing: expected R, found 1"),
        ("write 1.0", "writing: expected Ref A \\* A, found R"),
        ("rec (f : F R). return ()", "recursion: expected F R, found F 1"),
        ("operation a : 1 -> R  rec (f : F R). handle f! with {return (x : R) -> return x | a p k -> k! 1.0}",
         "force: expected a thunk of the effect \\[a\\] here"),
        # The rest after a shallow handler performs what it handled, and so needs another handler
        ("operation a : 1 -> R  shallow a () with {return (x : R) -> return x | a p k -> k! 1.0}",
         "force: expected a thunk of the effect \\[\\] here, found U\\[a\\]"),
    ],
)  # fmt: skip
def test_a_type_error_has_the_rule_and_the_term(text, message):
    with pytest.raises(IllTyped, match=message):
        check(parse(text))


def test_type_variables_and_free_variables_are_given_to_the_checker():
    program = parse("ap (op[a. a], x)")
    operations = {"ap": (parse_type("Op1 * X"), parse_type("X"))}
    checked = check(Program(operations, program.body), frozenset({"ap"}), frozenset({"X"}), {"x": parse_type("X")})
    assert str(checked[1]) == "F X"
    with pytest.raises(IllTyped, match="parameter of ap"):
        check(Program(operations, program.body), frozenset({"ap"}), frozenset({"X"}), {"x": R})


@pytest.mark.parametrize(
    ("text", "message"),
    [("operation a : 1 -> R a ()", "no handler is around the operation a"), ("x!", "no rule reduces x!"),
     ("(return 1.0) 2.0", "does not fit where it stands"), ("return x", None), ("eval1 (1.0, 2.0)", "no rule reduces"),
     ("operation a : 1 -> R handle a () with {return (x : R) -> return x}", "has no clause for a"),
     ("\\(x : R). return x", "returns no value")],
)  # fmt: skip
def test_ill_typed_programs_may_get_stuck(text, message):
    if message is None:
        assert str(evaluate(parse(text))) == "x"
        return
    with pytest.raises(Stuck, match=message):
        evaluate(parse(text))


def test_a_limit_of_steps_says_how_to_raise_it():
    with pytest.raises(TooManySteps, match="not finished after 2 steps; raise the limit with --steps"):
        evaluate(parse("x <- return 1.0; y <- return x; z <- return y; return z"), steps=2)


def test_stateful_reverse_mode_in_the_language():
    """Chapter 9 asks for a store in EFF, for stateful reverse mode: against differences, and over fractions."""
    text = (ROOT / "examples" / "papers" / "stateful.eff").read_text()

    def f(x, y):
        return x * y * np.sin(x * y) + x * y

    h = 1e-6
    wanted = ((f(2 + h, 4) - f(2 - h, 4)) / (2 * h), (f(2, 4 + h) - f(2, 4 - h)) / (2 * h))
    assert evaluate(check(parse(text))[0]) == pytest.approx(wanted, rel=1e-8)
    polynomial = text.replace("op[x. sin x]", "op[x. x * x]")  # (x y)^3 + x y
    found = evaluate(check(parse(polynomial))[0], reals=Fraction)
    assert found == (3 * 4 * 8**2 + 4, 3 * 2 * 8**2 + 2)


def test_a_recursion_that_does_not_end_meets_the_limit():
    program, _ = check(parse("rec (f : F R). f!"))
    with pytest.raises(TooManySteps):
        evaluate(program, steps=1000)
