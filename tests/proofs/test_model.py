"""The models that the proofs are about, the library's modes and Coq compute the same on random programs.

The transcription in `model.py` is compared with the modes: values, derivatives, names on the tape, the order in which
backpropagators are called, and the order of effects. Where Coq is, its definitions compute the same too.
"""

import ast
import pathlib
import random
import shutil
import subprocess

import model
import pytest

from effgrad import checkpoint
from effgrad.effects import Effect, Handler, handle, operation
from effgrad.modes import READABLE, Continuation, Delta, Forward, SecondOrder
from effgrad.spec import Dictionary, Number

PROOFS = pathlib.Path(__file__).parents[2] / "proofs"


def program(rng, n, steps, checkpoints=2):
    """A program with `n` values so far: operations, branches on what was computed, nested checkpoints."""
    if steps == 0:
        return ("ret", tuple(rng.randrange(n) for _ in range(rng.randint(1, 3))))
    if checkpoints and rng.random() < 0.25:
        inner = rng.randint(1, 4)
        part = part_of(rng, n, inner, checkpoints - 1)
        return ("ck", part, branching(rng, n + len(results(part)), steps - 1, checkpoints))
    op, args = rng.choice(["plus", "times"]), (rng.randrange(n), rng.randrange(n))
    return ("do", op, args, branching(rng, n + 1, steps - 1, checkpoints))


def branching(rng, n, steps, checkpoints):
    if steps and rng.random() < 0.15:
        sides = [program(rng, n, rng.randint(0, steps), checkpoints) for _ in range(2)]
        return ("if", rng.randint(-5, 5), *sides)
    return program(rng, n, steps, checkpoints)


def part_of(rng, n, steps, checkpoints):
    """A checkpointed part without branches at its end, whose results are new and different."""

    def operations(left, names, depth):
        if left == 0:
            new = list(range(n, names))
            return ("ret", tuple(rng.sample(new, rng.randint(1, min(2, len(new))))))
        if depth and left > 1 and rng.random() < 0.3:
            inner = part_of(rng, names, rng.randint(1, 3), depth - 1)
            return ("ck", inner, operations(left - 1, names + len(results(inner)), depth))
        args = (rng.randrange(names), rng.randrange(names))
        return ("do", rng.choice(["plus", "times"]), args, operations(left - 1, names + 1, depth))

    return operations(steps, n, checkpoints)


def results(p):
    return p[1] if p[0] == "ret" else results(p[-1])


def cases(count):
    rng = random.Random(7)
    for _ in range(count):
        n = rng.randint(1, 3)
        p = program(rng, n, rng.randint(1, 9))
        x, u = ([rng.randint(-3, 3) for _ in range(n)] for _ in range(2))
        yield p, x, u, [rng.randint(-2, 2) for _ in model.values(p, list(x))]


CASES = list(cases(150))


def run(p, env):
    """The program in plain Python, on whatever values."""
    if p[0] == "ret":
        return [env[y] for y in p[1]]
    if p[0] == "do":
        a, b = (env[i] for i in p[2])
        made = [a + b if p[1] == "plus" else a * b]
    else:
        made = list(checkpoint(lambda: tuple(run(p[1], env))))
    k = p[-1]
    while k[0] == "if":
        k = k[2] if made[0] < k[1] else k[3]
    return run(k, env + made)


def reversed_by(mode, p, x, w):
    with mode() as activation:
        variables = [activation.variable(number) for number in x]
        shadows = [variable.shadow for variable in variables]
        outputs = run(p, variables)
        names = [output.shadow for output in outputs]
        for output, cotangent in zip(outputs, w, strict=True):
            activation.seed(output, cotangent)
    return [0 if g is None else g for g in activation.cotangents(shadows)], names


@pytest.mark.parametrize("mode", ["taped", "reverse", "continuation", "delta", "checkpointed"])
def test_reverse_modes_compute_what_their_models_compute(mode):
    for p, x, _, w in CASES:
        found, _ = reversed_by(READABLE[mode], p, x, w)
        expected = {
            "reverse": lambda p, x, w: model.pullback(False, p, x, w),
            "checkpointed": lambda p, x, w: model.pullback(True, p, x, w),
            "continuation": lambda p, x, w: model.continuation(p, x, w)[0],
        }.get(mode, model.taped)(p, x, w)
        assert found == expected, (p, x, w)


def test_forward_and_second_order_modes_compute_what_their_models_compute():
    for p, x, u, _ in CASES:
        with Forward() as forward:
            outputs = run(p, [forward.variable(a, b) for a, b in zip(x, u, strict=True)])
        assert [y.primal for y in outputs] == model.values(p, list(x))
        assert [y.shadow or 0 for y in outputs] == model.forward(p, list(x), list(u)), (p, x, u)
        with SecondOrder() as second:
            outputs = run(p, [second.variable(a, b) for a, b in zip(x, u, strict=True)])
        assert [y.shadow[1] or 0 for y in outputs] == model.second_order(p, list(x), list(u), [0] * len(x)), (p, x, u)


def test_the_models_of_all_modes_agree_with_forward_mode():
    for p, x, _, w in CASES:
        unit = [[int(i == j) for i in range(len(x))] for j in range(len(x))]
        columns = [model.forward(p, list(x), u) for u in unit]
        expected = [sum(a * b for a, b in zip(w, column, strict=True)) for column in columns]
        *_, stateful, checkpointed, taped, _, continuation, _, _, _ = model.computed(p, x, unit[0], w)
        assert stateful == checkpointed == taped == continuation == expected


def test_backpropagators_are_called_in_the_order_of_the_model():
    called = []

    class Watched(Continuation):
        def backpropagator(self, call):
            made = super().backpropagator(call)
            age, inner = made.age - 1, made.call

            def watched(cotangent):
                called.append(age)
                if inner is not None:
                    inner(cotangent)

            if inner is not None and inner.__name__ != "_keep":
                made.call = watched
            return made

    for p, x, _, w in CASES:
        called.clear()
        reversed_by(Watched, p, x, w)
        _, expected, _ = model.continuation(p, x, w)
        assert called == [age for age in expected if age >= len(x)], (p, x, w)
        assert len(set(expected)) == len(expected)


@pytest.mark.parametrize("mode", [READABLE["taped"], Delta])
def test_names_on_the_tape_are_those_of_the_model(mode):
    for p, x, _, w in CASES:
        _, names = reversed_by(mode, p, x, w)
        expected = model.record(p, list(x), list(range(len(x))), len(x))[1]
        assert [getattr(name, "name", name) for name in names] == expected, (p, x)


class Asked(Effect):
    """The operations of a number, as effects."""

    @operation
    def perform(self, op, a, b):
        """The result."""


class Answers(Handler[Asked]):
    def enter(self):
        self.requests = []

    def perform(self, op, a, b):
        self.requests.append((op, a, b))
        return model.OPS[op][0](a, b)

    def return_(self, value):
        return self.requests


class Ordered(Number):
    """A number whose operations are effects, and which a program can compare."""

    __slots__ = ()
    __hash__ = Number.__hash__

    def __add__(self, other):
        return Ordered(self.dictionary, super().__add__(other).value)

    def __mul__(self, other):
        return Ordered(self.dictionary, super().__mul__(other).value)

    def __lt__(self, other):
        return self.value < other


DICTIONARY = Dictionary(
    0, 1, lambda a, b: Asked.perform("plus", a, b), lambda a, b: Asked.perform("times", a, b)
)  # fmt: skip


@pytest.mark.parametrize("mode", ["taped", "reverse", "continuation", "delta", "checkpointed"])
def test_the_effects_of_the_program_come_out_first_and_in_its_order(mode):
    for p, x, _, w in CASES:
        numbers, seeds = ([Ordered(DICTIONARY, number) for number in row] for row in (x, w))
        requests = handle(Answers(), lambda p=p, n=numbers, s=seeds: reversed_by(READABLE[mode], p, n, s))
        expected = model.operations(p, list(x))
        assert requests[: len(expected)] == expected, (p, x, w)


def coq(p):
    """The program as a term of Coq."""
    if p[0] == "ret":
        return f"Ret {names(p[1])}"
    if p[0] == "do":
        return f"Do (P := Arith) {p[1]}_op {names(p[2])} (fun v => {coq_rest(p[3], 'v')})"
    return f"Ck ({coq(p[1])}) (fun vs => {coq_rest(p[2], 'nth 0 vs 0%Z')})"


def coq_rest(k, value):
    if k[0] != "if":
        return coq(k)
    return f"if Z.ltb ({value}) ({k[1]}) then {coq_rest(k[2], value)} else {coq_rest(k[3], value)}"


def names(values):
    return "[" + "; ".join(f"{value}%nat" for value in values) + "]"


def integers(values):
    return "[" + "; ".join(f"({value})" for value in values) + "]"


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")
def test_coq_computes_what_the_transcription_computes(tmp_path):
    for file in PROOFS.glob("*.v"):
        shutil.copy(file, tmp_path)
    files = [line for line in (PROOFS / "_CoqProject").read_text().split() if line.endswith(".v")]
    lines = ["From Effgrad Require Import Integers.", "Open Scope Z_scope.", "Set Printing Width 1000000."]
    lines += [
        f"Eval vm_compute in computed ({coq(p)}) {integers(x)} {integers(u)} {integers(w)}." for p, x, u, w in CASES
    ]
    (tmp_path / "Compared.v").write_text("\n".join(lines))
    for file in [*files[: files.index("Integers.v") + 1], "Compared.v"]:
        command = ["coqc", "-q", "-Q", ".", "Effgrad", file]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
    found = [ast.literal_eval(line.strip()[2:].replace(";", ",")) for line in done.stdout.splitlines() if "= [" in line]
    assert len(found) == len(CASES)
    for (p, x, u, w), lists in zip(CASES, found, strict=True):
        assert lists == model.computed(p, x, u, w), p
