"""Functions of SciPy as users call them: the table that the coverage tests run through.

Each entry maps a matrix of shape (3, 4) with elements in (0.2, 0.8) to a real array.
"""

import functools
import inspect

import numpy as np
from numpy_cases import X, other, rotating, square, symmetric
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats
from scipy.sparse.linalg import expm_multiply
from scipy.spatial import distance
from scipy_source_cases import BY_SOURCE

__all__ = ["CASES", "LONG", "X"]


def batch(x):
    return np.stack([square(x), symmetric(x)])


LINALG = {
    "inv": lambda x: linalg.inv(square(x)),
    "inv batch": lambda x: linalg.inv(batch(x)),
    "inv pos": lambda x: linalg.inv(symmetric(x), assume_a="pos"),
    "solve": lambda x: linalg.solve(square(x), x),
    "eig_banded": lambda x: linalg.eig_banded(x, lower=True)[1],
    "eig_banded values": lambda x: linalg.eig_banded(x, eigvals_only=True),
    "qr_multiply": lambda x: linalg.qr_multiply(x.T, np.eye(3) + x[:, :3], mode="left")[0],
    "rq": lambda x: linalg.rq(x.T)[0],
    "rq economic": lambda x: linalg.rq(x, mode="economic")[1],
    "solve vector": lambda x: linalg.solve(square(x), x[:, 0]),
    "solve batch": lambda x: linalg.solve(batch(x), x[:, :2]),
    "solve sym": lambda x: linalg.solve(square(x), x, assume_a="sym"),
    "solve sym lower": lambda x: linalg.solve(square(x), x, assume_a="sym", lower=True),
    "solve pos": lambda x: linalg.solve(symmetric(x), x, assume_a="pos"),
    "solve triangular kind": lambda x: linalg.solve(square(x), x, assume_a="upper triangular"),
    "solve tridiagonal": lambda x: linalg.solve(square(x), x, assume_a="tridiagonal"),
    "solve diagonal": lambda x: linalg.solve(square(x), x, assume_a="diagonal"),
    "solve transposed": lambda x: linalg.solve(square(x), x, transposed=True),
    "det": lambda x: linalg.det(square(x)),
    "det batch": lambda x: linalg.det(batch(x)),
    "cholesky": lambda x: linalg.cholesky(symmetric(x)),
    "cholesky lower": lambda x: linalg.cholesky(symmetric(x), lower=True),
    "cholesky upper read": lambda x: linalg.cholesky(symmetric(x) + np.tril(x[:, :3], -1)),
    "cho_factor": lambda x: linalg.cho_factor(symmetric(x))[0],
    "cho_solve": lambda x: linalg.cho_solve(linalg.cho_factor(symmetric(x)), x),
    "cho_solve lower": lambda x: linalg.cho_solve(linalg.cho_factor(symmetric(x), lower=True), x[:, 0]),
    "solve_triangular": lambda x: linalg.solve_triangular(square(x), x),
    "solve_triangular lower": lambda x: linalg.solve_triangular(square(x), x[:, 0], lower=True, trans="T"),
    "solve_triangular unit": lambda x: linalg.solve_triangular(square(x), x, unit_diagonal=True, trans=1),
    "lu l": lambda x: linalg.lu(rotating(x))[1],
    "lu u": lambda x: linalg.lu(rotating(x))[2],
    "lu permuted": lambda x: linalg.lu(rotating(x), permute_l=True)[0],
    "lu p": lambda x: np.linalg.multi_dot(linalg.lu(rotating(x))) * x[0, 0],
    "lu_factor": lambda x: linalg.lu_factor(rotating(x))[0],
    "lu_solve": lambda x: linalg.lu_solve(linalg.lu_factor(rotating(x)), x),
    "lu_solve trans": lambda x: linalg.lu_solve(linalg.lu_factor(rotating(x)), x[:, 0], trans=1),
    "qr q": lambda x: linalg.qr(x.T, mode="economic")[0],
    "qr r": lambda x: linalg.qr(square(x))[1],
    "qr wide": lambda x: linalg.qr(x)[1],
    "qr mode r": lambda x: linalg.qr(x.T, mode="r")[0],
    "qr pivoting": lambda x: linalg.qr(x.T, mode="economic", pivoting=True)[1],
    "svd s": lambda x: linalg.svd(x, compute_uv=False),
    "svd u": lambda x: linalg.svd(x, full_matrices=False)[0],
    "svd v": lambda x: linalg.svd(x, full_matrices=False)[2],
    "svd square": lambda x: linalg.svd(square(x))[2],
    "svdvals": lambda x: linalg.svdvals(x),
    "eigh": lambda x: linalg.eigh(symmetric(x))[0],
    "eigh v": lambda x: linalg.eigh(symmetric(x))[1],
    "eigh upper": lambda x: linalg.eigh(square(x), lower=False)[1] ** 2,
    "eigh generalised": lambda x: linalg.eigh(square(x), symmetric(x))[0],
    "eigh generalised v": lambda x: linalg.eigh(square(x), symmetric(x))[1] ** 2,
    "eigh subset": lambda x: linalg.eigh(symmetric(x), subset_by_index=[1, 2])[1],
    "eigh only": lambda x: linalg.eigh(symmetric(x), eigvals_only=True),
    "eigvalsh": lambda x: linalg.eigvalsh(symmetric(x)),
    "eigvalsh generalised": lambda x: linalg.eigvalsh(square(x), symmetric(x)),
    "eig": lambda x: np.real(linalg.eig(square(x))[0]),
    "eig v": lambda x: np.real(linalg.eig(rotating(x))[1]) - 2 * np.imag(linalg.eig(rotating(x))[1]),
    "eigvals": lambda x: np.imag(linalg.eigvals(rotating(x))),
    "eig generalised": lambda x: np.real(linalg.eigvals(rotating(x), symmetric(x))),
    "pinv": lambda x: linalg.pinv(x),
    "pinv rtol": lambda x: linalg.pinv(x.T, rtol=1e-3),
    "pinvh": lambda x: linalg.pinvh(symmetric(x)),
    "lstsq": lambda x: linalg.lstsq(x.T, x[0] ** 2)[0],
    "lstsq residual": lambda x: linalg.lstsq(x.T, np.array([1.0, 2, 0, 4]))[1],
    "lstsq under": lambda x: linalg.lstsq(x, x[:, :2])[0],
    "norm": lambda x: linalg.norm(x),
    "norm axis": lambda x: linalg.norm(x, 1, axis=1, keepdims=True),
    "norm nuc": lambda x: linalg.norm(x, "nuc"),
    "expm": lambda x: linalg.expm(square(x)),
    "expm batch": lambda x: linalg.expm(batch(x)),
    "expm_frechet": lambda x: linalg.expm_frechet(square(x), other(x))[1],
    "logm": lambda x: linalg.logm(symmetric(x)),
    "sqrtm": lambda x: linalg.sqrtm(symmetric(x)),
    "cosm": lambda x: linalg.cosm(square(x)),
    "sinm": lambda x: linalg.sinm(square(x)),
    "tanm": lambda x: linalg.tanm(other(x)),
    "coshm": lambda x: linalg.coshm(other(x)),
    "sinhm": lambda x: linalg.sinhm(other(x)),
    "tanhm": lambda x: linalg.tanhm(square(x)),
    "fractional_matrix_power": lambda x: linalg.fractional_matrix_power(symmetric(x), 0.4),
    "block_diag": lambda x: linalg.block_diag(x, x[0], x[:, :2] ** 2),
    "toeplitz": lambda x: linalg.toeplitz(x[0]),
    "toeplitz row": lambda x: linalg.toeplitz(x[0], x[1, :3]),
    "circulant": lambda x: linalg.circulant(x[0]),
    "hankel": lambda x: linalg.hankel(x[0], x[1]),
    "hankel column": lambda x: linalg.hankel(x[0]),
    "companion": lambda x: linalg.companion(x[0]),
    "leslie": lambda x: linalg.leslie(x[0], x[1, :3]),
    "convolution_matrix": lambda x: linalg.convolution_matrix(x[0], 3),
    "signm": lambda x: linalg.signm(square(x)),
    "cholesky_banded": lambda x: linalg.cholesky_banded(x[:2] + np.array([[0], [3]])),
    "cholesky_banded lower": lambda x: linalg.cholesky_banded(x + np.array([[5], [0], [0]]), lower=True),
    "cho_solve_banded": lambda x: linalg.cho_solve_banded((x[:2] + np.array([[0], [1]]), False), x.T),
    "cho_solve_banded lower": lambda x: linalg.cho_solve_banded((x[:2] + np.array([[1], [0]]), True), x[2]),
    "solve_continuous_are": lambda x: linalg.solve_continuous_are(
        -square(x), x[:, 2:], symmetric(x), np.diag(x[0, :2])),
    "solve_discrete_are": lambda x: linalg.solve_discrete_are(other(x), x[:, 2:], symmetric(x), np.diag(x[0, :2])),
    "fiedler": lambda x: linalg.fiedler(x[0]),
    "diagsvd": lambda x: linalg.diagsvd(x[0, :2], 2, 3),
    "khatri_rao": lambda x: linalg.khatri_rao(x, x[:2] ** 2),
    "solve_sylvester": lambda x: linalg.solve_sylvester(square(x), symmetric(x), other(x)),
    "solve_continuous_lyapunov": lambda x: linalg.solve_continuous_lyapunov(square(x), other(x)),
    "solve_lyapunov": lambda x: linalg.solve_lyapunov(square(x), other(x)),
    "solve_discrete_lyapunov": lambda x: linalg.solve_discrete_lyapunov(0.3 * other(x), symmetric(x)),
    "solve_banded": lambda x: linalg.solve_banded((1, 1), x + np.array([[0], [3], [0]]), x.T),
    "solve_banded wide": lambda x: linalg.solve_banded((0, 2), x + np.array([[0], [0], [3]]), x[0]),
    "solveh_banded": lambda x: linalg.solveh_banded(x[:2] + np.array([[0], [3]]), x.T),
    "solveh_banded lower": lambda x: linalg.solveh_banded(x + np.array([[5], [0], [0]]), x[1], lower=True),
    "solve_toeplitz": lambda x: linalg.solve_toeplitz((x[0] + np.array([2, 0, 0, 0]), x[1]), x[2]),
    "solve_circulant": lambda x: linalg.solve_circulant(x[0] + np.array([2, 0, 0, 0]), x[1]),
    "matmul_toeplitz": lambda x: linalg.matmul_toeplitz((x[0], x[1]), x[2]),
    "polar": lambda x: linalg.polar(square(x))[0],
    "polar p": lambda x: linalg.polar(square(x), side="left")[1],
    "orthogonal_procrustes": lambda x: linalg.orthogonal_procrustes(square(x), symmetric(x))[1],
    "eigvals_banded": lambda x: linalg.eigvals_banded(x[:2] + np.array([[0], [3]])),
    "eigh_tridiagonal": lambda x: linalg.eigh_tridiagonal(x[0], x[1, :3])[0],
    "bandwidth": lambda x: linalg.bandwidth(np.tril(x[:3, :3]))[0] * x,
}  # fmt: skip

SOS = signal.butter(3, 0.3, output="sos")


def stable(x):
    """The denominator of a stable filter."""
    return np.concatenate([[1.0], 0.3 * x[0, :2]])


def cosine(type, norm=None, name="dct"):
    return lambda x: getattr(fft, name)(x, type, norm=norm)


FFT = {
    "fft": lambda x: np.real(fft.fft(x)) + 2 * np.imag(fft.fft(x, 5, axis=0)[:, :4].sum(axis=0)),
    "ifft": lambda x: np.imag(fft.ifft(x, norm="ortho")),
    "rfft": lambda x: np.abs(fft.rfft(x)) ** 2,
    "irfft": lambda x: fft.irfft(x + 1j * x**2, 5),
    "hfft": lambda x: fft.hfft(x + 1j * x**2),
    "ihfft": lambda x: np.abs(fft.ihfft(x)),
    "fft2": lambda x: np.imag(fft.fft2(x)),
    "ifft2": lambda x: np.imag(fft.ifft2(x, axes=(1, 0))),
    "rfft2": lambda x: np.imag(fft.rfft2(x)),
    "irfft2": lambda x: fft.irfft2(x * (1 + 2j)),
    "fftn": lambda x: np.real(fft.fftn(x, s=(2, 5))),
    "ifftn": lambda x: np.real(fft.ifftn(x)),
    "rfftn": lambda x: np.imag(fft.rfftn(x)),
    "irfftn": lambda x: fft.irfftn(x * (1 + 2j)),
    "fftshift": lambda x: fft.fftshift(x),
    "ifftshift": lambda x: fft.ifftshift(x, axes=0),
    **{f"{name} {type} {norm}": cosine(type, norm, name) for name, norms in {
        "dct": ("backward", "forward"), "idct": ("backward",), "dst": ("backward",), "idst": ("forward",)}.items()
       for type in (1, 2, 3, 4) for norm in norms},
    **{f"{name} 2 ortho": cosine(2, "ortho", name) for name in ("dct", "idct", "dst", "idst")},
    "dct n": lambda x: fft.dct(x, 2, 6, 0),
    "dctn": lambda x: fft.dctn(x),
    "idctn": lambda x: fft.idctn(x, 3, axes=1),
    "dstn": lambda x: fft.dstn(x, s=(4, 2)),
    "idstn": lambda x: fft.idstn(x, norm="ortho"),
    "next_fast_len": lambda x: x * fft.next_fast_len(7),
}  # fmt: skip
SIGNAL = {
    "convolve": lambda x: signal.convolve(x, x[:2, :3]),
    "convolve same": lambda x: signal.convolve(x, x[:2, :2] ** 2, "same"),
    "convolve valid": lambda x: signal.convolve(x[:2, :3], x, "valid"),
    "convolve fft": lambda x: signal.convolve(x[0], x[1, :3], method="fft"),
    "fftconvolve": lambda x: signal.fftconvolve(x, x**2),
    "fftconvolve axes": lambda x: signal.fftconvolve(x, x[:1, :3], "same", axes=1),
    "oaconvolve": lambda x: signal.oaconvolve(x, x[:, :2], "valid", axes=-1),
    "correlate": lambda x: signal.correlate(x, x[:2, :3]),
    "correlate same": lambda x: signal.correlate(x, x[:2, :2], "same"),
    "correlate valid": lambda x: signal.correlate(x[:2, :2], x, "valid"),
    "correlate complex": lambda x: np.imag(signal.correlate(x[0] * (1 + 2j), x[1] * 1j + x[2])),
    "convolve2d": lambda x: signal.convolve2d(x, x[:2, :3]),
    "convolve2d same": lambda x: signal.convolve2d(x, x[:2, :2], "same", "symm"),
    "convolve2d wrap": lambda x: signal.convolve2d(x, x[:2, :3], boundary="wrap"),
    "convolve2d fill": lambda x: signal.convolve2d(x, x[:2, :3], "same", fillvalue=0.3),
    "convolve2d valid": lambda x: signal.convolve2d(x[:2, :2], x, "valid"),
    "correlate2d": lambda x: signal.correlate2d(x, x[:2, :3]),
    "correlate2d same": lambda x: signal.correlate2d(x, x[:2, :2], "same"),
    "correlate2d wrap": lambda x: signal.correlate2d(x, x[:2, :3], "same", "wrap"),
    "correlate2d exchanged": lambda x: np.imag(signal.correlate2d(x[:2, :2] * (1 + 2j), x * 1j + x[0], "valid")),
    "lfilter": lambda x: signal.lfilter([0.5, 0.2], [2.0, -0.3], x),
    "lfilter all": lambda x: signal.lfilter(x[0, :3], stable(x), x, axis=0),
    "lfilter zi": lambda x: np.concatenate(signal.lfilter(x[0, :3], stable(x) * 2, x[1], zi=x[2, :2])),
    "lfilter_zi": lambda x: signal.lfilter_zi(x[0, :3], stable(x)),
    "filtfilt": lambda x: signal.filtfilt(x[0, :2], stable(x), np.tile(x, 3)),
    "filtfilt even": lambda x: signal.filtfilt([0.2, 0.3], [1, -0.5], x, axis=0, padtype="even", padlen=2),
    "filtfilt constant": lambda x: signal.filtfilt([0.2, 0.3], [1, -0.5], x, padtype="constant", padlen=3),
    "filtfilt none": lambda x: signal.filtfilt([0.2, 0.3], [1, -0.5], x, padtype=None),
    "sosfilt": lambda x: signal.sosfilt(SOS, x),
    "sosfilt zi": lambda x: signal.sosfilt(SOS, x[0], zi=signal.sosfilt_zi(SOS) * x[0, 0])[0],
    "sosfilt traced": lambda x: signal.sosfilt(np.concatenate([x[0, :3], stable(x)])[None], x),
    "sosfilt_zi": lambda x: signal.sosfilt_zi(np.concatenate([x[0, :3], stable(x)])[None]),
    "sosfiltfilt": lambda x: signal.sosfiltfilt(SOS, np.tile(x, 4)),
    "resample": lambda x: signal.resample(x, 6, axis=1),
    "resample down": lambda x: signal.resample(x, 2, axis=1),
    "resample_poly": lambda x: signal.resample_poly(x, 3, 2),
    "decimate": lambda x: signal.decimate(np.tile(x, 8), 2),
    "upfirdn": lambda x: signal.upfirdn([0.5, 1.0, 0.5], x, up=2),
    "savgol_filter": lambda x: signal.savgol_filter(np.tile(x, 2), 5, 2, mode="interp"),
    "czt": lambda x: np.imag(signal.czt(x)),
    "detrend": lambda x: signal.detrend(x),
    "detrend constant": lambda x: signal.detrend(x, axis=0, type="constant"),
    "hilbert": lambda x: np.imag(signal.hilbert(x)),
    "hilbert odd": lambda x: np.imag(signal.hilbert(x, axis=0)),
    "hilbert n": lambda x: np.abs(signal.hilbert(x, 6)),
    "periodogram": lambda x: signal.periodogram(x)[1],
    "welch": lambda x: signal.welch(np.tile(x, 3), nperseg=4)[1],
    "csd": lambda x: np.imag(signal.csd(x[0], x[1] ** 2, nperseg=4)[1]),
    "coherence": lambda x: signal.coherence(np.tile(x[0], 2), np.tile(x[1], 2) ** 2, nperseg=4)[1],
    "spectrogram": lambda x: signal.spectrogram(np.tile(x, 2), nperseg=4)[2],
    "stft": lambda x: np.imag(signal.stft(x, nperseg=3)[2]),
    "kaiser": lambda x: signal.windows.kaiser(5, x[0, 0]),
    "gaussian window": lambda x: signal.windows.gaussian(5, x[0, 0]),
    "gauss_spline": lambda x: signal.gauss_spline(x, 2),
    "tf2zpk": lambda x: np.real(signal.tf2zpk(x[0], x[1])[1]),
    "freqz": lambda x: np.abs(signal.freqz(x[0], x[1], worN=5)[1]),
    "medfilt": lambda x: signal.medfilt(x, 3),
    "medfilt2d": lambda x: signal.medfilt2d(x, [1, 3]),
    "order_filter": lambda x: signal.order_filter(x, np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]), 1),
    "gausspulse": lambda x: signal.gausspulse(x, fc=3),
    "sweep_poly": lambda x: signal.sweep_poly(x, np.array([1.0, 2])),
    "zpk2tf": lambda x: signal.zpk2tf(x[0, :2], x[0, 2:], x[1, 0])[0],
    "sos2tf": lambda x: signal.sos2tf(np.concatenate([x[0, :3], [1.0], x[1, :2]])[None])[0],
    "lp2lp": lambda x: signal.lp2lp(x[0, :2], x[1], 2.0)[0],
    "lp2hp": lambda x: signal.lp2hp(x[0, :2], x[1], 2.0)[0],
    "freqs": lambda x: np.abs(signal.freqs(x[0], x[1], [0.1, 0.5])[1]),
    "freqz_sos": lambda x: np.abs(signal.freqz_sos(np.concatenate([x[0, :3], [1.0], x[1, :2]])[None], 4)[1]),
    "sosfreqz": lambda x: np.abs(signal.sosfreqz(np.concatenate([x[0, :3], [1.0], x[1, :2]])[None], 4)[1]),
    "freqz_zpk": lambda x: np.abs(signal.freqz_zpk(x[0, :2], x[0, 2:], x[1, 0], 4)[1]),
    "group_delay": lambda x: signal.group_delay((x[0], x[1, :3]), 4)[1],
    "hilbert2": lambda x: np.imag(signal.hilbert2(x)),
    "envelope": lambda x: signal.envelope(x),
    "lombscargle": lambda x: signal.lombscargle(np.arange(4.0), x[0], [0.5, 1.0]),
    "vectorstrength": lambda x: signal.vectorstrength(x[0], 0.7)[0],
    "normalize": lambda x: signal.normalize(x[0], x[1])[0],
    "cont2discrete": lambda x: signal.cont2discrete(
        (x[:2, :2], np.ones((2, 1)), np.ones((1, 2)), np.zeros((1, 1))), 0.1)[0],
    "invres": lambda x: np.real(signal.invres(x[0, :2], x[0, 2:], [])[0]),
    "deconvolve": lambda x: signal.deconvolve(x[0], x[1, :2])[0],
}  # fmt: skip

K = np.array([0, 0.3, 0.5, 1])


def through(x, cls=interpolate.CubicSpline, **options):
    """A spline through traced values at traced points."""
    return cls(K, x[0], **options)(x)


PLANE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.1]])
MESH = np.array([0.0, 0.3, 0.5, 0.9]), np.array([0.0, 0.4, 1.0])
SIDE = np.linspace(0, 1, 6)
SURFACE = interpolate.SmoothBivariateSpline(np.repeat(SIDE, 6), np.tile(SIDE, 6), np.sin(np.arange(36.0)) ** 2, s=3)


def written_by(call, out):
    """The array that a call writes to."""
    call(out)
    return out


def surface(x):
    """A surface through the elements of a matrix."""
    return interpolate.RectBivariateSpline(*MESH, x.T, kx=3, ky=2)


INTERPOLATE = {
    "RectBivariateSpline": lambda x: surface(x)(np.cumsum(x[0]) / 3, MESH[1] / 2),
    "RectBivariateSpline ev": lambda x: surface(x).ev(x[0], x[1] ** 2, dx=1),
    "RectBivariateSpline grid": lambda x: interpolate.RectBivariateSpline(
        MESH[0] + np.cumsum(x[0]), MESH[1], np.cos(np.arange(12.0)).reshape(4, 3), kx=2, ky=1).ev(x[1] + 0.5, x[2]),
    "RectBivariateSpline integral": lambda x: surface(x).integral(0.1, x[0, 0], x[0, 1], 2.0),
    "RectBivariateSpline partial": lambda x: surface(x).partial_derivative(1, 1)(x[0, :1], MESH[1]),
    "BivariateSpline": lambda x: SURFACE(x, x**2, grid=False),
    "BivariateSpline outside": lambda x: SURFACE.ev(2 * x, x - 0.5, dy=1),
    "bisplev": lambda x: interpolate.bisplev(
        x[0, 0], MESH[1], [*SURFACE.tck[:2], SURFACE.tck[2] * x[1, 0], *SURFACE.degrees]),
    "LinearNDInterpolator": lambda x: interpolate.LinearNDInterpolator(PLANE, x[0])(x[1:, :2]),
    "CloughTocher2DInterpolator": lambda x: interpolate.CloughTocher2DInterpolator(PLANE, x[0], tol=1e-13)(x[1:, :2]),
    "NearestNDInterpolator": lambda x: interpolate.NearestNDInterpolator(PLANE, x[0])(x[1:, :2] + 0.05),
    "RBFInterpolator": lambda x: interpolate.RBFInterpolator(PLANE, x[0])(x[1:, :2]),
    "CubicSpline": lambda x: interpolate.CubicSpline(K, K**2)(x),
    "CubicSpline derivative": lambda x: interpolate.CubicSpline(K, np.exp(K))(x, 1),
    "CubicSpline y": lambda x: interpolate.CubicSpline(K, x.T)([0.1, 0.4]),
    "CubicSpline axis": lambda x: interpolate.CubicSpline(K, x, axis=1, bc_type="natural")(x[0]),
    "CubicSpline both": through,
    "CubicSpline periodic": lambda x: interpolate.CubicSpline(
        K, np.concatenate([x[0, :3], x[0, :1]]), bc_type="periodic")(3 * x),
    "CubicSpline clamped": lambda x: through(x, bc_type="clamped"),
    "CubicSpline ends": lambda x: through(x, bc_type=((1, 0.3), (2, -1.0))),
    "CubicSpline outside": lambda x: np.nan_to_num(interpolate.CubicSpline(K, K**2, extrapolate=False)(2 * x)),
    "CubicSpline antiderivative": lambda x: interpolate.CubicSpline(K, K**2).antiderivative()(x),
    "PchipInterpolator": lambda x: interpolate.PchipInterpolator(K, np.exp(K))(x),
    "Akima1DInterpolator": lambda x: interpolate.Akima1DInterpolator(K, np.exp(K))(x),
    "CubicHermiteSpline": lambda x: interpolate.CubicHermiteSpline(K, np.exp(K), K)(x),
    "PPoly": lambda x: interpolate.PPoly(x[:, :2], [0, 0.5, 1])(x),
    "PPoly axis": lambda x: interpolate.PPoly(x[None, :, :2] * np.ones((2, 1, 1)), [0, 0.5, 1], axis=1)(x[0]),
    "BSpline": lambda x: interpolate.BSpline(np.arange(8.0) / 3 - 0.7, K, 3)(x),
    "BSpline c": lambda x: interpolate.BSpline(np.arange(8.0) / 3 - 0.7, x.T, 3)(K),
    "BSpline derivative": lambda x: interpolate.BSpline(np.arange(8.0) / 3 - 0.7, x[0], 3)(x[1:], 2),
    "make_interp_spline": lambda x: interpolate.make_interp_spline(K, x[0])(x[1]),
    "make_interp_spline axis": lambda x: interpolate.make_interp_spline(K, x, k=2, axis=1)(K),
    "splev": lambda x: interpolate.splev(x, interpolate.splrep(K, K**2)),
    "UnivariateSpline": lambda x: interpolate.UnivariateSpline(K, x[0], k=2, s=1e-4)([0.2, 0.7]),
    "InterpolatedUnivariateSpline": lambda x: interpolate.InterpolatedUnivariateSpline(K, x[0])(x[1]),
    "LSQUnivariateSpline": lambda x: interpolate.LSQUnivariateSpline(K, x[0], [0.4], k=1)(0.3),
    "interp1d": lambda x: interpolate.interp1d(K, np.exp(K))(x),
    "interp1d y": lambda x: interpolate.interp1d(K, x)([0.2, 0.7]),
    "interp1d y 1d": lambda x: interpolate.interp1d(K, x[0])(x[1]),
    "interp1d axis": lambda x: interpolate.interp1d(K[:3], x, axis=0)(x[0] / 2),
    "interp1d cubic": lambda x: interpolate.interp1d(K, x[0], kind="cubic")(x[1:]),
    "interp1d fill": lambda x: interpolate.interp1d(K, x[0], bounds_error=False, fill_value=(0.0, 2.0))(2 * x),
    "interp1d extrapolate": lambda x: interpolate.interp1d(K, K**2, fill_value="extrapolate")(2 * x),
    "interp1d nearest": lambda x: interpolate.interp1d(K, K**2, kind="nearest")(x) * x,
    "RegularGridInterpolator": lambda x: interpolate.RegularGridInterpolator((K[:3], K), X)(x[:, :2] / 2),
    "RegularGridInterpolator values": lambda x: interpolate.RegularGridInterpolator((K[:3], K), x)(x[:, 1:3] / 2),
    "RegularGridInterpolator fill": lambda x: interpolate.RegularGridInterpolator(
        (K,), x[0], bounds_error=False, fill_value=0.5)(2 * x[:, :1]),
    "barycentric_interpolate": lambda x: interpolate.barycentric_interpolate(K, x[0], 0.3),
    "pchip_interpolate": lambda x: interpolate.pchip_interpolate(K, K**2, x),
    "lagrange": lambda x: interpolate.lagrange([0.0, 1.0, 2.0, 3.0], x[0]).coef,
    "interpn": lambda x: interpolate.interpn((K,), x[0], x[1:, :1]),
    "griddata": lambda x: interpolate.griddata(K, x[0], np.array([0.2, 0.7])),
    "Rbf": lambda x: interpolate.Rbf(K, x[0])(0.5),
    "BarycentricInterpolator y": lambda x: interpolate.BarycentricInterpolator(K, x[0])(0.2),
}  # fmt: skip


def distribution(name, *shapes):
    """A function of a point, shapes, location and scale, all of them traced; the point is in the support."""

    def case(method):
        def f(x):
            p = [s * (0.5 + x[0, i]) for i, s in enumerate(shapes)]
            at = x[1:] if method in ("ppf", "isf") else x[1:] * 2
            return getattr(getattr(stats, name), method)(at, *p, loc=-0.1 * x[0, 2], scale=2 + x[0, 3])

        return f

    return case


ALL = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
DENSITY = ("logpdf", "pdf")
POINT = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf")
DISTRIBUTIONS = {
    "norm": ((), ALL),
    "expon": ((), ALL),
    "laplace": ((), ALL),
    "logistic": ((), ALL),
    "cauchy": ((), ALL),
    "uniform": ((), ALL),
    "gumbel_r": ((), ALL),
    "weibull_min": ((2.0,), ALL),
    "lognorm": ((0.9,), ALL),
    "halfnorm": ((), POINT),
    "rayleigh": ((), POINT),
    "gamma": ((2.0,), ALL),
    "beta": ((2.0, 3.0), ALL),
    "chi2": ((3.0,), ALL),
    "t": ((3.0,), ALL),
    "invgamma": ((2.0,), ALL),
    "f": ((3.0, 4.0), ALL),
    "exponnorm": ((2.0,), DENSITY),
    "genextreme": ((0.3,), DENSITY),
    "skewnorm": ((1.0,), DENSITY),
    "vonmises": ((1.0,), DENSITY),
    "hypsecant": ((), DENSITY),
    "maxwell": ((), DENSITY),
    "powerlaw": ((1.5,), DENSITY),
    "genpareto": ((0.2,), DENSITY),
    "fisk": ((2.0,), DENSITY),
    "gompertz": ((1.0,), POINT),
}


def moments(name, *shapes):
    def f(x):
        p = [s + x[0, i] for i, s in enumerate(shapes)]
        at = {"loc": x[1, 0], "scale": x[1:] + 0.5}
        d = getattr(stats, name)
        return d.mean(*p, **at) + 2 * d.std(*p, **at) + d.entropy(*p, **at) * d.var(*p, **at)

    return f


COUNTS = np.array([0, 1, 4])


def at(shift, method, name):
    """A function of the point alone, for distributions whose shapes have no known partials."""
    return lambda x: getattr(getattr(stats, name), method)(x, *shift)


def counts(name, method, parameters):
    return lambda x: getattr(getattr(stats, name), method)(COUNTS, *parameters(x))


STATS = {
    f"{name} {method}": distribution(name, *shapes)(method)
    for name, (shapes, methods) in DISTRIBUTIONS.items() for method in methods
} | {
    f"{name} at {method}": at(shapes, method, name)
    for name, shapes in {"gamma": (2.0,), "beta": (2.0, 3.0), "chi2": (3.0,), "t": (3.0,)}.items() for method in ALL
} | {
    f"{name} {method}": counts(name, method, parameters)
    for name, parameters in {
        "poisson": lambda x: (3 * x[:, :3],), "binom": lambda x: (6, x[:, :3]), 
        "nbinom": lambda x: (2.5, x[:, 1:]),
    }.items() for method in (*POINT[2:], "pmf", "logpmf")
} | {
    f"{name} moments": moments(name, *shapes)
    for name, shapes in {
        "norm": (), "expon": (), "gamma": (2.0,), "lognorm": (0.1,),
        "weibull_min": (2.0,), "chi2": (3.0,), "uniform": (), "laplace": (), "invgamma": (5.0,),
    }.items()
} | {
    "binom moments": lambda x: stats.binom.mean(6, x) + stats.binom.std(6, x, loc=x[0, 0]),
    "frozen entropy": lambda x: stats.gamma(2 + x, scale=x[0, 0]).entropy(),
    "bernoulli": lambda x: stats.bernoulli.pmf(COUNTS, x[:, :3]),
    "geom": lambda x: stats.geom.logpmf(COUNTS + 1, x[:, :3]),
    "frozen": lambda x: stats.norm(x[0, 0], x[0, 1]).logpdf(x[1:]),
    "frozen gamma": lambda x: stats.gamma(2 + x[0, 0], scale=x[0, 1]).logpdf(x[1:]),
    "support": lambda x: np.exp(stats.uniform.logpdf(3 * x)) * x,
    "pareto logpdf": lambda x: stats.pareto.logpdf(1 + x, 2 * x[0, 0]),
    "pareto cdf": lambda x: stats.pareto.cdf(1 + x, 2 * x[0, 0], scale=1 + x[0, 1]),
    "nbinom n": lambda x: stats.nbinom.logpmf(COUNTS, 3 * x[:, :3], 0.4),
    "multivariate_normal": lambda x: stats.multivariate_normal.logpdf(x[:, :3], x[0, 1:], symmetric(x)),
    "multivariate_normal identity": lambda x: stats.multivariate_normal.logpdf(
        x[:, :3], cov=np.eye(3) + symmetric(x - X)  - np.diag([1.0, 2.0, 3.0])),
    "multivariate_normal frozen": lambda x: stats.multivariate_normal(x[0, 1:], symmetric(x)).pdf(x[:, :3]),
    "multivariate_t": lambda x: stats.multivariate_t.logpdf(x[:, :3], x[0, 1:], symmetric(x), df=4),
    "dirichlet": lambda x: stats.dirichlet.logpdf(np.array([0.1, 0.2, 0.3, 0.4]), x[0]),
    "dirichlet point": lambda x: stats.dirichlet.logpdf(x[0] / np.sum(x[0]), x[1]),
    "tmean": lambda x: stats.tmean(x, (0.3, 0.75)),
    "tvar": lambda x: stats.tvar(x),
    "tstd": lambda x: stats.tstd(x),
    "tsem": lambda x: stats.tsem(x),
    "zmap": lambda x: stats.zmap(x, x**2),
    "gzscore": lambda x: stats.gzscore(x),
    "gstd": lambda x: stats.gstd(x),
    "pmean": lambda x: stats.pmean(x, 2.5),
    "circmean": lambda x: stats.circmean(x, axis=0),
    "circvar": lambda x: stats.circvar(x, axis=1),
    "circstd": lambda x: stats.circstd(x),
    "kstat": lambda x: stats.kstat(x, 3),
    "kstatvar": lambda x: stats.kstatvar(x, 2),
    "median_abs_deviation": lambda x: stats.median_abs_deviation(x, axis=1),
    "yeojohnson": lambda x: stats.yeojohnson(x, 0.7),
    "yeojohnson_llf": lambda x: stats.yeojohnson_llf(0.7, x),
    "describe": lambda x: stats.describe(x).variance,
    "ttest_1samp": lambda x: stats.ttest_1samp(x, 0.3)[0],
    "ttest_rel": lambda x: stats.ttest_rel(x[0], x[1])[0],
    "ttest_ind_from_stats": lambda x: stats.ttest_ind_from_stats(x[0], x[1], 5, x[2], x[0, 0], 6)[0],
    "trimboth": lambda x: stats.trimboth(x[0], 0.2),
    "trim1": lambda x: stats.trim1(x[0], 0.2),
    "sigmaclip": lambda x: stats.sigmaclip(x)[0],
    "chisquare": lambda x: stats.chisquare(x)[0],
    "power_divergence": lambda x: stats.power_divergence(x, lambda_=0.5)[0],
    "pearsonr": lambda x: np.stack(stats.pearsonr(x[0], x[1])),
    "pearsonr axis": lambda x: stats.pearsonr(x, x[::-1] ** 2, axis=1).pvalue,
    "f_oneway": lambda x: np.stack(stats.f_oneway(x, x[:2] ** 2, axis=0)),
    "boxcox_llf": lambda x: stats.boxcox_llf(x[0, 0], x),
    "boxcox_llf at 0": lambda x: stats.boxcox_llf(0.0, x, axis=1),
    "gaussian_kde": lambda x: stats.gaussian_kde(x[0])(x[1]),
    "gaussian_kde weights": lambda x: stats.gaussian_kde(x[:2], weights=x[2]).logpdf(x[:2] ** 2),
    "gaussian_kde factor": lambda x: stats.gaussian_kde(K, bw_method=0.5).pdf(x[0]),
    "bartlett": lambda x: stats.bartlett(x[0], x[1])[0],
    "levene": lambda x: np.stack(stats.levene(x[0], x[1] ** 2, center="mean")),
    "betanbinom": lambda x: stats.betanbinom.logpmf(2, 6, x, 0.5),
    "combine_pvalues": lambda x: stats.combine_pvalues(x[0])[1],
    "kurtosistest": lambda x: stats.kurtosistest(np.ravel(x))[0],
    "normaltest": lambda x: stats.normaltest(np.ravel(x))[0],
    "quantile": lambda x: stats.quantile(x, 0.3, axis=1),
    "skellam": lambda x: stats.skellam.logpmf(1, x, 1.2),
    "yulesimon": lambda x: stats.yulesimon.logpmf(2, x),
    "lmoment": lambda x: stats.lmoment(x, order=2, axis=1),
    "differential_entropy": lambda x: stats.differential_entropy(x, window_length=1, axis=1),
    "jarque_bera": lambda x: stats.jarque_bera(x, axis=1)[0],
    "energy_distance": lambda x: stats.energy_distance(x[0], x[1]),
    "wasserstein_distance": lambda x: stats.wasserstein_distance(x[0], x[1], x[2]),
    "directional_stats": lambda x: stats.directional_stats(x).mean_direction,
    "multinomial": lambda x: stats.multinomial.logpmf([1, 2, 1, 0], 4, x[0] / np.sum(x[0])),
    "theilslopes": lambda x: stats.theilslopes(x[0])[0],
    "scoreatpercentile": lambda x: stats.scoreatpercentile(x, 30),
    "skewtest": lambda x: stats.skewtest(np.ravel(x))[0],
    "expectile": lambda x: stats.expectile(x[0], 0.3),
    "Normal": lambda x: stats.Normal(mu=x[0, 0], sigma=x[0, 1]).logpdf(x),
    "betabinom": lambda x: stats.betabinom.logpmf(2, 6, x, 0.5),
    "zipf": lambda x: stats.zipf.logpmf(2, x + 1.5),
    "logser": lambda x: stats.logser.logpmf(2, x),
    "planck": lambda x: stats.planck.logpmf(2, x),
    "dlaplace": lambda x: stats.dlaplace.logpmf(2, x),
    "boltzmann": lambda x: stats.boltzmann.pmf(2, x, 5),
    "vonmises_fisher": lambda x: stats.vonmises_fisher([1, 0.0], 2.0).logpdf(x[:2, 0] / np.linalg.norm(x[:2, 0])),
    "tukeylambda": lambda x: stats.tukeylambda.logpdf(x, 0.3),
    "rel_breitwigner": lambda x: stats.rel_breitwigner.logpdf(x, 2 + x[0, 0]),
    "zscore": lambda x: stats.zscore(x),
    "skew": lambda x: stats.skew(x, axis=1),
    "kurtosis": lambda x: stats.kurtosis(x, axis=1),
    "moment": lambda x: stats.moment(x, 3),
    "sem": lambda x: stats.sem(x),
    "iqr": lambda x: stats.iqr(x, axis=1),
    "boxcox": lambda x: stats.boxcox(x, 0.7),
    "gmean": lambda x: stats.gmean(x),
    "hmean": lambda x: stats.hmean(x, axis=1),
    "entropy": lambda x: stats.entropy(x),
    "relative entropy": lambda x: stats.entropy(x, x[::-1] ** 2),
    "variation": lambda x: stats.variation(x),
    "trim_mean": lambda x: stats.trim_mean(x, 0.3),
    "ttest_ind": lambda x: stats.ttest_ind(x[0], x[1] + 1)[0],
    "linregress": lambda x: stats.linregress(x[0], x[1]).slope,
}  # fmt: skip

W = np.array([[0.1, 0.2, 0.4], [-0.3, 0.5, 0.7]])
GRID = np.array([[0.3, 1.7, 1.2], [0.1, 2.2, 2.6]])
MODES = ("reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap")


def ndimage_correlate(x, mode):
    return ndimage.correlate(x, W, mode=mode, cval=0.3)


def spline_at(x, order):
    return ndimage.map_coordinates(x, 2.5 * x[:2], order=order, cval=0.5)


NDIMAGE = {
    "generic_filter": lambda x: ndimage.generic_filter(x, lambda window: np.sum(window**2) / window[0], 2),
    "generic_filter closure": lambda x: ndimage.generic_filter(
        X, lambda window, a, b=0.0: a * np.max(window) + x[1, 1] * b, footprint=[[0, 1, 0], [1, 1, 1], [0, 1, 0]],
        mode="constant", cval=0.5, extra_arguments=(x[0, 0],), extra_keywords={"b": x[0, 1]}),
    "geometric_transform": lambda x: ndimage.geometric_transform(
        x, lambda place: (place[0] * x[0, 0] + 0.4, place[1] - 0.3), order=2),
    "generic_laplace": lambda x: ndimage.generic_laplace(
        x, lambda x, axis, output, mode, cval: ndimage.correlate1d(x, [1, -2, 1], axis, output, mode, cval, 0)),
    "generic_gradient_magnitude": lambda x: ndimage.generic_gradient_magnitude(x, ndimage.sobel),
    "sobel written": lambda x: written_by(lambda out: ndimage.sobel(x, output=out[:, ::2]), np.ones((3, 8))),
    "gaussian_filter in place": lambda x: written_by(lambda out: ndimage.gaussian_filter(out, 0.7, output=out), 2 * x),
    "fourier_gaussian": lambda x: np.abs(ndimage.fourier_gaussian(np.fft.fft2(x), 0.7)),
    "fourier_uniform": lambda x: np.abs(ndimage.fourier_uniform(np.fft.rfft(x), 1.5, n=4)),
    "fourier_ellipsoid": lambda x: np.real(ndimage.fourier_ellipsoid(np.fft.fft2(x), 1.5)),
    "fourier_shift": lambda x: np.real(ndimage.fourier_shift(np.fft.fft2(x), 0.7)),
    **{f"correlate {mode}": functools.partial(ndimage_correlate, mode=mode) for mode in MODES},
    "correlate weights": lambda x: ndimage.correlate(x, x[:2, :3]),
    "correlate origin": lambda x: ndimage.correlate(x, W, origin=(-1, 1)),
    "convolve": lambda x: ndimage.convolve(x, W),
    "convolve even": lambda x: ndimage.convolve(x, x[:2, :2], origin=(0, -1)),
    "correlate1d": lambda x: ndimage.correlate1d(x, [0.2, 0.5], axis=0, origin=-1),
    "convolve1d": lambda x: ndimage.convolve1d(x, [0.2, 0.5, 0.1], mode="wrap"),
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 0.7),
    "gaussian_filter order": lambda x: ndimage.gaussian_filter(x, (0.6, 0.5), order=(1, 0), mode="nearest"),
    "gaussian_filter sigma": lambda x: ndimage.gaussian_filter(x, x[0, 0] * 0.4 + 0.45),
    "gaussian_filter1d": lambda x: ndimage.gaussian_filter1d(x, 0.6, axis=0, order=2),
    "uniform_filter": lambda x: ndimage.uniform_filter(x, (2, 3)),
    "uniform_filter1d": lambda x: ndimage.uniform_filter1d(x, 2, mode="mirror"),
    "sobel": lambda x: ndimage.sobel(x),
    "prewitt": lambda x: ndimage.prewitt(x, axis=0, mode="constant"),
    "laplace": lambda x: ndimage.laplace(x),
    "gaussian_laplace": lambda x: ndimage.gaussian_laplace(x, 0.6),
    "gaussian_gradient_magnitude": lambda x: ndimage.gaussian_gradient_magnitude(x, 0.6),
    "distance_transform_edt": lambda x: ndimage.distance_transform_edt(np.eye(4) < 0.5, sampling=x[0, :2] + [0.0, 0.3]),
    "map_coordinates": lambda x: ndimage.map_coordinates(x, GRID, order=1),
    "map_coordinates point": lambda x: ndimage.map_coordinates(X, 3 * x[:2], order=1, mode="nearest"),
    "map_coordinates 0": lambda x: ndimage.map_coordinates(x, GRID, order=0),
    "affine_transform": lambda x: ndimage.affine_transform(x, x[:2, :2] + np.eye(2), [0.1, x[0, 0]], order=1),
    "shift": lambda x: ndimage.shift(x, (0.3, -0.6), order=1, cval=0.5),
    "zoom": lambda x: ndimage.zoom(x, 2, order=1),
    "spline_filter": lambda x: ndimage.spline_filter(x),
    "spline_filter1d": lambda x: ndimage.spline_filter1d(x, 4, axis=0, mode="reflect"),
    **{f"map_coordinates spline {order}": functools.partial(spline_at, order=order) for order in (2, 3, 4, 5)},
    "map_coordinates spline nearest": lambda x: ndimage.map_coordinates(x, 4 * x[:2] - 1, mode="nearest"),
    "map_coordinates unfiltered": lambda x: ndimage.map_coordinates(x, 2 * x[:2], prefilter=False),
    "affine_transform spline": lambda x: ndimage.affine_transform(x, x[:2, :2] + np.eye(2), [0.1, x[0, 0]]),
    "shift spline": lambda x: ndimage.shift(x, x[0, :2], cval=0.5),
    "zoom spline": lambda x: ndimage.zoom(x, 2),
    "rotate": lambda x: ndimage.rotate(x, 20 * x[0, 0]),
    "rotate planes": lambda x: ndimage.rotate(np.stack([x, x**2]), 30, axes=(0, 2), reshape=False, order=1),
}  # fmt: skip


def filtered(name, x):
    return getattr(ndimage, name)(x, (2, 3))


LABELS = np.array([[0, 1, 2, 2], [0, 0, 1, 2], [1, 1, 0, 2]])
NDIMAGE |= {
    "sum": lambda x: ndimage.sum(x, LABELS, [0, 1, 2]),
    "sum_labels": lambda x: ndimage.sum_labels(x, LABELS, [0, 2]),
    "mean": lambda x: ndimage.mean(x, LABELS, [0, 1, 2]),
    "variance": lambda x: ndimage.variance(x, LABELS, [0, 1, 2]),
    "standard_deviation": lambda x: ndimage.standard_deviation(x, LABELS, [0, 1, 2]),
    **{
        name: functools.partial(filtered, name)
        for name in (
            "maximum_filter",
            "minimum_filter",
            "median_filter",
            "grey_dilation",
            "grey_erosion",
            "grey_opening",
            "grey_closing",
            "morphological_gradient",
            "morphological_laplace",
            "white_tophat",
            "black_tophat",
        )
    },
    "maximum_filter footprint": lambda x: ndimage.maximum_filter(
        x, footprint=[[1, 0], [1, 1], [0, 1]], mode="constant", cval=0.5, origin=(0, -1)
    ),
    "maximum_filter1d": lambda x: ndimage.maximum_filter1d(x, 2, axis=0, origin=-1),
    "minimum_filter1d": lambda x: ndimage.minimum_filter1d(x, 3, mode="wrap"),
    "rank_filter": lambda x: ndimage.rank_filter(x, -2, 3, mode="mirror"),
    "percentile_filter": lambda x: ndimage.percentile_filter(x, 30, 3),
    "grey_dilation structure": lambda x: ndimage.grey_dilation(x, structure=np.array([[0.1, 0.3], [0.2, 0.0]])),
    "grey_erosion structure": lambda x: ndimage.grey_erosion(x, structure=x[:2, :2] ** 2),
    "center_of_mass": lambda x: np.stack(ndimage.center_of_mass(x)),
}
S = sparse.random_array((4, 4), density=0.5, random_state=np.random.default_rng(1)) + 2 * sparse.eye_array(4)
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
SPARSE = {
    **{f"{form} array": (lambda s: lambda x: s @ x.T + (x @ s).T)(S.asformat(form)) for form in FORMATS},
    **{
        f"{form} matrix": (lambda s: lambda x: s * x[0] + x[1] * s + s.dot(x[2]))(sparse.csr_matrix(S).asformat(form))
        for form in FORMATS
    },
    "vector": lambda x: S @ x[0] + x[1] @ S,
    "sum": lambda x: S.tocsr() + x[:, :1].T[:, [0, 1, 2, 0]].T + (x[0] - S.tocsr()),
    "spsolve": lambda x: sparse.linalg.spsolve(S.tocsc(), x[0]),
    "spsolve matrix": lambda x: sparse.linalg.spsolve(S.tocsc(), x.T),
    "spsolve_triangular": lambda x: sparse.linalg.spsolve_triangular(sparse.tril(S).tocsr(), x[0]),
    "expm_multiply": lambda x: expm_multiply(S.tocsr(), x[0]),
}
INTEGRATE = {
    "trapezoid": lambda x: integrate.trapezoid(x, x**2),
    "cumulative_trapezoid": lambda x: integrate.cumulative_trapezoid(x, K, initial=0),
    "simpson": lambda x: integrate.simpson(x),
    "simpson x": lambda x: integrate.simpson(x, x=K, axis=1),
    "simpson odd": lambda x: integrate.simpson(x, axis=0),
    "romb": lambda x: integrate.romb(np.concatenate([x, x[:, :1]], axis=1)),
    "fixed_quad": lambda x: integrate.fixed_quad(lambda t: np.sin(t * x[0, 0]), 0, x[1, 1])[0],
    "cumulative_simpson": lambda x: integrate.cumulative_simpson(x, dx=0.1),
    "cumulative_simpson x": lambda x: integrate.cumulative_simpson(x, x=K, axis=1, initial=0.5),
    "quad": lambda x: integrate.quad(lambda t: np.exp(-x[0, 0] * t) * np.sin(t + x[1, 1]), 0, 2)[0],
    "quad limits": lambda x: integrate.quad(lambda t: np.cos(t * t), 3.0, x[1, 0])[0],
    "quad args": lambda x: integrate.quad(lambda t, a, b: np.sin(a * t) + b, x[0, 1], 1, args=(x[0, 0], x[1, 1]))[0],
    "quad to infinity": lambda x: integrate.quad(lambda t: np.exp(-x[0, 0] * t), x[1, 0], np.inf)[0],
    "quad from infinity": lambda x: integrate.quad(lambda t: np.exp(x[0, 0] * t), -np.inf, x[1, 0])[0],
    "quad of all": lambda x: integrate.quad(lambda t: np.exp(-x[0, 0] * (t - x[1, 0]) ** 2), -np.inf, np.inf)[0],
    "quad of nothing": lambda x: integrate.quad(np.cos, x[0, 0], x[0, 0])[0] + integrate.quad(np.cos, x[1, 0], 1)[0],
    "quad points": lambda x: integrate.quad(lambda t: abs(t - 0.3) * x[0, 0], 0, 1, points=[0.3])[0],
}


def cdist(x, metric):
    return distance.cdist(x, x[::-1, ::-1] ** 2, metric)


DISTANCE = {
    **{f"cdist {metric}": functools.partial(cdist, metric=metric) for metric in (
        "euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "canberra", "braycurtis")},
    "cdist minkowski": lambda x: distance.cdist(x, x**2, "minkowski", p=3, w=[1, 2, 3, 1]),
    "cdist mahalanobis": lambda x: distance.cdist(
        x[:, :3], x[:, 1:] ** 2, "mahalanobis", VI=np.linalg.inv(symmetric(x))),
    "cdist to itself": lambda x: distance.cdist(x, x),
    "cityblock to itself": lambda x: distance.cdist(x, x, "cityblock"),
    "pdist": lambda x: distance.pdist(x),
    "squareform": lambda x: distance.squareform(distance.pdist(x)),
    "squareform of one point": lambda x: np.sum(distance.squareform(distance.pdist(x[:1]))) + x,
    "squareform vector": lambda x: distance.squareform(x[:, :3] + x[:, :3].T, checks=False),
    "euclidean": lambda x: distance.euclidean(x[0], x[1]),
    "cosine": lambda x: distance.cosine(x[0], x[1]),
    "jensenshannon": lambda x: distance.jensenshannon(x[0], x[1]),
}  # fmt: skip
SPECIAL = {
    "logsumexp": lambda x: special.logsumexp(x, axis=1),
    "softmax": lambda x: special.softmax(x, axis=0),
    "log_softmax": lambda x: special.log_softmax(x, axis=1),
    "assoc_laguerre": lambda x: special.assoc_laguerre(x, 3, 0.5),
    "jvp": lambda x: special.jvp(1, x),
    "yvp": lambda x: special.yvp(1, x),
    "ivp": lambda x: special.ivp(1, x, 2),
    "kvp": lambda x: special.kvp(1, x),
    "h1vp": lambda x: np.real(special.h1vp(1, x)),
    "h2vp": lambda x: np.imag(special.h2vp(1, x)),
}

NAMESPACES = {
    "linalg": LINALG, "fft": FFT, "signal": SIGNAL, "interpolate": INTERPOLATE, "stats": STATS, "ndimage": NDIMAGE,
    "sparse": SPARSE, "integrate": INTEGRATE, "distance": DISTANCE, "special": SPECIAL,
}  # fmt: skip
CASES = {
    **{f"{space}.{name}": case for space, cases in NAMESPACES.items() for name, case in cases.items()}, **BY_SOURCE,
}  # fmt: skip
# Of so many operations that only their gradients are compared.
LONG = {
    "integrate.quad_vec": lambda x: integrate.quad_vec(lambda t: np.cos(t * x[0]), 0.0, x[1, 1])[0],
    "integrate.solve_ivp": lambda x: integrate.solve_ivp(
        lambda t, y: x[:2, :2] @ y, (0.0, 0.5), x[2, :2], rtol=1e-10
    ).y[:, -1],
    "integrate.odeint": lambda x: integrate.odeint(
        lambda y, t: x[:2, :2] @ y, x[2, :2], np.linspace(0, 0.5, 3), rtol=1e-10
    ),
    "integrate.solve_bvp": lambda x: integrate.solve_bvp(
        lambda t, y: np.stack([y[1], -x[0, 0] * y[0]]), lambda a, b: np.stack([a[0], b[0] - x[1, 1]]),
        np.linspace(0, 1, 5), np.zeros((2, 5)), tol=1e-8,
    ).y[1, 0],
    "integrate.dblquad": lambda x: integrate.dblquad(lambda s, t: np.exp(s * x[0, 0]), 0, 1, 0, lambda t: t * x[1, 0])[
        0
    ],
    "integrate.tplquad": lambda x: integrate.tplquad(lambda r, s, t: s * t * r + x[0, 0], 0, x[1, 0], 0, 1, 0, 1)[0],
    "optimize.rosen": lambda x: optimize.rosen(x[0]),
    "optimize.rosen_der": lambda x: optimize.rosen_der(x[0]),
    "optimize.rosen_hess": lambda x: optimize.rosen_hess(x[0]),
    "optimize.rosen_hess_prod": lambda x: optimize.rosen_hess_prod(x[0], x[1]),
    "sparse.permute_dims": lambda x: sparse.permute_dims(sparse.coo_array(x), (1, 0)).toarray(),
    "sparse.swapaxes": lambda x: sparse.swapaxes(sparse.coo_array(x), 0, 1).toarray(),
    "sparse.linalg.expm_multiply": lambda x: sparse.linalg.expm_multiply(sparse.diags_array(x[0]), x[1]),
    "sparse.linalg.lobpcg": lambda x: sparse.linalg.lobpcg(
        sparse.diags_array(3 + np.arange(len(x[0])) + x[0] / 9), np.ones((len(x[0]), 1)), tol=1e-12, maxiter=99)[0],
    "sparse.linalg.lsmr": lambda x: sparse.linalg.lsmr(sparse.diags_array(3 + x[0]), x[1], atol=1e-14, btol=1e-14)[0],
    "sparse.linalg.lsqr": lambda x: sparse.linalg.lsqr(sparse.diags_array(3 + x[0]), x[1], atol=1e-14, btol=1e-14)[0],
    "sparse.linalg.matrix_power": lambda x: sparse.linalg.matrix_power(sparse.diags_array(x[0]), 3).diagonal(),
    "sparse.linalg.onenormest": lambda x: np.stack([sparse.linalg.onenormest(sparse.diags_array(3 + x[0]))]),
    "sparse.linalg.aslinearoperator": lambda x: sparse.linalg.cg(
        sparse.linalg.aslinearoperator(sparse.diags_array(3 + x[0])), x[1], rtol=1e-13
    )[0],
    "integrate.nquad": lambda x: integrate.nquad(lambda s, t: np.sin(s * t * x[0, 0]), [[0, 1], [0, x[1, 0]]])[0],
    "integrate.cubature": lambda x: integrate.cubature(lambda t: np.exp(-x[0, 0] * t[:, 0]), [0.0], [1.0]).estimate,
    "integrate.tanhsinh": lambda x: integrate.tanhsinh(lambda t: np.exp(-x[0, 0] * t), 0.0, x[1, 1]).integral,
    **{f"integrate.{kind.__name__}": functools.partial(lambda kind, x: stepped(kind, x), kind) for kind in (
        integrate.RK23, integrate.RK45, integrate.DOP853, integrate.Radau, integrate.BDF)},
    "integrate.ode": lambda x: integrate.ode(lambda t, y: x[:2, :2] @ y).set_integrator(
        "dop853", rtol=1e-10).set_initial_value(x[2, :2]).integrate(0.5),
    "integrate.complex_ode": lambda x: np.abs(integrate.complex_ode(lambda t, y: 1j * x[:2, :2] @ y).set_integrator(
        "dop853", rtol=1e-10).set_initial_value(x[2, :2]).integrate(0.5)),
    "linalg.orth": lambda x: linalg.orth(x[:3, :3] + 3 * np.eye(3)),
    "linalg.null_space": lambda x: (basis := linalg.null_space(x[:2, :4] + np.eye(2, 4))) @ basis.T,
    "optimize.approx_fprime": lambda x: optimize.approx_fprime(np.array([0.3]), lambda t: np.sin(t[0] * x[0, 0]), 1e-3),
    "optimize.fmin_cobyla": lambda x: optimize.fmin_cobyla(
        lambda z: (z[0] - x[0, 0]) ** 2, [0.0], [], rhoend=1e-12),
    "optimize.fmin_slsqp": lambda x: optimize.fmin_slsqp(
        lambda z: (z[0] - x[0, 0]) ** 2 + z[1] ** 2, [0.0, 0.0], f_eqcons=lambda z: [z[1] - x[1, 0] * z[0] + 0.1],
        fprime=lambda z: [2 * (z[0] - x[0, 0]), 2 * z[1]], fprime_eqcons=lambda z: [[-x[1, 0], 1.0]], iprint=0,
        acc=1e-14),
    "optimize.fmin_tnc": lambda x: optimize.fmin_tnc(
        lambda z: ((z[0] - x[0, 0]) ** 2, [2 * (z[0] - x[0, 0])]), [0.0], disp=0)[0],
    "signal.bessel": lambda x: signal.bessel(3, x[0, 0])[0],
    "signal.butter": lambda x: np.stack(signal.butter(3, x[0, 0])),
    "signal.cheby1": lambda x: signal.cheby1(3, x[0, 1], x[0, 0])[0],
    "signal.cheby2": lambda x: signal.cheby2(3, 20 * x[0, 1], x[0, 0])[0],
    "signal.ellip": lambda x: signal.ellip(3, x[0, 1], 40 * x[1, 1], x[0, 0])[0],
    "signal.firls": lambda x: signal.firls(5, np.stack([0, x[0, 1], x[0, 0], 1]), [1, 1, 0, 0]),
    "signal.firwin": lambda x: signal.firwin(5, x[0, 0]),
    "signal.firwin2": lambda x: signal.firwin2(5, np.stack([0, x[0, 0], 1]), [1, 1, 0]),
    "signal.iirnotch": lambda x: signal.iirnotch(x[0, 0], 30 * x[0, 1])[0],
    "signal.iirpeak": lambda x: signal.iirpeak(x[0, 0], 30 * x[0, 1])[0],
    "signal.bode": lambda x: signal.bode(([x[0, 0]], [1, x[0, 1]]), w=[1.0, 2.0])[1],
    "signal.freqresp": lambda x: np.abs(signal.freqresp(([x[0, 0]], [1, x[0, 1]]), w=[1.0, 2.0])[1]),
    "signal.impulse": lambda x: signal.impulse(([x[0, 0]], [1, x[0, 1]]), T=np.linspace(0, 1, 5))[1],
    "signal.step": lambda x: signal.step(([x[0, 0]], [1, x[0, 1]]), T=np.linspace(0, 1, 5))[1],
    "signal.lsim": lambda x: signal.lsim(([x[0, 0]], [1, x[0, 1]]), x[1], np.linspace(0, 1, 4))[1],
    "signal.dlsim": lambda x: signal.dlsim(([x[0, 0]], [1, x[0, 1]], 0.1), x[1])[1],
    "signal.StateSpace": lambda x: signal.StateSpace(x[:1, :1], [[1.0]], x[:1, 1:2], [[0.0]]).to_tf().num,
    "stats.bootstrap": lambda x: stats.bootstrap((x[0],), np.mean, n_resamples=9, **random()).standard_error,
    "stats.permutation_test": lambda x: stats.permutation_test(
        (x[0], x[1]), lambda u, v: np.mean(u) - np.mean(v), n_resamples=9, **random()).statistic,
}


def random():
    """The argument that gives a function its random numbers, by the name that it has in this version."""
    name = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"
    return {name: np.random.default_rng(0)}


def stepped(kind, x):
    """The state of a solver after two steps, taken from outside."""
    solver = kind(lambda t, y: -x[0, 0] * y, 0.0, x[1], 10.0)
    solver.step()
    solver.step()
    return solver.y
