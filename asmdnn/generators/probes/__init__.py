"""Kernels that measure the machine."""
