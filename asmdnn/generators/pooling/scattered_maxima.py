"""Gradients of maxima of a plane, result by result: each is added to the element that its place names.

    for all outputs i, in their order:  dst[window of i + offsets[places[i] - first of i]] += diff[i]

| argument | dtype[shape] | what it is |
|---|---|---|
| diff    | f32[outputs] | dense |
| dst     | f32[cells]   | the plane, with as much padding as windows reach into; zeros at first |
| places  | kind[outputs] | dense: u8, positions of windows, of which the first is 0; or s32, numbers of pixels |
| offsets | s32[positions] | of each position, or pixel from a window's first one on, bytes from the window's begin |

So the time does not depend on how large windows are, nor on how many channels there are beside.  Places that are no
position, and offsets beyond dst, add 0.  No byte outside of dst is written, whatever places and offsets hold.
"""

from math import prod

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.stepping import advance, repeated
from asmdnn.isa.assembler import Assembler, low32, mem
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS = ("diff", "dst", "places", "offsets")
DIFF, DST, PLACES, OFFSETS = range(len(ARGUMENTS))
NOWHERE = 2**31 - 1  # the offset of a pixel that is not in the window
UNROLLED = 4  # outputs of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatteredMaximaSpec:
    """Everything that the bytes of the kernel depend on.

    outputs: along each axis; steps: bytes of dst from a window to the next one along it.  positions: or pixels from a
    window's first one to its last.  pixels: of s32 places the first window's first pixel, which may be in the padding,
    and how far those of windows are apart along each axis; () of u8.
    """

    isa: str
    cells: int
    positions: int
    outputs: tuple[int, ...]
    steps: tuple[int, ...]
    pixels: tuple[int, ...] = ()
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        sizes, kind = "x".join(map(str, self.outputs)), "s32" if self.pixels else "u8"
        return f"maxpool_back_scattered_{kind}_{sizes}into{self.cells}_{checksum(self)}__{self.isa}"

    @property
    def place_bytes(self) -> int:
        return F32_BYTES if self.pixels else 1

    @property
    def dst_bytes(self) -> int:
        return F32_BYTES * self.cells

    def footprint(self) -> Footprint:
        count = prod(self.outputs)
        diff, places = Range(DIFF, 0, F32_BYTES * count), Range(PLACES, 0, self.place_bytes * count)
        offsets, dst = Range(OFFSETS, 0, F32_BYTES * self.positions), Range(DST, 0, self.dst_bytes)
        return Footprint((diff, places, offsets, dst), (dst,), partial=True)

    def generate(self, asm: Assembler) -> None:
        ScatteredMaximaCode(self, asm).along(0)
        asm.ret()


class ScatteredMaximaCode:
    """The emission.  window: bytes of dst to where the window of the next output begins; pixel: the number of its first
    pixel; limit: what offsets are below."""

    def __init__(self, spec: ScatteredMaximaSpec, asm: Assembler) -> None:
        self.spec, self.asm, self.limit = spec, asm, spec.dst_bytes - F32_BYTES + 1
        self.registers = vector_of(spec.isa, asm).registers
        self.diff, self.dst, self.places, self.offsets = (asm.gp.take(name) for name in ARGUMENTS)
        for argument, pointer in enumerate((self.diff, self.dst, self.places, self.offsets)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument, size=8))
        self.zero, self.window = asm.gp.take("zero"), asm.gp.take("window")
        self.place, self.offset, self.value = (asm.gp.take(name) for name in ("place", "offset", "value"))
        asm.XOR(self.zero, self.zero)
        asm.XOR(self.window, self.window)
        self.moving = [(self.window, spec.steps)]
        if spec.pixels:
            self.pixel = asm.gp.take("pixel")
            asm.MOV(self.pixel, spec.pixels[0])
            self.moving.append((self.pixel, spec.pixels[1:]))
        self.total = self.registers.take("sum")

    def along(self, axis: int) -> None:
        """All outputs along this axis and those inside of it, after which window and pixel are where they were."""
        asm, count = self.asm, self.spec.outputs[axis]
        steps = [(register, each[axis]) for register, each in self.moving]
        if axis == len(self.spec.outputs) - 1:
            asm.role("outputs")
            for turns, together in ((count // UNROLLED, UNROLLED), (1, count % UNROLLED)):
                if turns and together:
                    listed = [(self.diff, together * F32_BYTES), (self.places, together * self.spec.place_bytes)]
                    with repeated(asm, turns, "outputs", listed):
                        for i in range(together):
                            self.output(i)
                            advance(asm, steps)
        else:
            with repeated(asm, count, f"axis {axis}", steps):
                self.along(axis + 1)
        for register, step in steps:
            asm.SUB(register, count * step)

    def output(self, i: int) -> None:
        """That many after those where the pointers are."""
        asm, spec, total = self.asm, self.spec, self.total.xmm
        if spec.pixels:
            asm.MOVSXD(self.place, mem(self.places, i * F32_BYTES, size=F32_BYTES))
            asm.SUB(self.place, self.pixel)
        else:
            asm.MOVZX(low32(self.place), mem(self.places, i, size=1))
        asm.MOV(low32(self.value), mem(self.diff, i * F32_BYTES, size=F32_BYTES))
        asm.CMP(self.place, spec.positions)
        asm.CMOVAE(self.place, self.zero)
        asm.CMOVAE(low32(self.value), low32(self.zero))
        asm.MOV(low32(self.offset), mem(self.offsets, index=self.place, scale=F32_BYTES, size=F32_BYTES))
        asm.ADD(self.offset, self.window)
        asm.CMP(self.offset, self.limit)
        asm.CMOVAE(self.offset, self.zero)
        asm.CMOVAE(low32(self.value), low32(self.zero))
        asm.VMOVD(total, low32(self.value))
        at = mem(self.dst, index=self.offset, size=F32_BYTES)
        asm.VADDSS(total, total, at)
        asm.VMOVSS(at, total)
