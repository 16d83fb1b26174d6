"""Gradients that need sums over a row: of softmax, layer and RMS normalization."""
