"""Sea water, robots' dynamics, reflections of neutrons, planets, sounds, heat, aircraft, test functions, alignments."""

import types
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

DRAWS = np.random.default_rng(20)
SOUND = np.sin(np.arange(400) * 0.2) + 0.3 * DRAWS.normal(size=400)


@program("ocefpaf/python-seawater", "`dens`, `svel`, `cp`, `ptmp`, `adtg`: sea water by salinity, heat, pressure")
def sea_water(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("seawater", "seawater")
    sea, extras = checkout.package("seawater.eos80"), checkout.package("seawater.extras")

    def state(s: Any, t: Any, p: Any) -> Any:
        rates = sea.adtg(s, t, p), sea.alpha(s, t, p), sea.beta(s, t, p), sea.ptmp(s, t, p, 100.0), sea.temp(s, t, p)
        return sea.dens(s, t, p), sea.svel(s, t, p), sea.cp(s, t, p), sea.fp(s, p), *rates, extras.satO2(s, t)

    return state, np.array([34.5, 35.2]), np.array([10.0, 4.0]), np.array([1500.0, 800.0])


@program("ocefpaf/python-seawater", "`salt`, `cndr`, `bfrq`, `gpan`, `dist`: conductivity, stability, geostrophy")
def sea_profiles(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("seawater", "seawater")
    sea, deep = checkout.package("seawater.eos80"), checkout.package("seawater.library")
    flow, extras = checkout.package("seawater.geostrophic"), checkout.package("seawater.extras")

    def profiles(s: Any, t: Any, p: Any, lat: Any) -> Any:
        frequency, vorticity, middle = flow.bfrq(s, t, p, 30.0)
        around, angles = extras.dist(lat, 2 * lat)
        conductivity = deep.cndr(s, t, p), sea.salt(0.9 + 0.001 * s, t, p)
        return *conductivity, frequency * 1e4, vorticity * 1e9, middle, flow.gpan(s, t, p), around, angles, sea.g(lat)

    salt, warm = np.array([[34.5], [34.9], [35.4]]), np.array([[15.0], [10.0], [5.0]])
    return profiles, salt, warm, np.array([[10.0], [50.0], [200.0]]), np.array([30.0, 31.0])


def arm() -> tuple[Any, ...]:
    """Frames, inertias and screws of an arm of three joints."""
    frames = [np.eye(4) for _ in range(4)]
    for frame, place in zip(frames, ([0, 0, 0.09], [0.28, 0.14, 0], [0, -0.12, 0.4], [0, 0, 0.14]), strict=True):
        frame[:3, 3] = place
    inertias = np.array([np.diag([0.01, 0.02, 0.007, m, m, m]) for m in (3.7, 8.4, 2.3)])
    screws = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 0, -0.089, 0, 0], [0, 1, 0, -0.089, 0, 0.425]]).T
    return np.array(frames), inertias, screws


@program("NxRLab/ModernRobotics", "`InverseDynamics`, `MassMatrix`, `ForwardDynamics`: an arm, by angles and rates")
def arm_dynamics(checkout: Checkout) -> tuple[Any, ...]:
    robots = checkout.load("packages/Python/modern_robotics/core.py")
    frames, inertias, screws = arm()
    gravity, tip = np.array([0, 0, -9.8]), np.ones(6)

    def forces(angle: Any, rate: Any, torque: Any) -> Any:
        inverse = robots.InverseDynamics(angle, rate, torque, gravity, tip, frames, inertias, screws)
        mass = robots.MassMatrix(angle, frames, inertias, screws)
        forward = robots.ForwardDynamics(angle, rate, torque, gravity, tip, frames, inertias, screws)
        others = robots.VelQuadraticForces(angle, rate, frames, inertias, screws)
        return inverse, mass, forward, others, *robots.EulerStep(angle, rate, forward, 0.1)

    return forces, np.array([0.1, 0.2, 0.3]), np.array([0.4, -0.2, 0.3]), np.array([0.5, 0.6, -1.0])


@program("NxRLab/ModernRobotics", "`MatrixLog6`, `FKinSpace`, `JacobianBody`, `IKinSpace`: an arm's poses by angles")
def arm_poses(checkout: Checkout) -> tuple[Any, ...]:
    robots = checkout.load("packages/Python/modern_robotics/core.py")
    frames, _, screws = arm()
    home = frames[1] @ frames[2]

    def poses(angles: Any, start: Any) -> Any:
        pose = robots.FKinSpace(home, screws, angles)
        found, _ = robots.IKinSpace(screws, home, pose, start, 1e-10, 1e-10)
        path = robots.ScrewTrajectory(home, pose, 2.0, 4, 5)
        return pose, robots.MatrixLog6(pose), robots.JacobianBody(screws, angles), path[2], found + 0 * start

    return poses, np.array([0.3, -0.5, 0.9]), np.array([0.25, -0.45, 0.85])


@program("refnx/refnx", "`abeles`, `parratt`: neutrons reflected by films, by thicknesses and roughnesses")
def reflected_neutrons(checkout: Checkout) -> tuple[Any, ...]:
    stub("refnx", "refnx.reflect")
    films = checkout.load("refnx/reflect/_reflect.py")
    q = np.array([0.01, 0.03, 0.08, 0.2])

    def reflected(layers: Any, scale: Any) -> Any:
        background = 1e-6 * scale
        return np.log(films.abeles(q, layers, scale, background)), np.log(films.parratt(q, layers, scale, background))

    layers = [[0, 2.07, 1e-3, 0], [100, 3.47, 1e-3, 3.0], [50, 1.2, 2e-3, 5.0], [0, 6.36, 1e-3, 4.0]]
    return reflected, np.array(layers, dtype=float), 0.98


@program("California-Planet-Search/radvel", "`rv_drive`, `timetrans_to_timeperi`: speeds of a star by an orbit")
def planets(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("radvel", "radvel")
    speeds, orbits = checkout.package("radvel.kepler"), checkout.package("radvel.orbit")
    setattr(checkout.package("radvel"), "kepler", speeds)  # noqa: B010
    setattr(checkout.package("radvel"), "orbit", orbits)  # noqa: B010
    times = np.array([0.3, 2.0, 5.5, 9.0])

    def seen(orbit: Any, start: Any) -> Any:
        period, _, e, omega, _ = orbit
        passing = orbits.timetrans_to_timeperi(start, period, e, omega)
        transits = orbits.timeperi_to_timetrans(passing, period, e, omega), passing
        anomaly = orbits.true_anomaly(times, start, period, e)
        return speeds.rv_drive(times, orbit, use_c_kepler_solver=False), *transits, anomaly

    return seen, np.array([4.2, 1.1, 0.35, 0.8, 55.0]), 1.37


@program("jameslyons/python_speech_features", "`mfcc`, `ssc`, `logfbank`, `delta`: features of a sound, by the sound")
def speech(checkout: Checkout) -> tuple[Any, ...]:
    features = checkout.package("python_speech_features")
    options = {"winlen": 0.1, "winstep": 0.05, "nfilt": 8, "nfft": 256}

    def of_sound(sound: Any, emphasis: Any) -> Any:
        cepstra = features.mfcc(sound, 1000, numcep=5, preemph=emphasis, **options)
        bands = features.logfbank(sound, 1000, preemph=emphasis, **options)
        return cepstra, bands, features.ssc(sound, 1000, preemph=emphasis, **options), features.delta(cepstra, 2)

    return of_sound, SOUND, 0.97


@program("jameslyons/python_speech_features", "`framesig`, `deframesig`, `powspec`: frames of a sound, and back")
def speech_frames(checkout: Checkout) -> tuple[Any, ...]:
    checkout.package("python_speech_features")
    frames = checkout.package("python_speech_features.sigproc")

    def framed(sound: Any) -> Any:
        parts = frames.framesig(sound, 64, 24, np.hamming, stride_trick=False)
        back = frames.deframesig(parts, len(sound), 64, 24, np.hamming)
        return parts, back, frames.powspec(parts, 64), frames.framesig(sound, 50.0, 25.0) ** 2

    return framed, SOUND[:160]


@program("mpariente/pystoi", "`stoi`: the intelligibility of a sound beside a clean one, by both")
def intelligible(checkout: Checkout) -> tuple[Any, ...]:
    measure = checkout.package("pystoi")
    noise = DRAWS.normal(size=(2, 6000))
    clean = np.sin(np.arange(6000) * 0.3) * (1 + 0.5 * np.sin(np.arange(6000) * 0.01)) + 0.3 * noise[0]
    basis = np.array([np.cos(np.arange(6000) * f) for f in (0.1, 0.4, 0.9)])

    def of_both(sound: Any, other: Any) -> Any:
        heard = clean + 0.4 * noise[1] + sound @ basis
        return measure.stoi(clean + other @ basis, heard, 10000), measure.stoi(clean, heard, 10000, extended=True)

    return of_both, np.array([0.1, 0.2, -0.3]), np.array([0.05, -0.1, 0.1])


def fluids_of(checkout: Checkout) -> None:
    """Import the library `fluids`, which `ht` needs, from the checkout beside, with names that later ones lack."""
    fluids = Checkout(checkout.folder.parent / "CalebBell+fluids").package("fluids")
    vars(fluids.piping).setdefault("BWG_integers", [])
    vars(fluids.numerics).setdefault("PY37", True)


@program("CalebBell/ht", "`effectiveness_from_NTU`, `temperature_effectiveness_TEMA_E`: exchangers of heat by rates")
def heat_exchangers(checkout: Checkout) -> tuple[Any, ...]:
    fluids_of(checkout)
    hx = checkout.package("ht").hx

    def exchanged(ntu: Any, ratio: Any) -> Any:
        kinds = ("counterflow", "parallel", "crossflow", "crossflow, mixed Cmin", "crossflow, mixed Cmax", "boiler")
        effects = [hx.effectiveness_from_NTU(ntu, ratio, subtype=kind) for kind in kinds]
        back = [hx.NTU_from_effectiveness(0.4 * ratio, ratio, subtype=kind) for kind in kinds if kind != "crossflow"]
        shells = hx.temperature_effectiveness_TEMA_E(ratio, ntu, 2), hx.temperature_effectiveness_TEMA_J(ratio, ntu, 2)
        return *effects, *back, *shells, hx.temperature_effectiveness_air_cooler(ratio, ntu, 2, 2)

    return exchanged, 1.3, 0.7


@program("CalebBell/ht", "`turbulent_Gnielinski`, `Nu_conv_internal`, `LMTD`: heat in pipes by their numbers")
def heat_in_pipes(checkout: Checkout) -> tuple[Any, ...]:
    fluids_of(checkout)
    heat = checkout.package("ht")
    pipes = heat.conv_internal

    def numbers(re: Any, pr: Any, friction: Any) -> Any:
        by_friction = "Gnielinski", "Petukhov_Kirillov_Popov", "Webb", "Sandall", "Churchill_Zajic", "Martinelli"
        some = [getattr(pipes, f"turbulent_{name}")(re, pr, friction) for name in by_friction]
        more = pipes.turbulent_Dittus_Boelter(re, pr), pipes.turbulent_ESDU(re, pr), pipes.Nu_conv_internal(re, pr)
        return *some, *more, heat.LMTD(100 * pr, 60.0, 30.0, 40 * pr), pipes.Morimoto_Hotta(re, pr, 0.05, 0.5)

    return numbers, 1e5, 1.2, 0.0185


@program("AeroPython/PyFME", "`ISA1976`, `body2wind`, `tas2cas`, `quatern2euler`: air and axes of an aircraft")
def aircraft(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("pyfme", "pyfme.utils", "pyfme.models", "pyfme.environment"):
        checkout.bare(name, f"src/{name.replace('.', '/')}")
    air = checkout.package("pyfme.environment.atmosphere", "src").ISA1976()
    axes, speeds = checkout.package("pyfme.utils.coordinates"), checkout.package("pyfme.utils.anemometry")
    turns = checkout.package("pyfme.utils.change_euler_quaternion")

    def flown(heights: Any, angles: Any, speed: Any) -> Any:
        temperature, pressure, density, sound = air(heights[0])
        calibrated = speeds.tas2cas(100.0 + speed[0], pressure, density)
        turned = axes.body2hor(speed, *angles), axes.hor2body(speed, *angles), axes.body2wind(speed, *angles[:2])
        q = turns.euler2quatern(angles)
        spins = turns.vel_quaternion(q / np.sqrt(q @ q), speed), turns.quatern2euler(q / np.sqrt(q @ q))
        wind = speeds.calculate_alpha_beta_TAS(*speed)
        return temperature, sound, calibrated, *turned, *spins, *wind, *air(heights[1])

    return flown, np.array([2500.0, 15000.0]), np.array([0.2, 0.1, 0.4]), np.array([60.0, 3.0, 5.0])


def objects_of(module: Any, names: str, *args: Any) -> list[Any]:
    """Objects of the classes of a module with these names."""
    return [getattr(module, name)(*args) for name in names.split()]


@program("thieu1995/opfunu", "21 test functions of optimisation, of `Ackley01` to `Bohachevsky1`, by their points")
def test_functions(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("opfunu", "opfunu")
    checkout.bare("opfunu.name_based", "opfunu/name_based")
    a, b = (checkout.package(f"opfunu.name_based.{letter}_func") for letter in "ab")
    first = "Ackley01 Ackley02 Ackley03 Adjiman Alpine01 Alpine02 AMGM"
    second = "BartelsConn Beale Bird Bohachevsky1 Bohachevsky2 Booth Branin01 Branin02 Brent Brown Bukin02 Bukin04"
    functions = objects_of(a, first) + objects_of(b, second)
    return lambda x: [f.evaluate(x) for f in functions], np.array([1.3, 0.7])


@program("thieu1995/opfunu", "`F12022`, `F52022` and others of CEC 2022: shifted and rotated functions, by the point")
def shifted_functions(checkout: Checkout) -> tuple[Any, ...]:
    opfunu = checkout.package("opfunu")
    names = "F12022 F22022 F32022 F42022 F52022 F92022"
    functions = [getattr(opfunu.cec_based.cec2022, name)(ndim=10) for name in names.split()]
    return lambda x: [1e-3 * f.evaluate(x) for f in functions], np.linspace(-20.0, 30.0, 10)


@program("ljvmiranda921/pyswarms", "`rosenbrock`, `levi`, `goldstein` and others, for a swarm of points")
def swarm(checkout: Checkout) -> tuple[Any, ...]:
    single = checkout.load("pyswarms/utils/functions/single_obj.py")
    names = "ackley beale booth crossintray easom goldstein himmelblau levi matyas rastrigin rosenbrock threehump"
    return lambda x: [getattr(single, name)(x) for name in names.split()], DRAWS.uniform(0.2, 1.5, (4, 2))


@program("sigopt/evalset", "`Ackley`, `Branin01`, `Hartmann6` and others of a test set, by their points")
def evaluation_set(checkout: Checkout) -> tuple[Any, ...]:
    tests = checkout.load("evalset/test_funcs.py")
    two = objects_of(tests, "Ackley Adjiman Alpine02 BartelsConn Beale Bird Branin01 Branin02 Brent Cube DropWave", 2)
    six = objects_of(tests, "Hartmann6 CosineMixture Exponential", 6)
    return lambda x: [*[f.evaluate(x[:2]) for f in two], *[f.evaluate(x) for f in six]], DRAWS.uniform(0.2, 0.8, 6)


@program("slaypni/fastdtw", "`dtw`, `fastdtw`: distances of two series after the best alignment, by both")
def alignments(checkout: Checkout) -> tuple[Any, ...]:
    align = checkout.load("fastdtw/fastdtw.py")

    def distances(x: Any, y: Any) -> Any:
        square = lambda a, b: (a - b) ** 2  # noqa: E731
        return align.dtw(x, y, dist=square)[0], align.fastdtw(x, y, radius=2, dist=square)[0]

    return distances, DRAWS.normal(size=12), DRAWS.normal(size=9)


@program("raphaelvallat/antropy", "`spectral_entropy`, `svd_entropy`, `hjorth_params`, `higuchi_fd`: a signal")
def disorder(checkout: Checkout) -> tuple[Any, ...]:
    stub("numba", jit=lambda *_, **__: lambda f: f)
    checkout.bare("antropy", "src/antropy")
    entropy, fractal = checkout.package("antropy.entropy", "src"), checkout.package("antropy.fractal")

    def of_signal(x: Any) -> Any:
        spectral = [entropy.spectral_entropy(x, 100, method, nperseg=64) for method in ("fft", "welch")]
        shape = entropy.hjorth_params(x), entropy.svd_entropy(x, normalize=True)
        return *spectral, *shape, fractal.katz_fd(x), fractal.higuchi_fd(x, 6), fractal.detrended_fluctuation(x)

    return of_signal, 0.3 * SOUND[:128] + np.arange(128.0)


@program("chemics/chemics", "`ut`, `ut_haider`, `mu_graham`, `devol_time`: particles and gases in reactors")
def particles_in_gas(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("chemics", "chemics")
    modules = "gas_density gas_viscosity bubble_diameter devol_time terminal_velocity dimensionless_numbers emulsion"
    named = {name: checkout.package(f"chemics.{name}") for name in modules.split()}
    m = types.SimpleNamespace(**named)

    def rates(size: Any, gas: Any, parts: Any) -> Any:
        falls, mixtures, shares = m.terminal_velocity, m.gas_viscosity, parts / np.sum(parts)
        falling = falls.ut(0.4 * gas, size, gas, 2500.0), falls.ut_haider(size, 4e-5, 0.8, gas, 2500.0)
        mixed = mixtures.mu_graham(parts, shares), mixtures.mu_herning(parts, 2 * parts, shares)
        bubbles = m.bubble_diameter.dbMoriWen(0.1 * gas, 0.5, 0.1, 0.3, 0.001, "perf_tri")
        slow = m.devol_time.devol_time(1e3 * size, 800.0)
        return *falling, *mixed, bubbles, slow, 10 * m.gas_density.rhog(28, gas, 500)

    return rates, 1e-3, 1.2, np.array([1.1, 0.8, 0.4])


@program("emsig/empymod", "`EMArray.amp`, `EMArray.pha`: amplitudes and phases of fields in a class of arrays")
def field_arrays(checkout: Checkout) -> tuple[Any, ...]:
    stub("numba", njit=lambda *_, **__: lambda f: f)
    stub("scooby", Report=object)
    stub("libdlf", "libdlf.hankel", "libdlf.fourier", __all__=[])
    checkout.bare("empymod", "empymod")
    utils = checkout.package("empymod.utils")

    def phases(real: Any, imaginary: Any) -> Any:
        field = utils.EMArray(real + 1j * imaginary)
        scaled = 2 * field[1:] + field[:-1].conj()
        return field.amp(), field.pha(), field.pha(deg=True, unwrap=False, lag=False), scaled.amp(), abs(field)

    return phases, DRAWS.normal(size=5), DRAWS.normal(size=5)


@program("anyoptimization/pymoo", "`DTLZ2`, `ZDT1`, `WeldedBeam`, `PressureVessel`: objectives and limits of designs")
def designs(checkout: Checkout) -> tuple[Any, ...]:
    problems = checkout.package("pymoo.problems")
    named = {name: problems.get_problem(name) for name in ("zdt1", "zdt3", "bnh", "osy", "welded_beam")}
    named |= {name: problems.get_problem(name) for name in ("pressure_vessel", "g1", "g7", "kursawe", "tnk")}
    named |= {"dtlz2": problems.get_problem("dtlz2", n_var=6), "dtlz7": problems.get_problem("dtlz7", n_var=6)}

    def objectives(part: Any) -> Any:
        found = []
        for problem in named.values():
            low, high = problem.bounds()
            point = (low + (high - low) * part[: problem.n_var])[None]
            out: dict[str, Any] = {}
            problem._evaluate(point, out)
            found += [np.ravel(np.asarray(value)) / 100 for value in out.values()]
        return found

    return objectives, DRAWS.uniform(0.2, 0.8, 30)


@program("arkottke/pygmm", "`BooreStewartSeyhanAtkinson2014`, `AfshariStewart2016`: shaking by size and distance")
def shaking(checkout: Checkout) -> tuple[Any, ...]:
    models = checkout.package("pygmm", "src")

    def motions(size: Any, distance: Any, speed: Any) -> Any:
        site = models.Scenario(mag=size, dist_jb=distance, dist_rup=distance + 2, v_s30=speed, mechanism="SS")
        motion = models.BooreStewartSeyhanAtkinson2014(site)
        lasting = models.AfshariStewart2016(site)
        times = lasting.duration["D_5t75"], lasting.duration["D_5t95"]
        return np.log(motion.spec_accels), motion.ln_stds, np.log(motion.pga), *times

    return motions, 6.3, 25.0, 400.0


@program("astropy", "`Quantity`: `to`, `concatenate`, `interp`, `Angle`, equivalencies, by plain numbers with units")
def quantities(_: None) -> tuple[Any, ...]:
    import astropy.constants as c
    import astropy.units as u
    from astropy.coordinates import Angle, angular_separation

    def measured(x: Any) -> Any:
        length, mass = x * u.km, x[::-1] * u.Msun
        length += 3 * u.m
        radius = (2 * c.G * mass / c.c**2).to("km")
        table = np.interp(length, [0.0, 1.0, 5.0] * u.km, [1.0, 3.0, 2.0] * u.K)
        waves = (x * u.um).to(u.THz, u.spectral())
        joined = np.hstack([length, radius]).to_value("m")
        apart = angular_separation(x[0] * u.deg, x[1] * u.deg, 0.3 * u.rad, x[2] * u.deg)
        norms = np.linalg.norm(length).to_value("cm"), np.var(radius).value, np.clip(length, 1 * u.m, 1.5 * u.km).value
        return radius.value, table.value, waves.value, 1e-3 * joined, apart.value, Angle(x * u.deg).radian, *norms

    return measured, np.array([0.7, 1.3, 2.1])


@program("astropy", "`LombScargle`, `biweight_location`, `sigma_clip`: periods and robust means of measurements")
def robust_means(_: None) -> tuple[Any, ...]:
    from astropy import stats
    from astropy.timeseries import LombScargle

    times = np.cumsum(DRAWS.uniform(0.5, 1.5, 20))

    def of_values(values: Any, frequency: Any) -> Any:
        periods = LombScargle(times, values, 0.1).power(frequency, method="slow")
        model = LombScargle(times, values).model(times[:3], frequency[0])
        robust = stats.biweight_location(values), stats.biweight_scale(values), stats.mad_std(values)
        return periods, model, *robust, stats.circmean(values), stats.rayleightest(values)

    return of_values, DRAWS.normal(size=20), np.array([0.11, 0.23])


@program("metpy", "`dewpoint_from_relative_humidity`, `potential_temperature`, `lcl`: air, in pint's units")
def air_with_units(_: None) -> tuple[Any, ...]:
    import metpy.calc as air
    from metpy.units import units

    def of_air(warm: Any, pressure: Any, humidity: Any) -> Any:
        t, p = warm * units.kelvin, pressure * units.hPa
        dew = air.dewpoint_from_relative_humidity(t, humidity * units.dimensionless)
        mixed = air.mixing_ratio_from_relative_humidity(p, t, humidity * units.dimensionless)
        potential = air.potential_temperature(p, t), air.virtual_temperature(t, mixed), air.density(p, t, mixed)
        wind = air.wind_speed(warm * units("m/s"), pressure * units("knot"))
        speed = wind, air.equivalent_potential_temperature(p, t, dew)
        return [one.to_base_units().magnitude for one in (dew, mixed, *potential, *speed)]

    return of_air, np.array([288.0, 295.0]), np.array([900.0, 850.0]), np.array([0.4, 0.7])
