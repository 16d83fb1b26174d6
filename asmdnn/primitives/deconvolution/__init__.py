"""Deconvolution, also called transposed convolution."""
