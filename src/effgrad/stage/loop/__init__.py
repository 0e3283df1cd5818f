"""Loops of the user's programs as regions, which are captured, differentiated and run as one native function."""
