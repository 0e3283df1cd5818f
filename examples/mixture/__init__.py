"""A Gaussian mixture fitted with exact gradients; `python -m mixture --help` from the folder of examples."""
