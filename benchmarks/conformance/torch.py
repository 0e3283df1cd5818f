"""PyTorch's operator database: its samples, given to the functions of NumPy and SciPy that do the same.

The checkout is a folder that has the installed package `torch` (`site-packages`; it needs `expecttest` there), whose
`op_db` is imported. A program is the reference that the database itself gives for an operator, or one of
`torch_programs`. Where a program's value is the operator's, gradients (reverse and forward mode) and second derivatives
along a direction have to be PyTorch's; where they are not, those of differences of the plain program.
"""

import collections
import contextlib
import functools
import inspect
import os
import pathlib
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
from benchmarks.conformance.torch_programs import FIRST, PROGRAMS, VECTORS
from differences import directional, parts

from effgrad import grad, jvp
from effgrad.errors import EffgradError

Leaves = list[Any]
# Random operators.
LEFT_OUT = {"nn.functional.dropout", "bernoulli"}


class Sample:
    """One sample: the operator, the program, and the arguments that are differentiated."""

    def __init__(self, torch: Any, name: str, operator: Callable[..., Any], program: Any, drawn: Any) -> None:
        self.torch, self.operator, self.program = torch, operator, program
        self.first, self.vectors = name in FIRST, name in VECTORS
        whole = (drawn.input, tuple(drawn.args), dict(drawn.kwargs))
        self.tensors, self.tree = optree.tree_flatten(whole, none_is_leaf=True)
        self.constants = [self.as_numpy(leaf) for leaf in self.tensors]
        self.places = [i for i, t in enumerate(self.tensors) if isinstance(t, torch.Tensor) and t.requires_grad]
        self.inputs = [np.array(self.constants[i]) for i in self.places]
        self.lifted, self.shapes = False, []

    def as_numpy(self, leaf: Any) -> Any:
        from torch.testing._internal.common_utils import torch_to_numpy_dtype_dict

        if isinstance(leaf, self.torch.Tensor):
            return leaf.detach().resolve_conj().resolve_neg().numpy()
        return torch_to_numpy_dtype_dict[leaf] if isinstance(leaf, self.torch.dtype) else leaf

    def filled(self, leaves: Leaves, inputs: Leaves) -> tuple[tuple[Any, ...], dict[str, Any]]:
        whole = list(leaves)
        for place, x in zip(self.places, inputs, strict=True):
            whole[place] = x
        first, args, kwargs = self.tree.unflatten(whole)
        return (first, *args), kwargs

    def run(self, inputs: Leaves) -> list[Any]:
        """The numbers that the program returns: all parts of its results that are not integers."""
        args, kwargs = self.filled(self.constants, inputs)
        if self.lifted:  # PyTorch takes a number for an array of one axis
            found = results(self.program(np.reshape(args[0], (1,)), *args[1:], **kwargs))
            found = [np.reshape(y, shape) for y, shape in zip(found, self.shapes, strict=True)]
        else:
            found = results(self.program(*args, **kwargs))
        return [np.abs(y) for y in found] if self.vectors else found

    def run_torch(self, inputs: Leaves) -> list[Any]:
        args, kwargs = self.filled(self.tensors, inputs)
        found = optree.tree_leaves(self.operator(*args, **kwargs))
        found = [t for t in found if isinstance(t, self.torch.Tensor) and (t.is_floating_point() or t.is_complex())]
        found = found[:1] if self.first else found
        self.shapes = [tuple(t.shape) for t in found]
        return [t.abs() for t in found] if self.vectors else found

    def weighted(self, outputs: Leaves, weights: Leaves) -> Any:
        return sum((w * y).sum().real for w, y in zip(weights, outputs, strict=True))


def results(tree: Any) -> list[Any]:
    if isinstance(tree, tuple | list):
        return [part for item in tree for part in results(item)]
    kind = getattr(getattr(tree, "dtype", None), "kind", None) or np.result_type(tree).kind
    return [tree] if kind in "fc" else []


def drawn_like(rng: Any, x: Any) -> Any:
    u = rng.normal(size=np.shape(x))
    return np.asarray(u + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else u)


def dot(gradients: Leaves, directions: Leaves) -> float:
    """The derivative along directions: a gradient is the direction of steepest ascent, also of complex numbers."""
    return float(sum(np.sum(np.conj(g) * u).real for g, u in zip(gradients, directions, strict=True)))


def near(a: float, b: float, digits: float = 1e-6) -> bool:
    return a == b or bool(np.isnan(a) and np.isnan(b)) or abs(a - b) <= digits * (1 + abs(b))


def of_torch(sample: Sample, weights: Leaves, along: Leaves, second: bool) -> tuple[float, float | None]:
    """PyTorch's derivatives along a direction, the first and the second."""
    torch = sample.torch
    inputs = [torch.tensor(x, requires_grad=True) for x in sample.inputs]
    total = sample.weighted(sample.run_torch(inputs), [torch.tensor(w) for w in weights])
    gradients = torch.autograd.grad(total, inputs, create_graph=second, allow_unused=True)
    gradients = [torch.zeros_like(x) if g is None else g for g, x in zip(gradients, inputs, strict=True)]
    directions = [torch.tensor(u) for u in along]
    slope = sum((g.conj() * u).sum().real for g, u in zip(gradients, directions, strict=True))
    if not second:
        return float(slope.detach()), None
    if not slope.requires_grad:
        return float(slope), 0.0
    found = torch.autograd.grad(slope, inputs, allow_unused=True)
    return float(slope.detach()), dot([np.zeros(1) if g is None else g.resolve_conj().numpy() for g in found], along)


def by_differences(f: Callable[[float], float]) -> float | None:
    """The derivative of a function of a number at 0; None where differences do not settle."""
    found, error = directional(lambda t: f(float(t)), 0.0, 1.0, step=1e-3)
    one, other = ((f(h) - f(0.0)) / h for h in (1e-6, -1e-6))
    settled = error <= 1e-5 * (1 + abs(found)) and abs(one - other) <= 1e-3 * (1 + abs(found))
    return float(found) if settled else None


def judge(sample: Sample, rng: Any, gradgrad: bool) -> str:
    """What comes of one sample."""
    try:
        tensors = sample.run_torch([sample.tensors[i] for i in sample.places])
        expected = [t.detach().resolve_conj().numpy() for t in tensors]
        if not any(x.size for x in sample.inputs) or not any(y.size for y in expected):
            return "nothing to differentiate"
        value = value_of(sample)
        same = len(expected) == len(value) and all(
            np.shape(v) == e.shape and np.allclose(v, e, 1e-8, 1e-10, equal_nan=True)
            for v, e in zip(value, expected, strict=True)
        )
    except Exception as error:  # of arguments that the program does not take
        return f"another function: {type(error).__name__} {str(error)[:100]}"
    return differentiated(sample, value, rng, gradgrad) if same else "another function: another value"


def value_of(sample: Sample) -> Leaves:
    """The program's value, whose first argument may be a number that the program wants as an array of one axis."""
    number = sample.inputs[0].ndim == 0
    try:
        value = sample.run(sample.inputs)
    except Exception:
        if not number:
            raise
    else:
        if not number or [np.shape(y) for y in value] == sample.shapes:
            return value
    sample.lifted = True
    return sample.run(sample.inputs)


def differentiated(sample: Sample, value: Leaves, rng: Any, gradgrad: bool) -> str:
    weights, along = [drawn_like(rng, y) for y in value], [drawn_like(rng, x) for x in sample.inputs]
    if not value or not sum(x.size for x in sample.inputs) or not all(np.isfinite(parts(y)).all() for y in value):
        return "nothing to differentiate"

    def total(inputs: Leaves) -> Any:
        return sample.weighted(sample.run(inputs), weights)

    def moved(t: float) -> Leaves:
        return [x + t * u for x, u in zip(sample.inputs, along, strict=True)]

    try:
        reverse = dot(grad(total)(sample.inputs), along)
        forward = float(jvp(total, (sample.inputs,), (along,))[1])
        second = float(jvp(lambda xs: jvp(total, (xs,), (along,))[1], (sample.inputs,), (along,))[1])
        other = dot(grad(lambda xs: jvp(total, (xs,), (along,))[1])(sample.inputs), along)
    except EffgradError as error:
        return f"refused: {str(error).splitlines()[0][:100]}"
    except Exception as error:
        return f"ERROR {type(error).__name__}: {str(error)[:80]}"
    try:
        slope, curvature = of_torch(sample, weights, along, gradgrad)
    except Exception:  # PyTorch has no derivative here: differences judge
        slope, curvature = np.nan, None
    bent = curvature is None or near(second, curvature) and near(other, curvature)
    if near(reverse, slope) and near(forward, slope) and bent:
        return "as PyTorch" if curvature is not None else "as PyTorch, first order"
    first = by_differences(lambda t: float(total(moved(t))))
    if first is None:
        return "a kink, or too rough for differences"
    if np.isnan([reverse, forward]).all() and not near(slope, first, 1e-5):
        return "NaN, where PyTorch and differences disagree"
    if not (near(reverse, first, 1e-5) and near(forward, first, 1e-5)):
        return f"WRONG: {reverse:.6g} {forward:.6g}, PyTorch {slope:.6g}, differences {first:.6g}"
    bend = by_differences(lambda t: float(jvp(total, (moved(t),), (along,))[1]))
    if bend is None:
        return "a kink, or too rough for differences"
    if near(second, bend, 1e-5) and near(other, bend, 1e-5):
        return "as differences, where PyTorch is not or has none"
    return f"WRONG, second: {second:.6g} {other:.6g}, PyTorch {curvature}, differences {bend:.6g}"


def by_axis(reference: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A reference with PyTorch's keywords in NumPy's words."""
    if getattr(reference, "__module__", "").partition(".")[0] != "numpy":
        return reference(*args, **options)
    several = "axes" in inspect.signature(reference).parameters
    renamed = {"dim": "axes" if several else "axis", "keepdim": "keepdims", "correction": "ddof"}
    return reference(*args, **{renamed.get(key, key): value for key, value in options.items()})


def samples(torch: Any, op_db: list[Any]) -> Iterator[tuple[str, Sample, bool]]:
    for op in op_db:
        name = f"{op.name} {op.variant_test_name}".strip()
        program = PROGRAMS.get(name) or PROGRAMS.get(op.name) or op.ref and functools.partial(by_axis, op.ref)
        if program is None or not op.supports_autograd or name in LEFT_OUT:
            continue
        for dtype in (torch.float64, torch.complex128):
            if not op.supports_dtype(dtype, "cpu"):
                continue
            torch.manual_seed(0)
            drawn = op.sample_inputs("cpu", dtype, requires_grad=True)
            with contextlib.suppress(Exception):
                for one in drawn:
                    # The database makes arguments Hermitian or triangular for some operators before it differentiates.
                    whole = functools.partial(op.gradcheck_wrapper, op.op)
                    yield (
                        f"{name} ({str(dtype)[6:]})",
                        Sample(torch, op.name, whole, program, one),
                        op.supports_gradgrad,
                    )


def run(checkout: pathlib.Path, *only: str) -> None:
    warnings.simplefilter("ignore")
    os.environ.setdefault("PYTORCH_TEST_WITH_SLOW", "0")
    sys.path.append(str(checkout))
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    counts: collections.Counter[str] = collections.Counter()
    named: dict[str, set[str]] = collections.defaultdict(set)
    with np.errstate(all="ignore"):
        for name, sample, gradgrad in samples(torch, op_db):
            if only and not any(part in name for part in only):
                continue
            outcome = judge(sample, np.random.default_rng(zlib.crc32(name.encode())), gradgrad)
            word = outcome.split(":")[0]
            counts[word] += 1
            named[word].add(name.split(" ")[0])
            if word[:5] in ("WRONG", "ERROR", "refus") or only and word == "another function":
                print(f"{name}: {outcome}", flush=True)
    print("\n| outcome | samples | operators |\n|---|---|---|")
    for word, count in counts.most_common():
        print(f"| {word} | {count} | {len(named[word])} |")
    for word in set(named) - {"as PyTorch", "nothing to differentiate"}:
        print(f"\n{word}: {', '.join(sorted(named[word]))}")
