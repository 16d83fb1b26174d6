"""Reductions over dims of a tensor, and the tree that all of them are computed in."""
