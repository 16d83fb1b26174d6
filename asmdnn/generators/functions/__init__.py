"""Functions of elements: the language they are written in, its compiler, post-ops, and kernels that map."""
