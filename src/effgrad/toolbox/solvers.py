"""The derivative rules of `scipy.optimize`: root finders, optimisers and fits."""

from effgrad.toolbox import fits, minima, roots
from effgrad.vocabulary import Value

RULES: list[tuple[Value, str, Value]] = [*roots.RULES, *minima.RULES, *fits.RULES]
