"""The language of Krawiec et al. 2022, its types, its semantics, and its translations. Begin with `reading.py`."""

from effgrad.papers.lam.reading import parse, parse_type
from effgrad.papers.lam.semantics import Interpreter, evaluate
from effgrad.papers.lam.terms import Term, Type
from effgrad.papers.lam.types import typeof

__all__ = ["Interpreter", "Term", "Type", "evaluate", "parse", "parse_type", "typeof"]
