"""Kernels that multiply and accumulate: tiles of convolutions and products, rows, columns, outer products."""
