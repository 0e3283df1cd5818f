"""Waves, electromagnetic fields, economies, molecules, rotations, spectra, lenses, tensors and stars."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, numpy_for_autograd, program, stub

DRAWS = np.random.default_rng(13)


@program("clawpack/riemann", "`euler_roe_1D`, `euler_hll_1D`, `euler_hllc_1D`: waves and fluxes of gas by its states")
def riemann_euler(checkout: Checkout) -> tuple[Any, ...]:
    euler = checkout.load("riemann/euler_1D_py.py")

    def waves(left: Any, right: Any, gamma: Any) -> Any:
        data = {"gamma": gamma, "gamma1": gamma - 1.0, "efix": False}
        solvers = euler.euler_roe_1D, euler.euler_hll_1D, euler.euler_hllc_1D
        return [part for solve in solvers for part in solve(left, right, None, None, data)]

    density, speed, energy = np.array([1.0, 0.7, 0.9]), np.array([0.2, -0.3, 0.1]), np.array([2.5, 2.0, 3.1])
    left = np.stack([density, density * speed, energy])
    return waves, left, left * np.array([[0.8], [1.1], [0.9]]), 1.4


@program("clawpack/riemann", "`shallow_roe_1D`, `shallow_fwave_1d`, `nonlinear_elasticity_1D`: waves by states and bed")
def riemann_water(checkout: Checkout) -> tuple[Any, ...]:
    shallow = checkout.load("riemann/shallow_1D_py.py")
    elastic = checkout.load("riemann/nonlinear_elasticity_1D_py.py")
    acoustics, burgers = checkout.load("riemann/acoustics_1D_py.py"), checkout.load("riemann/burgers_1D_py.py")

    def waves(left: Any, right: Any, bed: Any, gravity: Any) -> Any:
        data = {"grav": gravity, "efix": False, "dry_tolerance": 1e-3, "sea_level": 0.0}
        rocks = np.abs(np.concatenate([bed, bed]))
        sound = {"zz": gravity, "cc": 1.5, "K1": 1.0, "stress_relation": "exponential"}
        found = [
            shallow.shallow_roe_1D(left, right, None, None, data),
            shallow.shallow_hll_1D(left, right, None, None, data),
            shallow.shallow_fwave_1d(left, right, bed, bed[::-1] + 0.1, data),
            acoustics.acoustics_1D(left, right, None, None, sound),
            burgers.burgers_1D(left[:1], right[:1], None, None, data),
            elastic.nonlinear_elasticity_1D(left, right, rocks + 1.0, rocks + 0.7, sound),
        ]  # fmt: skip
        return [part for parts in found for part in parts]

    left = np.array([[1.0, 0.8, 1.3], [0.2, -0.1, 0.3]])
    return waves, left, left * 0.7 + 0.2, 0.1 * DRAWS.normal(size=(1, 3)), 9.8


@program("lmfit/uncertainties", "`ufloat`, `umath`, `covariance_matrix`: values with errors, by both")
def uncertainties(checkout: Checkout) -> tuple[Any, ...]:
    stub("uncertainties.version", __version__="", __version_tuple__=())
    package, umath = checkout.package("uncertainties"), checkout.package("uncertainties.umath")

    def propagated(values: Any, errors: Any) -> Any:
        x, y, z = (package.ufloat(v, e) for v, e in zip(values, errors, strict=True))
        w = umath.sin(x) * y**2 / (1 + z) + umath.exp(-x * z) - umath.sqrt(y * z)
        total = x * w + umath.atan2(x, y)
        return w.nominal_value, w.std_dev, total.n, total.s, w.derivatives[x], *package.covariance_matrix([w, x])[0]

    return propagated, np.array([0.7, 1.3, 0.4]), np.array([0.1, 0.05, 0.2])


@program("lmfit/uncertainties", "`uarray`, `unumpy.exp`: arrays of objects that hold values with errors, by both")
def uncertain_arrays(checkout: Checkout) -> tuple[Any, ...]:
    stub("uncertainties.version", __version__="", __version_tuple__=())
    unumpy = checkout.package("uncertainties.unumpy")

    def propagated(values: Any, errors: Any) -> Any:
        table = unumpy.uarray(values, errors)
        total = (table * table + unumpy.exp(-table)).sum()
        return total.nominal_value, total.std_dev, unumpy.std_devs(table**2)

    return propagated, np.array([0.7, 1.3, 0.4]), np.array([0.1, 0.05, 0.2])


@program("simpeg/geoana", "`MagneticDipoleWholeSpace`, `CircularLoopWholeSpace`, `ElectrostaticSphere`: fields")
def static_fields(checkout: Checkout) -> tuple[Any, ...]:
    stub("libdlf")
    checkout.package("geoana")
    space = checkout.package("geoana.em.static.wholespace")
    half, sphere = checkout.package("geoana.em.static.halfspace"), checkout.package("geoana.em.static.sphere")

    def fields(place: Any, radius: Any, current: Any, points: Any) -> Any:
        dipole = space.MagneticDipoleWholeSpace(location=place, orientation="Z", moment=current)
        loop = space.CircularLoopWholeSpace(radius=radius, current=current, location=place)
        ground = half.PointCurrentHalfSpace(rho=radius + 1, current=current, location=place * [1, 1, -1])
        ball = sphere.ElectrostaticSphere(0.5 * radius, 10.0, 1.0, primary_field=place)
        below = points * [1, 1, -1] - [0, 0, 3.0]
        return (
            dipole.vector_potential(points), 1e6 * dipole.magnetic_flux_density(points),
            loop.magnetic_field(points), ground.potential(below), ground.electric_field(below),
            ball.potential(points), ball.electric_field(points),
        )  # fmt: skip

    return fields, np.array([0.2, -0.3, 0.5]), 1.1, 2.0, DRAWS.uniform(1, 2, size=(4, 3))


@program("simpeg/geoana", "`ElectricDipoleWholeSpace`, `prism_fz`: fields of frequencies by conductivity and place")
def moving_fields(checkout: Checkout) -> tuple[Any, ...]:
    stub("libdlf")
    checkout.package("geoana")
    fdem, tdem = checkout.package("geoana.em.fdem"), checkout.package("geoana.em.tdem")
    prisms = checkout.package("geoana.kernels.potential_field_prism")

    def fields(sigma: Any, place: Any, points: Any) -> Any:
        options = {"location": place, "orientation": "X", "sigma": sigma}
        harmonic = fdem.ElectricDipoleWholeSpace(frequency=np.array([10.0, 1e3]), **options)
        loop = fdem.MagneticDipoleWholeSpace(frequency=np.array([10.0, 1e3]), **options)
        x, y, z = (points - place).T
        return (
            harmonic.electric_field(points), harmonic.magnetic_field(points), loop.electric_field(points),
            tdem.base.theta(1e-4, sigma), prisms._prism_fz(x, y, z), prisms._prism_fzz(x, y, z),
            prisms._prism_f(x, y, z),
        )  # fmt: skip

    return fields, 0.8, np.array([0.2, -0.3, 0.5]), DRAWS.uniform(1, 2, size=(3, 3))


@program("QuantEcon/QuantEcon.py", "`LQ`, `Kalman`, `LinearStateSpace`: regulators and filters by their matrices")
def economies(checkout: Checkout) -> tuple[Any, ...]:
    stub("numba", "numba.experimental", "numba.core", "numba.core.types", jit=decorator, njit=decorator)
    checkout.bare("quantecon", "quantecon")
    checkout.bare("quantecon.util", "quantecon/util")
    checkout.bare("quantecon.markov", "quantecon/markov")
    stub("quantecon.util", "quantecon.markov")
    lq, lss = checkout.package("quantecon._lqcontrol"), checkout.package("quantecon._lss")
    kalman, equations = checkout.package("quantecon._kalman"), checkout.package("quantecon._matrix_eqn")
    robust = checkout.package("quantecon._robustlq")

    def solved(a: Any, b: Any, c: Any, cost: Any) -> Any:
        regulator = lq.LQ(cost, np.eye(2), a, b, C=c, beta=0.95)
        p, f, d = regulator.stationary_values()
        g = np.array([[1.0, 0.3]])
        chain = lss.LinearStateSpace(a, c, g, H=np.array([[0.5]]), mu_0=np.ones((2, 1)), Sigma_0=np.eye(2))
        model = kalman.Kalman(chain, np.ones((2, 1)), np.eye(2))
        model.update(np.array([[0.7]]))
        mean = chain.stationary_distributions()
        value = equations.solve_discrete_lyapunov(a, c @ c.T)
        worst = robust.RBLQ(cost, np.eye(2), a, b, c, 0.95, 20.0).robust_rule()
        return p, f, d, model.x_hat, model.Sigma, *model.stationary_values(), *mean[:4], value, *worst

    a = np.array([[0.8, 0.1], [-0.2, 0.7]])
    return solved, a, np.array([[0.3], [0.6]]), np.array([[0.2], [0.4]]), np.array([[1.5]])


def decorator(*args: Any, **_: Any) -> Any:
    """Return the decorated function, or a decorator that does; the real one compiles it."""
    return args[0] if args and callable(args[0]) else lambda f: f


@program("bayespy/bayespy", "`chol_solve`, `block_banded_solve`, `alpha_beta_recursion`, `sum_multiply`: its algebra")
def bayesian_algebra(checkout: Checkout) -> tuple[Any, ...]:
    stub("h5py", "truncnorm", "matplotlib")
    checkout.bare("bayespy", "bayespy")
    checkout.bare("bayespy.utils", "bayespy/utils")
    linalg, misc = checkout.package("bayespy.utils.linalg"), checkout.package("bayespy.utils.misc")
    draws = checkout.package("bayespy.utils.random")

    def answers(c: Any, b: Any, logits: Any) -> Any:
        spd = np.einsum("...ij,...kj->...ik", c, c) + 2 * np.eye(3)
        u = linalg.chol(spd)
        blocks = linalg.block_banded_solve(spd, 0.1 * c[:-1], b)
        states = draws.alpha_beta_recursion(logits[0], logits[1:4, :, None] + logits[None, None, 0])
        return (
            linalg.chol_solve(u, b), linalg.chol_logdet(u), linalg.chol_inv(u), *blocks, *states,
            misc.sum_multiply(spd, b[..., None, :], axis=(0, -1)), misc.logsumexp(logits, axis=0),
            misc.block_banded(spd, 0.1 * c[:-1]), misc.invpsi(logits[0]), misc.normalized_exp(logits)[0],
        )  # fmt: skip

    return answers, DRAWS.normal(size=(3, 3, 3)), DRAWS.normal(size=(3, 3)), DRAWS.normal(size=(4, 3))


@program("rosswhitfield/ase", "`LennardJones`, `EMT`, `MorsePotential`: energies and forces of atoms by their places")
def atoms(checkout: Checkout) -> tuple[Any, ...]:
    ase = checkout.package("ase")
    lj, emt = checkout.package("ase.calculators.lj"), checkout.package("ase.calculators.emt")
    morse = checkout.package("ase.calculators.morse")

    def energies(places: Any, epsilon: Any) -> Any:
        copper = ase.Atoms("Cu4", positions=places)
        copper.calc = emt.EMT()
        argon = ase.Atoms("Ar4", positions=1.5 * places)
        argon.calc = lj.LennardJones(sigma=3.4, epsilon=epsilon, rc=12.0)
        metal = ase.Atoms("Cu4", positions=places)
        metal.calc = morse.MorsePotential(epsilon=epsilon, r0=2.6, rho0=6.0)
        return [part for a in (copper, argon, metal) for part in (a.get_potential_energy(), a.get_forces())]

    places = np.array([[0.0, 0, 0], [2.5, 0.1, 0], [1.2, 2.2, 0.1], [1.3, 0.8, 2.1]])
    return energies, places, 0.0103


@program("rosswhitfield/ase", "`Atoms`, `HarmonicThermo`, `eos`: shapes, free energies and equations of state")
def molecules(checkout: Checkout) -> tuple[Any, ...]:
    ase = checkout.package("ase")
    states, heat = checkout.package("ase.eos"), checkout.package("ase.thermochemistry")

    def measured(places: Any, waves: Any, parameters: Any) -> Any:
        atoms = ase.Atoms("HCNO", positions=places, cell=[8.0, 8.0, 8.0])
        atoms.rotate(20.0 * parameters[0], "z")
        atoms.translate(parameters[1:4])
        ideal = heat.HarmonicThermo(waves)
        forms = states.birchmurnaghan, states.vinet, states.murnaghan, states.pouriertarantola
        shape = atoms.get_angle(0, 1, 2), atoms.get_dihedral(0, 1, 2, 3), atoms.get_distance(0, 3)
        sizes = atoms.get_center_of_mass(), atoms.get_moments_of_inertia(), atoms.get_scaled_positions()
        free = ideal.get_helmholtz_energy(300.0, verbose=False), ideal.get_entropy(250.0, verbose=False)
        return *shape, *sizes, *free, *(form(12.0, *parameters) for form in forms)

    places = np.array([[0.0, 0, 0], [1.1, 0.1, 0], [1.6, 1.2, 0.1], [2.9, 1.3, 0.8]])
    return measured, places, np.array([0.05, 0.11, 0.2]), np.array([-3.0, 0.8, 4.2, 11.0])


@program("bdaiinstitute/spatialmath-python", "`SE3`, `UnitQuaternion`, `Twist3`, `trlog`: poses by angles and vectors")
def spatial_poses(checkout: Checkout) -> tuple[Any, ...]:
    stub("ansitable", "spatialgeometry")
    sm, base = checkout.package("spatialmath"), checkout.package("spatialmath.base")

    def poses(angles: Any, shift: Any) -> Any:
        pose = sm.SE3.Trans(*shift) * sm.SE3.RPY(angles) * sm.SE3.Rx(angles[0], t=shift)
        turn = sm.UnitQuaternion.Rz(angles[1]) * sm.UnitQuaternion.RPY(angles)
        r = base.rpy2r(angles) @ base.angvec2r(angles[2], shift)
        return (
            pose.A, pose.inv().A, pose.rpy(), pose.eul(), (pose * shift).ravel(), pose.Ad(), turn.vec, turn.R,
            base.trlog(r, check=False, twist=True), base.trexp(angles), base.tr2delta(pose.A), base.rpy2jac(angles),
            sm.Twist3(pose).S, base.trinterp(np.eye(3), r, 0.3), (turn * shift).ravel(),
        )  # fmt: skip

    return poses, np.array([0.3, -0.4, 0.7]), np.array([1.0, 0.5, -0.2])


@program("fooof-tools/fooof", "`SpectralModel.fit`, modes of peaks: a spectrum's peaks and slope by its powers")
def spectral_peaks(checkout: Checkout) -> tuple[Any, ...]:
    package = checkout.package("specparam")
    forms = checkout.package("specparam.modes.funcs")
    freqs = np.arange(2.0, 40.0, 0.5)

    def fitted(logs: Any, peak: Any) -> Any:
        model = package.SpectralModel(peak_width_limits=(1, 8), max_n_peaks=1, verbose=False)
        model.algorithm._cf_settings.tol = 1e-13
        model.fit(freqs, 10**logs)
        shapes = [forms.gaussian_function(freqs, *peak), forms.cauchy_function(freqs, *peak)]
        slopes = [forms.lorentzian_function(freqs, *np.abs(peak)), forms.powerlaw_function(freqs, *peak[:2])]
        return model.results.model.modeled_spectrum, *shapes, *slopes

    logs = 1.0 - 1.2 * np.log10(freqs) + 0.5 * np.exp(-((freqs - 10) ** 2) / 8) + 0.01 * DRAWS.normal(size=76)
    return fitted, logs, np.array([10.0, 0.6, 1.8])


@program("brandondube/prysm", "`zernike_nm`, `focus`, `mtf_from_psf`, `multilayer_stack_rt`: images, films")
def lens_images(checkout: Checkout) -> tuple[Any, ...]:
    checkout.package("prysm")
    coordinates, zernikes = checkout.package("prysm.coordinates"), checkout.package("prysm.polynomials.zernike")
    travel, otf = checkout.package("prysm.propagation"), checkout.package("prysm.otf")
    films, fields = checkout.package("prysm.thinfilm"), checkout.package("prysm.propagation.angular_spectrum")
    x, y = coordinates.make_xy_grid(12, diameter=2.2)
    r, t = coordinates.cart_to_polar(x, y)

    def images(weights: Any, wavelength: Any, depth: Any) -> Any:
        modes = [zernikes.zernike_nm(n, m, r, t) for n, m in ((2, 0), (2, 2), (3, 1), (4, 0))]
        phase = sum(weight * mode for weight, mode in zip(weights, modes, strict=True))
        pupil = np.exp(2j * np.pi * phase / wavelength) * (r <= 1)
        light = abs(travel.focus(pupil, 2)) ** 2
        moved = fields.angular_spectrum(pupil, wavelength, 0.05, 5.0)
        film = films.multilayer_stack_rt([1.46, 2.1], depth, wavelength, "p", 1.5, aoi=20.0)
        limits = otf.diffraction_limited_mtf(8, wavelength, [30.0, 90])
        return light, otf.mtf_from_psf(light, 0.1).data, moved, *film, limits

    return images, np.array([0.1, -0.05, 0.07, 0.02]), 0.55, np.array([0.1, 0.07])


@program("ilayn/harold", "`State`, `Transfer`, `discretize`, `lyapunov_eq_solver`: linear systems by their matrices")
def linear_systems(checkout: Checkout) -> tuple[Any, ...]:
    stub("tabulate", tabulate=lambda *_, **__: "")
    stub("numpy.linalg.linalg", _makearray=lambda a: (np.asarray(a), None))
    harold = checkout.package("harold")

    def measured(a: Any, b: Any, numerator: Any) -> Any:
        c = np.array([[1.0, 0.5]])
        system = harold.State(a, b, c, 0.0)
        transfer = harold.Transfer(numerator, [1.0, 1.2, 0.8])
        joined = harold.feedback(system, harold.transfer_to_state(transfer) * 0.3)
        response = harold.frequency_response(system, w=np.array([0.3, 2.0]), w_unit="rad/s")[0]
        gramian = harold.lyapunov_eq_solver(a, b @ b.T)
        sampled = harold.discretize(system, 0.1, "zoh")
        steps = harold.simulate_step_response(system, t=np.linspace(0, 1, 5))[0]
        return response, gramian, sampled.a, sampled.b, harold.system_norm(system, 2), joined.a, steps, transfer.zeros

    return measured, np.array([[-1.0, 0.4], [-0.3, -0.6]]), np.array([[0.5], [1.0]]), np.array([1.0, 2.0])


@program("jakevdp/nfft", "`nfft`, `nfft_adjoint`, `ndft`: Fourier sums at any points, by points and coefficients")
def uneven_fourier(checkout: Checkout) -> tuple[Any, ...]:
    nfft = checkout.package("nfft")

    def sums(x: Any, values: Any) -> Any:
        waves = values[:24] + 1j * values[24:]
        fast = nfft.nfft(x, waves, tol=1e-12), nfft.nfft_adjoint(x, values[:6], 24, tol=1e-12)
        return *fast, nfft.ndft(x, waves), nfft.ndft_adjoint(x, values[:6], 24)

    return sums, np.sort(DRAWS.uniform(-0.45, 0.45, size=6)), DRAWS.normal(size=48)


@program("maroba/findiff", "`FinDiff`, `Gradient`, `Laplacian`, `PDE`: differences of a field, and a field of sources")
def difference_operators(checkout: Checkout) -> tuple[Any, ...]:
    stub("sympy")
    findiff = checkout.package("findiff")

    def derivatives(u: Any, source: Any, h: Any) -> Any:
        x, y = findiff.FinDiff(0, h, 2), findiff.FinDiff(1, h, 1, acc=4)
        mixed = (x + y * findiff.Coef(2.0) - findiff.Identity())(u)
        slope, curl = findiff.Gradient(h=[0.1, 0.2]), findiff.Laplacian(h=[0.1, 0.2])
        edges = findiff.BoundaryConditions((7, 7))
        edges[0, :], edges[-1, :], edges[:, 0], edges[:, -1] = 1.0, 2.0, 0.5, 0.0
        solved = findiff.PDE(findiff.FinDiff(0, 0.1, 2) + findiff.FinDiff(1, 0.1, 2), source, edges).solve()
        return mixed, slope(u), curl(u), solved

    return derivatives, DRAWS.normal(size=(7, 7)), DRAWS.normal(size=(7, 7)), 0.1


@program("tensorly/tensorly", "`parafac`, `tucker_to_tensor`, `cp_norm`, `tensor_train`: tensors by their factors")
def tensors(checkout: Checkout) -> tuple[Any, ...]:
    tl = checkout.package("tensorly")
    parts = checkout.package("tensorly.decomposition")
    start = [DRAWS.normal(size=(n, 2)) for n in (3, 4, 2)]

    def decomposed(a: Any, b: Any, c: Any, core: Any) -> Any:
        full = tl.cp_to_tensor((np.array([1.0, 0.7]), [a, b, c]))
        noisy = full + 0.1 * core
        begin = tl.cp_tensor.CPTensor((np.ones(2), [s.copy() for s in start]))
        found = parts.parafac(noisy, 2, init=begin, n_iter_max=5, tol=0)
        train = parts.tensor_train(noisy, [1, 2, 2, 1]).to_tensor()
        products = tl.tenalg.khatri_rao([a, b]), tl.tenalg.mode_dot(noisy, b.T, 1), tl.tenalg.kronecker([a, c])
        tucker = tl.tucker_to_tensor((core[:2, :2, :2], [a, b, c]))
        return full, tl.cp_to_tensor(found), train, *products, tucker, tl.cp_tensor.cp_norm((None, [a, b, c]))

    shapes = (3, 2), (4, 2), (2, 2), (3, 4, 2)
    return decomposed, *(DRAWS.normal(size=shape) for shape in shapes)


@program("lindermanlab/ssm", "`hmm_filter`, `_kalman_filter`, `_kalman_info_filter`: likelihoods of states by matrices")
def state_messages(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    stub("numba", jit=decorator)
    stub("autograd.tracer", getval=lambda value: value)
    checkout.bare("ssm", "ssm")
    stub("ssm.util", LOG_EPS=1e-16, DIV_EPS=1e-16)
    messages, stats = checkout.package("ssm.messages"), checkout.package("ssm.stats")

    def likelihoods(moves: Any, seen: Any, values: Any) -> Any:
        chances = np.exp(moves) / np.sum(np.exp(moves), axis=1, keepdims=True)
        alphas = np.zeros((5, 2))
        total = messages.forward_pass(np.array([0.4, 0.6]), chances[None], seen, alphas)
        s, q = np.eye(2), 0.3 * np.eye(2)
        filtered = messages._kalman_filter(
            np.zeros(2), s, 0.5 * chances[None], np.zeros((1, 2, 1)), q[None], seen[None, :2], np.zeros((1, 2, 1)),
            q[None], np.zeros((5, 1)), values,
        )  # fmt: skip
        return total, alphas, *filtered, stats.multivariate_normal_logpdf(values, values[:1], s + chances @ chances.T)

    return likelihoods, DRAWS.normal(size=(2, 2)), DRAWS.normal(size=(5, 2)), DRAWS.normal(size=(5, 2))


@program("nipy/nibabel", "`euler2mat`, `quat2mat`, `mat2quat`, `rescale_affine`: rotations of images by angles")
def image_rotations(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("nibabel", "nibabel")
    stub("nibabel.casting", sctypes={"float": [np.float32, np.float64]})
    turns, affines = checkout.package("nibabel.quaternions"), checkout.package("nibabel.affines")
    eulers = checkout.package("nibabel.eulerangles")

    def rotated(angles: Any, q: Any, points: Any) -> Any:
        m = eulers.euler2mat(*angles)
        affine = affines.from_matvec(m * [1.0, 2.0, 0.5], angles)
        axis = turns.quat2angle_axis(q / np.sqrt(q @ q))
        return (
            m, eulers.mat2euler(m), eulers.euler2quat(*angles), turns.quat2mat(q), turns.mat2quat(m), *axis,
            turns.rotate_vector(points[0], q), turns.angle_axis2mat(angles[0], q[1:]), turns.inverse(q),
            affines.apply_affine(affine, points), affines.voxel_sizes(affine), affines.obliquity(affine),
            affines.rescale_affine(affine, (4, 5, 6), (1.5, 1.0, 2.0)), turns.fillpositive(0.2 * q[1:]),
        )  # fmt: skip

    return rotated, np.array([0.3, -0.4, 0.7]), np.array([0.8, 0.3, -0.2, 0.4]), DRAWS.normal(size=(2, 3))


@program("bjodah/chempy", "`water_density`, `binary_rev`, `Henry`, `nernst_potential`: solutions, by temperature")
def solutions_in_water(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("chempy", "chempy.util", "chempy.properties", "chempy.kinetics", "chempy.electrochemistry"):
        checkout.bare(name, name.replace(".", "/"))
    vars(checkout.package("chempy"))["__url__"] = ""
    vars(checkout.package("chempy.util"))["NoConvergence"] = ArithmeticError
    properties = "water_density_tanaka_2001", "water_viscosity_korson_1969", "water_diffusivity_holz_2000"
    water, viscous, diffuse = (checkout.package(f"chempy.properties.{name}") for name in properties)
    permittivity = checkout.package("chempy.properties.water_permittivity_bradley_pitzer_1979")
    kinetics, henry = checkout.package("chempy.kinetics.integrated"), checkout.package("chempy.henry")
    acid = checkout.package("chempy.properties.sulfuric_acid_density_myhre_1998")
    nernst = checkout.package("chempy.electrochemistry.nernst")

    def properties_of(t: Any, rates: Any, amounts: Any) -> Any:
        times = np.linspace(0.1, 2.0, 4)
        return (
            water.water_density(t), viscous.water_viscosity(t), 1e9 * diffuse.water_self_diffusion_coefficient(t),
            permittivity.water_permittivity(t, 1.0), acid.sulfuric_acid_density(amounts[0] / 5, t),
            kinetics.binary_rev(times, rates[0], rates[1], amounts[0], amounts[1], amounts[2], backend=np),
            kinetics.pseudo_rev(times, rates[0], rates[1], 0.1, amounts[1], amounts[2], backend=np),
            kinetics.binary_irrev(times, rates[0], 0.1, amounts[1], amounts[2], backend=np),
            kinetics.unary_irrev_cstr(times, rates[0], amounts[0], 0.1, amounts[1], 0.2, rates[1], backend=np),
            henry.Henry_H_at_T(t, 1.2e-3, 1800.0, backend=np),
            nernst.nernst_potential(amounts[1], amounts[2], 1, t, backend=np),
        )  # fmt: skip

    return properties_of, 298.0, np.array([0.9, 0.4]), np.array([0.1, 1.5, 0.8])


@program("CamDavidsonPilon/autograd-gamma", "`gammainc`, `betainc` and their logarithms and inverses, by all arguments")
def incomplete_functions(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    stub("autograd.extend", primitive=lambda f: f, defvjp=lambda *_, **__: None)
    stub("autograd.numpy.numpy_vjps", unbroadcast_f=lambda *_: None)
    f = checkout.package("autograd_gamma")

    def values(a: Any, b: Any, x: Any) -> Any:
        return (
            f.gammainc(a, x), f.gammaincc(a, x), f.gammaincln(a, x), f.gammainccln(a, x), f.betainc(a, b, x / 4),
            f.betaincln(a, b, x / 4), f.gammaincinv(a, x / 4), f.gammainccinv(a, x / 4), f.betaincinv(a, b, x / 4),
        )  # fmt: skip

    return values, np.array([0.7, 2.5]), np.array([1.5, 0.8]), np.array([0.6, 2.2])


@program("pysal/spreg", "`BaseOLS`, `BaseTSLS`: regressions, with their variances, by the data")
def spatial_regressions(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("", ".weights", ".weights.spatial_lag", ".cg", ".common", ".io", ".graph"):
        stub(f"libpysal{name}")
    stub("geopandas", "geopandas.testing", "shapely")
    checkout.bare("spreg", "spreg")
    checkout.package("spreg.diagnostics")
    ols, twosls = checkout.package("spreg.ols"), checkout.package("spreg.twosls")

    def regressed(x: Any, y: Any, instruments: Any) -> Any:
        ones = np.hstack([np.ones((12, 1)), x])
        line, robust = ols.BaseOLS(y=y, x=ones), ols.BaseOLS(y=y, x=ones, robust="white")
        two = twosls.BaseTSLS(y=y, x=ones, yend=instruments[:, :1], q=instruments[:, 1:])
        return line.betas, line.vm, line.predy, line.sig2, robust.vm, two.betas, two.vm, two.u

    return regressed, DRAWS.normal(size=(12, 2)), DRAWS.normal(size=(12, 1)), DRAWS.normal(size=(12, 3))


@program("sczesla/PyAstronomy", "`KeplerEllipse`, `planck`, `rotBroad`, `transitDuration`: orbits and stars")
def stars(checkout: Checkout) -> tuple[Any, ...]:
    stub("six", "six.moves", "quantities", "pyfits", range=range)
    checkout.bare("PyAstronomy", "PyAstronomy")
    vars(checkout.package("PyAstronomy"))["__file__"] = str(checkout.folder / "PyAstronomy" / "__init__.py")
    stub("PyAstronomy.pyasl", _ic=None, __path__=[str(checkout.folder / "PyAstronomy/pyasl")])
    checkout.bare("PyAstronomy.pyasl.asl", "PyAstronomy/pyasl/asl")
    at = "PyAstronomy.pyasl.asl"
    orbit, broad = checkout.package(f"{at}.keplerOrbit"), checkout.package(f"{at}.rotBroad")
    transit, red = checkout.package(f"{at}.inTransit"), checkout.package(f"{at}.unred")
    air, phase = checkout.package(f"{at}.airmass"), checkout.package(f"{at}.planetPhase")
    waves, times = np.linspace(5000.0, 5010.0, 41), np.array([0.3, 1.1, 2.0])

    def seen(elements: Any, lines: Any, angle: Any) -> Any:
        a, period, e, omega, w, i = elements
        ellipse = orbit.KeplerEllipse(a, period, e=e, tau=0.2, Omega=omega, w=w, i=i)
        return (
            ellipse.xyzPos(times), ellipse.xyzVel(times), ellipse.trueAnomaly(times), ellipse.projPlaStDist(times),
            broad.rotBroad(waves, lines, 0.6, 30.0), red.unred(waves[::10], lines[::10], 0.1 * e),
            transit.transitDuration(0.05 * a, 1.0, 1.0, 88.0 + e, period), air.airmassPP(angle),
            phase.lambertPhaseFunction(angle / 50),
        )  # fmt: skip

    return seen, np.array([1.2, 3.1, 0.3, 40.0, 70.0, 60.0]), 1 - 0.5 * np.exp(-((waves - 5005) ** 2)), 40.0
