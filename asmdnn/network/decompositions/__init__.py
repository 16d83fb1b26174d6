"""Operators decomposed into others while a graph is specialised, so that these alone need definitions and kernels."""
