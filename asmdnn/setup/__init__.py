"""`asmdnn setup`: gets PeachPy 0.2.0 and an OpenMP runtime into this Python's environment.  No root needed."""
