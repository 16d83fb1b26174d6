"""Pooling: the largest or the mean of windows."""
