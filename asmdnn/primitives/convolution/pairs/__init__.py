"""A convolution and the depthwise one behind it as one plan."""
