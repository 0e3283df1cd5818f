"""HH (heaps and handlers), in which de Vilhena and Pottier 2023 verify their reverse mode. Begin with `reading.py`."""

from effgrad.papers.hh.reading import parse
from effgrad.papers.hh.semantics import Machine, evaluate
from effgrad.papers.hh.terms import Term

__all__ = ["Machine", "Term", "evaluate", "parse"]
