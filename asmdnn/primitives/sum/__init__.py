"""Sums of many tensors."""
