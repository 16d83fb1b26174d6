"""Gradients that need sums over images and pixels: of batch normalization and PReLU."""
