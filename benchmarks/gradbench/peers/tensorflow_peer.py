"""TensorFlow, eager."""

import math

import numpy
import tensorflow as tf
from scipy.special import multigammaln
from tensorflow.autodiff import ForwardAccumulator

from peers.shared import as_arrays, as_tensors, csr, runge_kutta

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


def gradient(f, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = f(*inputs)
    return tape.gradient(output, inputs)


def pushforward(f, x, tangent):
    with ForwardAccumulator(x, tangent) as accumulator:
        output = f(x)
    return accumulator.jvp(output)


def gmm(alpha, mu, q, lower, x, gamma, m):
    (n, d), k = x.shape, len(alpha)
    column, row = numpy.triu_indices(d, 1)
    source = numpy.full((d, d), len(row))
    source[row, column] = numpy.arange(len(row))

    def objective(alpha, mu, q, lower):
        below = tf.gather(tf.pad(lower, [[0, 0], [0, 1]]), source, axis=1)
        factors = tf.linalg.set_diag(below, tf.exp(q))
        whitened = tf.matmul(x, factors, transpose_b=True) - tf.linalg.matrix_transpose(factors @ mu[:, :, None])
        beta = (alpha + tf.reduce_sum(q, 1))[:, None] - 0.5 * tf.reduce_sum(whitened**2, 2)
        likelihood = tf.reduce_sum(tf.reduce_logsumexp(beta, 0))
        likelihood -= n * (0.5 * d * math.log(2 * math.pi) + tf.reduce_logsumexp(alpha))
        freedom = d + m + 1
        constant = freedom * d * math.log(gamma / math.sqrt(2)) - multigammaln(0.5 * freedom, d)
        return likelihood + k * constant - 0.5 * gamma**2 * tf.reduce_sum(factors**2) + m * tf.reduce_sum(q)

    return dict(zip(("alpha", "mu", "q", "l"), gradient(objective, alpha, mu, q, lower), strict=True))


def reprojection_errors(block, features):
    """The errors of observations; a row of `block` is a camera, a point and a weight."""
    rotation, centre, radial = block[:, :3], block[:, 3:6], block[:, 9:11]
    angle = tf.norm(rotation, axis=1, keepdims=True)
    axis, point = rotation / angle, block[:, 11:14] - centre
    along = tf.reduce_sum(axis * point, 1, keepdims=True) * (1 - tf.cos(angle))
    seen = point * tf.cos(angle) + tf.linalg.cross(axis, point) * tf.sin(angle) + axis * along
    image = seen[:, :2] / seen[:, 2:]
    square = tf.reduce_sum(image**2, 1, keepdims=True)
    distortion = 1 + radial[:, :1] * square + radial[:, 1:] * square**2
    return block[:, 14:] * (image * distortion * block[:, 6:7] + block[:, 7:9] - features)


def ba(cameras, points, weights, features, camera, point):
    block = tf.concat([tf.gather(cameras, camera), tf.gather(points, point), weights[:, None]], 1)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(block)
        errors = reprojection_errors(block, features)
    units = [tf.broadcast_to(unit, errors.shape) for unit in tf.eye(2, dtype=tf.float64)]
    rows = [tape.gradient(errors, block, unit).numpy() for unit in units]
    return csr(rows, -2 * weights.numpy(), cameras, points, camera.numpy(), point.numpy())


def lstm(main, extra, state, sequence):
    bits = sequence.shape[1]

    def objective(main, extra):
        weights, biases = (tf.unstack(tf.reshape(main[i::2], (-1, 4, bits))) for i in (0, 1))
        states = list(zip(tf.unstack(state[::2]), tf.unstack(state[1::2]), strict=True))
        loss = tf.constant(0.0, tf.float64)
        rows = tf.unstack(sequence)
        for now, after in zip(rows[:-1], rows[1:], strict=True):
            x = now * extra[0]
            for i, (hidden, cell) in enumerate(states):
                w, b = weights[i], biases[i]
                forget, outgate = tf.sigmoid(x * w[0] + b[0]), tf.sigmoid(x * w[2] + b[2])
                cell = cell * forget + tf.sigmoid(hidden * w[1] + b[1]) * tf.tanh(hidden * w[3] + b[3])
                x = outgate * tf.tanh(cell)
                states[i] = x, cell
            prediction = x * extra[1] + extra[2]
            loss -= tf.reduce_sum(after * (prediction - tf.math.log(2 + tf.reduce_sum(tf.exp(prediction)))))
        return loss / ((len(rows) - 1) * bits)

    return tf.concat([tf.reshape(part, [-1]) for part in gradient(objective, main, extra)], 0)


def ht(theta, us, model, points, corners):
    parents, relative, inverse_absolute, positions, weights, mirror = model
    bone = 4 * numpy.arange(5)[:, None] + numpy.arange(2, 5)
    count, double = len(parents), tf.float64

    def turned(vector):
        angle = tf.norm(vector)
        x, y, z = tf.unstack(vector / angle)
        zero = tf.zeros((), double)
        cross = tf.reshape(tf.stack([zero, -z, y, z, zero, -x, -y, x, zero]), (3, 3))
        outer = (vector / angle)[:, None] * (vector / angle)
        return tf.cos(angle) * tf.eye(3, dtype=double) + tf.sin(angle) * cross + (1 - tf.cos(angle)) * outer

    def errors(theta, us):
        angles = tf.reshape(theta[6:], (5, 4))
        x = tf.scatter_nd(bone.reshape(-1, 1), tf.reshape(tf.gather(angles, [0, 2, 3], axis=1), [-1]), [count])
        z = tf.scatter_nd(bone[:, :1], angles[:, 1], [count])
        sin, cos = tf.sin, tf.cos
        rows = [cos(z), -sin(z) * cos(x), sin(z) * sin(x), sin(z), cos(z) * cos(x), -cos(z) * sin(x),
                tf.zeros_like(x), sin(x), cos(x)]  # fmt: skip
        bends = tf.reshape(tf.stack(rows, 1), (-1, 3, 3))
        bent = tf.unstack(tf.concat([relative[:, :, :3] @ bends, relative[:, :, 3:]], 2))
        absolute = []
        for parent, one in zip(parents, bent, strict=True):
            absolute.append(one if parent < 0 else absolute[parent] @ one)
        transforms = tf.stack(absolute) @ inverse_absolute
        hand = tf.einsum("vb,vj,bij->vi", weights, positions, transforms[:, :3], optimize="optimal")
        hand = tf.matmul(hand * mirror, turned(theta[:3]), transpose_b=True) + theta[3:6]
        u, v = us[:, :1], us[:, 1:]
        a, b, c = (tf.gather(hand, corners[:, i]) for i in range(3))
        return tf.reshape(points - (u * a + v * b + (1 - u - v) * c), [-1])

    units = [tf.broadcast_to(unit, us.shape) for unit in tf.eye(2, dtype=double)]
    columns = [pushforward(lambda u: errors(theta, u), us, unit) for unit in units]
    columns += [pushforward(lambda t: errors(t, us), theta, unit) for unit in tf.eye(len(theta), dtype=double)]
    return tf.stack(columns, 1)


def kmeans(points, centroids):
    def cost(c):
        squares = tf.reduce_sum(points**2, 1)[:, None] + tf.reduce_sum(c**2, 1)
        return tf.reduce_sum(tf.reduce_min(squares - 2 * tf.matmul(points, c, transpose_b=True), 1))

    with tf.GradientTape() as tape:
        tape.watch(centroids)
        (first,) = gradient(cost, centroids)
    return first / tape.gradient(first, centroids)


def llsq(x, n):
    t = tf.linspace(tf.constant(-1.0, tf.float64), 1.0, n)
    powers = tf.pow(t[:, None], tf.range(len(x), dtype=tf.float64))
    return gradient(lambda x: 0.5 * tf.reduce_sum((tf.sign(t) - tf.linalg.matvec(powers, x)) ** 2), x)[0]


def lse(x):
    def objective(x):
        top = tf.reduce_max(x)
        return top + tf.math.log(tf.reduce_sum(tf.exp(x - top)))

    return gradient(objective, x)[0]


def ode(x, s):
    def last(x):
        def slope(y):
            return x * tf.concat([tf.ones(1, tf.float64), y[:-1]], 0)

        y, h = tf.zeros(len(x), tf.float64), 2.0 / s
        for _ in range(s):
            y = runge_kutta(slope, y, h)
        return y[-1]

    return gradient(last, x)[0]


def det(matrix):
    def minors(a, columns):
        size = columns.shape[-1]
        row = tf.gather(a[-size], columns)
        if size == 1:
            return row[..., 0]
        others = numpy.nonzero(~numpy.eye(size, dtype=bool))[1].reshape(size, size - 1)
        signs = (-1.0) ** numpy.arange(size)
        return tf.reduce_sum(signs * row * minors(a, columns[..., others]), -1)

    return tf.reshape(gradient(lambda a: minors(a, numpy.arange(len(a))), matrix)[0], [-1])


PROGRAMS = {
    "hello": lambda x: gradient(lambda x: x * x, x)[0], "gmm": gmm, "ba": ba, "lstm": lstm, "ht": ht, "kmeans": kmeans,
    "llsq": llsq, "lse": lse, "ode": ode, "det": det,
}  # fmt: skip


def program(name, workload):
    return PROGRAMS.get(name)


def prepare(arguments):
    return as_tensors(arguments, tf.constant)


def finished(output):
    return output


def plain(output):
    def array(leaf):
        leaf = tf.convert_to_tensor(leaf) if isinstance(leaf, tf.IndexedSlices) else leaf
        return leaf.numpy() if isinstance(leaf, tf.Tensor) else leaf

    return as_arrays(output, array)
