"""src of a depthwise convolution with neighbours along an axis side by side, and the phases that bring it there."""

from math import gcd

from asmdnn.isa.dot import GROUP_BYTES, Types
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.raster import Padded, add_zeros
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.quantities import add_numbers, room_of
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import dataclass
from asmdnn.types import s32

INTERLEAVED = "interleaved src"
FIRST_AXIS = 2  # of the dims of src


@dataclass(frozen=True, slots=True)
class InterleavedAxis:
    """An axis along which `group` pixels that kernel positions reach one after another lie side by side, from each
    place where windows have some on.  Groups outside the image are left out."""

    axis: Axis
    group: int

    @property
    def extent(self) -> int:
        """From the first pixel of a group to the last one."""
        return (self.group - 1) * self.axis.d

    @property
    def step(self) -> int:
        """Pixels from a group of kernel positions to the next one."""
        return self.group * self.axis.d

    @property
    def unit(self) -> int:
        """Pixels between two places."""
        return gcd(self.axis.s, self.step)

    @property
    def first(self) -> int:
        """The pixel of the first place, which may lie in front of the image."""
        hidden = max(0, self.axis.p - self.extent)
        return -(-hidden // self.unit) * self.unit - self.axis.p

    @property
    def groups(self) -> int:
        """Of kernel positions, the last of which may be cut."""
        return -(-self.axis.k // self.group)

    @property
    def places(self) -> int:
        """How many; 0 or less if no window reaches the image."""
        axis = self.axis
        last = (axis.o - 1) * axis.s - axis.p + (self.groups - 1) * self.step
        return (min(last, axis.i - 1) - self.first) // self.unit + 1

    @property
    def before(self) -> int:
        """Pixels in front of the image that groups have."""
        return max(0, -self.first)

    @property
    def size(self) -> int:
        """Of the axis with the pixels around the image that groups have."""
        end = self.first + (self.places - 1) * self.unit + self.extent + 1
        return self.before + max(self.axis.i, end)

    @property
    def of_groups(self) -> Axis:
        """The axis of the convolution of groups."""
        axis, unit = self.axis, self.unit
        padding = (axis.p + self.first) // unit
        return Axis(self.places, axis.o, self.groups, axis.s // unit, self.step // unit, padding)


@dataclass(frozen=True, slots=True)
class InterleavedSrc:
    """src with the pixels along axis `number` in groups; padded: what they are read from, in scratch unless that is src
    itself."""

    number: int
    along: InterleavedAxis
    padded: Padded
    is_copied: bool

    @property
    def groups(self) -> MemoryDesc:
        """Of 4 bytes each, channels last."""
        dims = list(self.padded.desc.dims)
        dims[FIRST_AXIS + self.number] = self.along.places
        return MemoryDesc(tuple(dims), s32, "axb")

    @property
    def read(self) -> MemoryDesc:
        """The same as elements that are read, with a further dim: those of a group.  Groups overlap."""
        pixels, at = self.padded.desc, FIRST_AXIS + self.number
        strides, step = list(pixels.strides), pixels.strides[at]
        strides[at] = step * self.along.unit
        return MemoryDesc(
            (*self.groups.dims, self.along.group),
            pixels.dtype,
            strides=(*strides, step * self.along.axis.d),
            offset0=pixels.offset0 + step * self.along.first,
        )

    @property
    def written(self) -> MemoryDesc:
        """And as elements that are written."""
        group = self.along.group
        strides = (*(group * stride for stride in self.groups.strides), 1)
        return MemoryDesc((*self.groups.dims, group), self.padded.desc.dtype, strides=strides)


def interleaved_src(desc: ConvolutionForward, number: int, types: Types) -> InterleavedSrc:
    """Of src as it is passed, in elements as they are multiplied.  Raises Refused where there are none to multiply."""
    src, at = desc.src, FIRST_AXIS + number
    dilation, padding = desc.dilations[number] + 1, desc.padding_l[number]
    axis = Axis(src.dims[at], desc.dst.dims[at], desc.kernel[number], desc.strides[number], dilation, padding)
    along = InterleavedAxis(axis, GROUP_BYTES // types.src.size_bytes)
    if along.places < 1:
        raise Refused("no window reaches the image")
    sizes, before = list(src.dims), [0] * src.ndims
    sizes[at], before[at] = along.size, along.before
    if src.dtype == types.src and not src.inner_blocks and along.size == axis.i:
        return InterleavedSrc(number, along, Padded(src, src.dims, tuple(before)), is_copied=False)
    strides = MemoryDesc(tuple(sizes), types.src, "axb").strides
    inside = MemoryDesc(src.dims, types.src, strides=strides, offset0=along.before * strides[at])
    return InterleavedSrc(number, along, Padded(inside, tuple(sizes), tuple(before)), is_copied=True)


def add_interleaved(
    assembly: Assembly, passed: MemoryDesc, src: InterleavedSrc, attr: Attr, engine: Engine
) -> dict[str, MemoryDesc]:
    """The phases that pad src, less its zero point, and put groups side by side; the arguments that they read beside
    it.  Raises Refused."""
    buffer, arguments = "src", dict[str, MemoryDesc]()
    if src.is_copied:
        buffer, points = room_of("src"), {name: mask for name, mask in attr.zero_points if name == "src"}
        arguments = add_numbers(assembly, engine, ("src", passed), src.padded.desc, Attr(zero_points=points))
        assembly.scratch[buffer] = src.padded.size_bytes
        add_zeros(assembly, src.padded, buffer)
    assembly.scratch[INTERLEAVED] = src.groups.size_bytes
    add_reorder(assembly, Reordering(buffer, src.read, INTERLEAVED, src.written))
    return arguments
