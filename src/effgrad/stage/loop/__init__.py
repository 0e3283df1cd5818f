"""Loops of the user's programs as regions: captured, differentiated region to region, run as one native function."""
