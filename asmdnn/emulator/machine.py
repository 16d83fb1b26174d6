"""Runs generated machine code on emulated registers and named memory, and reports the first rule it breaks."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import length_hint

import numpy as np
from iced_x86 import CpuidFeature, Decoder, FlowControl, Instruction, Mnemonic

from asmdnn.emulator.control import RETURN_ADDRESS, RETURNED, Callback
from asmdnn.emulator.cpu import RSP, Cpu
from asmdnn.emulator.memory import Array, EmulationFault, MemoryRegion, TouchedBytes
from asmdnn.emulator.observing import Observer, observed
from asmdnn.emulator.operands import Operands, Step, Unsupported
from asmdnn.emulator.semantics import SEMANTICS
from asmdnn.records import dataclass

INTEGER_REGISTERS = (7, 6, 2, 1, 8, 9)  # rdi rsi rdx rcx r8 r9: System V ABI, AMD64 supplement, section 3.2.3
RAX, WORD_BYTES = 0, 8
STACK_BYTES = 1 << 16
STACK_ADDRESS = 0xFFFF_9000_0000_0000  # in the kernel's half, where no buffer of this process can be
STACK_GARBAGE = 0xAB
BLOCK_LIMIT = 512  # instructions compiled at a time, so that a short visit to a long code stays cheap
PROGRAM_LIMIT = 256  # compiled codes that are kept
STEP_LIMIT = 1 << 17  # compiled instructions that are shared between codes

MNEMONICS = {value: name for name, value in vars(Mnemonic).items() if name.isupper()}
FEATURES = {value: name.lower() for name, value in vars(CpuidFeature).items() if name.isupper()}
# What every x86-64 CPU has, or treats as NOP.
BASE_FEATURES = ("intel", "x64", "cmov", "cpuid", "multibytenop", "prefetchnta", "sse", "cet_ibt")


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """Instructions that run one after the other; the last step returns the offset to go on at."""

    instructions: tuple[Instruction, ...]
    steps: tuple[Step, ...]
    features: frozenset[str]


class CompiledCode:
    """A code compiled for one Cpu, block by block as it is reached."""

    def __init__(self, cpu: Cpu, code: bytes, steps: dict[bytes, Step] | None = None) -> None:
        self.cpu, self.bytes = cpu, code
        self.blocks: dict[int, CompiledBlock] = {}
        self._steps = {} if steps is None else steps

    def block(self, offset: int) -> CompiledBlock:
        """The block that starts at `offset`."""
        if offset not in self.blocks:
            if not 0 <= offset < len(self.bytes):
                raise EmulationFault(f"jumps to {offset:+#x}, outside the {len(self.bytes)} bytes of code")
            self.blocks[offset] = self._compile(offset)
        return self.blocks[offset]

    def _compile(self, offset: int) -> CompiledBlock:
        decoder = Decoder(64, self.bytes, ip=0)
        decoder.position, decoder.ip = offset, offset
        instructions, steps = [], []
        for _ in range(BLOCK_LIMIT):
            ins = decoder.decode()
            instructions.append(ins)
            steps.append(self._step(ins))
            if ins.is_invalid or ins.flow_control != FlowControl.NEXT or not decoder.can_decode:
                break
        if instructions[-1].flow_control == FlowControl.NEXT:
            steps.append(lambda following=int(instructions[-1].next_ip): following)  # type: ignore[misc]
        return CompiledBlock(tuple(instructions), tuple(steps), needed_features(instructions))

    def _step(self, ins: Instruction) -> Step:
        """Unrolled code repeats itself, and so do kernels: what does not depend on the place is compiled once."""
        if ins.flow_control != FlowControl.NEXT or ins.is_ip_rel_memory_operand:
            return self._build(ins)
        key = self.bytes[ins.ip : ins.next_ip]
        step = self._steps.get(key)
        if step is None:
            if len(self._steps) >= STEP_LIMIT:
                self._steps.clear()
            step = self._steps[key] = self._build(ins)
        return step

    def _build(self, ins: Instruction) -> Step:
        name: str = MNEMONICS.get(ins.mnemonic, "INVALID")
        if name not in SEMANTICS:
            return _refuse("is not an instruction" if ins.is_invalid else "is not supported by this emulator")
        try:
            build: Callable[[Operands], Step] = SEMANTICS[name]
            return build(Operands(self.cpu, ins, name, len(self.bytes)))
        except Unsupported as reason:
            return _refuse(f"is not supported by this emulator with {reason}")


def needed_features(instructions: Iterable[Instruction]) -> frozenset[str]:
    """Their CPUID features beyond x86-64's own, in the words of asmdnn.isa.levels: "fma", "avx512vl"."""
    names = (FEATURES[f] for instruction in instructions for f in instruction.cpuid_features())
    return frozenset(name for name in names if not name.startswith(BASE_FEATURES))


def _refuse(what: str) -> Step:
    def step() -> None:
        raise EmulationFault(what)

    return step


class _Processor:
    """A Cpu, the programs compiled for it, most recently used last, and the steps that they share."""

    def __init__(self) -> None:
        self.cpu = Cpu()
        self.programs: OrderedDict[bytes, CompiledCode] = OrderedDict()
        self.steps: dict[bytes, Step] = {}

    def program(self, code: bytes) -> CompiledCode:
        if code not in self.programs:
            self.programs[code] = CompiledCode(self.cpu, code, self.steps)
        self.programs.move_to_end(code)
        if len(self.programs) > PROGRAM_LIMIT:
            self.programs.popitem(last=False)
        return self.programs[code]


_idle: list[_Processor] = []  # compiled programs outlive an Emulator; a callback that calls again takes a second one


@dataclass(frozen=True, slots=True)
class PassedArguments:
    """What a caller passes: in the integer registers, in the low bytes of xmm0 and so on, and in words on the stack."""

    integers: tuple[int, ...] = ()
    floats: tuple[bytes, ...] = ()
    stack: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnRegisters:
    """rax, and the bytes of xmm0, when a function has returned."""

    rax: int
    xmm0: bytes


class Emulator:
    """Memory and host callbacks that codes are run on.

    `callbacks` maps addresses to functions (rdi, rsi, rdx, rcx, r8, r9) -> rax or None.  With `record`, `footprints`
    collects the bytes touched of every region, and of "stack", over all calls.  `features` are the CPUID features
    (`needed_features`) of the blocks that were entered; `instructions` counts what has been executed.
    observer: is told of every instruction.
    """

    def __init__(self, regions: Sequence[MemoryRegion | tuple[str, int, Array, bool, bool]], *,
                 callbacks: Mapping[int, Callback] | None = None, record: bool = False,
                 max_instructions: int = 50_000_000, observer: Observer | None = None,
                 limit_name: str = "max_instructions") -> None:  # fmt: skip
        self.regions = tuple(MemoryRegion(*region) for region in regions)
        names = [region.name for region in self.regions]
        if len({*names, "stack", "code"}) != len(names) + 2:
            raise ValueError(f"region names must be distinct, and not 'stack' or 'code': {names}")
        self.callbacks = dict(callbacks or {})
        self.max_instructions, self.observer, self.limit_name = max_instructions, observer, limit_name
        sizes = {region.name: region.array.size for region in self.regions} | {"stack": STACK_BYTES}
        self.footprints: dict[str, TouchedBytes] | None = None
        if record:
            self.footprints = {n: TouchedBytes(np.zeros(size, bool), np.zeros(size, bool)) for n, size in sizes.items()}
        self.features: set[str] = set()
        self.instructions = 0

    def call(self, code: bytes, address: int, frame_pointer: int) -> None:
        """Run a kernel: `code` with rdi = `frame_pointer`, as `call_function` does."""
        self.call_function(code, address, PassedArguments((frame_pointer,)))

    def call_function(self, code: bytes, address: int, arguments: PassedArguments) -> ReturnRegisters:
        """Run `code`, which is mapped at `address`, from its start until its last RET.

        Raises EmulationFault, naming offset and instruction, at the first rule that is broken.
        """
        code = bytes(code)
        processor = _idle.pop() if _idle else _Processor()
        try:
            cpu = processor.cpu
            self._enter(cpu, code, address, arguments)
            with floating_point(cpu):
                self._run(processor.program(code))
            return ReturnRegisters(cpu.gpr[RAX], cpu.vectors[0, :16].tobytes())
        finally:
            _idle.append(processor)

    def _enter(self, cpu: Cpu, code: bytes, address: int, arguments: PassedArguments) -> None:
        stack = MemoryRegion("stack", STACK_ADDRESS, np.full(STACK_BYTES, STACK_GARBAGE, np.uint8), True, True)
        blob = MemoryRegion("code", address, np.frombuffer(code, np.uint8))
        cpu.memory.map((*self.regions, stack, blob), self.footprints)
        cpu.reset()
        cpu.code_base, cpu.callbacks, cpu.underflow = address, self.callbacks, False
        for register, value in zip(INTEGER_REGISTERS, arguments.integers, strict=False):
            cpu.gpr[register] = value
        for number, low in enumerate(arguments.floats):
            cpu.vectors[number, : len(low)] = np.frombuffer(low, np.uint8)
        words = (RETURN_ADDRESS, *arguments.stack)
        cpu.gpr[RSP] = STACK_ADDRESS + STACK_BYTES - WORD_BYTES * (len(words) + (len(words) + 1) % 2)
        for i, word in enumerate(words):
            cpu.memory.store_int(cpu.gpr[RSP] + WORD_BYTES * i, WORD_BYTES, word)
        cpu.entry_gpr = tuple(cpu.gpr)

    def _run(self, program: CompiledCode) -> None:
        offset, left = 0, self.max_instructions
        block: CompiledBlock | None = None
        steps: Iterator[Step] = iter(())
        try:
            while offset != RETURNED:
                block = program.blocks.get(offset) or program.block(offset)
                left -= len(block.instructions)
                if left < 0:
                    said = f"has not returned after {self.max_instructions} instructions"
                    raise EmulationFault(f"{said}: see that its loops end, or raise {self.limit_name}")
                watched = self.observer and observed(block.instructions, block.steps, program.cpu, self.observer)
                steps = iter(watched or block.steps)
                for step in steps:
                    following = step()
                self.features |= block.features
                offset = following  # type: ignore[assignment]
        except EmulationFault as violation:
            raise _located(violation, block, length_hint(steps)) from violation.__cause__
        finally:
            self.instructions += self.max_instructions - max(left, 0)


def floating_point(cpu: Cpu) -> np.errstate:
    """The context that steps run in: all exceptions masked, underflow noted, which `fma` asks for."""

    def note(kind: str, flags: int) -> None:
        cpu.underflow = True

    return np.errstate(divide="ignore", over="ignore", invalid="ignore", under="call", call=note)


def _located(violation: EmulationFault, block: CompiledBlock | None, steps_left: int) -> EmulationFault:
    """The violation with the offset and text of the instruction that was running."""
    if block is None:
        return violation
    ins = block.instructions[min(len(block.steps) - steps_left, len(block.instructions)) - 1]
    return EmulationFault(f"at {ins.ip:#x}: {ins}: {violation}")
