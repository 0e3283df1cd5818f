"""The analyses of loops, each broken on purpose: random programs see every mutant.

A mutant replaces one decision of an analysis. The test fails if every random program that is right without it is right
with it too: then nothing would see the same mistake in the source.
"""

import numpy as np
import pytest
from captured_regions import captured
from function_programs import Functions
from function_programs import arguments as around_arguments
from loop_programs import arguments, compiled, copies, in_pairs, program
from region_execution import execute

import effgrad
from effgrad.stage import compiled as compilation
from effgrad.stage.loop import activity, derive, frame_loops, iteration, lists, masks, tangents
from effgrad.stage.loop.affine import NotCaptured, affine
from effgrad.stage.loop.basic_index import Indexed
from effgrad.stage.loop.branches import Branches
from effgrad.stage.loop.buffers import index
from effgrad.stage.loop.cells import Cells
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.evaluator import Evaluator
from effgrad.stage.loop.ir import writes_in
from effgrad.stage.loop.operands import Masked
from effgrad.stage.loop.tangents import tangent
from effgrad.stage.loop.values import Statements
from effgrad.stage.native import lowering, nests
from effgrad.stage.native.executable import Executable


def differ(found, wanted, tolerance=1e-7):
    pairs = zip(found, wanted, strict=True)
    return any(not np.max(np.abs(np.asarray(a) - b)) <= tolerance * (1 + np.max(np.abs(b))) for a, b in pairs)


def gradient(region, args, schedule=lambda loop: None, run=execute):
    return run(Reversal(region, region.inputs, schedule).whole_region(region.inputs), [*args, 1.0])


# What the random programs do not have, or seldom.
DIRECTED = [
    ["for i in range(5):", "    x[i] = x[i] / (x[i] + 4.0)", "return np.sum(x * s)"],
    ["t = s", "for i in range(5):", "    x[1] = x[1] * t", "    t = np.sin(t)", "return x[1]"],
    ["t = s", "for i in range(4):", "    t = t + x @ A[i]", "    for j in range(5):", "        if t > 100.0:",
     "            break", "        A[j, i] += 0.5", "return t"],
    ["for i in range(3):", "    for j in range(3):", "        s = s + x[j - i] * i", "return s"],
    ["q = np.zeros(2, int)", "for i in range(3):", "    s = s + x[q[1]]", "    for j in range(2):",
     "        s = s + x[q[1]] * i", "        q[1] = (q[1] + 1) % 4", "return s"],
    ["for i in range(3):", "    j = 0", "    while j < 5 and x[j] < 9.0:", "        s = s + x[j]", "        j = j + 1",
     "return s"],
]  # fmt: skip
DIRECTED_AROUND = [
    ["for i in range(4):", "    v = x", "x[0] = 3.0", "return np.sum(v * x)"],
    ["v = x * 2.0", "for i in range(4):", "    v = x if x[i] > -9 else v", "    x[0] *= 0.5", "    s += v[0]",
     "return s"],
    ["v = x * 1.0", "for i in range(4):", "    x[0] *= 0.9", "    s = s + v[0]", "    v = x", "return s"],
    ["for i in range(4):", "    v = x if s > 0.1 else y", "    v[0] = 2 * s", "    s = s + x[0]", "return s"],
    ["v = x * 1.0", "for i in range(3):", "    y, v = v, y", "return y @ x"],
    ["v = x", "for i in range(3):", "    if x[i] < -9:", "        v = v * 0.5", "x[0] = 3.0", "return v @ x"],
    ["k = np.arange(4.0)", "for i in range(3):", "    w = x[k + 0 * x < 2]", "    x[k + 0 * x > 1] = w",
     "return x @ y"],
    ["vs = []", "for i in range(3):", "    v = x * s", "    vs.append(v)", "    v[0] = 2.0",
     "return np.sum(np.array(vs))"],
    ["for i in range(3):", "    w = x[x < 0.1]", "    x[x < 0.1] = 0.05", "    s = s + np.sum(w)", "return s"],
]


def directed(names, lines):
    return compiled("\n    ".join([f"def f({names}):", *lines]) + "\n", f"<directed {lines}>")


def chosen(seed):
    return directed("x, A, s", DIRECTED[seed]) if seed < len(DIRECTED) else program(seed)


def derivatives_are_wrong(seed):
    """Of the region: the value, the gradient, the tangent, or the gradient with kept states."""
    f, _ = chosen(seed)
    args = arguments(seed)
    region = captured(f, *copies(args))
    eager = effgrad.grad(f, argnums=(0, 1, 2))(*copies(args))
    directions = [0.3 + 0.1 * np.arange(np.size(a)).reshape(np.shape(a)) for a in args]
    along = sum(np.sum(g * d) for g, d in zip(eager, directions, strict=True))
    return (
        differ(execute(region, args), [f(*copies(args))]) or differ(gradient(region, args), eager)
        or differ(execute(tangent(region, region.inputs), [*args, *directions]), [along])
        or differ(gradient(region, args, in_pairs), eager)
    )  # fmt: skip


def second_derivatives_are_wrong(seed):
    """Reverse mode of the gradient, beside forward mode of it."""
    f, _ = program(seed)
    args = arguments(seed)
    region = captured(f, *copies(args))
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    reverse = Reversal(back, back.inputs[2:3]).whole_region(back.inputs[2:3])  # by the number
    seeds = [np.ones(b.shape) for b in back.outputs]
    forward = execute(tangent(back, back.inputs[2:3]), [*args, 1.0, 1.0])
    return differ(execute(reverse, [*args, 1.0, *seeds]), [sum(np.sum(d) for d in forward)], 1e-6)


def machine_code_is_wrong(seed):
    f, _ = program(seed)
    args = arguments(seed)
    region = captured(f, *copies(args))
    machine = lambda region, args: Executable(region)(*args)  # noqa: E731
    return differ(machine(region, args), execute(region, args)) or differ(
        gradient(region, args, run=machine), gradient(region, args)
    )


def code_around_is_wrong(seed):
    """Of a function with loops in it: the value."""

    class Compiled(compilation.Compiled):
        def _loops(self):
            return frame_loops.Loops(
                lambda region, limit=None: lambda *args, into=None, apart=None: execute(region, args), self.limits
            )

    if seed < len(DIRECTED_AROUND):
        f, _ = directed("x, y, A, s", DIRECTED_AROUND[seed])
    else:
        f, _ = compiled(Functions(seed).source(), f"<function {seed}>")
    args = around_arguments(seed)
    return differ([Compiled(f, "numpy", False)(*copies(args))], [f(*copies(args))])


def read_before(self, s, buffer, top):
    """`Reversal.must_save` with `<` for `<=`, and all loops as if they had one step."""
    here = self.numbered[s][0]
    return any(reader < here for reader in self.readers.get(buffer, ()))


def not_of_loops(self, s, buffer, top):
    here = self.numbered[s][0]
    return any(reader <= here for reader in self.readers.get(buffer, ()))


def one_round(block, seeds):
    return {*seeds, *(target for target, sources in activity._flows(block) if sources & set(seeds))}


MUTANTS = {
    "nothing is recorded": (derivatives_are_wrong, Reversal, "must_save", lambda *_: False),
    "a statement's own partial is not recorded": (derivatives_are_wrong, Reversal, "must_save", read_before),
    "earlier steps are not recorded": (derivatives_are_wrong, Reversal, "must_save", not_of_loops),
    "places of saved elements are not recorded": (derivatives_are_wrong, Reversal, "_note_places", lambda self: None),
    "results are used where they have changed": (derivatives_are_wrong, derive, "_meets", lambda *_: False),
    "each sum begins before": (derivatives_are_wrong, derive, "_starts_sum", lambda *_: True),
    "no state is kept": (derivatives_are_wrong, Reversal, "state", lambda *_: []),
    "all state is rewritten": (derivatives_are_wrong, derive, "overwritten_first", writes_in),
    "lazy values are not watched": (derivatives_are_wrong, Statements, "before_write", lambda *_: None),
    "lazy values enter blocks": (derivatives_are_wrong, Statements, "materialize_all", lambda *_: None),
    "what is varied is found in one round": (derivatives_are_wrong, derive, "varied", one_round),
    "what has a tangent is found in one round": (derivatives_are_wrong, tangents, "varied", one_round),
    "nothing is read after a loop": (derivatives_are_wrong, iteration, "read_after", lambda *_: False),
    "nothing is read before it is bound": (derivatives_are_wrong, iteration, "exposed", lambda *_: (False, False)),
    "stores that nobody reads later are all there is": (
        derivatives_are_wrong, derive, "without_dead", lambda block, roots: activity._swept(block, set(roots))),
    "names are bound one after the other": (
        code_around_is_wrong, Cells, "pairs", lambda self, cell, value, name: (
            [] if cell.holds(value) else self.capture.assign(cell.view, value) or [])),
    "indices count from the beginning": (derivatives_are_wrong, Indexed, "from_beginning", lambda self, i, n: index(i)),
    "integers stay what they were": (derivatives_are_wrong, Statements, "lasting", lambda self: dict(self.known)),
    "all operands of and are run": (
        derivatives_are_wrong, Evaluator, "operand", lambda self, e, before, every, frame: self.expression(e, frame)),
    "bounds are one less": (derivatives_are_wrong, Indexed, "_bound", lambda self, k, n, default: (
        affine(default) if k is None else self.as_index(k) - 1)),
    "cotangents of both levels are in one stack": (
        second_derivatives_are_wrong, Reversal, "_cotangent_stack", lambda self, stack: self.saves),
    "all places are apart": (machine_code_is_wrong, nests, "never_overlap", lambda *_: True),
    "all sums are in order": (machine_code_is_wrong, lowering, "without_conflicts", lambda m, ranges: [m]),
    "copies are arrays of their own": (code_around_is_wrong, Statements, "unite", lambda *_: None),
    "no array has another name": (code_around_is_wrong, Evaluator, "is_shared", lambda *_: False),
    "aliases are not seen": (code_around_is_wrong, Cells, "check_aliases", lambda *_: None),
    "a branch leaves no name as it is": (code_around_is_wrong, Branches, "note_either", lambda *_: None),
    "two masks are one": (code_around_is_wrong, masks, "is_same", lambda *_: True),
    "what a mask selects is a view": (code_around_is_wrong, masks, "select", lambda c, value, key: Masked(
        value, c.lazy(key), len(c.lazy(key).shape))),
    "items of lists have no names": (code_around_is_wrong, lists, "value_has_name", lambda *_: False),
    "either of two arrays is a third": (
        code_around_is_wrong, Branches, "one_of_arrays", lambda self, view, shared, name: view),
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_seen(name, monkeypatch):
    is_wrong, owner, attribute, replacement = MUTANTS[name]
    monkeypatch.setattr(frame_loops, "FEWEST", 0)
    monkeypatch.setattr(frame_loops, "FEWEST_OF_WRITES", 0)
    monkeypatch.setattr(compilation, "with_pairs", lambda graph, halves: graph)
    monkeypatch.setattr(lowering, "POINTS", 1)  # every Map is a loop nest
    monkeypatch.setattr(lowering, "POINTS_IN_MEMORY", 1)
    monkeypatch.setattr(lowering, "LOCAL", 0)
    for seed in range(60):
        with monkeypatch.context() as mutated:
            mutated.setattr(owner, attribute, replacement)
            found = outcome(is_wrong, seed)
        if found != "right" and outcome(is_wrong, seed) == "right":
            return
    pytest.fail("every program is as right with the mutant as without")


def outcome(is_wrong, seed):
    try:
        with np.errstate(all="ignore"):
            return "wrong" if is_wrong(seed) else "right"
    except NotCaptured:
        return "refused"
    except Exception:  # with a mutant a program may not even run
        return "broken"
