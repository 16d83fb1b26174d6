"""Sums over decision trees."""
