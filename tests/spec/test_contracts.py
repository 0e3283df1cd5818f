"""Contracts hold for every mode, and every broken copy of a mode is caught, by the contracts or by the specification.

A mutant is a mode with one piece of its source replaced. The table says what is wrong with it and who catches it.
"""

import importlib
import inspect
import operator
import pathlib
import sys
import types
from dataclasses import dataclass

import numpy as np
import pytest
from test_spec import PROGRAMS, denotation

import effgrad
from effgrad import checkpoint, grad, hessian, jacobian, jvp, modes, program, second_order, vjp
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth
from effgrad.effects import Handler, ResumedTwice, clauses, control, handle, handler
from effgrad.fast import REVERSE
from effgrad.program.user_code import user_code
from effgrad.spec import (
    MODES,
    ContractBroken,
    Counterexample,
    Dictionary,
    Number,
    X,
    contracts,
    diff,
    opaque,
    represents,
)
from effgrad.spec.semirings import FLOATS, INTEGERS


def scalars(x):
    y = x * x
    for _ in range(3):
        y = y * y + x * y
    return y * x


def arrays(x):
    a = np.zeros(4)
    for i in range(3):
        a[i] = np.sin(x[i]) * x[i + 1]
    a[1:] += x[1:] ** 2
    return np.sum(np.maximum(a * a, x) * np.cumsum(a)) + np.linalg.norm(np.sort(x)) + np.sum(x[::2] @ x[1::2])


def marked(x):
    def part(y):
        z = np.sin(y) * x
        return z * 0.5, z + y, np.cos(y)

    first, second, _ = checkpoint(part, x)
    third, *_ = checkpoint(lambda: checkpoint(part, first * second))
    return np.sum(third * second)


def confusing(mode):
    """x times the derivative of y -> x + y, which is 1: a mode that mixes its levels up says otherwise."""
    return lambda d, x: d.mul(x, diff(lambda inner, y: inner.add(x, y), mode)(d, d.one))


POINT = np.array([0.3, 0.5, -0.2, 0.9])  # no tie of the maximum, where a second derivative is NaN


@pytest.mark.parametrize("mode", REVERSE)
@pytest.mark.parametrize("f", [arrays, marked])
def test_the_reverse_modes_keep_their_contracts(mode, f):
    expected = grad(f, mode=mode)(POINT)
    with contracts():
        np.testing.assert_allclose(grad(f, mode=mode)(POINT), expected, rtol=1e-12)
        value, pull = vjp(f, POINT)
        for _ in range(2):
            np.testing.assert_allclose(pull(1.0)[0], expected, rtol=1e-12)


def test_the_other_modes_and_nested_derivatives_keep_their_contracts():
    with contracts():
        for f in (arrays, marked):
            jvp(f, (POINT,), (POINT,))
            second_order(f, POINT, POINT)
            np.testing.assert_allclose(hessian(f)(POINT), hessian(f)(POINT).T, rtol=1e-9, atol=1e-12)
        jacobian(lambda x: np.sin(x) * checkpoint(lambda: x**2))(POINT)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mode", MODES)
def test_programs_of_the_specification_keep_the_contracts(mode):
    with contracts():
        for e in PROGRAMS.values():
            represents(diff(e, mode), denotation(e).derivative(), [INTEGERS, FLOATS])
        if mode != "stack":  # whose values mean nothing to another dictionary
            represents(diff(confusing(mode), mode), X.derivative(), [INTEGERS, FLOATS])


@dataclass(frozen=True)
class Mutant:
    """What is wrong, in which mode, the text and what stands there instead, who catches it, and where if not there."""

    name: str
    file: str
    text: str
    instead: str
    caught: str
    module: str | None = None

    def __str__(self):
        return f"{self.file}: {self.name}"


CONTRACTS, REPRESENTS = "contracts", "represents"
RANGE = "range(len(entries) - 1, first - 1, -1)"
NAMES = "range(len(self.entries) - 1, first - 1, -1)"
OWNS = "owned_by(a, self)"
YIELD = "yield self.value(self, operation.result, cell)  # the rest of the program runs here\n"
PASS = """        if cell.cotangent is not None:
            for target, part in operation.pull(cell.cotangent):
                target.accumulate(part)
"""
MODE, BACKWARD, WALK = "effgrad.modes.mode", "effgrad.modes.backward", "effgrad.modes.walk"
MUTANTS = [
    Mutant("dropped accumulation", "tape", "cotangents.accumulate(collected, source, part)\n",
           "collected[source] = part\n", CONTRACTS),
    Mutant("first to last", "tape", NAMES, "range(first, len(self.entries))", CONTRACTS),
    Mutant("last operation forgotten", "tape", NAMES, "range(len(self.entries) - 2, first - 1, -1)", CONTRACTS),
    Mutant("first operations forgotten", "tape", NAMES, "range(len(self.entries) - 1, first + 4, -1)", CONTRACTS),
    Mutant("one name for two values", "tape", "name = len(self.entries)", "name = max(0, len(self.entries) - 1)",
           CONTRACTS),
    Mutant("confused perturbation", "tape", "if isinstance(arg, Tracer) and arg.owner is self",
           "if isinstance(arg, Tracer)", REPRESENTS),
    Mutant("only the first argument", "tape", "in zip(names, pulls, primals):",
           "in zip(names[:1], pulls, primals):", CONTRACTS),
    Mutant("floats: dropped accumulation", "tape", "collected[source] = part if before is None else before + part",
           "collected[source] = part", REPRESENTS),
    Mutant("floats: partials swapped", "tape", "((x.shadow, {0}), (y.shadow, {1}))",
           "((x.shadow, {1}), (y.shadow, {0}))", REPRESENTS),
    Mutant("checkpoint: results seeded one off", "tape", "in zip(rerun.names, parts, given, strict=True)",
           "in zip(rerun.names, parts[1:], given)", CONTRACTS, WALK),
    Mutant("checkpoint: dropped if one result is unused", "tape", "if all(cotangent is None",
           "if any(cotangent is None", CONTRACTS, WALK),
    Mutant("dropped accumulation", "taped", "collected[target] = cotangents.add(collected[target], part)",
           "collected[target] = part", CONTRACTS, WALK),
    Mutant("first to last", "taped", RANGE, "range(first, len(entries))", CONTRACTS, WALK),
    Mutant("last operation forgotten", "taped", RANGE, "range(len(entries) - 2, first - 1, -1)", CONTRACTS, WALK),
    Mutant("one name for two values", "taped", "return len(self.entries) - 1", "return max(0, len(self.entries) - 2)",
           CONTRACTS, WALK),
    Mutant("confused perturbation", "taped", OWNS, "isinstance(a, Tracer)", REPRESENTS, MODE),
    Mutant("only the first argument", "taped", "in enumerate(shadows) if", "in [*enumerate(shadows)][:1] if",
           CONTRACTS, MODE),
    Mutant("dropped accumulation", "reverse", "cotangents.add(self.cotangent, part)", "part", CONTRACTS),
    Mutant("aliased cell", "reverse", "cell = Cell()", "cell = next(filter(None, operation.shadows), None) or Cell()",
           CONTRACTS),
    Mutant("reverse pass before the rest", "reverse", YIELD + PASS,
           PASS.lstrip() + "        yield self.value(self, operation.result, cell)\n", CONTRACTS),
    Mutant("resumed twice", "reverse", YIELD, YIELD + "        yield self.value(self, operation.result, cell)\n",
           CONTRACTS),
    Mutant("only the first argument", "reverse", "in operation.pull(cell.cotangent)",
           "in [*operation.pull(cell.cotangent)][:1]", CONTRACTS),
    Mutant("lost sharing", "reverse", "in operation.pull(cell.cotangent)",
           "in dict(operation.pull(cell.cotangent)).items()", CONTRACTS),
    Mutant("passed on twice", "reverse", "                target.accumulate(part)\n",
           "                target.accumulate(part)\n" * 2, CONTRACTS),
    Mutant("confused perturbation", "reverse", OWNS, "isinstance(a, Tracer)", REPRESENTS, MODE),
    Mutant("oldest first", "continuation", "self.age > other.age", "self.age < other.age", CONTRACTS),
    Mutant("dropped accumulation", "continuation", "cotangents.add(target.waiting, part)", "part", CONTRACTS),
    Mutant("lost sharing: called with every share", "continuation",
           "if target.waiting is None:\n                heappush(self.pending, target)",
           "if target.call is not None:\n                return target.call(part)", CONTRACTS),
    Mutant("passed on twice", "continuation", "                self.send(target, part)\n\n",
           "                self.send(target, part)\n                self.send(target, part)\n\n", CONTRACTS),
    Mutant("stops early", "continuation", "while self.pending:", "while len(self.pending) > 1:", CONTRACTS),
    Mutant("confused perturbation", "continuation", OWNS, "isinstance(a, Tracer)", REPRESENTS, MODE),
    Mutant("dropped accumulation", "delta", "collected[target] = cotangents.add(collected[target], part)",
           "collected[target] = part", CONTRACTS, WALK),
    Mutant("first to last", "delta", RANGE, "range(first, len(entries))", CONTRACTS, WALK),
    Mutant("one name for two terms", "delta", "return len(self.entries) - 1", "return max(0, len(self.entries) - 2)",
           CONTRACTS, WALK),
    Mutant("transpose of another argument", "delta", "shares([self.argument]", "shares([0]", CONTRACTS),
    Mutant("a sum without its last term", "delta", "for scale in term.terms:", "for scale in term.terms[:1]:",
           CONTRACTS),
    Mutant("tangents swapped", "forward", "operation.push(operation.shadows)",
           "operation.push(operation.shadows[::-1])", CONTRACTS),
    Mutant("only the first tangent", "forward", "operation.push(operation.shadows)",
           "operation.push(operation.shadows[:1] + [None] * len(operation.shadows[1:]))", CONTRACTS),
    Mutant("tangent of another value", "forward", "primitive(*primals, **params))",
           "primitive(*primals[::-1], **params))", CONTRACTS, MODE),
    Mutant("floats: sign of the second tangent", "dual", "s * {0} + t * {1}", "s * {0} - t * {1}", REPRESENTS),
    Mutant("confused perturbation", "forward", OWNS, "isinstance(a, Tracer)", REPRESENTS, MODE),
    Mutant("the thesis's listing: no square of the first derivative", "second_order",
           "bent if curved is None else curved + bent", "bent", REPRESENTS),
    Mutant("no second derivative of the argument", "second_order", "curved if bent is None else",
           "curved if True else", REPRESENTS),
    Mutant("results seeded in another order", "checkpointed", "zip(first.again(), cells, strict=True)",
           "zip(first.again(), cells[::-1], strict=True)", CONTRACTS),
    Mutant("cotangents passed on though there is none", "checkpointed",
           "if any(cell.cotangent is not None for cell in cells)", "if all(cell.cotangent is None for cell in cells)",
           CONTRACTS),
]  # fmt: skip
# Each mode, and the modules that it is made in, after those that all share.
CHAINS = {
    "tape": ("FastTaped", "effgrad.modes.taped", "effgrad.fast.recording"),
    "dual": ("FastForward", "effgrad.modes.forward", "effgrad.fast.dual"),
    "taped": ("Taped", "effgrad.modes.taped"),
    "reverse": ("Reverse", "effgrad.modes.reverse"),
    "continuation": ("Continuation", "effgrad.modes.continuation"),
    "delta": ("Delta", "effgrad.modes.delta"),
    "forward": ("Forward", "effgrad.modes.forward"),
    "second_order": ("SecondOrder", "effgrad.modes.second_order"),
    "checkpointed": ("Checkpointed", "effgrad.modes.reverse", "effgrad.modes.checkpointed"),
}


def mutated(mutant):
    """The mode of a mutant, made of copies of its modules, one of them with the mutant's text."""
    kind, *own = CHAINS[mutant.file]
    chain = [MODE, BACKWARD, WALK, *own]
    where = mutant.module or own[-1]
    originals = {name: importlib.import_module(name) for name in chain}
    try:
        for name in chain[chain.index(where) :]:
            source = pathlib.Path(originals[name].__file__).read_text()
            if name == where:
                assert mutant.text in source, f"the text of the mutant is not in {name}"
                source = source.replace(mutant.text, mutant.instead)
            module = types.ModuleType(name)
            sys.modules[name] = module
            exec(compile(source, f"<{mutant}>", "exec"), module.__dict__)
        return getattr(module, kind)
    finally:
        sys.modules.update(originals)


def run_contracts(mode):
    with contracts():
        for e in PROGRAMS.values():
            diff(e, mode)(FLOATS.dictionary, 0.5)
        if hasattr(mode, "seed"):
            for f in (arrays, marked):
                grad(f, mode="mutant")(POINT)
        elif "Forward" in mode.__name__:
            with user_code(), mode() as activation:
                program.read(arrays)(activation.variable(POINT, POINT))


def run_specification(mode):
    for wall in (opaque, lambda e: e):
        e = PROGRAMS["state"]
        represents(diff(wall(diff(e, mode)), mode), denotation(e).derivative().derivative())
    represents(diff(confusing(mode), mode), X.derivative())
    if mode.__name__ == "SecondOrder":
        for e in PROGRAMS.values():
            represents(curvature(e, mode), denotation(e).derivative().derivative(), [INTEGERS])


def curvature(e, mode):
    """The second derivative, where the mode has it."""

    def expression(d, x):
        class Second(mode):
            def apply(self, primitive, *args, **params):
                result = super().apply(primitive, *args, **params)
                return Traced(self, result.primal, result.shadow)

        zero, one, x = (Number(d, value) for value in (d.zero, d.one, x))
        with Second() as activation:
            y = e(Dictionary(zero, one, operator.add, operator.mul), activation.variable(x, one))
        second = y.shadow[1] if type(y) is Traced else None
        return d.zero if second is None else second.value

    return expression


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_is_caught(mutant, monkeypatch):
    mode = mutated(mutant)
    monkeypatch.setitem(REVERSE, "mutant", mode)
    if mutant.caught == CONTRACTS:
        with pytest.raises((ContractBroken, ResumedTwice)):
            run_contracts(mode)
    else:
        with pytest.raises(Counterexample):
            run_specification(mode)


@pytest.mark.parametrize("file", CHAINS)
def test_the_unchanged_copy_of_a_mode_is_not_caught(file, monkeypatch):
    mode = mutated(Mutant("unchanged", file, "", "", ""))
    monkeypatch.setitem(REVERSE, "mutant", mode)
    run_contracts(mode)
    run_specification(mode)


@pytest.mark.parametrize(
    "text, instead",
    [("pending.pop()", "pending.pop(0)"), ("while pending:", "while len(pending) > 1:")],
    ids=["first clause first", "one clause forgotten"],
)
def test_a_mutant_of_the_unwinding_of_clauses_is_caught(text, instead, monkeypatch):
    source = inspect.getsource(clauses.unwind)
    assert text in source
    names = dict(vars(clauses))
    exec(source.replace(text, instead), names)
    monkeypatch.setattr(handler, "unwind", names["unwind"])
    with pytest.raises(ContractBroken, match="backward invariant"), contracts():
        grad(scalars, mode="reverse")(0.5)


class Twice(Handler[Smooth]):
    """Resumes the rest of the program twice."""

    @control
    def apply(self, k, primitive, *args, **params):
        values = [a.primal if isinstance(a, Traced) else a for a in args]
        k(Traced(self, primitive(*values, **params), None))
        return k(Traced(self, primitive(*values, **params), None))


def test_a_mode_that_resumes_twice_is_caught():
    def program():
        return Smooth.apply(effgrad.primitives.elementwise.add, 1.0, 2.0)

    with pytest.raises(ResumedTwice):
        handle(Twice(), program)


def test_a_broken_contract_names_the_invariant_and_the_operation(monkeypatch):
    monkeypatch.setitem(REVERSE, "mutant", mutated(MUTANTS[0]))
    message = r"backward invariant: the cotangent that waits at an argument of operation \d+, \w+ is .*, and should be"
    with pytest.raises(ContractBroken, match=message), contracts():
        grad(arrays, mode="mutant")(POINT)


def test_contracts_end_with_their_block():
    with contracts():
        pass
    with modes.Taped() as taped:
        assert type(taped) is modes.Taped
