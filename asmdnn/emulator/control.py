"""Control flow, conditions, and instructions without an effect on the data."""

from collections.abc import Callable

from iced_x86 import ConditionCode, OpKind

from asmdnn.emulator.cpu import CALLEE_SAVED, CALLER_SAVED, ENTRY_MXCSR, RSP, Cpu
from asmdnn.emulator.memory import BITS64, EmulationFault
from asmdnn.emulator.operands import Operands, Step

RETURN_ADDRESS = 0xCA11_ED00_0000_0000  # on the stack at entry: not canonical, so nothing else can be there
RETURNED = -1  # the offset that the last RET goes on at
Callback = Callable[[int, int, int, int, int, int], int | None]  # rdi, rsi, rdx, rcx, r8, r9 -> rax

_ABOVE: Callable[[Cpu], bool] = lambda cpu: not (cpu.flag("cf") or cpu.flag("zf"))  # noqa: E731
_LESS: Callable[[Cpu], bool] = lambda cpu: cpu.flag("sf") != cpu.flag("of")  # noqa: E731
_GREATER: Callable[[Cpu], bool] = lambda cpu: not cpu.flag("zf") and cpu.flag("sf") == cpu.flag("of")  # noqa: E731

# iced's number of a condition -> (its meaning, whether the meaning is negated)
CONDITIONS: dict[int, tuple[Callable[[Cpu], bool], bool]] = {
    ConditionCode.O: (lambda cpu: cpu.flag("of"), False), ConditionCode.NO: (lambda cpu: cpu.flag("of"), True),
    ConditionCode.B: (lambda cpu: cpu.flag("cf"), False), ConditionCode.AE: (lambda cpu: cpu.flag("cf"), True),
    ConditionCode.E: (lambda cpu: cpu.flag("zf"), False), ConditionCode.NE: (lambda cpu: cpu.flag("zf"), True),
    ConditionCode.S: (lambda cpu: cpu.flag("sf"), False), ConditionCode.NS: (lambda cpu: cpu.flag("sf"), True),
    ConditionCode.P: (lambda cpu: cpu.flag("pf"), False), ConditionCode.NP: (lambda cpu: cpu.flag("pf"), True),
    ConditionCode.A: (_ABOVE, False), ConditionCode.BE: (_ABOVE, True),
    ConditionCode.L: (_LESS, False), ConditionCode.GE: (_LESS, True),
    ConditionCode.G: (_GREATER, False), ConditionCode.LE: (_GREATER, True),
}  # fmt: skip


def _condition(ops: Operands) -> Callable[[], bool]:
    cpu = ops.cpu
    meaning, negated = CONDITIONS[ops.ins.condition_code]
    return lambda: meaning(cpu) != negated


def jcc(ops: Operands) -> Step:
    if ops.ins.condition_code == ConditionCode.NONE:
        ops.unsupported("this condition")
    holds, target, following = _condition(ops), int(ops.ins.near_branch_target), int(ops.ins.next_ip)
    return lambda: target if holds() else following


def jmp(ops: Operands) -> Step:
    if ops.ins.op_kind(0) != OpKind.NEAR_BRANCH64:
        cpu, read = ops.cpu, ops.read_int(0)
        return lambda: read() - cpu.code_base
    target = int(ops.ins.near_branch_target)
    return lambda: target


def call(ops: Operands) -> Step:
    """To code of the same blob, or to a host callback, which leaves garbage in what the ABI lets it change."""
    cpu, following, size = ops.cpu, int(ops.ins.next_ip), ops.code_size
    if ops.ins.op_kind(0) == OpKind.NEAR_BRANCH64:
        offset = int(ops.ins.near_branch_target)

        def target() -> int:
            return (cpu.code_base + offset) & BITS64
    else:
        target = ops.read_int(0)

    def step() -> int:
        address = target()
        if cpu.gpr[RSP] % 16:
            raise EmulationFault(f"calls with rsp = {cpu.gpr[RSP]:#x}, which is not a multiple of 16")
        if cpu.df:
            raise EmulationFault("calls with the direction flag set")
        if address in cpu.callbacks:
            _call_host(cpu, address)
            return following
        if not 0 <= address - cpu.code_base < size:
            raise EmulationFault(f"calls {address:#x}, which is neither in the code nor a callback")
        cpu.gpr[RSP] = (cpu.gpr[RSP] - 8) & BITS64
        cpu.memory.store_int(cpu.gpr[RSP], 8, cpu.code_base + following)
        return address - cpu.code_base

    return step


def _call_host(cpu: Cpu, address: int) -> None:
    result = cpu.callbacks[address](*(cpu.gpr[i] for i in (7, 6, 2, 1, 8, 9)))
    dirty = cpu.dirty_upper()
    cpu.poison_gpr(CALLER_SAVED)
    cpu.poison_vectors()
    for i in dirty:  # garbage too, but still the kernel's to clear
        cpu.width[i] = 64
    cpu.undefine_flags("cf", "zf", "sf", "of", "pf")
    if result is not None:
        cpu.gpr[0] = result & BITS64


def ret(ops: Operands) -> Step:
    if ops.ins.op_count:
        ops.unsupported("popping arguments")
    cpu = ops.cpu

    def step() -> int:
        address = cpu.memory.load_int(cpu.gpr[RSP], 8)
        cpu.gpr[RSP] = (cpu.gpr[RSP] + 8) & BITS64
        if address != RETURN_ADDRESS:
            return address - cpu.code_base
        check_return(cpu)
        return RETURNED

    return step


def check_return(cpu: Cpu) -> None:
    """What the System V ABI wants at RET, and that upper halves are clear, without which later SSE code is slow."""
    if cpu.gpr[RSP] != cpu.entry_gpr[RSP] + 8:
        raise EmulationFault(f"returns with rsp {cpu.gpr[RSP] - cpu.entry_gpr[RSP] - 8:+d} bytes off")
    changed = [name for i, name in CALLEE_SAVED.items() if cpu.gpr[i] != cpu.entry_gpr[i]]
    if changed:
        raise EmulationFault(f"returns without having restored {', '.join(changed)}")
    if cpu.df:
        raise EmulationFault("returns with the direction flag set")
    if cpu.mxcsr >> 6 != ENTRY_MXCSR >> 6:
        raise EmulationFault(f"returns with MXCSR {cpu.mxcsr:#x}, found {ENTRY_MXCSR:#x}")
    if cpu.tiles is not None:
        raise EmulationFault("returns with tiles configured (no TILERELEASE)")
    dirty = cpu.dirty_upper()
    if dirty:
        raise EmulationFault(f"returns with dirty upper halves (no VZEROUPPER) of ymm{', ymm'.join(map(str, dirty))}")


def cmov(ops: Operands) -> Step:
    """The source is read, and a 32-bit destination's upper half cleared, whether the condition holds or not."""
    holds, read_old, read_new, write = _condition(ops), ops.read_int(0), ops.read_int(1), ops.write_int(0)

    def step() -> None:
        new = read_new()
        write(new if holds() else read_old())

    return step


def setcc(ops: Operands) -> Step:
    holds, write = _condition(ops), ops.write_int(0)

    def step() -> None:
        write(int(holds()))

    return step


def nothing(ops: Operands) -> Step:
    """NOP; prefetches, which never fault and are no access; SFENCE, as there is but one thread."""
    return lambda: None


def direction(ops: Operands) -> Step:
    cpu, value = ops.cpu, ops.name == "STD"

    def step() -> None:
        cpu.df = value

    return step


def mxcsr(ops: Operands) -> Step:
    """Saved and loaded; arithmetic takes no notice of it."""
    cpu = ops.cpu
    if ops.name.endswith("STMXCSR"):
        write = ops.write_int(0)
        return lambda: write(cpu.mxcsr)
    read = ops.read_int(0)

    def step() -> None:
        cpu.mxcsr = read()
        if cpu.mxcsr >> 16:
            raise EmulationFault(f"loads {cpu.mxcsr:#x} into MXCSR, which has 16 bits")

    return step


_CODES = ("O", "NO", "B", "AE", "E", "NE", "BE", "A", "S", "NS", "P", "NP", "L", "GE", "LE", "G")
TABLE: dict[str, Callable[[Operands], Step]] = {
    **{f"J{code}": jcc for code in _CODES}, **{f"CMOV{code}": cmov for code in _CODES},
    **{f"SET{code}": setcc for code in _CODES}, "JMP": jmp, "CALL": call, "RET": ret, "NOP": nothing,
    "ENDBR64": nothing, "CLD": direction, "STD": direction,
    **dict.fromkeys(("STMXCSR", "LDMXCSR", "VSTMXCSR", "VLDMXCSR"), mxcsr),
    **dict.fromkeys(("PREFETCHNTA", "PREFETCHT0", "PREFETCHT1", "PREFETCHT2", "PREFETCHW", "SFENCE"), nothing),
}  # fmt: skip
