"""Static quantization: which values of a graph become bytes, by which numbers, and the QDQ file that says so."""
