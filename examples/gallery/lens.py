"""A camera lens of three elements: curvatures and gaps for which all light of a point meets in a point.

Rays are traced through spheres by Snell's law, from three directions, in two colours. A Cooke triplet.
Welford 1986, Aberrations of Optical Systems, chapter 4.
"""

import numpy as np

# Refraction of the three glasses, in blue and red light.
GLASS = np.array([[1.7014, 1.6852], [1.6428, 1.6151], [1.7014, 1.6852]])
FIELDS = np.radians([0.0, 7.0, 14.0])
FOCAL = 50.0
AXIS = np.array([[0.0], [0.0], [1.0]])


def data():
    """Heights of the rays where they enter, and the place on the film where each field belongs."""
    y, x = np.meshgrid(np.linspace(-5.0, 5.0, 7), np.linspace(0.0, 5.0, 4))
    inside = x**2 + y**2 <= 25.0
    return np.stack([x[inside], y[inside]], axis=1), FOCAL * np.tan(FIELDS)


def start():
    """Curvatures of the six surfaces per millimetre; then the five distances between them, and that of the film."""
    return np.array([0.04, 0.0, -0.04, 0.04, 0.0, -0.04, 3.0, 5.0, 1.0, 5.0, 3.0, 42.0])


LEAST = np.array([-0.1] * 6 + [1.5, 1.0, 0.8, 1.0, 1.5, 20.0])
MOST = np.array([0.1] * 6 + [5.0, 9.0, 3.0, 9.0, 5.0, 60.0])


def refract(position, direction, curvature, ratio):
    """Where rays meet a sphere through the origin, and their directions behind it (from light to glass: ratio < 1)."""
    x, y, z = position
    u, v, w = direction
    b = w - curvature * (x * u + y * v + z * w)
    c = curvature * (x**2 + y**2 + z**2) - 2 * z
    cosine = np.sqrt(b**2 - curvature * c)
    position = position + c / (b + cosine) * direction
    after = np.sqrt(1 - ratio**2 * (1 - cosine**2))
    normal = np.stack([-curvature * position[0], -curvature * position[1], 1 - curvature * position[2]])
    return position, ratio * direction + (after - ratio * cosine) * normal


def trace(parameters, heights, field, colour):
    """Where rays of one field and colour meet each surface and the film, of shape (7, 3, rays)."""
    curvatures, gaps = parameters[:6], parameters[6:]
    aim = -np.tan(field) * 8.0  # the stop is at the second element
    position = np.stack([heights[:, 0], heights[:, 1] + aim, np.zeros(len(heights))])
    direction = np.array([0.0, np.sin(field), np.cos(field)])[:, None] * np.ones(len(heights))
    path, place, outside = [], 0.0, 1.0
    for i in range(6):
        inside = GLASS[i // 2, colour] if i % 2 == 0 else 1.0
        position, direction = refract(position, direction, curvatures[i], outside / inside)
        path.append(position + AXIS * place)
        position = position - AXIS * gaps[i]
        place, outside = place + gaps[i], inside
    film = position - position[2] / direction[2] * direction
    return np.stack([*path, film + AXIS * place])


def residuals(parameters, data):
    """How far each ray is from the right place, in hundredths of a millimetre."""
    heights, places = data
    misses = []
    for field, place in zip(FIELDS, places, strict=True):
        for colour in range(2):
            x, y, _ = trace(parameters, heights, field, colour)[-1]
            misses += [x, y - place]
    return 100 * np.concatenate(misses)


def objective(parameters, data):
    """The mean squared distance from the right places."""
    return np.sum(residuals(parameters, data) ** 2) / (6 * len(data[0]))
