"""The moments of channels: a tree of chunks of src where it lies, padding of blocks among them, or of a plain copy."""

from collections.abc import Sequence

from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.normalization.channel_kernels import Moments, identity
from asmdnn.primitives.reduction.source import ReductionSource, source_of
from asmdnn.primitives.reduction.tree import Tree
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.shapes.formats import pads_channels, row_major, with_padding
from asmdnn.records import dataclass
from asmdnn.types import f32

PLAIN = "plain src"


@dataclass(frozen=True, slots=True)
class ChannelMoments:
    """Of every channel of src, or of every image and channel; the phases are added to an assembly."""

    assembly: Assembly
    engine: Engine
    src: MemoryDesc
    of_images: bool

    @property
    def reduced(self) -> Sequence[int]:
        """Dims."""
        return range(2, self.src.ndims) if self.of_images else (0, *range(2, self.src.ndims))

    def result(self, src: MemoryDesc) -> MemoryDesc:
        """A dense one, beside src."""
        dims = [1 if dim in self.reduced else n for dim, n in enumerate(src.dims)]
        return MemoryDesc(dims, f32, LETTERS[: src.ndims])

    def source(self, src: MemoryDesc) -> ReductionSource | None:
        return source_of(src, self.result(src), self.reduced)

    def add(self, results: tuple[str, ...], divides: bool) -> None:
        """Means, and sums of squares or, divided, variances."""
        source = self.source(self.src)
        if source is not None:
            self.grow(source, self.src, results, divides)
        elif not self.add_with_padding(results, divides):
            plain = row_major(self.src.dims, self.src)
            self.assembly.scratch[PLAIN] = plain.size_bytes
            add_reorder(self.assembly, Reordering("src", self.src, PLAIN, plain))
            source = self.source(plain)
            assert source is not None, "a plain tensor is read"
            self.grow(source, plain, results, divides, PLAIN)

    def grow(
        self, source: ReductionSource, src: MemoryDesc, results: tuple[str, ...], divides: bool, buffer: str = "src"
    ) -> None:
        kernels = Moments(f32_level(self.engine.isa), results, divides, src.dtype)
        Tree(self.assembly, kernels, self.result(src).nelems()).grow(source, buffer)

    def add_with_padding(self, results: tuple[str, ...], divides: bool) -> bool:
        """With zeros that fill the last block as channels, which are left behind then; False if src is not so."""
        whole = with_padding(self.src)
        source = self.source(whole) if pads_channels(self.src) else None
        if source is None:
            return False
        padded = tuple(f"{name} with padding" for name in results)
        made, own = self.result(whole), self.result(self.src)
        self.assembly.scratch |= dict.fromkeys(padded, made.size_bytes)
        self.grow(source, whole, padded, divides)
        found, same = MemoryDesc(own.dims, f32, strides=made.strides), ExpressionOp(identity(), ())
        for name, target in zip(padded, results, strict=True):
            request = Request(target, (name, found), (target, own), {}, lambda _: same)
            self.assembly.add_plan(schedule(request, NO_ATTR, self.engine), {})
        return True
