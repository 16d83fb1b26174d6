"""Numbers of algorithms in oneDNN's C interface, by benchdnn's words."""

ELTWISE = {
    "relu": 0x20, "tanh": 0x21, "elu": 0x22, "square": 0x23, "abs": 0x24, "sqrt": 0x25, "linear": 0x26,
    "soft_relu": 0x27, "hardsigmoid": 0x28, "logistic": 0x29, "exp": 0x2A, "gelu_tanh": 0x2B, "swish": 0x2C,
    "log": 0x2D, "clip": 0x2E, "clip_v2": 0x2F, "pow": 0x30, "gelu_erf": 0x31, "round": 0x32, "mish": 0x33,
    "hardswish": 0x34, "relu_dst": 0x100, "tanh_dst": 0x101, "elu_dst": 0x102, "sqrt_dst": 0x103,
    "logistic_dst": 0x104, "exp_dst": 0x105, "clip_v2_dst": 0x106,
}  # fmt: skip
BINARY = {
    alg: 0x1FFF0 + i
    for i, alg in enumerate(("add", "mul", "max", "min", "div", "sub", "ge", "gt", "le", "lt", "eq", "ne"))
}
REDUCTION = {
    alg: 0x2FFF2 + i
    for i, alg in enumerate(
        ("max", "min", "sum", "mul", "mean", "norm_lp_max", "norm_lp_sum", "norm_lp_power_p_max", "norm_lp_power_p_sum")
    )
}
POOLING = {"max": 0x1FF, "avg_p": 0x2FF, "avg_np": 0x3FF}
LRN = {"ACROSS": 0xAFF, "WITHIN": 0xBFF}
RESAMPLING = {"nearest": 0x2FFF0, "linear": 0x2FFF1}
SOFTMAX = {"SOFTMAX": 0x30000, "LOGSOFTMAX": 0x30001}
