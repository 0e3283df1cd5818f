"""Rules for NumPy functions that are defined by other NumPy functions."""
