"""A network of long short-term memory with diagonal weights, that predicts the next character of a text.

Each layer has two rows of parameters, weights and biases, and two rows of state, hidden and cell. In a row of
parameters there are those of the forget, input and output gates and of the change, one after another. The loss is the
mean negative log likelihood of the bits of each character, and the gradient is with respect to all parameters.
"""

import numpy as np

from effgrad import grad
from effgrad_gradbench.fields import BadInput, array


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer(weight, bias, hidden, cell, x):
    forget = sigmoid(x * weight[0] + bias[0])
    ingate = sigmoid(hidden * weight[1] + bias[1])
    outgate = sigmoid(x * weight[2] + bias[2])
    change = np.tanh(hidden * weight[3] + bias[3])
    cell = cell * forget + ingate * change
    return outgate * np.tanh(cell), cell


def objective(main, extra, state, sequence):
    characters, bits = sequence.shape
    weights, biases = main[::2].reshape(-1, 4, bits), main[1::2].reshape(-1, 4, bits)

    states, loss = list(zip(state[::2], state[1::2], strict=True)), 0.0
    for now, after in zip(sequence[:-1], sequence[1:], strict=True):
        x, following = now * extra[0], []
        for i, (hidden, cell) in enumerate(states):
            x, cell = layer(weights[i], biases[i], hidden, cell, x)
            following.append((x, cell))
        states = following
        prediction = x * extra[1] + extra[2]
        loss -= np.sum(after * (prediction - np.log(2 + np.sum(np.exp(prediction)))))
    return loss / ((characters - 1) * bits)


def gradient(objective):
    def jacobian(main, extra, state, sequence):
        parts = grad(objective, (0, 1))(main, extra, state, sequence)
        return np.concatenate([part.ravel() for part in parts])

    return jacobian


FUNCTIONS = {"objective": objective, "jacobian": gradient(objective)}


def read(source):
    sequence = array(source, "sequence", None, None)
    if len(sequence) < 2:
        raise BadInput("sequence has one character; there is none to predict")
    bits = sequence.shape[1]
    main = array(source, "main_params", None, 4 * bits)
    if len(main) % 2:
        raise BadInput(f"main_params has {len(main)} rows; each layer has two")
    return main, array(source, "extra_params", 3, bits), array(source, "state", len(main), bits), sequence
