"""Published architectures by torch.compile and from_torch, beside eager torch and inductor."""
