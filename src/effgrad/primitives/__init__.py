"""Primitives with their rules, one subject a module."""
