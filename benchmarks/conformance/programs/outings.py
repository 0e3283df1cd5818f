"""Molecules, image quality, robots, tides, controllers, smoke, features and prices: by their measurements."""

from typing import Any

import numpy as np
import pandas
from benchmarks.conformance.programs.checkout import Checkout, program, stub

DRAWS = np.random.default_rng(41)


@program("charnley/rmsd", "`kabsch_rmsd`, `quaternion_rmsd`, `reorder_hungarian`: distances of molecules, by places")
def superposed(checkout: Checkout) -> tuple[Any, ...]:
    rmsd = checkout.package("rmsd.calculate_rmsd")
    atoms = np.array([6, 1, 1, 8, 7, 1])

    def distances(one: Any, other: Any, weights: Any) -> Any:
        found = [rmsd.rmsd(one, other), rmsd.kabsch_rmsd(one, other), rmsd.kabsch_rmsd(one, other, translate=True)]
        found += [rmsd.kabsch_rmsd(one, other, W=weights), rmsd.kabsch_rmsd(one, other, W=weights, translate=True)]
        found += [rmsd.quaternion_rmsd(one, other), rmsd.kabsch_fit(one, other), rmsd.kabsch_fit(one, other, weights)]
        order = rmsd.reorder_hungarian(atoms, atoms, one, other)
        found += [rmsd.kabsch_rmsd(one, other[order]), rmsd.get_cm(atoms, one)]
        found += [rmsd.get_inertia_tensor(atoms, one), rmsd.rotation_matrix_vectors(one[0], other[1])]
        order = rmsd.reorder_inertia_hungarian(atoms, atoms, one, other)
        swapped, *_, order = rmsd.check_reflections(atoms, atoms, one, other, reorder_method=rmsd.reorder_distance)
        return [*found, rmsd.kabsch_rmsd(one, other[order]), swapped]

    one = DRAWS.normal(size=(6, 3))
    return distances, one, one + 0.3 * DRAWS.normal(size=(6, 3)), DRAWS.uniform(0.5, 2.0, 6)


@program("andrewekhalel/sewar", "`ssim`, `msssim`, `vifp`, `uqi`, `q2n` and nine others: likeness of two images")
def likeness(checkout: Checkout) -> tuple[Any, ...]:
    sewar = checkout.package("sewar.full_ref")

    def measures(truth: Any, image: Any) -> Any:
        found = [sewar.mse(truth, image), sewar.rmse(truth, image), sewar.psnr(truth, image, MAX=1.0)]
        found += [sewar.rmse_sw(truth, image)[0], sewar.uqi(truth, image), *sewar.ssim(truth, image, MAX=1.0)]
        found += [sewar.ergas(truth, image), sewar.scc(truth, image), sewar.rase(truth, image), sewar.sam(truth, image)]
        found += [sewar.msssim(truth, image, MAX=1.0), sewar.vifp(truth, image), sewar.q2n(truth, image, ws=16)]
        return [*found, sewar.psnrb(truth, image)]

    truth = DRAWS.uniform(0.2, 0.8, (48, 44, 2))
    return measures, truth, truth + 0.05 * DRAWS.normal(size=truth.shape)


@program("engnadeau/pybotics", "`Robot.fk`, `jacobian_world`, `compute_joint_torques`, `optimize_accuracy`: by angles")
def jointed(checkout: Checkout) -> tuple[Any, ...]:
    robot, models = checkout.package("pybotics.robot"), checkout.package("pybotics.predefined_models")
    optimization = checkout.package("pybotics.optimization")
    qs, places = DRAWS.normal(size=(4, 6)), 200 * DRAWS.normal(size=(4, 3))

    def arm(angles: Any, wrench: Any, table: Any, pose: Any) -> Any:
        made = robot.Robot.from_parameters(models.ur10())
        calibrated = robot.Robot.from_parameters(table)
        made.joints = angles
        handler = optimization.OptimizationHandler(calibrated, True, [True] * 3 + [False] * 3, False)
        vector = handler.generate_optimization_vector()
        errors = optimization.optimize_accuracy(np.hstack((vector[:-3], pose)), handler, qs, places)
        found = [made.fk(), made.jacobian_world(), made.jacobian_flange(angles), calibrated.fk(angles)]
        relative = optimization.compute_relative_errors(qs[:2], qs[2:], np.array([100.0, 50.0]), calibrated)
        return [*found, made.compute_joint_torques(wrench), errors, relative]

    return arm, DRAWS.normal(size=6), DRAWS.normal(size=6), models.ur10() + 0.01, np.array([3.0, 4.0, 90.0])


@program("m-lundberg/simple-pid", "`PID`: a heated boiler under a controller with limits, by gains and set points")
def heater(checkout: Checkout) -> tuple[Any, ...]:
    pid = checkout.package("simple_pid")

    def temperatures(gains: Any, setpoint: Any, start: Any, loss: Any) -> Any:
        controller = pid.PID(*gains, setpoint=setpoint, output_limits=(0, 100), sample_time=None, time_fn=lambda: 0.0)
        water, found = start, []
        for step in range(60):
            if step == 30:
                controller.tunings = gains[0] * 0.5, gains[1], gains[2]
                controller.setpoint = setpoint * 1.1
            water += controller(water, dt=0.1) * 0.1 - loss * (water - 20.0) * 0.1
            found.append(water)
        found += controller.components
        return np.array(found)

    return temperatures, np.array([5.0, 0.3, 0.1]), 60.0, 25.0, 0.05


@program("GregTJ/stable-fluids", "`Fluid.step`: smoke moved by splines and pressure, by velocity and dye")
def smoky(checkout: Checkout) -> tuple[Any, ...]:
    fluid = checkout.load("fluid.py")

    def steps(velocity: Any, dye: Any) -> Any:
        made = fluid.Fluid((12, 11), "dye")
        made.velocity[:] = velocity
        made.dye = dye
        for _ in range(3):
            found = made.step()
        return *found, made.dye, made.velocity

    return steps, 0.4 * DRAWS.normal(size=(2, 12, 11)), DRAWS.uniform(size=(12, 11))


@program("wesleybowman/UTide", "`solve`, `reconstruct`: tides with intervals, and robust ones, by heights and speeds")
def tidal(checkout: Checkout) -> tuple[Any, ...]:
    utide = checkout.package("utide")
    times = np.arange(0.0, 20.0, 0.1) + 730000.0
    phases = 2 * np.pi * times[:, None] * np.array([1.9323, 2.0, 0.9295, 1.0027])
    noise, waves = 0.1 * DRAWS.normal(size=(3, times.size)), 0.01 * DRAWS.normal(size=(3, times.size))
    heights = np.cos(phases) @ [1.0, 0.4, 0.2, 0.3] + noise[0]
    east, north = np.sin(phases + 0.3) @ [0.6, 0.2, 0.1, 0.3] + noise[1], np.cos(phases) @ np.ones(4) + noise[2]

    def fitted(heights: Any, shares: Any, lat: Any) -> Any:
        options = {"epoch": "python", "verbose": False, "constit": ["M2", "S2", "O1", "K1"], "lat": lat}
        one = utide.solve(times, heights, **options)
        again = utide.reconstruct(times[:20] + 30.0, one, epoch="python", verbose=False)
        # A robust fit is by the median of the residuals, which few waves leave in order.
        other = utide.solve(times, east + shares @ waves, north + shares[::-1] @ waves, method="robust", **options)
        found = [one.A, one.g, one.A_ci, one.mean, one.slope, again.h]
        return [*found, other.Lsmaj, other.Lsmin, other.theta, other.g, other.umean, other.g_ci]

    return fitted, heights, np.array([0.5, -0.8, 0.3]), 45.0


@program("pmorissette/ffn", "`PerformanceStats`, `calc_erc_weights`, `calc_inv_vol_weights`: by prices and a rate")
def statistics_of_prices(checkout: Checkout) -> tuple[Any, ...]:
    stub("tabulate", "yfinance", "decorator")
    ffn = checkout.package("ffn.core")
    days = pandas.date_range("2022-01-03", periods=420, freq="B")
    paths = 100 * np.exp(np.cumsum(0.01 * DRAWS.normal(size=(420, 3)) + 0.0004, axis=0))

    def performance(shares: Any, rate: Any) -> Any:
        prices = pandas.DataFrame(paths + shares * np.linspace(0, 5, 420)[:, None], index=days, columns=list("abc"))
        found = []
        for name in "ab":
            stats = ffn.PerformanceStats(prices[name], rf=rate)
            found += [stats.daily_sharpe, stats.daily_sortino, stats.cagr, stats.max_drawdown, stats.calmar]
            found += [stats.monthly_mean, stats.monthly_vol, stats.daily_skew, stats.daily_kurt, stats.best_month]
            found += [stats.avg_drawdown, stats.six_month, stats.ytd, stats.yearly_sharpe, stats.monthly_skew]
        returns = ffn.to_log_returns(prices).dropna()
        found += [ffn.calc_inv_vol_weights(returns), ffn.to_drawdown_series(prices), ffn.rebase(prices, 50)]
        found += [ffn.calc_information_ratio(returns["a"], returns["b"]), ffn.calc_prob_mom(returns["a"], returns["c"])]
        found += [ffn.to_ulcer_index(prices["a"]), ffn.calc_erc_weights(returns, covar_method="standard")]
        return [np.nan_to_num(np.asarray(each, dtype=float)) for each in found]

    return performance, np.array([0.3, -0.2, 0.5]), 0.02


@program("ctgk/PRML", "`VariationalGaussianMixture`, `RelevanceVectorRegressor`, `GaussianHMM`, `PCA`: by data")
def patterns(checkout: Checkout) -> tuple[Any, ...]:
    package = checkout.package
    mixtures, kernels, markov = package("prml.rv"), package("prml.kernel"), package("prml.markov")
    linear, reduction = package("prml.linear"), package("prml.dimreduction")

    def learned(points: Any, targets: Any, widths: Any) -> Any:
        np.random.seed(3)
        mixture = mixtures.VariationalGaussianMixture(n_components=2)
        mixture.fit(points, iter_max=5)
        kernel = kernels.RBF(widths)
        process = kernels.GaussianProcessRegressor(kernel, beta=20.0)
        process.fit(points, targets)
        vectors = kernels.RelevanceVectorRegressor(kernels.RBF(widths), 1.0, 10.0)
        vectors.fit(points, targets, iter_max=2)
        means, spreads = np.array([[0.0, 0.0], [1.0, 1.0]]), np.tile(np.eye(2), (2, 1, 1))
        states = markov.GaussianHMM(np.ones(2) / 2, np.array([[0.8, 0.2], [0.3, 0.7]]), means, spreads)
        posterior = states.fit(points, iter_max=3)
        evidence = linear.EmpiricalBayesRegression(alpha=1.0, beta=1.0)
        evidence.fit(points, targets, max_iter=5)
        components = reduction.PCA(n_components=1)
        components.fit(points)
        found = [mixture.alpha, mixture.mu, mixture.W, *process.predict(points[:3]), *vectors.predict(points[:3])]
        return [*found, posterior, states.transition_proba, evidence.w_mean, np.abs(components.transform(points))]

    points = DRAWS.normal(size=(14, 2)) + np.repeat([[0.0, 0.0], [2.0, 1.0]], 7, axis=0)
    return learned, points, np.sin(points[:, 0]) + 0.1 * DRAWS.normal(size=14), np.array([1.0, 0.7, 1.3])


@program("AOtools/aotools", "`angularSpectrum`, `oneStepFresnel`, `zernikeArray`, `centre_of_gravity`: light and air")
def wavefronts(checkout: Checkout) -> tuple[Any, ...]:
    aotools = checkout.package("aotools")

    def seen(coefficients: Any, profile: Any, lengths: Any) -> Any:
        phase = aotools.phaseFromZernikes(coefficients, 16)
        light = aotools.circle(7, 16) * np.exp(1j * phase)
        far = aotools.opticalpropagation.angularSpectrum(light, lengths[0] * 1e-7, 0.01, 0.01 * lengths[1], 900.0)
        near = aotools.opticalpropagation.oneStepFresnel(light, lengths[0] * 1e-7, 0.01, 500.0 * lengths[1])
        image = np.abs(aotools.ft2(light, 0.1)) ** 2
        heights = np.array([0.0, 2000.0, 9000.0])
        found = [far, near, aotools.centre_of_gravity(image), aotools.centre_of_gravity(image, threshold=0.2)]
        found += [aotools.azimuthal_average(image), aotools.encircled_energy(image, eeDiameter=False)[1]]
        found += [aotools.cn2_to_r0(profile.sum() * 1e-14), aotools.isoplanaticAngle(profile * 1e-15, heights)]
        found += [aotools.coherenceTime(profile * 1e-15, 5.0 + heights / 1e3), aotools.rms_contrast(image)]
        found += [aotools.phase_covariance(np.arange(1.0, 4.0), lengths[1] / 10, 20 * lengths[0])]
        found += [aotools.zoom_rbs(phase, (20, 18)), aotools.binImgs(phase, 2)]
        return [*found, aotools.flux_to_magnitude(1e5 * lengths[0])]

    return seen, 0.3 * DRAWS.normal(size=8), np.array([3.0, 1.5, 0.7]), np.array([5.0, 1.1])
