"""The names of the functions of SciPy without a rule of ours, and why each needs none or has none."""

from effgrad.arrays.value import REASONS

# Functions whose derivative is that of SciPy's own Python code; the coverage tests have a case for each.
WRITTEN_IN_NUMPY = {
    "special": """assoc_laguerre chebyc chebys chebyt chebyu gegenbauer genlaguerre h1vp h2vp hermite hermitenorm
        ivp jacobi jvp kvp laguerre legendre sh_chebyt sh_chebyu sh_jacobi sh_legendre yvp""",
    "linalg": "convolution_matrix diagsvd fiedler fiedler_companion khatri_rao null_space orth",
    "signal": """abcd_normalize bessel bilinear_zpk bode butter cheby1 cheby2 chirp coherence cont2discrete
        csd cspline1d cspline1d_eval CZT czt_points dbode detrend dfreqresp dimpulse dlsim dlti dstep ellip envelope
        filtfilt firls firwin firwin2 freqresp freqs freqs_zpk freqz freqz_sos freqz_zpk gammatone gauss_spline
        gausspulse group_delay hilbert2 iircomb iirdesign iirfilter iirnotch iirpeak impulse invres invresz istft
        kaiser_atten kaiser_beta lombscargle lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp_zpk lp2lp lp2lp_zpk
        lti medfilt minimum_phase order_filter periodogram place_poles qspline1d qspline1d_eval
        savgol_coeffs sawtooth ShortTimeFFT sos2tf sos2zpk sosfiltfilt sosfreqz spectrogram square
        ss2tf ss2zpk StateSpace step stft sweep_poly tf2sos tf2ss tf2zpk TransferFunction vectorstrength welch
        whittaker_henderson wiener ZerosPolesGain ZoomFFT zpk2sos zpk2tf""",
    "ndimage": """black_tophat center_of_mass convolve1d extrema generic_gradient_magnitude generic_laplace
        grey_closing grey_opening labeled_comprehension maximum mean median minimum morphological_gradient
        standard_deviation sum sum_labels variance vectorized_filter white_tophat""",
    "fft": "fftshift ifftshift",
    "stats": """abs alexandergovern anderson bartlett bayes_mvs bernoulli betabinom betanbinom binned_statistic
        binned_statistic_2d binom Binomial boltzmann bootstrap boxcox boxcox_normplot chi2_contingency chisquare
        circmean circstd circvar combine_pvalues Covariance describe differential_entropy directional_stats
        dirichlet_multinomial dlaplace ecdf energy_distance entropy exp false_discovery_control gaussian_kde geom
        gmean gstd gzscore hmean jarque_bera kstat kstatvar kurtosis kurtosistest levene linregress lmoment
        Logistic logser make_distribution median_abs_deviation mode moment multinomial mvsdist nbinom Normal
        normaltest obrientransform order_statistic permutation_test planck pmean pointbiserialr poisson
        quantile scoreatpercentile sem sigmaclip skellam skew theilslopes tmean trim1
        trim_mean trimboth tsem tstd ttest_1samp ttest_ind ttest_ind_from_stats ttest_rel tvar Uniform variation
        wasserstein_distance yeojohnson yeojohnson_llf yulesimon zipf zmap zscore""",
    "interpolate": """AAA Akima1DInterpolator approximate_taylor_polynomial barycentric_interpolate
        BarycentricInterpolator BPoly BSpline CloughTocher2DInterpolator CubicHermiteSpline CubicSpline
        FloaterHormannInterpolator griddata interp1d interpn InterpolatedUnivariateSpline krogh_interpolate
        KroghInterpolator lagrange LinearNDInterpolator LSQUnivariateSpline NearestNDInterpolator pade
        pchip_interpolate PchipInterpolator PPoly Rbf RBFInterpolator RectBivariateSpline BivariateSpline
        RegularGridInterpolator splantider splder UnivariateSpline""",
    "optimize": "approx_fprime fmin_cobyla fmin_slsqp rosen rosen_der rosen_hess rosen_hess_prod",
    "sparse": "permute_dims swapaxes",
    "sparse.linalg": "aslinearoperator expm_multiply lobpcg lsmr lsqr matrix_power onenormest",
    "integrate": """BDF complex_ode cubature cumulative_simpson cumulative_trapezoid dblquad DOP853 fixed_quad ode
        qmc_quad Radau RK23 RK45 romb simpson tanhsinh tplquad trapezoid""",
}  # fmt: skip
# Functions without an argument that could be differentiated, or with piecewise constant results.
CONSTANTS = {
    "special": {"made from integers": """stirling2 euler bernoulli ai_zeros
        bei_zeros beip_zeros ber_zeros berp_zeros bi_zeros erf_zeros fresnel_zeros fresnelc_zeros
        fresnels_zeros jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros kei_zeros keip_zeros kelvin_zeros ker_zeros kerp_zeros
        y0_zeros y1_zeros y1p_zeros yn_zeros ynp_zeros c_roots cg_roots h_roots he_roots j_roots js_roots l_roots
        la_roots p_roots ps_roots s_roots t_roots ts_roots u_roots us_roots roots_chebyc roots_chebys roots_chebyt
        roots_chebyu roots_hermite roots_hermitenorm roots_laguerre roots_legendre roots_sh_chebyt roots_sh_chebyu
        roots_sh_legendre"""},
    "linalg": {"": """dft find_best_blas_type get_blas_funcs get_lapack_funcs hadamard helmert hilbert invhilbert
        invpascal pascal"""},
    "signal": {"": "choose_conv_method correlation_lags get_window max_len_seq unit_impulse"},
    "ndimage": {"": "generate_binary_structure iterate_structure"},
    "fft": {"": """fftfreq get_workers register_backend rfftfreq set_backend set_global_backend set_workers skip_backend
        fhtoffset"""},
    "stats": {"": "kendalltau spearmanr ortho_group special_ortho_group unitary_group uniform_direction"},
    "integrate": {"": "lebedev_rule newton_cotes"},
    "optimize": {"": "quadratic_assignment show_options linprog_verbose_callback"},
    "sparse": {"": """rand random random_array issparse isspmatrix isspmatrix_bsr isspmatrix_coo
        isspmatrix_csc isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil get_index_dtype load_npz
        safely_cast_index_arrays"""},
    "sparse.linalg": {"": "is_sptriangular spbandwidth use_solver"},
}
# Functions without a rule, by the reason, if there is more to say than that nobody has written one.
NO_RULE = {
    "special": {
        "no derivative is known in closed form": """chndtridf mathieu_a mathieu_b mathieu_even_coef mathieu_odd_coef
            ncfdtridfd ncfdtridfn nctdtr nctdtridf nctdtrinc nctdtrit obl_cv obl_cv_seq obl_rad2_cv pro_cv pro_cv_seq
            roots_gegenbauer roots_genlaguerre roots_jacobi roots_sh_jacobi""",
    },
    "linalg": {
        "its vectors are not unique where eigenvalues meet, and its form depends on their order; use eig or eigh":
            "ordqz cdf2rdf rsf2csf cossin",
        "an update of factors in place; factor the new matrix": "qr_delete qr_insert qr_update",
    },
    "signal": {
        "where the peaks are is a constant: effgrad.stop_gradient(x) before it":
            "argrelextrema argrelmax argrelmin find_peaks find_peaks_cwt peak_prominences peak_widths",
        "it designs a filter from plain numbers": "buttord cheb1ord cheb2ord ellipord firwin_2d remez",
    },
    "ndimage": {
        "of truth values": """binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss
            binary_opening binary_propagation""",
        "it writes to a line that compiled code gives it": "generic_filter1d",
    },
    "stats": {
        "a test's p-value or a ranking in steps; it is not smooth in the data": """ansari brunnermunzel kruskal ks_1samp
            ks_2samp kstest mannwhitneyu median_test mood ranksums wilcoxon weightedtau somersd""",
        "it finds parameters by optimisation; differentiate the likelihood":
            "fit boxcox_normmax yeojohnson_normmax",
        "it calls the statistic from a loop of random draws":
            "monte_carlo_test power goodness_of_fit",
    },
    "interpolate": {
        "a fit of a surface in compiled code (FITPACK), whose knots move with the data; use RectBivariateSpline":
            """SmoothBivariateSpline bisplrep RectSphereBivariateSpline LSQBivariateSpline SmoothSphereBivariateSpline
            LSQSphereBivariateSpline""",
        "in compiled code": "NdBSpline NdPPoly",
    },
    "integrate": {
        "its steps are taken from outside; use solve_ivp, which has a rule for every method":
            "LSODA OdeSolver",
    },
    "optimize": {
        "its unknowns change in steps": "milp",
        "a part of an algorithm that is run by plain Python; give minimize or root its name": """BFGS SR1
            HessianUpdateStrategy InverseJacobian KrylovJacobian BroydenFirst LbfgsInvHessProduct bracket
            line_search""",
        "it takes differences; use effgrad.grad and effgrad.check_grad": "check_grad",
    },
    "sparse.linalg": {
        "the result is dense; use scipy.linalg.expm of A.toarray()": "expm funm_multiply_krylov",
    },
}  # fmt: skip
# Classes of results and of descriptions of problems, which hold numbers and compute nothing.
ASIDE = "errstate OptimizeResult RootResults Bounds LinearConstraint NonlinearConstraint SuperLU sparray spmatrix"
# Distributions whose density SciPy computes with functions that have no rule.
ROUGH = """genhyperbolic geninvgauss ksone kstwo kstwobign landau levy_stable ncf nct
    studentized_range""".split()
REASONS.enter({
    f"scipy.{space}.{name}": reason
    for space, reasons in NO_RULE.items() for reason, names in reasons.items() for name in names.split()
})  # fmt: skip
