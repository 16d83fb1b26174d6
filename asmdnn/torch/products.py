"""Linear layers and tables of embeddings."""

from collections.abc import Sequence
from typing import Any

from asmdnn import ops
from asmdnn.errors import InvalidArguments, shown
from asmdnn.torch.differentiated import Differentiable, applied, torch_or_refusal


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """torch.nn.functional.linear of rows of any dims, with gradients by input, weight and bias.

    Raises InvalidArguments.
    """

    def rows(x: Any) -> Any:
        return x.reshape(-1, x.shape[-1])

    def forward(x: Any, w: Any, b: Any) -> tuple[Any, Any]:
        return ops.inner_product(rows(x), w, b).reshape(*x.shape[:-1], len(w)), None

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        x, w, _ = operands
        dx = ops.inner_product_input_gradient(rows(dy), w).reshape(x.shape) if wanted[0] else None
        dw, db = ops.inner_product_weight_gradient(rows(x), rows(dy)) if any(wanted[1:]) else (None, None)
        return dx, dw, db if wanted[2] else None

    return applied(Differentiable(forward, backward), input=input, weight=weight, bias=bias)


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """torch.nn.functional.embedding, with its gradient by weight: sums in the order of input, dense, and 0 at
    padding_idx.  Raises InvalidArguments."""
    torch = torch_or_refusal()
    if not isinstance(input, torch.Tensor) or input.dtype not in (torch.int32, torch.int64):
        raise InvalidArguments(f"input must be a tensor of torch.int32 or torch.int64, not {shown(input)}")
    indices = input.numpy(force=True)

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        found = ops.embedding_gradient(dy, indices, len(operands[0]))
        if padding_idx is not None:
            found[padding_idx] = 0
        return (found,)

    return applied(Differentiable(lambda table: (ops.embedding(table, indices), None), backward), weight=weight)
