"""Hand tracking: the distances of points from a posed and skinned hand model, and their dense Jacobian.

The 26 parameters theta are the global rotation (axis times angle), the global translation, and four angles for each of
five fingers: the first joint of a finger bends about x and z, the next two about x. A vertex moves with the bones
according to its weights. A point belongs to a vertex; or, where the suite gives `us`, to a triangle, at two barycentric
coordinates that are differentiated too. Those of one point move that point only, so one tangent for each of the two
coordinates gives their columns for all points at once.
"""

import numpy as np

from effgrad import jacobian as derivative
from effgrad import jvp
from effgrad_gradbench.fields import BadInput, array, field, indices, integer, truth

FINGERS, JOINTS = 5, 3


def turned(vector):
    """The matrix of a rotation that is given as axis times angle."""
    angle = np.sqrt(np.sum(vector**2))
    if angle < 1e-4:
        return np.eye(3)
    x, y, z = axis = vector / angle
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.cos(angle) * np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * np.outer(axis, axis)


def bends(angles):
    """The rotations of all bones; in each finger, those of its second to fourth bone bend."""
    x, z = np.zeros(4 * FINGERS + 2), np.zeros(4 * FINGERS + 2)
    bone = 4 * np.arange(FINGERS)[:, None] + np.arange(2, 2 + JOINTS)
    x[bone], z[bone[:, 0]] = angles[:, [0, 2, 3]], angles[:, 1]
    zero = np.zeros_like(x)
    return np.moveaxis(np.array([
        [np.cos(z), -np.sin(z) * np.cos(x), np.sin(z) * np.sin(x)],
        [np.sin(z), np.cos(z) * np.cos(x), -np.cos(z) * np.sin(x)],
        [zero, np.sin(x), np.cos(x)],
    ]), 2, 0)  # fmt: skip


def vertices(theta, parents, relative, inverse_absolute, positions, weights, mirror):
    """The positions of the vertices of the posed hand."""
    bent = np.concatenate([relative[:, :, :3] @ bends(theta[6:].reshape(FINGERS, 4)), relative[:, :, 3:]], axis=2)
    absolute = []
    for parent, bone in zip(parents, bent, strict=True):
        absolute.append(bone if parent < 0 else absolute[parent] @ bone)
    transforms = np.stack(absolute) @ inverse_absolute
    skinned = np.einsum("vb,vj,bij->vi", weights, positions, transforms[:, :3], optimize=True)
    return (skinned * mirror) @ turned(theta[:3]).T + theta[3:6]


def objective(theta, us, model, points, corners):
    hand = vertices(theta, *model)
    if us is None:
        return (points - hand[corners]).ravel()
    u, v = us[:, :1], us[:, 1:]
    return (points - (u * hand[corners[:, 0]] + v * hand[corners[:, 1]] + (1 - u - v) * hand[corners[:, 2]])).ravel()


def jacobian(theta, us, model, points, corners):
    by_theta = derivative(objective, mode="forward")(theta, us, model, points, corners)
    if us is None:
        return by_theta
    units = [np.tile(unit, (len(us), 1)) for unit in np.eye(2)]
    by_us = [jvp(lambda us: objective(theta, us, model, points, corners), (us,), (unit,))[1] for unit in units]
    return np.column_stack([*by_us, by_theta])


FUNCTIONS = {"objective": objective, "jacobian": jacobian}


def read(source):
    data = field(source, "data")
    model = field(data, "model")
    bones = integer(model, "bone_count")
    if bones != 4 * FINGERS + 2:
        raise BadInput(f"bone_count is {bones}; a hand has {4 * FINGERS + 2} bones")
    parents = indices(model, "parents", bones, least=-1, below=bones)
    if np.any(parents >= np.arange(bones)):
        raise BadInput("parents has a bone before its parent")
    positions = array(model, "base_positions", None, 4)
    transforms = [array(model, name, bones, 4, 4) for name in ("base_relatives", "inverse_base_absolutes")]
    weights = array(model, "weights", len(positions), bones)
    mirror = np.array([-1.0 if truth(model, "is_mirrored") else 1.0, 1.0, 1.0])
    points = array(data, "points", None, 3)
    triangles = indices(model, "triangles", None, 3, below=len(positions))
    us = field(source, "us")
    belongs = len(positions) if us == [] else len(triangles)
    places = indices(data, "correspondences", len(points), below=belongs)
    return (
        array(source, "theta", 6 + 4 * FINGERS), None if us == [] else array(source, "us", len(points), 2),
        (tuple(parents.tolist()), *transforms, positions, weights, mirror), points,
        places if us == [] else triangles[places],
    )  # fmt: skip
