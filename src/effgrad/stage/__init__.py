"""Staging: run a program once, and record its operations as a graph, to be optimised, printed and compiled."""

from effgrad.stage import integers  # noqa: F401 (gives `Staged` its integer arithmetic)
from effgrad.stage.compiled import Compiled, compile
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GuardFailed, Node
from effgrad.stage.stage import Stage, stage

__all__ = ["Compiled", "compile", "Graph", "GuardFailed", "Node", "Stage", "stage"]
