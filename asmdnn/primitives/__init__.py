"""Primitives: a description, an ordered list of implementations, and a planner for each of them."""
