"""Compare a program's derivatives with differences of the program itself.

Four questions: is the value under a derivative that of the plain run; is the gradient (reverse and forward)
that of Ridders differences of the plain program, along random directions; is a Hessian-vector product that of
differences of gradients; is the compiled gradient the eager one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
from differences import directional, parts

import effgrad
from effgrad.errors import EffgradError

QUESTIONS = ("value", "gradient", "Hessian product", "compiled")
DIRECTIONS = 3


class Wrong(Exception):
    """A value or a derivative is not the one expected."""


class Undecided(Exception):
    """The differences do not settle, or say nothing."""


def judge(f: Any, args: tuple[Any, ...]) -> dict[str, str]:
    """The answer to each question: agrees, refused, wrong, undecided or failed, with a reason."""
    objective = weighted(f, args)
    plain = float(objective(args))
    if not np.isfinite(plain) or abs(objective(args) - plain) > 1e-13 * abs(plain):
        raise ValueError(f"the plain program's value {plain} is not finite, or not always the same")
    asks: dict[str, Callable[[], None]] = {
        "value": lambda: value(f, args),
        "gradient": lambda: gradient(objective, args),
        "Hessian product": lambda: hessian_product(objective, args),
        "compiled": lambda: compiled(objective, args),
    }
    return {question: answer(ask) for question, ask in asks.items()}


def answer(ask: Callable[[], None]) -> str:
    try:
        ask()
    except EffgradError as error:
        return f"refused: {first_sentence(error)}"
    except Wrong as error:
        return f"wrong: {error}"
    except Undecided as error:
        return f"undecided: {error}"
    except Exception as error:
        return f"failed: {type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return "agrees"


def first_sentence(error: EffgradError) -> str:
    """The code and the first sentence of an error of ours, without paths of files."""
    said = str(error).split("\n")[0].removesuffix(f"[{error.code}]").split(". ")[0].split(": use ")[0]
    return f"{error.code}, {said.strip().rstrip('.')[:150]}"


def weighted(f: Any, args: tuple[Any, ...]) -> Any:
    """The function's results, weighted at random, as one number of the tuple of arguments."""
    flat = parts(results(f(*args)))
    weights = np.random.default_rng(1).uniform(0.5, 1.5, size=flat.shape)

    def objective(arguments: tuple[Any, ...]) -> Any:
        result, at, total = results(f(*arguments)), 0, 0.0
        for item in result:
            item = np.ravel(item)
            for part in [np.real(item), np.imag(item)] if np.iscomplexobj(item) else [item]:
                total = total + np.sum(part * weights[at : at + part.size])
                at += part.size
        return total

    return objective


def results(y: Any) -> tuple[Any, ...]:
    return tuple(y) if isinstance(y, tuple | list) else (y,)


def moved(args: Any, t: float, u: Any) -> Any:
    """The arguments, moved by t along u."""
    return optree.tree_map(lambda a, b: a + t * b, args, u)


def direction(args: Any, rng: Any) -> Any:
    """A random direction, as large in each number as the number itself, or 1 where that is 0."""

    def along(a: Any) -> Any:
        size = np.where(np.asarray(a) == 0, 1.0, np.abs(a))
        return (rng.normal(size=np.shape(a)) * size)[()]

    return optree.tree_map(along, args)


def product(a: Any, b: Any) -> tuple[float, float]:
    """The inner product of two trees, and the sum of its terms' sizes."""
    terms = [np.ravel(x * y) for x, y in zip(optree.tree_leaves(a), optree.tree_leaves(b), strict=True)]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))


def value(f: Any, args: tuple[Any, ...]) -> None:
    found, expected = parts(results(effgrad.vjp(f, *args)[0])), parts(results(f(*args)))
    error = np.max(np.abs(found - expected)) / max(np.max(np.abs(expected)), np.finfo(float).tiny)
    if not error <= 1e-14:  # programs that walk over sets, and solvers with another order of columns, round differently
        raise Wrong(f"the value differs from the plain run's by {error:.1g} of it")


def close(found: float, expected: float, error: float, size: float, tolerance: float) -> None:
    if size == 0 and expected == 0:
        raise Undecided("the derivative is 0 everywhere")
    if np.isnan(found):
        raise Undecided(f"NaN, and {expected:.6g} by differences")
    if not error <= tolerance * (size + abs(expected)):
        raise Undecided(f"differences know {expected:.6g} to {error:.1g} only, ours is {found:.6g}")
    if not abs(found - expected) <= tolerance * (size + abs(expected)):
        raise Wrong(f"{found:.12g}, and {expected:.12g} by differences, which know it to {error:.1g}")


def gradient(objective: Any, args: tuple[Any, ...]) -> None:
    rng, found = np.random.default_rng(2), effgrad.grad(objective)(args)
    for _ in range(DIRECTIONS):
        u = direction(args, rng)
        along, size = product(found, u)
        forward = float(effgrad.jvp(objective, (args,), (u,))[1])
        if not abs(forward - along) <= 1e-9 * size:
            raise Wrong(f"forward mode gives {forward:.12g}, reverse mode {along:.12g}")
        expected, error = directional(lambda t, u=u: objective(moved(args, t, u)), 0.0, 1.0, step=1e-3)
        close(along, float(expected), error, size, 1e-6)


def hessian_product(objective: Any, args: tuple[Any, ...]) -> None:
    rng, slope = np.random.default_rng(3), effgrad.grad(objective)
    v, u = direction(args, rng), direction(args, rng)
    found, size = product(effgrad.hvp(objective, args, v), u)
    by = lambda t: product(slope(moved(args, t, v)), u)[0]  # noqa: E731
    expected, error = directional(by, 0.0, 1.0, step=1e-3)
    scale = product(slope(args), u)[1]
    close(found, float(expected), error, size + scale, 1e-6)


def compiled(objective: Any, args: tuple[Any, ...]) -> None:
    slope = effgrad.grad(objective)
    pairs = [*zip(*map(optree.tree_leaves, (effgrad.compile(slope)(args), slope(args))), strict=True)]
    noise = 1e-14 * max(np.max(np.abs(theirs), initial=0.0) for _, theirs in pairs)  # where a part's derivative is 0
    for ours, theirs in pairs:
        error = np.max(np.abs(ours - theirs), initial=0.0)
        if not error <= 1e-9 * np.max(np.abs(theirs), initial=0.0) + noise:
            raise Wrong(f"the compiled gradient differs from the eager one by {error:.1g}")
