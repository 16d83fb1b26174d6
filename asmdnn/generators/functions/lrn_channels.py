"""The gradient of local response normalization across channels, of pixels whose channels are dense, or in blocks:

    t[p, c] = diff[p, c] * src[p, c] * base[p, c]^(-beta - 1)
    dst[p, c] = diff[p, c] * base[p, c]^-beta - factor * src[p, c] * sum over i in the window of t[p, c + i]

| argument | dtype[shape] | what it is |
|---|---|---|
| src  | kind[pixels, blocks, block] | the source of the forward pass; only read |
| dst  | kind | only written |
| diff | kind | the gradient of the forward pass's result; only read |
| base | kind | what powers are of, above 0; only read |

All lie alike: pixels pixel_step elements apart, blocks block_step, a block's channels dense; types may differ.  What is
smaller than f32 is widened as it is loaded, and results are rounded once.

t of some pixels is on the stack, with zeros on both sides of all channels: so neighbours are loaded from neighbouring
addresses, whatever blocks lie apart.  beta = 0.75 takes base^-1/4 by two steps from a guess, for a root and
multiplications are not as long as two roots and a division.
"""

from collections.abc import Sequence
from typing import Final

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.lrn import by_power
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import Computation
from asmdnn.generators.functions.rows import words_of_types
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Source
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stretches import touched
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.elements import element_of, size_of, storing_element
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS: Final = ("src", "dst", "diff", "base")
SRC, DST, DIFF, BASE = range(len(ARGUMENTS))
F32_KINDS: Final = ("f32",) * len(ARGUMENTS)
TOGETHER: Final = 4  # vectors
MOST_VECTORS: Final = 64  # of a pixel, which are unrolled
BATCH_VECTORS: Final = 16  # of several pixels: t is stored long before it is loaded across stores
GUESS: Final = 0x5F375A86  # less half the bits of x: x^-1/2 within 3.5%
LARGEST_ROOT: Final = 2.0**63


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LrnChannelsSpec:
    """Everything that the bytes of such a kernel depend on.

    window: how far from a channel those are that have it in their window.  factor: 2 beta alpha / n.
    """

    isa: str
    pixels: int
    blocks: int
    block: int
    pixel_step: int
    block_step: int
    window: tuple[int, int]
    factor: float
    beta: float
    kinds: tuple[str, ...] = F32_KINDS
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        types, size = words_of_types(self.kinds), f"{self.pixels}x{self.blocks}x{self.block}"
        return f"lrnback_channels_{types}_{size}_{checksum(self)}__{self.isa}"

    @property
    def kind(self) -> str:
        """Of dst."""
        return self.kinds[DST]

    @property
    def channels(self) -> int:
        return self.blocks * self.block

    def footprint(self) -> Footprint:
        starts = [p * self.pixel_step + b * self.block_step for p in range(self.pixels) for b in range(self.blocks)]

        def ranges(argument: int) -> list[Range]:
            size = size_of(self.kinds[argument])
            return [Range(argument, *span) for span in touched([size * at for at in starts], size * self.block)]

        read = [found for argument in (SRC, DIFF, BASE) for found in ranges(argument)]
        return Footprint(tuple(read), tuple(ranges(DST)))

    def generate(self, asm: Assembler) -> None:
        LrnChannelsCode(self, vector_of(self.isa, asm)).all_pixels()
        asm.ret()


def vectors_of(isa: str, blocks: int, block: int) -> int:
    """Of a pixel."""
    return blocks * -(-block // lanes_of(isa))


def inverse_fourth_root(build: Builder, x: Term) -> Term:
    """x^-1/4, off by 1.5 units of rounding at most: of s = sqrt(x) and y with e = 1 - s y^2, the next y is y + y (e/2 +
    3/8 e^2), and then, as e is small, y + y e/2.  Numbers beyond 2^126, infinity too, count as that."""
    root = build.op("min", build.value(LARGEST_ROOT), build.op("sqrt", x))
    y = build.op("isub", build.bits(GUESS), build.op("shr", root, immediate=1))
    error = build.fnma(y * y, root, 1.0)
    y = build.fma(y, build.fma(error, 0.375, 0.5) * error, y)
    return build.fma(y * 0.5, build.fnma(y * y, root, 1.0), y)


def shares_program(beta: float) -> Program:
    """(t, q) of x, dy and base, whose power both have in common; q is dst without the sum."""
    build = Builder(3)
    x, dy, base = build.inputs
    if beta == 0.75:
        root = inverse_fourth_root(build, base)
        square = root * root
        q = dy * (square * root)
        return build.finish(q * (square * square) * x, q)
    common = by_power(build, dy, base, beta + 1)
    return build.finish(common * x, common * base)


def gradient_program(factor: float) -> Program:
    """Of x, q and s."""
    build = Builder(3)
    x, q, total = build.inputs
    return build.finish(build.fnma(x, total * factor, q))


class LrnChannelsCode(Computation):
    """Some pixels at a time: shares of all their channels, then sums."""

    def __init__(self, spec: LrnChannelsSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec, asm = spec, v.asm
        self.pointers = [asm.gp.take(name) for name in ARGUMENTS]
        for argument, pointer in enumerate(self.pointers):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        whole = -(-spec.channels // v.lanes) * v.lanes
        reach = max(-spec.window[0], spec.window[1] - 1, 1)
        self.before = -(-reach // v.lanes) * v.lanes  # zeros in front of the channels
        self.row = F32_BYTES * (self.before + whole + self.before)
        self.together = min(spec.pixels, max(1, BATCH_VECTORS // vectors_of(spec.isa, spec.blocks, spec.block)))
        self.whole, shares = whole, self.together * self.row
        self.stack = asm.stack(shares + self.together * F32_BYTES * whole)
        self.rest = shares

    def all_pixels(self) -> None:
        spec, v = self.spec, self.v
        with v.parts(-(-spec.block // v.lanes), spec.block) as parts:
            self.clear()
            for times, pixels in ((spec.pixels // self.together, self.together), (1, spec.pixels % self.together)):
                if times and pixels:
                    steps = [spec.pixel_step * size_of(kind) * pixels for kind in spec.kinds]
                    with repeated(v.asm, times, "pixels", list(zip(self.pointers, steps, strict=True))):
                        self.some(pixels, [*parts] * spec.blocks)

    def clear(self) -> None:
        """Zeros around the channels of all pixels."""
        (zero,) = self.v.registers.take("zero", 1)
        self.v.zero(zero)
        ends = [*range(0, self.before, self.v.lanes)]
        ends += range(self.before + self.spec.channels, self.row // F32_BYTES - self.v.lanes + 1, self.v.lanes)
        ends.append(self.row // F32_BYTES - self.v.lanes)
        for p in range(self.together):
            for at in dict.fromkeys(ends):
                self.v.store(self.at(p * self.row + F32_BYTES * at), zero)
        self.v.registers.free(zero)

    def at(self, offset: int) -> Pointer:
        return self.stack.shifted(offset).sized(self.v.bytes)

    def some(self, pixels: int, parts: Sequence[Lanes]) -> None:
        """Pixels from where the pointers are."""
        groups = [range(first, min(first + TOGETHER, len(parts))) for first in range(0, len(parts), TOGETHER)]
        self.v.asm.role("shares")
        for p in range(pixels):
            for group in groups:
                self.share(p, group, [parts[j] for j in group])
        self.v.asm.role("sums")
        for p in range(pixels):
            for group in groups:
                self.sum(p, group, [parts[j] for j in group])

    def channel(self, vector: int) -> int:
        """The first one of a vector."""
        of_block = -(-self.spec.block // self.v.lanes)
        block, j = divmod(vector, of_block)
        return block * self.spec.block + j * self.v.lanes

    def place(self, argument: int, pixel: int, vector: int) -> Pointer:
        spec, channel = self.spec, self.channel(vector)
        block, inside = divmod(channel, spec.block)
        size = size_of(spec.kinds[argument])
        offset = size * (pixel * spec.pixel_step + block * spec.block_step + inside)
        return mem(self.pointers[argument], offset, size=size * self.v.lanes)

    def sources(self, argument: int, pixel: int, group: range, parts: Sequence[Lanes]) -> list[Source]:
        element = element_of(self.spec.kinds[argument])
        return [
            Source(lambda j=j: self.place(argument, pixel, j), element.lanes(self.v, part))  # type: ignore[misc]
            for j, part in zip(group, parts, strict=True)
        ]

    def share(self, pixel: int, group: range, parts: Sequence[Lanes]) -> None:
        """t and q of some vectors, to the stack."""
        v, kinds = self.v, self.spec.kinds
        program = of_lanes(shares_program(self.spec.beta), tuple(kinds[a] for a in (SRC, DIFF, BASE)), ("f32", "f32"))
        inputs = [self.sources(argument, pixel, group, parts) for argument in (SRC, DIFF, BASE)]
        registers = v.registers.take("values", v.registers.available)
        found = apply_to_each(program, v, inputs, registers, self.slots)
        for values, of in zip(found, (self.share_at, self.rest_at), strict=True):
            for j, part, value in zip(group, parts, values, strict=True):
                part.store_last(of(pixel, self.channel(j)), value)
        v.registers.free(*registers)

    def share_at(self, pixel: int, channel: int) -> Pointer:
        return self.at(pixel * self.row + F32_BYTES * (self.before + channel))

    def rest_at(self, pixel: int, channel: int) -> Pointer:
        return self.at(self.rest + F32_BYTES * (pixel * self.whole + channel))

    def sum(self, pixel: int, group: range, parts: Sequence[Lanes]) -> None:
        """The results of some vectors."""
        v, spec = self.v, self.spec
        totals: list[Register] = v.registers.take("sums", len(group))
        for i in range(*spec.window):
            for total, j in zip(totals, group, strict=True):
                at = self.share_at(pixel, self.channel(j) + i)
                if i == spec.window[0]:
                    v.load(total, at)
                else:
                    v.add(total, total, at)
        program = of_lanes(gradient_program(spec.factor), (spec.kinds[SRC], "f32", "f32"), ("f32",))
        kept = [
            Source(lambda j=j: self.rest_at(pixel, self.channel(j)), part)  # type: ignore[misc]
            for j, part in zip(group, parts, strict=True)
        ]
        results = self.apply(program, [self.sources(SRC, pixel, group, parts), kept, totals])
        places = [(self.place(DST, pixel, j), part) for j, part in zip(group, parts, strict=True)]
        element = storing_element(spec.kinds[DST], spec.isa)
        if element.stays or element.narrows_pairs:
            self.store(element, results, places)
            return
        with v.registers.taken("rounding", 3) as spare:
            for value, (at, part) in zip(results, places, strict=True):
                element.store(v, at, value, part, spare)
        v.registers.free(*results)
