"""How the calls of a program reach the rules."""
