"""HIPS autograd."""

import autograd.numpy as np
import numpy
from autograd import grad
from autograd.differential_operators import make_jvp, make_vjp
from autograd.scipy.special import logsumexp
from scipy.special import multigammaln

from peers.shared import csr, runge_kutta


def gmm_objective(alpha, mu, q, lower, x, gamma, m):
    (n, d), k = x.shape, len(alpha)
    row, column = numpy.tril_indices(d, -1)
    order = numpy.lexsort((row, column))
    # autograd has no assignment: the triangle is a product with a constant that places its entries.
    place = numpy.zeros((d * (d - 1) // 2, d * d))
    place[numpy.arange(len(row)), (row * d + column)[order]] = 1.0
    factors = np.reshape(np.dot(lower, place), (k, d, d)) + np.exp(q)[:, :, None] * numpy.eye(d)
    whitened = np.matmul(x, np.swapaxes(factors, 1, 2)) - np.swapaxes(np.matmul(factors, mu[:, :, None]), 1, 2)
    beta = (alpha + np.sum(q, axis=1))[:, None] - 0.5 * np.sum(whitened**2, axis=2)
    likelihood = np.sum(logsumexp(beta, axis=0)) - n * (0.5 * d * numpy.log(2 * numpy.pi) + logsumexp(alpha))
    freedom = d + m + 1
    constant = freedom * d * numpy.log(gamma / numpy.sqrt(2)) - multigammaln(0.5 * freedom, d)
    return likelihood + k * constant - 0.5 * gamma**2 * np.sum(factors**2) + m * np.sum(q)


def gmm(alpha, mu, q, lower, *rest):
    gradient = grad(lambda p: gmm_objective(*p, *rest))((alpha, mu, q, lower))
    return dict(zip(("alpha", "mu", "q", "l"), gradient, strict=True))


def cross(a, b):
    return np.stack([
        a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1], a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
        a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
    ], axis=1)  # fmt: skip


def reprojection_errors(block, features):
    """The errors of observations; a row of `block` is a camera, a point and a weight."""
    rotation, centre, radial = block[:, :3], block[:, 3:6], block[:, 9:11]
    angle = np.sqrt(np.sum(rotation**2, axis=1, keepdims=True))
    axis, point = rotation / angle, block[:, 11:14] - centre
    along = np.sum(axis * point, axis=1, keepdims=True) * (1 - np.cos(angle))
    seen = point * np.cos(angle) + cross(axis, point) * np.sin(angle) + axis * along
    image = seen[:, :2] / seen[:, 2:]
    square = np.sum(image**2, axis=1, keepdims=True)
    distortion = 1 + radial[:, :1] * square + radial[:, 1:] * square**2
    return block[:, 14:] * (image * distortion * block[:, 6:7] + block[:, 7:9] - features)


def ba(cameras, points, weights, features, camera, point):
    block = numpy.column_stack([cameras[camera], points[point], weights])
    pullback, _ = make_vjp(lambda b: reprojection_errors(b, features))(block)
    rows = [pullback(numpy.tile(unit, (len(weights), 1))) for unit in numpy.eye(2)]
    return csr(rows, -2 * weights, cameras, points, camera, point)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_objective(main, extra, state, sequence):
    bits = sequence.shape[1]
    weights, biases = np.reshape(main[::2], (-1, 4, bits)), np.reshape(main[1::2], (-1, 4, bits))
    states = list(zip(state[::2], state[1::2], strict=True))
    loss = 0.0
    for now, after in zip(sequence[:-1], sequence[1:], strict=True):
        x = now * extra[0]
        for i, (hidden, cell) in enumerate(states):
            w, b = weights[i], biases[i]
            cell = cell * sigmoid(x * w[0] + b[0]) + sigmoid(hidden * w[1] + b[1]) * np.tanh(hidden * w[3] + b[3])
            x = sigmoid(x * w[2] + b[2]) * np.tanh(cell)
            states[i] = x, cell
        prediction = x * extra[1] + extra[2]
        loss = loss - np.sum(after * (prediction - np.log(2 + np.sum(np.exp(prediction)))))
    return loss / ((len(sequence) - 1) * bits)


def lstm(main, extra, state, sequence):
    parts = grad(lambda p: lstm_objective(*p, state, sequence))((main, extra))
    return np.concatenate([part.ravel() for part in parts])


def kmeans(points, centroids):
    def cost(c):
        squares = np.sum(points**2, axis=1)[:, None] + np.sum(c**2, axis=1)
        return np.sum(np.min(squares - 2 * np.dot(points, c.T), axis=1))

    gradient = grad(cost)
    ones = numpy.ones(centroids.shape)
    return gradient(centroids) / grad(lambda c: np.sum(gradient(c) * ones))(centroids)


def llsq(x, n):
    t = numpy.linspace(-1, 1, n)
    powers = numpy.vander(t, len(x), increasing=True)
    return grad(lambda x: 0.5 * np.sum((numpy.sign(t) - np.dot(powers, x)) ** 2))(x)


def lse(x):
    def objective(x):
        top = np.max(x)
        return top + np.log(np.sum(np.exp(x - top)))

    return grad(objective)(x)


def ode(x, s):
    def last(x):
        def slope(y):
            return x * np.concatenate([numpy.ones(1), y[:-1]])

        y, h = numpy.zeros(len(x)), 2.0 / s
        for _ in range(s):
            y = runge_kutta(slope, y, h)
        return y[-1]

    return grad(last)(x)


def det(matrix):
    def minors(a, columns):
        size = columns.shape[-1]
        row = a[-size][columns]
        if size == 1:
            return row[..., 0]
        others = numpy.nonzero(~numpy.eye(size, dtype=bool))[1].reshape(size, size - 1)
        return np.sum((-1.0) ** numpy.arange(size) * row * minors(a, columns[..., others]), axis=-1)

    return np.ravel(grad(lambda a: minors(a, numpy.arange(len(a))))(matrix))


def descend(f, gradient, x):
    """The suite's gradient descent."""
    value, slope, step, successes = f(x), gradient(x), 1e-5, 0
    while np.sqrt(np.sum(slope**2)) > 1e-5:
        if successes == 10:
            step, successes = 2 * step, 0
        following = x - step * slope
        if np.sqrt(np.sum((x - following) ** 2)) <= 1e-5:
            break
        there = f(following)
        if there < value:
            x, value, slope, successes = following, there, gradient(following), successes + 1
        else:
            step, successes = step / 2, 0
    return x


def forward_gradient(f):
    return lambda x: numpy.array([make_jvp(f)(x)(unit)[1] for unit in numpy.eye(len(x))])


GRADIENT = {"f": forward_gradient, "r": grad}


def saddle(outer, inner):
    def found(start):
        start = numpy.array(start)

        def height(x, y):
            return np.sum(x**2) - np.sum(y**2)

        def lowest(x):
            down = lambda y: -height(x, y)  # noqa: E731
            return descend(down, GRADIENT[inner](down), start)

        def highest(x):
            return height(x, lowest(x))

        x = descend(highest, GRADIENT[outer](highest), start)
        return numpy.concatenate([x, lowest(x)])

    return found


def particle(outer, inner):
    def miss(ws):
        def potential(place):
            x, y = place[0], place[1]
            return 1 / np.sqrt((x - 10) ** 2 + (y - 10 + ws[0]) ** 2) + 1 / np.sqrt((x - 10) ** 2 + y**2)

        acceleration = GRADIENT[inner](potential)
        place, speed = numpy.array([0.0, 8.0]), numpy.array([0.75, 0.0])
        while place[1] + 0.1 * speed[1] > 0:
            place, speed = place + 0.1 * speed, speed - 0.1 * acceleration(place)
        return (place[0] - place[1] / speed[1] * speed[0]) ** 2

    return lambda w: descend(miss, GRADIENT[outer](miss), numpy.array([w]))[0]


PROGRAMS = {
    "hello": grad(lambda x: x * x), "gmm": gmm, "ba": ba, "lstm": lstm, "kmeans": kmeans, "llsq": llsq, "lse": lse,
    "ode": ode, "det": det, "saddle": {"rr": saddle("r", "r"), "fr": saddle("f", "r")},
    "particle": {"rr": particle("r", "r")},
}  # fmt: skip


def program(name, workload):
    found = PROGRAMS.get(name)
    return found.get(workload) if isinstance(found, dict) else found


def prepare(arguments):
    return arguments


def finished(output):
    return output


def plain(output):
    return output
