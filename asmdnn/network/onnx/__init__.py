"""ONNX files: the wire format, its messages, and the model that they say."""
