"""The examples of HIPS autograd, with `autograd.numpy` replaced by NumPy."""

import sys
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, numpy_for_autograd, program, stub
from scipy.integrate import odeint

import effgrad

HIPS = "HIPS/autograd"
WORDS = "a short text of letters"


def example(checkout: Checkout, name: str) -> Any:
    numpy_for_autograd()
    checkout.load("examples/data.py")
    return checkout.load(f"examples/{name}.py")


def letters(module: Any, length: int = 5) -> Any:
    """Three pieces of a text, one number out of 128 for each letter."""
    pieces = [module.string_to_one_hot(WORDS[at : at + length], 128) for at in (0, 6, 12)]
    return np.stack(pieces, axis=1)[:, :, 97:103]


@program(HIPS, "`rnn`: the log likelihood of texts by all weights")
def recurrent_text(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "rnn")
    texts = letters(module)
    weights = module.create_rnn_params(6, 4, 6, 0.3, np.random.RandomState(0))
    return lambda w: module.rnn_log_likelihood(w, texts, texts), weights


@program(HIPS, "`lstm`: the log likelihood of texts by all weights")
def memory_text(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "lstm")
    texts = letters(module)
    weights = module.init_lstm_params(6, 4, 6, 0.3, np.random.RandomState(0))
    return lambda w: module.lstm_log_likelihood(w, texts, texts), weights


@program(HIPS, "`bayesian_neural_net`: log probabilities of samples of weights")
def sampled_networks(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "bayesian_neural_net")
    size, _, logprob = module.make_nn_funs([1, 5, 1], 0.1, 0.01, lambda x: np.exp(-(x**2)))
    x, y = module.build_toy_dataset(6)
    return lambda w: logprob(w, x, y), np.random.RandomState(1).randn(3, size)


@program(HIPS, "`black_box_svi`: the variational objective by means and deviations")
def variational_objective(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "black_box_svi")

    def density(x: Any, _: Any) -> Any:
        return module.norm.logpdf(x[:, 1], 0, 1.35) + module.norm.logpdf(x[:, 0], 0, np.exp(x[:, 1]))

    def objective(parameters: Any) -> Any:
        return module.black_box_variational_inference(density, 2, 8)[0](parameters, 0)

    return objective, np.array([-1.0, 0.3, -0.5, -0.7])


@program(HIPS, "`mixture_variational_inference`: the lower bound of a mixture by all its parameters")
def variational_mixture(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "mixture_variational_inference")
    density = lambda x, t: np.logaddexp(*(np.sum(module.norm.logpdf(x, m, 0.7), axis=1) for m in (-1, 1)))  # noqa: E731

    def bound(parameters: Any) -> Any:
        return module.build_mog_bbsvi(density, 5, 3, np.random.RandomState(0))[1](parameters, 0)

    start = module.build_mog_bbsvi(density, 5, 3)[0](2, log_std_mean=-1.0)
    return bound, start


@program(HIPS, "`ica`: the log probability by weights, sources and noise, with Student's t")
def components(checkout: Checkout) -> tuple[Any, ...]:
    module, rng = example(checkout, "ica"), np.random.default_rng(0)
    _, _, logprob, unpack = module.make_ica_funs(4, 2)
    data = rng.normal(size=(5, 4))
    probability = lambda w, sources, noise: logprob(unpack(w), sources, np.exp(noise), data)  # noqa: E731
    return probability, rng.normal(size=8), rng.normal(size=(2, 5)), 0.2


@program(HIPS, "`deep_gaussian_process`: the likelihood by parameters of two layers and what is between")
def deep_process(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "deep_gaussian_process")
    module.X, module.y = module.build_step_function_dataset(n_data=6)
    module.n_data = 6
    size, likelihood, *_ = module.build_deep_gp(1, 1, module.rbf_covariance)
    return likelihood, 0.1 * np.random.RandomState(0).randn(size)


@program(HIPS, "`bayesian_optimization`: the expected improvement at a point, by a Gaussian process")
def improvement(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "bayesian_optimization")
    _, predict, _ = module.make_gp_funs(module.rbf_covariance, 2)
    x = np.linspace(0, 3, 5)[:, None]
    y = np.sin(2 * x[:, 0])

    def expected(at: Any, parameters: Any) -> Any:
        mean, covariance = predict(parameters, x, y, np.atleast_2d(at))
        return module.expected_new_max(mean, np.sqrt(np.diag(covariance)), module.defaultmax(y))

    return expected, np.array([1.3]), np.array([0.1, -1.0, 0.2, 0.3])


@program(HIPS, "`convnet`: the loss of pooling, tanh and softmax layers, by all weights in one vector")
def pooled(checkout: Checkout) -> tuple[Any, ...]:
    stub("data_mnist")
    module, rng = example(checkout, "convnet"), np.random.default_rng(0)

    layers = [module.maxpool_layer((2, 2)), module.tanh_layer(3), module.softmax_layer(2)]
    size, _, loss, _ = module.make_nn_funs((2, 4, 4), layers, 0.1)
    x, t = rng.normal(size=(3, 2, 4, 4)), np.eye(2)[[0, 1, 0]]
    return lambda w: loss(w, x, t), rng.normal(size=int(size))


@program(HIPS, "`generative_adversarial_net`: the objective by the weights of both networks")
def adversaries(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "generative_adversarial_net")
    rs = np.random.RandomState(0)
    make, data = module.init_random_params(0.5, [3, 6, 6, 4], rs), rs.rand(5, 4)
    judge = module.init_random_params(0.5, [4, 6, 6, 1], rs)
    objective = lambda m, j: module.gan_objective(m, j, data, 5, 3, np.random.RandomState(1))  # noqa: E731
    return objective, make, judge


@program(HIPS, "`variational_autoencoder`: the lower bound by the weights of both networks")
def autoencoder(checkout: Checkout) -> tuple[Any, ...]:
    module, rs = example(checkout, "variational_autoencoder"), np.random.RandomState(0)
    generate = module.init_net_params(0.5, [2, 6, 4], rs)
    recognise = module.init_net_params(0.5, [4, 6, 4], rs)
    data = np.sign(rs.randn(5, 4))
    return lambda g, r: module.vae_lower_bound(g, r, data, np.random.RandomState(1)), generate, recognise


@program(HIPS, "`hmm_em`: the logarithm of a partition function, by its natural parameters")
def partition(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "hmm_em")
    rs = np.random.RandomState(0)
    natural = [np.log(rs.dirichlet(np.ones(n), size=m)) for n, m in ((3, 1), (3, 3), (5, 3))]
    natural[0] = natural[0][0]
    texts = [np.array([0, 2, 4, 1]), np.array([3, 3, 1])]
    return lambda p: module.log_partition_function(p, texts), natural


@program(HIPS, "`negative_binomial_maxlike`: the log likelihood of counts by its two parameters")
def overdispersed(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "negative_binomial_maxlike")
    counts = np.array([0, 3, 1, 7, 2])
    return lambda r, p: module.negbin_loglike(r, p, counts), 2.3, 0.4


@program(HIPS, "`neural_net_regression`: the log posterior by all weights")
def regression(checkout: Checkout) -> tuple[Any, ...]:
    module = example(checkout, "neural_net_regression")
    weights = module.init_random_params(0.5, [1, 4, 4, 1], np.random.RandomState(0))
    x, y = module.build_toy_dataset(8)
    return lambda w: module.logprob(w, x, y) + module.log_gaussian(w, 10.0), weights


@program(HIPS, "`ode_net`: the loss of a network inside a differential equation, by all its weights")
def equation_network(checkout: Checkout) -> tuple[Any, ...]:
    module, rs = example(checkout, "ode_net"), np.random.RandomState(0)
    weights = module.init_nn_params(0.3, [2, 5, 2], rs)
    t = np.linspace(0, 1, 4)
    module.odeint = lambda f, y, t, args, rtol: odeint(f, y, t, args, rtol=1e-12, atol=1e-12)
    return lambda w, y: module.ode_pred(w, y, t), weights, np.array([1.0, 0.5])


@program(HIPS, "`fluidsim`: three steps of smoke, by the first velocities")
def smoke(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    module, rng = checkout.load("examples/fluidsim/fluidsim.py"), np.random.default_rng(0)
    picture = rng.uniform(size=(6, 6))
    run = lambda vx, vy: module.simulate(vx, vy, picture, 3)  # noqa: E731
    return run, 0.3 * rng.normal(size=(6, 6)), 0.3 * rng.normal(size=(6, 6))


@program(HIPS, "`wing`: drag and lift of an obstacle in a wind tunnel, by the occlusion of each cell")
def wing(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    module, rng = checkout.load("examples/fluidsim/wing.py"), np.random.default_rng(0)

    module.rows = module.cols = 12
    start = np.ones((12, 12)), np.zeros((12, 12))
    return lambda occlusion: module.simulate(*start, 2, occlusion), rng.normal(size=(12, 12))


def deriving(checkout: Checkout, name: str) -> Any:
    """An example whose `grad` is ours: it differentiates when it runs."""
    numpy_for_autograd()
    vars(sys.modules["autograd"]).update(
        grad=lambda f, argnum=0: effgrad.grad(f, argnum), value_and_grad=effgrad.value_and_grad
    )
    return checkout.load(f"examples/{name}.py")


@program(HIPS, "`rosenbrock`: its function, after its search for the minimum with `value_and_grad`")
def rosenbrock(checkout: Checkout) -> tuple[Any, ...]:
    return deriving(checkout, "rosenbrock").rosenbrock, np.array([0.3, -0.7])


@program(HIPS, "`hmm_em`: one step of expectation and maximisation, through a gradient of its own")
def expectations(checkout: Checkout) -> tuple[Any, ...]:
    module, rs = deriving(checkout, "hmm_em"), np.random.RandomState(0)
    start = [rs.dirichlet(np.ones(3)), rs.dirichlet(np.ones(3), size=3), rs.dirichlet(np.ones(5), size=3)]
    texts = [np.array([0, 2, 4, 1]), np.array([3, 3, 1])]

    def step(pi: Any, a: Any, b: Any) -> Any:
        _, counts = module.vgrad(module.log_partition_function)(list(map(np.log, (pi, a, b))), texts)
        return list(map(module.normalize, counts))

    return step, *start


@program(HIPS, "`negative_binomial_maxlike`: the parameters of a fit, by what they are fitted to")
def fitted(checkout: Checkout) -> tuple[Any, ...]:
    module = deriving(checkout, "negative_binomial_maxlike")
    return lambda x: module.fit_maxlike(x, 1.0), np.array([0.0, 3.0, 1.0, 7.0, 2.0, 12.0])


@program(HIPS, "`logistic_regression`: the loss by the weights, after 100 steps of its training")
def logistic(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    stub("autograd.test_util", check_grads=lambda f, modes: lambda x: None)
    module = deriving(checkout, "logistic_regression")
    return module.training_loss, np.array([0.3, -0.2, 0.5])


@program(HIPS, "`sinusoid`: a sine by the thousand terms of its series")
def series(checkout: Checkout) -> tuple[Any, ...]:
    stub("matplotlib", "matplotlib.pyplot")  # it saves its pictures
    return deriving(checkout, "sinusoid").fun, 0.7
