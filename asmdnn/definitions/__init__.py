"""What operations compute: in numpy, from their formulas, in the precision of the arrays that are given.

One definition of each, for the answers of the bench, for networks (what is folded, what runs without a primitive, what
a verification compares with) and for tests.  `*_error` says how far f32 arithmetic in any order may be from the exact
result, for each of its elements.  They know nothing of primitives, layouts and kernels; the references of kernels, in
tests/generators/references, are written apart from them.  tests/definitions compares each with one that is not ours.
"""
