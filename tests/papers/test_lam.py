"""The language of 003: its syntax, its types, and its translations against effgrad's own derivatives."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lam_costs import doubling, folding, steps

from effgrad import grad
from effgrad.papers import IllFormed, IllTyped, Stuck, TooManySteps
from effgrad.papers.lam import delta as d
from effgrad.papers.lam import evaluate, parse, parse_type, translations, typeof
from effgrad.papers.lam.folding import encode_deltas
from effgrad.papers.lam.nesting import as_source
from effgrad.papers.lam.primitives import CONSTANTS, Left, Right
from effgrad.papers.lam.terms import DELTA, Do, Lam, Literal, Monad, Op, Pair, Product, Pure, R, Real, Snd, Var, apply
from effgrad.papers.lam.translations import (
    TANGENT,
    forward,
    forward_derivative,
    monadic,
    reverse,
    reverse1,
    reverse2,
    reverse_derivative,
    translate,
    vectors,
)
from effgrad.papers.lam.types import dual, mapped, reverse_dual

# Programs of type R * R -> R, and the same in Python
PROGRAMS = {
    r"\(x, y). x * y + 2.0": lambda x, y: x * y + 2.0,
    r"\(x, y). let z = x * y in z * z - z / (y * y + 1.0)": lambda x, y: (x * y) ** 2 - x * y / (y * y + 1.0),
    r"\(x, y). sin x * exp (-y) + tanh (x - y)": lambda x, y: np.sin(x) * np.exp(-y) + np.tanh(x - y),
    r"\(x, y). if x < y then x * x else y * 3.0": lambda x, y: x * x if x < y else y * 3.0,
    r"\(x, y). let twice = \f. \z. f (f z) in twice (\z. z * z + y) x": lambda x, y: (x * x + y) ** 2 + y,
    r"\p. (\q. fst q * snd q) (snd p, fst p + 0.5)": lambda x, y: y * (x + 0.5),
    r"\(x, y). case (if 0.0 < x then inl x else inr (x, y)) of inl a -> a * y, inr b -> fst b - snd b":
        lambda x, y: x * y if x > 0 else x - y,
    r"\(x, y). let (c, s) = polar (x, y) in c * s + c": lambda x, y: x**2 * np.cos(y) * np.sin(y) + x * np.cos(y),
    r"\(x, y). fold ((\(a, b). a * b + x), (y, build (4, \i. real i + x)))":
        lambda x, y: (((y * x + x) * (1 + x) + x) * (2 + x) + x) * (3 + x) + x,
    r"\(x, y). atan2 (x, y) * real (size (build (2 +Z 3, \i. i *Z i)))": lambda x, y: np.arctan2(x, y) * 5.0,
    r"\(p : R * R). (\(f : R -> R). f (fst p)) (\(z : R). z * snd p)": lambda x, y: x * y,
    r"\(x, y). fused[R * R] (\(a, b). a * sin b) (x * x, y) * x": lambda x, y: x * x * np.sin(y) * x,
    r"\(x, y). log (x * x + 1.0) * sqrt (y * y + 1.0) + cos x": lambda x, y:
        np.log(x * x + 1.0) * np.sqrt(y * y + 1.0) + np.cos(x),
    r'\(x, y). let label = "unused" in x + y': lambda x, y: x + y,
}  # fmt: skip
POINTS = [(0.7, 1.9), (-1.3, 0.4)]
REVERSE = (reverse1, reverse2, reverse, reverse_derivative)


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("point", POINTS)
def test_every_translation_gives_the_derivative(text, point):
    program, f = parse(text), PROGRAMS[text]
    gx, gy = grad(f, argnums=(0, 1))(*point)
    assert evaluate(program, point) == pytest.approx(f(*point), rel=1e-13)
    expected = pytest.approx((1.5 * gx, 1.5 * gy), rel=1e-12, abs=1e-12)
    for wrapper in REVERSE:
        assert evaluate(wrapper(program), (point, 1.5)) == expected, wrapper.__name__
    for wrapper in (forward, forward_derivative):
        tangent = evaluate(wrapper(program), (point, (0.3, -2.0)))
        assert tangent == pytest.approx(0.3 * gx - 2.0 * gy, rel=1e-12, abs=1e-12), wrapper.__name__


@pytest.mark.parametrize("text", PROGRAMS)
def test_translated_programs_have_the_types_of_the_figures(text):
    program = parse(text)
    plane = Product(R, R)
    assert typeof(program) == parse_type("R * R -> R")
    assert typeof(translate(program, TANGENT)) == dual(typeof(program))
    assert typeof(translate(program, vectors(plane))) == mapped(typeof(program), Product(R, plane))
    assert typeof(translate(program, translations.DELTA)) == mapped(typeof(program), Product(R, DELTA))
    assert typeof(monadic(program)) == Monad(reverse_dual(typeof(program)))
    assert typeof(forward(program)) == typeof(forward_derivative(program)) == parse_type("(R * R) * (R * R) -> R")
    for wrapper in REVERSE:
        assert typeof(wrapper(program)) == parse_type("(R * R) * R -> R * R")


def test_over_fractions_the_derivative_is_exact():
    program = parse(r"\(x, y). let z = x * x * y in z * z / (y + 0.5)")
    x, y = Fraction(2, 3), Fraction(5, 7)
    expected = (4 * x**3 * y**2 / (y + Fraction(1, 2)),
                x**4 * (2 * y / (y + Fraction(1, 2)) - y**2 / (y + Fraction(1, 2)) ** 2))  # fmt: skip
    for wrapper in REVERSE:
        assert evaluate(wrapper(program), ((x, y), Fraction(1)), reals=Fraction) == expected


@pytest.mark.parametrize(
    ("text", "point", "tangent", "cotangent", "jvp", "vjp"),
    [
        # A vector, an integer that picks an element, and a pair.
        (r"\(v, (i, p)). (index (v, i) * fst p, snd p * snd p)", ([2.0, 5.0], (1, (3.0, 7.0))),
         ([1.0, 10.0], (1, (100.0, 1000.0))), (1.0, 0.5), (530.0, 14000.0), ([0, 3.0], (1, (5.0, 7.0)))),
        # A sum: the derivative has the shape that the argument has.
        (r"\s. case s of inl x -> x * x, inr p -> fst p * snd p", Left(3.0), Left(2.0), 1.0, 12.0, Left(6.0)),
        (r"\s. case s of inl x -> x * x, inr p -> fst p * snd p", Right((3.0, 4.0)), Right((1.0, 1.0)), 2.0, 7.0,
         Right((8.0, 6.0))),
        (r"\x. if x < 0.0 then inl x else inr (x, x * x)", 3.0, 1.0, Right((1.0, 2.0)), Right((1.0, 6.0)), 13.0),
        # Vectors out; a string, which no derivative touches.
        (r"\(x, n). build (n, \i. x * real i)", (3.0, 3), (1.0, 3), [1.0, 1.0, 1.0], [0.0, 1.0, 2.0], (3.0, 3)),
        (r"\(x, (t : String)). (t, x * x)", (3.0, "a"), (1.0, "a"), ("a", 1.0), ("a", 6.0), (6.0, "a")),
    ],
)  # fmt: skip
def test_any_first_order_source_and_target(text, point, tangent, cotangent, jvp, vjp):
    program = parse(text)
    assert evaluate(forward_derivative(program), (point, tangent)) == jvp
    assert evaluate(reverse_derivative(program), (point, cotangent)) == vjp


# Figure 11


def deltas(depth):
    """Delta terms over the names 1 to 3, and 4 to 6 where a `Let` binds them."""
    if depth == 0:
        return st.one_of(st.just(d.Zero()), st.builds(d.Var, st.integers(1, 6)))
    below = deltas(depth - 1)
    return st.one_of(
        below,
        st.builds(d.Scale, st.integers(-3, 3), below),
        st.builds(d.Add, below, below),
        st.builds(d.Let, st.integers(4, 6), below, below),
    )


def figure_11(x, delta, um):
    match delta:
        case d.Zero():
            return um
        case d.Scale(y, u):
            return figure_11(x * y, u, um)
        case d.Add(u1, u2):
            return figure_11(x, u2, figure_11(x, u1, um))
        case d.Var(uid):
            return {**um, uid: um.get(uid, 0) + x}
        case d.Let(uid, u1, u2):
            um2 = figure_11(x, u2, um)
            if uid not in um2:
                return um2
            return figure_11(um2[uid], u1, {key: value for key, value in um2.items() if key != uid})


@given(deltas(5), st.integers(-3, 3), st.dictionaries(st.integers(1, 3), st.integers(-3, 3)))
def test_eval_is_that_of_figure_11(delta, factor, given_map):
    assert d.evaluate(factor, delta, given_map, lambda: None) == figure_11(factor, delta, given_map)


# Cost, in reduction steps


def test_sharing_is_lost_by_the_second_translation_and_kept_by_the_last():
    sizes = range(2, 13)
    for wrapper in (reverse1, reverse):
        costs = [steps(wrapper(doubling(n)), (1.0, 1.0)) for n in sizes]
        assert len({after - before for before, after in zip(costs, costs[1:], strict=False)}) == 1  # a straight line
    costs = [steps(reverse2(doubling(n)), (1.0, 1.0)) for n in sizes]
    increments = [after - before for before, after in zip(costs, costs[1:], strict=False)]
    assert all(1.7 < after / before < 2.1 for before, after in zip(increments[4:], increments[5:], strict=False))
    assert evaluate(reverse(doubling(12)), (1.0, 1.0)) == evaluate(reverse2(doubling(12)), (1.0, 1.0)) == 4096


def test_the_last_translation_costs_a_constant_factor_however_long_the_program():
    program = r"\(x, n). fold ((\(a, b). a * sin x + b), (x, build (n, \i. real i)))"
    primal, derivative = parse(program), reverse_derivative(parse(program))
    ratios = [steps(derivative, ((0.5, n), 1.0)) / steps(primal, (0.5, n)) for n in (10, 100, 1000)]
    assert ratios[0] * 1.05 > ratios[1] > 0.9 * ratios[2]
    assert ratios[2] < 12


def test_the_first_translation_costs_a_times_as_much():
    def ratio(wrapper, a):
        program, point = folding(a)
        return steps(wrapper(program), (point, 1.0)) / steps(program, point)

    first = {a: ratio(reverse1, a) for a in (10, 20, 40)}
    assert 1.9 < (first[40] - first[20]) / (first[20] - first[10]) < 2.3
    assert first[40] > 2.5 * first[10]
    assert ratio(reverse, 40) < 1.3 * ratio(reverse, 10)


def test_a_fused_function_leaves_one_delta_term():
    def bindings(text):
        state = d.State(2)
        function = evaluate(monadic(parse(text)))(state)
        assert function((0.3, d.Var(1)))(state)[0] == pytest.approx(np.sin(np.cos(np.sin(0.3))))
        return len(state.bindings)

    assert bindings(r"\x. sin (cos (sin x))") == 3
    assert bindings(r"\x. fused[R] (\y. sin (cos (sin y))) x") == 1


# Errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\\x. x +", r"line 1, column 8: unexpected the end; expected \(, -, "),
        ("let x = 1.0\n  in (x", r"line 2, column 8: unexpected the end"),
        ("let x = in 2", "line 1, column 9: unexpected 'in'"),
        ("1.0 $ 2.0", r"line 1, column 5: unexpected '\$'"),
    ],
)
def test_an_ill_formed_program_gets_a_position(text, message):
    with pytest.raises(IllFormed, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.0 + 2", "line 1, column 1: argument of an application: expected R \\* R, found R \\* Z, in \\(1.0, 2\\)"),
        ("\\x.\n  y", "line 2, column 3: variable: y is not bound"),
        ("(1.0, 2.0) 3.0", "function of an application: expected .* found R \\* R, in \\(1.0, 2.0\\) 3.0"),
        ("\\x. x x", "argument of an application"),
        ("fst 1.0", "projection: expected"),
        ("case 1.0 of inl x -> x, inr y -> y", "case: expected"),
        ("case inl 1.0 of inl x -> x, inr y -> 2", "branches of case: expected R, found Z"),
        ("wrong[R] 1.0", "polytypic operation: there is no wrong"),
        ("do {x <- 1.0; pure x}", "do: expected M"),
        ("\\(x : Z). x + 1.0", "expected R \\* R, found Z \\* R"),
    ],
)
def test_a_type_error_has_the_rule_and_the_term(text, message):
    with pytest.raises(IllTyped, match=message):
        typeof(parse(text))


def test_programs_that_no_wrapper_fits_are_refused():
    with pytest.raises(IllTyped, match="R -> R \\* R is not R\\^a -> R; see forward_derivative"):
        reverse(parse("\\x. (x + 1.0, x)"))
    with pytest.raises(IllTyped, match="not a function between first-order types"):
        reverse_derivative(parse("\\x. \\y. x + y"))
    with pytest.raises(IllTyped, match="occurs only in translated programs"):
        monadic(parse("pure 1.0"))
    with pytest.raises(IllTyped, match="deltaLet occurs only in translated programs"):
        translate(parse("\\x. deltaLet x"), TANGENT)
    with pytest.raises(IllTyped, match="must be a closed function"):
        monadic(parse("\\y. fused[R] (\\x. x + y) y"))


def test_a_limit_of_steps_says_how_to_raise_it():
    program = parse(r"fold ((\(a, b). a + b), (0.0, build (1000, \i. real i)))")
    with pytest.raises(TooManySteps, match="not finished after 100 steps; raise the limit with --steps"):
        evaluate(program, steps=100)
    assert evaluate(program) == 499500


def test_what_types_do_not_exclude_is_an_error_too():
    with pytest.raises(Stuck, match="index 5 of a vector of 2"):
        evaluate(parse("index (build (2, \\i. i), 5)"))
    with pytest.raises(Stuck, match="one shape"):
        evaluate(forward_derivative(parse("\\(s : R + R). 1.0")), (Left(1.0), Right(1.0)))


SHOWN = [
    *PROGRAMS,
    *[f"\\p. {name} p" for name in CONSTANTS if name.isalpha()],
    "do {x <- pure 1.0; y <- pure x; pure (y, -2.5)}",
    "-(1.0 - (2.0 - 3.0)) / 7/3r",
    "(\\x. x) (\\(f : (R -> R) * (Z + R * M Z)). f)",
    "f (g x) (-1.0) (x, (y, z), w)",
]


@pytest.mark.parametrize("text", SHOWN)
def test_a_term_is_shown_in_the_syntax_that_is_read(text):
    shown = str(parse(text)).replace("_", "own")  # no program can write the names that patterns make
    assert str(parse(shown)) == shown


# Derivatives of derivatives

CUBIC = r"\(x, y). let p = x * y in (\q. q * p + x * x * y) (x + y)"


def cubic(x, y):
    """The value, gradient and Hessian of CUBIC: (x + y) x y + x^2 y = 2 x^2 y + x y^2."""
    return (
        2 * x * x * y + x * y * y,
        (4 * x * y + y * y, 2 * x * x + 2 * x * y),
        ((4 * y, 4 * x + 2 * y), (4 * x + 2 * y, 2 * x)),
    )


def test_second_derivatives_are_exact():
    """Each mode inside forward and delta reverse mode, over fractions."""
    program, one, zero = parse(CUBIC), Fraction(1), Fraction(0)
    x, y, u, v = Fraction(3), Fraction(-5, 7), Fraction(2), Fraction(1, 3)
    value, gradient, hessian = cubic(x, y)
    product = tuple(row[0] * u + row[1] * v for row in hessian)
    assert evaluate(program, (x, y), reals=Fraction) == value
    for inner in (forward, forward_derivative):
        along = inner(program)  # (x, u) -> gradient . u
        again = evaluate(forward_derivative(along), (((x, y), (u, v)), ((u, v), (zero, zero))), reals=Fraction)
        assert again == u * product[0] + v * product[1]
        back = evaluate(reverse_derivative(along), (((x, y), (u, v)), one), reals=Fraction)
        assert back == (product, gradient)
    for inner in REVERSE:
        backward = inner(program)  # (x, w) -> w gradient
        assert evaluate(forward_derivative(backward), (((x, y), one), ((u, v), zero)), reals=Fraction) == product
        back = evaluate(reverse_derivative(backward), (((x, y), one), (u, v)), reals=Fraction)
        assert back == (product, u * gradient[0] + v * gradient[1])


def test_third_derivatives_are_exact():
    thrice = parse(r"\x. x * x * x * x")
    for _ in range(3):
        thrice = forward_derivative(thrice)
    x = Fraction(5)
    first = (x, Fraction(1))
    second = (first, (Fraction(1), Fraction(0)))
    zeros = ((Fraction(0), Fraction(0)), (Fraction(0), Fraction(0)))
    point = (second, ((Fraction(1), Fraction(0)), zeros[0]))
    assert evaluate(thrice, point, reals=Fraction) == 24 * x


def test_reverse_mode_three_times_over_is_exact():
    """(x, w) -> w f', then (x, w, u) -> (u w f'', u f'), then the derivative of its first part: u w f'''."""
    once = reverse_derivative(parse(r"\x. x * x * x * x"))
    thrice = reverse_derivative(reverse_derivative(once))
    x, one, zero = Fraction(5), Fraction(1), Fraction(0)
    found = evaluate(thrice, (((x, one), one), (one, zero)), reals=Fraction)
    assert found == ((24 * x, 12 * x**2), 12 * x**2)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("inner", [forward, forward_derivative, *REVERSE], ids=lambda wrapper: wrapper.__name__)
def test_derivatives_of_every_program_are_programs(text, inner):
    """Against differences of the inner derivative, which is evaluated without a second translation."""
    derivative = inner(parse(text))
    point, u, h = (0.7, 1.9), (0.3, -2.0), 1e-6
    beside = 1.0 if inner in REVERSE else (1.1, 0.4)

    def at(t):
        found = evaluate(derivative, ((point[0] + t * u[0], point[1] + t * u[1]), beside))
        return np.array(found)

    wanted = (at(h) - at(-h)) / (2 * h)
    still = 0.0 if inner in REVERSE else (0.0, 0.0)
    found = evaluate(forward_derivative(derivative), ((point, beside), (u, still)))
    assert np.array(found) == pytest.approx(wanted, rel=1e-7, abs=1e-7)
    weights = np.array([0.6, -1.7]) if inner in REVERSE else np.array(1.0)
    back = evaluate(reverse_derivative(derivative), ((point, beside), (0.6, -1.7) if inner in REVERSE else 1.0))
    assert back[0][0] * u[0] + back[0][1] * u[1] == pytest.approx(np.sum(weights * wanted), rel=1e-7, abs=1e-7)


def test_the_names_of_a_translation_are_not_captured_by_the_next():
    """In monadic form the second part of a pair is computed under the name of the first, `_x`, which is in use."""
    program = parse(r"\x. (sin x, (cos x, x * x))")
    twice = evaluate(reverse_derivative(forward_derivative(program)), ((0.7, 1.0), (1.0, (1.0, 1.0))))
    assert twice[0] == pytest.approx(-np.sin(0.7) - np.cos(0.7) + 2.0)


def test_sums_and_arrays_have_second_derivatives():
    program = parse(r"""\(s : (R + R * R) * Vector R).
        let v = snd s in case fst s of inl a -> a * index (v, 0) * a, inr b -> fst b""")
    x, zero = (Left(3.0), [5.0]), (Left(0.0), [0.0])
    along, direction = (Left(1.0), [0.0]), (Left(1.0), [2.0])
    once = forward_derivative(program)
    assert evaluate(once, (x, along)) == 2 * 3.0 * 5.0
    assert evaluate(forward_derivative(once), ((x, along), (direction, zero))) == 2 * 5.0 + 2 * 3.0 * 2.0
    back, _ = evaluate(reverse_derivative(once), ((x, along), 1.0))
    assert back == (Left(10.0), [6.0])
    gradient = reverse_derivative(program)
    assert evaluate(forward_derivative(gradient), ((x, 1.0), (along, 0.0))) == (Left(10.0), [6.0])
    assert evaluate(reverse_derivative(gradient), ((x, 1.0), along)) == ((Left(10.0), [6.0]), 2 * 3.0 * 5.0)


# Delta terms as functions


def computation(delta, names):
    """A term that makes a delta term, as the translations do: what a `Let` binds, by `deltaLet`."""
    match delta:
        case d.Zero():
            return Pure(Op("Zero"))
        case d.Var(name):
            return Pure(apply("Var", names.get(name, Literal(name))))
        case d.Scale(factor, inner):
            return Do("d", computation(inner, names), Pure(apply("Scale", Real(factor), Var("d"))))
        case d.Add(left, right):
            both = Pure(apply("Add", Var("d"), Var("e")))
            return Do("d", computation(left, names), Do("e", computation(right, names), both))
        case d.Let(name, bound, body):
            u = Var(f"u{len(names)}")
            inside = Do(u.name, apply("deltaLet", Var("d")), computation(body, {**names, name: u}))
            return Do("d", computation(bound, names), inside)


@given(deltas(5), st.integers(-3, 3), st.dictionaries(st.integers(1, 3), st.integers(-3, 3)))
def test_a_folded_delta_term_means_what_figure_11_says(delta, factor, before):
    result = Do("d", computation(delta, {}), Pure(Pair(Real(0), Var("d"))))
    run = Snd(apply("runDelta", Literal(10), result))
    term = Lam("um", apply("eval", Real(factor), run, Var("um")))
    expected = figure_11(factor, evaluate(run), before)
    assert evaluate(encode_deltas(term), before, reals=int) == evaluate(term, before, reals=int) == expected


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("wrapper", REVERSE, ids=lambda wrapper: wrapper.__name__)
def test_a_derivative_as_a_source_program_is_the_same_function(wrapper, text):
    derivative = wrapper(parse(text))
    source = as_source(derivative)
    assert typeof(source) == typeof(derivative)
    shown = str(source)
    assert not re.search(r"\b(pure|do|M|Delta|Scale|Add|Zero|deltaLet|runDelta|eval|foldM|sequence)\b", shown)
    assert "[" not in shown.replace("[]", "").replace("fused[R * R]", "")
    for point in POINTS:
        assert evaluate(source, (point, 1.5)) == pytest.approx(evaluate(derivative, (point, 1.5)), rel=1e-14)


def test_a_derivative_of_a_derivative_costs_a_constant_factor():
    program = parse(r"\(x, n). fold ((\(a, b). a * sin x + b), (x, build (n, \i. real i)))")
    gradient = reverse_derivative(program)
    twice = reverse_derivative(gradient)
    ratios = [steps(twice, (((0.5, n), 1.0), (1.0, n))) / steps(program, (0.5, n)) for n in (10, 40, 160)]
    assert ratios[0] * 1.02 > ratios[1] > 0.95 * ratios[2]
    assert ratios[2] < 115


def test_a_linked_program_has_second_derivatives():
    derivative = translations.linked(parse(r"\x. twice square x"), library())  # 4 x^3
    x = Fraction(3)
    assert evaluate(reverse_derivative(derivative), ((x, 1), 1), reals=Fraction) == (12 * x**2, 4 * x**3)


def test_maps():
    program = parse(r"\x. let m = insert ((2, x * x), insert ((1, x), emptyMap)) in find (2, delete (1, m))")
    assert typeof(program) == parse_type("R -> Z + R") and evaluate(program, 3.0) == Right(9.0)
    assert evaluate(parse("find (1, delete (1, insert ((1, 2.0), emptyMap)))")) == Left(0)
    assert evaluate(forward_derivative(program), (3.0, 1.0)) == Right(6.0)
    assert evaluate(reverse_derivative(program), (3.0, Right(1.0))) == 6.0
    assert str(parse_type("Map (R * Z) -> Map R")) == "Map (R * Z) -> Map R"


def test_computations_and_delta_terms_are_no_ends_of_a_program():
    for text in (r"\x. pure (x * 2.0)", r"\x. Scale (x, Zero)", r"\x. insert ((1, x), emptyMap)"):
        with pytest.raises(IllTyped, match="is not a function between first-order types"):
            reverse_derivative(parse(text))


# Separate compilation

LIBRARY = {
    "square": r"\x. x * x",
    "hypot": r"\(a, b). sqrt (square a + square b)",
    "twice": r"\(f : R -> R). \x. f (f x)",
}


def library():
    made = []
    for name, text in LIBRARY.items():
        made.append(translations.compiled(name, parse(text), made))
    return made


def test_a_library_is_differentiated_without_its_callers():
    """Two programs with other inputs use one translated library; section 8.1."""
    for text, f, point in (
        (r"\x. twice square x", lambda x: x**4, (1.5,)),
        (r"\(x, y). hypot (x, square y) * x", lambda x, y: np.sqrt(x * x + y**4) * x, (0.7, 1.9)),
    ):
        derivative = translations.linked(parse(text), library())
        expected = grad(f, argnums=tuple(range(len(point))))(*point)
        found = evaluate(derivative, (point if len(point) > 1 else point[0], 1.0))
        assert np.ravel(found) == pytest.approx(np.ravel(expected), rel=1e-12)


def test_the_type_of_a_library_says_nothing_of_its_callers():
    for part in library():
        context = {other.name: reverse_dual(other.type) for other in library()}
        assert typeof(part.derivative, context) == Monad(reverse_dual(part.type))
    # By vectors, figure 5, the derivative of a library mentions the type of the whole program's input.
    square = parse(LIBRARY["square"])
    assert typeof(translate(square, vectors(R))) != typeof(translate(square, vectors(Product(R, R))))


def test_linking_gives_what_the_whole_program_does():
    """The derivative of `let f = e in main` is that of main after that of e, to the letter."""
    main = parse(r"\x. square (sin x)")
    whole = parse(rf"\x. let square = {LIBRARY['square']} in square (sin x)")
    first = library()[:1]
    linked = translations.linked(main, first)
    assert str(first[0].derivative) in str(linked)
    assert evaluate(linked, (0.4, 1.0)) == evaluate(reverse_derivative(whole), (0.4, 1.0))
    assert monadic(parse(f"let square = {LIBRARY['square']} in square")) == translations.Do(
        "square", first[0].derivative, monadic(translations.Var("square"))
    )


def test_a_library_may_be_kept_as_text():
    (square,) = [part for part in library() if part.name == "square"]
    again = square._replace(derivative=parse(re.sub(r"\b_(\w)", r"own\1", str(square.derivative))))
    derivative = translations.linked(parse(r"\x. square x * x"), [again])
    assert evaluate(derivative, (3.0, 1.0)) == 27.0


# Array literals


def test_array_literals():
    program = parse(r"\(x, y). let v = [x, y * y, 2.0] in fold ((\(a, b). a * b), (1.0, v)) + index ([x, y], 1)")
    assert typeof(program) == parse_type("R * R -> R")
    x, y = 0.7, 1.9
    expected = pytest.approx((2 * y * y, 4 * x * y + 1.0), rel=1e-12)
    for wrapper in REVERSE:
        assert evaluate(wrapper(program), ((x, y), 1.0)) == expected
    assert evaluate(forward(program), ((x, y), (0.0, 1.0))) == pytest.approx(4 * x * y + 1.0, rel=1e-12)
    assert evaluate(parse("[1, 2, 3]")) == [1, 2, 3] and evaluate(parse("size []")) == 0
    assert str(parse("[[1.0], [], [2.0, 3.0]]")) == "[[1.0], [], [2.0, 3.0]]"
    with pytest.raises(IllTyped):
        typeof(parse("[1, 2.0]"))
