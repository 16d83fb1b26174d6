"""Inner products: matrix products of images and weights of their dims."""
