"""Exported networks in C beside the same in Python."""
