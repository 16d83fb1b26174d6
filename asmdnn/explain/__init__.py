"""A primitive explained, as values and then rendered: its kernels by instruction, its schedule, its dispatch."""
