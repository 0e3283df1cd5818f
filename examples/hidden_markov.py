"""A casino that changes between a fair and a loaded die: a hidden Markov model by the forward algorithm.

Everything is in log space. The parameters are one vector of scores: softmax of each row of the first (2, 2) gives the
transitions between dice, of each row of the last (2, 6) the faces of each die. The first die is either, evenly.
"""

import numpy as np
from scipy.special import logsumexp


def data():
    """250 rolls, 0 to 5, and the die that made each; die 1 throws a 5 in seven rolls of ten."""
    random = np.random.default_rng(1)
    stay = [0.95, 0.9]
    faces = [[1 / 6] * 6, [0.06] * 5 + [0.7]]
    dice = [0]
    for _ in range(249):
        dice.append(dice[-1] if random.random() < stay[dice[-1]] else 1 - dice[-1])
    return np.array([random.choice(6, p=faces[die]) for die in dice]), np.array(dice)


def start():
    scores = np.zeros(16)
    scores[[0, 3]] = 2.0  # dice are rarely changed
    scores[15] = 0.5  # the second die is the one with more of the last face
    return scores


def log_softmax(scores):
    return scores - logsumexp(scores, axis=1, keepdims=True)


def model(scores, rolls):
    """The log probabilities of the transitions, and of each roll by each die, of shape (n, 2)."""
    transitions = log_softmax(scores[:4].reshape(2, 2))
    faces = log_softmax(scores[4:].reshape(2, 6))
    return transitions, faces[:, rolls].T


def log_likelihood(transitions, evidence):
    """The forward algorithm: `forward` is the log probability of the rolls so far and of each die now."""
    forward = evidence[0] - np.log(2.0)
    for roll in evidence[1:]:
        forward = logsumexp(forward[:, None] + transitions, axis=0) + roll
    return logsumexp(forward)


def objective(scores, data):
    """The negative log likelihood of the rolls."""
    rolls, _ = data
    return -log_likelihood(*model(scores, rolls))
