"""Pooling of whole planes of dense elements: one number of each (global pooling of nchw).

    dst[i] = max or mean of src[i, :]

| argument | dtype[shape] | what it is |
|---|---|---|
| src | f32[planes, elements] | planes src_plane_bytes apart, elements dense; only read |
| dst | f32[planes] | dst_step_bytes apart; only written, or read by a sum |
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import apply_composed, chain_words
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.pooling.window import ARGUMENTS, DST, SRC, Pooled, Reduction, Taps, offsets
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stretches import touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

CHAINS = 4  # of additions, of which each waits for the one before
UNROLLED = 32  # vectors of a plane


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlanesSpec(Pooled):
    """Everything that the bytes of the kernel depend on."""

    isa: str
    alg: str
    planes: int
    elements: int
    src_plane_bytes: int
    dst_step_bytes: int
    divisor: int = 1
    chain: tuple[PostOp, ...] = ()

    @property
    def name(self) -> str:
        words = [f"{self.alg}pool_planes_f32_{self.planes}x{self.elements}", *chain_words(self.chain)]
        return f"{'_'.join(words)}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        src = touched(offsets((Taps(self.planes, self.src_plane_bytes),)), F32_BYTES * self.elements)
        dst = touched(offsets((Taps(self.planes, self.dst_step_bytes),)), 4)
        reads, writes = ([Range(i, *ends) for ends in found] for i, found in ((SRC, src), (DST, dst)))
        return Footprint((*reads, *(writes if self.reads_dst else ())), tuple(writes))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        src, dst = (asm.gp.take(name) for name in ARGUMENTS)
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        reduction, slots = Reduction(v, self.alg), Slots(v)
        acc = v.registers.take("result", CHAINS)
        whole = v.tail(1) if self.reads_dst else None
        done = self.elements // v.lanes * v.bytes if self.elements // v.lanes > UNROLLED else 0
        with repeated(asm, self.planes, "planes", ((src, self.src_plane_bytes - done), (dst, self.dst_step_bytes))):
            self.plane(v, reduction, src, acc, done // v.bytes)
            reduction.divide(acc[0], self.divisor)
            at = mem(dst, size=4)
            if self.chain:
                sources = [Source(lambda: mem(dst, size=v.bytes), whole)] * self.reads_dst
                apply_composed(self.chain, v, acc[0], sources, (*acc[1:], *reduction.staged), slots)
            asm.VMOVSS(at, acc[0].xmm)
        asm.ret()

    def plane(self, v: Vector, reduction: Reduction, src: Register, acc: list[Register], walked: int) -> None:
        """acc[0] = the reduction of a plane, in its first lane; src goes past the vectors walked by a loop."""
        vectors, rest = divmod(self.elements, v.lanes)
        for x in acc:
            reduction.start(x)
        if walked:
            with repeated(v.asm, walked // CHAINS, "vectors", ((src, CHAINS * v.bytes),)):
                for i, x in enumerate(acc):
                    reduction.take_in(x, mem(src, i * v.bytes, size=v.bytes), v, False)
            vectors = walked % CHAINS
        for i in range(vectors):
            reduction.take_in(acc[i % CHAINS], mem(src, i * v.bytes, size=v.bytes), v, False)
        if rest:
            with v.parts(1, rest) as (part,):
                last = reduction.load(mem(src, vectors * v.bytes, size=v.bytes), part)
                reduction.fill(last, part)
            if reduction.is_max:
                v.asm.VMAXPS(acc[-1], last, acc[-1])
            else:
                v.add(acc[-1], acc[-1], last)
        if walked % CHAINS:
            v.asm.ADD(src, walked % CHAINS * v.bytes)
        for step in (2, 1):
            for i in range(step):
                reduction.join(acc[i], acc[i + step])
        v.across(acc[0], acc[1], v.asm.VMAXPS if reduction.is_max else v.asm.VADDPS)
