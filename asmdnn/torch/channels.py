"""Normalization of images, (n, c, ...), of a channel, a group of them, or those around one; and PReLU."""

from collections.abc import Sequence
from math import prod
from typing import Any

from asmdnn import ops
from asmdnn.errors import InvalidArguments
from asmdnn.torch.differentiated import Differentiable, applied, torch_or_refusal


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """torch.nn.functional.batch_norm, with gradients by input, weight and bias.

    In training running statistics, if there are any, are moved by those of the batch.  Raises InvalidArguments.
    """
    if not training and (running_mean is None or running_var is None):
        raise InvalidArguments("running_mean and running_var must be given where training is False")
    dims = tuple(getattr(input, "shape", ()))
    if training and dims and prod(dims) == dims[min(1, len(dims) - 1)]:
        raise InvalidArguments(f"input has dims {dims}, one value for each channel: give it a larger batch to train")
    given = () if training else tuple(x.numpy(force=True) for x in (running_mean, running_var))

    def forward(x: Any, scale: Any, shift: Any) -> tuple[Any, Any]:
        return ops.batch_norm(x, scale, shift, *given, epsilon=eps), None

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return of_wanted(ops.batch_norm_gradient(dy, *operands[:2], *given, epsilon=eps), wanted)

    made = applied(Differentiable(forward, backward), input=input, weight=weight, bias=bias)
    if training and running_mean is not None:
        move(input, running_mean, running_var, momentum)
    return made


def move(input: Any, mean: Any, variance: Any, momentum: float) -> None:
    """Running statistics towards those of a batch."""
    torch = torch_or_refusal()
    with torch.no_grad():
        of_batch = torch.var_mean(input, [0, *range(2, input.ndim)], correction=1)
        for running, batch in zip((variance, mean), of_batch, strict=True):
            running.lerp_(batch, momentum)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """torch.nn.functional.group_norm, with its gradients.  Raises InvalidArguments."""

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        x, scale, _ = operands
        return of_wanted(ops.group_norm_gradient(dy, x, num_groups, scale, epsilon=eps), wanted)

    def forward(x: Any, scale: Any, shift: Any) -> tuple[Any, Any]:
        return ops.group_norm(x, num_groups, scale, shift, epsilon=eps), None

    return applied(Differentiable(forward, backward), input=input, weight=weight, bias=bias)


def instance_norm(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """torch.nn.functional.instance_norm without running statistics, with its gradients.  Raises InvalidArguments."""
    dims = tuple(getattr(input, "shape", ()))
    return group_norm(input, dims[1] if len(dims) > 1 else 1, weight, bias, eps)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """torch.nn.functional.local_response_norm of an odd size, with its gradient.  Raises InvalidArguments."""
    numbers: dict[str, Any] = {"alpha": alpha, "beta": beta, "k": k}

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return (ops.lrn_gradient(dy, operands[0], size, **numbers),)

    return applied(Differentiable(lambda x: (ops.lrn(x, size, **numbers), None), backward), input=input)


def prelu(input: Any, weight: Any) -> Any:
    """torch.nn.functional.prelu, with its gradients.  Raises InvalidArguments."""

    def slopes(x: Any, w: Any) -> Any:
        return w.reshape(-1, *[1] * (x.ndim - 2)) if w.size > 1 else w.reshape([1] * x.ndim)

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        x, w = operands
        dx, dw = ops.prelu_gradient(dy, x, slopes(x, w))
        return of_wanted((dx, dw.reshape(w.shape)), wanted)

    layer = Differentiable(lambda x, w: (ops.prelu(x, slopes(x, w)), None), backward)
    return applied(layer, input=input, weight=weight)


def of_wanted(found: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    return [x if is_wanted else None for x, is_wanted in zip(found, wanted, strict=True)]
