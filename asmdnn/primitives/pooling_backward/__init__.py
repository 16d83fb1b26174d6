"""The gradients of poolings."""
