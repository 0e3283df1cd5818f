"""Derivatives at work: custom rules, solvers, differential equations, randomness."""
