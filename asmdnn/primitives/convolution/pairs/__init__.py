"""A convolution and the depthwise one after it as one plan."""
