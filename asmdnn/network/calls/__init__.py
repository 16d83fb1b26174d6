"""What runs: parts of a network, and calls of them."""
