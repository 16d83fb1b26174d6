"""The version of this package, for whoever has to compare it."""

__version__ = "0.2.0"
