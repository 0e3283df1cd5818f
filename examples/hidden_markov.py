"""A casino that changes between a fair and a loaded die: a hidden Markov model by the forward algorithm.

Everything is in log space. The parameters are one vector of scores: softmax of the first 2 is the distribution of the
first state, of the rows of the next (2, 2) the transitions, of the rows of the last (2, 6) the faces of each die.
"""

import numpy as np
from scipy.special import logsumexp


def data():
    """Three hundred rolls, 0 to 5, and the die that made each; die 1 throws a 5 half of the time."""
    random = np.random.default_rng(4)
    stay = [0.96, 0.92]
    faces = [[1 / 6] * 6, [0.1] * 5 + [0.5]]
    dice = [0]
    for _ in range(299):
        dice.append(dice[-1] if random.random() < stay[dice[-1]] else 1 - dice[-1])
    return np.array([random.choice(6, p=faces[die]) for die in dice]), np.array(dice)


def start():
    scores = 0.1 * np.random.default_rng(5).standard_normal(18)
    scores[[2, 5]] += 2.0  # dice are rarely changed
    scores[17] += 0.5  # the second die is the one with more of the last face
    return scores


def log_softmax(scores):
    return scores - logsumexp(scores, axis=-1, keepdims=True)


def model(scores):
    """The logarithms of the first state's distribution, of the transitions, and of the faces."""
    first, transitions, faces = scores[:2], scores[2:6].reshape(2, 2), scores[6:].reshape(2, 6)
    return log_softmax(first), log_softmax(transitions), log_softmax(faces)


def log_likelihood(first, transitions, evidence):
    """The forward algorithm; evidence, of shape (n, 2), is the log probability of each roll by each die."""
    forward = first + evidence[0]
    for roll in evidence[1:]:
        forward = logsumexp(forward[:, None] + transitions, axis=0) + roll
    return logsumexp(forward)


def objective(scores, data):
    """The negative log likelihood of the rolls."""
    rolls, _ = data
    first, transitions, faces = model(scores)
    return -log_likelihood(first, transitions, faces[:, rolls].T)
