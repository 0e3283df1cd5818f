"""Derivatives at work: rules, solvers, equations, randomness; batches, sparse Jacobians, optimisation."""
