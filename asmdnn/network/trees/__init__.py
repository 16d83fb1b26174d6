"""Trees of the domain ai.onnx.ml: from a node's attributes to the one kind of node that is walked."""
