"""Rules for functions of SciPy that no NumPy protocol reaches, a module for each of SciPy's.

Each has a table `RULES` of owner (a module or class), name and rule, which `effgrad.smooth.interception` puts in place
while a derivative runs. A rule is a definition by NumPy functions, or calls a primitive of its own.
"""
