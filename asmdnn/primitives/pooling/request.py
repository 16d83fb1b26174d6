"""What is asked of a pooling, once its formats are known: the one value that the ways to compute it read."""

from collections.abc import Mapping
from math import prod

from asmdnn.generators.functions.postops import PostOp
from asmdnn.memory import MemoryDesc
from asmdnn.planning.machine import machine_of
from asmdnn.primitives.attributes.attr import Attr, refuse_scales
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.around_kernels import AroundKernels, Surrounded
from asmdnn.primitives.pooling.description import Pooling, PoolingForward
from asmdnn.primitives.pooling.formats import format_like
from asmdnn.primitives.pooling.windows import Row, Windows
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import dataclass
from asmdnn.types import DATA_TYPES, f32

NAME = "pool"


@dataclass(frozen=True, slots=True, eq=False)
class PoolRequest(Surrounded):
    """tensors: src, dst and perhaps indices, as windows are reduced from and into them.  chain: on registers."""

    windows: Windows
    chain: tuple[PostOp, ...]
    around: AroundKernels

    @property
    def has_indices(self) -> bool:
        return "indices" in self.tensors

    @property
    def has_post_ops(self) -> bool:
        return bool(self.chain or self.around.separate_attr)

    @property
    def is_empty(self) -> bool:
        return not prod(self.tensors["dst"].dims)

    def streams(self, tensors: Mapping[str, MemoryDesc]) -> bool:
        """Whether results go past the caches: tensors are larger than L3 together."""
        return bytes_of(tensors) > self.l3_bytes

    @property
    def l3_bytes(self) -> int:
        return machine_of(self.engine.machine).caches.l3_bytes


def bytes_of(tensors: Mapping[str, MemoryDesc]) -> int:
    """The bytes of all."""
    return sum(tensor.size_bytes for tensor in tensors.values())


def request_of(desc: Pooling, attr: Attr, engine: Engine) -> PoolRequest:
    """Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    refuse_scales(attr)
    src = format_like(desc.dst, desc.src)
    dst = format_like(src, desc.dst)
    tensors = {"src": src, "dst": dst}
    if desc.indices is not None:
        tensors["indices"] = format_like(dst, desc.indices)
    refuse_overlap(**{name: tensors[name] for name in ("dst", "indices") if name in tensors})
    chain = post_ops_of(attr)
    passed = tensors | chain.operands(dst, DATA_TYPES.values())
    on_registers = not chain.names and desc.indices is None and dst.padded_dims == dst.dims and dst.dtype == f32
    separate = attr if attr.post_ops and not on_registers else None
    around = AroundKernels(
        name=NAME,
        passed=passed,
        tensors=tensors | {"dst": of_type(dst, f32)} if separate else tensors,
        separate_attr=separate,
        engine=engine,
        reads=("dst",) if attr.reads_dst() and not separate else (),
    )
    return PoolRequest(windows_of(desc), () if separate else chain.on_registers({}), around)


def windows_of(desc: Pooling) -> Windows:
    rows: tuple[Row, ...] = ()
    if isinstance(desc, PoolingForward):
        sizes = zip(desc.kernel, desc.steps, desc.strides, desc.padding_l, desc.dst.dims[2:], strict=True)
        rows = tuple(Row(*of_axis) for of_axis in sizes)
    return Windows(desc.is_max, tuple(tuple(desc.runs(axis)) for axis in range(desc.src.ndims - 2)), desc.steps, rows)
