"""Programs of uncertain poses, solids of triangles, and options priced in the frequency domain."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program

DRAWS = np.random.default_rng(28)


@program("dfki-ric/pytransform3d", "`estimate_gaussian_transform_from_samples`, `pose_fusion`: uncertain poses")
def poses(checkout: Checkout) -> tuple[Any, ...]:
    uncertain, paths = checkout.package("pytransform3d.uncertainty"), checkout.package("pytransform3d.trajectories")

    def fused(moves: Any, sizes: Any) -> Any:
        samples = paths.transforms_from_exponential_coordinates(moves)
        mean, spread = uncertain.estimate_gaussian_transform_from_samples(samples)
        both, spreads = [mean, samples[0]], [spread + 0.01 * np.eye(6), np.diag(sizes)]
        joined = uncertain.concat_locally_uncertain_transforms(mean, samples[1], spread, np.diag(sizes))
        return [*uncertain.pose_fusion(both, spreads), *joined]

    return fused, DRAWS.normal(size=(7, 6)) * 0.3 + 0.4, DRAWS.uniform(0.05, 0.2, size=6)


@program("jkirkby3/fypy", "`CarrMadanEuropeanPricer`, `ProjEuropeanPricer`: options by Heston's and Merton's models")
def options(checkout: Checkout) -> tuple[Any, ...]:
    package = checkout.package
    curves, forwards = package("fypy.termstructures.DiscountCurve"), package("fypy.termstructures.EquityForward")
    heston, merton = package("fypy.model.sv.Heston").Heston, package("fypy.model.levy.MertonJD").MertonJD
    madan = package("fypy.pricing.fourier.CarrMadanEuropeanPricer").CarrMadanEuropeanPricer
    projected = package("fypy.pricing.fourier.ProjEuropeanPricer").ProjEuropeanPricer

    def prices(spot: Any, rates: Any, volatile: Any, jumps: Any, strikes: Any) -> Any:
        rate, dividend = curves.DiscountCurve_ConstRate(rates[0]), curves.DiscountCurve_ConstRate(rates[1])
        forward = forwards.EquityForward(S0=spot, discount=rate, divDiscount=dividend)
        volatility, jump = heston(forward, rate, *volatile), merton(forward, rate, *jumps)
        calls = np.array([True, False, True])
        by_splines = [
            projected(model, N=2**8, order=order).price_strikes(0.7, strikes, calls)
            for model, order in ((volatility, 3), (jump, 1))
        ]
        return [*by_splines, madan(volatility).price(0.7, strikes[0], True), madan(jump).price(0.7, strikes[1], False)]

    volatile, jumps = np.array([0.04, 0.05, 2.0, 0.3, -0.6]), np.array([0.15, 0.3, -0.1, 0.2])
    return prices, 100.0, np.array([0.03, 0.01]), volatile, jumps, np.array([88.0, 101.0, 108.0])


@program("mikedh/trimesh", "`mass_properties`, `closest_point`, `procrustes`: solids of triangles, by their corners")
def solids(checkout: Checkout) -> tuple[Any, ...]:
    triangles, registration = checkout.package("trimesh.triangles"), checkout.package("trimesh.registration")
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])

    def properties(corners: Any, others: Any, density: Any) -> Any:
        each = corners[faces]
        mass = triangles.mass_properties(each, density=density)
        matrix, moved, cost = registration.procrustes(corners, others)
        barycentric = triangles.points_to_barycentric(each, others)
        found = [mass["center_mass"], mass["inertia"], mass["volume"], matrix, moved, cost, barycentric]
        return [*found, triangles.closest_point(each, others), triangles.angles(each), triangles.area(each)]

    corners = np.array([[0.0, 0.1, 0.0], [1.0, 0.0, 0.1], [0.2, 1.1, 0.0], [0.1, 0.2, 0.9]])
    return properties, corners, corners[::-1] + DRAWS.normal(size=(4, 3)) * 0.2 + 0.1, 1.3


@program("einsteinpy/einsteinpy", "`Geodesic`: a step around a rotating black hole, by its spin, place and momentum")
def geodesics(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("einsteinpy", "src/einsteinpy")
    geodesic = checkout.package("einsteinpy.geodesic").Geodesic
    steps = {"steps": 1, "delta": 0.5, "suppress_warnings": True}

    def path(spin: Any, position: Any, momentum: Any) -> Any:
        return geodesic("Kerr", (spin,), position, momentum, **steps).trajectory[1]

    return path, 0.9, np.array([8.0, 1.2, 0.3]), np.array([0.1, 0.5, 2.0])
