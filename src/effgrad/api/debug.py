"""Evaluation that looks at every result: where a NaN or an infinity first appears.

The handler lies below the derivatives of the function that it watches, so it sees the operations of the program and
those of their reverse passes, which are operations like any other.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.api.checks import is_floating
from effgrad.api.results import flattened, outside
from effgrad.api.run import run
from effgrad.arrays.value import Traced, plain, released
from effgrad.errors import NotFinite
from effgrad.modes.evaluate import Evaluate
from effgrad.trees import Structure, flatten


class Watch(Evaluate):
    """Evaluate, and raise `NotFinite` at the first result with a NaN or an infinity that no argument had."""

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        result = super().apply(primitive, *args, **params)
        value = np.asarray(plain(result))
        if value.dtype.kind in "fc" and not np.isfinite(value).all() and _new(value, [plain(a) for a in args]):
            bad = np.argwhere(~np.isfinite(value))
            place = f" at index {tuple(int(i) for i in bad[0])}, {len(bad)} in all" if value.ndim else ""
            first = value[tuple(bad[0])]
            given = ", ".join(_summary(plain(a)) for a in args)
            where = "the reverse pass" if _in_reverse_pass() else "the program"
            raise NotFinite(f"in {where}, {primitive.name}({given}) made {first}{place}")
        return result


def _new(value: Any, args: list[Any]) -> bool:
    """Whether a NaN or an infinity is not just passed on from an argument."""
    numbers = [a for a in args if np.result_type(a).kind in "fc"]
    if np.isnan(value).any():
        return not any(np.isnan(a).any() for a in numbers)
    return all(np.isfinite(a).all() for a in numbers)


def _in_reverse_pass() -> bool:
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in ("pull", "unwind"):
        frame = frame.f_back
    return frame is not None


def _summary(value: Any) -> str:
    if np.ndim(value) == 0:
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    value = np.asarray(value)
    text = f"array of shape {value.shape}"
    if value.dtype.kind == "f" and value.size:
        text += f" from {np.nanmin(value):.6g} to {np.nanmax(value):.6g}"
    return text


def debug_nans(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes what `f` does, and raises `NotFinite` where a NaN or an infinity first appears.

    `f` may be a derivative, `debug_nans(grad(g))`: the operations of its reverse pass are watched too. The error names
    the operation, what it was given, and whether it belongs to the program or to the reverse pass. Every operation is
    checked, which costs several times the run without.

    >>> debug_nans(grad(lambda x: np.sqrt(x) * x))(0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    effgrad.errors.NotFinite: in the reverse pass, reciprocal(0) made inf [E6]...
    """

    def watched(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten(args)
        moving = [place for place, leaf in enumerate(leaves) if is_floating(leaf)]

        def program(inputs: list[Any]) -> Any:
            given = list(leaves)
            for place, value in zip(moving, inputs, strict=True):
                given[place] = value
            return f(*tree.unflatten(given), **kwargs)

        def finish(watch: Watch, _: list[Any], output: Any) -> tuple[Structure, list[Any]]:
            outputs, output_tree = flattened(output)
            return output_tree, [released(watch.primal(o)) for o in outputs]

        with np.errstate(all="ignore"):
            return outside(*run(Watch(), program, [(leaves[place],) for place in moving], finish))

    return watched
