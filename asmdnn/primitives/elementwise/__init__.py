"""Element-wise functions and binary operations."""
