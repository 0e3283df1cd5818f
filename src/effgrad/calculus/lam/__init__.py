"""The language of Krawiec et al. 2022, its types, its meaning, and its translations. Begin with `reading.py`."""

from effgrad.calculus.lam.reading import parse, parse_type
from effgrad.calculus.lam.semantics import Interpreter, evaluate
from effgrad.calculus.lam.terms import Term, Type, show
from effgrad.calculus.lam.types import typeof

__all__ = ["Interpreter", "Term", "Type", "evaluate", "parse", "parse_type", "show", "typeof"]
