"""An HTTP service over saved networks, and a client that loads and checks it: docs/serving.md."""
