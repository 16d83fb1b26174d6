"""Gradients of a graph: a rule for each operator, and the pass that goes back from a loss."""
