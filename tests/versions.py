"""Tests that older versions of NumPy and SciPy cannot pass: these lack what is called, or compute it with fewer digits.

The suite runs on the oldest versions too (`./dev test --oldest`); what the table does not name has to pass there.
"""

import re

import numpy
import scipy

# Before these versions: patterns of the names of tests, and what NumPy and SciPy do there.
WHOLE = {numpy: (2, 4), scipy: (1, 17)}
LACKING = {
    numpy: {
        r"::test_form\[pad .*\{(0|-1): ": "pads by no dictionary",
        r"::test_form\[weighted quantile \(0, 1\)": "has another quantile over several axes",
        r"::test_arguments_go_by_the_names_of_the_library": "does not say how its arguments are called",
        r"::test_every_function_of_numpy_and_math_is_stated\[numpy\]": "has names that newer versions dropped",
        r"are_complete\[effgrad.toolbox.stochastic.Generator\]": "does not say how its arguments are called",
    },
    scipy: {
        r"test_linear_algebra.py::test_(the_value|first_and)\w+\[(scipy (cholesky|cholesky lower|eigh|eigvalsh upper"
        r"|qr economic|qr r|solve)|schur complex|polar|solve_triangular|sqrtm|logm|logm across the cut|cosm"
        r"|fractional power|fractional power across the cut|orthogonal_procrustes|khatri_rao)\]": "takes one matrix",
        r"\[linalg.(inv (batch|pos)|solve (batch|diagonal|triangular kind|tridiagonal))\b": "takes one matrix",
        r"\[(signal.(envelope|freqz_sos)|stats.(Normal|lmoment|quantile)|sparse.(permute_dims|swapaxes))\b": "lacks it",
        r"\[\w+-(softplus-0|sph_harm_y at a pole-\d)\]": "lacks it",
        r"(\[stats.boxcox_llf at 0\b|-factorial-0\])": "has no such argument",
        r"\[signal.lombscargle\b": "runs compiled code",
        r"\[sparse.spsolve_triangular\b": "takes no indices of 64 bits",
        r"-(ncfdtri?-[23]|powm1-1)\]": "gives fewer digits",
        r"\[make_interp_spline 4\b": "has splines of odd degree only",
        r"::test_form\[Procrustes of complex": "does not conjugate",
        r"::test_compiled_programs_call_machine_code\[an integer\]": "computes erf(True) in single precision",
        r"::test_functions_of_scipy_agree_or_have_no_counterpart\[(linalg|signal|stats)-strict\]": "lacks some of them",
        r"::test_every_rule_has_a_case": "lacks some of them",
        r"::test_a_function_without_a_rule_is_named\[stats.weightedtau\]": "ranks integers, which are constant",
        r"::test_other_operations_of_tables_are_refused\[<lambda>2\]": "is too old for this function of pandas",
        r"::test_page_is_current\[(coverage|hard_cases)\]": "has fewer functions than the page",
        r"::test_the_page_counts_the_calls_that_are_refused": "has fewer functions than the page",
    },
}


def lacking(test: str) -> str | None:
    """The reason why a test cannot pass with the versions that are installed."""
    for library, patterns in LACKING.items():
        version = library.__version__
        if tuple(map(int, version.split(".")[:2])) < WHOLE[library]:
            for pattern, reason in patterns.items():
                if re.search(pattern, test):
                    return f"{library.__name__} {version} {reason}"
    return None
