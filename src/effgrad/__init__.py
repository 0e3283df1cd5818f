"""effgrad: derivatives as effect handlers, for plain NumPy code."""

from effgrad.api import check_grad, grad, hessian, hvp, jacobian, jvp, stop_gradient, value_and_grad, vjp
from effgrad.errors import Detached, EffgradError, EscapedValue, NoRule, NotDifferentiable, NotStaged
from effgrad.stage import compile, stage

__all__ = [
    "Detached",
    "EffgradError",
    "EscapedValue",
    "NoRule",
    "NotDifferentiable",
    "NotStaged",
    "check_grad",
    "compile",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "stage",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
