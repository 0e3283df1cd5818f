"""Likelihoods, kernels and distances."""

import collections
import importlib
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, numpy_for_autograd, program, stub

RNG = np.random.default_rng(0)
DESIGN = np.column_stack([np.ones(12), RNG.normal(size=(12, 2))])
COUNTS = RNG.poisson(2.0, size=12).astype(float)


@program("statsmodels", "`Poisson`, `Logit`, `GLM`: log likelihoods of regressions by coefficients")
def regressions(_: None) -> tuple[Any, ...]:
    models = importlib.import_module("statsmodels.api")
    binary = (COUNTS > 1).astype(float)

    def likelihoods(b: Any) -> Any:
        glm = models.GLM(COUNTS, DESIGN, family=models.families.NegativeBinomial(alpha=0.5))
        return [models.Poisson(COUNTS, DESIGN).loglike(b), models.Logit(binary, DESIGN).loglike(b), glm.loglike(b)]

    return likelihoods, np.array([0.3, -0.2, 0.4])


@program("statsmodels", "`BetaModel.loglikeobs`: a regression of proportions by its parameters")
def beta_regression(_: None) -> tuple[Any, ...]:
    module = importlib.import_module("statsmodels.othermod.betareg")
    model = module.BetaModel(np.linspace(0.1, 0.9, 12), DESIGN)
    return model.loglikeobs, np.array([0.3, -0.2, 0.4, 1.2])


@program("statsmodels", "`OrderedModel.loglike`: an ordinal regression by coefficients and thresholds")
def ordinal_regression(_: None) -> tuple[Any, ...]:
    module = importlib.import_module("statsmodels.miscmodels.ordinal_model")
    model = module.OrderedModel(np.minimum(COUNTS, 3).astype(int), DESIGN[:, 1:], distr="logit")
    return model.loglike, np.array([-0.2, 0.4, -1.0, 0.1, 0.2])


@program("scikit-learn", "`RationalQuadratic`, `Matern` and `ExpSineSquared` kernels by the points")
def kernels(_: None) -> tuple[Any, ...]:
    k = importlib.import_module("sklearn.gaussian_process.kernels")
    fixed = RNG.normal(size=(3, 2))
    kernel = 1.5 * k.RationalQuadratic(0.8) + k.ExpSineSquared(1.2) * k.Matern(0.7, nu=2.5)
    return lambda points: kernel(points, fixed), RNG.normal(size=(5, 2))


@program("scikit-learn", "`GaussianProcessRegressor.log_marginal_likelihood` by the logarithms of its parameters")
def marginal_likelihood(_: None) -> tuple[Any, ...]:
    process = importlib.import_module("sklearn.gaussian_process")
    k, x = process.kernels, np.linspace(0, 3, 8)[:, None]
    model = process.GaussianProcessRegressor(1.0 * k.RBF(1.0) + k.WhiteKernel(0.1), optimizer=None)
    model.fit(x, np.sin(3 * x[:, 0]))
    return lambda theta: model.log_marginal_likelihood(theta), np.array([0.1, -0.3, -2.0])


@program("pyhf", "`Model.logpdf`: a counting experiment with uncertain background, by its parameters")
def counting_experiment(_: None) -> tuple[Any, ...]:
    pyhf = importlib.import_module("pyhf")
    model = pyhf.simplemodels.uncorrelated_background([12.0, 11.0], [50.0, 52.0], [3.0, 7.0])
    data = [51.0, 48.0, *model.config.auxdata]
    return lambda parameters: model.logpdf(parameters, data), np.array([0.8, 1.05, 0.97])


@program("CamDavidsonPilon/lifelines", "`WeibullFitter`: the likelihood of right-censored lifetimes by its parameters")
def survival(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    checkout.package("autograd_gamma", at="../CamDavidsonPilon+autograd-gamma")
    fitter = checkout.package("lifelines").WeibullFitter()
    times, seen = np.array([1.0, 2.5, 0.7, 4.0, 3.3]), np.array([1, 1, 0, 1, 0])
    likelihood = fitter._negative_log_likelihood_right_censoring
    return lambda p: likelihood(p, (times, None), seen, np.zeros(5), np.ones(5)), np.array([2.0, 1.3])


@program("pymanopt/pymanopt", "`SymmetricPositiveDefinite`, `Sphere`: a distance, a retraction, a projection")
def manifolds(checkout: Checkout) -> tuple[Any, ...]:
    at = "src" if (checkout.folder / "src").is_dir() else "."
    stub("pymanopt._version", __version__="")
    module = checkout.package("pymanopt.manifolds", at=at)
    positive, sphere = module.SymmetricPositiveDefinite(3), module.Sphere(4)

    def numbers(half: Any, point: Any, step: Any) -> Any:
        matrix = half @ half.T + np.eye(3)
        moved = sphere.retraction(point / np.linalg.norm(point), step)
        return positive.dist(np.diag([1.0, 2.0, 3.0]), matrix), moved, sphere.projection(moved, step)

    return numbers, RNG.normal(size=(3, 3)), RNG.normal(size=4), RNG.normal(size=4)


@program("ddbourgin/numpy-ml", "`MultinomialHMM.log_likelihood` of a sequence by its three tables")
def hidden_markov(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("numpy_ml", "numpy_ml")
    vars(collections)["Hashable"] = collections.abc.Hashable  # its name before Python 3.10
    module = importlib.import_module("numpy_ml.hmm.hmm")
    sequence = np.array([[0, 2, 1, 1, 0]])

    def likelihood(moves: Any, emits: Any, start: Any) -> Any:
        return module.MultinomialHMM(moves, emits, start, eps=0.0).log_likelihood(sequence)

    return (
        likelihood, np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
        np.array([0.6, 0.4]),
    )  # fmt: skip


@program("HIPS/autograd", "the Gaussian process of its examples: the likelihood by parameters")
def gaussian_process(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    example = checkout.load("examples/gaussian_process.py")
    _, _, likelihood = example.make_gp_funs(example.rbf_covariance, 2)
    x = np.linspace(0, 3, 7)[:, None]
    return lambda p: likelihood(p, x, np.sin(x[:, 0])), np.array([0.1, -1.0, 0.2, 0.3])


@program("HIPS/autograd", "the mixture of Gaussians of its examples: the log likelihood by all parameters")
def mixture(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    example = checkout.load("examples/gmm.py")
    parameters = example.init_gmm_params(3, 2, 0.7, np.random.RandomState(0))
    points = RNG.normal(size=(6, 2))
    return lambda p: example.gmm_log_likelihood(p, points), parameters
