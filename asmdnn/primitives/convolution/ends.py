"""What happens to the sums of a convolution's tiles: they start from something, and post-ops follow, which read tensors
where they lie, or copies of these."""

from collections.abc import Mapping, Sequence

from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.generators.functions.postops import PostOp
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.chain import Chain
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.operands import TileOperand, readable, tile_operands
from asmdnn.primitives.convolution.starts import STARTS, Starts
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType, f32


@dataclass(frozen=True, slots=True, eq=False)
class TileEnds:
    """passed: what post-ops read, by name, as callers pass it; read: as tiles read it; operands: where that lies.
    starts: what sums start from, if not from a bias or from zero."""

    chain: Chain
    passed: Mapping[str, MemoryDesc]
    read: Mapping[str, MemoryDesc]
    operands: Mapping[str, TileOperand]
    starts: Starts | None = None

    @property
    def arguments(self) -> dict[str, MemoryDesc]:
        """Of the plan of tiles, beside the tensors of the convolution."""
        return self.chain.arguments(self.read)

    @property
    def places(self) -> dict[str, TileOperand]:
        """By the names of kernels' arguments, since a bias may be an operand, too."""
        return {f"operand {i}": place for i, place in enumerate(self.operands.values())}

    @property
    def post_ops(self) -> tuple[PostOp, ...]:
        return self.chain.on_registers({name: place.operand for name, place in self.operands.items()})

    @property
    def types(self) -> tuple[DataType, ...]:
        """Of all operands as kernels name them: none if all are f32."""
        found = tuple(self.read[name].dtype for name in self.operands)
        return () if {*found} <= {f32} else found

    def starts_from_bias(self, tensors: Mapping[str, MemoryDesc]) -> bool:
        return "bias" in tensors and not self.chain.adds_bias

    def may_split(self, g: ConvGeometry, dst: DataType) -> bool:
        """Whether dst may hold partial sums, which it has room for, and which nothing has to be added to."""
        sums, adds = g.types.sums, self.chain.reads_dst
        return self.chain.may_split and dst.size_bytes == sums.size_bytes and (dst == sums == f32 or not adds)

    def buffers(self, tensors: Mapping[str, MemoryDesc]) -> dict[str, str]:
        """What arguments of direct tiles point into, by their names."""
        bias = STARTS if self.starts else "bias" if self.starts_from_bias(tensors) else ""
        places = {**{name: name for name in tensors}, "taps": "taps", "prefetched": "weights", "bias": bias}
        return {name: buffer for name, buffer in places.items() if buffer in tensors or buffer in ("taps", STARTS)}

    def every(self, step: int, dst: MemoryDesc, arguments: Sequence[str], lanes: int) -> "TileEnds":
        """The same of tiles that have every step-th pixel of a row."""
        if step == 1:
            return self
        return replace(self, operands=tile_operands(self.read, dst, len(arguments), lanes, step))

    def around(self, plan: Plan, engine: Engine) -> Plan:
        """The plan for operands as they are passed."""
        return between_reorders(plan, self.chain.arguments(self.passed), engine.tuning, isa=engine.isa)


def ends_of(
    chain: Chain,
    dst: MemoryDesc,
    arguments: Sequence[str],
    lanes: int,
    group: int,
    *,
    width: int | None = None,
    starts: Starts | None = None,
) -> TileEnds:
    """Of panels of `width` channels, by default a vector, which begin at the first channel of every group of dst, which
    has `group`; after so many arguments that kernels have in common."""
    passed = chain.operands(dst, RESULTS)
    read = {name: readable(tensor, dst, group, width or lanes, lanes) for name, tensor in passed.items()}
    return TileEnds(chain, passed, read, tile_operands(read, dst, len(arguments), lanes), starts)
