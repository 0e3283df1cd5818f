"""Tests that do not hold with some versions: older ones lack what is called, or compute it with fewer digits.

The suite runs on the oldest and the newest versions (`./dev test --oldest`, `--newest`); what the tables do not name
has to pass there.
"""

import re
import sys

import numpy
import scipy

NUMPY, SCIPY = (tuple(map(int, library.__version__.split(".")[:2])) for library in (numpy, scipy))
# What is installed, whether it is such a version, and for patterns of the names of tests what it does there.
LACKING = [
    (f"NumPy {numpy.__version__}", NUMPY < (2, 2), {
        r"test_written_beside_the_owner.py::\w+\[(\w+-DLPack|views_of_traced)": "gives views by DLPack to read only",
    }),
    (f"NumPy {numpy.__version__}", NUMPY < (2, 4), {
        r"::test_form\[pad .*\{(0|-1): ": "pads by no dictionary",
        r"::test_form\[weighted quantile \(0, 1\)": "has another quantile over several axes",
        r"::test_arguments_go_by_the_names_of_the_library": "does not say how its arguments are called",
        r"::test_every_function_of_numpy_and_math_is_stated\[numpy\]": "has names that newer versions dropped",
        r"are_complete\[effgrad.toolbox.stochastic.Generator\]": "does not say how its arguments are called",
        r"test_sharing.py::test_results_are_written_\w+\[np.dot\]": "does not say how its arguments are called",
        r"test_sharing.py::test_results_share_\w+\[np.fix\]": "reads an array after it has written to it",
    }),
    (f"SciPy {scipy.__version__}", SCIPY < (1, 16), {
        r"test_columns_read_by_pandas.py::\w+\[(filled_gaps|.*Window)": "is older than pandas asks for",
    }),
    (f"SciPy {scipy.__version__}", SCIPY < (1, 18), {
        r"\[signal.whittaker_henderson\b": "lacks it",
    }),
    (f"SciPy {scipy.__version__}", SCIPY < (1, 17), {
        r"test_linear_algebra.py::test_(the_value|first_and)\w+\[(scipy (cholesky|cholesky lower|eigh|eigvalsh upper"
        r"|qr economic|qr r|solve|solve pos of a stack of elements|inv her of one element)"
        r"|schur complex|polar|solve_triangular|sqrtm|logm|logm across the cut|cosm"
        r"|fractional power|fractional power across the cut|orthogonal_procrustes|khatri_rao|lu_solve (for a )?batch"
        r"|(cho_solve(_banded)?|solve_banded|discrete lyapunov|scipy qr pivoting|block_diag) batch)\]":
            "takes one matrix",
        r"_declared_is_right_or_refused\[scipy.linalg.eigh_tridiagonal\]": "has signs that the last digits decide",
        r"\[linalg.(inv (batch|pos)|solve (batch|diagonal|triangular kind|tridiagonal))\b": "takes one matrix",
        r"\[(signal.(envelope|freqz_sos)|stats.(Normal|lmoment|quantile)|sparse.(permute_dims|swapaxes))\b": "lacks it",
        r"\[(integrate.(cubature|tanhsinh)|ndimage.vectorized_filter|interpolate.(AAA|Floater)"
        r"|stats.(Binomial|Logistic|Uniform|abs|exp|make_distribution|order_statistic)\b)": "lacks it",
        r"\[(integrate\.)?complex_ode\]": "returns an array of its own, which it writes to",
        r"\[\w+-(softplus-0|sph_harm_y at a pole-\d)\]": "lacks it",
        r"(\[stats.boxcox_llf at 0\b|-factorial(2|k| complex)?-\d\])": "has no such argument",
        r"\[signal.lombscargle\b": "runs compiled code",
        r"test_odd_arguments.py::\w+\[\w+-(a multiple of the identity|equations for a batch)\]": "takes one array each",
        r"test_silent.py::test_a_traced_value_is_followed\[cubature\]": "lacks it",
        r"test_scipy_lists.py::\w+\[rows: solve_sylvester\]": "takes no lists",
        r"\[sparse.spsolve_triangular\b": "takes no indices of 64 bits",
        r"-(ncfdtri?-[23]|powm1-1)\]": "gives fewer digits",
        r"\[make_interp_spline 4\b": "has splines of odd degree only",
        r"::test_form\[Procrustes of complex": "does not conjugate",
        r"::test_functions_of_scipy_agree_or_have_no_counterpart\[(interpolate|linalg|ndimage|signal|stats)-strict\]":
            "lacks some of them",
        r"::test_every_rule_has_a_case": "lacks some of them",
        r"test_sparse_forms.py::test_values_and_derivatives_in_every_mode\[(row|column|row product|row of rows"
        r"|product with a row|rows added|sum of a row|ellipsis|iterated|norms)\]": "slices no sparse array to one axis",
        r"::test_every_format_alone\[(coo|csr|csc|bsr|dia|lil|dok)\]": "slices no sparse array to one axis",
        r"::test_values_and_derivatives_in_every_mode\[unit triangle\]": "takes no indices of 64 bits",
        r"::test_what_scipy_refuses_is_refused_in_its_words\[<lambda>-outside of": "says it in other words",
        r"::test_compiled_code_that_rejects_a_traced_value_is_named": "has no make_splrep",
        r"::test_every_function_of_a_batch_is_that_of_its_members\[stats.tmean\]": "looks at which elements are kept",
        r"::test_a_function_without_a_rule_is_named\[stats.weightedtau\]": "ranks integers, which are constant",
        r"::test_other_operations_of_tables_are_refused\[<lambda>2\]": "is too old for this function of pandas",
        r"::test_page_is_current\[coverage\]": "has fewer functions than the page",
        r"::test_the_page_counts_the_calls_that_are_refused": "has fewer functions than the page",
    }),
    (f"NumPy {numpy.__version__}", NUMPY >= (2, 5), {
        r"test_dask.py::test_functions_give_what_they_give_over_numpy\[eig( complex)?-3\]": "asks no number for eig",
        r"\[strict-poly of matrix\]": "sorts complex eigenvalues",
        r"::test_page_is_current\[coverage\]": "has fewer functions than the page",
    }),
    (f"SciPy {scipy.__version__}", SCIPY >= (1, 18), {
        r"::test_functions_of_scipy_agree_or_have_no_counterpart\[stats-strict\]": "adds a truth value and an integer",
        r"test_scipy_lists.py::\w+\[rows: lstsq\]": "takes no lists",
    }),
    ("Python 3.12", sys.version_info[:2] == (3, 12), {
        r"::test_programs_may_be_nested_deeper_than_python_recurses": "limits recursion through C",
    }),
]  # fmt: skip


def lacking(test: str) -> str | None:
    """The reason why a test cannot pass with the versions that are installed."""
    for name, installed, patterns in LACKING:
        for pattern, reason in patterns.items():
            if installed and re.search(pattern, test):
                return f"{name} {reason}"
    return None
