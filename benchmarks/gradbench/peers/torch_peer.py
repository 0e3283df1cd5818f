"""PyTorch, eager."""

import math

import torch

from peers.shared import as_arrays, as_tensors, csr, runge_kutta

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def gradient(f, *inputs):
    inputs = [x.detach().requires_grad_() for x in inputs]
    return torch.autograd.grad(f(*inputs), inputs)


def gmm(alpha, mu, q, lower, x, gamma, m):
    (n, d), k = x.shape, len(alpha)
    column, row = torch.triu_indices(d, d, 1)

    def objective(alpha, mu, q, lower):
        factors = torch.diag_embed(torch.exp(q))
        factors[:, row, column] = lower
        whitened = x @ factors.mT - (factors @ mu[:, :, None]).mT
        beta = (alpha + q.sum(1))[:, None] - 0.5 * (whitened**2).sum(2)
        likelihood = torch.logsumexp(beta, 0).sum() - n * (0.5 * d * math.log(2 * math.pi) + torch.logsumexp(alpha, 0))
        freedom = d + m + 1
        constant = freedom * d * math.log(gamma / math.sqrt(2)) - torch.special.multigammaln(
            torch.tensor(0.5 * freedom), d
        )
        return likelihood + k * constant - 0.5 * gamma**2 * (factors**2).sum() + m * q.sum()

    return dict(zip(("alpha", "mu", "q", "l"), gradient(objective, alpha, mu, q, lower), strict=True))


def reprojection_errors(block, features):
    """The errors of observations; a row of `block` is a camera, a point and a weight."""
    rotation, centre, radial = block[:, :3], block[:, 3:6], block[:, 9:11]
    angle = rotation.norm(dim=1, keepdim=True)
    axis, point = rotation / angle, block[:, 11:14] - centre
    along = (axis * point).sum(1, keepdim=True) * (1 - angle.cos())
    seen = point * angle.cos() + torch.linalg.cross(axis, point) * angle.sin() + axis * along
    image = seen[:, :2] / seen[:, 2:]
    square = (image**2).sum(1, keepdim=True)
    distortion = 1 + radial[:, :1] * square + radial[:, 1:] * square**2
    return block[:, 14:] * (image * distortion * block[:, 6:7] + block[:, 7:9] - features)


def ba(cameras, points, weights, features, camera, point):
    block = torch.column_stack([cameras[camera], points[point], weights]).requires_grad_()
    errors = reprojection_errors(block, features)
    rows = [
        torch.autograd.grad(errors, block, unit.expand(len(weights), 2), retain_graph=True)[0].numpy()
        for unit in torch.eye(2)
    ]
    return csr(rows, -2 * weights.numpy(), cameras, points, camera.numpy(), point.numpy())


def lstm(main, extra, state, sequence):
    bits = sequence.shape[1]

    def objective(main, extra):
        weights, biases = main[::2].reshape(-1, 4, bits), main[1::2].reshape(-1, 4, bits)
        states = list(zip(state[::2], state[1::2], strict=True))
        loss = torch.zeros(())
        for now, after in zip(sequence[:-1], sequence[1:], strict=True):
            x = now * extra[0]
            for i, (hidden, cell) in enumerate(states):
                w, b = weights[i], biases[i]
                forget, outgate = torch.sigmoid(x * w[0] + b[0]), torch.sigmoid(x * w[2] + b[2])
                cell = cell * forget + torch.sigmoid(hidden * w[1] + b[1]) * torch.tanh(hidden * w[3] + b[3])
                x = outgate * torch.tanh(cell)
                states[i] = x, cell
            prediction = x * extra[1] + extra[2]
            loss = loss - (after * (prediction - torch.log(2 + torch.exp(prediction).sum()))).sum()
        return loss / ((len(sequence) - 1) * bits)

    return torch.cat([part.ravel() for part in gradient(objective, main, extra)])


def ht(theta, us, model, points, corners):
    parents, relative, inverse_absolute, positions, weights, mirror = model
    bone = 4 * torch.arange(5)[:, None] + torch.arange(2, 5)

    def turned(vector):
        angle = vector.norm()
        x, y, z = axis = vector / angle
        zero = torch.zeros(())
        cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
        return angle.cos() * torch.eye(3) + angle.sin() * cross + (1 - angle.cos()) * torch.outer(axis, axis)

    def errors(theta, us):
        angles = theta[6:].reshape(5, 4)
        x = torch.zeros(len(parents)).index_put((bone,), angles[:, [0, 2, 3]])
        z = torch.zeros(len(parents)).index_put((bone[:, 0],), angles[:, 1])
        bends = torch.stack([
            z.cos(), -z.sin() * x.cos(), z.sin() * x.sin(), z.sin(), z.cos() * x.cos(), -z.cos() * x.sin(),
            torch.zeros_like(x), x.sin(), x.cos(),
        ], 1).reshape(-1, 3, 3)  # fmt: skip
        bent = torch.cat([relative[:, :, :3] @ bends, relative[:, :, 3:]], 2)
        absolute = []
        for parent, one in zip(parents, bent, strict=True):
            absolute.append(one if parent < 0 else absolute[parent] @ one)
        transforms = torch.stack(absolute) @ inverse_absolute
        hand = torch.einsum("vb,vj,bij->vi", weights, positions, transforms[:, :3])
        hand = (hand * mirror) @ turned(theta[:3]).T + theta[3:6]
        u, v = us[:, :1], us[:, 1:]
        a, b, c = hand[corners[:, 0]], hand[corners[:, 1]], hand[corners[:, 2]]
        return (points - (u * a + v * b + (1 - u - v) * c)).ravel()

    columns = [torch.func.jvp(lambda u: errors(theta, u), (us,), (unit.expand_as(us),))[1] for unit in torch.eye(2)]
    return torch.column_stack([*columns, torch.func.jacfwd(errors)(theta, us)])


def kmeans(points, centroids):
    centroids = centroids.requires_grad_()
    squares = (points**2).sum(1)[:, None] + (centroids**2).sum(1)
    cost = (squares - 2 * points @ centroids.T).min(1).values.sum()
    (first,) = torch.autograd.grad(cost, centroids, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), centroids)
    return first / second


def llsq(x, n):
    t = torch.linspace(-1, 1, n)
    powers = torch.vander(t, len(x), increasing=True)
    return gradient(lambda x: 0.5 * ((torch.sign(t) - powers @ x) ** 2).sum(), x)[0]


def lse(x):
    def objective(x):
        top = x.max()
        return top + (x - top).exp().sum().log()

    return gradient(objective, x)[0]


def ode(x, s):
    def last(x):
        def slope(y):
            return x * torch.cat([torch.ones(1), y[:-1]])

        y, h = torch.zeros(len(x)), 2.0 / s
        for _ in range(s):
            y = runge_kutta(slope, y, h)
        return y[-1]

    return gradient(last, x)[0]


def det(matrix):
    def minors(a, columns):
        size = columns.shape[-1]
        row = a[-size][columns]
        if size == 1:
            return row[..., 0]
        others = torch.nonzero(~torch.eye(size, dtype=bool))[:, 1].reshape(size, size - 1)
        return ((-1.0) ** torch.arange(size) * row * minors(a, columns[..., others])).sum(-1)

    return gradient(lambda a: minors(a, torch.arange(len(a))), matrix)[0].ravel()


def saddle(start):
    start = torch.tensor(start)

    def height(x, y):
        return (x**2).sum() - (y**2).sum()

    def slope_of(f, create_graph):
        def slope(x):
            x = x if x.requires_grad else x.detach().requires_grad_()
            return torch.autograd.grad(f(x), x, create_graph=create_graph)[0]

        return slope

    def descend(f, slope, x):
        value, direction, step, successes = f(x), slope(x), 1e-5, 0
        while direction.norm() > 1e-5:
            if successes == 10:
                step, successes = 2 * step, 0
            following = x - step * direction
            if (x - following).norm() <= 1e-5:
                break
            there = f(following)
            if there < value:
                x, value, direction, successes = following, there, slope(following), successes + 1
            else:
                step, successes = step / 2, 0
        return x

    def lowest(x):
        down = lambda y: -height(x, y)  # noqa: E731
        return descend(down, slope_of(down, x.requires_grad), start)

    def highest(x):
        return height(x, lowest(x))

    x = descend(highest, slope_of(highest, False), start).detach()
    return torch.cat([x, lowest(x)])


PROGRAMS = {
    "hello": lambda x: gradient(lambda x: x * x, x)[0], "gmm": gmm, "ba": ba, "lstm": lstm, "ht": ht, "kmeans": kmeans,
    "llsq": llsq, "lse": lse, "ode": ode, "det": det, "saddle": {"rr": saddle},
}  # fmt: skip


def program(name, workload):
    found = PROGRAMS.get(name)
    return found.get(workload) if isinstance(found, dict) else found


def prepare(arguments):
    return as_tensors(arguments, torch.as_tensor)


def finished(output):
    return output


def plain(output):
    return as_arrays(output, lambda leaf: leaf.detach().numpy() if isinstance(leaf, torch.Tensor) else leaf)
