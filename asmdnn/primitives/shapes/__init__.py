"""What descriptions and planners of many kinds share of tensors: checks, windows, formats, nests of loops."""
