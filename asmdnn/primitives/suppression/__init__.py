"""Non-maximum suppression of boxes."""
