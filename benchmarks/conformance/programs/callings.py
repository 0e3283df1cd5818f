"""Contacts, spectra, games, tests, forecasts, floods, pulses, crystals, gases and beams: by their measurements."""

import sys
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, installed, program, stub

DRAWS = np.random.default_rng(41)


@program("moritzploss/tribology", "`hertz`, `lubrication`: contacts and oils, by radii, moduli and a force")
def contacts(checkout: Checkout) -> tuple[Any, ...]:
    stub("numexpr")
    checkout.bare("tribology", "tribology")
    hertz, oils, balls = (checkout.package(f"tribology.{name}") for name in ("hertz", "lubrication", "tribology"))

    def found(radii: Any, moduli: Any, force: Any, temperature: Any) -> Any:
        modulus, reduced = hertz.eeff(moduli[0], 0.3, moduli[1], 0.28), hertz.reff(*radii)
        shapes = [*reduced, hertz.dhertz(modulus, *radii, force), hertz.ahertz(*reduced, modulus, force)]
        pressures = [hertz.phertz(*reduced, modulus, force), hertz.fhertz(*reduced, modulus, 900.0)]
        viscosities = [oils.walther(40.0, 95.0, 100.0, 10.5, temperature), oils.barus(0.05, 2e-8, moduli[0] * 1e3)]
        ball = balls.profball(np.linspace(-1.0, 1.0, 7), radii[0])
        return [*shapes, *pressures, *viscosities, ball, balls.ffourball(radii[0], radii[1], force)]

    return found, np.array([5.0, 7.0, 9.0, 11.0]), np.array([2.1e5, 1.9e5]), 50.0, 60.0


@program("jjhelmus/nmrglue", "`proc_base`: windows, zero filling, phases and transforms, by a signal and two phases")
def resonances(checkout: Checkout) -> tuple[Any, ...]:
    base = checkout.package("nmrglue.process.proc_base")

    def spectrum(signal: Any, phases: Any) -> Any:
        shaped = base.em(signal[0] + 1j * signal[1], lb=0.05)
        shaped = base.sp(base.gm(shaped, g1=0.1, g2=0.2, g3=0.1), off=0.4)
        found = base.ps(base.fft(base.zf_double(shaped, 1)), p0=30 * phases[0], p1=20 * phases[1])
        real = base.di(found)
        parts = [base.mc(found), base.ht(real, len(real)).imag, base.cs(found, 3).real, base.tp(found[None]).real]
        return [real, *parts, base.smo(real, n=1)]

    return spectrum, DRAWS.normal(size=(2, 16)), np.array([0.5, 0.3])


@program("drvinceknight/Nashpy", "`Game`: replicator dynamics and equilibria, by payoffs and a population")
def games(checkout: Checkout) -> tuple[Any, ...]:
    nashpy = checkout.package("nashpy", at="src")

    def played(a: Any, b: Any, mixed: Any) -> Any:
        game, mixed = nashpy.Game(a, b), mixed / mixed.sum()
        both = game.asymmetric_replicator_dynamics(x0=mixed, y0=mixed[::-1], timepoints=np.linspace(0.0, 1.5, 4))
        points = [part for equilibrium in game.support_enumeration() for part in equilibrium]
        alone = game.replicator_dynamics(y0=mixed, timepoints=np.linspace(0.0, 2.0, 5))
        return [game[mixed, mixed[::-1]], alone, *both, *points]

    first = np.array([[1.0, -2.0, 0.6], [-1.0, 1.2, 0.3], [0.4, 0.1, -0.7]])
    second = np.array([[-1.0, 2.0, 0.1], [1.1, -0.9, 0.2], [0.3, -0.5, 0.8]])
    return played, first, second, np.array([0.2, 0.5, 0.4])


@program("douglasrizzo/catsim", "`irt`: probabilities, information and likelihood of answers, by ability and items")
def answers(checkout: Checkout) -> tuple[Any, ...]:
    def evaluate(text: str, local_dict: Any = None) -> Any:
        return eval(text, dict(vars(np)), local_dict or sys._getframe(1).f_locals)

    stub("numexpr", evaluate=evaluate)
    irt = checkout.package("catsim.irt", at="src")
    right = [True, False, True, True, False, True]

    def measured(ability: Any, items: Any) -> Any:
        several = [f(ability, items) for f in (irt.icc_hpc, irt.inf_hpc, irt.see, irt.test_info, irt.reliability)]
        single = [irt.icc(ability, *items[0]), irt.inf(ability, *items[1])]
        return [*several, *single, irt.log_likelihood(ability, right, items)]

    ends = ((0.8, 2.0), (-1.5, 1.5), (0.05, 0.2), (0.9, 1.0))
    return measured, 0.3, np.column_stack([DRAWS.uniform(*pair, size=6) for pair in ends])


@program("properscoring/properscoring", "`crps_gaussian`, `_crps_ensemble_vectorized`, `brier_score`: by forecasts")
def forecasts(checkout: Checkout) -> tuple[Any, ...]:
    scoring, ensemble = checkout.package("properscoring"), checkout.package("properscoring._crps")
    weights = np.arange(1.0, 6.0) * np.ones((4, 1))

    def scores(observed: Any, means: Any, spreads: Any, members: Any) -> Any:
        normal, slopes = scoring.crps_gaussian(observed, means, spreads, grad=True)
        ensembles = [ensemble._crps_ensemble_vectorized(observed, members, each) for each in (np.ones((4, 5)), weights)]
        return [normal, slopes, *ensembles, scoring.brier_score(np.array([0.0, 1.0, 1.0, 0.0]), spreads / 3)]

    return scores, *DRAWS.normal(size=(2, 4)), DRAWS.uniform(0.5, 2.0, size=4), DRAWS.normal(size=(4, 5))


@program("ThibHlln/hydroeval", "`nse`, `kge`, `kgeprime`, `evaluator`: the skill of simulations, by them")
def simulated_flows(checkout: Checkout) -> tuple[Any, ...]:
    skill = checkout.package("hydroeval")

    def measured(simulated: Any, observed: Any) -> Any:
        measures = (skill.nse, skill.kge, skill.kgeprime, skill.rmse, skill.mare, skill.pbias, skill.nse_c2m)
        several = [skill.evaluator(skill.nse, simulated, observed, transform=how) for how in ("log", "inv", "sqrt")]
        return [*(f(simulated, observed) for f in measures), *several, skill.evaluator(skill.kge, simulated, observed)]

    return measured, *DRAWS.uniform(1.0, 4.0, size=(2, 9))


@program("OpenHydrology/lmoments3", "`lmom_ratios`, `lmom_fit` of seven distributions: by the floods")
def floods(checkout: Checkout) -> tuple[Any, ...]:
    moments, kinds = checkout.package("lmoments3"), checkout.package("lmoments3.distr")

    def fits(sample: Any) -> Any:
        names = ("gum", "nor", "gpa", "exp", "gam", "glo", "pe3")
        return [moments.lmom_ratios(sample, 5), *([*getattr(kinds, name).lmom_fit(sample).values()] for name in names)]

    years = np.arange(15.0)
    return fits, 10 + years + 0.3 * np.cos(years) + 0.1 * years**2


@program("Aura-healthcare/hrv-analysis", "`get_poincare_plot_features`, `get_csi_cvi_features`: by times between beats")
def heartbeats(checkout: Checkout) -> tuple[Any, ...]:
    stub("nolds")
    features = checkout.package("hrvanalysis.extract_features")

    def measured(intervals: Any) -> Any:
        several = features.get_poincare_plot_features(intervals), features.get_csi_cvi_features(intervals)
        return [value for found in several for value in found.values()]

    return measured, 800 + 20 * np.sin(np.arange(40.0)) + 8 * np.cumsum(DRAWS.normal(size=40))


@program("pythtb/pythtb", "`tb_model`, `wf_array.berry_phase`, `berry_flux`: Haldane's model, by its energies")
def crystals(checkout: Checkout) -> tuple[Any, ...]:
    binding = checkout.package("pythtb")
    lattice, places = [[1.0, 0.0], [0.5, np.sqrt(3) / 2]], [[1 / 3, 1 / 3], [2 / 3, 2 / 3]]
    turns = ([1, 0], [-1, 1], [0, -1])

    def bands(energies: Any) -> Any:
        model = binding.tb_model(2, 2, lattice, places)
        model.set_onsite([-energies[0], energies[0]])
        for cell in ([0, 0], [-1, 0], [0, -1]):
            model.set_hop(energies[1], 0, 1, cell)
        for site, sign in ((0, 1), (1, -1)):
            for turn in turns:
                model.set_hop(energies[2] * 1j, site, site, [sign * step for step in turn])
        waves = binding.wf_array(model, [4, 4])
        waves.solve_on_grid([0.0, 0.0])
        solved = [model.solve_all([[0.1, 0.2], [0.3, 0.15]]), model.solve_one([0.2, 0.4])]
        return [*solved, waves.berry_phase([0], 1), waves.berry_flux([0])]

    return bands, np.array([0.7, -1.0, 0.15])


@program("VlachosGroup/pMuTT", "`HarmonicVib`, `RigidRotor`, `FreeTrans`: entropies and energies, by wave numbers")
def gases(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("ase", "ase.build", "pygal", "bokeh", "openpyxl", "xlrd", "periodictable", "molmass"):
        if not installed(name.partition(".")[0]):
            stub(name)
    vib, trans, rot = (checkout.package(f"pmutt.statmech.{name}") for name in ("vib", "trans", "rot"))

    def found(waves: Any, temperature: Any) -> Any:
        vibrating, free = vib.HarmonicVib(vib_wavenumbers=waves), trans.FreeTrans(n_degrees=3, molecular_weight=18.0)
        turning = rot.RigidRotor(symmetrynumber=2, geometry="nonlinear", rot_temperatures=waves / 50)
        parts = (vibrating.get_CvoR, vibrating.get_UoRT, vibrating.get_SoR, vibrating.get_FoRT, vibrating.get_q)
        others = [turning.get_SoR(T=temperature), turning.get_q(T=temperature), free.get_SoR(T=temperature, P=1.0)]
        return [*(f(T=temperature) for f in parts), *others]

    return found, np.array([1600.0, 900.0, 300.0]), 500.0


@program("ccaprani/pycba", "`BeamAnalysis`: shears, moments and deflections of a bridge, by spans, stiffness and loads")
def bridges(checkout: Checkout) -> tuple[Any, ...]:
    beams = checkout.package("pycba", at="src")

    def analysed(spans: Any, stiffness: Any, loads: Any) -> Any:
        forces = [[1, 1, loads[0], 0, 0], [2, 2, loads[1], 0.4 * spans[1], 0]]
        beam = beams.BeamAnalysis(spans, stiffness, [-1, 0, -1, 0, -1, 0], forces)
        beam.analyze(20)
        found = beam.beam_results.results
        return [found.V, found.M, 1e3 * found.R, 1e3 * found.D, beam.beam_results.R]

    return analysed, np.array([7.5, 7.1]), np.array([30e3, 28e3]), np.array([20.0, 50.0])


@program("wichmann-lab/python-psignifit", "`sigmoids`: six psychometric functions, slopes and inverses, by a threshold")
def thresholds(checkout: Checkout) -> tuple[Any, ...]:
    sigmoids = checkout.package("psignifit.sigmoids")

    def curves(levels: Any, threshold: Any, width: Any) -> Any:
        found = []
        for name in ("norm", "logistic", "gumbel", "rgumbel", "tdist", "weibull"):
            curve, scale = sigmoids.sigmoid_by_name(name), np.exp if name == "weibull" else np.positive
            found += [curve(scale(levels), scale(threshold), width, 0.02, 0.03)]
            found += [curve.slope(scale(levels), scale(threshold), width)]
            found += [curve.inverse(np.array([0.3, 0.6]), scale(threshold), width)]
        return found

    return curves, np.array([-0.5, 0.2, 0.9]), 0.3, 1.4
