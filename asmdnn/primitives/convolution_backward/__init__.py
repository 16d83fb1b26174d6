"""The gradients of convolutions and deconvolutions."""
