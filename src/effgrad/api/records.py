"""Texts for the records that a mode keeps with values, and for the values themselves."""

import functools

import numpy as np

from effgrad.api.explanation import Shown
from effgrad.arrays.value import Tracer, plain
from effgrad.modes.backward import UNRECORDED
from effgrad.modes.checkpointed import Checkpointed
from effgrad.modes.continuation import Continuation
from effgrad.modes.delta import Add, Delta
from effgrad.modes.forward import Forward
from effgrad.modes.hessian import EdgePushing
from effgrad.modes.mode import Mode, Operation
from effgrad.modes.reverse import Reverse
from effgrad.modes.second_order import SecondOrder
from effgrad.modes.taylor import Taylor
from effgrad.modes.walk import ListMode
from effgrad.primitives.cotangents import Block, Masked, Scattered
from effgrad.vocabulary import Shadow, Tangent, Value

NOT_RECORDED = "not recorded"
LONGEST = 60  # the largest number of characters for a parameter


def shown(value: Value) -> Shown:
    """Return a value under any nesting of derivatives as a short text, with its shape and dtype."""
    value = plain_value(value)
    value = value.item() if isinstance(value, np.ndarray) and not value.ndim else value
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=6, edgeitems=2, formatter={"float_kind": lambda x: f"{x:.4g}"})
        return Shown(" ".join(text.split()), value.shape, str(value.dtype))
    if isinstance(value, float | np.floating):
        return Shown(f"{value:.6g}", (), str(getattr(value, "dtype", "")))
    return Shown(str(value), (), str(getattr(value, "dtype", "")))


def plain_value(value: Value) -> Value:
    """The plain number or array of a value or cotangent, found without performing operations on traced values."""
    if type(value) is Masked:
        return plain_value(value.value)
    if type(value) is Block:
        return Block(value.shape, value.index, plain_value(value.value)).total()
    if type(value) is Scattered:
        return plain(Scattered(value.shape, [(i, plain_value(piece)) for i, piece in value.pieces]).total())
    value = plain(value)
    return plain_value(value.primal) if isinstance(value, Tracer) else value


@functools.singledispatch
def record(mode: Mode, shadow: Shadow) -> tuple[str, str]:
    """Return the name and the content of the record that a mode keeps with a value, from the value's shadow."""
    return "", ""


@record.register
def _(mode: Forward, tangent: Tangent) -> tuple[str, str]:
    return "tangent", str(shown(0.0 if tangent is None else tangent))


@record.register
def _(mode: SecondOrder, derivatives: tuple[Value, Value]) -> tuple[str, str]:
    return "derivatives", ", ".join(str(shown(0.0 if part is None else part)) for part in derivatives)


@record.register
def _(mode: Taylor, series: Value) -> tuple[str, str]:
    # Inside a rule coefficients are computed lazily, so only the known ones are shown.
    known = series.known if mode.in_rule else [series[k] for k in range(mode.order + 1)]
    return "series", ", ".join(str(shown(part)) for part in known)


@record.register
def _(mode: Reverse, cell: Value) -> tuple[str, str]:
    recorded = not isinstance(mode, Checkpointed) or mode.recorded(cell)
    return "cell" if recorded else NOT_RECORDED, ""


@record.register
def _(mode: Continuation, backpropagator: Value) -> tuple[str, str]:
    return NOT_RECORDED if backpropagator is UNRECORDED else f"backpropagator {backpropagator.age}", ""


@record.register
def _(mode: ListMode, name: Value) -> tuple[str, str]:
    return (NOT_RECORDED, "") if name is UNRECORDED else (f"tape[{name}]", _entry(mode.entries[name]))


@record.register
def _(mode: EdgePushing, name: int) -> tuple[str, str]:
    return f"tape[{name}]", _entry(mode.tape[name][1])


@record.register
def _(mode: Delta, name: Value) -> tuple[str, str]:
    return (NOT_RECORDED, "") if name is UNRECORDED else (f"Var({name})", _term(mode.entries[name]))


def _entry(operation: object) -> str:
    """A tape entry as text: the primitive and the names of its arguments, with `_` for a constant."""
    if not isinstance(operation, Operation):
        return ""
    names = ", ".join("_" if name is None else str(name) for name in operation.shadows)
    return f"{operation.primitive.name}({names})"


def _term(term: Value) -> str:
    """A delta term as text, in the constructors of the paper."""
    if not isinstance(term, Add):
        return ""
    scaled = [f"Scale(d{s.argument + 1} {s.operation.primitive.name}, Var({s.name}))" for s in term.terms]
    return scaled[0] if len(scaled) == 1 else f"Add({', '.join(scaled)})" if scaled else "Zero"


def parameter(value: Value) -> str:
    """Return a parameter of an operation as a short text, with slices written as in an index."""
    value = plain_value(value)
    if isinstance(value, tuple | list) and any(isinstance(part, slice) for part in value):
        return f"[{', '.join(map(parameter, value))}]"
    if isinstance(value, slice):
        bounds = [value.start, value.stop, *([] if value.step is None else [value.step])]
        return ":".join("" if bound is None else str(bound) for bound in bounds)
    text = str(shown(value)) if isinstance(value, np.ndarray | float) else " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
