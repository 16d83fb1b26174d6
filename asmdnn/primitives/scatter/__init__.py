"""Rows of a table that are written, or added to, by indices that are data."""
