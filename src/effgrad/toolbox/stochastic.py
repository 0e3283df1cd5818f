"""Randomness: draws whose parameters are traced, and the estimators of the derivative of an expectation.

A draw takes its plain sample from its generator, so values and stream are NumPy's. Its path derivative says how the
sample moves with the parameters, by the first way that fits (`effgrad.toolbox.sampling`). A program that draws
computes a sample of f(X, p), and by path derivatives its gradient is one of the gradient of the expectation E f(X, p).
Where there is no path (a discrete choice), or where it is not wanted, `expectation` takes another estimator: the
handler of the draws decides what they mean. Mohamed, Rosca, Figurnov and Mnih, Monte Carlo gradient estimation in
machine learning (2020).
"""

import copy
import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import optree

from effgrad.api import stop_gradient
from effgrad.api.tracebacks import derivative
from effgrad.arrays.batched_value import Batched
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, example, plain
from effgrad.effects import Effect, Handler, handled, operation
from effgrad.effects.effect import frames
from effgrad.errors import NoRule, NotBatched, NotDifferentiable
from effgrad.functions.numpy.draws import Draw, take
from effgrad.functions.scipy.tables import Calling, traced_inside
from effgrad.modes.batched import Batch
from effgrad.program import read
from effgrad.toolbox.callbacks import CallBack
from effgrad.toolbox.frozen import Function, Value, gathered, number, order, plain_tree, underived
from effgrad.toolbox.sampling import CHOICE, DISTRIBUTIONS, Distribution, Sample

P = ParamSpec("P")
R = TypeVar("R")
ESTIMATORS = ("path", "score", "measure")
# Distributions whose draws take from the stream what does not depend on their parameters, so that the draws after them
# are the same for other parameters. Of the others, which reject candidates, a program has one path for each parameter.
STEADY = frozenset((
    "normal", "uniform", "exponential", "rayleigh", "laplace", "logistic", "gumbel", "lognormal", "weibull", "pareto",
    "power", "triangular", "wald", "multivariate_normal", "choice",
))  # fmt: skip
# Draws without parameters that could be traced.
REPLAYED = ("random", "standard_normal", "standard_exponential", "standard_cauchy", "integers", "permutation")


class Sampled(Effect):
    """The effect of having drawn a sample of a distribution whose parameters are traced."""

    @operation
    def depend(self, sample: Sample) -> Value:
        """The sample as the program goes on with it."""


def expectation(
    f: Callable[P, R], estimator: str = "path", samples: int = 1, baseline: bool = True
) -> Callable[P, R]:
    """A function whose value is a mean of random runs of `f`, and whose derivative is an estimate by choice.

    Arguments:
        f: a function that draws random numbers with NumPy (a generator made inside or passed in, or the functions of
            `numpy.random`) and returns a pytree of numbers and arrays.
        estimator: "path" differentiates the samples (reparametrisation; the draws alone, without this function, do
            the same); "score" weighs a run by the derivative of the log-density of all its draws, needs no derivative
            of `f` in the samples and is right for discrete draws, to every order; "measure" runs the rest of the
            program twice for each number drawn, and is of first order.
        samples: the number of runs whose mean is returned.
        baseline: with "score" and several samples, subtract from each run the mean of the others, which leaves the
            expectation as it is and lowers the variance.

    Each estimate is unbiased where the expectation may be differentiated under the integral: with "path", `f` has to be
    continuous in the samples. Returns a function of the arguments of `f`.

    Raises:
        NoRule: a draw has no path (or no log-density, or no measure-valued derivative) in a parameter that is traced.
        NotDifferentiable: a second derivative of "measure".

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
    if samples < 1:
        raise ValueError(f"samples is {samples}; an expectation takes at least one")
    runs: dict[str, Callable[..., list[Value]]] = {"path": _by_path, "score": _by_score, "measure": _by_measure}

    read_f = read(f)

    @derivative(expectation, f, estimator=estimator, samples=samples, baseline=baseline)
    def estimated(*args: Value, **kwargs: Value) -> Value:
        program = functools.partial(read_f, *args, **kwargs)
        values = runs[estimator](program, samples, baseline)
        return optree.tree_map(lambda *parts: sum(parts[1:], parts[0]) / samples, *values) if samples > 1 else values[0]

    return estimated


class Path(Handler[Sampled]):
    """Reparametrised draws, the default: a sample moves with its parameters."""

    def depend(self, sample: Sample) -> Value:
        return sample.path()


def _by_path(program: Function, samples: int, baseline: bool) -> list[Value]:
    values = []
    for _ in range(samples):
        with Path():
            values.append(program())
    return values


class Score(Handler[Sampled]):
    """Draws that do not move; the logarithm of their density is kept, as a function of the parameters."""

    def enter(self) -> None:
        self.log_density: Value = 0.0

    def depend(self, sample: Sample) -> Value:
        self.log_density = self.log_density + sample.log_density()
        return sample.value


def _by_score(program: Function, samples: int, baseline: bool) -> list[Value]:
    """Runs times a factor that is 1 and has the derivatives of the density, relative to it, of every order."""
    runs, factors = [], []
    for _ in range(samples):
        with Score() as score:
            runs.append(program())
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
    """Draws that do not move: all plain samples, and those with traced parameters by their number among them."""

    def enter(self) -> None:
        self.taken: list[Value] = []
        self.samples: list[tuple[int, Sample]] = []

    def take(self, thunk: Callable[[], Value]) -> Value:
        self.taken.append(take(thunk))
        return self.taken[-1]

    def depend(self, sample: Sample) -> Value:
        self.samples.append((len(self.taken) - 1, sample))
        return sample.value


class Another(Handler[Draw, Sampled]):
    """A run whose first draws are given; the later ones are fresh."""

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
    """Runs with the derivative by each number drawn: of the rest of the program after two other draws of it."""
    return [_measured(program) for _ in range(samples)]


def _measured(program: Function) -> Value:
    with Recorded() as recorded:
        total = program()
    for place, sample in recorded.samples:
        for name, parameter in sample.traced().items():
            if order(gathered(parameter)) > 1:
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
    """The plain result of a run after some draws, the last of which has another number at an index."""
    other = np.array(sample, np.result_type(sample, end))
    other[index] = end
    with Another([*before, other[()]]):
        return plain_tree(program())


def _element(parameter: Value, value: Value, index: Value) -> Value:
    """The element of a parameter that an element of the sample belongs to."""
    if np.ndim(parameter) == 0:
        return parameter
    return np.broadcast_to(gathered(parameter), np.shape(value))[index]


# How draws are reached.


def draw(distribution: Distribution, original: Function, seed: Function, *args: Value, **kwargs: Value) -> Value:
    """A draw of a distribution by a method of a generator, with perhaps traced parameters.

    `seed` draws from the same generator the seed of one for estimators that need other samples.
    """
    parameters, size = distribution.bound(args, kwargs)
    traced = {name: gathered(p) for name, p in parameters.items()}
    for p in map(plain, traced.values()):
        if type(p) is Batched:
            _check_batch(distribution, original, p.owner)
    if distribution.name in STEADY and any(isinstance(plain(p), Tracer) for p in traced.values()):
        plain_parameters, value = _drawn_again(distribution, original, traced, size)
    else:
        plain_parameters = {name: plain_tree(value) for name, value in parameters.items()}
        value = take(lambda: original(**plain_parameters, **size))
    if not traced_inside(tuple(parameters.values())) and not any(map(_looked_at, traced.values())):
        return value
    sample = Sample(distribution, value, traced, plain_parameters, seed)
    return Sampled.depend(sample) if handled(Sampled) else sample.path()


def _check_batch(distribution: Distribution, original: Function, batch: Value) -> None:
    """Refuse a draw that the members of a batch would not make alike, one after another.

    A generator that the function makes begins in the same state for each of them, so they share their noise.
    """
    generator = original.args[0] if isinstance(original, functools.partial) and original.args else None
    if batch not in getattr(generator, "batches", ()):
        raise NotBatched(
            f"the parameters of a draw of {distribution.name} differ among the members of a batch, and each would take "
            "another part of the stream of a generator from outside of vmap: make the generator in the function, with "
            "which the members share their noise, or draw the noise outside, and give it as an argument"
        )
    if distribution.name not in STEADY:
        raise NotBatched(
            f"a draw of {distribution.name} rejects candidates, so the members of a batch, whose parameters differ, "
            "would go on from different places of their streams: call the function once for each member"
        )


def _drawn_again(
    distribution: Distribution, original: Function, traced: dict[str, Value], size: dict[str, Value]
) -> tuple[dict[str, Value], Value]:
    """The parameters and the sample of a draw in a staged program or a batch, which draws when it runs.

    Each run begins where the generator was when the program was staged, so its noise is a constant of the program, as
    in a plain run of a function that makes its generator.
    """
    names, values = list(traced), list(map(underived, traced.values()))
    owner = getattr(original, "__self__", None)
    kept = copy.deepcopy(original if owner is None else owner)

    def again(*values: Value) -> Value:
        fresh = copy.deepcopy(kept)
        fresh = fresh if owner is None else getattr(fresh, original.__name__)
        return fresh(**dict(zip(names, values, strict=True)), **size)

    original(**dict(zip(names, map(example, values), strict=True)), **size)  # the stream goes on
    return dict(zip(names, values, strict=True)), take(lambda: CallBack(again, distribution.name)(*values))


def _looked_at(value: Value) -> bool:
    """Whether derivatives look at a value, or at what stands for all members of a batch."""
    inner = plain(value)
    return inner is not value or type(inner) is Batched and _looked_at(inner.primal)


def _method(name: str, distribution: Distribution) -> Function:
    def method(self: np.random.Generator, *args: Value, **kwargs: Value) -> Value:
        original = functools.partial(getattr(np.random.Generator, name), self)
        return draw(distribution, original, functools.partial(_seed, self), *args, **kwargs)

    return method


def _seed(generator: np.random.Generator) -> int:
    return int(np.random.Generator.integers(generator, 2**62))


def _replayed(name: str) -> Function:
    def method(self: np.random.Generator, *args: Value, **kwargs: Value) -> Value:
        return take(lambda: getattr(np.random.Generator, name)(self, *args, **kwargs))

    return method


class Generator(np.random.Generator):
    """NumPy's generator, whose draws may have traced parameters; checkpoints draw again what they drew first.

    Inside a derivative `numpy.random.default_rng` returns one. Around another generator's `bit_generator` it draws from
    the same stream, as `effgrad.stochastic.Generator(rng.bit_generator)`.
    """

    # The batches that it was made in.
    batches: tuple[Value, ...] = ()

    for _name, _distribution in DISTRIBUTIONS.items():
        locals()[_name] = _method(_name, _distribution)
    for _name in REPLAYED:
        locals()[_name] = _replayed(_name)

    def choice(  # type: ignore[override]
        self, a: Value, size: Value = None, replace: bool = True, p: Value = None, **options: Value
    ) -> Value:
        """Draw from `a`: with traced probabilities, an estimator other than "path" gives the derivative."""
        original = functools.partial(np.random.Generator.choice, self, **options)
        return _choose(original, functools.partial(_seed, self), a, size, replace, p)


def _choose(
    original: Function, seed: Function, a: Value, size: Value = None, replace: bool = True, p: Value = None
) -> Value:
    """A choice among elements: which are chosen is a draw, and the elements may be traced."""
    if not traced_inside((a, p)):
        return take(lambda: original(a, size, replace, p))
    if traced_inside(p) and not replace:
        raise NoRule("numpy's choice without replacement has no derivative rule in its probabilities")
    count = a if isinstance(a, int) else len(gathered(a))
    if traced_inside(p):
        places = draw(CHOICE, functools.partial(original, count, replace=True), seed, p, size=size)
    else:
        places = take(lambda: original(count, size, replace, p))
    return places if isinstance(a, int) else gathered(a)[places]


def _seeded(*args: Value, **kwargs: Value) -> Generator:
    generator = Generator(_default_rng(*args, **kwargs).bit_generator)
    generator.batches = tuple(_batches())
    return generator


def _batches() -> Iterator[Value]:
    """The batches around the current call."""
    frame = frames.get()
    while frame is not None:
        if isinstance(frame.activation, Batch):
            yield frame.activation
        frame = frame.below


def _of_module(name: str, distribution: Distribution) -> Calling:
    """The rule of a function of `numpy.random`, which draws from the generator that all programs share."""
    original = getattr(np.random, name)
    return Calling(lambda *args, **kwargs: draw(distribution, original, _shared_seed, *args, **kwargs))


def _shared_seed() -> int:
    return int(_randint(2**31 - 1))


def _replaying(name: str) -> Calling:
    original = getattr(np.random, name)
    return Calling(lambda *args, **kwargs: take(lambda: original(*args, **kwargs)))


_default_rng, _randint, _choice = np.random.default_rng, np.random.randint, np.random.choice
RULES: list[tuple[Value, str, Value]] = [
    # A generator made outside of the derivative is reached by its methods.
    *((np.random.Generator, name, Calling(vars(Generator)[name])) for name in (*DISTRIBUTIONS, *REPLAYED, "choice")),
    (np.random, "default_rng", Calling(_seeded)),
    *(
        (np.random, name, _of_module(name, distribution))
        for name, distribution in DISTRIBUTIONS.items() if hasattr(np.random, name)
    ),
    (np.random, "choice", Calling(functools.partial(_choose, _choice, _shared_seed))),
    *((np.random, name, _replaying(name)) for name in ("rand", "randn", "random", "random_sample", "randint")),
]  # fmt: skip
__all__ = ["Generator", "expectation"]
