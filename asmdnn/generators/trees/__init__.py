"""Walks down decision trees."""
