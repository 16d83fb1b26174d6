"""The avx2 suite on an independent CPU: qemu-user's Haswell model executes the kernels, and the library chooses avx2.

python -m tools.isa_matrix [--every=N] [--native] [--no-library] [--fetch-qemu]
"""
