"""Dropout."""
