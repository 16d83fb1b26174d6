"""Sums for gradients: trees of kernels that read every tensor once, whatever the number of sums."""

from collections.abc import Mapping, Sequence

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_programs import same_program
from asmdnn.generators.functions.row_sums import RowSumsSpec, most_totals
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.move_tuning import ReductionTuning
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.reduction.source import Chunk, ReductionSource, TreeKernels, source_of
from asmdnn.primitives.reduction.tree import Tree
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType, f32


@dataclass(frozen=True, slots=True)
class GradientSums(TreeKernels):
    """A program's results, of src and operands; stores: the first one goes where the last operand lies.  dtypes: of src
    and operands.  whole_rows: of lanes, where registers do not hold the sums of all, they are in memory."""

    isa: str
    what: str
    program: Program
    results: tuple[str, ...]
    operands: tuple[str, ...]
    dtypes: tuple[DataType, ...] = ()
    stores: bool = False
    whole_rows: bool = False
    beside: tuple[str, ...] = ()

    @property
    def src_bytes(self) -> int:
        return self.dtypes[0].size_bytes

    @property
    def operand_bytes(self) -> tuple[int, ...]:
        return tuple(dtype.size_bytes for dtype in self.dtypes[1:])

    def first(self, chunk: Chunk, is_last: bool) -> KernelSpec:
        steps = enumerate(zip(self.operand_bytes, chunk.operands, strict=True), 1)
        operands = [Operand(i, size * row, 0, along == 0) for i, (size, (row, along)) in steps]
        place = operands.pop() if self.stores else None
        types = () if {*self.dtypes} == {f32} else tuple(dtype.name for dtype in self.dtypes)
        sums = len(self.results) * -(-chunk.elements // lanes_of(self.isa))
        row_by_row = self.whole_rows and chunk.along == "lanes" and sums > most_totals(self.isa)
        return replace(self.spec(chunk, operands, self.program), place=place, types=types, row_by_row=row_by_row)

    def merge(self, chunk: Chunk, counts: tuple[int, int], is_last: bool) -> KernelSpec:
        count = len(self.results)
        operands = [Operand(i, chunk.src_row_bytes, 0, False) for i in range(1, count)]
        return replace(self.spec(chunk, operands, same_program(count)), what="merged")

    def spec(self, chunk: Chunk, operands: Sequence[Operand], program: Program) -> RowSumsSpec:
        return RowSumsSpec(
            isa=self.isa, what=self.what, along=chunk.along, rows=chunk.rows, elements=chunk.elements,
            src_row_bytes=chunk.src_row_bytes, result_row_bytes=chunk.dst_row_bytes, operands=tuple(operands),
            program=program,
        )  # fmt: skip

    def cost(self, spec: KernelSpec, tuning: ReductionTuning) -> int:
        """Expected cycles of a call: of steps, two a cycle, and of loads."""
        assert isinstance(spec, RowSumsSpec)
        vectors = -(-spec.elements // lanes_of(spec.isa))
        each = 1 + len(spec.operands) + len(spec.program.steps) // 2
        return tuning.call_cycles + spec.rows * (tuning.row_cycles + vectors * each)


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """What is summed: a program of `images`, tensors of the same dims, and `others`, which broadcast to them; over the
    dims that `dst`, a dense tensor, has as 1.  results: the buffers of the sums.  stored: a tensor of the images' dims
    that the program's first result is stored to."""

    what: str
    program: Program
    images: Mapping[str, MemoryDesc]
    others: Mapping[str, MemoryDesc]
    dst: MemoryDesc
    results: tuple[str, ...]
    stored: tuple[str, MemoryDesc] | None = None

    @property
    def operands(self) -> dict[str, MemoryDesc]:
        """What kernels read and store beside the images."""
        return {**self.others, **dict([self.stored] if self.stored else [])}

    def source(self, images: Mapping[str, MemoryDesc]) -> ReductionSource | None:
        """How kernels read the images in these formats; None if they do not."""
        src, *more = images.values()
        reduced = [axis for axis, n in enumerate(self.dst.dims) if n == 1]
        return source_of(src, self.dst, reduced, [*more, *self.operands.values()])


def add_sums(assembly: Assembly, summed: Summed) -> None:
    """Add the phases; images in formats that kernels do not read together are copied before.  Raises Refused."""
    images, source = summed.images, summed.source(summed.images)
    if source is None:
        src = next(iter(images.values()))
        images = {f"plain {name}": row_major(src.dims, desc) for name, desc in summed.images.items()}
        for (name, desc), (copy, plain) in zip(summed.images.items(), images.items(), strict=True):
            assembly.scratch[copy] = plain.size_bytes
            add_reorder(assembly, Reordering(name, desc, copy, plain))
        source = summed.source(images)
        if source is None:
            raise Refused("what is summed beside src does not lie as it does")
    buffer, *more = images
    tensors = (*images.values(), *summed.operands.values())
    dtypes = tuple(desc.dtype for desc in tensors)
    tuning = assembly.tuning.reduction
    least = tuning.whole_rows_of_sums_bytes if len(summed.results) > 1 else tuning.whole_rows_bytes
    whole = sum(desc.size_bytes for desc in tensors) >= least
    how = (summed.program, summed.results, (*more, *summed.operands), dtypes, summed.stored is not None, whole)
    kernels = GradientSums(f32_level(assembly.isa), summed.what, *how)
    Tree(assembly, kernels, summed.dst.nelems()).grow(source, buffer)
