"""Maps as a post-op of the primitive before them, or as element-wise primitives."""

from collections.abc import Mapping, Sequence
from typing import Any

from asmdnn.generators.functions.expression import Condition
from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.expressions import EXPRESSIONS
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.lowering.views import repeated
from asmdnn.network.steps import Place, Steps
from asmdnn.primitives.attributes.attr import AnyPostOp, Attr, Binary, Eltwise
from asmdnn.primitives.attributes.functions import where
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.eltwise import EltwiseForward
from asmdnn.primitives.formats import dense_like
from asmdnn.types import BinaryAlgorithm, PropKind

SIMPLE: dict[str, BinaryAlgorithm] = {
    "Add": "add",
    "Mul": "mul",
    "Max": "max",
    "Min": "min",
}
# commutative ones, with an algorithm of their own


class Tail:
    """The maps of a group as post-ops of a result of dims `dims`, and the tensors that they read.

    dims may have other axes than the values, as many elements in the same order: `adapt` says what becomes of a
    tensor's dims.
    """

    def __init__(self, steps: Steps, maps: Sequence[Node], x: str, adapt: Any = None) -> None:
        self.steps, self.maps, self.x = steps, maps, x
        self.adapt = adapt or (lambda dims: dims)
        self.ndim = len(steps.shape(maps[-1].outputs[0])) if maps else 0
        self.tensors = self.tensors_read()

    def tensors_read(self) -> list[str]:
        made = {self.x, *(node.outputs[0] for node in self.maps)}
        read = (name for node in self.maps for name in node.inputs if name != NOTHING and name not in made)
        return [name for name in dict.fromkeys(read) if self.number(name) is None]

    def number(self, name: str) -> float | None:
        """The value of a constant that is one number."""
        data = self.steps.value(name).data
        return float(data.ravel()[0]) if data is not None and data.size == 1 else None

    def attr(self) -> Attr:
        return Attr(self.post_ops())

    def post_ops(self) -> list[AnyPostOp]:
        if not self.maps:
            return []
        if len(self.maps) == 1 and self.maps[0].op == "Relu":
            return [Eltwise("relu")]
        if len(self.maps) == 1 and self.maps[0].op in SIMPLE and len(self.tensors) == 1:
            (name,) = self.tensors
            if len(self.maps[0].inputs) == 2:
                return [Binary(SIMPLE[self.maps[0].op], self.desc(name))]
        descs = {f"t{i}": self.desc(name) for i, name in enumerate(self.tensors)}
        return [PostOp(self.function, **descs)]

    def desc(self, name: str) -> MemoryDesc:
        """The tensor as the post-op reads it: as it lies, with axes of 1 in front."""
        return self.place(name).desc

    def place(self, name: str) -> Place:
        place = self.steps.place(name)
        dims = self.adapt((1,) * (self.ndim - len(place.desc.dims)) + place.desc.dims)
        return place if dims == place.desc.dims else self.steps.viewed(name, dims)

    def places(self) -> dict[str, Place]:
        """The arguments of the primitive that the tensors are."""
        if any(isinstance(op, Binary) for op in self.post_ops()):
            return {"binary_0": self.place(self.tensors[0])}
        return {f"t{i}_0": self.place(name) for i, name in enumerate(self.tensors)}

    def function(self, x: Any, **tensors: Any) -> Any:
        """All maps, of a traced value; truths are stored as 1 and 0."""
        known: dict[str, Any] = {self.x: x}
        known |= {name: tensors[f"t{i}"] for i, name in enumerate(self.tensors)}
        for node in self.maps:
            values = [self.operand(known, name) for name in node.inputs]
            known[node.outputs[0]] = EXPRESSIONS[node.op](node, *values)
        result = known[self.maps[-1].outputs[0]]
        return where(result, 1.0, 0.0) if isinstance(result, Condition) else result

    def operand(self, known: Mapping[str, Any], name: str) -> Any:
        if name == NOTHING:
            return None
        return known[name] if name in known else self.number(name)


def lower_maps(steps: Steps, group: Group) -> None:
    """Maps with no kernel before them: of a tensor that has the result's dims, or of two that make them."""
    result = group.result
    shape = steps.shape(result) or (1,)
    if group.x == NOTHING:
        lower_broadcast(steps, group)
        return
    tail, source = Tail(steps, group.maps, group.x), steps.place(group.x)
    dst = steps.result_format(shape)
    if not steps.choice.result and not source.desc.is_dense:
        dst = dense_like(source.desc, row_major(shape))
    desc = EltwiseForward(PropKind.forward_inference, "linear", source.desc, dst, 1.0, 0.0)
    only = group.maps[0] if len(group.maps) == 1 else None
    if only is not None and only.op == "Relu":
        desc, tail = EltwiseForward(PropKind.forward_inference, "relu", source.desc, dst), Tail(steps, (), group.x)
    steps.add(group.nodes, group.label, desc, {"src": source, **tail.places()}, {"dst": result}, attr=tail.attr())


def lower_broadcast(steps: Steps, group: Group) -> None:
    """The first map is of tensors of which none has the result's dims: [n, 1] + [1, m].

    Of others than sums, products and extremes the first one is read as often as wanted."""
    first, *rest = group.maps
    shape = steps.shape(group.result)
    if first.op not in SIMPLE or len(first.inputs) != 2:
        plain, tail = steps.plain(first.inputs[0]), Tail(steps, group.maps, first.inputs[0])
        source = Place(plain.buffer, repeated(plain.desc, shape))
        linear = EltwiseForward(PropKind.forward_inference, "linear", source.desc, row_major(shape), 1.0, 0.0)
        places = {"src": source, **tail.places()}
        steps.add(group.nodes, group.label, linear, places, {"dst": group.result}, attr=tail.attr())
        return
    tail = Tail(steps, rest, first.outputs[0])
    ends = Tail(steps, group.maps, NOTHING)
    sources = {f"src{i}": ends.place(name) for i, name in enumerate(first.inputs)}
    descs = {name: place.desc for name, place in sources.items()}
    desc = BinaryForward(SIMPLE[first.op], descs["src0"], descs["src1"], row_major(shape))
    steps.add(group.nodes, group.label, desc, {**sources, **tail.places()}, {"dst": group.result}, attr=tail.attr())
