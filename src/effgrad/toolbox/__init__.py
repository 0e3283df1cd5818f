"""Tools on top of the modes: rules, solvers, equations, random numbers, batches, sparse Jacobians, optimisation."""
