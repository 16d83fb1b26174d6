"""Rewrites of a graph that compute the same with fewer passes over memory; each file says its algebra."""
