"""Stochastic rounding: numbers of bf16 whose mean is what was rounded."""
