"""Softmax and its logarithm."""
