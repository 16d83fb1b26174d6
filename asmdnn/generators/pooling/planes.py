"""Pooling of whole planes of dense elements: one number of each (global pooling of nchw).

    dst[i] = max or mean of src[i, :]

| argument | dtype[shape] | what it is |
|---|---|---|
| src | kind[planes, elements] | planes src_plane_bytes apart, elements dense; only read |
| dst | kind[planes] | dst_step_bytes apart; only written, or read by a sum |
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import apply_composed, chain_words
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.pooling.results import Results
from asmdnn.generators.pooling.window import ARGUMENTS, DST, SRC, Pooled, Reduction, Taps, offsets
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stretches import touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import size_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

CHAINS = 4  # of additions, of which each waits for the one before
UNROLLED = 32  # vectors of a plane


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlanesSpec(Pooled):
    """Everything that the bytes of the kernel depend on.

    kind: the type in memory; others than f32 are brought to it, and rounded from it, and have no post-ops.
    """

    isa: str
    alg: str
    planes: int
    elements: int
    src_plane_bytes: int
    dst_step_bytes: int
    divisor: int = 1
    chain: tuple[PostOp, ...] = ()
    kind: str = "f32"

    @property
    def name(self) -> str:
        words = [f"{self.alg}pool_planes_{self.kind}_{self.planes}x{self.elements}", *chain_words(self.chain)]
        return f"{'_'.join(words)}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        src = touched(offsets((Taps(self.planes, self.src_plane_bytes),)), size_of(self.kind) * self.elements)
        dst = touched(offsets((Taps(self.planes, self.dst_step_bytes),)), size_of(self.kind))
        reads, writes = ([Range(i, *ends) for ends in found] for i, found in ((SRC, src), (DST, dst)))
        return Footprint((*reads, *(writes if self.reads_dst else ())), tuple(writes))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        src, dst = (asm.gp.take(name) for name in ARGUMENTS)
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        reduction, slots = Reduction(v, self.alg, self.kind), Slots(v)
        acc = v.registers.take("result", CHAINS)
        whole = v.tail(1) if self.reads_dst or self.kind != "f32" else None
        results = Results(reduction, self.isa, slots)
        walked = self.elements // v.lanes if self.elements // v.lanes > UNROLLED else 0
        done = walked * v.lanes * size_of(self.kind)
        with repeated(asm, self.planes, "planes", ((src, self.src_plane_bytes - done), (dst, self.dst_step_bytes))):
            self.plane(v, reduction, src, acc, walked)
            reduction.divide(acc[0], self.divisor)
            at = mem(dst, size=size_of(self.kind))
            if self.chain:
                sources = [Source(lambda: mem(dst, size=v.bytes), whole)] * self.reads_dst
                apply_composed(self.chain, v, acc[0], sources, (*acc[1:], *reduction.staged), slots)
            if whole and self.kind != "f32":
                results.convert(acc[0])
                results.store(acc[:1], [at], [reduction.element.lanes(v, whole)], v.store)
            else:
                asm.VMOVSS(at, acc[0].xmm)
        asm.ret()

    def plane(self, v: Vector, reduction: Reduction, src: Register, acc: list[Register], walked: int) -> None:
        """acc[0] = the reduction of a plane, in its first lane; src goes past the vectors walked by a loop."""
        vectors, rest = divmod(self.elements, v.lanes)
        size, every = v.lanes * size_of(self.kind), reduction.element.lanes(v, v)
        for x in acc:
            reduction.start(x)
        if walked:
            with repeated(v.asm, walked // CHAINS, "vectors", ((src, CHAINS * size),)):
                for i, x in enumerate(acc):
                    reduction.take_in(x, mem(src, i * size, size=size), every, False)
            vectors = walked % CHAINS
        for i in range(vectors):
            reduction.take_in(acc[i % CHAINS], mem(src, i * size, size=size), every, False)
        if rest:
            with v.parts(1, rest) as (part,):
                self.take_last(v, reduction, acc[-1], (src, vectors * size), part)
        if walked % CHAINS:
            v.asm.ADD(src, walked % CHAINS * size)
        for step in (2, 1):
            for i in range(step):
                reduction.join(acc[i], acc[i + step])
        v.across(acc[0], acc[1], v.asm.VMAXPS if reduction.is_max else v.asm.VADDPS)

    def take_last(
        self, v: Vector, reduction: Reduction, acc: Register, start: tuple[Register, int], part: Lanes
    ) -> None:
        """acc = the reduction of it and of the elements that fill no vector."""
        at = mem(*start, size=v.lanes * size_of(self.kind))
        last = reduction.load(at, reduction.element.lanes(v, part))
        reduction.fill(last, part)
        if reduction.is_max:
            v.asm.VMAXPS(acc, last, acc)
        else:
            v.add(acc, acc, last)
