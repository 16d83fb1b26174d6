"""Other libraries that `asmdnn bench` measures against."""
