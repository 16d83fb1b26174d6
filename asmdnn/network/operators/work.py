"""How long numpy computes a node's definition, roughly, before it does: in nanoseconds of a usual core."""

from collections.abc import Callable, Sequence
from math import prod

from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Type, Value
from asmdnn.network.operators.einsum import sizes_of

ELEMENT, SLOW_ELEMENT = 4, 200  # of an operand or result; where Python or a sort has it in its hands
COPY = 64  # of an element that is copied to be multiplied: so many may be that they fill memory before they take long
MULTIPLY, BLAS_MULTIPLY = 1, 1 / 16
STEP = 20_000  # of a recurrent layer, in Python
SLOW = {"Erf", "Gelu", "TopK", "Det", "ReverseSequence", "GatherND"}

Operands = Sequence[Value | None]
Products = Callable[[Node, Operands, int], float]  # how long they take, of a node whose first result is so large


def matmul(node: Node, inputs: Operands, count: int) -> float:
    a = dims(inputs, 0)
    inner = a[0 if node.get("transA", 0) else -1] if a else 1
    is_blas = inputs[0] is not None and inputs[0].dtype.kind == "f" and inputs[0].dtype.itemsize > 2
    return count * inner * (BLAS_MULTIPLY if is_blas else MULTIPLY)


def recurrent(node: Node, inputs: Operands, count: int) -> float:
    x, w, r = (dims(inputs, i) for i in range(3))
    steps, batch = x[:2][:: -1 if node.get("layout", 0) else 1]
    return float(steps * (STEP + batch * (prod(w) + prod(r)) * MULTIPLY))


def attention(node: Node, inputs: Operands, count: int) -> float:
    """Scores of all keys, for every row of a result's head."""
    keys, columns = (dims(inputs, 1) or (1,))[-2:][0], max(1, *dims(inputs, 2)[-1:])
    return count * keys * 2 * BLAS_MULTIPLY + count / columns * keys * COPY


def conv(node: Node, inputs: Operands, count: int) -> float:
    """Every window is copied, once for all output channels."""
    products = count * prod(dims(inputs, 1)[1:])
    return products * BLAS_MULTIPLY + products / max(1, dims(inputs, 1)[0]) * COPY


def conv_transpose(node: Node, inputs: Operands, count: int) -> float:
    """Every product of a pixel and a position of the kernel is kept, summed over input channels."""
    products = prod(dims(inputs, 0)) * prod(dims(inputs, 1)[1:])
    return products * BLAS_MULTIPLY + products / max(1, dims(inputs, 1)[0]) * COPY


def pooling(node: Node, inputs: Operands, count: int) -> float:
    return float(count * prod(node.get("kernel_shape", ())) * COPY)


def local_response(node: Node, inputs: Operands, count: int) -> float:
    return float(count * min(node.get("size", 1), 2 * dims(inputs, 0)[1]) * ELEMENT)


def einsum(node: Node, inputs: Operands, count: int) -> float:
    return prod(sizes_of(node, [dims(inputs, i) for i in range(len(inputs))])[1].values()) * MULTIPLY


PRODUCTS: dict[str, Products] = {
    **dict.fromkeys(("MatMul", "Gemm", "MatMulInteger"), matmul),
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), recurrent),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pooling),
    "Attention": attention,
    **dict.fromkeys(("Conv", "ConvInteger"), conv),
    "ConvTranspose": conv_transpose,
    "Det": lambda node, inputs, count: prod(dims(inputs, 0)) * prod(dims(inputs, 0)[-1:]) * MULTIPLY,
    "Einsum": einsum,
    "LRN": local_response,
}


def dims(inputs: Operands, number: int) -> tuple[int, ...]:
    value = inputs[number] if number < len(inputs) else None
    return () if value is None else value.shape


def nanoseconds(node: Node, inputs: Operands, results: Sequence[Type]) -> float:
    """An estimate, for results of these dims and types."""
    moved = sum(prod(value.shape) for value in inputs if value is not None)
    moved += sum(prod(shape) for shape, _ in results)
    found = float(moved * (SLOW_ELEMENT if node.op in SLOW else ELEMENT))
    products = None if node.domain else PRODUCTS.get(node.op)
    if products is not None and results:
        found += products(node, inputs, prod(results[0][0]))
    return found
