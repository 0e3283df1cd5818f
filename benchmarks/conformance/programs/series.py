"""Time series: signals, their derivatives and spectra, hydrology, sampling."""

import importlib
import sys
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

RNG = np.random.default_rng(0)
SIGNAL = np.cumsum(RNG.normal(size=40)) * 0.3 + np.sin(np.arange(40) / 3)
PYNUMDIFF = "florisvb/PyNumDiff"


@program("statsmodels", "`AutoReg.loglike`: an autoregression with a trend by its parameters")
def autoregression(_: None) -> tuple[Any, ...]:
    module = importlib.import_module("statsmodels.tsa.ar_model")
    model = module.AutoReg(SIGNAL, 2, trend="ct")
    return model.loglike, np.array([0.1, 0.01, 0.6, -0.2])


@program("statsmodels", "`SARIMAX.loglike`: a state space model, filtered in Cython")
def state_space(_: None) -> tuple[Any, ...]:
    module = importlib.import_module("statsmodels.tsa.statespace.sarimax")

    def loglike(params: Any) -> Any:
        return module.SARIMAX(SIGNAL, order=(1, 0, 1)).loglike(params)  # the model keeps its parameters

    return loglike, np.array([0.5, 0.2, 1.3])


@program("statsmodels", "`arma_impulse_response`, `arma2ar`: of an ARMA process by its coefficients")
def impulse_responses(_: None) -> tuple[Any, ...]:
    process = importlib.import_module("statsmodels.tsa.arima_process")

    def responses(ar: Any, ma: Any) -> Any:
        return process.arma_impulse_response(ar, ma, leads=8), process.arma2ar(ar, ma, lags=6)

    return responses, np.array([1.0, -0.6, 0.2]), np.array([1.0, 0.4])


@program("statsmodels", "`hpfilter`: the trend and the cycle of a series, with a sparse solve")
def trend(_: None) -> tuple[Any, ...]:
    module = importlib.import_module("statsmodels.tsa.filters.hp_filter")
    return lambda x: module.hpfilter(x, 100.0), SIGNAL[:12].copy()


@program("dfm/emcee", "`autocorr.function_1d`: the normalised autocorrelation of a chain")
def autocorrelation(checkout: Checkout) -> tuple[Any, ...]:
    return checkout.load("src/emcee/autocorr.py").function_1d, SIGNAL


@program("joshspeagle/dynesty", "`compute_integrals`: evidence and information of a run by its likelihoods")
def nested_sampling(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("dynesty", "py/dynesty")
    vars(sys.modules["dynesty"])["__version__"] = ""
    stub("dynesty.plotting")
    module = importlib.import_module("dynesty.utils")
    volumes = -np.arange(1, 9) / 3
    return lambda logl: module.compute_integrals(logl=logl, logvol=volumes), np.sort(RNG.normal(size=8))


@program("joshspeagle/dynesty", "`mean_and_cov`, `get_neff_from_logwt`: of weighted samples")
def weighted_samples(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("dynesty", "py/dynesty")
    vars(sys.modules["dynesty"])["__version__"] = ""
    module = importlib.import_module("dynesty.utils")

    def moments(samples: Any, weights: Any) -> Any:
        return *module.mean_and_cov(samples, weights), module.get_neff_from_logwt(np.log(weights))

    return moments, RNG.normal(size=(6, 2)), RNG.uniform(0.1, 1, size=6)


def pynumdiff(checkout: Checkout, module: str) -> Any:
    checkout.bare("pynumdiff", "pynumdiff")
    stub("cvxpy", "pywt")
    return importlib.import_module(f"pynumdiff.{module}")


@program(PYNUMDIFF, "`finitediff`: fourth order and iterated, by the signal")
def finite_differences(checkout: Checkout) -> tuple[Any, ...]:
    module = pynumdiff(checkout, "finite_difference")
    return lambda x: (*module.finitediff(x, 0.1, order=4), *module.finitediff(x, 0.1, num_iterations=3)), SIGNAL


@program(PYNUMDIFF, "`butterdiff`, `kerneldiff`: smoothed by a filter forwards and backwards, by a kernel")
def smooth_differences(checkout: Checkout) -> tuple[Any, ...]:
    module = pynumdiff(checkout, "smooth_finite_difference")
    return lambda x: (*module.butterdiff(x, 0.1), *module.kerneldiff(x, 0.1, "gaussian")), SIGNAL


@program(PYNUMDIFF, "`savgoldiff`, `polydiff`: sliding polynomials, by the signal")
def polynomial_differences(checkout: Checkout) -> tuple[Any, ...]:
    module = pynumdiff(checkout, "polynomial_fit")

    def slopes(x: Any) -> Any:
        smooth = module.savgoldiff(x, 0.1, degree=2, window_size=7, smoothing_win=5)
        return *smooth, *module.polydiff(x, 0.1, degree=2, window_size=9)

    return slopes, SIGNAL


@program(PYNUMDIFF, "`splinediff`: a smoothing spline, by the signal")
def spline_differences(checkout: Checkout) -> tuple[Any, ...]:
    module = pynumdiff(checkout, "polynomial_fit")
    return lambda x: module.splinediff(x, 0.1, degree=3, s=0.01), SIGNAL


@program(PYNUMDIFF, "`spectraldiff`, `rbfdiff`: by Fourier modes and by radial functions")
def spectral_differences(checkout: Checkout) -> tuple[Any, ...]:
    module = pynumdiff(checkout, "basis_fit")
    return lambda x: (*module.spectraldiff(x, 0.1, high_freq_cutoff=0.3), *module.rbfdiff(x, 0.1, sigma=0.3)), SIGNAL


@program(PYNUMDIFF, "`rtsdiff`: a Kalman smoother forwards and backwards, by the signal")
def kalman_differences(checkout: Checkout) -> tuple[Any, ...]:
    module = pynumdiff(checkout, "kalman_smooth")
    return lambda x: module.rtsdiff(x, 0.1, 2, 3.0, forwardbackward=True), SIGNAL[:15].copy()


@program("neurodsp-tools/neurodsp", "`compute_spectrum`, `compute_autocorr`: Welch's spectrum of a signal, its power")
def spectra(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.package("neurodsp.spectral")
    autocorr = importlib.import_module("neurodsp.aperiodic.autocorr").compute_autocorr

    def found(signal: Any) -> Any:
        frequencies, power = module.compute_spectrum(signal, 100, nperseg=32)
        return power, module.compute_absolute_power(frequencies, power, (5, 30)), autocorr(signal, 8)[1]

    return found, RNG.normal(size=96)


@program("neurodsp-tools/neurodsp", "`filter_signal`, `amp_by_time`: a band-pass filter and an amplitude")
def filtered(checkout: Checkout) -> tuple[Any, ...]:
    filt = checkout.package("neurodsp.filt")
    waves = importlib.import_module("neurodsp.timefrequency")

    def found(signal: Any) -> Any:
        band = filt.filter_signal(signal, 100, "bandpass", (8, 20), n_cycles=2, remove_edges=False)
        smooth = filt.filter_signal(signal, 100, "lowpass", 20, filter_type="iir", butterworth_order=3)
        return band, smooth, waves.amp_by_time(signal, 100)

    return found, RNG.normal(size=96)


def river(checkout: Checkout, model: str) -> Any:
    """A model of a river's flow, without its module for snow, and the weather of twenty days."""
    stub("cema_neige", simulation=lambda data, parameters: data["Prec"])
    stub("wfdei_to_lumped_dataframe", "metrics")
    days = np.arange(20)
    weather = {
        "Temp": 3 * np.sin(days / 2.0) + 0.5, "Prec": 4 + 3 * np.cos(1.7 * days), "Evap": 1 + 0.3 * np.sin(days / 5.0)
    }  # fmt: skip
    simulation = checkout.load(f"models/{model}.py").simulation
    return lambda parameters: simulation(weather, parameters)


@program("hydrogo/LHMP", "`gr4j_cemaneige.simulation`: the flow of a river, by six parameters")
def river_of_stores(checkout: Checkout) -> tuple[Any, ...]:
    return river(checkout, "gr4j_cemaneige"), np.array([70.0, 0.1, 20.0, 1.48, 0.25, 3.74])


@program("hydrogo/LHMP", "`simhyd_cemaneige.simulation`: the flow of a river, by twelve parameters")
def river_of_soil(checkout: Checkout) -> tuple[Any, ...]:
    return river(checkout, "simhyd_cemaneige"), np.array([
        50.0, 240.0, 6.1, 0.25, 0.31, 0.5, 0.23, 2.5, 0.4, 0.2, 0.25, 3.74
    ])  # fmt: skip


def pastas(checkout: Checkout, module: str) -> Any:
    checkout.package("pastas")
    return importlib.import_module(f"pastas.{module}")


@program("pastas/pastas", "`Gamma`, `Exponential`, `Hantush`, `Polder`: responses of groundwater by parameters")
def responses(checkout: Checkout) -> tuple[Any, ...]:
    module = pastas(checkout, "rfunc")
    made = [getattr(module, name)() for name in ("Gamma", "Exponential", "Hantush", "Polder")]

    def steps(gamma: Any, exponential: Any, hantush: Any, polder: Any) -> Any:
        times = np.arange(1.0, 30.0)
        return [r.impulse(times, p) for r, p in zip(made, (gamma, exponential, hantush, polder), strict=True)]

    return (
        steps,
        np.array([2.0, 1.3, 10.0]),
        np.array([2.0, 12.0]),
        np.array([1.5, 8.0, 0.3]),
        np.array([1.0, 2.0, 0.7]),
    )


@program("pastas/pastas", "`Berendrecht.get_recharge`, `Peterson.get_recharge`: recharge of groundwater")
def recharge(checkout: Checkout) -> tuple[Any, ...]:
    module = pastas(checkout, "recharge")
    rain, evaporation = RNG.uniform(0, 8, size=12), RNG.uniform(0.5, 3, size=12)

    def flux(one: Any, other: Any) -> Any:
        return (
            *module.Berendrecht.get_recharge(rain, evaporation, *one),
            *module.Peterson.get_recharge(rain, evaporation, *other),
        )

    return flux, np.array([0.9, 1.0, 0.3, 250.0, 2.0, 0.5, 10.0]), np.array([2.0, 1.0, 0.3, 0.5, 1.0])


@program("pastas/pastas", "`ArNoiseModel`: noise of residuals by its decay")
def noise(checkout: Checkout) -> tuple[Any, ...]:
    module = pastas(checkout, "noisemodels")
    pandas = importlib.import_module("pandas")
    residuals = pandas.Series(SIGNAL[:12], index=pandas.date_range("2001-01-01", periods=12))
    model = module.ArNoiseModel()
    return lambda a: model.simulate(residuals, np.array([a])).to_numpy(), 14.0
