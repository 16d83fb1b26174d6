"""Kernels that move elements: copies, transposes, conversions of type, shuffles."""
