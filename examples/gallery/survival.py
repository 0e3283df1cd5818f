"""How treatment and age change survival: Weibull regression with patients who leave the study alive.

The hazard of a patient is k t^(k-1) exp(-k (b0 + b1 treated + b2 age)). A patient who dies contributes the density, one
who leaves only the probability of having lived until then. Kalbfleisch and Prentice 2002, chapter 3.
"""

import numpy as np

TRUTH = np.array([np.log(1.6), 1.0, 0.7, -0.4])  # log of the shape k, then b0, b1, b2


def data():
    """Times in years, whether the patient died then, and the covariates (1, treated, age in decades over 60)."""
    random = np.random.default_rng(3)
    covariates = np.stack([np.ones(240), np.arange(240) % 2, random.normal(0.0, 1.0, 240)], axis=1)
    scale = np.exp(covariates @ TRUTH[1:])
    death = scale * random.weibull(np.exp(TRUTH[0]), 240)
    end = random.uniform(1.0, 6.0, 240)
    return np.minimum(death, end), death <= end, covariates


def start():
    return np.zeros(4)


def cumulative_hazard(parameters, times, covariates):
    shape = np.exp(parameters[0])
    return (times * np.exp(-covariates @ parameters[1:])) ** shape


def survival(parameters, times, covariates):
    """The probability of living for longer than each time."""
    return np.exp(-cumulative_hazard(parameters, times, covariates))


def objective(parameters, data):
    """The negative log likelihood."""
    times, died, covariates = data
    passed = cumulative_hazard(parameters, times, covariates)
    log_hazard = parameters[0] + np.log(passed[died]) - np.log(times[died])
    return np.sum(passed) - np.sum(log_hazard)


def kaplan_meier(times, died):
    """The survival curve without a model, to compare: times of deaths, and the fraction alive after each."""
    order = np.argsort(times)
    at_risk = len(times) - np.arange(len(times))
    return times[order], np.cumprod(1.0 - died[order] / at_risk)
