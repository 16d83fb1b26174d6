"""What each operator computes, in numpy: what folding, nodes without a kernel, and verification use."""
