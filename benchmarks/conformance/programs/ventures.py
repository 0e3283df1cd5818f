"""Wells, trajectories, copulas, frames of beams, Gaussian processes and the sky: by their measurements."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

DRAWS = np.random.default_rng(31)


@program("Zabamund/wellpathpy", "`deviation`, `minimum_curvature`, `resample`: the path of a well, by its survey")
def well(checkout: Checkout) -> tuple[Any, ...]:
    wellpathpy = checkout.package("wellpathpy")
    depths = np.array([0.0, 130.0, 310.0, 455.0, 600.0])

    def path(inclinations: Any, azimuths: Any, places: Any) -> Any:
        survey = wellpathpy.deviation(depths, inclinations, azimuths)
        curved, straight, circles = survey.minimum_curvature(), survey.tan_method("bal"), survey.radius_curvature()
        moved = curved.to_wellhead(*places[:2]).to_tvdss(places[2]).resample(np.array([50.0, 200.0, 500.0]))
        again = curved.deviation()
        logs = [each for log in (curved, straight, circles, moved) for each in (log.depth, log.northing, log.easting)]
        return [*logs, curved.dls, again.inc, again.azi]

    inclinations, azimuths = np.array([1.0, 8.0, 21.0, 34.0, 41.0]), np.array([20.0, 45.0, 48.0, 60.0, 71.0])
    return path, inclinations, azimuths, np.array([3000.0, 4000.0, 90.0])


@program("MichaelGrupp/evo", "`PosePath3D.align`, `APE`, `RPE`: errors of a trajectory, by its places and rotations")
def trajectories(checkout: Checkout) -> tuple[Any, ...]:
    trajectory, metrics = checkout.package("evo.core.trajectory"), checkout.package("evo.core.metrics")
    truth = DRAWS.normal(size=(6, 3)), DRAWS.normal(size=(6, 4))
    truth[1][:] /= np.linalg.norm(truth[1], axis=1, keepdims=True)

    def errors(places: Any, turns: Any) -> Any:
        reference = trajectory.PosePath3D(*truth)
        turns = turns / np.linalg.norm(turns, axis=1, keepdims=True)
        estimate = trajectory.PosePath3D(places, turns)
        aligned = estimate.align(reference, correct_scale=True)
        found = [*aligned, estimate.path_length, estimate.get_orientations_euler()]
        relations = metrics.PoseRelation
        for kind, relation in (
            (metrics.APE, relations.translation_part), (metrics.APE, relations.full_transformation),
            (metrics.RPE, relations.translation_part), (metrics.RPE, relations.rotation_angle_rad),
        ):  # fmt: skip
            metric = kind(relation)
            metric.process_data((reference, estimate))
            found += metric.get_all_statistics().values()
        return found

    return errors, truth[0] + 0.2 * DRAWS.normal(size=(6, 3)), truth[1] + 0.1 * DRAWS.normal(size=(6, 4))


@program("sdv-dev/Copulas", "`Clayton`, `Frank`, `Gumbel`: densities and quantiles, by parameters and points")
def copulas(checkout: Checkout) -> tuple[Any, ...]:
    stub("plotly", "plotly.express", "plotly.figure_factory")
    bivariate = checkout.package("copulas.bivariate")

    def densities(thetas: Any, points: Any) -> Any:
        found = []
        for kind, theta in zip((bivariate.Clayton, bivariate.Frank, bivariate.Gumbel), thetas, strict=True):
            copula = kind()
            copula.theta = theta
            found += [copula.pdf(points), copula.cdf(points), copula.partial_derivative(points)]
            found += [copula.ppf(points[:2, 0], points[:2, 1]), copula.log_probability_density(points)]
        return found

    return densities, np.array([1.4, 2.1, 1.7]), DRAWS.uniform(0.2, 0.8, size=(4, 2))


@program("JWock82/Pynite", "`FEModel3D`: a frame's displacements, moments and reactions, by stiffnesses and loads")
def portal_frame(checkout: Checkout) -> tuple[Any, ...]:
    stub("prettytable", "pyvista", "jinja2", "pdfkit")
    pynite = checkout.package("Pynite")

    def answers(steel: Any, shape: Any, loads: Any) -> Any:
        model = pynite.FEModel3D()
        for name, x, y in (("A", 0.0, 0.0), ("B", 0.0, 4.0), ("C", 6.0, 4.0), ("D", 6.0, 0.0)):
            model.add_node(name, x, y, 0.0)
        model.add_material("steel", steel[0], steel[1], 0.3, 7.85)
        model.add_section("beam", *shape)
        for name, start, end in (("AB", "A", "B"), ("BC", "B", "C"), ("CD", "C", "D")):
            model.add_member(name, start, end, "steel", "beam")
        for name in "AD":
            model.def_support(name, *[True] * 6)
        model.add_node_load("B", "FX", loads[0])
        model.add_member_dist_load("BC", "Fy", loads[1], loads[1])
        model.analyze(check_statics=False)
        beam, combination = model.members["BC"], "Combo 1"
        nodes = [model.nodes[name].DX[combination] for name in "BC"] + [model.nodes["B"].RZ[combination]]
        forces = [model.nodes[name].RxnMZ[combination] for name in "AD"]
        return [*nodes, *forces, beam.moment("Mz", 2.0, combination), beam.deflection("dy", 3.0, combination)]

    shape = np.array([0.01, 2e-4, 3e-4, 1e-5])
    return answers, np.array([2e8, 8e7]), shape, np.array([15.0, -8.0])


@program("josejimenezluna/pyGPGO", "`GaussianProcess`, `Acquisition`: a marginal likelihood, expected improvements")
def surrogate(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("pyGPGO", "pyGPGO")
    checkout.bare("pyGPGO.surrogates", "pyGPGO/surrogates")
    kernels, acquisition = checkout.package("pyGPGO.covfunc"), checkout.package("pyGPGO.acquisition").Acquisition
    process = checkout.package("pyGPGO.surrogates.GaussianProcess").GaussianProcess
    points = DRAWS.uniform(size=(6, 2))

    def improvements(parameters: Any, values: Any, place: Any) -> Any:
        length, size, noise, shape = parameters
        found = []
        for kernel in (
            kernels.squaredExponential(length, size, noise), kernels.matern52(length, size, noise),
            kernels.rationalQuadratic(shape, length, size, noise), kernels.matern32(length, size, noise),
        ):  # fmt: skip
            model = process(kernel)
            model.fit(points, values)
            mean, spread = model.predict(place[None, :], return_std=True)
            found += [model.logp, mean, spread]
            for mode in ("ExpectedImprovement", "UCB", "ProbabilityImprovement", "tExpectedImprovement"):
                found.append(acquisition(mode).eval(0.3, mean, spread))
        return found

    return improvements, np.array([0.6, 1.1, 0.05, 1.3]), np.sin(4 * points[:, 0]), np.array([0.4, 0.7])


@program("josejimenezluna/pyGPGO", "`matern`: a marginal likelihood and predictions, by the kernel's order too")
def order_of_kernel(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("pyGPGO", "pyGPGO")
    checkout.bare("pyGPGO.surrogates", "pyGPGO/surrogates")
    kernels = checkout.package("pyGPGO.covfunc")
    process = checkout.package("pyGPGO.surrogates.GaussianProcess").GaussianProcess
    points = DRAWS.uniform(size=(6, 2))

    def predicted(parameters: Any, values: Any, place: Any) -> Any:
        model = process(kernels.matern(*parameters))
        model.fit(points, values)
        return [model.logp, *model.predict(place[None, :], return_std=True)]

    return predicted, np.array([1.7, 0.6, 1.1, 0.05]), np.sin(4 * points[:, 0]), np.array([0.4, 0.7])


@program("kylebarron/suncalc-py", "`get_position`, `getMoonPosition`: the sun and the moon, by an observer's place")
def sky(checkout: Checkout) -> tuple[Any, ...]:
    suncalc = checkout.package("suncalc.suncalc")
    date = np.datetime64("2013-03-05T14:30:00")

    def seen(longitude: Any, latitude: Any) -> Any:
        sun, moon = suncalc.get_position(date, longitude, latitude), suncalc.getMoonPosition(date, latitude, longitude)
        return [*sun.values(), *moon.values()]

    return seen, np.array([30.5, -20.1]), np.array([50.5, 11.0])


@program("bukosabino/ta", "`RSIIndicator`, `TSIIndicator`, `KAMAIndicator`, `BollingerBands`, `MACD`: by prices")
def indicators(checkout: Checkout) -> tuple[Any, ...]:
    ta, pandas = checkout.package("ta"), checkout.package("pandas")

    def found(close: Any, spread: Any) -> Any:
        prices = pandas.Series(close)
        high, low = prices + spread, prices - spread
        bands = ta.volatility.BollingerBands(prices, window=4)
        moves = ta.trend.MACD(prices, window_slow=6, window_fast=3, window_sign=3)
        series = (
            ta.momentum.RSIIndicator(prices, window=4).rsi(), ta.momentum.TSIIndicator(prices, 5, 3).tsi(),
            bands.bollinger_hband(), bands.bollinger_wband(), moves.macd_diff(),
            ta.momentum.KAMAIndicator(prices, window=4).kama(),
            ta.volatility.AverageTrueRange(high, low, prices, window=4).average_true_range(),
            ta.momentum.StochasticOscillator(high, low, prices, window=4).stoch(),
        )  # fmt: skip
        return [one.to_numpy()[-3:] for one in series]

    return found, 10 + np.cumsum(DRAWS.normal(size=14)), DRAWS.uniform(0.1, 0.5, size=14)


@program("spatialaudio/sfa-numpy", "`modal.radial`, `modal.angular`, `coherence_of_columns`: fields around microphones")
def microphones(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("micarray", "micarray")
    checkout.bare("micarray.modal", "micarray/modal")
    radial, angular = checkout.package("micarray.modal.radial"), checkout.package("micarray.modal.angular")
    util = checkout.package("micarray.util")

    def fields(waves: Any, radius: Any, angles: Any) -> Any:
        found = [radial.spherical_pw(3, waves, radius, setup) for setup in ("open", "card", "rigid")]
        found += [radial.circular_pw(2, waves, radius, "open"), radial.spherical_ps(2, waves, radius, 3.0, "rigid")]
        regular, limits = radial.regularize(1 / found[2], 100.0, "softclip")
        legendre, circular = angular.Legendre_matrix(3, np.cos(angles)), angular.cht_matrix(2, angles)
        coherence = util.coherence_of_columns(found[2])
        return [*found, regular, legendre, circular, util.db(np.abs(found[0])), coherence]

    return fields, np.array([3.0, 9.0, 21.0]), 0.17, np.array([0.3, 1.1, 2.0, 2.6])


@program("HarrisonKramer/optiland", "`Optic.trace_generic`, `paraxial`: rays through a lens, by radii and distances")
def lens(checkout: Checkout) -> tuple[Any, ...]:
    optic, materials = checkout.package("optiland.optic"), checkout.package("optiland.materials")

    def rays(radii: Any, distances: Any, index: Any) -> Any:
        made = optic.Optic()
        add, glass = made.surfaces.add, materials.IdealMaterial(n=index)
        add(index=0, radius=np.inf, thickness=np.inf)
        add(index=1, radius=radii[0], thickness=distances[0], material=glass, is_stop=True)
        add(index=2, radius=radii[1], thickness=distances[1], conic=-0.3)
        add(index=3)
        made.set_aperture(aperture_type="EPD", value=12.0)
        made.fields.set_type(field_type="angle")
        made.fields.add(y=5.0)
        made.wavelengths.add(value=0.55, is_primary=True)
        found = made.trace_generic(Hx=0.0, Hy=1.0, Px=np.array([0.2, 0.6]), Py=np.array([0.5, -0.3]), wavelength=0.55)
        return [found.x, found.y, found.L, found.M, found.opd, made.paraxial.f2()]

    return rays, np.array([60.0, -80.0]), np.array([8.0, 65.0]), 1.52


@program("pyet-org/pyet", "`pm_fao56`, `penman`, `turc`, `hamon` and ten others: evaporation, by the weather")
def evaporation(checkout: Checkout) -> tuple[Any, ...]:
    pyet, pandas = checkout.package("pyet"), checkout.package("pandas")
    days = pandas.date_range("2001-06-01", periods=5)

    def demands(*weather: Any) -> Any:
        mean, sun, wind, humid = (pandas.Series(x, index=days) for x in weather)
        high, low = mean + 5.0, mean - 4.0
        options = {"rs": sun, "elevation": 100.0, "lat": 0.9, "tmax": high, "tmin": low, "rh": humid}
        found = [f(mean, wind, **options) for f in (pyet.pm_fao56, pyet.penman, pyet.pm_asce)]
        found += [pyet.priestley_taylor(mean, **options), pyet.turc(mean, sun, humid), pyet.jensen_haise(mean, sun)]
        found += [pyet.makkink(mean, sun, elevation=100.0), pyet.hargreaves(mean, high, low, 0.9)]
        found += [pyet.abtew(mean, sun), pyet.oudin(mean, 0.9), pyet.hamon(mean, 0.9), pyet.romanenko(mean, humid)]
        found += [pyet.haude(mean, humid), pyet.linacre(mean, 100.0, 0.9, tmax=high, tmin=low)]
        return [series.to_numpy() for series in found]

    return demands, *(DRAWS.uniform(*ends, size=5) for ends in ((14, 20), (12, 20), (1, 4), (50, 80)))


@program("spectralpython/spectral", "`ace`, `rx`, `matched_filter`, `mnf`, `unmix`: detectors in images of many bands")
def bands(checkout: Checkout) -> tuple[Any, ...]:
    spectral = checkout.package("spectral")
    algorithms = checkout.package("spectral.algorithms.algorithms")

    def detected(image: Any) -> Any:
        signal, noise = algorithms.calc_stats(image), algorithms.noise_from_diffs(image)
        found = [signal.mean, signal.cov, noise.cov, algorithms.mnf(signal, noise).napc.eigenvalues]
        found += [detector(image, image[0, 0]) for detector in (spectral.matched_filter, spectral.ace)]
        found += [spectral.rx(image), algorithms.ndvi(image, 1, 3), algorithms.unmix(image, image[2, :2])]
        found += [algorithms.spectral_angles(image, image[1, :3] * 1.1 + 0.01), algorithms.orthogonalize(image[0])]
        return [*found, spectral.remove_continuum(image[0], np.arange(6.0))]

    return detected, DRAWS.uniform(0.1, 1.0, size=(4, 5, 6))
