"""Kernels as files: raw bytes, GNU assembly, ELF objects, C headers, and a manifest of them."""
