"""Fields that no other table has: seismic rocks, power grids, molecules, spins, steam, splines, rays, races."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub
from scipy.special import factorial2

DRAWS = np.random.default_rng(11)


@program("agilescientific/bruges", "`scattering_matrix`, `zoeppritz_rpp`: reflections past critical angles, by rocks")
def reflections(checkout: Checkout) -> tuple[Any, ...]:
    stub("pkg_resources", DistributionNotFound=ImportError)
    rocks = checkout.package("bruges.reflection.reflection")
    angles = np.array([5.0, 20.0, 50.0])

    def waves(upper: Any, lower: Any) -> Any:
        matrix = rocks.scattering_matrix(*upper, *lower, angles)
        return matrix, rocks.zoeppritz_rpp(*upper, *lower, angles), rocks.shuey(*upper, *lower, angles)

    return waves, np.array([2600.0, 1250.0, 2200.0]), np.array([4200.0, 2300.0, 2450.0])


@program("agilescientific/bruges", "`nmo_correction`, `depth_to_time`: a gather by its traces and its velocities")
def moveout(checkout: Checkout) -> tuple[Any, ...]:
    stub("pkg_resources", DistributionNotFound=ImportError)
    nmo, convert = checkout.package("bruges.transform.nmo"), checkout.package("bruges.transform.timedepthconv")
    offsets = np.array([120.0, 310.0])

    def corrected(gather: Any, speeds: Any) -> Any:
        return nmo.nmo_correction(gather, 0.05, offsets, speeds), convert.depth_to_time(
            gather[:, 0], speeds, 10.0, np.linspace(0.002, 0.15, 9), mode="linear"
        )

    return corrected, DRAWS.normal(size=(14, 2)), np.linspace(1510.0, 2500.0, 14)


@program("rwl/PYPOWER", "`makeYbus`, `newtonpf` of nine buses: complex voltages by loads and lines")
def power_flow(checkout: Checkout) -> tuple[Any, ...]:
    ybus, newton, sbus = (checkout.package(f"pypower.{name}") for name in ("makeYbus", "newtonpf", "makeSbus"))
    options = {**checkout.package("pypower.ppoption").ppoption(), "VERBOSE": 0, "PF_TOL": 1e-13}
    case = checkout.package("pypower.case9").case9()
    bus, generators = case["bus"], case["gen"]
    bus[:, 0], generators[:, 0] = bus[:, 0] - 1, generators[:, 0] - 1
    case["branch"][:, :2] -= 1

    def voltages(loads: Any, lines: Any) -> Any:
        loaded, branch = bus.copy(), case["branch"].copy()
        loaded[:, 2:4], branch[:, 2:5] = loads, lines
        matrix, _, _ = ybus.makeYbus(100.0, loaded, branch)
        power = sbus.makeSbus(100.0, loaded, generators)
        start = np.ones(9, complex)
        return newton.newtonpf(matrix, power, start, [0], [1, 2], [3, 4, 5, 6, 7, 8], options)[0]

    return voltages, bus[:, 2:4] + 1.0, case["branch"][:, 2:5] + 1e-3


@program("jjgoings/McMurchie-Davidson", "`RHF` of HeH+, with the integrals of its reference: energies by places")
def hartree_fock(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("mmd.integrals", "mmd/integrals")
    reference = checkout.package("mmd.integrals.reference")
    reference.fact2 = lambda n: factorial2(max(n, 1))  # as in older SciPy, which had 1 at -1
    zero = dict.fromkeys(("Mu", "RxDel"), lambda *_: 0.0)  # not of the energy, and not in the reference
    stub("mmd.integrals.onee", **{name: getattr(reference, name) for name in "STV"}, **zero)
    stub("mmd.integrals.twoe", doERIs=repulsions(reference), ERI=reference.ERI, Basis=basis_function(reference))
    stub("mmd.integrals.fock", "mmd.integrals.grad", "mmd.forces", Forces=object)
    stub("mmd.postscf", "mmd.realtime", PostSCF=object, RealTime=object)
    molecules = checkout.package("mmd.molecule")

    def energy(places: Any) -> Any:
        molecule = molecules.Molecule("1 1\nHe 0.0 0.0 0.0\nH 0.0 0.0 0.77\n")
        molecule.basis_data = {1: [("S", [(0.4, 1.0)])], 2: [("S", [(0.9, 1.0)])]}
        for atom, place in zip(molecule.atoms, places, strict=True):
            atom.origin = place
        molecule.formBasis()
        molecule.RHF(doPrint=False, DIIS=False, conver=1e-12)
        return molecule.energy.real, molecule.MO

    return energy, np.array([[0.0, 0.1, 0.0], [0.1, 0.0, 1.4]])


def repulsions(reference: Any) -> Any:
    def tensor(n: int, out: Any, functions: Any) -> Any:
        for place in np.ndindex(n, n, n, n):
            out[place] = reference.ERI(*(functions[i] for i in place))
        return out

    return tensor


def basis_function(reference: Any) -> Any:
    return lambda origin, shell, count, exps, coefs: reference.BasisFunction(origin, shell, count, exps, coefs)


@program("sametz/nmrsim", "`secondorder_dense`: lines of three coupled spins, by frequencies and couplings")
def coupled_spins(checkout: Checkout) -> tuple[Any, ...]:
    stub("sparse")
    checkout.bare("nmrsim", "src/nmrsim")
    quantum = checkout.package("nmrsim.qm", "src")
    couplings = np.array([[0.0, 7.1, 2.3], [7.1, 0.0, 12.2], [2.3, 12.2, 0.0]])
    return lambda v, j: quantum.secondorder_dense(v, j + j.T), np.array([430.0, 265.0, 300.0]), couplings / 2


@program("jjgomera/iapws", "`_Region1`, `_Region2`, `_Region3`, `_TSat_P`: water and steam by pressure and temperature")
def steam(checkout: Checkout) -> tuple[Any, ...]:
    water = checkout.package("iapws.iapws97")

    def properties(t: Any, p: Any) -> Any:
        parts = water._Region1(t, p), water._Region2(t + 400, p / 10), water._Region3(500.0 * t / 300, 650.0)
        backward = water._Backward1_T_Ph(p, 500.0), water._TSat_P(p), water._PSat_T(t)
        return *(part[k] for part in parts for k in ("v", "h", "s", "cp", "w")), *backward

    return properties, 300.0, 3.0


@program("jjgomera/iapws", "`IAPWS97(P, h)`, `IAPWS97(P, x)`: steam by pressure, enthalpy and quality")
def wet_steam(checkout: Checkout) -> tuple[Any, ...]:
    water = checkout.package("iapws.iapws97")

    def state(p: Any, h: Any, x: Any) -> Any:
        hot, wet = water.IAPWS97(P=p, h=h), water.IAPWS97(P=p, x=x)
        return hot.T, hot.s, hot.v, hot.cp, hot.mu, wet.h, wet.s, wet.T, wet.Liquid.k

    return state, 2.0, 3000.0, 0.4


@program("jjgomera/iapws", "`IAPWS95(T, P)`: density and properties of water, with `fsolve`")
def helmholtz(checkout: Checkout) -> tuple[Any, ...]:
    water = checkout.package("iapws.iapws95")

    def state(t: Any, p: Any) -> Any:
        found = water.IAPWS95(T=t, P=p)
        return found.rho, found.h, found.s, found.cp, found.w

    return state, 400.0, 2.0


@program("orbingol/NURBS-Python", "`interpolate_curve`, `NURBS.Surface`: curves and surfaces by points and weights")
def splines_of_lists(checkout: Checkout) -> tuple[Any, ...]:
    fitting, nurbs = checkout.package("geomdl.fitting"), checkout.package("geomdl.NURBS")
    operations = checkout.package("geomdl.operations")

    def shapes(points: Any, net: Any) -> Any:
        curve = fitting.interpolate_curve([list(p) for p in points], 3)
        surface = nurbs.Surface()
        surface.degree_u = surface.degree_v = 2
        surface.set_ctrlpts([list(p) for p in net], 3, 3)
        surface.knotvector_u = surface.knotvector_v = [0, 0, 0, 1, 1, 1]
        ends = curve.evaluate_single(0.37), curve.derivatives(0.37, 2)[2], surface.evaluate_single((0.3, 0.8))
        return *map(np.array, ends), np.array(operations.tangent(surface, (0.3, 0.8), normalize=True)[1])

    net = np.column_stack([np.indices((3, 3)).reshape(2, 9).T, DRAWS.normal(size=9), DRAWS.uniform(0.5, 1, size=9)])
    return shapes, np.column_stack([np.arange(6.0), DRAWS.normal(size=6)]), net


@program("jamesbowman/raytrace", "`raytrace` of three spheres with reflections: colours by places and radii")
def spheres(checkout: Checkout) -> tuple[Any, ...]:
    stub("PIL")  # which would write the picture
    rays = checkout.load("rt3.py")
    rays.rgb = vec = rays.vec3
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.9, 0.9, 4), np.linspace(-0.7, 0.7, 3)))

    def colours(places: Any, sizes: Any) -> Any:
        paint = vec(0, 0, 1), vec(0.5, 0.2, 0.5), vec(1, 0.6, 0.2)
        scene = [rays.Sphere(vec(*c), r, p) for c, r, p in zip(places, sizes, paint, strict=True)]
        scene.append(rays.CheckeredSphere(vec(0, -20.6, 0), 20.0, vec(0.75, 0.75, 0.75), 0.25))
        return rays.raytrace(rays.E, (vec(x, y, 0) - rays.E).norm(), scene).components()

    places = np.array([[0.75, 0.1, 1.0], [-0.75, 0.1, 2.25], [-2.75, 0.1, 3.5]])
    return colours, places, np.array([0.6, 0.61, 0.62])


@program("ritchie46/anaStruct", "`SystemElements.solve` of a frame: displacements, moments by loads and stiffness")
def frame(checkout: Checkout) -> tuple[Any, ...]:
    elements = checkout.package("anastruct.fem.system")

    def deformed(ea: Any, ei: Any, load: Any, k: Any) -> Any:
        system = elements.SystemElements(EA=ea, EI=ei)
        system.add_element(location=[[0, 0], [0, 5]])
        system.add_element(location=[[0, 5], [5, 5]])
        system.add_element(location=[[5, 5], [5, 0]])
        system.add_support_fixed(node_id=1)
        system.add_support_spring(node_id=4, translation=3, k=k)
        system.point_load(Fx=load, node_id=2)
        system.q_load(q=-load / 10, element_id=2)
        moved = system.solve()
        return moved, *(np.asarray(e.bending_moment) for e in system.element_map.values())

    return deformed, 15000.0, 5000.0, 30.0, 4000.0


@program("neherlab/treetime", "`GTR.custom`, `expQt`, `optimal_t_compressed`: substitutions by frequencies and rates")
def substitutions(checkout: Checkout) -> tuple[Any, ...]:
    parts = "Seq", "SeqRecord", "SeqIO", "Align", "AlignIO", "Phylo", "Phylo.BaseTree"
    stub("Bio", *(f"Bio.{part}" for part in parts), __version__="")
    models = checkout.package("treetime.gtr")
    pairs, counts = np.array([(i, j) for i in range(4) for j in range(4)]), np.array([30, 2, 3, 1] * 4)
    counts[[5, 10, 15]] = 25
    profile = DRAWS.dirichlet(np.ones(4), size=6)

    def likelihoods(rates: Any, frequencies: Any, t: Any) -> Any:
        model = models.GTR.custom(mu=1.3, pi=frequencies, W=rates + rates.T, alphabet="nuc_nogap")
        branch = model.optimal_t_compressed(pairs, counts)
        child = model.propagate_profile(profile, t)
        # The branch itself is known to half the digits, and so is its value in a run that rounds otherwise.
        return child, *(model.prob_t_compressed(pairs, counts, at, return_log=True) for at in (branch, t))

    return likelihoods, DRAWS.uniform(0.3, 1.0, size=(4, 4)), np.array([0.3, 0.2, 0.35, 0.15]), 0.4


@program("ECSHackWeek/impedance.py", "`CustomCircuit.predict`, `linKK`: impedances by the elements of a circuit")
def impedances(checkout: Checkout) -> tuple[Any, ...]:
    stub("altair")
    circuits = checkout.package("impedance.models.circuits")
    validation = checkout.package("impedance.validation")
    frequencies = np.logspace(-2, 4, 15)

    def spectra(guess: Any) -> Any:
        text = "R0-p(R1,CPE1)-p(R2-Wo1,C2)-L0"
        z = circuits.CustomCircuit(text, initial_guess=list(guess)).predict(frequencies, use_initial=True)
        return z, *validation.linKK(frequencies, z, c=None, max_M=6, fit_type="complex")[1:]

    return spectra, np.array([0.01, 0.02, 1.2, 0.9, 0.05, 0.06, 100.0, 3.0, 1e-7])


@program("Mayitzin/ahrs", "`EKF`, `Madgwick`, `QUEST`: quaternions of attitude by gyroscope, gravity and field")
def attitudes(checkout: Checkout) -> tuple[Any, ...]:
    ahrs = checkout.package("ahrs")

    def estimates(turns: Any, gravity: Any, field: Any) -> Any:
        kalman = ahrs.filters.EKF(turns, gravity, field, frequency=50.0, magnetic_ref=60.0)
        steepest = ahrs.filters.Madgwick(turns, gravity, field, frequency=50.0)
        return kalman.Q, steepest.Q, ahrs.filters.QUEST(gravity, field, magnetic_dip=60.0).Q

    noise = DRAWS.normal(size=(3, 6, 3))
    return estimates, noise[0], np.array([0.3, 0.5, 9.7]) + noise[1], np.array([20.0, 3.0, 40.0]) + noise[2]


@program("TUMFTM/trajectory_planning_helpers", "`calc_splines`, `calc_head_curv_an`: a lap, by its points and speeds")
def race(checkout: Checkout) -> tuple[Any, ...]:
    stub("quadprog")
    helpers = checkout.package("trajectory_planning_helpers")

    def lap(path: Any, speeds: Any) -> Any:
        x, y, _, normals = helpers.calc_splines.calc_splines(path=np.vstack([path, path[0]]))
        _, at, t, _ = helpers.interp_splines.interp_splines(coeffs_x=x, coeffs_y=y, stepnum_fixed=[4] * 10)
        heading, curvature = helpers.calc_head_curv_an.calc_head_curv_an(x, y, at, t)
        lengths = helpers.calc_spline_lengths.calc_spline_lengths(x, y)
        return normals, heading, curvature, helpers.calc_t_profile.calc_t_profile(speeds, lengths)

    angle = np.arange(10) * 2 * np.pi / 10
    path = np.column_stack([120 * np.cos(angle), 90 * np.sin(angle)]) + DRAWS.normal(size=(10, 2))
    return lap, path, np.linspace(20.0, 35.0, 11)


@program("bendudson/freegs", "`GSsparse`, `createVcycle`, `freeBoundary`: a plasma's flux by its domain and current")
def tokamak(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("freegs", "freegs")
    boundary, shafranov, grids = (checkout.package(f"freegs.{n}") for n in ("boundary", "gradshafranov", "multigrid"))

    def flux(ends: Any, shape: Any) -> Any:
        radii, heights = np.meshgrid(np.linspace(ends[0], ends[1], 9), np.linspace(-1.0, 1.0, 9), indexing="ij")
        current = shape[0] * np.exp(-shape[1] * ((radii - 1.0) ** 2 + (heights / 1.3) ** 2))
        psi = np.zeros((9, 9))
        boundary.freeBoundary(SimpleNamespace(R=radii, Z=heights), current, psi)
        edges, source = psi.copy(), radii * current
        source[[0, -1]], source[:, [0, -1]] = edges[[0, -1]], edges[:, [0, -1]]
        cycle = grids.createVcycle(9, 9, shafranov.GSsparse(*ends, -1.0, 1.0), nlevels=2, niter=3, ncycle=2)
        return edges, cycle(psi, source)

    return flux, np.array([0.2, 1.8]), np.array([1.0, 2.5])


@program("mattja/sdeint", "`itoSRI2`, `stratKP2iS`, `Ikpw`: paths of stochastic equations by their parameters")
def stochastic_paths(checkout: Checkout) -> tuple[Any, ...]:
    equations = checkout.package("sdeint")
    times, steps = np.linspace(0, 0.5, 11), 0.2 * DRAWS.normal(size=(10, 2))

    def paths(a: Any, b: Any, start: Any) -> Any:
        drift, noise = lambda y, t: a @ y, lambda y, t: b * (1 + y[:, None] ** 2) / 4
        rng = np.random.default_rng
        ito = equations.itoSRI2(drift, noise, start, times, dW=steps, generator=rng(3))
        columns = [lambda y, t, k=k: noise(y, t)[:, k] for k in range(2)]
        return ito, equations.stratSRS2(drift, columns, start, times, dW=steps, generator=rng(4))

    return paths, np.array([[-0.5, 1.0], [-1.0, -0.3]]), np.array([[0.3, 0.1], [0.2, 0.4]]), np.array([1.0, 0.5])


@program("jgomezdans/prosail", "`run_prosail`: the reflectance of a canopy by the biochemistry of its leaves")
def canopy(checkout: Checkout) -> tuple[Any, ...]:
    leaves = checkout.package("prosail")

    def reflectance(leaf: Any, cover: Any, angles: Any) -> Any:
        n, cab, car, cbrown, cw, cm = leaf
        lai, lidfa, hotspot, soil = cover
        spectrum = leaves.run_prosail(
            n, cab, car, cbrown, cw, cm, lai, lidfa, hotspot, *angles, typelidf=2, rsoil=soil, psoil=0.3
        )
        return spectrum[::300]

    leaf, cover = np.array([1.6, 40.0, 8.0, 0.1, 0.01, 0.009]), np.array([3.0, 57.0, 0.1, 0.9])
    return reflectance, leaf, cover, np.array([30.0, 10.0, 40.0])


@program("PythonOT/POT", "`sinkhorn`, `bures_wasserstein_distance`: transport between points, by points and weights")
def transport(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("ot", "ot.bregman"):
        checkout.bare(name, name.replace(".", "/"))
    sinkhorn = checkout.package("ot.bregman._sinkhorn")
    tools, gaussian = checkout.package("ot.utils"), checkout.package("ot.gaussian")

    def plans(x: Any, y: Any, a: Any) -> Any:
        cost, b = tools.dist(x, y), tools.unif(6)
        plan = sinkhorn.sinkhorn(a, b, cost, 0.8, stopThr=1e-13)
        stable = sinkhorn.sinkhorn(a, b, cost, 0.8, method="sinkhorn_log", stopThr=1e-13)
        between = gaussian.bures_wasserstein_distance(x.mean(0), y.mean(0), x.T @ x, y.T @ y)
        return plan, stable, between, tools.proj_simplex(2.3 * a)

    points = DRAWS.normal(size=(11, 2))
    return plans, points[:5], points[5:], np.array([0.1, 0.3, 0.2, 0.15, 0.25])


@program("nchopin/particles", "`Kalman`, `BaumWelch`: likelihoods of states of space, by matrices and probabilities")
def hidden_states(checkout: Checkout) -> tuple[Any, ...]:
    kalman, hmm = checkout.package("particles.kalman"), checkout.package("particles.hmm")
    track = [row for row in DRAWS.normal(size=(6, 1, 2))]

    def likelihoods(f: Any, noise: Any, moves: Any, mus: Any) -> Any:
        model = kalman.MVLinearGauss(F=f, G=np.eye(2), covX=noise @ noise.T, covY=np.eye(2) / 2)
        filtered = kalman.Kalman(ssm=model, data=track)
        filtered.smoother()
        chain = hmm.GaussianHMM(mus=mus, sigmas=np.ones(3), trans_mat=moves / moves.sum(1, keepdims=True))
        waves = hmm.BaumWelch(hmm=chain, data=[row[0, 0] for row in track])
        waves.backward()
        return np.array(filtered.logpyt), filtered.smth[2].mean, np.array(waves.logpyt), np.array(waves.smth)

    matrices = np.array([[0.9, 0.2], [-0.1, 0.8]]), np.array([[0.5, 0.0], [0.1, 0.4]])
    return likelihoods, *matrices, DRAWS.uniform(0.2, 1.0, size=(3, 3)), np.array([-1.0, 0.2, 1.1])


@program("mikgroup/sigpy", "`abrm`, `abrm_hp`, `ab2rf`, `b2a`: pulses of magnetic resonance and the turns they make")
def pulses(checkout: Checkout) -> tuple[Any, ...]:
    stub("pywt", "numba", jit=lambda **_: lambda f: f, vectorize=lambda *_, **__: lambda f: f)
    signals, slr = checkout.package("sigpy.mri.rf.sim"), checkout.package("sigpy.mri.rf.slr")

    def turns(real: Any, imaginary: Any, at: Any) -> Any:
        pulse = real + 1j * imaginary
        a, b = signals.abrm(pulse, at, balanced=True)
        steps = signals.abrm_hp(pulse, np.full((len(at), 1), 0.3), at[:, None], 0.1)
        return a, b, *steps, slr.b2rf(0.2 * pulse)

    return turns, *0.2 * DRAWS.normal(size=(2, 8)), np.linspace(-2.0, 2.1, 5)


@program("quartiq/rayopt", "`System.propagate`, `paraxial_matrix` of three lenses, by curvatures and distances")
def lenses(checkout: Checkout) -> tuple[Any, ...]:
    stub("fastcache", clru_cache=lambda *_, **__: lambda f: f)
    stub("rayopt.cachend", PolarCacheND=object)
    checkout.bare("rayopt", "rayopt")
    elements, materials, systems = (checkout.package(f"rayopt.{n}") for n in ("elements", "material", "system"))
    glass = [materials.ModelMaterial(n=n) for n in (1.62, 1.0, 1.62, 1.0, 1.62, 1.0)]

    def traced(curvatures: Any, distances: Any, heights: Any) -> Any:
        lens = systems.System()
        for c, d, m in zip(curvatures, distances, glass, strict=True):
            lens.append(elements.Spheroid(curvature=c, distance=d, material=m, conic=0.8))
        rays = np.column_stack([heights, heights[::-1], 0 * heights])
        forward = np.array([[0.02, 0.01, 1.0]] * 3) / np.sqrt(1.0005)
        last = [*lens.propagate(rays, forward, 1.0, 587e-9, start=0)][-1]
        return last[0], last[1], last[4], lens.paraxial_matrix(587e-9, start=0)[1]

    bends = np.array([0.047, -0.006, -0.049, 0.051, 0.007, -0.058])
    return traced, bends, np.array([5.0, 2.0, 6.0, 1.0, 6.0, 2.0]), np.array([-2.0, 0.5, 3.0])


class Nothing:
    """A class of no objects."""


@program("vprusso/toqito", "`fidelity`, `concurrence`, `partial_trace`: entanglement of states by their amplitudes")
def entanglement(checkout: Checkout) -> tuple[Any, ...]:
    names = "settings", "expressions", "expressions.expression", "expressions.variable"
    stub("picos", "cvxpy", *(f"cvxpy.{name}" for name in names), Expression=Nothing, Variable=Nothing)
    stub(*("cvxpy.atoms", "cvxpy.atoms.affine", "cvxpy.atoms.affine.vstack"), Vstack=Nothing)
    states, metrics = checkout.package("toqito.state_props"), checkout.package("toqito.state_metrics")
    matrices = checkout.package("toqito.matrix_ops")

    def measures(a: Any, b: Any) -> Any:
        root = a[:4] + 1j * a[4:]
        other = b[:4] + 1j * b[4:]
        rho, sigma = (m @ m.conj().T / np.trace(m @ m.conj().T).real for m in (root, other))
        parts = matrices.partial_trace(rho, [0]), matrices.partial_transpose(sigma, [1])
        sizes = states.concurrence(rho), states.negativity(rho), states.von_neumann_entropy(sigma)
        return *sizes, metrics.fidelity(rho, sigma), metrics.trace_distance(rho, sigma), *parts

    bell = np.vstack([np.outer([2.0, 0.2, 0.1, 2.0], [1.0, 0.1, 0.2, 0.9]), np.zeros((4, 4))])
    return measures, bell + 0.3 * DRAWS.normal(size=(8, 4)), DRAWS.normal(size=(8, 4))
