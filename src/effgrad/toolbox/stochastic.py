"""Randomness: draws whose parameters are traced.

A draw takes its plain sample from its generator, so its values and the stream of random numbers are NumPy's. By
default its derivative is the path derivative, by which the sample moves with the parameters
(`effgrad.toolbox.sampling`). `effgrad.toolbox.estimators` has the estimators that may replace it.
"""

import copy
import functools

from effgrad.arrays.batched_value import Batched
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, example, plain
from effgrad.arrays.written import read
from effgrad.effects import handled
from effgrad.effects.effect import activations, frames
from effgrad.errors import NoRule, NotBatched
from effgrad.functions.numpy.draws import take
from effgrad.functions.scipy.tables import Calling, Writing, traced_inside
from effgrad.modes.batched import Batch
from effgrad.program.operations import setitem
from effgrad.toolbox.callbacks import CallBack
from effgrad.toolbox.estimators import Sampled, expectation
from effgrad.toolbox.frozen import as_number_or_array, plain_tree, underived
from effgrad.toolbox.sampling import CHOICE, DISTRIBUTIONS, Distribution, Sample
from effgrad.vocabulary import Function, Value

# Distributions whose draws consume the same part of the stream for all parameters, so that later draws are the same for
# other parameters. All other distributions reject candidates, so a program has a separate path for each parameter.
STEADY = frozenset((
    "normal", "uniform", "exponential", "rayleigh", "laplace", "logistic", "gumbel", "lognormal", "weibull", "pareto",
    "power", "triangular", "wald", "multivariate_normal", "choice",
))  # fmt: skip
# Draws without parameters that could be traced.
REPLAYED = ("random", "standard_normal", "standard_exponential", "standard_cauchy", "integers", "bytes")
LEGACY = (
    "rand", "randn", "random", "random_sample", "randint", "random_integers", "ranf", "sample", "tomaxint",
    "standard_normal", "standard_exponential", "standard_cauchy", "bytes",
)  # fmt: skip
# Methods that may write to an array that they are given, which has to be the program's own.
WRITING = frozenset(("random", "standard_normal", "standard_exponential", "standard_gamma", "shuffle", "permuted"))


def draw(distribution: Distribution, original: Function, seed: Function, *args: Value, **kwargs: Value) -> Value:
    """Draw from a distribution by a method of a generator (`original`), with parameters that may be traced.

    `seed` draws, from the same generator, a seed for estimators that need other samples.
    """
    parameters, size = distribution.bound(args, kwargs)
    traced = {name: as_number_or_array(p) for name, p in parameters.items()}
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
    """Refuse a draw for which a batched run would differ from runs of the members one after another.

    A generator that the function itself makes begins in the same state for each member, so the members share its noise.
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
    """Return the parameters and the sample of a draw in a staged program or a batch, which draws when it runs.

    Each run begins with the generator's state when the program was staged. So the noise is a constant of the program,
    as in plain runs of a function that makes its generator.
    """
    names, values = list(traced), list(map(underived, traced.values()))
    owner = getattr(original, "__self__", None)
    kept = copy.deepcopy(original if owner is None else owner)

    def again(*values: Value) -> Value:
        fresh = copy.deepcopy(kept)
        fresh = fresh if owner is None else getattr(fresh, original.__name__)
        return fresh(**dict(zip(names, values, strict=True)), **size)

    original(**dict(zip(names, map(example, values), strict=True)), **size)  # so that the stream advances
    return dict(zip(names, values, strict=True)), take(lambda: CallBack(again, distribution.name)(*values))


def _looked_at(value: Value) -> bool:
    """Whether derivatives trace a value, or the array that stands for all members of a batch."""
    inner = plain(value)
    return inner is not value or type(inner) is Batched and _looked_at(inner.primal)


def _of_class(kind: Value, replayed: tuple[str, ...], integers: str, bound: Value) -> dict[str, Function]:
    """Return methods for a class of generators: draws with traced parameters, and draws that checkpoints repeat.

    `integers` is the name of the method that draws an integer below `bound`, for the seeds of estimators.
    """

    def seed(generator: Value) -> int:
        return int(getattr(kind, integers)(generator, bound))

    def drawn(name: str, distribution: Distribution) -> Function:
        def method(self: Value, *args: Value, **kwargs: Value) -> Value:
            original = functools.partial(getattr(kind, name), self)
            return draw(distribution, original, functools.partial(seed, self), *args, **kwargs)

        return method

    def with_original(name: str, rule: Function) -> Function:
        return lambda self, *args, **kwargs: rule(functools.partial(getattr(kind, name), self), *args, **kwargs)

    def choice(self: Value, *args: Value, **options: Value) -> Value:
        return _choose(functools.partial(kind.choice, self), functools.partial(seed, self), *args, **options)

    methods = {
        **{name: drawn(name, row) for name, row in DISTRIBUTIONS.items() if hasattr(kind, name)},
        **{name: with_original(name, _repeatable_draw) for name in replayed if hasattr(kind, name)},
        **{name: with_original(name, rule) for name, rule in ARRANGED.items() if hasattr(kind, name)},
        "choice": choice,
    }
    return methods | {name: _storing(name, methods[name]) for name in WRITING if name in methods}


def _storing(name: str, method: Function) -> Function:
    """Return a method of a generator that stores its result in the program's own array `out`, if there is one."""

    @functools.wraps(method)
    def called(self: Value, *args: Value, out: Value = None, **kwargs: Value) -> Value:
        if name != "shuffle":
            args, kwargs = tuple(map(read, args)), {key: read(value) for key, value in kwargs.items()}
        if out is None:
            return method(self, *args, **kwargs)
        traced, writable = isinstance(out, Tracer), isinstance(out, np.ndarray) and out.flags.forc
        fresh = np.empty(out.shape, out.dtype) if traced else np.empty_like(out) if writable else out
        setitem(method(self, *args, **kwargs, out=fresh), out, ...)
        return out

    called.hands_on = True  # type: ignore[attr-defined]
    return called


def _repeatable_draw(original: Function, *args: Value, **kwargs: Value) -> Value:
    return take(lambda: original(*args, **kwargs))


# Functions that put elements, which may be traced, into a random order. The draw is the order.


def _permutation(original: Function, x: Value, axis: int = 0) -> Value:
    if isinstance(x, int | np.integer):
        return take(lambda: original(x))
    x = as_number_or_array(x) if traced_inside(x) else np.asarray(x)
    order = take(lambda: original(np.shape(plain(x))[axis]))
    return np.take(x, order, axis=axis)


def _permuted(original: Function, x: Value, *, axis: int | None = None, out: Value = None) -> Value:
    if out is not None and np.shape(out) != np.shape(x):
        return original(plain_tree(x), axis=axis, out=out)  # raises NumPy's error
    x = as_number_or_array(x) if traced_inside(x) else np.asarray(x)
    shape = np.shape(plain(x))
    places = take(lambda: original(np.arange(np.size(plain(x))).reshape(shape), axis=axis))
    return np.ravel(x)[places]


def _shuffle(original: Function, x: Value, axis: int = 0) -> None:
    if isinstance(x, list):
        order = take(lambda: _shuffled(original, len(x)))
        x[:] = [x[i] for i in order]
    else:
        order = take(lambda: _shuffled(original, np.shape(plain(x))[axis]))
        setitem(np.take(read(x), order, axis=axis), x, ...)


def _shuffled(original: Function, count: int) -> Value:
    order = np.arange(count)
    original(order)
    return order


ARRANGED: dict[str, Function] = {"permutation": _permutation, "permuted": _permuted, "shuffle": _shuffle}


class Generator(np.random.Generator):
    """NumPy's generator, whose draws may have traced parameters; the rerun of a checkpoint repeats its first draws.

    Inside a derivative `numpy.random.default_rng` returns a generator of this class. To draw from the stream of another
    generator, write `effgrad.stochastic.Generator(rng.bit_generator)`.

    Arguments:
        bit_generator: the source of bits, as for `numpy.random.Generator`.

    Raises:
        NoRule: a draw has no derivative in a traced parameter; for example, a draw from a discrete distribution outside
            `expectation`.

    >>> from effgrad import grad, stochastic
    >>> def draw(mean):
    ...     return stochastic.Generator(np.random.PCG64(0)).normal(mean, 1.0) ** 2
    >>> grad(draw)(3.0) == 2 * np.random.default_rng(0).normal(3.0, 1.0)
    True
    """

    # The batches inside which the generator was made.
    batches: tuple[Value, ...] = ()

    def __init__(self, bit_generator: np.random.BitGenerator) -> None:
        super().__init__(bit_generator)

    locals().update(_of_class(np.random.Generator, REPLAYED, "integers", 2**62))


class LegacyGenerator(np.random.RandomState):
    """NumPy's `RandomState` with the same methods; inside a derivative `numpy.random.RandomState` returns one."""

    batches: tuple[Value, ...] = ()

    locals().update(_of_class(np.random.RandomState, LEGACY, "randint", 2**31 - 1))


def _choose(
    original: Function, seed: Function, a: Value, size: Value = None, replace: bool = True, p: Value = None,
    axis: int = 0, **options: Value,
) -> Value:  # fmt: skip
    """Choose among elements, which may be traced; the draw is of their indices."""
    original = functools.partial(original, **options)
    if not traced_inside((a, p)):
        along = {"axis": axis} if axis else {}
        return take(lambda: original(a, size, replace, p, **along))
    if traced_inside(p) and not replace:
        raise NoRule("numpy's choice without replacement has no derivative rule in its probabilities")
    count = a if isinstance(a, int) else np.shape(plain(as_number_or_array(a)))[axis]
    if traced_inside(p):
        places = draw(CHOICE, functools.partial(original, count, replace=True), seed, p, size=size)
    else:
        places = take(lambda: original(count, size, replace, p))
    return places if isinstance(a, int) else np.take(as_number_or_array(a), places, axis=axis)


def _seeded(*args: Value, **kwargs: Value) -> Generator:
    generator = Generator(_default_rng(*args, **kwargs).bit_generator)
    generator.batches = _batches()
    return generator


def _legacy(seed: Value = None) -> LegacyGenerator:
    generator = LegacyGenerator(seed)
    generator.batches = _batches()
    return generator


def _batches() -> tuple[Value, ...]:
    """Return the batches around the current call."""
    return tuple(activation for activation in activations(frames.get()) if isinstance(activation, Batch))


def _of_module(name: str, distribution: Distribution) -> Calling:
    """Return the rule of a function of `numpy.random`, which draws from the global generator."""
    original = getattr(np.random, name)
    return Calling(lambda *args, **kwargs: draw(distribution, original, _shared_seed, *args, **kwargs))


def _shared_seed() -> int:
    return int(_randint(2**31 - 1))


def _original(name: str, rule: Function) -> Calling:
    return Calling(functools.partial(rule, getattr(np.random, name)))


_default_rng, _randint, _choice = np.random.default_rng, np.random.randint, np.random.choice
RULES: list[tuple[Value, str, Value]] = [
    # The methods of NumPy's classes have rules for generators made outside of the derivative.
    *(
        (kind, name, (Writing if name in WRITING else Calling)(method))
        for kind, own in ((np.random.Generator, Generator), (np.random.RandomState, LegacyGenerator))
        for name, method in vars(own).items() if callable(method) and hasattr(kind, name) and not name.startswith("_")
    ),
    (np.random, "default_rng", Calling(_seeded)), (np.random, "RandomState", Calling(_legacy)),
    *(
        (np.random, name, _of_module(name, distribution))
        for name, distribution in DISTRIBUTIONS.items() if hasattr(np.random, name)
    ),
    (np.random, "choice", Calling(functools.partial(_choose, _choice, _shared_seed))),
    *((np.random, name, _original(name, _repeatable_draw)) for name in LEGACY if hasattr(np.random, name)),
    (np.random, "permutation", _original("permutation", _permutation)),
    (np.random, "shuffle", Writing(functools.partial(_shuffle, np.random.shuffle))),
]  # fmt: skip
__all__ = ["Generator", "expectation"]
