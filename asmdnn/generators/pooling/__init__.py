"""Kernels of pooling: the largest or the mean of windows, lanes being channels or pixels."""
