"""A kernel's listing read: instructions, the loops that backward jumps close, and what each register holds where."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from asmdnn.explain.classes import class_of
from asmdnn.explain.model import CodeLoop, Instruction, PlanKernel, RegisterHolding
from asmdnn.generators.contract import KernelSpec
from asmdnn.isa.assembler import Assembler, Line, register
from asmdnn.isa.memory_operand import Pointer
from asmdnn.isa.naming import Key, key_of
from asmdnn.isa.operands import Register
from asmdnn.records import replace

_TARGET: Final = re.compile(r"0x([0-9a-f]+) <(.*)>$")


def listing_of(spec: KernelSpec) -> tuple[tuple[Line, ...], int]:
    """The listing of a kernel and the size of its code with constants; on any machine."""
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    code = asm.finish()
    assert code.listing is not None
    return code.listing, len(code.data)


def kernel_of(spec: KernelSpec) -> PlanKernel:
    """Everything about one kernel.  Raises Unimplemented where PeachPy is missing."""
    return read_kernel(spec, *listing_of(spec))


def read_kernel(spec: KernelSpec, listing: Sequence[Line], size_bytes: int) -> PlanKernel:
    """As `kernel_of`, for one that has been listed."""
    instructions = tuple(instructions_of(listing))
    loops = loops_of(instructions)
    return PlanKernel(
        name=spec.name,
        spec=repr(spec),
        code_bytes=instructions[-1].end,
        size_bytes=size_bytes,
        instructions=instructions,
        loops=loops,
        registers=tuple(_holdings(listing, loops)),
    )


def instructions_of(listing: Sequence[Line]) -> Iterator[Instruction]:
    """Those of a listing, with labels, targets and the registers that they name."""
    labels: dict[int, list[str]] = {}
    for line in listing:
        target, name = target_of(line.text)
        if target >= 0 and name not in labels.setdefault(target, []):
            labels[target].append(name)
    for line in listing:
        detail = line.detail
        yield Instruction(
            offset=line.offset,
            data=line.data,
            text=line.text,
            kind=class_of(detail.mnemonic, detail.operands),
            section=line.role,
            role=detail.effect,
            source=line.source,
            path=detail.path,
            registers=_names(line),
            labels=tuple(labels.get(line.offset, ())),
            target=target_of(line.text)[0],
        )


def _names(line: Line) -> tuple[str, ...]:
    """The registers of an instruction as the register map calls them: xmm3 is ymm3 where ymm3 was taken."""
    taken = {key_of(reg): str(reg) for reg, _ in line.detail.holders}
    return tuple(dict.fromkeys(taken.get(key_of(reg), str(reg)) for reg in _registers(line.detail.operands)))


def target_of(text: str) -> tuple[int, str]:
    """Where a jump to a label goes, and the label; (-1, "") for all else."""
    found = _TARGET.search(text)
    return (int(found[1], 16), found[2]) if found else (-1, "")


def loops_of(instructions: Sequence[Instruction]) -> tuple[CodeLoop, ...]:
    """Outer before inner.  A loop is what lies between a backward jump and its target; of several jumps to one target
    the last one closes the loop."""
    closing: dict[int, Instruction] = {}
    for instruction in instructions:
        if 0 <= instruction.target <= instruction.offset:
            closing[instruction.target] = instruction
    spans = sorted(((begin, jump.end) for begin, jump in closing.items()), key=lambda span: (span[0], -span[1]))
    return tuple(
        CodeLoop(
            target_of(closing[begin].text)[1],
            begin,
            end,
            closing[begin].offset,
            sum(b <= begin and end <= e for b, e in spans) - 1,
        )
        for begin, end in spans
    )


def _registers(operands: Sequence[object]) -> Iterator[Register]:
    """The registers that operands name, masks and addresses included, without their masks."""
    for operand in operands:
        if isinstance(operand, Register):
            yield register(operand.kind, operand.id)
            if operand.mask:
                yield register("k", operand.mask)
        elif isinstance(operand, Pointer):
            yield from (reg for reg in (operand.form.base, operand.form.index) if reg)
            if operand.form.mask:
                yield register("k", operand.form.mask)


def _holdings(listing: Sequence[Line], loops: Sequence[CodeLoop]) -> Iterator[RegisterHolding]:
    """While a register is taken for a purpose: from the first to the last instruction that names it; to the end of a
    loop that it came into from outside, because the next pass needs it again."""
    uses: dict[tuple[Register, str], list[tuple[int, int]]] = {}
    current: dict[Key, tuple[Register, str]] = {}
    done: list[RegisterHolding] = []
    for line in listing:
        holders = {key_of(reg): (reg, purpose) for reg, purpose in line.detail.holders}
        for key in [k for k, held in current.items() if holders.get(k) != held]:
            done += _closed(current.pop(key), uses)
        current.update(holders)
        for reg in _registers(line.detail.operands):
            if key_of(reg) in current:
                uses.setdefault(current[key_of(reg)], []).append((line.offset, line.offset + len(line.data)))
    for last in current.values():
        done += _closed(last, uses)
    done.sort(key=lambda h: (_order(h.register), h.begin))
    for one, after in zip_longest(done, done[1:]):
        limit = after.begin if after and after.register == one.register else listing[-1].offset
        around = [loop.end for loop in loops if one.begin < loop.begin < one.end < loop.end]
        yield replace(one, end=max(one.end, min(limit, max(around, default=0))))


def _closed(
    held: tuple[Register, str], uses: dict[tuple[Register, str], list[tuple[int, int]]]
) -> list[RegisterHolding]:
    spans = uses.pop(held, [])
    return [RegisterHolding(str(held[0]), held[1], spans[0][0], spans[-1][1])] if spans else []


def _order(name: str) -> tuple[int, int, str]:
    """Vector registers first, by number."""
    found = re.fullmatch(r"([xyz]mm|tmm|k)([0-9]+)", name)
    return (("zmm", "ymm", "xmm", "tmm", "k").index(found[1]), int(found[2]), "") if found else (9, 0, name)
