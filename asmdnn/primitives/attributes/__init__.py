"""Attributes of primitives: post-ops, scales, their words, and what a chain of them computes."""
