"""Molecules, drones, climates, echoes, tones, networks, options, lenses and radios: what people compute with them."""

import itertools
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

DRAWS = np.random.default_rng(16)


@program("rpmuller/pyquante2", "`rhf`, `mp2`: energies of a molecule, by the places of its atoms")
def orbitals(checkout: Checkout) -> tuple[Any, ...]:
    stub("vtk", "pyglet", "pyquante2.graphics.vtkplot")
    package = checkout.package("pyquante2", at="src")

    def energies(shifts: Any) -> Any:  # small, as their incomplete gamma function is in steps of 3e-7
        geometry = package.molecule([(1, *shifts[0]), (1, *shifts[1] + [0.2, 0.3, 1.4])], units="bohr")
        solver = package.rhf(geometry, package.basisset(geometry, "sto3g"))
        steps = solver.converge(maxiters=15, tol=0)
        second = package.mp2(solver.i2, solver.orbs, solver.orbe, 1, len(solver.orbe) - 1)
        return steps[-1], second, solver.orbe

    return energies, DRAWS.normal(size=(2, 3)) * 0.003


@program("OMS-NetZero/FAIR", "`EnergyBalanceModel`: warming, by heat capacities, transfers and a forcing")
def warming(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("fair", "src/fair")
    model = checkout.package("fair.energy_balance_model").EnergyBalanceModel

    def temperatures(capacity: Any, transfer: Any, efficacy: Any, forcing: Any) -> Any:
        earth = model(capacity, transfer, efficacy, n_timesteps=len(forcing))
        earth.add_forcing(forcing, 1)
        earth.emergent_parameters()
        earth.run()
        return earth.temperature, earth.ocean_heat_content_change / 1e22, earth.ecs, earth.tcr

    capacity, transfer = np.array([8.2, 14.0, 100.0]), np.array([1.1, 1.6, 0.9])
    return temperatures, capacity, transfer, 1.3, np.linspace(0.2, 4.0, 12)


@program("fgnt/nara_wpe", "`wpe_v8`, `OnlineWPE`: a room's echo taken out of a spectrum")
def echoes(checkout: Checkout) -> tuple[Any, ...]:
    wpe = checkout.package("nara_wpe.wpe")

    def dry(real: Any, imaginary: Any) -> Any:
        sound = real + 1j * imaginary
        online = wpe.OnlineWPE(taps=2, delay=1, alpha=0.98, channel=2, frequency_bins=3)
        frames = [online.step_frame(frame) for frame in sound.transpose(2, 0, 1)[:6]]
        return wpe.wpe_v8(sound, taps=2, delay=1, iterations=2, psd_context=1), np.stack(frames)

    return dry, DRAWS.normal(size=(3, 2, 14)), DRAWS.normal(size=(3, 2, 14))


@program("MTG/sms-tools", "`sineModelAnal`, `stochasticModelAnal`: tones and noise of a sound")
def sung_tones(checkout: Checkout) -> tuple[Any, ...]:
    sines = checkout.package("smstools.models.sineModel")
    noise = checkout.package("smstools.models.stochasticModel")
    dft = checkout.package("smstools.models.dftModel")

    noise_of_air = 0.05 * DRAWS.normal(size=1024)

    def analysed(amplitudes: Any, detunings: Any) -> Any:
        times, frequencies = np.arange(1024) / 8000.0, detunings + [440.0, 1321.0]
        sound = sum(a * np.cos(2 * np.pi * f * times) for a, f in zip(amplitudes, frequencies, strict=True))
        sound = sound + noise_of_air
        window = np.hamming(255)
        tracks = sines.sineModelAnal(sound, 8000, window, 512, 128, -25.0, 2)
        spectrum = dft.dftAnal(sound[:255], window, 256)[0]
        return *tracks[:2], spectrum, noise.stochasticModelAnal(sound, 128, 256, 0.2)

    return analysed, np.array([0.7, 0.4]), np.array([0.3, 0.7])


@program("vzhou842/rnn-from-scratch", "`RNN`: a step of training by their own backward pass, by the weights")
def words_in_turn(checkout: Checkout) -> tuple[Any, ...]:
    rnn = checkout.load("rnn.py").RNN
    words = np.eye(5)[DRAWS.integers(5, size=6)][:, :, None]

    def trained(hidden: Any, entry: Any, leaving: Any) -> Any:
        network = rnn(5, 2, 4)
        network.Whh, network.Wxh, network.Why = hidden.copy(), entry.copy(), leaving.copy()
        scores, _ = network.forward(words)
        chances = np.exp(scores) / np.sum(np.exp(scores))
        network.backprop(chances - np.array([[1.0], [0.0]]))
        return *network.forward(words), network.Whh, network.bh

    return trained, DRAWS.normal(size=(4, 4)), DRAWS.normal(size=(4, 5)), DRAWS.normal(size=(2, 4))


@program("joelgrus/joelnet", "`train`: epochs of gradient descent, by the weights they begin with")
def descents(checkout: Checkout) -> tuple[Any, ...]:
    layers, training = checkout.package("joelnet.layers"), checkout.package("joelnet.train")
    net, optim = checkout.package("joelnet.nn").NeuralNet, checkout.package("joelnet.optim").SGD
    batches = checkout.package("joelnet.data").BatchIterator
    inputs, targets = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]]), np.array([[1.0, 0], [0, 1], [0, 1], [1, 0]])

    def trained(first: Any, bias: Any, second: Any) -> Any:
        network = net([layers.Linear(2, 3), layers.Tanh(), layers.Linear(3, 2)])
        network.layers[0].params = {"w": first.copy(), "b": bias.copy()}
        network.layers[2].params = {"w": second.copy(), "b": np.zeros(2)}
        training.train(network, inputs, targets, 4, iterator=batches(2, shuffle=False), optimizer=optim(0.05))
        return network.forward(inputs), network.layers[0].params["w"]

    return trained, DRAWS.normal(size=(2, 3)), DRAWS.normal(size=3), DRAWS.normal(size=(3, 2))


@program("yhilpisch/dx", "`B96_call_value`, `stochastic_volatility`: options by Fourier, and paths of their models")
def options_and_models(checkout: Checkout) -> tuple[Any, ...]:
    from datetime import datetime

    dx = checkout.package("dx")

    def values(market: Any, volatile: Any, jumps: Any) -> Any:
        env = dx.market_environment("env", datetime(2026, 1, 1))
        names = ["initial_value", "strike", "volatility", "kappa", "theta", "vol_vol", "rho", "lambda", "mu", "delta"]
        for name, value in zip(names, [*market, *volatile, *jumps], strict=True):
            env.add_constant(name, value)
        dates = {"maturity": datetime(2026, 12, 31), "final_date": datetime(2026, 12, 31)}
        for name, constant in {**dates, "currency": "EUR", "frequency": "ME", "paths": 60}.items():
            env.add_constant(name, constant)
        env.add_curve("discount_curve", dx.constant_short_rate("r", 0.05))
        paths = [dx.stochastic_volatility("a", env), dx.square_root_diffusion("b", env)]
        exact = dx.B96_call_value(env), dx.H93_put_value(env), dx.M76_call_value(env)
        return *exact, *[path.get_instrument_values(fixed_seed=True)[-1] for path in paths]

    volatile = np.array([0.2, 1.5, 0.05, 0.3, -0.5])
    return values, np.array([100.0, 103.0]), volatile, np.array([0.4, -0.1, 0.15])


@program("sibirrer/lenstronomy", "`LensModel`: rays, delays and sizes of images behind lenses, by lenses and places")
def heavy_lenses(checkout: Checkout) -> tuple[Any, ...]:
    stub("numba", jit=lambda *a, **k: a[0] if a and callable(a[0]) else lambda f: f)
    model = checkout.package("lenstronomy.LensModel.lens_model").LensModel(["EPL", "SHEAR", "NFW"])

    def images(lens: Any, shear: Any, halo: Any, x: Any, y: Any) -> Any:
        names = ("theta_E", "gamma", "e1", "e2", "center_x", "center_y")
        lenses = [dict(zip(names, lens, strict=True)), {"gamma1": shear[0], "gamma2": shear[1], "ra_0": 0, "dec_0": 0}]
        lenses.append({"Rs": halo[0], "alpha_Rs": halo[1], "center_x": 1.5, "center_y": 1.0})
        rays, delays = model.ray_shooting(x, y, lenses), model.fermat_potential(x, y, lenses)
        return *rays, delays, model.magnification(x, y, lenses), *model.gamma(x, y, lenses), model.kappa(x, y, lenses)

    lens, halo = np.array([1.2, 1.95, 0.07, -0.03, 0.02, -0.05]), np.array([0.8, 0.3])
    return images, lens, np.array([0.03, -0.02]), halo, np.array([1.3, -0.9, 0.2]), np.array([0.3, 0.1, -1.0])


@program("veeresht/CommPy", "`Modem`, `rrcosfilter`, `max_log_approx`: soft bits of a radio, by noise and offset")
def radios(checkout: Checkout) -> tuple[Any, ...]:
    stub("sympy", "sympy.combinatorics", "sympy.combinatorics.graycode", "pyfftw")
    modems = checkout.package("commpy.modulation")
    shapes, faults = checkout.package("commpy.filters"), checkout.package("commpy.impairments")

    def received(noise: Any, offset: Any, rolloff: Any, sent: Any) -> Any:
        modem = modems.Modem([1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j], reorder_as_gray=False)
        moved = faults.add_frequency_offset(sent[0] + 1j * sent[1], 100.0, offset)
        points = np.array(list(itertools.product(modem.constellation, repeat=2))).T
        mixed, bits = np.array([[1.0, 0.3], [-0.2, 0.9]]), lambda sent: np.signbit([sent.real, sent.imag]).T
        channel = modems.max_log_approx(moved[:2], mixed, noise, points, bits)
        pulse = [shapes.rrcosfilter(16, rolloff, 1.0, 4.1)[1], shapes.rcosfilter(16, rolloff, 1.0, 4.1)[1]]
        return modem.demodulate(moved, "soft", noise), *pulse, channel

    return received, 0.7, 1.5, 0.35, DRAWS.normal(size=(2, 8))


@program("stanleybak/AeroBenchVVPython", "`run_f16_sim`: an F-16 in straight flight, by its initial state and height")
def fighters(checkout: Checkout) -> tuple[Any, ...]:
    run = checkout.package("aerobench.run_f16_sim", at="code").run_f16_sim
    pilot = checkout.package("aerobench.examples.straight_and_level.run").StraightAndLevelAutopilot

    def flight(speed: Any, angles: Any, heights: Any) -> Any:
        heights = 3600 + heights
        state = [500 + speed, 0.03 + angles[0], 0, 0, 0.04 + angles[1], 0, 0, 0, 0, 0, 0, heights[0], 7.6]
        steps = run(state, 0.2, pilot(heights[1]), integrator_str="euler", extended_states=True)
        looked_up = run(state, 0.1, pilot(heights[1]), integrator_str="euler", model_str="stevens")
        return steps["states"], steps["Nz_list"][-1], looked_up["states"][-1]

    return flight, 0.4, np.array([0.002, 0.001]), np.array([0.5, 0.7])


@program("f1tenth/f1tenth_gym", "`vehicle_dynamics_st`, `pid`: a race car's states, by steering, tyres and mass")
def race_cars(checkout: Checkout) -> tuple[Any, ...]:
    stub("numba", njit=lambda *a, **k: a[0] if a and callable(a[0]) else lambda f: f)
    cars = checkout.load("gym/f110_gym/envs/dynamic_models.py")

    def driven(start: Any, tyres: Any, mass: Any, wanted: Any) -> Any:
        limits = (-0.41, 0.41, -3.2, 3.2, 7.3, 9.5, -5.0, 20.0)
        state, states = start, []
        for _ in range(6):
            force, turn = cars.pid(wanted[0], wanted[1], state[3], state[2], 3.2, 9.5, 20.0, -5.0)
            u = np.array([turn, force])
            moved = cars.vehicle_dynamics_st(state, u, *tyres, 0.158, 0.171, 0.074, mass, 0.047, *limits)
            state = state + 0.02 * moved
            states.append(state)
        slow = cars.vehicle_dynamics_ks(start[:5], u, *tyres, 0.158, 0.171, 0.074, mass, 0.047, *limits)
        return np.array(states), slow

    start, tyres = np.array([0.1, 0.2, 0.05, 3.0, 0.1, 0.2, 0.01]), np.array([1.05, 4.7, 5.5])
    return driven, start, tyres, 3.74, np.array([3.5, 0.2])


@program("Phylliade/ikpy", "`Chain`: joints by which an arm reaches a point, by the point and the arm's lengths")
def arms(checkout: Checkout) -> tuple[Any, ...]:
    chain, links = checkout.package("ikpy.chain", at="src"), checkout.package("ikpy.link")

    def reached(lengths: Any, point: Any) -> Any:
        turns = np.array([[0, 0, 1.0], [0, 1.0, 0], [0, 1.0, 0]])
        places = [np.array([0, 0, lengths[0]]), np.array([0, 0, 0.5]), np.array([0, 0.05, lengths[1]])]
        joints = [
            links.URDFLink(f"joint {i}", place, np.array([0, 0, 0.1]), turn, use_symbolic_matrix=i == 1)
            for i, (place, turn) in enumerate(zip(places, turns, strict=True))
        ]
        tip = links.URDFLink("tip", np.array([0.1, 0, 0.2]), np.zeros(3), joint_type="fixed")
        moving = [False, True, True, True, False]
        arm = chain.Chain([links.OriginLink(), *joints, tip], active_links_mask=moving)
        found = arm.inverse_kinematics(point, initial_position=[0, 0.1, 0.6, -0.9, 0])
        ended = arm.forward_kinematics([0, *point, 0], full_kinematics=True)
        return found, *ended, arm.forward_kinematics(found)[:3, 3]

    return reached, np.array([0.3, 0.4]), np.array([0.2, 0.15, 0.5])


@program("theochem/grid", "`BeckeWeights`, `AtomGrid`: integrals over a molecule, by the places of its atoms")
def integrals_of_space(checkout: Checkout) -> tuple[Any, ...]:
    becke, lines = checkout.package("grid.becke", at="src"), checkout.package("grid.onedgrid")
    rules, spheres = checkout.package("grid.rtransform"), checkout.package("grid.atomgrid")

    def integral(places: Any, exponent: Any, radius: Any) -> Any:
        radial = rules.BeckeRTransform(0.0, R=radius).transform_1d_grid(lines.GaussChebyshev(12))
        grids = [spheres.AtomGrid(radial, degrees=[5], center=place) for place in places]
        points = np.vstack([grid.points for grid in grids])
        weights = np.concatenate([grid.weights for grid in grids])
        first = np.array([0, len(grids[0].points), len(points)])
        shares = becke.BeckeWeights()(points, places, np.array([8, 1]), first)
        distances = np.linalg.norm(points[:, None] - places, axis=2)
        return np.sum(shares * weights * np.exp(-exponent * distances).sum(axis=1)), shares

    return integral, np.array([[0.1, 0.0, 0.2], [0.3, 0.2, 1.9]]), 1.3, 1.5
