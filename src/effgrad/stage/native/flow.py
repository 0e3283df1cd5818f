"""Blocks and loops of a function in machine code, and its checks for signals."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from effgrad.stage.native.scalars import Body

# The code that a function returns after a signal handler has raised.
STOPPED = -1


class Turn:
    """A step of a loop: its number, and the values that the loop carries. The step sets their `next` values.

    After the loop, `values` are the last ones.
    """

    def __init__(self, number: str, values: list[str]) -> None:
        self.number, self.values, self.next = number, values, list[str]()


class Flow:
    """A function under construction. `here` is the label of the block that is being written."""

    def __init__(self, body: Body) -> None:
        self.body, self.here, self.labels = body, "entry", 0

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.body.lines.append(f"{label}:")
        self.here = label

    def ask(self, place: str, every: int) -> None:
        """Write a check for signals at each multiple of `every`, a power of two; an exception ends the function."""
        asked, stop, go_on = (self.label() for _ in range(3))
        self.body.declared.add("declare i32 @effgrad_ask()")
        now = self.body.do(f"icmp eq i64 {self.body.do(f'and i64 {place}, {every - 1}')}, 0")
        self.body.lines += [f"  br i1 {now}, label %{asked}, label %{go_on}", f"{asked}:"]
        raised = self.body.do(f"icmp ne i32 {self.body.do('call i32 @effgrad_ask()')}, 0")
        self.body.lines += [f"  br i1 {raised}, label %{stop}, label %{go_on}"]
        self.body.lines += [f"{stop}:", f"  ret i32 {STOPPED}"]
        self.start(go_on)

    @contextlib.contextmanager
    def loop(
        self, first: str, stop: str, carried: Sequence[tuple[str, str]] = (), step: int = 1, metadata: str = ""
    ) -> Iterator[Turn]:
        """Write a loop from `first` up to `stop`, whose step is written within this context.

        `carried` has the type and the first value of what the loop carries.
        """
        with self.repeated(first, carried, step, metadata) as (turn, enter):
            enter(self.body.do(f"icmp slt i64 {turn.number}, {stop}"))
            yield turn

    @contextlib.contextmanager
    def repeated(
        self, first: str, carried: Sequence[tuple[str, str]] = (), step: int = 1, metadata: str = ""
    ) -> Iterator[tuple[Turn, Callable[[str], None]]]:
        """Write a loop, whose step and test are written within this context: the function ends the test."""
        head, inside, out = (self.label() for _ in range(3))
        before = self.here
        self.body.lines.append(f"  br label %{head}")
        self.start(head)
        at = len(self.body.lines)
        turn, after = Turn(self.body.name(), [self.body.name() for _ in carried]), self.body.name()

        def enter(going: str) -> None:
            self.body.lines.append(f"  br i1 {going}, label %{inside}, label %{out}")
            self.start(inside)

        yield turn, enter
        self.body.lines.append(f"  {after} = add nsw i64 {turn.number}, {step}")
        names, kinds, following = [turn.number, *turn.values], [("i64", first), *carried], [after, *turn.next]
        self.body.lines[at:at] = [
            f"  {phi} = phi {kind} [ {value}, %{before} ], [ {again}, %{self.here} ]"
            for phi, (kind, value), again in zip(names, kinds, following, strict=True)
        ]
        self.body.lines.append(f"  br label %{head}{metadata}")
        self.start(out)
