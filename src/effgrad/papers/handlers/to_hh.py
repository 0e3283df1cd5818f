"""The translation of a program to a term of HH (de Vilhena and Pottier 2023).

The operation a of effect 0 is the effect `E0a`. Its answer is `Ok` of a value that the library returns, or `Err` of an
error that it raises. An exception is an effect that is never resumed, and `try` is its handler. A mask wraps the
effects that it lets pass in `M0`, and the next handler of effect 0 unwraps them. A shallow handler has a reference that
says whether it has handled an operation already.
"""

from collections.abc import Callable
from dataclasses import replace

from effgrad.papers.handlers import terms as t
from effgrad.papers.hh.semantics import Machine
from effgrad.papers.hh.terms import UNIT, Branch, Handle, Let, Literal, Made, Match, Name, Strict, Term, Var
from effgrad.papers.syntax import Stuck
from effgrad.vocabulary import Object

NOTHING = Strict("row", ())


def made(constructor: str, argument: Term = NOTHING) -> Term:
    return Strict(constructor, (argument,))


def perform(effect: Term) -> Term:
    return Strict("perform", (effect,))


def resume(k: str, answer: Term) -> Term:
    return Strict("continue", (Var(k), answer))


def raised(error: Term) -> Term:
    return perform(made("Exc", error))


def then(first: Term, rest: Term) -> Term:
    return Let(Name("_"), first, rest)


def caught(term: Term) -> Term:
    """Return a term whose value is `Ok` of the value of `term`, or `Err` of the number that it raises."""
    error = Branch(Made("Exc", Name("e_")), made("Err", Var("e_")), "k_")
    return Handle(made("Ok", term), (Branch(Name("v_"), Var("v_")), error))


def either(answer: Term, value: str, then_: Term, error: str, otherwise: Term) -> Term:
    return Match(answer, (Branch(Made("Ok", Name(value)), then_), Branch(Made("Err", Name(error)), otherwise)))


def passed(answer: Term) -> Term:
    """Return a term for the value of an answer, which raises the error if the answer is one."""
    return either(answer, "v_", Var("v_"), "e_", raised(Var("e_")))


def term_of(term: t.Term) -> Term:
    match term:
        case t.Num(value):
            return Literal(value)
        case t.Var(name):
            return Var(name)
        case t.Plus(left, right):
            return Strict("+", (term_of(left), term_of(right)))
        case t.Let(name, bound, body):
            return Let(Name(name), term_of(bound), term_of(body))
        case t.Out(argument):
            return then(Strict("print", (term_of(argument),)), Literal(0))
        case t.Perform(effect, operation, argument):
            return passed(perform(made(f"E{effect}{operation}", term_of(argument))))
        case t.Raise(argument):
            return raised(term_of(argument))
        case t.Try(body, name, rescue):
            return either(caught(term_of(body)), "v_", Var("v_"), name, term_of(rescue))
        case t.Mask(effect, body):
            return _masked(effect, term_of(body))
        case t.Resume(k, argument):
            return resume(k, made("Ok", term_of(argument)))
        case t.Throw(k, argument):
            return resume(k, made("Err", term_of(argument)))
        case t.Keep(k, slot):
            return then(Strict(":=", (Var(f"slot{slot}"), made("Some", Var(k)))), Literal(0))
        case t.Move(slot, argument, otherwise):
            name = f"slot{slot}"
            taken = then(Strict(":=", (Var(name), made("None"))), resume("m_", made("Ok", term_of(argument))))
            kept = Branch(Made("Some", Name("m_")), taken)
            return Match(Strict("!", (Var(name),)), (kept, Branch(Made("None", UNIT), term_of(otherwise))))
        case t.Handle():
            return _handled(term)
    raise AssertionError(term)


def _masked(effect: int, body: Term) -> Term:
    names = [*[f"E{effect}{operation}" for operation in t.OPERATIONS], f"M{effect}"]
    clauses = [
        Branch(Made(name, Name("y_")), resume("k_", perform(made(f"M{effect}", made(name, Var("y_"))))), "k_")
        for name in names
    ]
    return Handle(body, (Branch(Name("v_"), Var("v_")), *clauses))


def _handled(term: t.Handle) -> Term:
    spent = f"spent{term.clauses[0].name}"
    forwarded: Callable[[str, Term], Term] = lambda name, meaning: meaning  # noqa: E731
    returns = Var("v_") if term.returns is None else term_of(term.returns)
    if term.shallow:

        def forwarded(name: str, meaning: Term) -> Term:
            forward = resume("k_", perform(made(name, Var("y_")))) if name else Var("v_")
            branches = (Branch(Made("True", UNIT), forward), Branch(Made("False", UNIT), meaning))
            return Match(Strict("!", (Var(spent),)), branches)

        returns = forwarded("", returns)
    value = Branch(Name("v_"), returns if term.returns is None else Let(Name(term.value), Var("v_"), returns))
    effect = f"M{term.effect}"
    clauses: list[Object] = [
        Branch(Made(effect, Name("y_")), forwarded(effect, resume("k_", perform(Var("y_")))), "k_")
    ]
    for clause in term.clauses:
        name = f"E{term.effect}{clause.operation}"
        meaning: Term = Let(Name(clause.name), Var("y_"), _clause(clause))
        if term.shallow:
            meaning = then(Strict(":=", (Var(spent), made("True"))), meaning)
        clauses.append(Branch(Made(name, Name("y_")), forwarded(name, meaning), "k_"))
    whole = Handle(term_of(term.body), (value, *clauses))
    return Let(Name(spent), Strict("ref", (made("False"),)), whole) if term.shallow else whole


def _clause(clause: t.Clause) -> Term:
    """Translate a clause. Its continuation `k_` is also bound to a unique name, since inner clauses bind `k_` again."""
    k = f"c{clause.name}"
    body = term_of(clause.body)
    match clause.kind:
        case "tail":
            meaning = resume(k, caught(body))
        case "final":
            meaning = body
        case "control":
            meaning = Let(Name(clause.k), Var(k), body)
        case _:
            meaning = _deferring(clause, k, body)
    return Let(Name(k), Var("k_"), meaning)


def _deferring(clause: t.Clause, k: str, body: Term) -> Term:
    assert clause.after is not None
    resuming: t.Term = t.Resume(k, t.Var("y1_"))
    if clause.around is not None:
        resuming = replace(clause.around, body=resuming)
    rest, after, result = term_of(resuming), term_of(clause.after), clause.result or "r_"
    if clause.kind == "around":
        after = then(after, Var("r_"))
    if clause.rescue is None:
        meaning: Term = Let(Name(result), rest, after)
    else:
        rescue = term_of(clause.rescue)
        if clause.kind == "around":  # after the rescue, the error is raised again
            rescue = then(rescue, raised(Var(clause.error)))
        meaning = either(caught(rest), result, after, clause.error, rescue)
    # An error before the `yield` is raised where the operation was performed, and `after` and `rescue` do not run.
    return either(caught(body), "y1_", meaning, "e1_", resume(k, made("Err", Var("e1_"))))


def run(term: t.Term, steps: int) -> tuple[str, int | None, list[int] | None]:
    """Run a program, and return how it ends, its value, and the numbers that it wrote."""
    whole = caught(term_of(term))
    for slot in range(t.SLOTS):
        whole = Let(Name(f"slot{slot}"), Strict("ref", (made("None"),)), whole)
    machine = Machine(whole)
    try:
        while machine.frames or machine.term is not None:
            machine.step()
            if machine.steps > steps:
                return "too long", None, None
    except Stuck as stuck:
        if "no handler catches" in str(stuck):
            return "unhandled", None, machine.printed
        if "second time" in str(stuck):
            return "resumed twice", None, machine.printed
        raise
    return ("value" if machine.value.constructor == "Ok" else "error"), machine.value.argument, machine.printed
