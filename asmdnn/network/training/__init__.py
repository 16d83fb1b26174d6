"""Training steps: a loss, its gradients and an optimizer's updates as one network with state."""
