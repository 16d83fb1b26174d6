"""What a decomposition is written with: nodes in the place of one, whose operands have known dims."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted
from asmdnn.network.graph import NOTHING, Array, Body, Node
from asmdnn.network.operators.definition import Shape, Value
from asmdnn.network.passing import is_half

OPSET = 22  # the operator set whose meaning the nodes have
F32 = np.dtype(np.float32)
FLOAT = 1  # ONNX's number of f32
KINDS = "ib"  # of types that may stand beside f32: indices, lengths, masks


class Sentences(Protocol):
    """What takes nodes in, computes those of constants, and knows values by name.

    kept_integers: floats of constants that stay integers for products."""

    values: dict[str, Value]
    kept_integers: set[str]

    def node(self, node: Node) -> None: ...
    def inlined(self, body: Body, inputs: Mapping[str, str]) -> list[str]: ...
    def known(self, name: str) -> str: ...
    def constant(self, name: str, data: Array) -> str: ...
    def maker(self, name: str) -> Node | None: ...


class Decomposer:
    """Nodes in the place of `node`; each method returns the name of a value."""

    def __init__(self, folding: Sentences, node: Node) -> None:
        self.folding, self.node, self.count = folding, node, 0
        self.prefix = next(name for name in node.outputs if name != NOTHING)

    def name(self, what: str) -> str:
        self.count += 1
        return f"{self.prefix}/{what} {self.count}"

    def __call__(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """The result of a further node."""
        (result,) = self.results(op, inputs, 1, domain, **attributes)
        return result

    def results(
        self, op: str, inputs: Sequence[str], count: int, domain: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """The results of a further node that has several."""
        outputs = tuple(self.name(op) for _ in range(count))
        self.folding.node(Node(op, tuple(inputs), outputs, attributes, name="", domain=domain, opset=OPSET))
        return tuple(map(self.folding.known, outputs))

    def no_gradient(self, reason: str) -> Unimplemented:
        """The error to raise for a node that a training step has gradients go through."""
        return Unimplemented(f"{self.node} has no gradient: {reason}: freeze what it depends on, groups={{name: None}}")

    def value(self, name: str) -> Value:
        return self.folding.values[name]

    def maker(self, name: str, op: str) -> Node | None:
        """The node of this operator that makes a value, if one does."""
        node = self.folding.maker(name)
        return node if node is not None and node.op == op and not node.domain else None

    def shape(self, name: str) -> Shape:
        return self.value(name).shape

    def data(self, name: str) -> Array | None:
        """Of a constant."""
        return self.value(name).data if name != NOTHING else None

    def constant(self, data: Any, dtype: Any = F32) -> str:
        return self.folding.constant(self.name("constant"), np.asarray(data, dtype))

    def ints(self, *numbers: int) -> str:
        return self.constant(numbers, np.int64)

    def add(self, a: str, b: str | float) -> str:
        return self("Add", a, self.operand(b, a))

    def sub(self, a: str, b: str | float) -> str:
        return self("Sub", a, self.operand(b, a))

    def mul(self, a: str, b: str | float) -> str:
        """The product; a factor of 1 is none."""
        return a if b == 1.0 else self("Mul", a, self.operand(b, a))

    def div(self, a: str, b: str | float) -> str:
        return self("Div", a, self.operand(b, a))

    def where(self, condition: str, a: str | float, b: str | float) -> str:
        return self("Where", condition, self.operand(a), self.operand(b))

    def like(self, x: str, data: Any) -> str:
        """A constant of the type of a value."""
        return self.constant(data, self.value(x).dtype)

    def operand(self, x: str | float, beside: str = NOTHING) -> str:
        """A number in the type of the floats beside it."""
        dtype = self.value(beside).dtype if beside != NOTHING else F32
        return x if isinstance(x, str) else self.constant(x, dtype if dtype.kind == "f" else F32)

    def reshaped(self, x: str, *dims: int) -> str:
        return x if self.shape(x) == dims else self("Reshape", x, self.ints(*dims))

    def turned(self, x: str, *perm: int) -> str:
        return self("Transpose", x, perm=perm)

    def lifted(self, x: str, *axes: int) -> str:
        """With further axes of 1."""
        return self("Unsqueeze", x, self.ints(*axes))

    def expanded(self, x: str, *dims: int) -> str:
        return x if self.shape(x) == dims else self("Expand", x, self.ints(*dims))

    def part(self, x: str, axis: int, start: int, end: int) -> str:
        """A slice along an axis."""
        whole = (start, end) == (0, self.shape(x)[axis])
        return x if whole else self("Slice", x, self.ints(start), self.ints(end), self.ints(axis))

    def joined(self, axis: int, *several: str) -> str:
        return several[0] if len(several) == 1 else self("Concat", *several, axis=axis)

    def reduced(self, op: str, x: str, *axes: int, keepdims: bool = True) -> str:
        return self(op, x, self.ints(*axes), keepdims=int(keepdims))

    def inlined(self, body: Body, x: str) -> str:
        """What a body with one input makes of a value.  Raises InvalidArguments."""
        if len(body.inputs) != 1 or len(body.outputs) != 1:
            raise InvalidArguments(
                f"{self.node} has a body of {counted(len(body.inputs), 'input')}, it must take and make one"
            )
        (result,) = self.folding.inlined(body, dict.fromkeys(body.inputs, x))
        return result

    def widened(self, x: str) -> str:
        """Floats as f32, of which f64 stay what they are."""
        return x if self.value(x).dtype.itemsize > F32.itemsize else self.number(x)

    def floats(self, x: str) -> str:
        """Whatever numbers as f32, of which f64 stay what they are."""
        return self.widened(x) if self.value(x).dtype.kind == "f" else self.number(x)

    def as_type_of(self, x: str, like: str) -> str:
        return x if self.value(x).dtype == self.value(like).dtype else self("CastLike", x, like)

    def number(self, x: str) -> str:
        """Integers or truths as f32."""
        return x if self.value(x).dtype == F32 else self("Cast", x, to=FLOAT)


def are_kernels(folding: Sentences, node: Node) -> bool:
    """Whether a node has operands of types that kernels compute with."""
    return all(folding.values[name].dtype in (F32, np.bool_, np.int64, np.int32) for name in node.inputs if name)


def are_known(folding: Sentences, node: Node) -> bool:
    """For operators whose meaning no type changes."""
    return True


def is_f32(folding: Sentences, node: Node) -> bool:
    """Whether a node has an operand of f32, or of what becomes f32 inside, and none of another floating type."""
    types = [folding.values[name].dtype for name in node.inputs if name != NOTHING]
    floats = [dtype == F32 or is_half(dtype) for dtype in types]
    return any(floats) and all(one or x.kind in KINDS for one, x in zip(floats, types, strict=True))


def are_numbers(folding: Sentences, node: Node) -> bool:
    """Whether a node has operands of types that kernels compute with, or of what becomes f32 inside."""
    return are_kernels(folding, node) or is_f32(folding, node)
