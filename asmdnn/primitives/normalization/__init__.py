"""Normalization of layers, batches, groups."""
