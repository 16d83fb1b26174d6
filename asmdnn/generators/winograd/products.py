"""The transform of a tile's products into results: Y = A^T M A for every output channel, then bias and post-ops.

    dst[y, x, k] = post_ops(bias[k] + sum over f of A[f // n, y] * A[f % n, x] * products[f, k])      n = m + 2

| argument | dtype[shape] | what it is |
|---|---|---|
| bias     | f32[channels] | if `bias`; nothing past them is read |
| products | f32[n^2, vectors of channels] | frequencies frequency_bytes apart; whole vectors are read |
| dst      | dst_type[rows, cols, channels] | pixel (y, x) at y * row_bytes + x * pixel_bytes, vectors at vector_bytes |
| 7, 8 ..  | operand_types[...] | operands of post-ops; pixel (y, x) is row y * row_pixels + x of an Operand |

Only `rows` x `cols` of the m x m results exist in dst.  With whole_vectors dst has room for all lanes, and zeros are
written after the channels; else nothing is.
"""

from collections.abc import Sequence

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.epilogue_shape import EpilogueTypes
from asmdnn.generators.functions.chain import chain_words, names_of_operands, operands_read
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.winograd.arguments import ARGUMENTS, BIAS, DST, PRODUCTS, types_word
from asmdnn.generators.winograd.forms import FORMS, ResultGroup, Transforms
from asmdnn.generators.winograd.linear import Linear
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_of
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductsTransformSpec:
    """Everything that the bytes of the kernel depend on."""

    isa: str
    m: int
    rows: int
    cols: int
    row_bytes: int
    pixel_bytes: int
    row_pixels: int
    channels: int
    whole_vectors: bool
    vector_bytes: int
    frequency_bytes: int
    bias: bool
    post_ops: tuple[PostOp, ...] = ()
    dst_type: DataType = f32
    operand_types: tuple[DataType, ...] = ()  # of what post-ops read, argument by argument; () if all are f32

    @property
    def form(self) -> Transforms:
        return FORMS[self.m]

    @property
    def name(self) -> str:
        words = [f"{self.rows}x{self.cols}x{self.channels}", *["bias"] * self.bias, *chain_words(self.post_ops)]
        text = "_".join([*words, checksum(self)])
        return f"winograd_products_{types_word(f32, self.dst_type)}_f{self.m}_{text}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return (*ARGUMENTS, *names_of_operands(self.post_ops))

    @property
    def types(self) -> EpilogueTypes:
        return EpilogueTypes(self.dst_type, tuple(enumerate(self.operand_types, len(ARGUMENTS))), self.isa)

    @property
    def pixels(self) -> list[tuple[int, int]]:
        return [(y, x) for y in range(self.rows) for x in range(self.cols)]

    def footprint(self) -> Footprint:
        lanes = lanes_of(self.isa)
        vectors = -(-self.channels // lanes)
        frequencies = (f * self.frequency_bytes for f in range(self.form.frequencies))
        reads = [Range(PRODUCTS, at, at + vector_bytes(self.isa) * vectors) for at in frequencies]
        reads += [Range(BIAS, 0, f32.size_bytes * self.channels)] * self.bias
        dst = []
        for j in range(vectors):
            size = self.dst_type.size_bytes * (lanes if self.whole_vectors else min(lanes, self.channels - j * lanes))
            begins = (y * self.row_bytes + x * self.pixel_bytes + j * self.vector_bytes for y, x in self.pixels)
            dst += [Range(DST, begin, begin + size) for begin in begins]
        operands = operands_read(self.post_ops)
        for operand in operands:
            reads += dst if operand is OLD_DST else self.ranges_of(operand, vectors, lanes)
        return Footprint(tuple(reads), tuple(dst))

    def ranges_of(self, operand: Operand, vectors: int, lanes: int) -> list[Range]:
        """What post-ops read of a tensor."""
        found: dict[Range, None] = {}
        for j in range(vectors):
            size = self.types.of(operand).size_bytes * (1 if operand.element else min(lanes, self.channels - j * lanes))
            for y, x in self.pixels:
                begin = (y * self.row_pixels + x) * operand.row_bytes + j * operand.vector_bytes
                found[Range(operand.argument, begin, begin + size)] = None
        return list(found)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: a loop over whole vectors of channels, or each by itself if post-ops read tensors."""
        v = vector_of(self.isa, asm)
        code = ProductsCode(self, asm, v)
        full, rest = divmod(self.channels, v.lanes)
        alone = len(self.frame) > len(ARGUMENTS)
        if full and not alone:
            asm.role("whole vectors")
            with asm.repeated(full, "vectors left", "vectors"):
                code.transform(0, v)
                code.next_vector()
        for j in range(full) if alone else ():
            asm.role(f"vector {j}")
            code.transform(j, v)
            code.next_vector()
        if rest:
            asm.role("tail")
            tail = v.tail(rest)
            code.transform(full, tail)
            tail.release()
        asm.ret()


class ProductsCode:
    """The code for one vector of channels."""

    def __init__(self, spec: ProductsTransformSpec, asm: Assembler, v: Vector) -> None:
        self.spec, self.asm, self.v = spec, asm, v
        self.pointers: dict[int, Register] = {}
        for argument in (PRODUCTS, DST, *[BIAS] * spec.bias):
            self.pointers[argument] = asm.gp.take(ARGUMENTS[argument])
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))
        self.epilogue = TileEpilogue(v, spec.post_ops, types=spec.types)

    def next_vector(self) -> None:
        """Move the pointers on."""
        steps = {PRODUCTS: self.v.bytes, DST: self.spec.vector_bytes, BIAS: self.v.bytes}
        for argument, pointer in self.pointers.items():
            self.asm.ADD(pointer, steps[argument])

    def transform(self, vector: int, part: Lanes) -> None:
        """Group by group of rows: first down the columns, then along the rows that exist.

        A tail takes a register, so the rows come one by one there.
        """
        self.prefetch()
        spare = self.epilogue.spare[0]  # free until a result is complete
        for group in self.spec.form.products if part is self.v else self.spec.form.alone:
            rows = self.down(group, spare)
            for y, row in zip(group.results, rows, strict=True):
                if y < self.spec.rows:
                    self.along(y, row, vector, part, spare)
                self.v.registers.free(*row)

    def prefetch(self) -> None:
        """The results of the tile to the right, which a store would wait for."""
        spec = self.spec
        first, step = spec.m * spec.pixel_bytes, max(spec.pixel_bytes, LINE_BYTES)
        for y in range(spec.rows):
            for at in range(y * spec.row_bytes + first, y * spec.row_bytes + 2 * first, step):
                self.asm.PREFETCHT0(mem(self.pointers[DST], at))

    def down(self, group: ResultGroup, spare: Register) -> list[list[Register]]:
        """The group's rows of A^T M, a register for each of n columns."""
        v, spec = self.v, self.spec
        n = spec.form.size
        rows: list[list[Register]] = v.registers.take("A^T M", len(group.results), n)
        linear = Linear(v, v, {}, None)
        for j in range(n):
            places = [(i * n + j) * spec.frequency_bytes for i in range(n)]
            column = [mem(self.pointers[PRODUCTS], at, size=v.bytes) for at in places]
            linear.group(group, column, [row[j] for row in rows], spare)
        return rows

    def along(self, y: int, row: Sequence[Register], vector: int, part: Lanes, spare: Register) -> None:
        """Row y of the results, from row y of A^T M."""
        v, spec = self.v, self.spec
        linear, results = Linear(v, v, {}, None), v.registers.take("results", 2)
        for group in spec.form.products:
            linear.group(group, row, results, spare)
            for x, result in zip(group.results, results, strict=True):
                if x < spec.cols:
                    self.finish(y, x, result, vector, part)
        v.registers.free(*results)

    def finish(self, y: int, x: int, result: Register, vector: int, part: Lanes) -> None:
        """Bias, post-ops and the store."""
        spec, v = self.spec, self.v
        if spec.bias:
            bias = mem(self.pointers[BIAS], 0, size=v.bytes)
            linear = Linear(v, part, {}, self.epilogue.spare[0])
            linear.add(result, 1, bias)
        at = mem(self.pointers[DST], y * spec.row_bytes + x * spec.pixel_bytes, size=v.bytes)
        self.epilogue.finish(result, y * spec.row_pixels + x, vector, at, v if spec.whole_vectors else part, part)
