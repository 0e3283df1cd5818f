"""Studies of sound, antennas, terrain, regressions, rockets, modes and chains of spins."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

DRAWS = np.random.default_rng(12)


@program("sfstoolbox/sfs-python", "`nfchoa.point_25d`, `wfs.line_2d`, `line_2d_edge`: driving sounds, by sources")
def sound_fields(checkout: Checkout) -> tuple[Any, ...]:
    sfs = checkout.package("sfs")

    def pressures(source: Any, radius: Any, room: Any) -> Any:
        omega, array = 2 * np.pi * 300, sfs.array.circular(8, radius)
        driven = sfs.fd.nfchoa.point_25d(omega, array.x, radius, source, max_order=3)[0]
        drawn = sfs.fd.wfs.line_2d(omega, array.x, array.n, source)[0]
        images, walls = sfs.util.image_sources_for_box(source, room, 1)
        return driven, drawn, images, sfs.fd.esa.line_2d_edge(omega, array.x + 2, source, Nc=3)[0]

    return pressures, np.array([1.1, 2.0, 0.3]), 1.5, np.array([4.0, 3.0, 2.5])


@program("AllenDowney/ThinkDSP", "`Chirp`, `Spectrum`, `make_spectrogram`: filtered sounds by pitches and loudness")
def sounds(checkout: Checkout) -> tuple[Any, ...]:
    dsp = checkout.load("thinkdsp/thinkdsp.py")

    def filtered(pitches: Any, amplitudes: Any, noise: Any) -> Any:
        signal = dsp.Chirp(pitches[0], pitches[1], amplitudes[0]) + dsp.CosSignal(pitches[2], amplitudes[1])
        wave = signal.make_wave(duration=0.064, framerate=1000) + dsp.Wave(noise, framerate=1000)
        wave.hamming()
        wave.normalize()
        spectrum = wave.make_spectrum()
        spectrum.low_pass(200.0, 0.1)
        spectrum.pink_filter(beta=0.7)
        pictures = wave.make_spectrogram(32, win_flag=True)
        return spectrum.make_wave().ys, spectrum.power, pictures.make_wave().ys, wave.cov_mat(wave)

    return filtered, np.array([60.0, 180.0, 230.0]), np.array([1.0, 0.6]), 0.05 * DRAWS.normal(size=64)


@program("morriswmz/doatools.py", "`steering_matrix`, `crb_sto_farfield_1d`, `f_music`: angles of waves by antennas")
def arrivals(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("doatools", "doatools")
    arrays, sources = checkout.package("doatools.model.arrays"), checkout.package("doatools.model.sources")
    bounds, music = checkout.package("doatools.performance.crb"), checkout.package("doatools.estimation.music")
    grid = np.linspace(-1.2, 1.2, 7)

    def spectra(angles: Any, places: Any, powers: Any) -> Any:
        array = arrays.GeneralArray(places) if hasattr(arrays, "GeneralArray") else arrays.ArrayDesign(places, "a")
        far = sources.FarField1DSourcePlacement(angles)
        a = array.steering_matrix(far, 1.0)
        covariance = (a * powers) @ a.conj().T + 0.1 * np.eye(6)
        _, vectors = np.linalg.eigh(covariance)
        found = array.steering_matrix(sources.FarField1DSourcePlacement(grid), 1.0)
        bound = bounds.crb_sto_farfield_1d(array, far, 1.0, powers, 0.1, 50)
        return music.f_music(found, vectors[:, :4]), bound

    places = np.arange(6.0)[:, None] / 2 + 0.02 * DRAWS.normal(size=(6, 1))
    return spectra, np.array([-0.55, 0.45]), places, np.array([1.0, 2.0])


@program("fatiando/verde", "`Spline`, `Trend`, `Chain`: a gridded surface by heights, places and damping")
def terrain(checkout: Checkout) -> tuple[Any, ...]:
    stub("pooch", "numba", "choclo", jit=lambda **_: lambda f: f)
    checkout.bare("verde", "verde")
    spline, trend = checkout.package("verde.spline"), checkout.package("verde.trend")

    forces = DRAWS.uniform(0, 3, size=(2, 5))

    def surface(east: Any, north: Any, heights: Any, damping: Any) -> Any:
        plane = trend.Trend(degree=1).fit((east, north), heights)
        rest = heights - plane.predict((east, north))
        thin = spline.Spline(damping=damping, force_coords=(forces[0], forces[1]), engine="numpy")
        thin.fit((east, north), rest, weights=1 + heights**2)
        at = np.array([0.2, 1.1, 2.4]), np.array([0.4, 1.7, 0.9])
        return plane.coef_, thin.predict(at)

    return surface, *DRAWS.uniform(0, 3, size=(2, 9)), DRAWS.normal(size=9), 0.01


@program("dswah/pyGAM", "`LinearGAM`: a smooth regression, its intervals and its statistics, by the responses")
def smooth_terms(checkout: Checkout) -> tuple[Any, ...]:
    stub("progressbar")
    gam = checkout.package("pygam")
    x = np.column_stack([np.linspace(0, 1, 20), DRAWS.normal(size=20)])

    def fitted(y: Any) -> Any:
        # By x it has no derivative: the splines add up to the intercept, and QR factors of dependent columns have none.
        line = gam.LinearGAM(gam.s(0, n_splines=6, lam=0.6) + gam.l(1), tol=1e-12).fit(x, y)
        sizes = [line.statistics_[name] for name in ("GCV", "loglikelihood", "scale")]
        return line.predict(x[:4]), line.coef_, line.confidence_intervals(x[:3]), *sizes

    return fitted, np.sin(5 * x[:, 0]) + 0.1 * x[:, 1]


@program("RocketPy-Team/RocketPy", "`Function`: composed, integrated and inverted tables, by their values")
def tables(checkout: Checkout) -> tuple[Any, ...]:
    stub("netCDF4", "requests", "simplekml", "pytz", "timezonefinder", "cftime", "dill")
    for name in ("rocketpy", "rocketpy.mathutils", "rocketpy.plots"):
        checkout.bare(name, name.replace(".", "/"))
    functions = checkout.package("rocketpy.mathutils.function")

    def of_tables(thrust: Any, drag: Any) -> Any:
        make = lambda values, how: functions.Function(  # noqa: E731
            np.column_stack([np.arange(6.0), values]), interpolation=how, extrapolation="natural"
        )
        lines, smooth, akima = make(thrust, "linear"), make(drag, "spline"), make(drag, "akima")
        product = lines * smooth + 2 * akima
        parts = product.integral(0.3, 4.2), lines.integral(0.5, 3.3), smooth.integral(0.2, 4.7)
        slopes = smooth.differentiate(2.2), lines.compose(make(np.abs(drag), "linear"))(1.3)
        return *parts, *slopes, product(2.5), akima(0.4), make(drag, "polynomial")(3.3)

    return of_tables, np.array([1.0, 3.0, 2.5, 2.0, 1.2, 0.4]), np.array([0.5, 0.8, 0.7, 1.1, 0.9, 1.3])


@program("mathLab/PyDMD", "`DMD`, `FbDMD`: modes and rates of a field's snapshots, by the snapshots")
def modes(checkout: Checkout) -> tuple[Any, ...]:
    pydmd = checkout.package("pydmd")
    x, t = np.linspace(-2, 2, 9), np.linspace(0, 4, 12)
    waves = np.outer(1 / np.cosh(x + 0.7), np.cos(2.3 * t)) + np.outer(np.tanh(x), np.sin(1.1 * t) * np.exp(-0.1 * t))

    def decomposed(noise: Any) -> Any:
        exact, both = pydmd.DMD(svd_rank=4, exact=True), pydmd.FbDMD(svd_rank=4)
        found = [model.fit(waves + noise) for model in (exact, both)]
        rates = [np.sort(np.abs(model.eigs))[::2] for model in found]
        return *rates, found[0].reconstructed_data.real, np.sum(np.abs(found[0].amplitudes))

    return decomposed, 0.01 * DRAWS.normal(size=(9, 12))


@program("tenpy/tenpy", "`MPS`, `TEBDEngine`: entropy and energy of a chain of spins by fields and couplings")
def spin_chains(checkout: Checkout) -> tuple[Any, ...]:
    checkout.package("tenpy")
    models, networks = checkout.package("tenpy.models.tf_ising"), checkout.package("tenpy.networks.mps")
    tebd = checkout.package("tenpy.algorithms.tebd")

    def measured(coupling: Any, field: Any) -> Any:
        chain = models.TFIChain({"L": 4, "J": coupling, "g": field, "bc_MPS": "finite", "conserve": None})
        state = networks.MPS.from_product_state(chain.lat.mps_sites(), ["up", "down", "up", "up"], bc="finite")
        options = {"order": 2, "dt": 0.05, "N_steps": 2, "trunc_params": {"chi_max": 8}}
        tebd.TEBDEngine(state, chain, options).run()
        return state.expectation_value("Sigmaz"), state.entanglement_entropy(), chain.bond_energies(state)

    return measured, 1.0, 1.3
