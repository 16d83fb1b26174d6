"""The element-wise algorithms of oneDNN, as expressions."""
