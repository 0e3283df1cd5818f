"""The figures of the pages of modes, each from what the mode does when it is run: python docs/modes/make_figures.py."""

import pathlib
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

from effgrad import checkpoint, function, fuse, grad, hessian, jvp, second_order, taylor
from effgrad.api.counting import Counting
from effgrad.fast import REVERSE
from effgrad.modes import Continuation, Reverse
from effgrad.papers.inefficient import costs

HERE = pathlib.Path(__file__).parent
FIGURES = {}


def figure(draw):
    FIGURES[draw.__name__] = draw
    return draw


def wave(x):
    return np.sin(3 * x) * np.exp(-x * x / 4)


def chain(x, steps):
    for _ in range(steps):
        x = np.sin(x) * 1.1
    return x


@figure
def evaluate(axes):
    """Operations performed, as the handler sees them."""
    with Counting() as counting:
        values = []
        x = counting.variable(0.7)
        for _ in range(8):
            x = np.sin(x) * 1.1
            values.append(counting.primal(x))
    axes.plot(range(2, 18, 2), values, "o-")
    axes.set(xlabel="operations performed", ylabel="value", title="Evaluation: an operation means its value")


@figure
def forward(axes):
    xs = np.linspace(-2, 2, 200)
    axes.plot(xs, wave(xs), label="f")
    for x in (-1.2, 0.2, 1.4):
        y, slope = jvp(wave, (x,), (1.0,))
        axes.plot([x - 0.4, x + 0.4], [y - 0.4 * slope, y + 0.4 * slope], "C1")
        axes.plot(x, y, "C1o")
    axes.set(xlabel="x", title="Forward: each run gives a value and its tangent")


@figure
def reverse(axes):
    held = []

    class Measured(Reverse):
        def apply(self, *args, **params):
            held.append(len(self._pending))
            return super().apply(*args, **params)

    with Measured() as activation:
        chain(activation.variable(0.5), 20)
        operations = len(held)
        while activation._pending:
            held.append(len(activation._pending))
            next(activation._pending.pop(), None)
    axes.plot(held)
    axes.axvline(operations, color="gray", lw=0.5)
    axes.set(xlabel="step of the forward pass, then of the reverse pass", ylabel="pending clauses")
    axes.set_title("Reverse: clauses wait, and finish in the opposite order")


@figure
def continuation(axes):
    """Calls of backpropagators where every result is used twice."""

    def calls(n):
        count = 0

        def call(depth):
            nonlocal count
            count += 1
            if depth:
                call(depth - 1)
                call(depth - 1)

        call(n)
        return count

    def made(n):
        with Continuation() as activation:
            x = activation.variable(1.0)
            for _ in range(n):
                x = x + x
            return activation.made

    depths = range(1, 13)
    axes.semilogy(depths, [calls(n) for n in depths], "o-", label="called for every share")
    axes.semilogy(depths, [made(n) for n in depths], "s-", label="called once, with the whole cotangent")
    axes.set(xlabel="doublings x = x + x", ylabel="calls of backpropagators", title="Continuation: sharing")
    axes.legend()


@figure
def taped(axes):
    """The tape of a small program as a picture: names, and arrows to the names of the arguments."""
    with REVERSE["taped"]() as tape:
        x, y = tape.variable(2.0), tape.variable(4.0)
        1 + (x * x * x + -(y * y))
    for name, entry in enumerate(tape.entries):
        axes.plot(name, 0, "o", color="C0" if entry else "C1", ms=12)
        for source, partial in entry or ():
            bend = "arc3,rad=0.5"
            style = dict(arrowstyle="->", connectionstyle=bend, color="gray", shrinkA=8, shrinkB=8)
            axes.annotate("", (source, 0), (name, 0), arrowprops=style)
            axes.text((name + source) / 2, 0.12 * (name - source), f"{partial:g}", ha="center", color="C3")
    axes.set(ylim=(-0.4, 0.8), yticks=[], xlabel="name", title="Taped: 1 + (x³ + (-y²)) at (2, 4), with its partials")


@figure
def delta(axes):
    def doubled(n):
        def f(x):
            for _ in range(n):
                x = x + x
            return x

        return f

    counts = {n: costs(doubled(n), [1.0]) for n in range(1, 13)}
    for key, label in (("trees", "terms without names (5.2)"), ("delta", "terms with names (5.3)")):
        axes.semilogy(list(counts), [c[key] for c in counts.values()], "o-", label=label)
    axes.set(xlabel="doublings x = x + x", ylabel="terms evaluated", title="Delta: names keep what is shared, shared")
    axes.legend()


@figure
def second_order_(axes):
    xs = np.linspace(-2, 2, 200)
    axes.plot(xs, wave(xs), label="f")
    value, first, second = second_order(wave, 0.4)
    t = np.linspace(-0.7, 0.7, 50)
    axes.plot(0.4 + t, value + first * t, label="first")
    axes.plot(0.4 + t, value + first * t + second * t * t / 2, label="second")
    axes.set(xlabel="x", title="Second order: value, slope and curvature at 0.4 in one pass")
    axes.legend()


@figure
def taylor_(axes):
    series = [float(c) for c in taylor(wave, [0.0, 1.0], order=15)]
    t = np.linspace(-2, 2, 200)
    axes.plot(t, wave(t), "k", lw=2, label="f")
    for order in (1, 3, 7, 15):
        axes.plot(t, np.polynomial.Polynomial(series[: order + 1])(t), label=f"order {order}")
    axes.set(xlabel="t", ylim=(-1.5, 1.5), title="Taylor: the series at 0, to several orders")
    axes.legend()


@figure
def hessian_(axes):
    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    axes.spy(hessian(rosenbrock, sparse=True)(np.ones(30)), markersize=3)
    axes.set_title("Hessian: the pairs of variables that interact (Rosenbrock, n = 30)", pad=12)


@figure
def checkpointed(axes):
    def peak(n, parts):
        def f(x):
            for _ in range(parts):
                x = checkpoint(chain, x, n // parts) if parts > 1 else chain(x, n)
            return np.sum(x)

        tracemalloc.start()
        grad(f, mode="checkpointed")(np.ones(1000))
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result / 1e6

    sizes = [16, 64, 144, 256, 400, 576]
    axes.plot(sizes, [peak(n, 1) for n in sizes], "o-", label="no marks")
    axes.plot(sizes, [peak(n, int(n**0.5)) for n in sizes], "s-", label="√n marks, 2n evaluations")
    axes.set(xlabel="steps n", ylabel="peak memory, MB", title="Checkpointed: a chain of n steps on arrays of 8 kB")
    axes.legend()


@figure
def higher_order(axes):
    def program(x):
        layers = [function(lambda x, k=k: chain(x * k, 5)) for k in (0.5, 1.0, 1.5, 2.0)]
        for layer in layers:
            x = layer(x)
        return x

    for mode in ("higher_order", "higher_order_checkpointed"):
        held = []

        class Measured(REVERSE[mode]):
            def _walk(self, collected, first, held=held):
                held.append(len(self.tape))
                super()._walk(collected, first)

        with Measured() as activation:
            x = activation.variable(0.5)
            activation.seed(program(x), 1.0)
        activation.cotangents([x.shadow])
        axes.bar(mode, max(held))
    axes.set(ylabel="longest tape", title="Higher order: four applications, recorded, or recomputed")


@figure
def fuse_(axes):
    lengths = []
    for f in (lambda x: chain(x, 20), fuse(lambda x: chain(x, 20))):
        tape = REVERSE["taped"]
        with tape() as activation:
            x, grown = activation.variable(0.5), []
            for _ in range(8):
                x = f(x)
                grown.append(len(activation.entries))
        lengths.append(grown)
    for grown, label in zip(lengths, ("f", "fuse(f)"), strict=True):
        axes.plot(range(1, 9), grown, "o-", label=label)
    axes.set(xlabel="calls of f, 40 operations each", ylabel="length of the tape", title="Fused: one operation a call")
    axes.legend()


def main():
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "effgrad", "font.size": 9})
    for name, draw in FIGURES.items():
        plot, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
        draw(axes)
        plot.savefig(HERE / f"{name.rstrip('_')}.svg", metadata={"Date": None})
        plt.close(plot)


if __name__ == "__main__":
    main()
