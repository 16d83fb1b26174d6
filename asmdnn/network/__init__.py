"""Networks: graphs of operators, from ONNX files or built in Python, as one plan and one native call."""
