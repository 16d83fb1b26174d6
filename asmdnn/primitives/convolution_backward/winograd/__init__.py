"""Gradients of the weights of 3x3 convolutions by Winograd's algorithm."""
