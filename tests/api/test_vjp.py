"""vjp from any first-order type to any other: products, sums chosen at run time, and what has no derivative."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from effgrad import NotDifferentiable, grad, jvp, vjp

MODES = ["taped", "delta", "higher_order", "higher_order_checkpointed"]


@dataclasses.dataclass
class Circle:
    radius: float


@dataclasses.dataclass
class Polygon:
    corners: Any
    name: str = "polygon"
    sides: int = 3


@dataclasses.dataclass
class Scene:
    shapes: list
    background: Any = None


def measured(scene, weights):
    """For each shape, by what it is, a result of another type."""

    def measure(shape):
        match shape:
            case Circle(radius):
                return radius**2 * np.pi
            case Polygon(corners, name, sides):
                edges = corners - np.roll(corners, 1, axis=0)
                return {"perimeter": np.sum(np.sqrt(np.sum(edges**2, axis=1))), "name": name, "sides": sides}
            case None:
                return None

    parts = [measure(shape) for shape in scene.shapes]
    extra = (weights["a"] * weights["b"], "seen") if scene.background is None else scene.background * weights["a"]
    return Scene(parts, extra)


CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
SCENES = [
    Scene([Circle(0.5), Polygon(CORNERS), None]),
    Scene([Polygon(CORNERS * 2, "square", 4)], background=np.array([1.0, 2.0])),
    Scene([], background=2.0),
]
WEIGHTS = {"a": 0.7, "b": np.array([1.0, -2.0]), "unused": (3.0, [None, 4])}


def inner(first, second):
    from effgrad.trees import flatten

    return sum(np.sum(a * b) for a, b in zip(flatten(first)[0], flatten(second)[0], strict=True))


def filled(tree, numbers):
    from effgrad.trees import flatten

    leaves, structure = flatten(tree)
    return structure.unflatten([numbers.normal(size=np.shape(leaf))[()] for leaf in leaves])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scene", SCENES, ids=["circle, polygon and None", "polygon", "empty"])
def test_vjp_is_the_transpose_of_jvp(scene, mode):
    numbers = np.random.default_rng(0)
    value, pullback = vjp(measured, scene, WEIGHTS, mode=mode)
    for _ in range(2):  # any number of times
        tangents, cotangent = filled((scene, WEIGHTS), numbers), filled(value, numbers)
        pushed = jvp(measured, (scene, WEIGHTS), tangents)[1]
        pulled = pullback(cotangent)
        np.testing.assert_allclose(inner(pulled, tangents), inner(cotangent, pushed), rtol=1e-12)
    assert [type(s) for s in pulled[0].shapes] == [type(s) for s in scene.shapes]
    assert [s.name for s in pulled[0].shapes if isinstance(s, Polygon)] == [
        s.name for s in scene.shapes if isinstance(s, Polygon)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_union_of_the_other_branch_is_another_structure(mode):
    value, pullback = vjp(lambda x: (x, x * x) if x > 0 else {"only": x}, 2.0, mode=mode)
    assert pullback((1.0, 1.0)) == (5.0,)
    with pytest.raises(NotDifferentiable, match="structure"):
        pullback({"only": 1.0})


def test_bad_input():
    with pytest.raises(ValueError, match="delta, higher_order, higher_order_checkpointed, taped"):
        vjp(np.sin, 1.0, mode="reverse")
    with pytest.raises(ValueError, match="continuation"):
        grad(np.sin, mode="tape")(1.0)
    with pytest.raises(NotDifferentiable, match="int"):
        vjp(lambda n: n * 2.0, 3, mode="delta")
    with pytest.raises(NotDifferentiable, match="str"):
        grad(lambda name, x: x)("x", 1.0)
    with pytest.raises(NotDifferentiable, match="int"):
        grad(lambda tree: tree["x"])({"x": np.array([1, 2])})
