"""ATen's element-wise operators: arithmetic, functions, comparisons, types."""

from typing import Any

import numpy as np

from asmdnn.aten.values import RULES, Rewriter, Traced, rule

SAME = {  # of one operand, with ONNX's name
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs",
    "neg": "Neg", "sin": "Sin", "cos": "Cos", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "round": "Round",
    "sign": "Sign", "reciprocal": "Reciprocal", "hardswish": "HardSwish", "mish": "Mish",
    "logical_not": "Not", "isnan": "IsNaN",
}  # fmt: skip
BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "maximum": "Max", "minimum": "Min", "pow": "Pow",
}  # fmt: skip
COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
EXACT_SOFTPLUS = 17
COPIES = (
    "clone.default", "contiguous.default", "detach.default", "alias.default", "lift_fresh_copy.default", "lift.default",
    "dropout.default", "feature_dropout.default", "alpha_dropout.default", "native_dropout.default",
)  # fmt: skip


def _same(onnx: str) -> Any:
    return lambda c, x: c.apply(onnx, x)


for _name, _onnx in SAME.items():
    RULES[f"{_name}.default"] = _same(_onnx)


def operands(c: Rewriter, a: Any, b: Any) -> tuple[Any, Any]:
    """Both in the type in which torch computes: that of the result, but for comparisons."""
    dtype = c.dtype
    if dtype == np.bool_:
        known = [x.dtype for x in (a, b) if isinstance(x, Traced)]
        dtype = np.result_type(*known)
        if dtype.kind != "f" and any(isinstance(x, float) for x in (a, b)):
            dtype = np.dtype(np.float32)
    made = [c.cast(x, dtype) if isinstance(x, Traced) else c.number(x, dtype) for x in (a, b)]
    return made[0], made[1]


def _binary(onnx: str) -> Any:
    def translate(c: Rewriter, a: Any, b: Any, alpha: Any = 1, *, rounding_mode: str | None = None) -> Any:
        x, y = operands(c, a, b)
        if alpha != 1:
            y = c.apply("Mul", y, c.number(alpha, c.dtype))
        if onnx == "Div" and rounding_mode not in (None, "floor", "trunc"):
            raise c.refuse(f"rounding_mode {rounding_mode!r}")
        found = c.apply(onnx, x, y)
        if rounding_mode is None:
            return found
        if c.dtype.kind != "f":
            raise c.refuse(f"integers with rounding_mode {rounding_mode!r}")
        if rounding_mode == "floor":
            return c.apply("Floor", found)
        return c.apply("Mul", c.apply("Sign", found), c.apply("Floor", c.apply("Abs", found)))

    return translate


for _name, _onnx in BINARY.items():
    for _overload in ("Tensor", "Scalar", "Tensor_mode", "Scalar_mode", "Tensor_Tensor", "Tensor_Scalar", "default"):
        RULES[f"{_name}.{_overload}"] = _binary(_onnx)


@rule("celu.default")
def _celu(c: Rewriter, x: Traced, alpha: float = 1.0) -> Any:
    return c.apply("Celu", x, alpha=float(alpha))


@rule("softplus.default")
def _softplus(c: Rewriter, x: Traced, beta: Any = 1, threshold: Any = 20) -> Any:
    """log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold."""
    if not beta:
        raise c.refuse("beta 0")
    scaled = c.apply("Mul", x, c.number(beta, c.dtype)) if beta != 1 else x.symbol
    found = c.apply("Softplus", scaled)
    found = c.apply("Div", found, c.number(beta, c.dtype)) if beta != 1 else found
    if threshold >= EXACT_SOFTPLUS:  # there it is x in f32
        return found
    return c.apply("Where", c.apply("Greater", scaled, c.number(threshold, c.dtype)), x, found)


@rule("log_sigmoid.default")
def _log_sigmoid(c: Rewriter, x: Traced) -> Any:
    return c.apply("Neg", c.apply("Softplus", c.apply("Neg", x)))


@rule("rsub.Scalar", "rsub.Tensor")
def _rsub(c: Rewriter, a: Any, b: Any, alpha: Any = 1) -> Any:
    if alpha != 1:
        raise c.refuse(f"alpha {alpha}")
    return _binary("Sub")(c, b, a)


def _compare(onnx: str) -> Any:
    return lambda c, a, b: c.apply(onnx, *operands(c, a, b))


for _name, _onnx in COMPARISONS.items():
    for _overload in ("Tensor", "Scalar"):
        RULES[f"{_name}.{_overload}"] = _compare(_onnx)


@rule("ne.Tensor", "ne.Scalar")
def _not_equal(c: Rewriter, a: Any, b: Any) -> Any:
    return c.apply("Not", c.apply("Equal", *operands(c, a, b)))


@rule("logical_and.default", "bitwise_and.Tensor", "__and__.Tensor")
def _and(c: Rewriter, a: Traced, b: Traced) -> Any:
    return _logic(c, "And", a, b)


@rule("logical_or.default", "bitwise_or.Tensor", "__or__.Tensor")
def _or(c: Rewriter, a: Traced, b: Traced) -> Any:
    return _logic(c, "Or", a, b)


@rule("bitwise_not.default")
def _bitwise_not(c: Rewriter, a: Traced) -> Any:
    if a.dtype != np.bool_:
        raise c.refuse("bits of integers")
    return c.apply("Not", a)


def _logic(c: Rewriter, onnx: str, a: Traced, b: Traced) -> Any:
    if a.dtype != np.bool_ or b.dtype != np.bool_:
        raise c.refuse("bits of integers")
    return c.apply(onnx, a, b)


@rule(*COPIES)
def _copy(c: Rewriter, x: Traced, *rest: Any, **options: Any) -> Any:
    """Values are never written in place here, and modules that drop out are in evaluation mode."""
    if c.name.startswith(("dropout", "feature_dropout", "alpha_dropout", "native_dropout")) and rest[1:2] == (True,):
        raise c.refuse("a module in training mode: call eval() first")
    return x.symbol


@rule("to.dtype", "to.dtype_layout", "_to_copy.default", "to.device", "type_as.default", "to.other")
def _to(c: Rewriter, x: Traced, *rest: Any, **options: Any) -> Any:
    return c.cast(x, c.dtype)


@rule("rsqrt.default")
def _rsqrt(c: Rewriter, x: Traced) -> Any:
    return c.apply("Reciprocal", c.apply("Sqrt", x))


@rule("square.default")
def _square(c: Rewriter, x: Traced) -> Any:
    return c.apply("Mul", x, x)


@rule("gelu.default")
def _gelu(c: Rewriter, x: Traced, *, approximate: str = "none") -> Any:
    return c.apply("Gelu", x, approximate=approximate)


@rule("silu.default")
def _silu(c: Rewriter, x: Traced) -> Any:
    return c.apply("Mul", x, c.apply("Sigmoid", x))


@rule("relu6.default")
def _relu6(c: Rewriter, x: Traced) -> Any:
    return c.apply("Clip", x, np.float32(0), np.float32(6))


@rule("hardtanh.default")
def _hardtanh(c: Rewriter, x: Traced, low: float = -1.0, high: float = 1.0) -> Any:
    return c.apply("Clip", x, np.float32(low), np.float32(high))


@rule("clamp.default", "clamp_min.default", "clamp_max.default")
def _clamp(c: Rewriter, x: Traced, low: Any = None, high: Any = None, **named: Any) -> Any:
    low, high = named.get("min", low), named.get("max", high)
    if c.name.startswith("clamp_max"):
        low, high = None, low
    bounds = [None if bound is None else c.number(bound, c.dtype) for bound in (low, high)]
    return c.apply("Clip", c.cast(x, c.dtype), *bounds)


@rule("hardsigmoid.default")
def _hardsigmoid(c: Rewriter, x: Traced) -> Any:
    return c.apply("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@rule("leaky_relu.default")
def _leaky_relu(c: Rewriter, x: Traced, slope: float = 0.01) -> Any:
    return c.apply("LeakyRelu", x, alpha=float(slope))


@rule("elu.default")
def _elu(c: Rewriter, x: Traced, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    if scale != 1 or input_scale != 1:
        raise c.refuse(f"elu with scales {scale}, {input_scale}")
    return c.apply("Elu", x, alpha=float(alpha))


@rule("selu.default")
def _selu(c: Rewriter, x: Traced) -> Any:
    return c.apply("Selu", x)


@rule("prelu.default", "_prelu_kernel.default")
def _prelu(c: Rewriter, x: Traced, slope: Traced) -> Any:
    shape = [1, -1, *[1] * (x.rank - 2)] if slope.shape != (1,) and slope.rank == 1 else list(slope.shape)
    return c.apply("PRelu", x, c.reshape(slope, shape))


@rule("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(c: Rewriter, condition: Traced, a: Any, b: Any) -> Any:
    made = [c.cast(x, c.dtype) if isinstance(x, Traced) else c.number(x, c.dtype) for x in (a, b)]
    return c.apply("Where", condition, *made)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(c: Rewriter, x: Traced, mask: Traced, value: Any) -> Any:
    filler = value.symbol if isinstance(value, Traced) else c.number(value, x.dtype)
    return c.apply("Where", mask, filler, x)


@rule("glu.default")
def _glu(c: Rewriter, x: Traced, dim: int = -1) -> Any:
    a, b = c.apply("Split", x, axis=dim, num_outputs=2, results=2)
    return c.apply("Mul", a, c.apply("Sigmoid", b))
