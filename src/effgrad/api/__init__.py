"""The public derivatives of functions on pytrees; most run `f` once under a handler."""

from effgrad.api.compare import compare
from effgrad.api.context import kinks, stop_gradient
from effgrad.api.debug import debug_nans, debug_values
from effgrad.api.differences import check_grad
from effgrad.api.directional import jvp, second_order, taylor
from effgrad.api.explain import explain
from effgrad.api.gradient import grad, value_and_grad, vjp
from effgrad.api.matrices import hessian, hvp, jacobian

__all__ = [
    "check_grad", "compare", "debug_nans", "debug_values", "explain", "grad", "hessian", "hvp", "jacobian", "jvp",
    "kinks", "second_order", "stop_gradient", "taylor", "value_and_grad", "vjp",
]  # fmt: skip
