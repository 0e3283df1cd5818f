"""The estimators of the derivative of an expectation: handlers that decide how a sample depends on its parameters.

A program that draws random numbers computes a sample of f(X, p). By path derivatives, its gradient is a sample of the
gradient of the expectation E f(X, p). If there is no path derivative (for a discrete choice), or if it is not wanted,
`expectation` uses another estimator, which is another handler of the draws. Mohamed, Rosca, Figurnov and Mnih, Monte
Carlo gradient estimation in machine learning (2020).
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import optree

from effgrad.api import stop_gradient
from effgrad.api.checks import check_outputs
from effgrad.api.tracebacks import derivative, of_function
from effgrad.arrays.reach import np
from effgrad.effects import Effect, Handler, operation
from effgrad.errors import NotDifferentiable
from effgrad.functions.numpy.draws import Draw, take
from effgrad.program import read
from effgrad.toolbox.frozen import as_number_or_array, number, order, plain_tree
from effgrad.toolbox.sampling import Sample
from effgrad.trees import flatten
from effgrad.vocabulary import Function, Value

P = ParamSpec("P")
R = TypeVar("R")
ESTIMATORS = ("path", "score", "measure")


class Sampled(Effect):
    """The effect of having drawn a sample of a distribution whose parameters are traced."""

    @operation
    def depend(self, sample: Sample) -> Value:
        """The value with which the program goes on after drawing a sample."""


@of_function
def expectation(
    f: Callable[P, R], estimator: str = "path", samples: int = 1, baseline: bool = True
) -> Callable[P, R]:
    """Return a function whose value is a mean of random runs of `f`, and whose derivative is by a chosen estimator.

    Arguments:
        f: a function that draws random numbers with NumPy (a generator made inside or passed in, or the functions of
            `numpy.random`) and returns a pytree of numbers and arrays. Several runs with "score" need a generator made
            outside, or without a seed: with a fixed seed all runs would draw the same numbers.
        estimator: "path" differentiates the samples (reparametrisation), as draws do without this function too.
            "score" weighs a run by the derivative of the log-density of all its draws; it needs no derivative of `f`
            with respect to the samples, and is right for discrete draws, to every order. "measure" runs the rest of the
            program twice for each number drawn, and has first derivatives only.
        samples: the number of runs whose mean is returned.
        baseline: with "score" and several samples, subtract from each run the mean of all other runs. This does not
            change the expectation and lowers the variance.

    Each estimate is unbiased if the expectation may be differentiated under the integral. With "path", `f` must be
    continuous in the samples.

    Returns:
        A function of the arguments of `f` that returns the mean of its results.

    Raises:
        NoRule: a draw has no path (or no log-density, or no measure-valued derivative) in a parameter that is traced.
        NotDifferentiable: a second derivative is requested with "measure", or the runs draw the same numbers.

    Foerster et al., DiCE: the infinitely differentiable Monte Carlo estimator (2018); Kool, van Hoof and Welling, Buy 4
    REINFORCE samples, get a baseline for free (2019); Mohamed et al. (2020).

    >>> from effgrad import grad, stochastic
    >>> rng = stochastic.Generator(np.random.PCG64(0))
    >>> def cost(rate):
    ...     return rng.poisson(rate) ** 2.0
    >>> gradient = grad(stochastic.expectation(cost, "score", samples=4000))(3.0)
    >>> abs(gradient - 7.0) < 0.5  # of rate + rate**2
    True
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator is {estimator!r}; choose one of {', '.join(map(repr, ESTIMATORS))}")
    if not isinstance(samples, int | np.integer) or samples < 1:
        raise ValueError(f"samples is {samples!r}; an expectation takes a whole number of them, at least one")
    runs: dict[str, Callable[..., list[Value]]] = {"path": _by_path, "score": _by_score, "measure": _by_measure}

    read_f = read(f)

    @derivative(expectation, f, estimator=estimator, samples=samples, baseline=baseline)
    def estimated(*args: Value, **kwargs: Value) -> Value:
        def program() -> Value:
            result = read_f(*args, **kwargs)
            check_outputs(flatten(result)[0])
            return result

        values = runs[estimator](program, samples, baseline)
        return optree.tree_map(lambda *parts: sum(parts[1:], parts[0]) / samples, *values) if samples > 1 else values[0]

    return estimated


class Path(Handler[Sampled]):
    """Reparametrised draws, which are the default: a sample moves with its parameters."""

    def depend(self, sample: Sample) -> Value:
        return sample.path()


def _by_path(program: Function, samples: int, baseline: bool) -> list[Value]:
    values = []
    for _ in range(samples):
        with Path():
            values.append(program())
    return values


class Score(Handler[Sampled]):
    """Draws that do not move. The sum of their log-densities is accumulated, as a function of the parameters.

    `state` is that of the generator after the first draw.
    """

    def enter(self) -> None:
        self.log_density: Value = 0.0
        self.state = b""

    def depend(self, sample: Sample) -> Value:
        self.state = self.state or sample.state()
        self.log_density = self.log_density + sample.log_density()
        return sample.value


def _by_score(program: Function, samples: int, baseline: bool) -> list[Value]:
    """Return runs times a factor, which is 1 and has the derivatives of the density divided by it, of every order."""
    runs, factors, states = [], [], set()
    for _ in range(samples):
        with Score() as score:
            runs.append(program())
        if score.state and score.state in states:  # each run less the mean of all others would be 0
            raise NotDifferentiable(
                f"the {samples} runs of an expectation draw the same numbers, as f makes its generator with a fixed "
                "seed: make the generator outside of f, or leave samples= out"
            )
        states.add(score.state)
        factors.append(np.exp(score.log_density - stop_gradient(score.log_density)))
    plain_runs = [stop_gradient(run) for run in runs]

    def weighed(place: int) -> Value:
        factor, others = factors[place], [run for other, run in enumerate(plain_runs) if other != place]
        if not baseline or not others:
            return optree.tree_map(lambda value: value * factor, runs[place])
        mean = optree.tree_map(lambda *parts: sum(parts) / len(parts), *others)
        return optree.tree_map(lambda value, base: value * factor + (1.0 - factor) * base, runs[place], mean)

    return [weighed(place) for place in range(samples)]


class Recorded(Handler[Draw, Sampled]):
    """Draws that do not move. All plain samples are recorded in order, in `taken`.

    `samples` are the draws with traced parameters, each with its index in `taken`.
    """

    def enter(self) -> None:
        self.taken: list[Value] = []
        self.samples: list[tuple[int, Sample]] = []

    def take(self, thunk: Callable[[], Value]) -> Value:
        self.taken.append(take(thunk))
        return self.taken[-1]

    def depend(self, sample: Sample) -> Value:
        self.samples.append((len(self.taken) - 1, sample))
        return sample.value


class Replay(Handler[Draw, Sampled]):
    """A run whose first draws are given, and whose later draws are fresh."""

    def __init__(self, given: list[Value]) -> None:
        self.given = given

    def enter(self) -> None:
        self.place = 0

    def take(self, thunk: Callable[[], Value]) -> Value:
        self.place += 1
        return self.given[self.place - 1] if self.place <= len(self.given) else take(thunk)

    def depend(self, sample: Sample) -> Value:
        return sample.value


def _by_measure(program: Function, samples: int, baseline: bool) -> list[Value]:
    """Return runs with derivatives by measures: the program runs again with two other numbers for each one drawn."""
    return [_measured(program) for _ in range(samples)]


def _measured(program: Function) -> Value:
    with Recorded() as recorded:
        total = program()
    for place, sample in recorded.samples:
        for name, parameter in sample.traced().items():
            if order(as_number_or_array(parameter)) > 1:
                raise NotDifferentiable(
                    "the estimator 'measure' has a first derivative alone; 'path' and 'score' have all orders"
                )
            for index, weight, *ends in sample.measures(name):
                above, below = (_plain_run(program, recorded.taken[:place], sample.value, index, end) for end in ends)
                moved = _element(parameter, sample.value, index)
                moved = (moved - number(moved)) * weight
                total = optree.tree_map(lambda value, a, b, moved=moved: value + moved * (a - b), total, above, below)
    return total


def _plain_run(program: Function, before: list[Value], sample: Value, index: Value, end: Value) -> Value:
    """Return the plain result of a run with the draws `before`, and then `sample` with the number `end` at `index`."""
    other = np.array(sample, np.result_type(sample, end))
    other[index] = end
    with Replay([*before, other[()]]):
        return plain_tree(program())


def _element(parameter: Value, value: Value, index: Value) -> Value:
    """Return the element of a parameter that the element of the sample at `index` was drawn with."""
    if np.ndim(parameter) == 0:
        return parameter
    return np.broadcast_to(as_number_or_array(parameter), np.shape(value))[index]
