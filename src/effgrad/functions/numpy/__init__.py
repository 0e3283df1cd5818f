"""Functions of NumPy that are defined by others."""
