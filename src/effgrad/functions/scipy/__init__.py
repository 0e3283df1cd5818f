"""Rules for functions of SciPy that no NumPy protocol reaches, a module for each of SciPy's, and what has none and why.

A module has a table `RULES` of owner (a module or class), name and rule, for `effgrad.program.rules_by_callable`. A
rule is a definition by NumPy functions, or calls a primitive of its own. Functions that are themselves written with
NumPy functions that have rules need none (`WRITTEN_IN_NUMPY`).
"""

import importlib
from typing import Any

import numpy as np

from effgrad.arrays.value import CONSTANT, FUNCTIONS, REASONS, UFUNCS

NAMESPACES = ("special", "linalg", "signal", "ndimage", "fft", "stats", "interpolate", "integrate", "optimize",
              "sparse", "sparse.linalg")  # fmt: skip

# Differentiable by SciPy's own code; the coverage tests have a case for each.
WRITTEN_IN_NUMPY = {
    "linalg": "diagsvd fiedler",
    "signal": """coherence cont2discrete csd detrend envelope freqs freqz freqz_sos freqz_zpk gauss_spline gausspulse
        group_delay hilbert2 invres lombscargle lp2hp lp2lp normalize periodogram sos2tf sosfreqz spectrogram stft
        sweep_poly tf2zpk vectorstrength welch zpk2tf""",
    "ndimage": "center_of_mass mean standard_deviation sum sum_labels variance",
    "fft": "fftshift ifftshift",
    "stats": """Normal bartlett bernoulli betabinom betanbinom binom boltzmann boxcox chisquare circmean circstd
        circvar combine_pvalues describe differential_entropy directional_stats dirichlet dlaplace energy_distance
        entropy expectile geom gmean gstd gzscore gaussian_kde hmean iqr jarque_bera kstat kstatvar kurtosis
        kurtosistest levene linregress lmoment logser median_abs_deviation moment multinomial multivariate_normal
        multivariate_t nbinom normaltest planck pmean poisson power_divergence quantile rel_breitwigner
        scoreatpercentile sem sigmaclip skellam skew skewtest theilslopes tmean trim1 trim_mean trimboth tsem tstd
        ttest_1samp ttest_ind ttest_ind_from_stats ttest_rel tukeylambda tvar variation vonmises_fisher
        wasserstein_distance yeojohnson yeojohnson_llf yulesimon zipf zmap zscore""",
    "interpolate": """Akima1DInterpolator BPoly BarycentricInterpolator CubicHermiteSpline CubicSpline PPoly
        PchipInterpolator BSpline LinearNDInterpolator NearestNDInterpolator RBFInterpolator Rbf
        RegularGridInterpolator barycentric_interpolate griddata interp1d interpn lagrange
        pchip_interpolate""",
    "optimize": "rosen rosen_der rosen_hess rosen_hess_prod",
    "sparse": "permute_dims swapaxes",
    "sparse.linalg": "aslinearoperator expm_multiply lobpcg lsmr lsqr matrix_power onenormest",
    "integrate": "cumulative_trapezoid dblquad fixed_quad nquad romb simpson tplquad trapezoid",
}
# Of no number that a derivative could be taken by, or constant in steps.
CONSTANTS = {
    "special": "errstate geterr seterr stirling2 euler bernoulli",
    "linalg": """dft find_best_blas_type get_blas_funcs get_lapack_funcs hadamard helmert hilbert invhilbert invpascal
        pascal""",
    "signal": "choose_conv_method correlation_lags get_window max_len_seq unit_impulse",
    "ndimage": "generate_binary_structure iterate_structure",
    "fft": """fftfreq get_workers register_backend rfftfreq set_backend set_global_backend set_workers skip_backend
        fhtoffset""",
    "stats": "kendalltau spearmanr ortho_group special_ortho_group unitary_group uniform_direction",
    "integrate": "lebedev_rule newton_cotes",
    "optimize": "linear_sum_assignment quadratic_assignment show_options linprog_verbose_callback",
    "sparse": """eye eye_array identity rand random random_array issparse isspmatrix isspmatrix_bsr isspmatrix_coo
        isspmatrix_csc isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil get_index_dtype load_npz
        safely_cast_index_arrays""",
    "sparse.linalg": "is_sptriangular spbandwidth use_solver",
}
# Why the others have no rule, where there is more to say than that nobody has written one.
NO_RULE = {
    "linalg": {
        "its vectors are not unique where eigenvalues meet, and its form depends on their order; use eig or eigh":
            "qz ordqz hessenberg cdf2rdf rsf2csf cossin",
        "a basis of a subspace is not a smooth function of the matrix; use svd or a projection": "null_space orth",
        "an update of factors in place; factor the new matrix": "qr_delete qr_insert qr_update",
    },
    "signal": {
        "where the peaks are is a constant: effgrad.stop_gradient(x) before it":
            "argrelextrema argrelmax argrelmin find_peaks find_peaks_cwt peak_prominences peak_widths",
        "it designs a filter from plain numbers": """bessel butter buttord cheb1ord cheb2ord cheby1 cheby2 ellip
            ellipord firls firwin firwin2 firwin_2d iircomb iirdesign iirfilter iirnotch iirpeak remez gammatone""",
        "a linear system as an object; use lfilter": """StateSpace TransferFunction ZerosPolesGain bode dbode dfreqresp
            dimpulse dlsim dlti dstep freqresp impulse lsim lti step""",
    },
    "ndimage": {
        "of truth values": """binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss
            binary_opening binary_propagation""",
        "it calls a Python function from compiled code":
            "generic_filter generic_filter1d geometric_transform labeled_comprehension",
    },
    "stats": {
        "a test's p-value or a ranking in steps; it is not smooth in the data": """ansari brunnermunzel kruskal ks_1samp
            ks_2samp kstest mannwhitneyu median_test mood ranksums wilcoxon weightedtau somersd""",
        "it finds parameters by optimisation; differentiate the likelihood":
            "fit boxcox_normmax yeojohnson_normmax",
        "it calls the statistic from a loop of random draws":
            "bootstrap monte_carlo_test permutation_test power goodness_of_fit",
    },
    "interpolate": {
        "a fit in compiled code (FITPACK); interpolate with CubicSpline or make_interp_spline": """UnivariateSpline
            InterpolatedUnivariateSpline LSQUnivariateSpline SmoothBivariateSpline RectBivariateSpline bisplrep bisplev
            splrep splprep RectSphereBivariateSpline LSQBivariateSpline BivariateSpline""",
        "it estimates gradients by iteration in compiled code; use LinearNDInterpolator or RBFInterpolator":
            "CloughTocher2DInterpolator",
        "in compiled code": "NdBSpline NdPPoly",
    },
    "integrate": {
        "it evaluates the integrand on plain numbers; use quad or fixed_quad":
            "cubature tanhsinh",
        "its steps are taken from outside; use solve_ivp, which has a rule for every method":
            "ode complex_ode RK23 RK45 DOP853 Radau BDF LSODA OdeSolver",
    },
    "optimize": {
        "an old form; use minimize, which has a rule for every method": "fmin_cobyla fmin_slsqp fmin_tnc",
        "its unknowns change in steps": "brute milp",
        "a part of an algorithm that is run by plain Python; give minimize or root its name": """BFGS SR1
            HessianUpdateStrategy InverseJacobian KrylovJacobian BroydenFirst LbfgsInvHessProduct bracket
            line_search""",
        "it takes differences; use effgrad.grad and effgrad.check_grad": "approx_fprime check_grad",
    },
    "sparse.linalg": {
        "the result is dense; use scipy.linalg.expm of A.toarray()": "expm funm_multiply_krylov",
        "an approximation of factors, to be used as a constant preconditioner: effgrad.stop_gradient(A) before it":
            "spilu",
        "use eigsh of a symmetric matrix, or numpy.linalg.eig of A.toarray()": "eigs",
    },
}  # fmt: skip
# Results and descriptions of problems, which hold numbers and compute nothing.
CONTAINERS = "OptimizeResult RootResults Bounds LinearConstraint NonlinearConstraint SuperLU sparray spmatrix".split()
REASONS.update({
    f"scipy.{space}.{name}": reason
    for space, reasons in NO_RULE.items() for reason, names in reasons.items() for name in names.split()
})  # fmt: skip


def status(name: str) -> tuple[str, str]:
    """What a derivative makes of a public function of SciPy, by its full name: a pair of a word and the reason.

    The word is "differentiable", "constant" or "no rule". Of a distribution, it is about its density.

    >>> status("scipy.linalg.expm"), status("scipy.fft.fftfreq")
    (('differentiable', ''), ('constant', ''))
    >>> status("scipy.linalg.null_space")[1]
    'a basis of a subspace is not a smooth function of the matrix; use svd or a projection'
    """
    from effgrad.program import rules_by_callable as table

    space, _, leaf = name.removeprefix("scipy.").rpartition(".")
    owner = importlib.import_module(f"scipy.{space}")
    value = getattr(owner, leaf)
    module = table.MODULES.get(f"scipy.{space}")
    rules = importlib.import_module(module).RULES if module else table.FIRST
    rule = next((rule for at, key, rule in rules if at is owner and key == leaf), None)
    if leaf in CONSTANTS.get(space, "").split() or getattr(rule, "constant", False) or value in CONSTANT:
        return "constant", ""
    ruled = rule is not None or leaf in WRITTEN_IN_NUMPY.get(space, "").split()
    if ruled or value in UFUNCS or value in FUNCTIONS or _smooth_distribution(leaf, value):
        return "differentiable", ""
    return "no rule", REASONS.get(name) or "no rule has been written for it"


# Distributions whose density SciPy computes with functions that have no rule.
_ROUGH = """genhyperbolic geninvgauss ksone kstwo kstwobign landau levy_stable ncf nct pearson3
    studentized_range""".split()


def _smooth_distribution(name: str, value: Any) -> bool:
    return hasattr(value, "logpdf") and hasattr(value, "_logpdf") and name not in _ROUGH


def functions() -> list[str]:
    """The full names of the public functions (and classes) of `NAMESPACES`, in order."""
    found = []
    for space in NAMESPACES:
        module = importlib.import_module(f"scipy.{space}")
        for name in sorted(module.__all__):
            value = getattr(module, name)
            error = isinstance(value, type) and issubclass(value, BaseException)
            if (callable(value) or isinstance(value, np.ufunc)) and not error and name not in CONTAINERS:
                found.append(f"scipy.{space}.{name}")
    return found
