"""Activations: functions of each element."""

from collections.abc import Sequence
from typing import Any

from asmdnn import ops
from asmdnn.errors import InvalidArguments, shown
from asmdnn.torch.differentiated import Differentiable, applied

THIRD, SIXTH = 3.0, 1 / 6  # of the hard functions: how far up, and the slope


def relu(input: Any) -> Any:
    """torch.nn.functional.relu, with its gradient.  Raises InvalidArguments."""
    return activation(input, "relu")


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    """torch.nn.functional.leaky_relu, with its gradient.  Raises InvalidArguments."""
    return activation(input, "relu", negative_slope)


def relu6(input: Any) -> Any:
    """torch.nn.functional.relu6, with its gradient.  Raises InvalidArguments."""
    return activation(input, "clip_v2", 0.0, 6.0)


def elu(input: Any, alpha: float = 1.0) -> Any:
    """torch.nn.functional.elu, with its gradient.  Raises InvalidArguments."""
    return activation(input, "elu", alpha)


def gelu(input: Any, approximate: str = "none") -> Any:
    """torch.nn.functional.gelu, with its gradient.  Raises InvalidArguments."""
    if approximate not in ("none", "tanh"):
        raise InvalidArguments(f"approximate must be 'none' or 'tanh', not {shown(approximate)}")
    return activation(input, "gelu_tanh" if approximate == "tanh" else "gelu_erf")


def silu(input: Any) -> Any:
    """torch.nn.functional.silu, with its gradient.  Raises InvalidArguments."""
    return activation(input, "swish", 1.0)


def mish(input: Any) -> Any:
    """torch.nn.functional.mish, with its gradient.  Raises InvalidArguments."""
    return activation(input, "mish")


def sigmoid(input: Any) -> Any:
    """torch.sigmoid, with its gradient.  Raises InvalidArguments."""
    return activation(input, "logistic")


def tanh(input: Any) -> Any:
    """torch.tanh, with its gradient.  Raises InvalidArguments."""
    return activation(input, "tanh")


def softplus(input: Any, beta: float = 1.0) -> Any:
    """torch.nn.functional.softplus without a threshold, with its gradient.  Raises InvalidArguments."""
    return activation(input, "soft_relu", beta)


def hardswish(input: Any) -> Any:
    """torch.nn.functional.hardswish, with its gradient.  Raises InvalidArguments."""
    return activation(input, "hardswish", SIXTH, THIRD * SIXTH)


def hardsigmoid(input: Any) -> Any:
    """torch.nn.functional.hardsigmoid, with its gradient.  Raises InvalidArguments."""
    return activation(input, "hardsigmoid", SIXTH, THIRD * SIXTH)


def activation(input: Any, alg: Any, *numbers: float) -> Any:
    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return (ops.eltwise_gradient(dy, operands[0], alg, *numbers),)

    return applied(Differentiable(lambda x: (ops.eltwise(x, alg, *numbers), None), backward), input=input)
