"""Rules for functions of SciPy that no NumPy protocol reaches, in a module for each module of SciPy.

A module has a table `RULES` of triples for `effgrad.program.rules_by_callable`: the owner (a module or a class), the
name, and the rule. A rule is a definition by NumPy functions, or it calls a primitive of its module. `names` lists the
functions without a rule of ours: functions that SciPy's own Python computes with functions that have rules, constants,
and functions without a derivative.
"""
