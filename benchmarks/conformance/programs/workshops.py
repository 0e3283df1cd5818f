"""Programs of many classes: tracks, cavities, quaternions, adaptive filters, seawater, meshes, particles."""

import datetime
import sys
import types
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, numpy_for_autograd, program, stub

from effgrad import grad

UNUSED = ("rtree", "ordered_set", "utm", "pymap3d", "ruamel", "ruamel.yaml", "plotly", "geopy", "networkx")
DRAWS = np.random.default_rng(21)


def unscented(checkout: Checkout) -> Any:
    """The last state of Stone-Soup's unscented Kalman filter, from a motion, a sensor and the vectors that it sees."""
    stub(*UNUSED)
    package = checkout.package
    predictor, updater = package("stonesoup.predictor.kalman"), package("stonesoup.updater.kalman")
    states, detections = package("stonesoup.types.state"), package("stonesoup.types.detection")
    hypotheses = package("stonesoup.types.hypothesis")
    start = datetime.datetime(2026, 1, 1)

    def filtered(motion: Any, sensor: Any, vectors: list[Any]) -> Any:
        predict, update = predictor.UnscentedKalmanPredictor(motion), updater.UnscentedKalmanUpdater(sensor)
        state = states.GaussianState([[10.0], [1.0], [5.0], [0.5]], np.diag([1.5, 0.5, 1.5, 0.5]), start)
        for k, vector in enumerate(vectors):
            time = start + datetime.timedelta(seconds=k + 1)
            seen = detections.Detection(vector, time)
            state = update.update(hypotheses.SingleHypothesis(predict.predict(state, timestamp=time), seen))
        return state

    return filtered


@program("dstl/Stone-Soup", "`UnscentedKalmanUpdater`, `CartesianToBearingRange`: a track by bearings and ranges")
def tracks(checkout: Checkout) -> tuple[Any, ...]:
    filtered = unscented(checkout)
    linear = checkout.package("stonesoup.models.transition.linear")
    measures = checkout.package("stonesoup.models.measurement.nonlinear")
    angles = checkout.package("stonesoup.types.angle")

    def tracked(bearings: Any, ranges: Any, place: Any, noise: Any) -> Any:
        motion = linear.CombinedLinearGaussianTransitionModel([linear.ConstantVelocity(noise)] * 2)
        sensor = measures.CartesianToBearingRange(4, (0, 2), np.diag([0.01, 0.5]), translation_offset=place)
        vectors = [[[angles.Bearing(bearings[k])], [ranges[k]]] for k in range(len(ranges))]
        state = filtered(motion, sensor, vectors)
        return np.asarray(state.state_vector, dtype=float), np.asarray(state.covar, dtype=float)

    return tracked, np.array([0.45, 0.47, 0.48]), np.array([12.3, 13.2, 14.6]), np.array([[0.1], [0.2]]), 0.05


@program("dstl/Stone-Soup", "`OrnsteinUhlenbeck`, `UnscentedKalmanUpdater`: sigma points by ranges alone")
def sigma_points(checkout: Checkout) -> tuple[Any, ...]:
    filtered = unscented(checkout)
    linear = checkout.package("stonesoup.models.transition.linear")
    measures = checkout.package("stonesoup.models.measurement.linear")

    def tracked(seen: Any, noise: Any, damping: Any) -> Any:
        motion = linear.CombinedLinearGaussianTransitionModel(
            [linear.ConstantVelocity(noise), linear.OrnsteinUhlenbeck(noise, damping)]
        )
        sensor = measures.LinearGaussian(4, (0, 2), np.diag([0.2, 0.5]))
        state = filtered(motion, sensor, [row[:, None] for row in seen])
        return np.asarray(state.state_vector), np.asarray(state.covar)

    return tracked, np.array([[11.2, 5.4], [12.1, 6.2], [12.9, 6.4]]), 0.05, 0.3


@program("DCC-Lab/RayTracing", "`Matrix`, `GaussianBeam`, `ImagingPath`, `LaserCavity`: rays and beams by the elements")
def cavities(checkout: Checkout) -> tuple[Any, ...]:
    stub("tkinter", "mytk")
    raytracing = checkout.package("raytracing")

    def beams(focus: Any, spaces: Any, angle: Any, waist: Any) -> Any:
        path = raytracing.ImagingPath()
        for element in (raytracing.Space(spaces[0]), raytracing.Lens(focus), raytracing.Space(spaces[1])):
            path.append(element)
        path.append(raytracing.ThickLens(n=1.5, R1=20.0, R2=-25.0, thickness=spaces[2]))
        rays = [ray for ray in path.trace(raytracing.Ray(y=0.3, theta=angle))]
        beam = raytracing.GaussianBeam(w=waist, R=float("+Inf"), wavelength=1e-3)
        after = path.transferMatrix() * beam
        cavity = raytracing.LaserCavity()
        for element in (raytracing.Space(spaces[1]), raytracing.CurvedMirror(-focus * 8), raytracing.Space(spaces[1])):
            cavity.append(element)
        mode = cavity.laserModes()[0]
        front, back = path.effectiveFocalLengths()
        return rays[-1].y, rays[-1].theta, after.w, after.R, after.waist, front, back, mode.w, mode.q

    return beams, 6.0, np.array([4.0, 9.0, 1.2]), 0.05, 0.4


@program("adamlwgriffiths/Pyrr", "`Quaternion`, `Matrix44`, `Vector3`: arrays dispatched by their types, by angles")
def scene(checkout: Checkout) -> tuple[Any, ...]:
    pyrr = checkout.package("pyrr")

    def transformed(axis: Any, angles: Any, point: Any, t: Any) -> Any:
        one = pyrr.Quaternion.from_axis_rotation(axis / np.linalg.norm(axis), angles[0])
        other = pyrr.Quaternion.from_x_rotation(angles[1]) * pyrr.Quaternion.from_z_rotation(angles[2])
        between = one.slerp(other, t)
        view = pyrr.Matrix44.look_at(pyrr.Vector3(point), [0.1, 0.2, 0.0], [0.0, 1.0, 0.0])
        lens = pyrr.Matrix44.perspective_projection(45.0 * t + 20, 1.5, 0.1, 100.0)
        moved = pyrr.Matrix44.from_translation(point) * between.matrix44
        seen = lens * view * moved * pyrr.Vector3([0.3, -0.2, 0.5])
        found = seen, between * pyrr.Vector3(point), (one.inverse * other).axis, view.inverse
        return *map(np.asarray, found), between.angle

    return transformed, np.array([0.3, 0.8, -0.4]), np.array([0.5, 0.9, -0.3]), np.array([1.2, 2.0, 3.1]), 0.4


KINDS = ("RLS", 0.9, {}), ("NLMS", 0.0, {}), ("GNGD", 0.0, {"ro": 0.1}), ("LMS", 0.0, {}), ("Llncosh", 0.0, {})


@program("matousc89/padasip", "`FilterRLS`, `FilterNLMS`, `FilterGNGD`, `FilterAP`: adaptive filters by the signal")
def adaptive_filters(checkout: Checkout) -> tuple[Any, ...]:
    padasip = checkout.package("padasip")

    def adapted(signal: Any, rate: Any) -> Any:
        inputs = padasip.input_from_history(padasip.standardize(signal), 3)
        target = signal[2:] ** 2
        found = []
        for name, mu, options in KINDS:
            made = getattr(padasip.filters, f"Filter{name}")(3, mu=mu + rate, w="zeros", **options)
            y, e, w = made.run(target, inputs)
            found += [y[-3:], e[-1], w[-1]]
        affine = padasip.filters.FilterAP(3, order=2, mu=rate, w="zeros")
        return *found, affine.run(target, inputs)[0][-2:], padasip.misc.RMSE(found[0], target[-3:])

    return adapted, DRAWS.normal(size=14), 0.05


@program("mvdh7/PyCO2SYS", "`sys`: the carbonate system of seawater by alkalinity, carbon, temperature and salinity")
def carbonates(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    sys.modules["autograd"].elementwise_grad = lambda f: grad(lambda *args: np.sum(f(*args)))
    co2 = checkout.package("PyCO2SYS")

    def solved(alkalinity: Any, carbon: Any, temperature: Any, salinity: Any) -> Any:
        totals = co2.salts.assemble(salinity, 10.0, 2.0, 0.0, 0.0, 10, 1)
        constants = co2.equilibria.assemble(temperature, 100.0, totals, 3, 10, 1, 1, 3)
        ph = co2.solve.get.pHfromTATC(alkalinity * 1e-6, carbon * 1e-6, totals, constants)
        parts = co2.solve.get.speciation(carbon * 1e-6, ph, totals, constants)
        return ph, *[parts[name] * 1e4 for name in ("HCO3", "CO3", "CO2")]

    waters = [2300.0, 2350.0], [2100.0, 2080.0], [10.0, 15.0], [35.0, 33.0]
    return solved, *map(np.array, waters)


@program("dynamicslab/pysindy", "`PolynomialLibrary`, `FourierLibrary`, `STLSQ`, `FiniteDifference`: equations by data")
def equations(checkout: Checkout) -> tuple[Any, ...]:
    stub("derivative", "cvxpy", "gurobipy")
    sindy = checkout.package("pysindy")
    t = np.linspace(0, 2, 25)
    series = np.column_stack([np.cos(2 * t) + 0.2, np.sin(2 * t) * np.exp(-0.1 * t)])

    def discovered(noise: Any) -> Any:
        x = series + noise
        slopes = sindy.FiniteDifference(order=2)(x, t)
        smooth = sindy.SmoothedFiniteDifference(smoother_kws={"window_length": 5})(x, t)
        library = sindy.PolynomialLibrary(degree=2) + sindy.FourierLibrary(n_frequencies=1)
        features = np.asarray(library.fit_transform(x))
        found = sindy.STLSQ(threshold=0.05, alpha=0.01).fit(np.asarray(features[:, :6]), np.asarray(slopes))
        return found.coef_, features[::7], smooth[::5]

    return discovered, 0.01 * DRAWS.normal(size=(25, 2))


@program("bsumlin/PyMieScatt", "`MieQ`, `MieQCoreShell`: scattering by spheres, by index, size and wavelength")
def spheres_of_air(checkout: Checkout) -> tuple[Any, ...]:
    stub("shapely", "shapely.geometry")
    mie = checkout.package("PyMieScatt")

    def scattered(real: Any, imaginary: Any, wavelength: Any, diameters: Any) -> Any:
        m = real + 1j * imaginary
        plain = mie.MieQ(m, wavelength, diameters[0])
        coated = mie.MieQCoreShell(m, 1.33 + 0.001j, wavelength, diameters[0], diameters[1])
        small = mie.RayleighMieQ(m, wavelength, diameters[2])
        angles = mie.MatrixElements(m, wavelength, diameters[0], 0.3)
        return *plain, *coated, *small[:5], *angles

    return scattered, 1.5, 0.05, 550.0, np.array([300.0, 420.0, 12.0])


@program("wolph/numpy-stl", "`Mesh`: records of triangles, their normals, areas and middles, turned, by the corners")
def meshes(checkout: Checkout) -> tuple[Any, ...]:
    stub("python_utils", "python_utils.logger", Logged=type("Logged", (), {"_Logged__get_name": lambda *_: "stl"}))
    checkout.bare("stl", "stl")
    mesh = checkout.package("stl.mesh")
    corners = np.array([[0.0, 0, 0], [2, 0, 0], [0, 1.5, 0], [0, 0, 1.2]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])

    def measured(shift: Any, angle: Any) -> Any:
        data = np.zeros(4, dtype=[("normals", float, (3,)), ("vectors", float, (3, 3)), ("attr", "<u8", (1,))])
        data["vectors"] = (corners + shift)[faces]
        body = mesh.Mesh(data, calculate_normals=False)
        body.update_normals()
        before = body.areas.copy()
        body.rotate([0.2, 0.5, 0.8], angle)
        body.translate(np.array([0.3, 0.1, 0.2]))
        return before, body.min_, body.normals, body.x, body.centroids, body.get_unit_normals(), body.v0

    return measured, 0.05 * DRAWS.normal(size=(4, 3)), 0.4


@program("vibrationtoolbox/vibration_toolbox", "`VibeSystem`, `modes_system`, `frf`: vibrations by masses and springs")
def vibrations(checkout: Checkout) -> tuple[Any, ...]:
    stub("ipywidgets", "IPython", "IPython.display", "matplotlib.pyplot", style=types.SimpleNamespace(use=str))
    stub("matplotlib", rcParams={}, pyplot=sys.modules["matplotlib.pyplot"])
    checkout.bare("vibration_toolbox", "vibration_toolbox")
    mdof, sdof = checkout.package("vibration_toolbox.mdof"), checkout.package("vibration_toolbox.sdof")
    colors = types.SimpleNamespace(colors={}, cache={}, to_rgb=tuple)
    sys.modules["matplotlib"].colors = types.SimpleNamespace(colorConverter=colors)
    system = checkout.package("vibration_toolbox.vibesystem")

    def responses(masses: Any, springs: Any, damping: Any) -> Any:
        m = np.diag(masses)
        k = np.array([[springs[0] + springs[1], -springs[1]], [-springs[1], springs[1]]])
        w, p, s, _ = mdof.modes_system_undamped(m, k)
        _, x, _, zeta, omega, *_ = sdof.free_response(masses[0], damping, springs[0], 1, -1, 2)
        vibe = system.VibeSystem(m, damping * m, k)
        _, magnitude, phase = vibe.freq_response(omega=np.linspace(0.5, 8, 5))
        return w, np.abs(s), x[::50], zeta, omega, magnitude, phase, vibe.wn

    return responses, np.array([10.0, 7.0]), np.array([100.0, 60.0]), 0.4


@program("scikit-hep/vector", "`obj`, `array`: momenta of particles by generated classes and dispatched formulas")
def momenta(checkout: Checkout) -> tuple[Any, ...]:
    stub("vector._version", __version__="1.0", version="1.0", version_tuple=(1, 0))
    vector = checkout.package("vector", "src")

    def boosted(p: Any, mass: Any, angle: Any) -> Any:
        one = vector.obj(px=p[0], py=p[1], pz=p[2], mass=mass)
        other = vector.obj(pt=p[1] + 2, phi=angle, eta=p[2], E=9.0 + mass)
        total = one + other
        moved = one.boostCM_of(total).rotateZ(angle)
        flat = vector.obj(x=p[0], y=p[1]) + vector.obj(rho=mass, phi=angle)
        return total.mass, one.deltaR(other), moved.px, moved.E, flat.phi, one.to_xyzt().rapidity, one.dot(other)

    return boosted, np.array([1.2, 0.7, 0.4]), 0.9, 0.6
