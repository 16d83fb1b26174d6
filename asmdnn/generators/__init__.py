"""Generators: from a kernel spec, and nothing else, to machine code.  One file a kernel family."""
