"""Engineering and natural science: fluids, sound, light, solar cells, rivers."""

import collections
import collections.abc
import importlib
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub


@program("CalebBell/fluids", "`Colebrook`, `Clamond`, `Churchill_1977`: friction in pipes by their numbers")
def friction(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.package("fluids.friction")
    names = ("Clamond", "Churchill_1977", "Serghides_1", "Colebrook")
    return lambda re, rough: [getattr(module, name)(re, rough) for name in names], 1e5, 1e-4


@program("python-acoustics/python-acoustics", "ISO 9613-1: attenuation of sound in air by its properties")
def sound(checkout: Checkout) -> tuple[Any, ...]:
    air = checkout.load("acoustics/standards/iso_9613_1_1993.py")
    frequency = np.array([125.0, 1000.0, 8000.0])

    def attenuation(pressure: Any, temperature: Any, humidity: Any) -> Any:
        wet = air.molar_concentration_water_vapour(humidity, air.saturation_pressure(temperature), pressure)
        oxygen = air.relaxation_frequency_oxygen(pressure, wet)
        nitrogen = air.relaxation_frequency_nitrogen(pressure, temperature, wet)
        return air.attenuation_coefficient(
            pressure, temperature, reference_pressure=101.325, reference_temperature=293.15,
            relaxation_frequency_nitrogen=nitrogen, relaxation_frequency_oxygen=oxygen, frequency=frequency,
        )  # fmt: skip

    return attenuation, 100.0, 288.0, 60.0


@program("scottprahl/miepython", "`_single_sphere_py`: efficiencies of a sphere by index and size")
def mie(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("miepython", "miepython")
    sphere = importlib.import_module("miepython.mie_nojit")._single_sphere_py
    return lambda n, k, x: sphere(n - 1j * k, x, 0, True), 1.5, 0.1, 2.3


@program("pvlib/pvlib-python", "`bishop88`, `_lambertw_i_from_v`: the current of a solar cell by its parameters")
def solar_cell(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("pvlib", "pvlib")
    checkout.bare("pvlib.ivtools", "pvlib/ivtools")
    cell = importlib.import_module("pvlib.singlediode")

    def currents(*x: Any) -> Any:
        photo, dark, series, shunt, volts = x
        return [*cell.bishop88(0.45, *x), cell._lambertw_i_from_v(0.5, photo, dark, series, shunt, volts)]

    return currents, 7.0, 6e-7, 0.1, 20.0, 0.5


@program("TheAlgorithms/Python", "`loss_functions`: five losses by predictions")
def losses(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.load("machine_learning/loss_functions.py")
    wanted = np.array([0.0, 1.0, 1.0, 0.0])

    def all_of_them(p: Any) -> Any:
        return [
            module.binary_cross_entropy(wanted, p), module.binary_focal_cross_entropy(wanted, p),
            module.huber_loss(wanted, p, 0.35), module.mean_squared_logarithmic_error(wanted, p),
            module.smooth_l1_loss(wanted, p, 0.35),
        ]  # fmt: skip

    return all_of_them, np.array([0.2, 0.9, 0.4, 0.7])


@program("TheAlgorithms/Python", "`Matrix.determinant`, `Vector.angle`: linear algebra on Python lists")
def lists(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.load("linear_algebra/src/lib.py")

    def numbers(rows: Any) -> Any:
        angle = module.Vector(list(rows[0])).angle(module.Vector(list(rows[1])))
        return module.Matrix([list(row) for row in rows], 3, 3).determinant(), angle

    return numbers, np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0], [1.5, 0.7, 3.0]])


@program("Bismarrck/pymatgen", "`FloatWithUnit`: energies, lengths and speeds, which are floats with a unit")
def numbers_with_units(checkout: Checkout) -> tuple[Any, ...]:
    for name in ("Mapping", "Sequence"):  # as in older Python
        setattr(collections, name, getattr(collections.abc, name))
    stub("six", iteritems=lambda d: iter(d.items()), string_types=(str,))
    stub("six.moves", filter=filter, zip=zip)
    units = checkout.load("pymatgen/core/units.py")

    def converted(x: Any) -> Any:
        one, other = units.Energy(x[0], "Ha"), units.Energy(x[1], "eV")
        length = units.Length(x[2], "ang")
        gap, speed = (other - one) * 2.0, length / units.Time(x[3], "s")
        area = (length * length**2).to("m^3") * 1e30
        return (one + other).to("eV"), gap.to("Ry"), speed.to("m s^-1") * 1e10, area, -one, 3.0 * length

    return converted, np.array([1.1, 3.0, 2.0, 0.5])
