"""Two pictures of one scene, laid over each other: the affine map between them, by the brightness of the pixels.

The moving picture is read between its pixels by bilinear interpolation, and blurred pictures come first, so that the
search does not stop at the nearest edge. Lucas and Kanade 1981.
"""

import numpy as np
from scipy.ndimage import gaussian_filter

SIZE = 48
TRUTH = np.array([1.08, 0.17, -0.14, 0.94, 2.6, -3.2])  # a matrix by rows, then a shift in pixels


def sample(image, rows, columns):
    """The picture at positions between its pixels; at its edge outside."""
    rows, columns = np.clip(rows, 0.0, SIZE - 1.001), np.clip(columns, 0.0, SIZE - 1.001)
    i, j = np.floor(rows).astype(int), np.floor(columns).astype(int)
    s, t = rows - i, columns - j
    upper = (1 - t) * image[i, j] + t * image[i, j + 1]
    lower = (1 - t) * image[i + 1, j] + t * image[i + 1, j + 1]
    return (1 - s) * upper + s * lower


def warp(image, parameters):
    """The picture moved by an affine map about its middle."""
    matrix, shift = parameters[:4].reshape(2, 2), parameters[4:]
    place = np.indices((SIZE, SIZE)).reshape(2, -1) - SIZE / 2
    rows, columns = matrix @ place + shift[:, None] + SIZE / 2
    return sample(image, rows, columns).reshape(SIZE, SIZE)


def scene():
    """Some ellipses of different brightness."""
    random = np.random.default_rng(4)
    y, x = np.indices((SIZE, SIZE)) / SIZE
    image = np.zeros((SIZE, SIZE))
    for _ in range(14):
        u, v = random.uniform(0.15, 0.85, 2)
        a, b = random.uniform(0.05, 0.18, 2)
        image[((x - u) / a) ** 2 + ((y - v) / b) ** 2 < 1.0] = random.uniform(0.3, 1.0)
    return image


def data(blur=3.0):
    """The fixed picture with some noise, and the moving one, blurred as much."""
    image = scene()
    fixed = warp(image, TRUTH) + 0.03 * np.random.default_rng(5).standard_normal(image.shape)
    return gaussian_filter(fixed, blur), gaussian_filter(image, blur)


def start():
    return np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])


def objective(parameters, data):
    """The mean square difference of the pictures, away from their edges."""
    fixed, moving = data
    inner = slice(6, -6)
    return np.mean((warp(moving, parameters) - fixed)[inner, inner] ** 2)
