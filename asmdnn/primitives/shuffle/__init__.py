"""Shuffle: the channels of groups, transposed."""
