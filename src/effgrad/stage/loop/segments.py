"""The reverse of loops with checkpoints: the steps between two checkpoints are rerun and then reversed.

A loop with a known number of steps has a binomial schedule. A `while`, whose number of steps is known only at its end,
saves what its first steps need, as many as fit in memory, and then keeps a state before each stretch of steps.
Stretches become longer, so that there are few states however many steps there are. (Stumm and Walther 2010, "New
algorithms for optimal online checkpointing", drop states instead.) The reverse of a stretch keeps a state for each of
its parts, and reverses the parts.
"""

from dataclasses import replace

from effgrad.stage.loop.affine import Affine, affine, fresh, variable
from effgrad.stage.loop.buffers import BOOL, INT, Buffer, Element, constant, index, integer, load
from effgrad.stage.loop.element import AND, EQUAL, FLOOR_DIVIDE, LESS, MAXIMUM, MINIMUM, WHERE, ZERO, element
from effgrad.stage.loop.ir import Block, Map, Pop, Push, Repeat, Stack, Statement, Store, While, duplicate, rewritten
from effgrad.stage.loop.operands import place_in
from effgrad.stage.loop.schedule import Schedule, Stretches


def restored(saves: Block) -> Block:
    """The statements that restore what was saved."""
    return [Pop(p.stack, p.buffer, p.dims, p.indices) for p in reversed(saves) if isinstance(p, Push)]


def named_once(s: Push, e: Element) -> tuple[Block, Element]:
    """The element at one of the points that name a place, and 0 at the other points, as a table may name a place twice.

    The statements mark each place with the number of one point. A place that was saved several times has only one
    value, whose cotangent must be added once.
    """
    points = {name for name, _ in s.dims}
    atoms = [atom for place in s.indices for atom, _ in place.terms]
    if all(type(atom) is str or points.isdisjoint(atom.variables()) for atom in atoms):
        return [], e
    number, marks = place_in(s.dims), Buffer(fresh("marks"), s.buffer.shape, INT)
    is_marked = element(EQUAL, load(marks, s.indices), index(number))
    return [Map(s.dims, [Store(marks, s.indices, index(number))])], element(WHERE, is_marked, e, constant(0, e.dtype))


def segmented(
    s: Repeat, schedule: Schedule, saves: Block, runs: tuple[Block, Block], back: Block
) -> tuple[Block, Block]:
    """The forward and the reverse sweep of a loop with a binomial schedule, in which only the shortest segments save.

    `saves` keep a state. `runs` are the step as it is rerun, without and with its saves; `back` is the step's reverse.
    Rerun steps save on a stack of their own, which is empty after each segment, so the states that the forward sweep
    has kept stay where they are.
    """
    own = Stack()
    rerun, there, back = runs[0], _onto(runs[1], own), _onto(back, own)

    def steps(first: Affine, last: Affine, body: Block, backwards: bool = False) -> Statement:
        """The steps from `first` up to `last`, clipped at 0, as a schedule may cover more steps than there are."""
        start, stop = (s.start + s.step * integer(element(MAXIMUM, index(n), ZERO)) for n in (first, last))
        return Repeat(s.variable, start, stop, s.step, duplicate(body), backwards)

    def stretch(level: int, end: Affine, slots: Affine) -> tuple[Block, Block]:
        """The two sweeps of the steps before `end`, which this level reverses with the given number of slots."""
        table = schedule.remaining(level)
        remaining = Buffer(fresh("remaining"), table.shape, INT, data=table, reach=(0, int(table[-1])))
        name = fresh("left")
        left = variable(name)
        first, last = (end - integer(load(remaining, (n,))) for n in (left + 1, left))
        if level > 1:
            again, reverse = stretch(level - 1, last, left)
        else:
            again, reverse = [steps(first, last, there)], [steps(first, last, back, True)]
        order = name, slots, Affine(-1), -1
        body = s.body if level == schedule.levels else rerun
        forward: Block = [Repeat(*order, [*saves, steps(first, last, body)])]
        return forward, [Repeat(*order, [*restored(saves), *again, *reverse], True)]

    assert s.steps is not None
    return stretch(schedule.levels, Affine(len(s.steps)), Affine(schedule.slots))


def segmented_while(
    s: While, plan: Stretches, saves: Block, held: Block, there: tuple[Block, Block], back: tuple[Block, Block],
    stack: Stack,
) -> tuple[Block, Block]:  # fmt: skip
    """A `while` that saves what its first `chunk` steps need, and then keeps a state before each stretch of steps.

    `saves` keep a state. `held` save on `stack` all that the reverse of the first steps reads. `there` are the test and
    the body with their saves, `back` their reverses. The test runs once more where a stretch or a part begins.
    """
    first, steps, stretches = (Buffer(fresh(name), (), INT) for name in ("first", "steps", "stretches"))
    longer = integer(element(FLOOR_DIVIDE, load(stretches, ()), constant(plan.alike, INT)))
    stretch = _bounded(steps, s, duplicate(s.test), duplicate(s.body), index(plan.chunk * (longer + 1)))
    rest = While(stretches, duplicate(s.test), s.flag, [*saves, stretch, Push(stack, steps, (), ())])
    forward: Block = [_bounded(first, s, *there, index(affine(plan.chunk))), *held, rest]

    own, states = Stack(), Stack()  # both are empty after each stretch
    (test, body), (test_back, body_back) = ([_onto(part, own) for part in pair] for pair in (there, back))
    j, length = fresh("part"), integer(load(steps, ()))
    before = plan.chunk * variable(j)
    size = integer(element(MINIMUM, index(length - before), constant(plan.chunk, INT)))
    again = [*test, counted(size, [*body, *_onto(test, own)])]
    reverse = [*test_back, counted(size, [*body_back, *_onto(test_back, own)], True)]
    parts_but_one = integer(element(FLOOR_DIVIDE, index(length - 1), constant(plan.chunk, INT)))
    plain = counted(affine(plan.chunk), [*duplicate(s.test), *duplicate(s.body)])
    keep = _onto(saves, states)
    ahead: Block = [Repeat(fresh("part"), Affine(0), parts_but_one, 1, [*keep, plain]), *_onto(keep, states)]
    backwards = Repeat(j, Affine(0), parts_but_one + 1, 1, [*restored(keep), *again, *reverse], True)
    bring: Block = [Pop(stack, steps, (), ()), *restored(saves)]
    stretches_back = counted(integer(load(stretches, ())), [*bring, *ahead, backwards], True)
    steps_back = counted(integer(load(first, ())), [*back[1], *duplicate(back[0])], True)
    return forward, [stretches_back, *restored(held), *back[0], steps_back]


def _bounded(count: Buffer, s: While, test: Block, body: Block, most: Element) -> While:
    """A `while` that stops after at most `most` steps."""
    more = Buffer(fresh("more"), (), BOOL)
    fewer = element(LESS, load(count, ()), most)
    return While(count, [*test, Map((), [Store(more, (), element(AND, s.flag, fewer))])], load(more, ()), body)


def counted(count: Affine, body: Block, backwards: bool = False) -> Statement:
    """A loop of `count` steps."""
    return Repeat(fresh("k"), Affine(0), count, 1, body, backwards)


def _onto(block: Block, stack: Stack) -> Block:
    """A copy of the statements that saves on another stack."""
    return rewritten(block, lambda s: [replace(s, stack=stack) if isinstance(s, Push | Pop) else replace(s)])
