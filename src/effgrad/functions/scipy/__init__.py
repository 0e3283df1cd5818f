"""Rules for functions of SciPy that no NumPy protocol reaches, a module for each of SciPy's.

A module has a table `RULES` of owner (a module or class), name and rule, for `effgrad.program.rules_by_callable`. A
rule is a definition by NumPy functions, or calls a primitive of its own. `names` lists the functions without a rule of
ours: those that SciPy's own Python computes with functions that have rules, constants, and those with no derivative.
"""
