"""What there is to say about a primitive descriptor, as frozen values; renderers (text, json, html) only lay it out."""

from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.  section: the part of the kernel, as the generator calls it.  role: a formula on names.

    source: file:line that emitted it, `path` the file.  labels: those that stand before it.  target: of a jump, the
    offset that it goes to, else -1.  registers: the physical ones that it names, as `RegisterHolding`s
    call them.
    """

    offset: int
    data: bytes
    text: str
    kind: str
    section: str
    role: str
    source: str
    path: str
    registers: tuple[str, ...]
    labels: tuple[str, ...] = ()
    target: int = -1

    @property
    def line(self) -> int:
        """The number in `source`; 0 where no generator's line emitted it, as the saving of registers."""
        return int(self.source.rpartition(":")[2] or 0)

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class CodeLoop:
    """Instructions [begin, end) by offset, closed by the jump at `jump`; depth 0 is the outermost."""

    name: str
    begin: int
    end: int
    jump: int
    depth: int


@dataclass(frozen=True, slots=True)
class RegisterHolding:
    """A register is used for `purpose` from offset `begin` up to `end`."""

    register: str
    purpose: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class PlanKernel:
    """One kernel of the plan; code_bytes without its constants, size_bytes with them."""

    name: str
    spec: str
    code_bytes: int
    size_bytes: int
    instructions: tuple[Instruction, ...]
    loops: tuple[CodeLoop, ...]
    registers: tuple[RegisterHolding, ...]


@dataclass(frozen=True, slots=True)
class Implementation:
    """An entry of the implementation list: chosen, accepted but after the chosen one, or refused with a reason."""

    name: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Something that records point into: kind is tensor, constant or scratch."""

    name: str
    kind: str
    format: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KernelUse:
    """How often a phase calls a kernel, and the expected cycles of these calls together."""

    kernel: int
    records: int
    cycles: int


@dataclass(frozen=True, slots=True)
class ThreadRange:
    """The records [begin, end) of a phase that one thread runs, and their expected cycles."""

    thread: int
    begin: int
    end: int
    cycles: int


@dataclass(frozen=True, slots=True)
class TileRun:
    """Columns [begin, end) of a row of the plane; `tile` numbers the tiles of a shape."""

    row: int
    begin: int
    end: int
    tile: int


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """Part of an output (an image, a run of channels) in which the same records write every plane.

    records, kernels, threads: of each tile of `shapes[shape]`.
    """

    name: str
    shape: int
    records: tuple[int, ...]
    kernels: tuple[int, ...]
    threads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plane:
    """Who writes what of an output: its last two dims as rows and columns, cut into tiles, block by block."""

    tensor: str
    rows: int
    columns: int
    axes: tuple[str, str]
    shapes: tuple[tuple[TileRun, ...], ...]
    blocks: tuple[OutputBlock, ...]
    of: str  # what of the output is shown, "" for all


@dataclass(frozen=True, slots=True)
class DrawnPhase:
    """Records that may run at the same time.  plane is None if they write no output, or too many tiles to draw."""

    arguments: tuple[str, ...]
    records: int
    cycles: int
    start: str  # whether a barrier stands before it, and what is special about it
    kernels: tuple[KernelUse, ...]
    threads: tuple[ThreadRange, ...]
    plane: Plane | None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of a source file: a function that emitted instructions."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that emitted instructions; `path` as instructions say it, `name` to read."""

    path: str
    name: str
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All of it.  summary: what `PrimitiveDesc.explain()` says."""

    problem: str
    description: str
    summary: str
    implementation: str
    isa: str
    threads: int
    implementations: tuple[Implementation, ...]
    buffers: tuple[Buffer, ...]
    phases: tuple[DrawnPhase, ...]
    kernels: tuple[PlanKernel, ...]
    sources: tuple[SourceFile, ...]
