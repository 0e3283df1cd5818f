"""JAX on the processor, with jit: compiled for the shapes of its arguments, timed until the result is there."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jax.scipy.special import logsumexp
from scipy.special import multigammaln

from peers.shared import csr, runge_kutta

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


@functools.partial(jax.jit, static_argnums=(5, 6))
def gmm(alpha, mu, q, lower, x, gamma, m):
    (n, d), k = x.shape, len(alpha)
    column, row = numpy.triu_indices(d, 1)

    def objective(alpha, mu, q, lower):
        diagonal = jnp.arange(d)
        factors = jnp.zeros((k, d, d)).at[:, row, column].set(lower).at[:, diagonal, diagonal].set(jnp.exp(q))
        whitened = x @ factors.mT - (factors @ mu[:, :, None]).mT
        beta = (alpha + q.sum(1))[:, None] - 0.5 * (whitened**2).sum(2)
        likelihood = logsumexp(beta, axis=0).sum() - n * (0.5 * d * math.log(2 * math.pi) + logsumexp(alpha))
        freedom = d + m + 1
        constant = freedom * d * math.log(gamma / math.sqrt(2)) - multigammaln(0.5 * freedom, d)
        return likelihood + k * constant - 0.5 * gamma**2 * (factors**2).sum() + m * q.sum()

    return dict(zip(("alpha", "mu", "q", "l"), jax.grad(objective, (0, 1, 2, 3))(alpha, mu, q, lower), strict=True))


def reprojection_error(row, features):
    """The errors of one observation; a row is a camera, a point and a weight."""
    rotation, centre, focal, principal, radial = row[:3], row[3:6], row[6], row[7:9], row[9:11]
    angle = jnp.linalg.norm(rotation)
    axis, point = rotation / angle, row[11:14] - centre
    along = (axis @ point) * (1 - jnp.cos(angle))
    seen = point * jnp.cos(angle) + jnp.cross(axis, point) * jnp.sin(angle) + axis * along
    image = seen[:2] / seen[2]
    square = image @ image
    return row[14] * (image * (1 + radial[0] * square + radial[1] * square**2) * focal + principal - features)


@jax.jit
def blocks(cameras, points, weights, features, camera, point):
    rows = jnp.column_stack([cameras[camera], points[point], weights])
    return jax.vmap(jax.jacrev(reprojection_error))(rows, features)


def ba(cameras, points, weights, features, camera, point):
    block = numpy.asarray(blocks(cameras, points, weights, features, camera, point))
    rows = block[:, 0], block[:, 1]
    return csr(rows, -2 * numpy.asarray(weights), cameras, points, numpy.asarray(camera), numpy.asarray(point))


@jax.jit
def lstm(main, extra, state, sequence):
    bits = sequence.shape[1]

    def objective(main, extra):
        weights, biases = main[::2].reshape(-1, 4, bits), main[1::2].reshape(-1, 4, bits)

        def step(states, pair):
            now, after = pair
            x, new = now * extra[0], []
            for w, b, (hidden, cell) in zip(weights, biases, states, strict=True):
                forget, outgate = jax.nn.sigmoid(x * w[0] + b[0]), jax.nn.sigmoid(x * w[2] + b[2])
                cell = cell * forget + jax.nn.sigmoid(hidden * w[1] + b[1]) * jnp.tanh(hidden * w[3] + b[3])
                x = outgate * jnp.tanh(cell)
                new.append((x, cell))
            prediction = x * extra[1] + extra[2]
            return new, -(after * (prediction - jnp.log(2 + jnp.exp(prediction).sum()))).sum()

        start = list(zip(state[::2], state[1::2], strict=True))
        losses = lax.scan(step, start, (sequence[:-1], sequence[1:]))[1]
        return losses.sum() / ((len(sequence) - 1) * bits)

    return jnp.concatenate([part.ravel() for part in jax.grad(objective, (0, 1))(main, extra)])


@functools.partial(jax.jit, static_argnums=0)
def tracked(parents, theta, us, model, points, corners):
    relative, inverse_absolute, positions, weights, mirror = model
    bone = 4 * numpy.arange(5)[:, None] + numpy.arange(2, 5)

    def turned(vector):
        angle = jnp.linalg.norm(vector)
        x, y, z = axis = vector / angle
        cross = jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return jnp.cos(angle) * jnp.eye(3) + jnp.sin(angle) * cross + (1 - jnp.cos(angle)) * jnp.outer(axis, axis)

    def errors(theta, us):
        angles = theta[6:].reshape(5, 4)
        x = jnp.zeros(len(parents)).at[bone].set(angles[:, jnp.array([0, 2, 3])])
        z = jnp.zeros(len(parents)).at[bone[:, 0]].set(angles[:, 1])
        bends = jnp.moveaxis(jnp.array([
            [jnp.cos(z), -jnp.sin(z) * jnp.cos(x), jnp.sin(z) * jnp.sin(x)],
            [jnp.sin(z), jnp.cos(z) * jnp.cos(x), -jnp.cos(z) * jnp.sin(x)],
            [jnp.zeros_like(x), jnp.sin(x), jnp.cos(x)],
        ]), 2, 0)  # fmt: skip
        bent = jnp.concatenate([relative[:, :, :3] @ bends, relative[:, :, 3:]], 2)
        absolute = []
        for parent, one in zip(parents, bent, strict=True):
            absolute.append(one if parent < 0 else absolute[parent] @ one)
        transforms = jnp.stack(absolute) @ inverse_absolute
        hand = jnp.einsum("vb,vj,bij->vi", weights, positions, transforms[:, :3], optimize=True)
        hand = (hand * mirror) @ turned(theta[:3]).T + theta[3:6]
        u, v = us[:, :1], us[:, 1:]
        a, b, c = hand[corners[:, 0]], hand[corners[:, 1]], hand[corners[:, 2]]
        return (points - (u * a + v * b + (1 - u - v) * c)).ravel()

    units = [jnp.broadcast_to(unit, us.shape) for unit in jnp.eye(2)]
    columns = [jax.jvp(lambda u: errors(theta, u), (us,), (unit,))[1] for unit in units]
    return jnp.column_stack([*columns, jax.jacfwd(errors)(theta, us)])


def ht(theta, us, model, points, corners):
    return tracked(model[0], theta, us, model[1:], points, corners)


@jax.jit
def kmeans(points, centroids):
    def cost(c):
        squares = (points**2).sum(1)[:, None] + (c**2).sum(1)
        return (squares - 2 * points @ c.T).min(1).sum()

    first, second = jax.jvp(jax.grad(cost), (centroids,), (jnp.ones_like(centroids),))
    return first / second


@functools.partial(jax.jit, static_argnums=1)
def llsq(x, n):
    t = jnp.linspace(-1, 1, n)

    def objective(x):
        return 0.5 * ((jnp.sign(t) - jnp.polyval(x[::-1], t)) ** 2).sum()

    return jax.grad(objective)(x)


@jax.jit
def lse(x):
    def objective(x):
        top = x.max()
        return top + jnp.log(jnp.exp(x - top).sum())

    return jax.grad(objective)(x)


@functools.partial(jax.jit, static_argnums=1)
def ode(x, s):
    def last(x):
        def slope(y):
            return x * jnp.concatenate([jnp.ones(1), y[:-1]])

        def step(y, _):
            return runge_kutta(slope, y, 2.0 / s), None

        return lax.scan(step, jnp.zeros(len(x)), None, length=s)[0][-1]

    return jax.grad(last)(x)


@jax.jit
def det(matrix):
    def minors(a, columns):
        size = columns.shape[-1]
        row = a[-size][columns]
        if size == 1:
            return row[..., 0]
        others = numpy.nonzero(~numpy.eye(size, dtype=bool))[1].reshape(size, size - 1)
        return ((-1.0) ** numpy.arange(size) * row * minors(a, columns[..., others])).sum(-1)

    return jax.grad(lambda a: minors(a, numpy.arange(len(a))))(matrix).ravel()


GRADIENT = {"f": jax.jacfwd, "r": jax.grad}


def descend(f, slope, start):
    """The suite's gradient descent, as a loop that JAX differentiates forward only."""

    def going(state):
        x, _, direction, _, _, moved = state
        return moved & (jnp.sqrt((direction**2).sum()) > 1e-5)

    def step(state):
        x, value, direction, size, successes, _ = state
        size, successes = jnp.where(successes == 10, 2 * size, size), jnp.where(successes == 10, 0, successes)
        following = x - size * direction
        moved = jnp.sqrt(((x - following) ** 2).sum()) > 1e-5
        there = f(following)
        better = moved & (there < value)
        return (
            jnp.where(better, following, x), jnp.where(better, there, value),
            lax.cond(better, lambda: slope(following), lambda: direction),
            jnp.where(better | ~moved, size, size / 2), jnp.where(better, successes + 1, 0), moved,
        )  # fmt: skip

    return lax.while_loop(going, step, (start, f(start), slope(start), 1e-5, 0, True))[0]


def particle(outer, inner):
    def miss(ws):
        charges = (10.0, 10.0 - ws[0]), (10.0, 0.0)

        def potential(place):
            return sum(1 / jnp.sqrt((place[0] - a) ** 2 + (place[1] - b) ** 2) for a, b in charges)

        acceleration = GRADIENT[inner](potential)

        def step(state):
            place, speed = state
            return place + 0.1 * speed, speed - 0.1 * acceleration(place)

        above = lambda state: state[0][1] + 0.1 * state[1][1] > 0  # noqa: E731
        start = jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0])
        if outer == "r":  # a loop of unknown length has no reverse mode: as many steps as there may be, most of them
            place, speed = lax.scan(lambda s, _: (lax.cond(above(s), step, lambda s: s, s), None), start, length=500)[0]
        else:
            place, speed = lax.while_loop(above, step, start)
        return (place[0] - place[1] / speed[1] * speed[0]) ** 2

    return jax.jit(lambda w: descend(miss, GRADIENT[outer](miss), jnp.array([w]))[0])


def saddle(outer, inner):
    def height(x, y):
        return (x**2).sum() - (y**2).sum()

    @jax.jit
    def found(start):
        start = jnp.array(start)

        def lowest(x):
            down = lambda y: -height(x, y)  # noqa: E731
            return descend(down, GRADIENT[inner](down), start)

        highest = lambda x: height(x, lowest(x))  # noqa: E731
        x = descend(highest, GRADIENT[outer](highest), start)
        return jnp.concatenate([x, lowest(x)])

    return found


PROGRAMS = {
    "hello": jax.jit(jax.grad(lambda x: x * x)), "gmm": gmm, "ba": ba, "lstm": lstm, "ht": ht, "kmeans": kmeans,
    "llsq": llsq, "lse": lse, "ode": ode, "det": det,
    "particle": {outer + inner: particle(outer, inner) for outer in "rf" for inner in "rf"},
    # Its loops of unknown length have no reverse mode.
    "saddle": {"ff": saddle("f", "f"), "fr": saddle("f", "r")},
}  # fmt: skip


def program(name, workload):
    found = PROGRAMS.get(name)
    return found.get(workload) if isinstance(found, dict) else found


def prepare(arguments):
    """Arrays on the device, at any depth of tuples; numbers stay as they are."""
    if isinstance(arguments, tuple):
        return tuple(prepare(a) for a in arguments)
    return jnp.asarray(arguments) if isinstance(arguments, numpy.ndarray) else arguments


def finished(output):
    return jax.block_until_ready(output)


def plain(output):
    return jax.tree.map(numpy.asarray, output)
