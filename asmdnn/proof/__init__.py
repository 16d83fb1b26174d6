"""The proof of kernels: what an independent decoder makes of their bytes, held against what they may do.

One file a property; docs/proving.md says what is proved, and from which assumptions.
"""
