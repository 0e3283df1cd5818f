"""Loudness, smiles, curves, options, layers, poses, rocks, clusters, ratings, change points, networks and beams."""

import random
import sys
from typing import Any

import numpy as np
import scipy.linalg
from benchmarks.conformance.programs.checkout import Checkout, numpy_for_autograd, program, stub

DRAWS = np.random.default_rng(17)


@program("csteinmetz1/pyloudnorm", "`Meter.integrated_loudness`, `normalize.loudness`: gated loudness of a signal")
def loudness(checkout: Checkout) -> tuple[Any, ...]:
    package = checkout.package("pyloudnorm")

    def measured(signal: Any, target: Any) -> Any:
        meter = package.Meter(4000, block_size=0.05)
        loud = meter.integrated_loudness(signal)
        return loud, package.normalize.loudness(signal, loud, target)[::50], package.normalize.peak(signal, -1.0)[::70]

    return measured, DRAWS.normal(size=(400, 2)), -12.0


@program("wilsonchingg/logmmse", "`logmmse`: noise suppressed by log spectral amplitudes, by the signal")
def noise_suppression(checkout: Checkout) -> tuple[Any, ...]:
    estimator = checkout.load("logmmse/logmmse.py")
    t = np.arange(160) / 1000
    signal = np.sin(2 * np.pi * 90 * t) * (t > 0.06) + 0.1 * DRAWS.normal(size=160)
    return lambda x: estimator.logmmse(x, 1000, noise_frames=2)[0], signal


@program("ynouri/pysabr", "`lognormal_vol`, `normal_vol`, `alpha`: volatility smiles of the SABR model")
def smiles(checkout: Checkout) -> tuple[Any, ...]:
    package, black = checkout.package("pysabr"), checkout.package("pysabr.black")
    lognormal, normal = package.hagan_2002_lognormal_sabr, package.hagan_2002_normal_sabr

    def smile(forward: Any, vol: Any, beta: Any, rho: Any, volvol: Any) -> Any:
        alpha = lognormal.alpha(vol, forward, 2.0, beta, rho, volvol)
        other = normal.alpha(forward, 2.0, vol / 30, beta, rho, volvol)
        strikes = (0.02, 0.025, 0.04)
        found = [lognormal.lognormal_vol(k, forward, 2.0, alpha, beta, rho, volvol) for k in strikes]
        found += [normal.normal_vol(k, forward, 2.0, other, beta, rho, volvol) for k in strikes]
        found.append(black.lognormal_call(0.03, forward, 2.0, vol, 0.01))
        return *found, black.normal_call(0.03, forward, 2.0, vol, 0.01, cp="put")

    return smile, 0.028, 0.25, 0.6, -0.2, 0.4


@program("luphord/nelson_siegel_svensson", "`NelsonSiegelSvenssonCurve`, `betas_nss_ols`: interest rates, and a fit")
def interest_curves(checkout: Checkout) -> tuple[Any, ...]:
    package, calibrate = (
        checkout.package("nelson_siegel_svensson"),
        checkout.package("nelson_siegel_svensson.calibrate"),
    )
    times = np.array([0.0, 0.25, 1.0, 2.0, 5.0, 7.0, 10.0, 30.0])

    def curves(betas: Any, taus: Any, rates: Any) -> Any:
        curve = package.NelsonSiegelSvenssonCurve(*betas, *taus)
        fitted, _ = calibrate.betas_nss_ols(taus, times.copy(), rates)
        error = calibrate.errorfn_ns_ols(taus[0], times.copy(), rates)
        return curve(times.copy()), curve.forward(times), curve(3.0), curve.zero(0.5), fitted(times.copy()), error

    return curves, np.array([0.03, -0.02, 0.01, 0.015]), np.array([1.7, 4.2]), 0.03 + 0.005 * DRAWS.normal(size=8)


@program("bbcho/finoptions-dev", "American options by approximations and trees, by price, rate and volatility")
def american_options(checkout: Checkout) -> tuple[Any, ...]:
    stub("numdifftools")
    package = checkout.package("finoptions", "src")
    american, trees = package.basic_american_options, package.binomial_tree_options

    def prices(price: Any, rate: Any, sigma: Any) -> Any:
        data = {"S": price, "K": 100.0, "t": 0.5, "r": rate, "b": rate - 0.03, "sigma": sigma}
        options = [american.BSAmericanApproxOption(**data), american.BAWAmericanApproxOption(**data)]
        options += [
            kind(n=6, type="american", **data) for kind in (trees.CRRBinomialTreeOption, trees.JRBinomialTreeOption)
        ]
        options += [package.GBSOption(**data)]
        found = [part for option in options for part in (option.call(), option.put())]
        return [part["OptionPrice"] if isinstance(part, dict) else part for part in found]

    return prices, 97.0, 0.05, 0.3


@program("kitchenknif/PyTMM", "`TransferMatrix`: light through layers, by index, thickness and angle")
def thin_films(checkout: Checkout) -> tuple[Any, ...]:
    tmm = checkout.load("PyTMM/transferMatrix.py")

    def reflected(index: Any, thickness: Any, angle: Any) -> Any:
        found = []
        for pol in tmm.Polarization:
            layer = tmm.TransferMatrix.layer(index - 0.05j, thickness, 500.0, angle, pol)
            layer.appendRight(tmm.TransferMatrix.layer(1.4, 120.0, 500.0, angle, pol))
            r, t = tmm.solvePropagation(layer)
            found += [r, t, abs(r) ** 2, tmm.findReciprocalTransferMatrix(t, r).matrix]
        return found

    return reflected, 2.1, 90.0, 0.3


@program("edmundsj/rcwa", "`Solver.solve`: a mirror of layers and a grating, by their thickness and index")
def coupled_waves(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    stub("progressbar")
    package = checkout.package("rcwa")

    def mirror(thickness: Any, index: Any, wavelength: Any, angle: Any) -> Any:
        layers = [package.Layer(n=n, thickness=thickness) for n in (index, 1.45)]
        stack = package.LayerStack(
            *layers, incident_layer=package.Layer(n=1.0), transmission_layer=package.Layer(n=2.0)
        )
        source = package.Source(
            wavelength=wavelength, theta=angle, phi=0.2, pTEM=[0.6, 0.8j], layer=stack.incident_layer
        )
        results = package.Solver(stack, source, 1).solve()
        return results["RTot"], results["TTot"], abs(results["rx"]) ** 2

    return mirror, 0.3, 2.2, 1.3, 0.25


@program("utiasSTARS/liegroups", "`SE3`, `SO3`, `SE2`: exponentials, logarithms, Jacobians and products of poses")
def lie_groups(checkout: Checkout) -> tuple[Any, ...]:
    package = checkout.package("liegroups.numpy")

    def poses(first: Any, second: Any, points: Any, angles: Any) -> Any:
        a, b = package.SE3.exp(first), package.SE3.exp(second)
        change = a.inv().dot(b)
        turn = package.SO3.from_rpy(*angles)
        flat = package.SE2.exp(first[:3]).dot(package.SE2.exp(second[2:5]))
        return (
            change.log(),
            change.adjoint(),
            change.dot(points),
            package.SE3.odot(points[0]),
            package.SE3.left_jacobian(first),
            package.SE3.inv_left_jacobian(second),
            turn.log(),
            turn.to_rpy(),
            turn.to_quaternion(),
            flat.log(),
            package.SO3.from_quaternion(np.array([0.5, 0.5, -0.5, 0.5])).dot(turn).as_matrix(),
        )

    first, second = DRAWS.normal(size=(2, 6))
    return poses, first, second, DRAWS.normal(size=(3, 3)), np.array([0.3, -0.4, 0.7])


@program("bsmurphy/PyKrige", "`OrdinaryKriging`, `UniversalKriging`: estimates by places, data and variogram")
def kriging(checkout: Checkout) -> tuple[Any, ...]:
    scipy.linalg.pinv2 = scipy.linalg.pinv  # type: ignore[attr-defined]  # an old name of SciPy
    package = checkout.package("pykrige")

    def estimates(places: Any, data: Any, sill: Any, reach: Any) -> Any:
        found = []
        for model in ("gaussian", "spherical", "exponential", "hole-effect"):
            ordinary = package.ok.OrdinaryKriging(
                *places,
                data,
                variogram_model=model,
                variogram_parameters=[sill, reach, 0.1],
                anisotropy_scaling=1.5,
                anisotropy_angle=20.0,
            )
            found += ordinary.execute("points", np.array([0.3, 0.8]), np.array([0.2, 0.6]))
        universal = package.uk.UniversalKriging(
            *places,
            data,
            variogram_model="exponential",
            variogram_parameters=[sill, reach, 0.1],
            drift_terms=["regional_linear"],
        )
        return *found, *universal.execute("grid", np.array([0.3, 0.8]), np.array([0.2, 0.6]), backend="loop")

    return estimates, DRAWS.uniform(size=(2, 7)), DRAWS.normal(size=7), 1.3, 0.9


@program("joferkington/mplstereonet", "`stereonet_math`: planes, poles, rakes and means of orientations")
def stereonets(checkout: Checkout) -> tuple[Any, ...]:
    nets = checkout.load("mplstereonet/stereonet_math.py")

    def orientations(strike: Any, dip: Any, rake: Any) -> Any:
        lon, lat = nets.pole(strike, dip)
        crossing = nets.plane_intersection(strike[0], dip[0], strike[1], dip[1])
        mean, length = nets.mean_vector(lon, lat)
        return (
            lon,
            lat,
            *nets.rake(strike, dip, rake),
            *nets.plane(strike[0], dip[0], segments=5),
            *crossing,
            *mean,
            length,
            *nets.geographic2pole(lon, lat),
            *nets.geographic2plunge_bearing(lon, lat),
            nets.azimuth2rake(strike[0], dip[0], rake[0]),
            *nets.project_onto_plane(strike, dip, rake / 2, strike + 30),
            *nets.cone(40.0, dip[0], 12.0, segments=4),
            nets.angular_distance((lon[0], lat[0]), (lon[1:], lat[1:])),
            *nets.fisher_stats(lon, lat)[1:],
        )

    return orientations, np.array([31.0, 118.0, 47.0]), np.array([40.0, 63.0, 35.0]), np.array([25.0, 50.0, 70.0])


@program("rushter/MLAlgorithms", "`GaussianMixture`, `PCA`: clusters and components, by the data")
def mixtures(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    mixture, pca = checkout.package("mla.gaussian_mixture"), checkout.package("mla.pca")

    def clusters(data: Any) -> Any:
        random.seed(3)
        model = mixture.GaussianMixture(K=2, max_iters=3)
        model.fit(data)
        parts = pca.PCA(2)
        parts.fit(data)
        return model.likelihood[-1], np.array(model.means), np.array(model.covs), abs(parts.transform(data))

    return clusters, np.concatenate([DRAWS.normal(size=(6, 3)), 3 + 0.5 * DRAWS.normal(size=(5, 3))])


@program("patrickloeber/MLfromscratch", "`LDA`, `NaiveBayes`, `LogisticRegression`, `SVM`: classifiers, by the data")
def classifiers(checkout: Checkout) -> tuple[Any, ...]:
    names = {"lda": "LDA", "naivebayes": "NaiveBayes", "logistic_regression": "LogisticRegression", "svm": "SVM"}
    lda, bayes, logistic, svm = (
        getattr(checkout.load(f"mlfromscratch/{file}.py"), name) for file, name in names.items()
    )
    labels = np.array([0, 1, 2] * 4)

    def fitted(data: Any) -> Any:
        line, naive, model, machine = lda(1), bayes(), logistic(0.1, 8), svm(n_iters=3)
        line.fit(data, labels)
        naive.fit(data, labels)
        model.fit(data, labels > 1)
        machine.fit(data, labels - 0.5)
        return abs(line.transform(data)), naive._pdf(1, data[0]), model.weights, model.bias, machine.w, machine.b

    return fitted, DRAWS.normal(size=(12, 3)) + labels[:, None] * np.array([1.0, -0.5, 0.3])


@program("wiseodd/hipsternet", "`layer`: convolution, pooling and normalisation, with their own backward passes")
def layers_and_passes(checkout: Checkout) -> tuple[Any, ...]:
    layer = checkout.package("hipsternet.layer")

    def passes(images: Any, weights: Any, bias: Any) -> Any:
        out, cache = layer.conv_forward(images, weights, bias)
        relu, relu_cache = layer.lrelu_forward(out, 0.1)
        pooled, pool_cache = layer.maxpool_forward(relu)
        mean, mean_cache = layer.avgpool_forward(pooled)
        flat, norm_cache, running, _ = layer.bn_forward(mean.reshape(2, -1), 1.3, 0.2, (0.1, 0.9))
        back, gamma, beta = layer.bn_backward(flat**2, norm_cache)
        back = layer.maxpool_backward(layer.avgpool_backward(back.reshape(mean.shape), mean_cache), pool_cache)
        return flat, running, gamma, beta, *layer.conv_backward(layer.lrelu_backward(back, relu_cache), cache)

    return (
        passes,
        DRAWS.normal(size=(2, 2, 4, 4)),
        0.4 * DRAWS.normal(size=(3, 2, 3, 3)),
        0.1 * DRAWS.normal(size=(3, 1)),
    )


@program("sublee/trueskill", "`TrueSkill.rate`, `quality`: ratings of teams after a game, by the ratings before")
def skills(checkout: Checkout) -> tuple[Any, ...]:
    package = checkout.package("trueskill")

    def rated(means: Any, deviations: Any) -> Any:
        env = package.TrueSkill(beta=4.2, draw_probability=0.1)  # it multiplies a matrix that is a list
        players = [env.create_rating(mu, sigma) for mu, sigma in zip(means, deviations, strict=True)]
        teams = [(players[0], players[1]), (players[2],), (players[3],)]
        after = [rating for team in env.rate(teams, ranks=[0, 1, 1]) for rating in team]
        return [r.mu for r in after], [r.sigma for r in after], env.quality(teams), env.expose(players[0])

    return rated, np.array([25.0, 21.0, 29.0, 24.0]), np.array([7.0, 5.0, 6.0, 8.0])


@program("sublee/glicko2", "`Glicko2.rate`: a rating after games, by the ratings of all players")
def glicko_ratings(checkout: Checkout) -> tuple[Any, ...]:
    glicko = checkout.load("glicko2.py")

    def rated(means: Any, deviations: Any, volatility: Any) -> Any:
        env = glicko.Glicko2(tau=0.5)
        one, *others = (env.create_rating(mu, phi, volatility) for mu, phi in zip(means, deviations, strict=True))
        after = env.rate(one, list(zip((glicko.WIN, glicko.LOSS, glicko.DRAW), others, strict=True)))
        return after.mu, after.phi, after.sigma, env.quality_1vs1(one, others[0])

    return rated, np.array([1500.0, 1400.0, 1550.0, 1700.0]), np.array([200.0, 30.0, 100.0, 300.0]), 0.06


@program("hildensia/bayesian_changepoint_detection", "`online_changepoint_detection`: run lengths, by data and prior")
def change_points(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("bayesian_changepoint_detection", "bayesian_changepoint_detection")
    models = checkout.package("bayesian_changepoint_detection.bayesian_models")
    likelihoods = checkout.package("bayesian_changepoint_detection.online_likelihoods")
    hazard = checkout.package("bayesian_changepoint_detection.hazard_functions")

    def run_lengths(data: Any, beta: Any, rate: Any) -> Any:
        one, several = likelihoods.StudentT(alpha=0.3, beta=beta, kappa=1.0, mu=0.0), likelihoods.MultivariateT(dims=2)
        hazards = lambda r: hazard.constant_hazard(rate, r)  # noqa: E731
        found, _ = models.online_changepoint_detection(data[:, 0], hazards, one)
        other, _ = models.online_changepoint_detection(data[:4], hazards, several)
        return found[:, -1], other[:, -1], one.beta, several.mu

    return run_lengths, np.concatenate([DRAWS.normal(size=(4, 2)), 3 + DRAWS.normal(size=(3, 2))]), 0.4, 20.0


@program("ajdawson/eofs", "`Eof`: components and maps of a field, rebuilt and projected, by the field")
def empirical_functions(checkout: Checkout) -> tuple[Any, ...]:
    sys.modules["dask"] = None  # type: ignore[assignment]  # it is optional, and decides where indices are computed
    standard = checkout.package("eofs.standard", "lib")
    weights = np.sqrt(np.cos(np.deg2rad(np.array([-30.0, 0.0, 40.0]))))[:, None]

    def components(field: Any) -> Any:
        solver = standard.Eof(field, weights=weights)
        return (
            solver.eigenvalues(3),
            abs(solver.pcs(npcs=2, pcscaling=1)),
            solver.varianceFraction(2),
            solver.northTest(2),
            solver.reconstructedField(2),
            abs(solver.eofsAsCovariance(2, pcscaling=1)),
            solver.totalAnomalyVariance(),
            abs(solver.projectField(field, 2, eofscaling=1)),
        )

    return components, DRAWS.normal(size=(7, 3, 2)) * np.array([3.0, 1.0])


@program("dgasmith/opt_einsum", "`contract`, `contract_expression`: products of many tensors, by the tensors")
def contractions(checkout: Checkout) -> tuple[Any, ...]:
    package = checkout.package("opt_einsum")

    def contracted(a: Any, b: Any, c: Any) -> Any:
        expression = package.contract_expression("ij,jkl,lk->i", a.shape, b.shape, c.shape)
        fixed = package.contract_expression("ij,jkl,lm->ikm", a.shape, b, c.shape, constants=[1])
        with package.shared_intermediates():
            shared = package.contract("ij,jkl->ikl", a, b), package.contract("ij,jkl,lm->m", a, b, c)
        ring = package.contract("ij,jkl,lm,mi->k", a, b, c, c.T @ c, optimize="dp")
        return ring, expression(a, b, c.T.T), *shared, fixed(a, c)

    return contracted, DRAWS.normal(size=(3, 4)), DRAWS.normal(size=(4, 3, 3)), DRAWS.normal(size=(3, 3))


@program(
    "MichalDanielDobrzanski/DeepLearningPython", "`Network.SGD`: a network after mini-batches, by weights and data"
)
def networks_by_hand(checkout: Checkout) -> tuple[Any, ...]:
    network = checkout.load("network.py")
    shapes = [(3, 4), (2, 3)]

    def trained(weights: Any, biases: Any, data: Any, rate: Any) -> Any:
        random.seed(2)
        net = network.Network([4, 3, 2])
        net.weights, net.biases = list(weights), list(biases)
        net.SGD([(x[:, None], np.array([[1.0], [0.0]])) for x in data], 2, 2, rate)
        return net.feedforward(data[0][:, None]), *net.weights, *net.biases

    weights, biases = [DRAWS.normal(size=shape) for shape in shapes], [DRAWS.normal(size=(n, 1)) for n, _ in shapes]
    return trained, weights, biases, DRAWS.normal(size=(4, 4)), 0.7


@program("pmocz/constrainedtransport-python", "its functions: a step of magnetised gas, by its state and potential")
def magnetic_gas(checkout: Checkout) -> tuple[Any, ...]:
    gas, dx, gamma = checkout.load("constrainedtransport.py"), 0.2, 5 / 3

    def step(density: Any, speed: Any, pressure: Any, potential: Any) -> Any:
        bx, by = gas.getCurl(potential, dx)
        field = gas.getBavg(bx, by)
        state = gas.getConserved(density, *speed, pressure, *field, gamma, dx**2)
        values = [*gas.getPrimitive(*state, *field, gamma, dx**2), *field]
        slopes = [gas.getGradient(v, dx) for v in values]
        faces = [gas.extrapolateInSpaceToFace(v, *slope, dx) for v, slope in zip(values, slopes, strict=True)]
        across = gas.getFlux(*[part for face in faces for part in face[:2]], gamma)
        along = gas.getFlux(*[part for k in (0, 2, 1, 3, 5, 4) for part in faces[k][2:]], gamma)
        mass = gas.applyFluxes(state[0], across[0], along[0], dx, 0.01)
        return mass, *gas.constrainedTransport(bx, by, across[4], along[4], dx, 0.01), gas.getDiv(bx, by, dx)

    x, y = np.meshgrid(*[2 * np.pi * (np.arange(5) + 0.2) / 5] * 2)
    waves = [0.1 * np.sin(x + k) * np.cos(y - 2 * k) + 0.03 * np.cos(x - k) for k in range(5)]
    return step, 1 + waves[0], np.stack(waves[1:3]), 2 + waves[3], waves[4]


@program("nmayorov/pyins", "`earth`, `transform`, `integrate`: places, gravity and an inertial sensor's path")
def inertial_navigation(checkout: Checkout) -> tuple[Any, ...]:
    earth, transform = checkout.package("pyins.earth"), checkout.package("pyins.transform")
    path = checkout.package("pyins._numba_integrate")

    def navigated(lla: Any, velocity: Any, turn: Any, rates: Any, forces: Any) -> Any:
        count = len(rates) + 1
        places, speeds, frames = np.empty((count, 3)), np.empty((count, 3)), np.empty((count, 3, 3))
        places[0], speeds[0], frames[0] = lla, velocity, transform.mat_from_rph(turn)
        path.integrate(np.full(count - 1, 0.1), places, speeds, frames, rates, forces, 0, True)
        ecef = transform.lla_to_ecef(lla)
        return (
            places[-1],
            speeds[-1],
            frames[-1],
            ecef,
            transform.ecef_to_lla(ecef + 100 * velocity),
            earth.gravity_n(*lla[::2]),
            earth.gravitation_ecef(lla),
            earth.curvature_matrix(*lla[::2]),
            transform.perturb_lla(lla, velocity),
            transform.compute_lla_difference(lla, lla + 0.001 * velocity),
            transform.mat_to_rph(frames[-1]),
            transform.mat_en_from_ll(lla[0], lla[1]),
        )

    rates, forces = 0.05 * DRAWS.normal(size=(2, 3, 3))
    return (
        navigated,
        np.array([58.0, 56.0, 400.0]),
        np.array([3.0, -2.0, 1.0]),
        np.array([5.0, -8.0, 40.0]),
        rates,
        forces,
    )


@program("opticspy/lightpipes", "`GaussBeam`, `Lens`, `Fresnel`, `Steps`: a beam through lenses, by their lengths")
def beams(checkout: Checkout) -> tuple[Any, ...]:
    light = checkout.package("LightPipes")

    def propagated(waist: Any, focus: Any, distance: Any) -> Any:
        field = light.GaussBeam(light.Begin(5e-3, 6e-5, 12), waist)
        through = light.Lens(light.Tilt(field, 1e-5, 2e-5), focus)
        found = [light.Forvard(through, distance), light.Fresnel(through, distance), light.Steps(through, distance, 2)]
        found += [light.Zernike(light.GaussAperture(field, waist), 2, 0, 2e-3, 0.3)]
        return [*(light.Intensity(f) for f in found), light.Power(found[0]), light.Strehl(found[3])]

    return propagated, 1e-3, 0.7, 0.25


@program("AllenDowney/ModSimPy", "`run_solve_ivp`, `State`, `Vector`: flights and epidemics by their parameters")
def modelled_systems(checkout: Checkout) -> tuple[Any, ...]:
    stub("IPython", "IPython.display")
    modsim = checkout.load("modsim.py")

    def slopes(t: Any, state: Any, system: Any) -> Any:
        x, y, vx, vy = state
        speed = modsim.Vector(vx, vy)
        drag = -system.drag * modsim.vector_mag(speed) * modsim.vector_hat(speed) * modsim.vector_mag(speed)
        return vx, vy, drag.x, drag.y - 9.8

    def modelled(angle: Any, drag: Any) -> Any:
        vx, vy = modsim.pol2cart(angle, 20.0)
        start = modsim.State(x=0.0, y=1.0, vx=vx, vy=vy)
        system = modsim.System(init=start, drag=drag, t_end=1.2)
        results, details = modsim.run_solve_ivp(system, slopes, rtol=1e-9, atol=1e-10)
        v, w = modsim.Vector(vx, vy), modsim.Vector(1.0, 2.0)
        return (
            np.asarray(results.iloc[-1]),
            modsim.vector_dot(v, w),
            modsim.vector_dist(v, w),
            modsim.vector_diff_angle(v, w),
            np.asarray(modsim.vector_proj(v, w)),
            modsim.cart2pol(vx, vy),
        )

    return modelled, 0.8, 0.02
