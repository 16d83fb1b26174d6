"""Reorder: another format or another type for the same tensor."""
