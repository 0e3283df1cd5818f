"""Derivatives of random programs: paths against inverse distribution functions, estimators against expectations.

Statistical tests have fixed seeds, and bounds of five standard errors of the estimate.
"""

import numpy as np
import pytest
import scipy.stats as ss

from effgrad import NoRule, NotBatched, NotDifferentiable, checkpoint, compile, grad, jacobian, jvp, stochastic, vmap
from effgrad.modes import READABLE


def drawn(name, *parameters, size=None):
    return getattr(np.random.default_rng(3), name)(*parameters, size=size)


# Parameters, and the inverse and the distribution function by scipy.stats.
PATHS = {
    "normal": ((1.0, 2.0), ss.norm.ppf, ss.norm.cdf),
    "uniform": ((1.0, 3.0), lambda u, a, b: a + (b - a) * u, lambda x, a, b: (x - a) / (b - a)),
    "exponential": ((2.0,), lambda u, s: ss.expon.ppf(u, 0, s), lambda x, s: ss.expon.cdf(x, 0, s)),
    "rayleigh": ((2.0,), lambda u, s: ss.rayleigh.ppf(u, 0, s), lambda x, s: ss.rayleigh.cdf(x, 0, s)),
    "laplace": ((1.0, 2.0), ss.laplace.ppf, ss.laplace.cdf),
    "logistic": ((1.0, 2.0), ss.logistic.ppf, ss.logistic.cdf),
    "gumbel": ((1.0, 2.0), ss.gumbel_r.ppf, ss.gumbel_r.cdf),
    "lognormal": (
        (0.3, 0.5),
        lambda u, m, s: ss.lognorm.ppf(u, s, 0, np.exp(m)),
        lambda x, m, s: ss.lognorm.cdf(x, s, 0, np.exp(m)),
    ),
    "weibull": ((1.7,), ss.weibull_min.ppf, ss.weibull_min.cdf),
    "pareto": ((3.0,), ss.lomax.ppf, ss.lomax.cdf),
    "power": ((2.0,), ss.powerlaw.ppf, ss.powerlaw.cdf),
    "triangular": (
        (1.0, 2.0, 4.0),
        lambda u, a, b, c: ss.triang.ppf(u, (b - a) / (c - a), a, c - a),
        lambda x, a, b, c: ss.triang.cdf(x, (b - a) / (c - a), a, c - a),
    ),
    "standard_gamma": ((2.3,), ss.gamma.ppf, ss.gamma.cdf),
    "gamma": ((2.3, 1.5), lambda u, a, s: ss.gamma.ppf(u, a, 0, s), lambda x, a, s: ss.gamma.cdf(x, a, 0, s)),
    "chisquare": ((3.3,), ss.chi2.ppf, ss.chi2.cdf),
    "beta": ((2.3, 1.5), ss.beta.ppf, ss.beta.cdf),
    "f": ((3.0, 7.0), ss.f.ppf, ss.f.cdf),
    "standard_t": ((4.0,), ss.t.ppf, ss.t.cdf),
    "vonmises": ((0.3, 2.0), lambda u, m, k: ss.vonmises.ppf(u, k, m), lambda x, m, k: ss.vonmises.cdf(x, k, m)),
    "wald": (
        (1.5, 2.0),
        lambda u, m, k: ss.invgauss.ppf(u, m / k, 0, k),
        lambda x, m, k: ss.invgauss.cdf(x, m / k, 0, k),
    ),
}


@pytest.mark.parametrize("name", PATHS)
def test_path_keeps_the_distribution_function(name):
    parameters, inverse, distribution = PATHS[name]
    plain = drawn(name, *parameters, size=5)
    u, step = distribution(plain, *parameters), 1e-5
    for place, parameter in enumerate(parameters):

        def at(p, place=place):
            return [*parameters[:place], p, *parameters[place + 1 :]]

        slope = (inverse(u, *at(parameter + step)) - inverse(u, *at(parameter - step))) / (2 * step)
        value, tangent = jvp(lambda p, at=at: drawn(name, *at(p), size=5), (parameter,), (1.0,))
        np.testing.assert_array_equal(value, plain)
        np.testing.assert_allclose(tangent, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("mode", READABLE)
def test_every_reverse_mode_and_second_order(mode):
    expected = jvp(lambda a: drawn("gamma", a, 2.0), (2.3,), (1.0,))[1]
    assert grad(lambda a: drawn("gamma", a, 2.0), mode=mode)(2.3) == pytest.approx(expected, rel=1e-12)
    step = 1e-4
    u = ss.gamma.cdf(drawn("gamma", 2.3), 2.3)
    ends = [ss.gamma.ppf(u, a) for a in (2.3 - step, 2.3, 2.3 + step)]
    twice = grad(grad(lambda a: drawn("gamma", a)))(2.3)
    assert twice == pytest.approx((ends[0] - 2 * ends[1] + ends[2]) / step**2, rel=1e-3)


def test_multivariate_normal_has_the_covariance_it_is_given():
    """The mean of x x^T has the derivative of the covariance, in every direction."""
    cov, direction = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[0.3, -0.2], [-0.2, 0.7]])
    n = 4000

    def products(c):
        x = np.random.default_rng(1).multivariate_normal(np.ones(2), c, size=n) - 1
        return x[:, :, None] * x[:, None, :]

    tangents = jvp(products, (cov,), (direction,))[1]
    bound = 5 * np.std(tangents, axis=0) / np.sqrt(n)
    assert np.all(np.abs(np.mean(tangents, axis=0) - direction) < bound)


def test_dirichlet_stays_on_the_simplex():
    found = jacobian(lambda a: np.random.default_rng(1).dirichlet(a, size=400))(np.array([2.0, 0.5, 1.0]))
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12)
    # The mean is a / sum(a).
    exact = np.eye(3) / 3.5 - np.array([2.0, 0.5, 1.0])[:, None] / 3.5**2
    assert np.all(np.abs(found.mean(axis=0) - exact) < 5 * found.std(axis=0) / 20 + 1e-12)


@pytest.mark.parametrize("name", PATHS)
def test_a_compiled_program_draws_when_it_runs(name):
    """The sample follows the parameters, from the same state of the generator.

    One program is enough where the draw takes from the stream what does not depend on the parameters.
    """
    parameters = np.array(PATHS[name][0])

    def f(p):
        rng = np.random.default_rng(3)
        return np.sum(getattr(rng, name)(*p, size=4) ** 2) * rng.normal(p[0])

    value, gradient = compile(f), compile(grad(f))
    for scale in (1.0, 1.05, 0.97):
        assert value(parameters * scale) == pytest.approx(f(parameters * scale), rel=1e-13)
        np.testing.assert_allclose(gradient(parameters * scale), grad(f)(parameters * scale), rtol=1e-11)
    assert ("1 programs" in repr(gradient)) == (name in stochastic.STEADY)


def test_estimators_in_compiled_programs():
    def cost(rate):
        rng = np.random.default_rng(5)
        chosen = rng.choice(3, size=4, p=np.stack([rate / 9, 0.5, 0.5 - rate / 9]))
        return np.sum(chosen * rng.exponential(rate, size=4) ** 2)

    score = stochastic.expectation(cost, "score")
    compiled, second = compile(grad(score)), compile(grad(grad(score)))
    for rate in (3.0, 3.3, 2.1):
        assert compiled(rate) == pytest.approx(grad(score)(rate), rel=1e-12)
        assert second(rate) == pytest.approx(grad(grad(score))(rate), rel=1e-12)


A3 = np.array([1.0, 2.0, 5.0])


@pytest.mark.parametrize("name", PATHS)
def test_draws_that_differ_in_a_batch(name):
    """A member draws what it draws alone: the generator that the function makes is in the same state for each."""
    batch = np.array(PATHS[name][0]) * np.array([[1.0], [1.05], [0.97]])

    def f(p):
        rng = np.random.default_rng(3)
        return np.sum(getattr(rng, name)(*p, size=4) ** 2) * rng.normal(p[0])

    if name not in stochastic.STEADY:
        with pytest.raises(NotBatched, match="rejects candidates.*call the function once for each member"):
            vmap(f)(batch)
        return
    np.testing.assert_allclose(vmap(f)(batch), [f(p) for p in batch], rtol=1e-14)
    for derivative in (grad(f), jacobian(grad(f))):
        expected = np.stack([derivative(p) for p in batch])
        np.testing.assert_allclose(vmap(derivative)(batch), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(compile(vmap(derivative))(batch), expected, rtol=1e-12, atol=1e-12)
    total = grad(lambda batch: np.sum(vmap(f)(batch)))(batch)
    np.testing.assert_allclose(total, np.stack([grad(f)(p) for p in batch]), rtol=1e-12)


def test_estimators_in_a_batch():
    def cost(rate):
        rng = np.random.default_rng(5)
        return np.sum(rng.choice(3, size=4, p=np.stack([rate / 9, 0.5, 0.5 - rate / 9])) ** 2.0)

    score, rates = stochastic.expectation(cost, "score"), np.array([3.0, 2.1])
    np.testing.assert_allclose(vmap(grad(score))(rates), [grad(score)(r) for r in rates], rtol=1e-12)


def test_a_generator_from_outside_of_a_batch_is_refused():
    """Each member would draw from where the last one ended."""
    rng = np.random.default_rng(0)
    for source in (rng, np.random, stochastic.Generator(rng.bit_generator)):
        with pytest.raises(NotBatched, match="make the generator in the function.*or draw the noise outside"):
            vmap(lambda m, source=source: source.normal(m))(np.array([1.0, 2.0]))

    def inner(m):
        rng = np.random.default_rng(0)
        return vmap(lambda k: rng.normal(k))(np.array([m, 2.0]))

    with pytest.raises(NotBatched, match="make the generator in the function"):
        inner(1.0)
    np.testing.assert_array_equal(vmap(lambda m: np.random.default_rng(0).normal([m, 2.0]))(np.ones(2)).shape, (2, 2))


def test_a_generator_made_outside():
    """Its draws follow their parameters, and checkpoints draw again what they drew first: they took other numbers."""
    rng = np.random.default_rng(7)
    found = grad(lambda m: checkpoint(lambda: m * rng.normal(m, 2.0)) + m**2 * rng.random() + rng.choice(m * A3))(3.0)
    rng = np.random.default_rng(7)
    normal, uniform, chosen = rng.normal(3.0, 2.0), rng.random(), rng.choice(A3)
    assert found == pytest.approx(normal + 3.0 + 6.0 * uniform + chosen, rel=1e-14)


def legacy_module(seed):
    np.random.seed(seed)
    return np.random


MAKERS = {"Generator": np.random.default_rng, "RandomState": np.random.RandomState, "module": legacy_module}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", PATHS)
def test_every_source_of_draws(name, maker):
    """A generator made inside or outside, and that of the module: NumPy's values, and the paths of the plain sample."""
    make, parameters = MAKERS[maker], np.array(PATHS[name][0])
    inverse, distribution = PATHS[name][1:]
    plain = getattr(make(3), name)(*parameters, size=3)
    u, step = distribution(plain, *parameters), 1e-5
    slope = (inverse(u, *(parameters + step)) - inverse(u, *(parameters - step))) / (2 * step)

    def inside(p):
        return getattr(make(3), name)(*p, size=3)

    for made in (None, make):
        outside = None if made is None else made(3)
        f = inside if outside is None else lambda p, rng=outside: getattr(rng, name)(*p, size=3)
        value, tangent = jvp(f, (parameters,), (np.ones(len(parameters)),))
        np.testing.assert_array_equal(value, plain)
        np.testing.assert_allclose(tangent, slope, rtol=1e-5, atol=1e-7)
    if name not in stochastic.STEADY:  # with other parameters it would draw other noise
        return
    first = grad(lambda s: np.sum(inside(parameters * s) ** 2))
    assert grad(first)(1.0) == pytest.approx((first(1 + step) - first(1 - step)) / (2 * step), rel=1e-5)


DRAWS = {
    "normal": (0.0, 1.0), "standard_normal": (), "standard_exponential": (), "standard_cauchy": (),
    "standard_t": (5.0,), "standard_gamma": (2.0,),
    "poisson": (3.0,), "geometric": (0.3,), "vonmises": (0.0, 1.0), "binomial": (5, 0.5),
    "triangular": (0.0, 1.0, 2.0), "hypergeometric": (5, 5, 3), "permutation": (5,), "choice": (5,), "zipf": (3.0,),
    "multinomial": (5, [0.5, 0.5]), "dirichlet": ([1.0, 2.0],), "multivariate_normal": ([0.0, 0.0], np.eye(2)),
    "noncentral_chisquare": (3.0, 1.0), "logseries": (0.5,), "random": (), "uniform": (), "randn": (), "rand": (),
    "random_sample": (), "tomaxint": (), "integers": (10,), "randint": (10,), "permuted": (np.arange(5.0),),
}  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", DRAWS)
def test_checkpoints_draw_again_from_every_source(name, maker):
    make = MAKERS[maker]
    if not hasattr(make(0), name):
        pytest.skip(f"{maker} has no {name}")
    expected = 6.0 * np.sum(getattr(make(1), name)(*DRAWS[name]) ** 2.0)
    source = make(1)
    found = grad(lambda m: checkpoint(lambda: np.sum((m * getattr(source, name)(*DRAWS[name])) ** 2)))(3.0)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("maker", MAKERS)
def test_orders_of_traced_elements(maker):
    """The order is drawn, and the elements that it moves are traced; it is the order that NumPy draws."""
    make, weights, x = MAKERS[maker], np.arange(6.0) ** 2, np.linspace(1.0, 2.0, 6)

    def shuffled(rng, x):
        y = x * 1.0
        rng.shuffle(y)
        return y

    def list_shuffled(rng, x):
        y = [x[i] for i in range(6)]
        rng.shuffle(y)
        return np.array(y)

    forms = {
        "permutation": lambda rng, x: rng.permutation(x), "shuffle": shuffled, "list": list_shuffled,
        "rows": lambda rng, x: np.ravel(rng.permutation(np.reshape(x, (3, 2)))),
        "choice": lambda rng, x: rng.choice(x, 6), "twice": lambda rng, x: rng.permutation(rng.permutation(x)),
    }  # fmt: skip
    if maker == "Generator":
        forms["permuted"] = lambda rng, x: np.ravel(rng.permuted(np.reshape(x, (3, 2)), axis=1))
        forms["columns"] = lambda rng, x: np.ravel(rng.permutation(np.reshape(x, (3, 2)), axis=1))
        forms["choice of columns"] = lambda rng, x: np.ravel(rng.choice(np.reshape(x, (2, 3)), 3, axis=1))
    for form in forms.values():
        value = jvp(lambda x, form=form: form(make(2), x), (x,), (x,))[0]
        np.testing.assert_array_equal(value, form(make(2), x))
        gradient = grad(lambda x, form=form: checkpoint(lambda x: form(make(2), x) @ weights, x))(x)
        np.testing.assert_allclose(gradient @ x, form(make(2), x) @ weights, rtol=1e-13)


def test_a_batch_of_legacy_draws():
    batch = np.array([0.5, 1.0, 2.0])

    def f(m):
        return np.sum(np.random.RandomState(3).normal(m, 2.0, size=4) ** 2)

    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(m) for m in batch], rtol=1e-13)
    compiled = compile(grad(f))
    assert [compiled(m) for m in batch] == pytest.approx([grad(f)(m) for m in batch], rel=1e-13)
    rng = np.random.RandomState(3)
    with pytest.raises(NotBatched, match="make the generator in the function"):
        vmap(lambda m: rng.normal(m))(batch)


def test_samples_of_scipy_stats():
    """Their code is read down to the draws of a RandomState."""
    tangent = jvp(lambda m: ss.norm.rvs(loc=m, scale=2.0, size=3, random_state=0), (1.0,), (1.0,))[1]
    np.testing.assert_allclose(tangent, np.ones(3))
    value, tangent = jvp(lambda a: ss.gamma.rvs(a, size=3, random_state=0), (2.3,), (1.0,))
    u = ss.gamma.cdf(value, 2.3)
    np.testing.assert_allclose(tangent, (ss.gamma.ppf(u, 2.3 + 1e-5) - ss.gamma.ppf(u, 2.3 - 1e-5)) / 2e-5, rtol=1e-5)


def test_checkpoints_draw_the_same_numbers_again():
    def f(m):
        np.random.default_rng(7).permutation(3)
        return np.sum(np.sin(np.random.default_rng(7).normal(m, 1.0, size=3) * np.random.normal(m)))

    def stacked(m):
        return checkpoint(lambda m: checkpoint(f, m) * f(m), m)

    for mode in READABLE:
        np.random.seed(0)
        plain = grad(lambda m: f(m) * f(m), mode=mode)(1.0)
        np.random.seed(0)
        assert grad(stacked, mode=mode)(1.0) == pytest.approx(plain, rel=1e-12)
    np.random.seed(0)
    grad(stacked)(1.0)
    after = np.random.normal()
    np.random.seed(0)
    assert [np.random.normal() for _ in range(3)][2] == after  # running again has drawn nothing from the stream


# An expectation, and its exact derivative; the estimators that there are for it.
EXPECTATIONS = {
    "normal, location": (lambda rng, m: rng.normal(m, 1.5) ** 2, 0.7, 1.4, "path score measure"),
    "normal, scale": (lambda rng, s: rng.normal(0.7, s) ** 2, 1.5, 3.0, "path score measure"),
    "exponential": (lambda rng, s: rng.exponential(s) ** 2, 1.5, 6.0, "path score measure"),
    "gamma, scale": (lambda rng, s: rng.gamma(2.0, s), 1.5, 2.0, "path score measure"),
    "gamma, shape": (lambda rng, a: rng.gamma(a, 1.0) ** 2, 2.0, 5.0, "path score"),
    "beta": (lambda rng, a: rng.beta(a, 2.0), 3.0, 2 / 25, "path score"),
    "laplace": (lambda rng, s: rng.laplace(0.0, s) ** 2, 1.5, 6.0, "path score"),
    "standard t": (lambda rng, n: rng.standard_t(n) ** 2, 12.0, -0.02, "path score"),
    "f": (lambda rng, n: rng.f(5.0, n), 12.0, -0.02, "path score"),
    "wald": (lambda rng, m: rng.wald(m, 2.0) ** 2, 1.5, 3.0 + 3.375, "path score"),
    "von Mises": (lambda rng, k: np.cos(rng.vonmises(0.4, k) - 0.4), 2.0, 0.16422, "path score"),
    "von Mises, mean": (lambda rng, m: np.sin(rng.vonmises(m, 2.0)), 0.4, 0.69777 * np.cos(0.4), "path score"),
    "dirichlet": (lambda rng, a: rng.dirichlet([a, 2.0, 1.0])[0], 3.0, 3 / 36, "score"),
    "logarithmic series": (lambda rng, p: rng.logseries(p) * 1.0, 0.5, 1.6053, "score"),
    "poisson": (lambda rng, r: rng.poisson(r) ** 2.0, 3.0, 7.0, "score measure"),
    "binomial": (lambda rng, p: rng.binomial(5, p) ** 2.0, 0.3, 17.0, "score measure"),
    "geometric": (lambda rng, p: rng.geometric(p) * 1.0, 0.4, -1 / 0.16, "score"),
    "negative binomial": (lambda rng, p: rng.negative_binomial(3, p) * 1.0, 0.4, -3 / 0.16, "score"),
    "choice": (lambda rng, p: rng.choice(np.array([1.0, 4.0]), p=np.stack([p, 1 - p])), 0.3, -3.0, "score"),
    "draws in a chain": (lambda rng, r: rng.normal(rng.poisson(r) * r, 1.0), 2.0, 4.0, "score measure"),
    "a vector": (lambda rng, m: np.sum(rng.normal(m, 1.0, size=3) ** 2), 0.7, 4.2, "path score measure"),
}
CASES = [(name, estimator) for name, case in EXPECTATIONS.items() for estimator in case[3].split()]


def estimates(name, estimator, count=300):
    f, x = EXPECTATIONS[name][:2]
    rng = stochastic.Generator(np.random.PCG64(5))
    estimated = stochastic.expectation(lambda p: f(rng, p), estimator)
    return np.array([grad(estimated)(x) for _ in range(count)])


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "estimator"), CASES)
def test_estimator_is_unbiased(name, estimator):
    found = estimates(name, estimator)
    assert abs(found.mean() - EXPECTATIONS[name][2]) < 5 * found.std() / np.sqrt(len(found)) + 1e-9


def test_estimators_differ_in_variance():
    """For a smooth cost, paths vary less than the score, and measure-valued derivatives by a location less still."""
    path, score, measure = (estimates("normal, location", e).var() for e in ("path", "score", "measure"))
    assert measure < path < score


def poisson_gradients(baseline, order=1, count=80):
    rng = stochastic.Generator(np.random.PCG64(11))
    f = stochastic.expectation(lambda r: rng.poisson(r) ** 2.0, "score", samples=20, baseline=baseline)
    return np.array([(grad(f) if order == 1 else grad(grad(f)))(3.0) for _ in range(count)])


def test_baseline_lowers_the_variance_and_not_the_mean():
    plain, lower = poisson_gradients(False), poisson_gradients(True)
    assert lower.var() < plain.var()
    assert abs(lower.mean() - 7.0) < 5 * lower.std() / np.sqrt(len(lower))


def test_score_has_second_derivatives():
    found = poisson_gradients(False, order=2)
    assert abs(found.mean() - 2.0) < 5 * found.std() / np.sqrt(len(found))


def test_value_of_an_expectation_is_the_mean_of_its_runs():
    runs = [np.random.default_rng(0).normal(1.0) ** 2]
    for estimator in ("path", "score", "measure"):
        f = stochastic.expectation(lambda m: np.random.default_rng(0).normal(m) ** 2, estimator)
        assert jvp(f, (1.0,), (0.0,))[0] == runs[0]


REFUSED = {
    "a discrete draw": (lambda p: np.random.default_rng(0).poisson(p) * 1.0, "poisson.*in steps.*'score'"),
    "a choice": (lambda p: np.random.choice(2, p=np.stack([p, 1 - p])) * 1.0, "choice"),
    "noncentral": (lambda p: np.random.default_rng(0).noncentral_chisquare(3.0, p), "no rule; draw it from other"),
    "a draw of RandomState": (lambda p: np.random.RandomState(0).poisson(p) * 1.0, "poisson.*in steps.*'score'"),
    "score of a uniform": (
        stochastic.expectation(lambda p: np.random.default_rng(0).uniform(0.0, p), "score"), "uniform.*support moves",
    ),
    "measure of a shape": (
        stochastic.expectation(lambda p: np.random.default_rng(0).gamma(p), "measure"), "gamma.*in shape.*'path'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_draws_without_a_derivative_are_refused(name):
    f, reason = REFUSED[name]
    with pytest.raises(NoRule, match=reason):
        grad(f)(0.3)


def test_measure_has_a_first_derivative_alone():
    f = stochastic.expectation(lambda m: np.random.default_rng(0).normal(m) ** 2, "measure")
    with pytest.raises(NotDifferentiable, match="first derivative"):
        grad(grad(f))(1.0)
    with pytest.raises(ValueError, match="estimator is 'best'"):
        stochastic.expectation(f, "best")
    with pytest.raises(ValueError, match="samples is 0"):
        stochastic.expectation(f, samples=0)
    with pytest.raises(ValueError, match="samples is 1.5"):
        stochastic.expectation(f, samples=1.5)


def fresh(kind):
    """A generator with a fixed seed."""
    return {"Generator": np.random.default_rng, "RandomState": np.random.RandomState}[kind](3)


@pytest.mark.parametrize("kind", ["Generator", "RandomState", "numpy.random"])
def test_runs_that_draw_the_same_numbers_are_refused(kind):
    """Each run less the mean of all others is 0 then, and so was the derivative, silently."""

    def inside(rate):
        if kind == "numpy.random":
            np.random.seed(3)
            return np.random.poisson(rate) * 1.0
        return fresh(kind).poisson(rate) * 1.0

    with pytest.raises(NotDifferentiable, match="draw the same numbers"):
        grad(stochastic.expectation(inside, "score", samples=5))(3.0)
    assert grad(stochastic.expectation(inside, "score"))(3.0) == inside(3.0) * (inside(3.0) / 3 - 1)

    source = np.random if kind == "numpy.random" else fresh(kind)
    outside = stochastic.expectation(lambda rate: source.poisson(rate) * 1.0, "score", samples=400)
    assert abs(grad(outside)(3.0) - 1.0) < 0.5


def test_results_that_are_no_numbers_are_refused():
    with pytest.raises(NotDifferentiable, match="an output is a str"):
        grad(stochastic.expectation(lambda m: "text", "score"))(1.0)


def test_streams_are_numpys():
    rng, same = np.random.default_rng(0), np.random.default_rng(0)

    def f(m):
        mine = stochastic.Generator(rng.bit_generator)
        return mine.normal(m) + mine.integers(5) + mine.choice(3) * mine.gamma(2.0, m) + np.sum(mine.random(3))

    value = jvp(f, (1.5,), (1.0,))[0]
    assert value == same.normal(1.5) + same.integers(5) + same.choice(3) * same.gamma(2.0, 1.5) + np.sum(same.random(3))


def test_a_generator_of_the_program_s_surroundings_draws_once():
    """The derivative is that of location and scale, and the generator goes on from where NumPy would have left it."""
    outside, alone = np.random.default_rng(0), np.random.default_rng(0)
    slopes = grad(lambda x: outside.normal(x[0], x[1]))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(slopes, [1.0, alone.normal()], rtol=1e-15)
    assert outside.normal() == alone.normal()
