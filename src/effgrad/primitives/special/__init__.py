"""Special functions (`scipy.special`), with a module for each family."""
