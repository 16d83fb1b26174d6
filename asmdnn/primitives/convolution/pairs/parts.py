"""What a strip of rows and a panel of channels are of every tensor of a pair, and where they begin."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from asmdnn.memory import MemoryDesc
from asmdnn.planning.cuts import ranges_of
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import AnyPostOp, Binary, PReLU, with_tensors
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.pairs.pair import Pair, replaced
from asmdnn.records import dataclass
from asmdnn.types import f32

CHANNELS, ROWS = 1, 2  # dims of activations
MOST_STRIPS = 512  # of whose sizes strips are known: heights do not change with widths


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows [begin, end) of dst.  Of the rows that they read, [src_begin, src_end) are inside the image, and `above` are
    in the padding above, `below` in that below."""

    begin: int
    end: int
    src_begin: int
    src_end: int
    above: int
    below: int

    @property
    def rows(self) -> int:
        return self.end - self.begin

    @property
    def src_rows(self) -> int:
        return self.src_end - self.src_begin

    @property
    def shape(self) -> tuple[int, ...]:
        """What strips have in common that only lie elsewhere."""
        return self.rows, self.src_rows, self.above, self.below


def strips_of(second: ConvolutionForward, rows: int) -> Sequence[Strip]:
    """dst in strips of so many rows, or nearly.  Raises Refused where one reads padding alone."""
    stride, dilation, padding = (sizes[0] for sizes in (second.strides, second.dilations, second.padding_l))
    extent = (second.kernel[0] - 1) * (dilation + 1) + 1
    return strips_along(second.src.dims[ROWS], second.dst.dims[ROWS], rows, (stride, padding, extent))


@lru_cache(MOST_STRIPS)
def strips_along(src_rows: int, dst_rows: int, rows: int, window: tuple[int, int, int]) -> tuple[Strip, ...]:
    """The same of sizes along one axis; window: stride, padding, rows from the first of a window to the last."""
    stride, padding, extent = window
    found = []
    for begin, end in ranges_of(dst_rows, rows, 1):
        first, last = begin * stride - padding, (end - 1) * stride - padding + extent
        low, high = max(0, first), min(src_rows, last)
        if high <= low:
            raise Refused(f"rows {begin} to {end} of dst lie in the padding alone")
        found.append(Strip(begin, end, low, high, low - first, last - high))
    return tuple(found)


def runs_of(strips: Sequence[Strip]) -> Iterator[Sequence[Strip]]:
    """Strips of one shape one after another."""
    cuts = [0, *(i for i, (a, b) in enumerate(pairwise(strips), 1) if a.shape != b.shape), len(strips)]
    yield from (strips[begin:end] for begin, end in pairwise(cuts))


@dataclass(frozen=True, slots=True)
class StripPlace:
    """A strip of an image, and `channels` of what is between both convolutions, from one on."""

    strip: Strip
    channel: int
    channels: int
    image: int = 0


@dataclass(frozen=True, slots=True)
class Parts:
    """tensors: of the pair, by its names, formats resolved."""

    pair: Pair
    tensors: Mapping[str, MemoryDesc]

    def is_filter(self, name: str) -> bool:
        """Whether a tensor's first dim is its channels: weights and biases."""
        return name in ("weights", "bias", self.pair.names["weights"], self.pair.names["bias"])

    def box(self, name: str, at: StripPlace) -> list[tuple[int, int]]:
        """(first index, how many) along the leading dims; tensors that broadcast have one, and nothing moves there."""
        if self.is_filter(name):
            return [(at.channel, at.channels)]
        strip, reads_src = at.strip, name == "src" or name in self.pair.first_attr.tensors()
        rows = (strip.src_begin, strip.src_rows) if reads_src else (strip.begin, strip.rows)
        channels = (0, self.tensors[name].dims[CHANNELS]) if name == "src" else (at.channel, at.channels)
        return [(at.image, 1), channels, rows]

    def part(self, name: str, at: StripPlace) -> MemoryDesc:
        """As a tensor of its own, which begins at `start`."""
        desc = self.tensors[name]
        sizes = [min(size, whole) for (_, size), whole in zip(self.box(name, at), desc.dims, strict=False)]
        dims = (*sizes, *desc.dims[len(sizes) :])
        return MemoryDesc(dims, f32, strides=desc.strides, inner_blocks=desc.inner_blocks)

    def start(self, name: str, at: StripPlace) -> int:
        """In bytes; of what is no tensor 0.  Where the next one would begin may be after the end."""
        desc = self.tensors.get(name)
        if desc is None:
            return 0
        blocks = zip(self.box(name, at), desc.dims, desc.blocks, desc.strides, strict=False)
        steps = (first // block * stride for (first, _), size, block, stride in blocks if size > 1)
        return f32.size_bytes * (desc.offset0 + sum(steps))

    def attr_of(self, attr: Attr, names: Mapping[str, str], at: StripPlace) -> Attr:
        """Post-ops that see the part of their tensors, which the pair calls by `names`."""

        def post_op(i: int, op: AnyPostOp) -> AnyPostOp:
            if op.tensors and not isinstance(op, Binary | PReLU):
                raise Refused("tensors of post-ops written in Python are not cut into strips")
            return with_tensors(op, [self.part(names[f"{name}_{i}"], at) for name in op.tensors])

        return replaced(attr, tuple(post_op(i, op) for i, op in enumerate(attr.post_ops)))
