"""Primitives with their rules, one subject per module."""
