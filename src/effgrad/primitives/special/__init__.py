"""Special functions (`scipy.special`), a module for each family."""
