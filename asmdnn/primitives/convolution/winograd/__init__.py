"""Winograd's convolution: tiles are transformed, multiplied frequency by frequency, and transformed back."""
