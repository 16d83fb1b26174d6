"""Tensors made of parts of others: concatenation and padding."""
