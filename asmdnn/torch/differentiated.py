"""A function of arrays and its gradients as one of torch's autograd."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.forking import importing


class Differentiable(NamedTuple):
    """forward: of arrays, None where an operand is left out: the result, and what backward needs beside it.
    backward: of the result's gradient, the operands, the result, what forward has kept, and which gradients are wanted:
    one for each operand, or None."""

    forward: Callable[..., tuple[Any, Any]]
    backward: Callable[[Any, Sequence[Any], Any, Any, Sequence[bool]], Sequence[Any]]


def applied(layer: Differentiable, **operands: Any) -> Any:
    """The result as a tensor that has gradients.  Raises InvalidArguments, Unimplemented."""
    torch = torch_or_refusal()
    for name, operand in operands.items():
        if operand is None and name != next(iter(operands)):
            continue
        if not isinstance(operand, torch.Tensor):
            raise InvalidArguments(f"{name} must be a tensor of torch, not {shown(operand)}")
        if operand.dtype != torch.float32 or operand.device.type != "cpu":
            where = f"{operand.dtype} on {operand.device}"
            raise InvalidArguments(f"{name} is {where}, only torch.float32 on the CPU is taken: convert it")
    return native().apply(layer, *operands.values())


def torch_or_refusal() -> Any:
    """The package; Unimplemented says how to get it."""
    if find_spec("torch") is None:
        raise Unimplemented("asmdnn.torch needs torch: pip install torch")
    with importing():
        import torch

    return torch


@cache
def native() -> Any:
    """The class, whose gradients end here: a second derivative is refused by torch."""
    torch = torch_or_refusal()
    from torch.autograd.function import once_differentiable

    class Native(torch.autograd.Function):  # type: ignore[misc, name-defined]  # found when it is first called
        @staticmethod
        def forward(context: Any, layer: Differentiable, *operands: Any) -> Any:
            made, context.kept = layer.forward(*arrays(operands))
            result = torch.from_numpy(made)
            context.layer = layer
            context.save_for_backward(*operands, result)
            return result

        @staticmethod
        @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
        def backward(context: Any, by_result: Any) -> Any:
            *operands, result = context.saved_tensors
            wanted = context.needs_input_grad[1:]
            by, made = arrays((by_result, result))
            given = by, arrays(operands), made, context.kept, wanted
            found = context.layer.backward(*given)
            return None, *(None if x is None else torch.from_numpy(x) for x in found)

    return Native


def arrays(operands: Sequence[Any]) -> list[Any]:
    """The tensors' memory as arrays of numpy, for which no gradient is recorded."""
    return [None if x is None else x.numpy(force=True) for x in operands]
