"""Transforms of Winograd's convolution: of tiles of the source, of the weights, and of the products into results."""
