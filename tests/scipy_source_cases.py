"""Functions of SciPy that are differentiated through SciPy's own Python source: a call of each, for `scipy_cases`.

The first row of the matrix of shape (3, 4) gives coefficients, the second one samples.
"""

import numpy as np
from scipy import integrate, interpolate, linalg, ndimage, signal, special, stats

TIMES = np.linspace(0, 1, 7)
LABELS = np.array([1, 1, 2, 2]), [1, 2]


def matrix(x):
    return x[:2, :2] + 2 * np.eye(2)


def system(x):
    """A linear system of two states, one input and one output."""
    return matrix(x), x[2:, :2].reshape(2, 1), x[1:2, :2], x[1:2, 2:3]


def filtered(x):
    """The coefficients of a filter of second order: numerator and denominator."""
    return x[0, :2], np.stack([1.0, x[0, 2], x[0, 3] / 2])


def parts(values):
    """Complex numbers as real ones, whatever the order of conjugate pairs."""
    values = np.asarray(values)
    return np.stack([np.sum(np.real(values)), np.sum(np.abs(values) ** 2)])


SPECIAL = {
    **{name: lambda x, name=name: getattr(special, name)(3)(x) for name in (
        "chebyc", "chebys", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre", "legendre", "sh_chebyt",
        "sh_chebyu", "sh_legendre")},
    "gegenbauer": lambda x: special.gegenbauer(3, 0.7)(x),
    "genlaguerre": lambda x: special.genlaguerre(3, 0.5)(x),
    "jacobi": lambda x: special.jacobi(3, 0.5, 1.5)(x),
    "sh_jacobi": lambda x: special.sh_jacobi(3, 2.5, 1.5)(x),
}  # fmt: skip
LINALG = {
    "fiedler_companion": lambda x: linalg.fiedler_companion(x[0]),
}
SIGNAL = {
    "CZT": lambda x: np.abs(signal.CZT(4)(x)),
    "ShortTimeFFT": lambda x: np.abs(signal.ShortTimeFFT(np.hanning(5)[1:], 2, 1.0).stft(np.ravel(x))),
    "TransferFunction": lambda x: signal.TransferFunction(*filtered(x)).to_ss().A,
    "ZerosPolesGain": lambda x: signal.ZerosPolesGain([x[0, 0]], [-x[0, 1], -x[0, 2]], x[0, 3]).to_tf().num,
    "ZoomFFT": lambda x: np.abs(signal.ZoomFFT(4, [0.1, 0.4])(x)),
    "abcd_normalize": lambda x: signal.abcd_normalize(*system(x))[0],
    "bilinear": lambda x: signal.bilinear(x[0, :2], x[1, :3])[0],
    "bilinear_zpk": lambda x: signal.bilinear_zpk([x[0, 0]], [-x[0, 1]], x[0, 2], 2.0)[1],
    "chirp": lambda x: signal.chirp(x[1], 1 + x[0, 0], 1.0, 3 + x[0, 1]),
    "chirp logarithmic": lambda x: signal.chirp(x[1], 1 + x[0, 0], 1.0, 3 + x[0, 1], method="logarithmic"),
    "cspline1d": lambda x: signal.cspline1d(x[1]),
    "cspline1d_eval": lambda x: signal.cspline1d_eval(signal.cspline1d(x[1]), np.array([0.3, 2.2])),
    "czt_points": lambda x: np.abs(signal.czt_points(3, w=x[0, 0], a=x[0, 1])),
    "dbode": lambda x: signal.dbode((*filtered(x), 0.1), w=[0.1, 0.5])[1],
    "dfreqresp": lambda x: np.abs(signal.dfreqresp((*filtered(x), 0.1), w=[0.1, 0.5])[1]),
    "dimpulse": lambda x: signal.dimpulse((*filtered(x), 0.1), n=4)[1][0],
    "dlti": lambda x: signal.dlti(*filtered(x)).step(n=4)[1][0],
    "dstep": lambda x: signal.dstep((*filtered(x), 0.1), n=4)[1][0],
    "freqs_zpk": lambda x: np.abs(signal.freqs_zpk([x[0, 0]], [-x[0, 1]], x[0, 2], worN=[1.0, 2.0])[1]),
    "gammatone": lambda x: signal.gammatone(440 * x[0, 0], "iir", fs=2000)[0],
    "iircomb": lambda x: signal.iircomb(0.2, 30 * x[0, 0])[0],
    "iirdesign": lambda x: signal.iirdesign(0.2, 0.5, x[0, 0], 40)[0],
    "iirfilter": lambda x: signal.iirfilter(2, x[0, 0], btype="low")[0],
    "invresz": lambda x: signal.invresz(x[0, :2], x[0, 2:], [x[1, 0]])[0],
    "istft": lambda x: signal.istft(signal.stft(np.tile(x[1], 4), nperseg=8)[2], nperseg=8)[1],
    "kaiser_atten": lambda x: signal.kaiser_atten(9, x[0, 0]),
    "kaiser_beta": lambda x: np.stack([signal.kaiser_beta(60 + x[0, 0]), signal.kaiser_beta(30 + x[0, 1])]),
    "lfiltic": lambda x: signal.lfiltic(*filtered(x), x[1, :2]),
    "lp2bp": lambda x: signal.lp2bp(*filtered(x), x[1, 0], x[1, 1])[0],
    "lp2bp_zpk": lambda x: parts(signal.lp2bp_zpk([x[0, 0]], [-x[0, 1], -x[0, 2]], x[0, 3], x[1, 0], 0.1)[1]),
    "lp2bs": lambda x: signal.lp2bs(*filtered(x), x[1, 0], x[1, 1])[0],
    "lp2bs_zpk": lambda x: parts(signal.lp2bs_zpk([x[0, 0]], [-x[0, 1], -x[0, 2]], x[0, 3], x[1, 0], 0.1)[1]),
    "lp2hp_zpk": lambda x: signal.lp2hp_zpk([x[0, 0]], [-x[0, 1], -x[0, 2]], x[0, 3], x[1, 0])[1],
    "lp2lp_zpk": lambda x: signal.lp2lp_zpk([x[0, 0]], [-x[0, 1], -x[0, 2]], x[0, 3], x[1, 0])[1],
    "lti": lambda x: signal.lti(*filtered(x)).step(T=TIMES)[1],
    "minimum_phase": lambda x: signal.minimum_phase(np.stack([0.1, x[0, 0], 2.0, x[0, 0], 0.1]), half=False),
    "place_poles": lambda x: signal.place_poles(matrix(x), np.eye(2), np.array([-1.0, -2.0])).gain_matrix,
    "qspline1d": lambda x: signal.qspline1d(x[1]),
    "qspline1d_eval": lambda x: signal.qspline1d_eval(signal.qspline1d(x[1]), np.array([0.3, 2.2])),
    "savgol_coeffs": lambda x: signal.savgol_coeffs(5, 2, deriv=1, delta=x[0, 0]) * np.arange(5),
    "residue": lambda x: parts(signal.residue(x[0, :2], np.stack([1.0, 3 + x[0, 2], 1 + x[0, 3]]))[0]),
    "residuez": lambda x: parts(signal.residuez(x[0, :2], np.stack([1.0, 3 + x[0, 2], 1 + x[0, 3]]))[0]),
    "sawtooth": lambda x: signal.sawtooth(3 * x[1:], x[0, 0]),
    "sos2zpk": lambda x: parts(signal.sos2zpk(np.concatenate(
        [x[0, :3], np.stack([1.0, x[1, 0], x[1, 1] / 2])]).reshape(1, 6))[1]),
    "square": lambda x: signal.square(9 * x) * x,
    "ss2tf": lambda x: signal.ss2tf(*system(x))[0],
    "ss2zpk": lambda x: parts(signal.ss2zpk(*system(x))[1]),
    "tf2sos": lambda x: signal.tf2sos(*filtered(x)),
    "tf2ss": lambda x: signal.tf2ss(*filtered(x))[0],
    "wiener": lambda x: signal.wiener(np.ravel(x), 3),
    "zpk2sos": lambda x: signal.zpk2sos([x[0, 0]], [x[0, 1]], x[0, 2]),
}  # fmt: skip
if hasattr(signal, "whittaker_henderson"):
    SIGNAL["whittaker_henderson"] = lambda x: signal.whittaker_henderson(
        np.ravel(x), lamb=1 + x[0, 0], weights=np.ravel(x)
    ).x
NDIMAGE = {
    "extrema": lambda x: np.stack(ndimage.extrema(x[0], *LABELS)[:2]),
    "labeled_comprehension": lambda x: ndimage.labeled_comprehension(x[0], *LABELS, np.mean, float, 0),
    "maximum": lambda x: ndimage.maximum(x[0], *LABELS),
    "median": lambda x: ndimage.median(x[0], *LABELS),
    "minimum": lambda x: ndimage.minimum(x[0], *LABELS),
    "vectorized_filter": lambda x: ndimage.vectorized_filter(x, np.mean, size=3),
}
STATS = {
    "Binomial": lambda x: stats.Binomial(n=5, p=x[0, 0]).logpmf(2),
    "Covariance": lambda x: stats.multivariate_normal(
        x[0, :2], stats.Covariance.from_diagonal(x[1, :2])).logpdf(x[2, :2]),
    "Logistic": lambda x: stats.Logistic().logpdf(x),
    "Uniform": lambda x: stats.Uniform(a=-x[0, 0], b=1 + x[0, 1]).logpdf(x[1]),
    "abs": lambda x: stats.abs(stats.Normal(mu=x[0, 0], sigma=1.0)).logpdf(x[1]),
    "alexandergovern": lambda x: stats.alexandergovern(x[0], x[1]).statistic,
    "anderson": lambda x: stats.anderson(x[0]).statistic,
    "bayes_mvs": lambda x: stats.bayes_mvs(x[0])[0][0],
    "binned_statistic": lambda x: stats.binned_statistic(np.arange(4.0), x[0], "mean", bins=2)[0],
    "binned_statistic_2d": lambda x: stats.binned_statistic_2d(
        [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], x[0], "mean", bins=2)[0],
    "boxcox_normplot": lambda x: stats.boxcox_normplot(x[0], 0, 1, N=3)[1],
    "chi2_contingency": lambda x: stats.chi2_contingency(9 * x[:2], correction=False).statistic,
    "dirichlet_multinomial": lambda x: stats.dirichlet_multinomial.logpmf([1, 2, 3], x[0, :3], 6),
    "ecdf": lambda x: stats.ecdf(x[0]).cdf.quantiles,
    "exp": lambda x: stats.exp(stats.Normal(mu=x[0, 0], sigma=1.0)).logpdf(x[1]),
    "false_discovery_control": lambda x: stats.false_discovery_control(x[0]),
    "make_distribution": lambda x: stats.make_distribution(stats.gamma)(a=x[0, 0]).logpdf(x[1]),
    "mode": lambda x: stats.mode(x[0]).mode,
    "mvsdist": lambda x: stats.mvsdist(x[0])[0].mean(),
    "obrientransform": lambda x: stats.obrientransform(x[0], x[1])[0],
    "order_statistic": lambda x: stats.order_statistic(stats.Normal(), r=2, n=5).logpdf(x),
    "pearson3": lambda x: stats.pearson3.logpdf(x, 0.6 + x[0, 0]),
    "pointbiserialr": lambda x: stats.pointbiserialr([0, 1, 0, 1], x[0]).statistic,
}
INTERPOLATE = {
    "AAA": lambda x: interpolate.AAA(np.linspace(0, 1, 20), np.exp(np.linspace(0, 1, 20)))(x),
    "FloaterHormannInterpolator": lambda x: interpolate.FloaterHormannInterpolator(np.arange(4.0), x[0])(2 * x[1]),
    "KroghInterpolator": lambda x: interpolate.KroghInterpolator(np.arange(4.0), x[0])(2 * x[1]),
    "approximate_taylor_polynomial": lambda x: interpolate.approximate_taylor_polynomial(
        lambda z: np.sin(z * x[0, 0]), 0.0, 3, 1.0).coef,
    "krogh_interpolate": lambda x: interpolate.krogh_interpolate(np.arange(4.0), x[0], 2 * x[1]),
    "pade": lambda x: interpolate.pade(x[0] + np.array([1.0, 0.0, 2.0, 0.0]), 2)[0](x[1]),
    "splantider": lambda x: interpolate.splev(2 * x[1], interpolate.splantider(
        interpolate.splrep(np.arange(4.0), x[0]))),
    "splder": lambda x: interpolate.splev(2 * x[1], interpolate.splder(
        interpolate.splrep(np.arange(4.0), x[0]))),
}  # fmt: skip
INTEGRATE = {
    "qmc_quad": lambda x: integrate.qmc_quad(
        lambda z: np.exp(-x[0, 0] * np.sum(z, axis=0)), [0, 0], [1, 1], n_points=8,
        qrng=stats.qmc.Halton(2, seed=1), n_estimates=2).integral,
}  # fmt: skip
SPACES = {
    "special": SPECIAL, "linalg": LINALG, "signal": SIGNAL, "ndimage": NDIMAGE, "stats": STATS,
    "interpolate": INTERPOLATE, "integrate": INTEGRATE,
}  # fmt: skip
BY_SOURCE = {f"{space}.{name}": case for space, cases in SPACES.items() for name, case in cases.items()}
