"""Matrix products: matmul and gemm."""
