"""The derivative rules of `scipy.integrate`: quadrature, initial value problems and boundary value problems."""

from effgrad.toolbox import boundary, differential, integrator_objects, quadrature
from effgrad.vocabulary import Value

RULES: list[tuple[Value, str, Value]] = [
    *quadrature.RULES, *differential.RULES, *integrator_objects.RULES, *boundary.RULES,
]  # fmt: skip
