"""The twelve evaluations of GradBench (github.com/gradbench/gradbench) in plain NumPy, and a tool for the suite.

One module an evaluation. Each has the functions that the suite asks for by name, `FUNCTIONS`, and `read`, which turns
the suite's input into their arguments; an evaluation whose answer is not just numbers and arrays has `write`. Every
derivative is one call of effgrad. The definitions are those of the suite's `evals/*/README.md`.
"""

EVALS = ("hello", "gmm", "ba", "lstm", "ht", "kmeans", "llsq", "lse", "ode", "particle", "saddle", "det")
