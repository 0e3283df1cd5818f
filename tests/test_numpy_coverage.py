"""Every function of the table in every mode and order, with its dtype, staged and compiled."""

import laws
import pytest
from numpy_cases import CASES, X

# Steep functions: differences of gradients have larger errors there.
STEEP = {"gradient2": 1e-4, "matrix_power": 1e-4}


@pytest.mark.parametrize("name", CASES)
def test_forward_and_reverse_are_transposes_and_keep_the_value(name):
    laws.forward_and_reverse_are_transposes(CASES[name], X)


@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivative_agree_with_differences(name):
    laws.derivatives_agree_with_differences(CASES[name], X, STEEP.get(name, 2e-5))


@pytest.mark.parametrize("name", CASES)
def test_orders_of_nesting_agree(name):
    laws.orders_of_nesting_agree(CASES[name], X)


@pytest.mark.parametrize("name", CASES)
def test_reverse_modes_agree(name):
    laws.reverse_modes_agree(CASES[name], X)


@pytest.mark.parametrize("name", CASES)
def test_single_precision_stays(name):
    laws.single_precision_stays(CASES[name], X)


@pytest.mark.eager
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", CASES)
def test_compiled_programs_agree(name, backend):
    laws.compiled_programs_agree(CASES[name], X, backend)
