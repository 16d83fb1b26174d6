"""Products with weights of 4 bits."""
