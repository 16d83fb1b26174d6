"""Maps as a post-op of the primitive before them, or as element-wise primitives."""

from collections.abc import Callable, Sequence

from asmdnn.generators.functions.program import Program
from asmdnn.memory import MemoryDesc
from asmdnn.network.fusion.expressions import SHORT
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.map_programs import forms_of, function_of, program_of, several
from asmdnn.network.steps import Steps
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import further_name
from asmdnn.primitives.attributes.post_ops import AnyPostOp, Binary, Eltwise
from asmdnn.primitives.attributes.user_post_op import PostOp, traced_before
from asmdnn.records import replace
from asmdnn.types import BinaryAlgorithm

SIMPLE: dict[str, BinaryAlgorithm] = {"Add": "add", "Mul": "mul"}
# commutative ones, with an algorithm of their own; those of the larger and the smaller one lose NaN, as oneDNN's do
Adapt = Callable[[tuple[int, ...]], tuple[int, ...]]  # of dims of tensors to those of a result with other axes


class Tail:
    """The maps of a group as post-ops of a result of dims `dims`, and the tensors that they read.

    dims may have other axes than the values, as many elements in the same order: `adapt` says what becomes of a
    tensor's dims.  reads_all: whether the primitive's post-ops read tensors of all types.  further: values of maps that
    are results beside the last one.
    """

    def __init__(
        self,
        steps: Steps,
        maps: Sequence[Node],
        x: str,
        adapt: Adapt | None = None,
        reads_all: bool = False,
        further: Sequence[str] = (),
    ) -> None:
        self.steps, self.maps, self.x, self.reads_all, self.further = steps, maps, x, reads_all, further
        self.adapt = adapt or (lambda dims: dims)
        self.ndim = len(steps.shape(maps[-1].outputs[0])) if maps else 0
        self.tensors = self.tensors_read()
        self.forms = forms_of(self.as_stored(), (x, *self.tensors), self.number)
        self.traced: dict[tuple[MemoryDesc, ...], PostOp] = {}  # by how the tensors lie

    def as_stored(self) -> list[Node]:
        """The maps; the last one by a shorter formula where its result is stored in half the bits."""
        if not self.maps or self.maps[-1].op != "Gelu" or self.maps[-1].outputs[0] not in self.steps.storage.values:
            return [*self.maps]
        *others, last = self.maps
        return [*others, replace(last, attributes={**last.attributes, SHORT: 1})]

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
        descs = tuple(map(self.desc, self.tensors))
        if descs not in self.traced:
            tensors = {f"t{i}": desc for i, desc in enumerate(descs)}
            self.traced[descs] = traced_before(self.program(tuple(tensors)), function_of(self.forms), tensors)
        return [self.traced[descs]]

    def program(self, tensors: tuple[str, ...]) -> Program:
        """Raises InvalidArguments for what cannot be traced."""
        if not self.further:
            return program_of(self.forms, tensors)
        known = [self.x, *self.tensors, *(node.outputs[0] for node in self.maps)]
        return several(self.forms, tensors, tuple(map(known.index, self.further)))

    def results(self, dst: str) -> dict[str, str]:
        """Further values by argument, dst being called so."""
        return {further_name(dst, 0, k): name for k, name in enumerate(self.further)}

    def desc(self, name: str) -> MemoryDesc:
        """The tensor as the post-op reads it: as it lies, with axes of 1 in front."""
        return self.place(name).desc

    def place(self, name: str) -> Place:
        place = self.steps.kept(name) if self.reads_all else self.steps.place(name)
        dims = self.adapt((1,) * (self.ndim - len(place.desc.dims)) + place.desc.dims)
        return place if dims == place.desc.dims else self.steps.viewed(name, dims, place.desc.dtype)

    def places(self) -> dict[str, Place]:
        """The arguments of the primitive that the tensors are."""
        if any(isinstance(op, Binary) for op in self.post_ops()):
            return {"binary_0": self.place(self.tensors[0])}
        return {f"t{i}_0": self.place(name) for i, name in enumerate(self.tensors)}
