"""Inverse kinematics of a planar arm: joint angles that bring its hand to a target, within the limits of the joints.

Link i has the length lengths[i] and makes the angle angles[i] with the link before it. The objective is the squared
distance from hand to target, a penalty outside the limits, and a small cost for bending, which makes the answer unique.
"""

import numpy as np


def data():
    """An arm of six links, the limit of each joint in radians, and a target beside its base."""
    lengths = np.array([1.0, 0.9, 0.8, 0.7, 0.5, 0.3])
    limits = np.array([2.4, 1.0, 1.0, 1.0, 1.0, 0.6])
    target = np.array([-0.8, 1.1])
    return lengths, limits, target


def start():
    return np.full(6, 0.1)


def joints(angles, lengths):
    """The positions of the base, the joints and the hand, of shape (n + 1, 2)."""
    directions = np.cumsum(angles)
    links = lengths[:, None] * np.stack([np.cos(directions), np.sin(directions)], axis=1)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(links, axis=0)])


def objective(angles, data):
    lengths, limits, target = data
    hand = joints(angles, lengths)[-1]
    excess = np.maximum(np.abs(angles) - limits, 0.0)
    return np.sum((hand - target) ** 2) + 10.0 * np.sum(excess**2) + 1e-3 * np.sum(angles**2)
