"""Control, wind farms, colours, portfolios, learning: packages with classes of their own."""

import importlib
import sys
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

RNG = np.random.default_rng(0)
CONTROL = "python-control/python-control"
SCRATCH = "eriklindernoren/ML-From-Scratch"
COLOUR = "colour-science/colour"
A = np.array([[0.0, 1.0], [-2.0, -0.7]])
B, C = np.array([[0.0], [1.0]]), np.array([[1.0, 0.3]])


def numexpr() -> None:
    """A stub of numexpr: its texts evaluated by Python, with NumPy's functions."""

    def evaluate(text: str) -> Any:
        frame = sys._getframe(1)
        return eval(text, {**vars(np), **frame.f_globals, **frame.f_locals})

    stub("numexpr", evaluate=evaluate)


@program(CONTROL, "`StateSpace`: a frequency response and a feedback, by the matrices")
def frequency_response(checkout: Checkout) -> tuple[Any, ...]:
    control = checkout.package("control")

    def response(a: Any, b: Any, c: Any) -> Any:
        system = control.StateSpace(a, b, c, 0.0)
        closed = control.feedback(system, 1)
        return system(2.0j), closed.A, control.dcgain(system)

    return response, A, B, C


@program(CONTROL, "`TransferFunction`: series, parallel, feedback, a value at a frequency, by coefficients")
def transfer(checkout: Checkout) -> tuple[Any, ...]:
    control = checkout.package("control")

    def value(numerator: Any, denominator: Any) -> Any:
        one = control.TransferFunction(numerator, denominator)
        other = control.TransferFunction([1.0], [1.0, 0.5])
        return control.feedback(one * other + one)(1.3j)

    return value, np.array([1.0, 2.0]), np.array([1.0, 0.4, 3.0])


@program(CONTROL, "`lqr`, `lyap`: gains and Gramians, by the matrices and costs")
def riccati(checkout: Checkout) -> tuple[Any, ...]:
    control = checkout.package("control")

    def gains(a: Any, b: Any, q: Any) -> Any:
        k, s, _ = control.lqr(a, b, q @ q.T, np.eye(1), method="scipy")
        return k, s, control.lyap(a, q @ q.T, method="scipy")

    return gains, A, B, np.array([[1.0, 0.2], [0.1, 0.8]])


@program(CONTROL, "`forced_response`: of a linear system in time, by its matrices")
def time_response(checkout: Checkout) -> tuple[Any, ...]:
    control, times = checkout.package("control"), np.linspace(0, 2, 6)

    def response(a: Any, b: Any, c: Any) -> Any:
        system = control.StateSpace(a, b, c, 0.0)
        return control.forced_response(system, times, np.sin(times)).outputs

    return response, A, B, C


@program(CONTROL, "`ctrb`, `obsv`, `acker`, `pade`: controllability, a placed gain, a delay")
def placement(checkout: Checkout) -> tuple[Any, ...]:
    control = checkout.package("control")

    def matrices(a: Any, b: Any, delay: Any) -> Any:
        gain = control.acker(a, b, [-1.0, -2.0])
        return control.ctrb(a, b), control.obsv(a, C), gain, *control.pade(delay, 2)

    return matrices, A, B, 0.7


def floris(checkout: Checkout) -> None:
    """Let single modules of floris be loaded: their base class is a plain one, and numexpr is NumPy."""
    numexpr()
    checkout.bare("floris", "floris")
    stub("floris.core", BaseModel=type("BaseModel", (), {"NUM_EPS": 0.001}))
    radians = {"cosd": np.cos, "sind": np.sin, "tand": np.tan}
    stub("floris.utilities", **{name: lambda angle, f=f: f(np.radians(angle)) for name, f in radians.items()})


@program("NREL/floris", "`GaussVelocityDeficit`: the wake of a turbine by its thrust, yaw and turbulence")
def wake(checkout: Checkout) -> tuple[Any, ...]:
    floris(checkout)
    module = checkout.load("floris/core/wake_velocity/gauss.py")
    model = module.GaussVelocityDeficit()
    x, y = np.meshgrid(np.linspace(100, 1500, 5), np.linspace(-80, 80, 4))
    wind = np.full((1, 5, 4, 1), 8.0)

    def deficit(thrust: Any, yaw: Any, turbulence: Any, shift: Any) -> Any:
        return model.function(
            0.0, 0.0, 90.0, 0.3, shift, yaw, turbulence, thrust, 90.0, 126.0,
            x=x.T[None, :, :, None], y=y.T[None, :, :, None], z=np.full((1, 5, 4, 1), 100.0),
            u_initial=wind, wind_veer=0.0,
        )  # fmt: skip

    return deficit, 0.8, 10.0, 0.06, 3.0


def colour(checkout: Checkout) -> Any:
    stub("imageio", "networkx", "pygraphviz", "trimesh")
    return checkout.package("colour")


@program(COLOUR, "`XYZ_to_Lab`, `XYZ_to_Oklab`, `XYZ_to_Jzazbz`, `XYZ_to_IPT`: spaces of colours")
def colour_spaces(checkout: Checkout) -> tuple[Any, ...]:
    module = colour(checkout)
    names = (
        "XYZ_to_Lab",
        "XYZ_to_Luv",
        "XYZ_to_Oklab",
        "XYZ_to_Jzazbz",
        "XYZ_to_IPT",
        "XYZ_to_ICtCp",
        "XYZ_to_OSA_UCS",
    )
    return lambda xyz: [getattr(module, name)(xyz) for name in names], np.array([0.206, 0.122, 0.0514])


@program(COLOUR, "`delta_E`: differences of colours by CIE 1976, 1994, 2000 and CMC")
def colour_differences(checkout: Checkout) -> tuple[Any, ...]:
    module = colour(checkout)
    methods = ("CIE 1976", "CIE 1994", "CIE 2000", "CMC", "CAM02-UCS", "DIN99")
    found = lambda a, b: [module.delta_E(a, b, method=m) for m in methods]  # noqa: E731
    return found, np.array([48.0, -10.2, 23.1]), np.array([51.0, 14.0, 27.3])


@program(COLOUR, "`XYZ_to_CIECAM02`: the appearance of a colour")
def colour_appearance(checkout: Checkout) -> tuple[Any, ...]:
    module = colour(checkout)
    white = np.array([95.05, 100.0, 108.88])

    def appearance(xyz: Any, adapting: Any) -> Any:
        found = module.XYZ_to_CIECAM02(xyz, white, adapting, 20.0)
        return found.J, found.C, found.h, found.s, found.Q, found.M

    return appearance, np.array([57.06, 43.06, 31.96]), 31.83


@program(COLOUR, "`sRGB_to_XYZ`, `chromatic_adaptation`, `CCT_to_uv`: adaptation and temperature of colours")
def colour_adaptation(checkout: Checkout) -> tuple[Any, ...]:
    module = colour(checkout)

    def adapted(rgb: Any, temperature: Any) -> Any:
        xyz = module.sRGB_to_XYZ(rgb)
        white, other = np.array([0.95, 1.0, 1.09]), np.array([1.1, 1.0, 0.36])
        return module.chromatic_adaptation(xyz, white, other), module.CCT_to_uv(temperature, "Krystek 1985")

    return adapted, np.array([0.456, 0.309, 0.248]), 5500.0


@program("pmocz/finitevolume-python", "two steps of a compressible flow on a grid")
def finite_volumes(checkout: Checkout) -> tuple[Any, ...]:
    flow, dx, gamma = checkout.load("finitevolume.py"), 0.2, 5 / 3

    def moved(rho: Any, vx: Any, vy: Any, pressure: Any) -> Any:
        held = flow.getConserved(rho, vx, vy, pressure, gamma, dx**2)
        for _ in range(2):
            found = flow.getPrimitive(*held, gamma, dx**2)
            step = 0.1 * np.min(dx / (np.sqrt(gamma * found[3] / found[0]) + np.sqrt(found[1] ** 2 + found[2] ** 2)))
            sides = []
            for f in found:
                sides.append(flow.extrapolateInSpaceToFace(f, *flow.getGradient(f, dx), dx))
            x = flow.getFlux(*(s for part in sides for s in (part[0], part[1])), gamma)
            y = flow.getFlux(*(sides[i][j] for i in (0, 2, 1, 3) for j in (2, 3)), gamma)
            y = (y[0], y[2], y[1], y[3])
            held = [flow.applyFluxes(h, fx, fy, dx, step) for h, fx, fy in zip(held, x, y, strict=True)]
        return held

    shape = (5, 5)
    return (
        moved,
        RNG.uniform(1, 2, shape),
        0.3 * RNG.normal(size=shape),
        0.3 * RNG.normal(size=shape),
        RNG.uniform(2, 3, shape),
    )


@program("rougier/from-python-to-numpy", "`smoke_solver`: steps of density and velocity, in place")
def solved_smoke(checkout: Checkout) -> tuple[Any, ...]:
    solver = checkout.load("code/smoke_solver.py")

    def steps(u: Any, v: Any, density: Any) -> Any:
        u, v, density = np.copy(u), np.copy(v), np.copy(density)
        before = [np.zeros((7, 7)) + 0.1 for _ in range(3)]
        solver.vel_step(5, u, v, before[0], before[1], 0.01, 0.1)
        solver.dens_step(5, density, before[2], u, v, 0.01, 0.1)
        return u, v, density

    return steps, RNG.normal(size=(7, 7)), RNG.normal(size=(7, 7)), RNG.uniform(size=(7, 7))


@program("flaport/fdtd", "`curl_E`, `curl_H`: five steps of electromagnetic waves")
def waves(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("fdtd", "fdtd")
    stub("fdtd.visualization", visualize=None)
    grid = importlib.import_module("fdtd.grid")

    def moved(e: Any, h: Any) -> Any:
        for _ in range(5):
            e = e + 0.3 * grid.curl_H(h)
            h = h - 0.3 * grid.curl_E(e)
        return e, h

    return moved, RNG.normal(size=(4, 4, 3, 3)), RNG.normal(size=(4, 4, 3, 3))


@program("flaport/fdtd", "`Grid`: steps of a grid with a source, a boundary and an object, by its permittivity")
def grid_of_waves(checkout: Checkout) -> tuple[Any, ...]:
    fdtd = checkout.package("fdtd")

    def field(permittivity: Any, amplitude: Any) -> Any:
        grid = fdtd.Grid(shape=(8, 7, 1), grid_spacing=1e-7)
        grid[0:2, :, :] = fdtd.PML(name="left")
        grid[5:7, 2:4, 0] = fdtd.Object(permittivity=permittivity, name="block")
        grid[4, 3, 0] = fdtd.PointSource(period=20, amplitude=amplitude)
        grid.run(8, progress_bar=False)
        return grid.E

    return field, 2.5, 1.3


@program("robertmartin8/PyPortfolioOpt", "`objective_functions`: risk, return and costs of a portfolio by its weights")
def portfolio(checkout: Checkout) -> tuple[Any, ...]:
    stub(
        "cvxpy", sum=np.sum, sqrt=np.sqrt, norm=np.linalg.norm, Variable=type("Variable", (), {}),
        sum_squares=lambda w: np.sum(w**2), quad_form=lambda w, matrix, **_: w @ matrix @ w,
        Parameter=lambda value, **_: value,
    )  # fmt: skip
    checkout.bare("pypfopt", "pypfopt")
    module = importlib.import_module("pypfopt.objective_functions")
    half, past = RNG.normal(size=(4, 4)), RNG.normal(0.01, 0.1, size=(12, 4))

    def objectives(w: Any, mu: Any) -> Any:
        cov = half @ half.T
        return (
            module.portfolio_variance(w, cov), module.sharpe_ratio(w, mu, cov, 0.01), module.L2_reg(w, 0.3),
            module.quadratic_utility(w, mu, cov, 2.0), module.transaction_cost(w, np.full(4, 0.25)),
            module.ex_ante_tracking_error(w, cov, np.full(4, 0.25)),
            module.ex_post_tracking_error(w, past, past.mean(axis=1)),
        )  # fmt: skip

    return objectives, np.array([0.1, 0.4, 0.2, 0.3]), np.array([0.05, 0.07, 0.02, 0.1])


@program("vollib/py_vollib", "`black_scholes` and its Greeks in Python, by five numbers")
def greeks(checkout: Checkout) -> tuple[Any, ...]:
    checkout.package("py_vollib")
    price = importlib.import_module("py_vollib.ref_python.black_scholes").black_scholes
    analytical = importlib.import_module("py_vollib.ref_python.black_scholes.greeks.analytical")
    names = ("delta", "gamma", "theta", "vega", "rho")
    return lambda *x: [price("c", *x), *(getattr(analytical, n)("p", *x) for n in names)], 100.0, 95.0, 0.5, 0.03, 0.25


@program(SCRATCH, "`Dense`, `RNN`, `BatchNormalization`: layers, with weights and states in objects")
def scratch_layers(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("mlfromscratch", "mlfromscratch")
    checkout.bare("mlfromscratch.deep_learning", "mlfromscratch/deep_learning")
    layers = importlib.import_module("mlfromscratch.deep_learning.layers")

    def outputs(x: Any, w: Any, u: Any) -> Any:
        rnn = layers.RNN(3, input_shape=(4, 2))
        rnn.U, rnn.W, rnn.V = u, w, u.T
        norm = layers.BatchNormalization()
        norm.set_input_shape((2,))
        norm.initialize(None)
        return rnn.forward_pass(x), norm.forward_pass(x[:, 0])

    return outputs, RNG.normal(size=(5, 4, 2)), RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))


@program(SCRATCH, "`Conv2D`, `UpSampling2D`: images as columns")
def scratch_images(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("mlfromscratch", "mlfromscratch")
    checkout.bare("mlfromscratch.deep_learning", "mlfromscratch/deep_learning")
    layers = importlib.import_module("mlfromscratch.deep_learning.layers")

    def outputs(image: Any, w: Any, bias: Any) -> Any:
        filters = layers.Conv2D(2, (3, 3), input_shape=(1, 6, 6))
        filters.W, filters.w0 = w, bias
        up = layers.UpSampling2D(input_shape=(2, 6, 6))
        return up.forward_pass(filters.forward_pass(image))

    return outputs, RNG.normal(size=(1, 1, 6, 6)), RNG.normal(size=(2, 1, 3, 3)), RNG.normal(size=(2, 1))


@program(SCRATCH, "`activation_functions`, `loss_functions`: all of them, with their own gradients")
def scratch_activations(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("mlfromscratch", "mlfromscratch")
    checkout.bare("mlfromscratch.deep_learning", "mlfromscratch/deep_learning")
    module = importlib.import_module("mlfromscratch.deep_learning.activation_functions")
    stub("mlfromscratch.utils", accuracy_score=None)
    losses = importlib.import_module("mlfromscratch.deep_learning.loss_functions")
    wanted = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])

    def all_of_them(x: Any) -> Any:
        made = [getattr(module, name)() for name in ("Sigmoid", "TanH", "ReLU", "LeakyReLU", "ELU", "SELU", "SoftPlus")]
        p = module.Softmax()(x)
        cost = losses.CrossEntropy()
        return [g for f in made for g in (f(x), f.gradient(x))] + [cost.loss(wanted, p), cost.gradient(wanted, p)]

    return all_of_them, RNG.normal(size=(2, 3))


@program(SCRATCH, "`GaussianMixtureModel`: likelihoods of points under a component")
def scratch_mixture(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("mlfromscratch", "mlfromscratch")
    checkout.bare("mlfromscratch.unsupervised_learning", "mlfromscratch/unsupervised_learning")
    stub(
        "mlfromscratch.utils",
        **{name: None for name in ("normalize", "euclidean_distance", "calculate_covariance_matrix", "Plot")},
    )
    module = importlib.import_module("mlfromscratch.unsupervised_learning.gaussian_mixture_model")

    def likelihoods(points: Any, mean: Any, half: Any) -> Any:
        model = module.GaussianMixtureModel(k=1)
        return model.multivariate_gaussian(points, {"mean": mean, "cov": half @ half.T + np.eye(2)})

    return likelihoods, RNG.normal(size=(4, 2)), RNG.normal(size=2), RNG.normal(size=(2, 2))


@program("scikit-learn", "`MLPRegressor`: predictions of a network by all its weights")
def perceptron_of_sklearn(_: None) -> tuple[Any, ...]:
    network = importlib.import_module("sklearn.neural_network")
    x, y = RNG.normal(size=(8, 3)), RNG.normal(size=8)
    model = network.MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=3, random_state=0).fit(x, y)

    def predictions(weights: Any, x: Any) -> Any:
        model.coefs_ = weights
        return model._forward_pass_fast(x, check_input=False)

    return predictions, [np.array(w) for w in model.coefs_], x


@program("scikit-learn", "`metrics`: errors and losses of predictions")
def metrics_of_sklearn(_: None) -> tuple[Any, ...]:
    metrics = importlib.import_module("sklearn.metrics")
    true = RNG.uniform(1, 2, size=6)

    def errors(p: Any) -> Any:
        return (
            metrics.mean_squared_error(true, p), metrics.mean_absolute_error(true, p), metrics.r2_score(true, p),
            metrics.mean_squared_log_error(true, p), metrics.mean_gamma_deviance(true, p),
        )  # fmt: skip

    return errors, RNG.uniform(1, 2, size=6)


@program("scikit-learn", "`pairwise`: kernels and distances between points")
def pairwise_of_sklearn(_: None) -> tuple[Any, ...]:
    pairwise = importlib.import_module("sklearn.metrics.pairwise")
    fixed = RNG.uniform(0.1, 1, size=(3, 2))

    def kernels(x: Any) -> Any:
        names = (
            "rbf_kernel",
            "polynomial_kernel",
            "sigmoid_kernel",
            "laplacian_kernel",
            "cosine_similarity",
            "euclidean_distances",
        )
        return [getattr(pairwise, name)(x, fixed) for name in names]

    return kernels, RNG.uniform(0.1, 1, size=(4, 2))


@program("scikit-learn", "`Ridge`, `PCA`, `StandardScaler`: predictions of fitted models by the points")
def models_of_sklearn(_: None) -> tuple[Any, ...]:
    linear = importlib.import_module("sklearn.linear_model")
    decomposition, scaling = (importlib.import_module(f"sklearn.{n}") for n in ("decomposition", "preprocessing"))
    x, y = RNG.normal(size=(9, 3)), RNG.normal(size=9)
    ridge, pca, scaler = linear.Ridge().fit(x, y), decomposition.PCA(2).fit(x), scaling.StandardScaler().fit(x)
    classes = linear.LogisticRegression().fit(x, y > 0)

    def predictions(x: Any) -> Any:
        return ridge.predict(x), pca.transform(x), scaler.transform(x), classes.predict_proba(x)

    return predictions, RNG.normal(size=(4, 3))


@program("scikit-learn", "`GaussianProcessRegressor.predict`, `GaussianMixture.score_samples`: by the points")
def processes_of_sklearn(_: None) -> tuple[Any, ...]:
    process, mixture = (importlib.import_module(f"sklearn.{n}") for n in ("gaussian_process", "mixture"))
    x, y = RNG.normal(size=(9, 2)), RNG.normal(size=9)
    model = process.GaussianProcessRegressor(process.kernels.RBF(1.0), optimizer=None, alpha=0.1).fit(x, y)
    points = mixture.GaussianMixture(2, random_state=0).fit(x)

    def predictions(x: Any) -> Any:
        return *model.predict(x, return_std=True), points.score_samples(x)

    return predictions, RNG.normal(size=(4, 2))


@program("python-acoustics/python-acoustics", "`reflection_factor_plane_wave`: of a porous wall, by angle and flow")
def reflection(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("acoustics", "acoustics")
    reflection = checkout.load("acoustics/reflection.py")
    frequencies = np.array([125.0, 500.0, 2000.0])

    def factors(angle: Any, flow: Any) -> Any:
        impedance = reflection.impedance_delany_and_bazley(frequencies, flow)
        return reflection.reflection_factor_plane_wave(impedance, angle)

    return factors, 0.7, 20000.0
