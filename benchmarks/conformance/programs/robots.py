"""Robots, control tasks, satellites and rotations."""

import importlib
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program, stub

ROBOTICS = "AtsushiSakai/PythonRobotics"


@program(ROBOTICS, "`NLinkArm.forward_kinematics`: an arm's pose by its joint angles, with `math`")
def arm(checkout: Checkout) -> tuple[Any, ...]:
    arms = checkout.load("ArmNavigation/n_joint_arm_3d/NLinkArm3d.py")
    links = [(np.pi / 2, 0.1), (-np.pi / 2, 0.0), (np.pi / 2, 0.4), (-np.pi / 2, 0.0)]

    def pose(angles: Any) -> Any:
        return arms.NLinkArm([[t, a, 0.05, d] for t, (a, d) in zip(angles, links, strict=True)]).forward_kinematics()

    return pose, np.array([0.3, -0.7, 0.5, 0.9])


@program(ROBOTICS, "`QuinticPolynomial`: a trajectory by its ends and its duration")
def trajectory(checkout: Checkout) -> tuple[Any, ...]:
    planner = checkout.load("PathPlanning/QuinticPolynomialsPlanner/quintic_polynomials_planner.py")

    def point(start: Any, end: Any, time: Any) -> Any:
        path = planner.QuinticPolynomial(*start, *end, time)
        return path.calc_point(0.7 * time), path.calc_third_derivative(1.0)

    return point, np.array([1.0, 0.5, 0.1]), np.array([4.0, 0.2, -0.1]), 3.0


@program(ROBOTICS, "`dlqr`: the gain of a regulator of a pendulum on a cart, iterated, by the cost of the input")
def regulator(checkout: Checkout) -> tuple[Any, ...]:
    pendulum = checkout.load("InvertedPendulum/inverted_pendulum_lqr_control.py")
    a, b = pendulum.get_model_matrix()
    return lambda cost: pendulum.solve_DARE(a, b, pendulum.Q, np.array([[cost]]), maxiter=20), 0.01


@program("Farama-Foundation/Gymnasium", "`AcrobotEnv`: four steps of a double pendulum, by state and torque")
def acrobot(checkout: Checkout) -> tuple[Any, ...]:
    stub("gymnasium", Env=object)
    stub("gymnasium.envs", "gymnasium.envs.classic_control", "gymnasium.error")
    module = checkout.load("gymnasium/envs/classic_control/acrobot.py")
    environment = object.__new__(module.AcrobotEnv)

    def moved(state: Any, torque: Any) -> Any:
        for _ in range(4):
            state = module.rk4(environment._dsdt, np.append(state, torque), [0, environment.dt])
        return state

    return moved, np.array([0.1, -0.2, 0.3, 0.4]), 0.5


@program("brandon-rhodes/python-sgp4", "`Satrec.sgp4_tsince`: a satellite's place and velocity by its seven elements")
def satellite(checkout: Checkout) -> tuple[Any, ...]:
    module = checkout.package("sgp4.model")

    def place(*elements: Any) -> Any:
        bstar, ecco, argpo, inclo, mo, no, nodeo = elements
        satellite = module.Satrec()
        satellite.sgp4init(module.WGS72, "i", 5, 18441.785, bstar, 0.0, 0.0, ecco, argpo, inclo, mo, no, nodeo)
        _, r, v = satellite.sgp4_tsince(120.0)
        return [*r, *v]

    return place, 2.8e-5, 0.1859, 5.7904, 0.5980, 0.3373, 0.0472, 6.0863


@program("matthew-brett/transforms3d", "`euler2mat`, `mat2quat`, `axangle2mat`: rotations by angles, with `math`")
def rotations(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("transforms3d", "transforms3d")
    euler, axes = (importlib.import_module(f"transforms3d.{name}") for name in ("euler", "axangles"))

    def matrices(angles: Any, axis: Any) -> Any:
        return euler.euler2mat(*angles, "ryxz"), euler.euler2quat(*angles), axes.axangle2mat(axis, angles[0])

    return matrices, np.array([0.3, -0.4, 0.8]), np.array([1.0, 2.0, -0.5])


@program("KieranWynn/pyquaternion", "`Quaternion`: a rotated vector, a slerp, by axis, angle and vector")
def quaternions(checkout: Checkout) -> tuple[Any, ...]:
    quaternion = checkout.package("pyquaternion").Quaternion

    def rotated(axis: Any, angle: Any, vector: Any) -> Any:
        one, other = quaternion(axis=axis, angle=angle), quaternion(axis=[0.0, 0.0, 1.0], angle=0.3)
        return one.rotate(vector), quaternion.slerp(one, other, 0.4).elements

    return rotated, np.array([1.0, 2.0, 0.5]), 0.7, np.array([0.3, 0.2, -1.0])
