"""State estimation, control and robotics."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program

FILTERPY = "rlabbe/filterpy"
TIMES = np.arange(6)
TRACK = np.stack([TIMES + 0.1 * np.sin(7.0 * TIMES), 0.5 * TIMES + 0.1 * np.cos(5.0 * TIMES)], axis=1)


@program(FILTERPY, "`KalmanFilter`: log likelihood of a track, by the noises of process and measurement")
def kalman_filter(checkout: Checkout) -> tuple[Any, ...]:
    kalman, common = checkout.package("filterpy.kalman"), checkout.package("filterpy.common")

    def likelihood(noise: Any, measured: Any) -> Any:
        filter_ = kalman.KalmanFilter(dim_x=4, dim_z=2)
        filter_.F = np.kron(np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]]))
        filter_.H = np.kron(np.eye(2), np.array([[1.0, 0.0]]))
        filter_.Q = common.Q_discrete_white_noise(dim=2, dt=1.0, var=noise, block_size=2)
        filter_.R = filter_.R * measured
        filter_.P *= 10.0
        total = 0.0
        for z in TRACK:
            filter_.predict()
            filter_.update(z)
            total = total + filter_.log_likelihood
        return total

    return likelihood, 0.1, 0.3


@program(FILTERPY, "`ExtendedKalmanFilter`: the state after ranges to a target, by the first state and the noise")
def extended_kalman_filter(checkout: Checkout) -> tuple[Any, ...]:
    kalman = checkout.package("filterpy.kalman")

    def state(x: Any, noise: Any) -> Any:
        filter_ = kalman.ExtendedKalmanFilter(dim_x=2, dim_z=1)
        filter_.x, filter_.F = x, np.array([[1.0, 0.1], [0.0, 1.0]])
        filter_.R, filter_.Q = filter_.R * noise, np.eye(2) * 0.01
        for z in (2.3, 2.2, 2.4):
            filter_.update(
                np.array([[z]]),
                lambda x: np.array([[x[0, 0] / np.sqrt(x[0, 0] ** 2 + 4.0), 0.0]]),
                lambda x: np.sqrt(x[0:1] ** 2 + 4.0),
            )
            filter_.predict()
        return filter_.x, filter_.P

    return state, np.array([[1.0], [0.2]]), 0.3


@program(FILTERPY, "`UnscentedKalmanFilter`: the mean after ranges to a target, by the first state and the noise")
def unscented_kalman_filter(checkout: Checkout) -> tuple[Any, ...]:
    kalman = checkout.package("filterpy.kalman")

    def state(x: Any, noise: Any) -> Any:
        points = kalman.MerweScaledSigmaPoints(2, alpha=0.5, beta=2.0, kappa=1.0)
        filter_ = kalman.UnscentedKalmanFilter(
            dim_x=2, dim_z=1, dt=0.1, points=points, hx=lambda x: np.sqrt(x[:1] ** 2 + 4.0),
            fx=lambda x, dt: np.array([x[0] + dt * x[1], x[1]]),
        )  # fmt: skip
        filter_.x, filter_.R, filter_.Q = x, filter_.R * noise, np.eye(2) * 0.01
        for z in (2.3, 2.2, 2.4):
            filter_.predict()
            filter_.update(np.array([z]))
        return filter_.x

    return state, np.array([1.0, 0.2]), 0.3
