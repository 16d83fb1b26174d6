"""Matrix products: matmul, inner product, gemm."""
