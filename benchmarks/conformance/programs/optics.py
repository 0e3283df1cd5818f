"""Light and waves."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, numpy_for_autograd, program


@program("sbyrnes321/tmm", "`coh_tmm`: light through a stack of films, by thicknesses, angle and wavelength")
def films(checkout: Checkout) -> tuple[Any, ...]:
    tmm = checkout.load("tmm_core.py")

    def reflected(thick: Any, angle: Any, wavelength: Any) -> Any:
        found = tmm.coh_tmm("s", [1, 2.2, 1.4 + 0.1j, 1.5], [np.inf, thick[0], thick[1], np.inf], angle, wavelength)
        return found["R"], found["T"]

    return reflected, np.array([120.0, 300.0]), 0.4, 550.0


@program("fancompute/ceviche", "`fdfd_ez`: the electric field of a source, by the permittivity of each cell")
def electromagnetics(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    ceviche, rng = checkout.package("ceviche"), np.random.default_rng(0)
    source = np.zeros((12, 12))
    source[4, 6] = 10.0

    def intensity(permittivity: Any) -> Any:
        _, _, ez = ceviche.fdfd_ez(2 * np.pi * 200e12, 5e-8, permittivity, [3, 3]).solve(source)
        return np.abs(ez) ** 2

    return intensity, rng.uniform(1, 4, size=(12, 12))
