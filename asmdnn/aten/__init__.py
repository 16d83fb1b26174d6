"""Networks of torch modules: graphs of ATen's operators become graphs of ONNX's."""
