"""Geodesy, optics, gas dynamics, astronomy, acoustics, fuzzy sets, regression, orbits, compositions, option prices."""

import types
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

FIELD = np.outer(np.hanning(8), np.hamming(8)) * np.exp(0.2j * np.arange(8))
SIGNAL = np.sin(0.7 * np.arange(16.0)) + 0.3 * np.cos(2.3 * np.arange(16.0)) + 0.1
EARTH = 398600.4418


@program("geospace-code/pymap3d", "`geodetic2ecef`, `ecef2geodetic`, `aer2geodetic`: between coordinates of the Earth")
def coordinates(checkout: Checkout) -> tuple[Any, ...]:
    maps = checkout.package("pymap3d", "src")

    def there(place: Any, seen: Any) -> Any:
        x, y, z = maps.geodetic2ecef(*place)
        return *maps.ecef2geodetic(1.001 * x, y, z), *maps.aer2geodetic(*seen, *place)

    return there, (42.0, -82.0, 200.0), (33.0, 70.0, 1000.0)


@program("geospace-code/pymap3d", "`vdist`, `loxodrome_inverse`, `geodetic2authalic`: distances on the ellipsoid")
def distances(checkout: Checkout) -> tuple[Any, ...]:
    checkout.package("pymap3d", "src")
    vincenty, lox, latitude = (checkout.package(f"pymap3d.{name}", "src") for name in ("vincenty", "lox", "latitude"))

    def between(a: Any, b: Any) -> Any:
        return *vincenty.vdist(*a, *b), *lox.loxodrome_inverse(*a, *b), latitude.geodetic2authalic(a[0])

    return between, (10.0, 20.0), (12.5, 23.0)


@program("rafael-fuente/diffractsim", "`angular_spectrum_method`: light after free space, by field and distance")
def free_space(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("", "/util", "/propagation_methods"):
        checkout.bare(f"diffractsim{name}".replace("/", "."), f"diffractsim{name}")
    simulation = types.SimpleNamespace(Nx=8, Ny=8, dx=1.0, dy=1.0)
    module = checkout.package("diffractsim.propagation_methods.angular_spectrum_method")

    def intensity(size: Any, z: Any) -> Any:
        return np.abs(module.angular_spectrum_method(simulation, size * FIELD, z, 1.6)) ** 2

    return intensity, np.linspace(0.5, 1.5, 8), 0.3


@program("python-hydro/pyro2", "`limit4`, `limit2`: limited slopes of arrays with grids, a class of their own")
def limited_slopes(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("pyro", "pyro.mesh"):
        checkout.bare(name, name.replace(".", "/"))
    indexer, slopes = (checkout.package(f"pyro.mesh.{name}") for name in ("array_indexer", "reconstruction"))
    grid = types.SimpleNamespace(ilo=4, ihi=9, jlo=4, jhi=9, dx=0.1, dy=0.1, ng=4)
    grid.scratch_array = lambda: indexer.ArrayIndexer(np.zeros((14, 14)), grid=grid)

    def of_data(data: Any) -> Any:
        array = indexer.ArrayIndexer(data, grid=grid)
        return slopes.limit4(array, grid, 1), slopes.limit2(array, grid, 2), array.lap(), array.norm()

    return of_data, np.random.default_rng(1).normal(size=(14, 14))


@program("skyfielders/python-skyfield", "`propagate`: two bodies after some time; `reverse_terra`")
def two_bodies(checkout: Checkout) -> tuple[Any, ...]:
    stub("sgp4", "sgp4.api", *(f"jplephem{name}" for name in ("", ".exceptions", ".names", ".spk")))
    kepler, earth = checkout.package("skyfield.keplerlib"), checkout.package("skyfield.earthlib")

    def after(position: Any, velocity: Any) -> Any:
        where, speed = kepler.propagate(position, velocity, 0.0, np.array([1.0, 2.5]), 0.0003)
        return where, speed, *earth.reverse_terra(position, 0.3)

    return after, np.array([1.0, 0.2, 0.1]), np.array([0.001, 0.016, 0.002])


@program("LCAV/pyroomacoustics", "`lpc`, `prony`, `autocorr`, `goertzel`: models of a signal")
def signal_models(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("pyroomacoustics", "pyroomacoustics")
    stub(*(f"pyroomacoustics.{name}" for name in ("random", "doa", "parameters", "sync")))  # they need compiled parts
    tools = checkout.package("pyroomacoustics.utilities")

    def models(x: Any) -> Any:
        lags = [tools.autocorr(x, 3, method=way) for way in ("fft", "time", "numpy")]
        return tools.lpc(x, 4), *tools.prony(x, 3, 2), *lags, tools.goertzel(x, 3)

    return models, SIGNAL


@program("scikit-fuzzy/scikit-fuzzy", "`gbellmf`, `psigmf`, `gauss2mf`, and a step of `cmeans`: fuzzy sets")
def fuzzy_sets(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("skfuzzy", "skfuzzy.cluster"):
        checkout.bare(name, name.replace(".", "/"))
    sets, means = checkout.load("skfuzzy/membership/generatemf.py"), checkout.package("skfuzzy.cluster._cmeans")
    x = np.linspace(0.1, 4.0, 9)

    def of_shapes(a: Any, data: Any) -> Any:
        curves = sets.gbellmf(x, *a[:3]), sets.psigmf(x, *a[:4]), sets.gauss2mf(x, a[0], 0.4, a[1] + 1, a[2])
        u = np.array([[0.2, 0.4, 0.7, 0.1], [0.8, 0.6, 0.3, 0.9]])
        return *curves, *means._cmeans0(data, u, 2, 2.0, "euclidean")

    return of_shapes, np.array([0.7, 1.3, 2.1, 0.4]), np.array([[0.1, 0.4, 1.5, 0.3], [0.9, 0.2, 1.1, 2.0]])


@program("jkitchin/pycse", "`regress`, `predict`, `nlinfit`: fits with intervals of confidence, by the data")
def intervals(checkout: Checkout) -> tuple[Any, ...]:
    stub("numdifftools")
    module = checkout.load("src/pycse/PYCSE.py")
    t = np.linspace(0, 2, 9)

    def fits(y: Any) -> Any:
        linear = module.regress(np.column_stack([t**0, t]), y)
        return *linear, *module.nlinfit(lambda x, a, b: a * np.exp(-b * x), t, y, [1.0, 0.5])[:1]

    return fits, np.exp(-0.7 * t) * 1.3 + 0.05 * np.sin(9 * t)


@program("poliastro/poliastro", "`coe2rv`, `rv2coe`, `farnocchia`: orbits by their elements")
def orbits(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("poliastro", "poliastro.core", "poliastro.core.propagation"):
        checkout.bare(name, f"src/{name.replace('.', '/')}")
    elements = checkout.package("poliastro.core.elements", "src")
    ways = checkout.package("poliastro.core.propagation.farnocchia", "src")

    def orbit(coe: Any, time: Any) -> Any:
        r, v = elements.coe2rv(EARTH, *coe)
        return *elements.rv2coe(EARTH, 1.01 * r, v), *ways.farnocchia_rv(EARTH, r, v, time)

    return orbit, (11067.79, 0.83285, 1.53, 3.977, 0.932, 1.611), 900.0


@program("poliastro/poliastro", "`izzo`, `compute_flyby`: Lambert's problem and a swing-by")
def lambert(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("poliastro", "poliastro.core", "poliastro._math"):
        checkout.bare(name, f"src/{name.replace('.', '/')}")
    iod, flybys = (checkout.package(f"poliastro.core.{name}", "src") for name in ("iod", "flybys"))

    def between(r1: Any, r2: Any, time: Any) -> Any:
        v1, v2 = iod.izzo(EARTH, r1, r2, time, 0, True, True, 35, 1e-12)
        return v1, v2, *flybys.compute_flyby(v1, 0.1 * v2, EARTH, 8000.0, 0.4)

    return between, np.array([15945.34, 10.0, 0.0]), np.array([12214.84, 10249.47, 20.0]), 4560.0


@program("scikit-bio/scikit-bio", "`clr`, `ilr`, `alr`, `perturb`, `pairwise_vlr`: parts of a whole")
def parts_of_a_whole(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("skbio", "skbio.util", "skbio.stats", "skbio.stats.composition"):
        checkout.bare(name, name.replace(".", "/"))
    base = checkout.package("skbio.stats.composition._base")

    def transforms(x: Any) -> Any:
        ilr = base.ilr(x)
        return base.clr(x), ilr, base.ilr_inv(ilr), base.alr(x, 1), base.power(x, 0.3), base._pairwise_vlr(x, 1)

    return transforms, np.array([[0.1, 0.3, 0.4, 0.2], [0.3, 0.2, 0.1, 0.4], [0.25, 0.15, 0.35, 0.25]])


@program("domokane/FinancePy", "`vol_function_sabr`, `_svi`, `_clark`; `bjerksund_stensland_value`, `baw_value`")
def volatilities(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("financepy", "financepy.utils", "financepy.models"):
        checkout.bare(name, name.replace(".", "/"))
    sabr, smiles, american = (
        checkout.package(f"financepy.models.{name}") for name in ("sabr", "volatility_fns", "black_scholes_analytic")
    )

    def prices(p: Any, s: Any) -> Any:
        smile = sabr.vol_function_sabr(p, 1.0, 1.1, 0.5), smiles.vol_function_svi(p, 1.0, 1.1, 0.5)
        early = american.baw_value(s, 0.5, 100.0, 0.06, 0.02, p[0], 1)
        return *smile, early, american.bjerksund_stensland_value(s, 0.5, 100.0, 0.06, 0.08, p[0], 1)

    return prices, np.array([0.3, 0.7, -0.2, 0.4, 0.5]), 95.0
